//! Kubernetes Events, which people see in `kubectl describe`. A repeated event increases the count
//! of the stored one. When many events wait, those of one object that differ only in their
//! message are aggregated, so that a rollout of thousands of members is not slowed down by its
//! events.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use convoy_api::Object;
use convoy_api::clock::Clock;
use convoy_plan::step::EventType;
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::{SmolStr, format_smolstr};
use tokio::sync::mpsc;

use crate::request::{FIELD_MANAGER, Request};
use crate::transport::{self, Writer};

/// Stored events that are remembered for counting; the oldest is forgotten first.
const REMEMBERED: usize = 1024;
/// The most events that wait to be written; more are dropped.
const QUEUED_MAX: usize = 1024;
/// The number of queue events from which similar ones are aggregated.
const AGGREGATE_FROM: usize = 16;
/// The delay between two writes of events while many wait: other writes go first.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
/// The prefix of an aggregated message, as client-go writes it.
const AGGREGATED: &str = "(combined from similar events): ";
/// The namespace of events about cluster-scoped objects.
const CLUSTER_NAMESPACE: &str = "default";

/// An event about an object, to be recorded.
#[derive(Clone, Debug)]
pub struct ObjectEvent {
    involved: InvolvedObject,
    kind: EventType,
    reason: SmolStr,
    message: String,
}

/// The object that an event is about. Thousands may wait, so this is not JSON yet.
#[derive(Clone, Debug)]
struct InvolvedObject {
    cluster: SmolStr,
    api_version: SmolStr,
    kind: SmolStr,
    namespace: SmolStr,
    name: SmolStr,
    uid: Option<SmolStr>,
    version: Option<SmolStr>,
}

impl ObjectEvent {
    pub fn new(object: &Object, kind: EventType, reason: &str, message: &str) -> Self {
        let involved = InvolvedObject {
            cluster: object.key().cluster.clone(),
            api_version: object.api_version().into(),
            kind: object.kind().kind.clone(),
            namespace: object.namespace().clone(),
            name: object.name().clone(),
            uid: object.uid().map(SmolStr::new),
            version: object.resource_version().map(SmolStr::new),
        };
        Self { involved, kind, reason: reason.into(), message: message.to_owned() }
    }

    /// The cluster of the object, where the event is written.
    pub(crate) fn cluster(&self) -> &str {
        &self.involved.cluster
    }

    /// The namespace of the event.
    fn namespace(&self) -> &str {
        match self.involved.namespace.as_str() {
            "" => CLUSTER_NAMESPACE,
            namespace => namespace,
        }
    }

    /// Two events with the same identity are counted as one.
    fn identity(&self) -> SmolStr {
        format_smolstr!("{} {}", self.subject(), self.message)
    }

    /// Two events with the same subject differ only in their message.
    fn subject(&self) -> SmolStr {
        let Self { involved: InvolvedObject { kind: of, uid, name, .. }, reason, kind, .. } = self;
        format_smolstr!("{of} {uid:?} {name} {kind:?} {reason}")
    }
}

impl InvolvedObject {
    fn json(&self) -> Value {
        let Self { api_version, kind, namespace, name, uid, version, .. } = self;
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

/// Events that wait to be written, in order of arrival.
#[derive(Debug, Default)]
struct EventQueue {
    order: VecDeque<SmolStr>,
    events: BTreeMap<SmolStr, (ObjectEvent, u64)>,
}

impl EventQueue {
    /// Returns false if the queue is full.
    fn add(&mut self, event: ObjectEvent) -> bool {
        let key = if self.is_aggregating() { event.subject() } else { event.identity() };
        if let Some((queued, count)) = self.events.get_mut(&key) {
            *count += 1;
            if queued.message != event.message {
                queued.message = format!("{AGGREGATED}{}", event.message);
            }
            return true;
        }
        if self.events.len() >= QUEUED_MAX {
            return false;
        }
        self.order.push_back(key.clone());
        self.events.insert(key, (event, 1));
        true
    }

    fn is_aggregating(&self) -> bool {
        self.events.len() >= AGGREGATE_FROM
    }

    fn add_or_drop(&mut self, event: ObjectEvent) {
        if !self.add(event) {
            tracing::debug!("dropped an event: too many wait to be written");
        }
    }

    /// The next event to write, and how often it happened.
    fn next(&mut self) -> Option<(ObjectEvent, u64)> {
        self.events.remove(&self.order.pop_front()?)
    }
}

/// Correlates events with those already stored, as client-go's `EventCorrelator` does.
#[derive(Debug, Default)]
pub struct Correlator {
    stored: BTreeMap<SmolStr, StoredEvent>,
    order: VecDeque<SmolStr>,
}

#[derive(Clone, Debug)]
struct StoredEvent {
    path: String,
    count: u64,
}

impl Correlator {
    /// The request that stores `event`, which happened `times`.
    pub fn request(&mut self, event: &ObjectEvent, times: u64, now: Timestamp) -> Request {
        let identity = event.identity();
        let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        if let Some(stored) = self.stored.get_mut(&identity) {
            stored.count += times;
            return Request::merge(
                &stored.path,
                json!({"count": stored.count, "lastTimestamp": time}),
            );
        }
        let name = format!("{}.{:x}", event.involved.name, now.as_nanosecond());
        let collection = format!("/api/v1/namespaces/{}/events", event.namespace());
        let kind = match event.kind {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        let body = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": event.namespace()},
            "involvedObject": event.involved.json(),
            "type": kind, "reason": event.reason, "message": event.message,
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
            "firstTimestamp": time, "lastTimestamp": time, "count": times,
        });
        self.remember(identity, StoredEvent { path: format!("{collection}/{name}"), count: times });
        Request::create(&collection, body)
    }

    /// The stored event is gone: servers let them expire.
    pub fn forget(&mut self, event: &ObjectEvent) {
        self.stored.remove(&event.identity());
    }

    fn remember(&mut self, identity: SmolStr, event: StoredEvent) {
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.stored.remove(&oldest);
        }
        self.order.push_back(identity.clone());
        self.stored.insert(identity, event);
    }
}

/// Records events; a task writes them, so that callers never wait.
#[derive(Clone, Debug)]
pub struct Recorder(mpsc::Sender<ObjectEvent>);

impl Recorder {
    /// The recorder, and its task, which ends once every clone of the recorder is dropped.
    pub(crate) fn new(
        writer: Writer,
        clock: Clock,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, mut events) = mpsc::channel::<ObjectEvent>(QUEUED_MAX);
        let task = async move {
            let (mut correlator, mut queue) = (Correlator::default(), EventQueue::default());
            while let Some(event) = events.recv().await {
                queue.add_or_drop(event);
                loop {
                    while let Ok(event) = events.try_recv() {
                        queue.add_or_drop(event);
                    }
                    let Some((event, times)) = queue.next() else { break };
                    write(&writer, &mut correlator, clock, &event, times).await;
                    if queue.is_aggregating() && !events.is_closed() {
                        tokio::time::sleep(WRITE_INTERVAL).await;
                    }
                }
            }
        };
        (Self(sender), task)
    }

    pub fn record(&self, event: ObjectEvent) {
        if self.0.try_send(event).is_err() {
            tracing::debug!("dropped an event: too many wait to be written");
        }
    }
}

async fn write(
    writer: &Writer,
    correlator: &mut Correlator,
    clock: Clock,
    event: &ObjectEvent,
    times: u64,
) {
    for _ in 0..2 {
        let now = clock.at(Timestamp::now());
        match writer.write(correlator.request(event, times, now)).await {
            Ok(response) if response.code == 404 || response.code == 409 => {
                correlator.forget(event);
            }
            Ok(response) if !response.is_success() => {
                let message = response.message();
                tracing::debug!(message, "the server rejected an event");
                return correlator.forget(event);
            }
            Ok(_) => return,
            Err(error) => {
                let why = transport::chain(&error);
                tracing::debug!(why, "could not write an event");
                return correlator.forget(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{NOW, apps};
    use http::Method;

    use super::*;

    fn event(message: &str) -> ObjectEvent {
        ObjectEvent::new(
            &apps::deployment(1, "web:v1").build(),
            EventType::Normal,
            "Scaled",
            message,
        )
    }

    #[test]
    fn repeated_events_increase_the_count_of_the_stored_one() {
        let (mut correlator, now) = (Correlator::default(), NOW.parse().unwrap());
        let made = correlator.request(&event("up"), 1, now);
        assert_eq!(made.method, Method::POST);
        assert!(made.path.starts_with("/api/v1/namespaces/shop/events?"), "{}", made.path);
        assert_eq!(made.body["involvedObject"]["name"], "web");
        assert_eq!(made.body["count"], 1);
        let again = correlator.request(&event("up"), 1, now);
        assert_eq!((again.method, &again.body["count"]), (Method::PATCH, &json!(2)));
        assert_eq!(correlator.request(&event("down"), 1, now).method, Method::POST);
        correlator.forget(&event("up"));
        assert_eq!(correlator.request(&event("up"), 1, now).method, Method::POST);
    }

    #[test]
    fn similar_events_are_aggregated_only_when_many_wait() {
        let written = |queue: &mut EventQueue| -> Vec<(String, u64)> {
            let events = std::iter::from_fn(|| queue.next());
            events.map(|(event, times)| (event.message, times)).collect()
        };
        let mut queue = EventQueue::default();
        for message in ["pod a", "pod b", "pod a"] {
            assert!(queue.add(event(message)));
        }
        assert_eq!(written(&mut queue), [("pod a".to_owned(), 2), ("pod b".to_owned(), 1)]);

        for number in 0..AGGREGATE_FROM + 3 {
            assert!(queue.add(event(&format!("pod {number}"))));
        }
        let written = written(&mut queue);
        assert_eq!(written.len(), AGGREGATE_FROM + 1);
        let last = format!("(combined from similar events): pod {}", AGGREGATE_FROM + 2);
        assert_eq!(written.last(), Some(&(last, 3)));
    }

    #[test]
    fn the_number_of_remembered_events_is_bounded() {
        let (mut correlator, now) = (Correlator::default(), NOW.parse().unwrap());
        for number in 0..REMEMBERED + 10 {
            correlator.request(&event(&number.to_string()), 1, now);
        }
        assert_eq!(correlator.stored.len(), REMEMBERED);
        assert_eq!(correlator.request(&event("0"), 1, now).method, Method::POST);
    }
}
