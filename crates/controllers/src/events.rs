//! Kubernetes Events: what people see in `kubectl describe`. The same said again about the same
//! object is counted on the event that is there. Where many wait to be told, those of one object
//! that differ in their message alone are told as one, so that a rollout of thousands is not
//! held up by what is said about it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use convoy_api::Object;
use convoy_plan::step::EventType;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use smol_str::{SmolStr, format_smolstr};
use tokio::sync::mpsc;

use crate::api;
use crate::request::{FIELD_MANAGER, Request};

/// Events that are remembered for counting; the oldest is forgotten first.
const REMEMBERED: usize = 1024;
/// Events on their way; a flood beyond that is dropped, as it says nothing new.
const WAITING: usize = 1024;
/// From how many waiting ones on similar ones are combined.
const CROWD: usize = 16;
/// The pause between two events while there is a crowd: what they are about goes first.
const BREATH: Duration = Duration::from_millis(100);
/// What a combined message begins with, as people know it from other controllers.
const COMBINED: &str = "(combined from similar events): ";
/// Where events about objects of cluster scope are kept.
const CLUSTER_NAMESPACE: &str = "default";

/// Something to be told about an object.
#[derive(Clone, Debug)]
pub struct Note {
    involved: Involved,
    kind: EventType,
    reason: SmolStr,
    message: String,
}

/// What an event says it is about. Thousands may wait, so these are no JSON yet.
#[derive(Clone, Debug)]
struct Involved {
    api_version: SmolStr,
    kind: SmolStr,
    namespace: SmolStr,
    name: SmolStr,
    uid: Option<SmolStr>,
    version: Option<SmolStr>,
}

impl Note {
    pub fn new(object: &Object, kind: EventType, reason: &str, message: &str) -> Self {
        let involved = Involved {
            api_version: object.api_version().into(),
            kind: object.kind().kind.clone(),
            namespace: object.namespace().clone(),
            name: object.name().clone(),
            uid: object.uid().map(SmolStr::new),
            version: object.resource_version().map(SmolStr::new),
        };
        Self { involved, kind, reason: reason.into(), message: message.to_owned() }
    }

    /// Where its event is kept.
    fn namespace(&self) -> &str {
        match self.involved.namespace.as_str() {
            "" => CLUSTER_NAMESPACE,
            namespace => namespace,
        }
    }

    /// What makes two notes the same.
    fn identity(&self) -> SmolStr {
        format_smolstr!("{} {}", self.subject(), self.message)
    }

    /// What makes two notes similar.
    fn subject(&self) -> SmolStr {
        let Self { involved: Involved { kind: of, uid, name, .. }, reason, kind, .. } = self;
        format_smolstr!("{of} {uid:?} {name} {kind:?} {reason}")
    }
}

impl Involved {
    fn json(&self) -> Value {
        let Self { api_version, kind, namespace, name, uid, version } = self;
        let mut involved = json!({"apiVersion": api_version, "kind": kind, "name": name});
        let optional = [
            ("namespace", Some(namespace).filter(|name| !name.is_empty())),
            ("uid", uid.as_ref()),
            ("resourceVersion", version.as_ref()),
        ];
        for (field, value) in optional {
            if let Some(value) = value {
                involved[field] = json!(value);
            }
        }
        involved
    }
}

/// Notes that are still to be told, in the order in which they came.
#[derive(Debug, Default)]
struct Waiting {
    order: VecDeque<SmolStr>,
    notes: BTreeMap<SmolStr, (Note, u64)>,
}

impl Waiting {
    /// False: there are too many, and it is dropped.
    fn add(&mut self, note: Note) -> bool {
        let key = if self.is_crowded() { note.subject() } else { note.identity() };
        if let Some((known, count)) = self.notes.get_mut(&key) {
            *count += 1;
            if known.message != note.message {
                known.message = format!("{COMBINED}{}", note.message);
            }
            return true;
        }
        if self.notes.len() >= WAITING {
            return false;
        }
        self.order.push_back(key.clone());
        self.notes.insert(key, (note, 1));
        true
    }

    fn is_crowded(&self) -> bool {
        self.notes.len() >= CROWD
    }

    fn take_in(&mut self, note: Note) {
        if !self.add(note) {
            tracing::debug!("an event was dropped: too many wait to be told");
        }
    }

    /// The next to be told, and how often it happened.
    fn next(&mut self) -> Option<(Note, u64)> {
        self.notes.remove(&self.order.pop_front()?)
    }
}

/// Remembers which events were made.
#[derive(Debug, Default)]
pub struct Ledger {
    known: BTreeMap<SmolStr, Known>,
    order: VecDeque<SmolStr>,
}

#[derive(Clone, Debug)]
struct Known {
    path: String,
    count: u64,
}

impl Ledger {
    /// The write that tells `note`, which happened `times`.
    pub fn request(&mut self, note: &Note, times: u64, now: Timestamp) -> Request {
        let identity = note.identity();
        let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        if let Some(known) = self.known.get_mut(&identity) {
            known.count += times;
            return Request::merge(
                &known.path,
                json!({"count": known.count, "lastTimestamp": time}),
            );
        }
        let name = format!("{}.{:x}", note.involved.name, now.as_nanosecond());
        let collection = format!("/api/v1/namespaces/{}/events", note.namespace());
        let kind = match note.kind {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        let body = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": note.namespace()},
            "involvedObject": note.involved.json(),
            "type": kind, "reason": note.reason, "message": note.message,
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
            "firstTimestamp": time, "lastTimestamp": time, "count": times,
        });
        self.remember(identity, Known { path: format!("{collection}/{name}"), count: times });
        Request::create(&collection, body)
    }

    /// The event of a note is not there any more: servers let them expire.
    pub fn forget(&mut self, note: &Note) {
        self.known.remove(&note.identity());
    }

    fn remember(&mut self, identity: SmolStr, known: Known) {
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(identity.clone());
        self.known.insert(identity, known);
    }
}

/// Where notes go; a task writes them, so that nobody waits for it.
#[derive(Clone, Debug)]
pub struct Recorder(mpsc::Sender<Note>);

impl Recorder {
    /// The recorder, and the task that ends when nobody records any more.
    pub fn start(client: Client) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, mut notes) = mpsc::channel::<Note>(WAITING);
        let task = tokio::spawn(async move {
            let (mut ledger, mut waiting) = (Ledger::default(), Waiting::default());
            while let Some(note) = notes.recv().await {
                waiting.take_in(note);
                loop {
                    while let Ok(note) = notes.try_recv() {
                        waiting.take_in(note);
                    }
                    let Some((note, times)) = waiting.next() else { break };
                    write(&client, &mut ledger, &note, times).await;
                    if waiting.is_crowded() && !notes.is_closed() {
                        tokio::time::sleep(BREATH).await;
                    }
                }
            }
        });
        (Self(sender), task)
    }

    pub fn record(&self, note: Note) {
        if self.0.try_send(note).is_err() {
            tracing::debug!("an event was dropped: too many are on their way");
        }
    }
}

async fn write(client: &Client, ledger: &mut Ledger, note: &Note, times: u64) {
    for _ in 0..2 {
        match api::send(client, ledger.request(note, times, Timestamp::now())).await {
            Ok(answer) if answer.code == 404 || answer.code == 409 => ledger.forget(note),
            Ok(answer) if !answer.is_success() => {
                let message = answer.message();
                tracing::debug!(message, "an event was not taken");
                return ledger.forget(note);
            }
            Ok(_) => return,
            Err(error) => {
                let why = api::chain(&error);
                tracing::debug!(why, "an event was lost");
                return ledger.forget(note);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{NOW, apps};
    use http::Method;

    use super::*;

    fn note(message: &str) -> Note {
        Note::new(&apps::deployment(1, "web:v1").build(), EventType::Normal, "Scaled", message)
    }

    #[test]
    fn repeats_are_counted_on_the_event_that_is_there() {
        let (mut ledger, now) = (Ledger::default(), NOW.parse().unwrap());
        let made = ledger.request(&note("up"), 1, now);
        assert_eq!(made.method, Method::POST);
        assert!(made.path.starts_with("/api/v1/namespaces/shop/events?"), "{}", made.path);
        assert_eq!(made.body["involvedObject"]["name"], "web");
        assert_eq!(made.body["count"], 1);
        let again = ledger.request(&note("up"), 1, now);
        assert_eq!((again.method, &again.body["count"]), (Method::PATCH, &json!(2)));
        assert_eq!(ledger.request(&note("down"), 1, now).method, Method::POST);
        ledger.forget(&note("up"));
        assert_eq!(ledger.request(&note("up"), 1, now).method, Method::POST);
    }

    #[test]
    fn similar_notes_are_combined_only_in_a_crowd() {
        let told = |waiting: &mut Waiting| -> Vec<(String, u64)> {
            let notes = std::iter::from_fn(|| waiting.next());
            notes.map(|(note, times)| (note.message, times)).collect()
        };
        let mut waiting = Waiting::default();
        for message in ["pod a", "pod b", "pod a"] {
            assert!(waiting.add(note(message)));
        }
        assert_eq!(told(&mut waiting), [("pod a".to_owned(), 2), ("pod b".to_owned(), 1)]);

        for number in 0..CROWD + 3 {
            assert!(waiting.add(note(&format!("pod {number}"))));
        }
        let told = told(&mut waiting);
        assert_eq!(told.len(), CROWD + 1);
        let last = format!("(combined from similar events): pod {}", CROWD + 2);
        assert_eq!(told.last(), Some(&(last, 3)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut ledger, now) = (Ledger::default(), NOW.parse().unwrap());
        for number in 0..REMEMBERED + 10 {
            ledger.request(&note(&number.to_string()), 1, now);
        }
        assert_eq!(ledger.known.len(), REMEMBERED);
        assert_eq!(ledger.request(&note("0"), 1, now).method, Method::POST);
    }
}
