//! Watches: what is there, then what happens, in the one order of all writes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use convoy_api::schema::{FieldError, Reason};
use convoy_store::{Change, Event, Revision, Watch};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::accept::{Accept, Form};
use crate::backlog::{self, Backlog, WatchExpiry};
use crate::body::{self, Body};
use crate::connections::ClientConnection;
use crate::conversion;
use crate::encoding::write_entry;
use crate::handler_response::HandlerResponse;
use crate::metrics::{InFlight, Sent};
use crate::object_meta::{Entry, ObjectMeta};
use crate::resource_request::ResourceRequest;
use crate::response::{partial, with_media};
use crate::selection::Selection;
use crate::status::{ApiResult, Status};
use crate::table;

use super::get::{read_revision, wait_for};

/// A watch as a stream of text.
pub struct Follow {
    request: Arc<ResourceRequest>,
    selection: Selection,
    watch: Watch<ObjectMeta>,
    /// What is still to be sent: objects that were there when the watch began, and text.
    backlog: Backlog,
    /// The revision of the initial objects, until its marker is sent.
    marker: Option<Revision>,
    bookmarks: bool,
    next_bookmark: Pin<Box<Sleep>>,
    deadline: Pin<Box<Sleep>>,
    /// Done when the server ends.
    ending: Pin<Box<dyn Future<Output = ()> + Send>>,
    columns_sent: bool,
    ended: bool,
    sent: Sent,
    _open: InFlight,
    /// Tells the audit log when the watch is over.
    audited: Option<Box<dyn Send>>,
    /// Events whose objects a webhook is converting, and what comes of that.
    converting: Option<(Vec<Arc<Event<ObjectMeta>>>, Converting)>,
}

type Converting = Pin<Box<dyn Future<Output = ApiResult<()>> + Send>>;

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let resource = self.request.resource.qualified();
        f.debug_struct("Follow").field("resource", &resource).finish_non_exhaustive()
    }
}

/// The interval of bookmarks on an idle watch.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);

/// How much is written before it is handed on.
const CHUNK: usize = 64 << 10;

pub async fn watch(request: ResourceRequest) -> ApiResult<HandlerResponse> {
    let selection = Selection::of(&request)?;
    let start = Start::of(&request)?;
    let seconds = request.query.integer("timeoutSeconds")?.unwrap_or(0);
    let store = &request.server.store;
    let (revision, initial) = match start {
        Start::After(revision) => (Revision(revision), VecDeque::new()),
        Start::Everything { not_older_than } => {
            wait_for(&request, not_older_than).await?;
            let snapshot = store.snapshot();
            let shelf = request.cluster.shelf(&request.resource);
            let found = snapshot.list(&shelf).filter(|entry| selection.matches(entry));
            let found: Vec<Arc<Entry>> = found.cloned().collect();
            conversion::prepare(&request, &found).await?;
            (snapshot.revision(), found.into())
        }
    };
    let bookmarks = request.query.flag("allowWatchBookmarks");
    let everything = matches!(start, Start::Everything { .. });
    let lasts = lasts_for(&request, seconds);
    let now = Instant::now();
    let follow = Follow {
        watch: store.watch_part(
            &request.cluster.shelf(&request.resource),
            selection.topic(),
            revision,
        ),
        selection,
        backlog: request.server.backlogs.open(initial)?,
        marker: (everything && bookmarks).then_some(revision),
        bookmarks,
        next_bookmark: Box::pin(sleep_until(now + first_bookmark(lasts))),
        deadline: Box::pin(sleep_until(now + lasts)),
        ending: Box::pin(request.server.ending()),
        columns_sent: false,
        ended: false,
        sent: request.server.metrics.events_of(&request.resource),
        _open: request.server.metrics.watch_opened(),
        request: Arc::new(request),
        audited: None,
        converting: None,
    };
    Ok(HandlerResponse::Raw(with_media(200, "application/json", Body::Watch(Box::new(follow)))))
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug)]
enum Start {
    After(u64),
    Everything { not_older_than: u64 },
}

impl Start {
    fn of(request: &ResourceRequest) -> ApiResult<Self> {
        let query = &request.query;
        let revision = read_revision(query.get("resourceVersion"))?;
        let matched = query.get("resourceVersionMatch").filter(|matched| !matched.is_empty());
        let sends = query.optional_flag("sendInitialEvents");
        let refuse = |field: &str, detail: &str| {
            let error = FieldError::plain(Reason::Forbidden, field, detail);
            Err(Status::invalid_thing("ListOptions.meta.k8s.io", "", &[error]))
        };
        match (sends, matched) {
            (Some(_), Some("NotOlderThan")) | (None, None) => {}
            (Some(_), _) => {
                return refuse(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                );
            }
            (None, Some(_)) => {
                let field = "resourceVersionMatch";
                let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                let mut errors = vec![FieldError::plain(Reason::Forbidden, field, detail)];
                if let Some(other) = matched.filter(|matched| *matched != "NotOlderThan") {
                    let detail = "supported values: \"NotOlderThan\"";
                    let shown = json!(other);
                    errors.push(FieldError::about(Reason::NotSupported, field, &shown, detail));
                }
                return Err(Status::invalid_thing("ListOptions.meta.k8s.io", "", &errors));
            }
        }
        Ok(match (sends, revision) {
            (Some(true), revision) => Self::Everything { not_older_than: revision.unwrap_or(0) },
            (Some(false) | None, Some(after)) if after > 0 => Self::After(after),
            (Some(false), _) => Self::After(request.server.store.revision().0),
            (None, _) => Self::Everything { not_older_than: 0 },
        })
    }
}

/// Half an hour to an hour, so that many clients do not come back at once.
fn lasts_for(request: &ResourceRequest, seconds: i64) -> Duration {
    if let Ok(seconds @ 1..) = u64::try_from(seconds) {
        Duration::from_secs(seconds)
    } else {
        let random = u16::from_le_bytes([
            request.server.surroundings.random()[0],
            request.server.surroundings.random()[1],
        ]);
        Duration::from_mins(30) + Duration::from_millis(u64::from(random) * 1_800_000 / 65_536)
    }
}

/// The usual pause, or two seconds before the end if that is nearer.
fn first_bookmark(lasts: Duration) -> Duration {
    BOOKMARK_EVERY.min(lasts.saturating_sub(Duration::from_secs(2)).max(Duration::from_millis(500)))
}

impl body::Live for Follow {
    fn attach(&self, connection: &Arc<ClientConnection>) {
        self.backlog.attach(connection);
    }

    fn keep(&mut self, guard: Box<dyn Send>) {
        self.audited = Some(guard);
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(piece) = self.backlog.next_piece() {
            return Poll::Ready(Some(piece));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let mut out = Vec::new();
        match self.backlog.expiry() {
            None => self.write_initial(&mut out),
            Some(WatchExpiry::BetweenEvents) => {
                self.fail(&mut out, &Status::expired(backlog::EXPIRED));
            }
            // Nothing that follows half an event would be understood.
            Some(WatchExpiry::WithinAnEvent) => self.ended = true,
        }
        while out.len() < CHUNK && !self.ended && !self.backlog.has_initial() {
            if self.converting.is_some() {
                if self.poll_converted(context, &mut out).is_pending() {
                    break;
                }
                continue;
            }
            match self.watch.poll_read(context) {
                Poll::Ready(Ok(Some(events))) => self.take(events, &mut out),
                Poll::Ready(Ok(None)) => self.ended = true,
                Poll::Ready(Err(compacted)) => {
                    self.fail(&mut out, &Status::expired(compacted.to_string()));
                }
                Poll::Pending => {
                    self.keep_time(context, &mut out);
                    break;
                }
            }
        }
        match out.is_empty() {
            false => Poll::Ready(Some(self.backlog.send(out))),
            true if self.ended => Poll::Ready(None),
            true => Poll::Pending,
        }
    }
}

impl Follow {
    /// Writes events, or has their objects converted first.
    fn take(&mut self, events: Vec<Arc<Event<ObjectMeta>>>, out: &mut Vec<u8>) {
        if !self.is_converted() {
            for event in &events {
                self.write_event(out, event);
            }
            return;
        }
        let entries = events
            .iter()
            .flat_map(|event| std::iter::once(&event.entry).chain(&event.previous).map(Arc::clone));
        let (entries, request): (Vec<Arc<Entry>>, _) =
            (entries.collect(), Arc::clone(&self.request));
        let work = async move { conversion::prepare(&request, &entries).await };
        self.converting = Some((events, Box::pin(work)));
    }

    /// Writes the events whose objects are converted, once they are.
    fn poll_converted(&mut self, context: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        let Some((_, work)) = &mut self.converting else { return Poll::Ready(()) };
        let Poll::Ready(outcome) = work.as_mut().poll(context) else {
            // Nothing is told of how far it is: these events are not told yet.
            self.ended = self.is_over(context);
            return Poll::Pending;
        };
        let events = self.converting.take().map(|(events, _)| events).unwrap_or_default();
        match outcome {
            Ok(()) => {
                for event in &events {
                    self.write_event(out, event);
                }
            }
            Err(status) => self.fail(out, &status),
        }
        self.request.findings.forget_converted();
        Poll::Ready(())
    }

    fn fail(&mut self, out: &mut Vec<u8>, status: &Status) {
        write_line(out, "ERROR", status.to_value().to_string().as_bytes());
        self.ended = true;
    }

    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let is_late = self.deadline.as_mut().poll(context).is_ready();
        is_late || self.ending.as_mut().poll(context).is_ready()
    }

    fn write_initial(&mut self, out: &mut Vec<u8>) {
        while out.len() < CHUNK {
            let Some(entry) = self.backlog.next_initial() else { break };
            self.write_object(out, "ADDED", &entry, entry.modified);
        }
        if !self.backlog.has_initial()
            && let Some(revision) = self.marker.take()
        {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            self.write_bookmark(out, revision, Some(annotations));
        }
    }

    fn keep_time(&mut self, context: &mut Context<'_>, out: &mut Vec<u8>) {
        if self.bookmarks && self.next_bookmark.as_mut().poll(context).is_ready() {
            self.write_bookmark(out, self.watch.position(), None);
            let ends = self.deadline.deadline();
            let now = Instant::now();
            let next = now + first_bookmark(ends.saturating_duration_since(now));
            // Asked about again at the next poll, which the text just written brings about.
            self.next_bookmark.as_mut().reset(next);
        }
        self.ended |= self.is_over(context);
    }

    /// What an event means to one who sees the selected objects only.
    fn write_event(&mut self, out: &mut Vec<u8>, event: &Event<ObjectMeta>) {
        let matches = |entry: &Arc<Entry>| self.selection.matches(entry);
        let was = event.previous.as_ref().filter(|entry| matches(entry));
        let is = (event.change != Change::Deleted && matches(&event.entry)).then_some(&event.entry);
        let (kind, entry) = match (was, is) {
            (None, None) => return,
            (None, Some(now)) => ("ADDED", now),
            (Some(_), Some(now)) => ("MODIFIED", now),
            // It left the selection: what watchers knew of it, at the revision of its leaving.
            (Some(last), None) => ("DELETED", last),
        };
        self.write_object(out, kind, &Arc::clone(entry), event.revision);
    }

    fn write_object(
        &mut self,
        out: &mut Vec<u8>,
        kind: &'static str,
        entry: &Entry,
        revision: Revision,
    ) {
        let before = out.len();
        self.write_shown(out, kind, entry, revision);
        self.sent.event(out.len() - before);
    }

    fn write_shown(
        &mut self,
        out: &mut Vec<u8>,
        kind: &'static str,
        entry: &Entry,
        revision: Revision,
    ) {
        if self.request.accept == Accept::default() && self.request.shows_as_stored(entry) {
            out.extend_from_slice(b"{\"type\":\"");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"\",\"object\":");
            write_entry(out, entry, revision.0, self.request.view());
            out.extend_from_slice(b"}\n");
            return;
        }
        if self.request.accept.form == Form::Metadata && !self.is_converted() {
            let key = (revision.0, entry.modified.0, kind);
            let line = self.request.server.lines.of(key, || {
                let mut line = Vec::new();
                let shown = partial(&self.object(entry, revision));
                write_line(&mut line, kind, shown.to_string().as_bytes());
                line
            });
            out.extend_from_slice(&line);
            return;
        }
        let object = self.object(entry, revision);
        let shown = match self.request.accept.form {
            Form::Metadata => partial(&object),
            Form::Table => self.row(object),
            Form::Object | Form::GroupDiscovery => object,
        };
        write_line(out, kind, shown.to_string().as_bytes());
    }

    fn object(&self, entry: &Entry, revision: Revision) -> Value {
        // Each event is one read; a watch may go on for long.
        self.request.findings.renew_growth();
        let mut object = self.request.read(entry);
        crate::encoding::set_revision(&mut object, revision.0);
        object
    }

    /// Whether a webhook has a say in what is shown.
    fn is_converted(&self) -> bool {
        self.request.resource.custom.as_ref().is_some_and(|custom| custom.conversion.is_some())
    }

    /// A table of one row; only the first one of a watch says what its columns are.
    fn row(&mut self, object: Value) -> Value {
        let revision = object["metadata"]["resourceVersion"].clone();
        let table = table::of(&self.request, &[object], !self.columns_sent);
        self.columns_sent = true;
        match table {
            Ok(mut table) => {
                table["metadata"]["resourceVersion"] = revision;
                table
            }
            Err(status) => status.to_value(),
        }
    }

    fn write_bookmark(&mut self, out: &mut Vec<u8>, at: Revision, annotations: Option<Value>) {
        let mut metadata = json!({"resourceVersion": at.0.to_string()});
        if let Some(annotations) = annotations {
            metadata["annotations"] = annotations;
        }
        let resource = &self.request.resource;
        let (kind, api_version) = match self.request.accept.form {
            Form::Object | Form::GroupDiscovery => (resource.kind.clone(), resource.api_version()),
            Form::Metadata | Form::Table => {
                ("PartialObjectMetadata".into(), "meta.k8s.io/v1".into())
            }
        };
        let object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        let shown = match self.request.accept.form {
            Form::Table => table::bookmark(&object),
            _ => object,
        };
        write_line(out, "BOOKMARK", shown.to_string().as_bytes());
    }
}

fn write_line(out: &mut Vec<u8>, kind: &str, object: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
}
