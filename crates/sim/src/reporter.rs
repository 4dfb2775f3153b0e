//! The events that a scheduler and kubelets write about pods: what `kubectl describe pod` shows.
//!
//! They are told from what pods say of themselves, so that nobody else has to keep account of them.
//! The same said again counts up, as it does with Kubernetes.

use std::collections::{BTreeMap, VecDeque};

use convoy_api::object::member::{field, list, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use smol_str::{SmolStr, format_smolstr};

use crate::component::{Component, Key, Kind, WriteRequest, WriteResponse, WriteVerb, hash_of};
use crate::kubelet::{REJECTED, stamp};
use crate::shared_object::SharedObject;

/// Events that wait to be written; more are dropped, as by every recorder.
const QUEUED_MAX: usize = 10_000;

/// Events are written in bursts of so many, with a pause after each: whatever moves pods and keeps
/// nodes alive goes before.
const BURST: usize = 50;
const PAUSE: SignedDuration = SignedDuration::from_millis(20);

/// Writes events about pods.
#[derive(Debug, Default)]
pub struct Reporter {
    pods: BTreeMap<Key, Told>,
    queue: VecDeque<WriteRequest>,
    /// When the next burst may be written.
    rests_until: Option<Timestamp>,
}

/// What was last seen of a pod, and how often what was said.
#[derive(Debug, Default)]
struct Told {
    node: SmolStr,
    unschedulable: String,
    /// The message of its refusal by the kubelet.
    refusal: String,
    is_deleting: bool,
    containers: BTreeMap<SmolStr, Seen>,
    counts: BTreeMap<SmolStr, u64>,
}

/// The state of a container, as far as an event follows from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// When it started, while it runs.
    running_since: SmolStr,
    /// Why it waits.
    waiting: SmolStr,
}

/// Something to say.
struct Said {
    is_warning: bool,
    reason: SmolStr,
    message: String,
    /// The path of the container in the pod.
    about: String,
}

impl Said {
    fn normal(reason: &str, message: String) -> Self {
        Self { is_warning: false, reason: reason.into(), message, about: String::new() }
    }

    fn warning(reason: &str, message: String) -> Self {
        Self { is_warning: true, ..Self::normal(reason, message) }
    }

    fn of(self, about: &str) -> Self {
        Self { about: about.to_owned(), ..self }
    }

    fn is_of_scheduler(&self) -> bool {
        matches!(self.reason.as_str(), "Scheduled" | "FailedScheduling")
    }
}

impl Reporter {
    fn pod_changed(&mut self, key: &Key, pod: &Value, now: Timestamp) {
        let Some(told) = self.pods.get_mut(key) else {
            // What happened before it was first seen is told already, or was before our time.
            let mut told = Told::default();
            let is_old = !text(field(pod, "status"), "startTime").is_empty();
            let said = told.catch_up(key, pod);
            if !is_old {
                self.say(key, pod, &mut told, said, now);
            }
            self.pods.insert(key.clone(), told);
            return;
        };
        let said = told.catch_up(key, pod);
        if !said.is_empty() {
            let mut told = std::mem::take(told);
            self.say(key, pod, &mut told, said, now);
            self.pods.insert(key.clone(), told);
        }
    }

    fn say(&mut self, key: &Key, pod: &Value, told: &mut Told, said: Vec<Said>, now: Timestamp) {
        for said in said {
            if self.queue.len() < QUEUED_MAX {
                self.queue.push_back(told.request(key, pod, &said, now));
            }
        }
    }
}

impl Told {
    /// What there is to say about a pod since it was last seen.
    fn catch_up(&mut self, key: &Key, pod: &Value) -> Vec<Said> {
        let (metadata, spec) = (field(pod, "metadata"), field(pod, "spec"));
        let mut said = Vec::new();
        self.schedule(key, pod, &mut said);
        said.extend(self.refusal(pod));
        let (namespace, name) = (&key.namespace, &key.name);
        let full_name = format!("{name}_{namespace}({})", text(metadata, "uid"));
        let kinds =
            [("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")];
        for (kind, statuses) in kinds {
            for status in list(field(pod, "status"), statuses) {
                let container = text(status, "name");
                let about = format!("spec.{kind}{{{container}}}");
                let seen = Seen::of(status);
                let before = self.containers.insert(container.into(), seen.clone());
                let before = before.unwrap_or_default();
                let image = image(spec, kind, container);
                let new = seen.since(&before, container, image, status, &full_name);
                said.extend(new.into_iter().map(|said| said.of(&about)));
            }
        }
        let is_deleting = !text(metadata, "deletionTimestamp").is_empty();
        if is_deleting && !self.is_deleting {
            let running = list(field(pod, "status"), "containerStatuses").iter();
            for status in running.filter(|status| field(status, "state").get("running").is_some()) {
                let container = text(status, "name");
                let stopping = Said::normal("Killing", format!("Stopping container {container}"));
                said.push(stopping.of(&format!("spec.containers{{{container}}}")));
            }
        }
        self.is_deleting = is_deleting;
        said
    }

    /// The event of a kubelet that refuses a pod.
    fn refusal(&mut self, pod: &Value) -> Option<Said> {
        let status = field(pod, "status");
        let message = text(status, "message").strip_prefix(REJECTED)?;
        let is_new = message != self.refusal;
        message.clone_into(&mut self.refusal);
        is_new.then(|| Said::warning(text(status, "reason"), message.to_owned()))
    }

    fn schedule(&mut self, key: &Key, pod: &Value, said: &mut Vec<Said>) {
        let node = text(field(pod, "spec"), "nodeName");
        let conditions = list(field(pod, "status"), "conditions");
        let unschedulable = conditions.iter().find(|condition| {
            text(condition, "type") == "PodScheduled"
                && text(condition, "reason") == "Unschedulable"
        });
        let message = unschedulable.map_or("", |condition| text(condition, "message"));
        if !message.is_empty() && message != self.unschedulable {
            said.push(Said::warning("FailedScheduling", message.to_owned()));
        }
        message.clone_into(&mut self.unschedulable);
        // A pod that is made for its node was never scheduled.
        let is_bound = conditions.iter().any(|condition| text(condition, "type") == "PodScheduled");
        if !node.is_empty() && self.node.is_empty() && is_bound {
            let Key { namespace, name, .. } = key;
            let message = format!("Successfully assigned {namespace}/{name} to {node}");
            said.push(Said::normal("Scheduled", message));
        }
        self.node = node.into();
    }

    /// The event: a new one, or one more of those that say the same.
    fn request(&mut self, key: &Key, pod: &Value, said: &Said, now: Timestamp) -> WriteRequest {
        let uid = text(field(pod, "metadata"), "uid");
        let identity = hash_of(&(uid, said.reason.as_str(), &said.message, &said.about));
        let name = format_smolstr!("{}.{identity:016x}", key.name);
        let count = self.counts.entry(name.clone()).or_default();
        *count += 1;
        let event = Key::event(&key.namespace, &name);
        let write = if *count > 1 {
            WriteVerb::Merge(json!({"count": count, "lastTimestamp": stamp(now)}))
        } else {
            WriteVerb::Create(said.event(key, uid, &self.node, &name, now))
        };
        WriteRequest { is_background: true, ..WriteRequest::new(event, write) }
    }
}

impl Said {
    fn event(&self, key: &Key, uid: &str, node: &str, name: &str, now: Timestamp) -> Value {
        let (component, instance) = if self.is_of_scheduler() {
            ("default-scheduler", "default-scheduler")
        } else {
            ("kubelet", node)
        };
        let mut object = json!({"apiVersion": "v1", "kind": "Pod", "namespace": key.namespace,
            "name": key.name, "uid": uid});
        if !self.about.is_empty() {
            object["fieldPath"] = json!(self.about);
        }
        let mut source = json!({"component": component});
        if !self.is_of_scheduler() {
            source["host"] = json!(node);
        }
        json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": key.namespace},
            "involvedObject": object, "reason": self.reason, "message": self.message,
            "type": if self.is_warning { "Warning" } else { "Normal" },
            "source": source, "reportingComponent": component, "reportingInstance": instance,
            "firstTimestamp": stamp(now), "lastTimestamp": stamp(now), "count": 1})
    }
}

impl Seen {
    fn of(status: &Value) -> Self {
        let state = field(status, "state");
        Self {
            running_since: text(field(state, "running"), "startedAt").into(),
            waiting: text(field(state, "waiting"), "reason").into(),
        }
    }

    /// What follows from this state after another.
    fn since(
        &self,
        before: &Self,
        container: &str,
        image: &str,
        status: &Value,
        pod: &str,
    ) -> Vec<Said> {
        let mut said = Vec::new();
        if !self.running_since.is_empty() && self.running_since != before.running_since {
            let is_first = field(status, "restartCount").as_u64().unwrap_or(0) == 0;
            let pulled = if is_first {
                format!("Successfully pulled image {image:?}")
            } else {
                format!("Container image {image:?} already present on machine")
            };
            said.push(Said::normal("Pulled", pulled));
            said.push(Said::normal("Created", "Container created".to_owned()));
            said.push(Said::normal("Started", "Container started".to_owned()));
        }
        if self.waiting == before.waiting {
            return said;
        }
        let message = text(field(field(status, "state"), "waiting"), "message");
        match self.waiting.as_str() {
            "ErrImagePull" => {
                let failed = format!("Failed to pull image {image:?}: {message}");
                said.push(Said::warning("Failed", failed));
                said.push(Said::warning("Failed", "Error: ErrImagePull".to_owned()));
            }
            "ImagePullBackOff" => {
                said.push(Said::normal("BackOff", format!("Back-off pulling image {image:?}")));
                said.push(Said::warning("Failed", "Error: ImagePullBackOff".to_owned()));
            }
            "CrashLoopBackOff" => {
                let message =
                    format!("Back-off restarting failed container {container} in pod {pod}");
                said.push(Said::warning("BackOff", message));
            }
            _ => {}
        }
        said
    }
}

/// The image that a pod asks for.
fn image<'p>(spec: &'p Value, kind: &str, container: &str) -> &'p str {
    let wanted = list(spec, kind).iter().find(|entry| text(entry, "name") == container);
    wanted.map_or("", |entry| text(entry, "image"))
}

impl Component for Reporter {
    fn changed(&mut self, key: &Key, object: Option<&SharedObject>, now: Timestamp) {
        match (key.kind, object) {
            (Kind::Pod, Some(pod)) => self.pod_changed(key, pod, now),
            (Kind::Pod, None) => _ = self.pods.remove(key),
            _ => {}
        }
    }

    /// An event is not worth a second attempt.
    fn handle_response(&mut self, _: &WriteRequest, _: &WriteResponse, _: Timestamp) {}

    fn due(&mut self, now: Timestamp) -> Vec<WriteRequest> {
        if self.queue.is_empty() || self.rests_until.is_some_and(|until| now < until) {
            return Vec::new();
        }
        self.rests_until = now.checked_add(PAUSE).ok();
        let burst = BURST.min(self.queue.len());
        self.queue.drain(..burst).collect()
    }

    fn next(&self) -> Option<Timestamp> {
        let soonest = self.rests_until.unwrap_or(Timestamp::MIN);
        (!self.queue.is_empty()).then_some(soonest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(spec: &Value, status: &Value) -> SharedObject {
        let mut spec = spec.clone();
        spec["containers"] = json!([{"name": "web", "image": "example/web:1"}]);
        json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": spec,
            "status": status})
        .into()
    }

    fn state(state: &Value, restarts: u64) -> Value {
        json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "PodScheduled",
            "status": "True"}], "containerStatuses":
            [{"name": "web", "restartCount": restarts, "state": state}]})
    }

    /// Type, reason and message of what is written, `2x` before one that counts up.
    fn written(reporter: &mut Reporter, pod: &SharedObject) -> Vec<String> {
        let now = Timestamp::UNIX_EPOCH;
        reporter.changed(&Key::pod("shop", "web"), Some(pod), now);
        reporter.rests_until = None;
        let line = |request: WriteRequest| match request.write {
            WriteVerb::Create(event) => {
                let part = |name: &str| event[name].as_str().unwrap().to_owned();
                format!("{} {} {}", part("type"), part("reason"), part("message"))
            }
            WriteVerb::Merge(patch) => format!("{}x", patch["count"]),
            other => panic!("{other:?}"),
        };
        reporter.due(now).into_iter().map(line).collect()
    }

    #[test]
    fn a_pod_that_fits_nowhere_then_runs_then_ends() {
        let mut reporter = Reporter::default();
        let waits = json!({"conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Too many pods."}]});
        let waiting = pod(&json!({}), &waits);
        let told = written(&mut reporter, &waiting);
        assert_eq!(
            told,
            ["Warning FailedScheduling 0/1 nodes are available: 1 Too many pods."],
            "with the counts"
        );
        assert!(written(&mut reporter, &waiting).is_empty(), "nothing new");
        let bound = json!({"nodeName": "node-0"});
        let running = state(&json!({"running": {"startedAt": "2026-01-01T00:00:05Z"}}), 0);
        assert_eq!(
            written(&mut reporter, &pod(&bound, &running)),
            [
                "Normal Scheduled Successfully assigned shop/web to node-0",
                "Normal Pulled Successfully pulled image \"example/web:1\"",
                "Normal Created Container created",
                "Normal Started Container started"
            ]
        );
        let mut ending = Value::clone(&pod(&bound, &running));
        ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
        let ending = ending.into();
        assert_eq!(written(&mut reporter, &ending), ["Normal Killing Stopping container web"]);
    }

    #[test]
    fn a_crash_counts_up_and_a_missing_image_is_named() {
        let mut reporter = Reporter::default();
        let bound = json!({"nodeName": "node-0"});
        let first = pod(&bound, &state(&json!({"running": {"startedAt": "a"}}), 0));
        assert!(written(&mut reporter, &first).is_empty(), "it ran before it was seen");
        let crashed = pod(&bound, &state(&json!({"waiting": {"reason": "CrashLoopBackOff"}}), 1));
        let backs_off =
            "Warning BackOff Back-off restarting failed container web in pod web_shop(u)";
        assert_eq!(written(&mut reporter, &crashed), [backs_off]);
        let again = pod(&bound, &state(&json!({"running": {"startedAt": "b"}}), 2));
        let present = "Normal Pulled Container image \"example/web:1\" already present on machine";
        assert_eq!(written(&mut reporter, &again)[0], present);
        assert_eq!(written(&mut reporter, &crashed), ["2x"]);
        let pull = json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}});
        assert_eq!(
            written(&mut reporter, &pod(&bound, &state(&pull, 2))),
            [
                "Warning Failed Failed to pull image \"example/web:1\": not found",
                "Warning Failed Error: ErrImagePull"
            ]
        );
    }
}
