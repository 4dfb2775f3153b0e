//! The Job: pods that run to their end, as many at a time and as often as it says.
//!
//! Pods carry a finalizer until they are counted. A pod that is over goes on record as not yet
//! counted, then loses the finalizer, then is counted: whatever is cut short in between, none is
//! forgotten and none is counted twice.

mod ending;
mod indexes;
mod tally;

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::object::member::{field, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use self::ending::Ending;
use self::indexes::Indexes;
use self::tally::{FINALIZER, Tally};
use super::kept::{Health, Kept, health, is_over, note, number, selector, template};
use super::outcome::{Outcome, invalid};
use crate::condition::{self, Condition, instant};
use crate::hold::HoldReason;
use crate::merge_patch::nested;
use crate::pods::{Names, pod};
use crate::snapshot::Snapshot;
use crate::step::{Action, EventType, MemberState, Propagation, Step, Verb, Why};

/// The most pods made in one step.
const BURST: usize = 500;

/// How long the next pod waits after the first failure; twice as long after each further one.
const BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const BACKOFF_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Where pods of an indexed Job find their number.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub(super) fn step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let owner = snapshot.rollout();
    let Some(selector) = selector(owner) else { return invalid(owner, "spec.selector") };
    let job = Job::new(owner, Kept::new(snapshot, &selector), now);
    let mut outcome = Outcome::new(owner);
    let decision = json!({"active": job.active.len(), "succeeded": job.tally.succeeded,
        "failed": job.tally.failed});
    if let Some((_, since)) = ending::finished(owner) {
        job.let_go(&mut outcome);
        job.expire(since, &mut outcome);
        return outcome.step(Map::new(), decision);
    }
    let mut status = job.counted();
    if !owner.is_deleting() {
        outcome.actions.extend(job.kept.claims(owner));
    }
    job.let_go(&mut outcome);
    if !owner.is_deleting() {
        job.go_on(snapshot, &mut status, &mut outcome);
    }
    outcome.step(status, decision)
}

/// A Job and its pods.
#[derive(Debug)]
struct Job<'o> {
    owner: &'o Object,
    now: Timestamp,
    kept: Kept<'o>,
    /// Neither over nor leaving.
    active: Vec<(&'o Object, Health)>,
    tally: Tally<'o>,
    parallelism: usize,
    /// None: one success is enough, and then no new pod is made.
    completions: Option<usize>,
    is_indexed: bool,
    is_suspended: bool,
}

impl<'o> Job<'o> {
    fn new(owner: &'o Object, kept: Kept<'o>, now: Timestamp) -> Self {
        let spec = owner.spec();
        let whole = |name: &str| number(spec, name).and_then(|count| usize::try_from(count).ok());
        let standing = kept.pods.iter().map(|pod| (*pod, health(pod, 0, now)));
        let active =
            standing.filter(|(_, health)| !matches!(health, Health::Over | Health::Leaving));
        Self {
            owner,
            now,
            active: active.collect(),
            tally: Tally::new(owner, &kept.pods),
            parallelism: whole("parallelism").unwrap_or(1),
            completions: whole("completions"),
            is_indexed: text(spec, "completionMode") == "Indexed",
            is_suspended: field(spec, "suspend") == &json!(true),
            kept,
        }
    }

    /// What the tally makes of the status.
    fn counted(&self) -> Map<String, Value> {
        let mut status = self.tally.status();
        let ready = self.active.iter().filter(|(_, health)| health.is_ready()).count();
        let leaving = self.kept.pods.iter().filter(|pod| pod.is_deleting()).count();
        status.insert("active".to_owned(), json!(self.active.len()));
        status.insert("ready".to_owned(), json!(ready));
        status.insert("terminating".to_owned(), json!(leaving));
        status
    }

    /// Takes the finalizer off pods that are on record, or that nobody will count.
    fn let_go(&self, outcome: &mut Outcome<'_>) {
        let over = ending::finished(self.owner).is_some() || self.owner.is_deleting();
        for pod in &self.kept.pods {
            if !pod.has_finalizer(FINALIZER) || !over && !self.tally.is_on_record(pod) {
                continue;
            }
            let finalizers = field(pod.metadata(), "finalizers").as_array().into_iter().flatten();
            let rest: Vec<Value> = finalizers.filter(|name| *name != FINALIZER).cloned().collect();
            let patch = nested(&["metadata", "finalizers"], Value::Array(rest));
            let why = Why::new("Counted", "how it ended is on record");
            outcome.actions.push(Action::patch(Verb::Release, pod, patch, why).concurrently());
        }
    }

    /// Deletes a finished Job once it has been kept for long enough.
    fn expire(&self, since: Option<Timestamp>, outcome: &mut Outcome<'_>) {
        outcome.group.count(MemberState::Done);
        let Some(kept_secs) = number(self.owner.spec(), "ttlSecondsAfterFinished") else { return };
        let until = since.and_then(|at| at.checked_add(SignedDuration::from_secs(kept_secs)).ok());
        match until {
            Some(until) if until <= self.now && !self.owner.is_deleting() => {
                let why = Why::new("TimeToLive", format!("it was kept for {kept_secs} s"));
                let delete = Action::delete(Verb::Delete, self.owner, Propagation::Background, why);
                outcome.actions.push(delete);
            }
            until => outcome.wake_at = until,
        }
    }

    fn go_on(
        &self,
        snapshot: &Snapshot<'_>,
        status: &mut Map<String, Value>,
        outcome: &mut Outcome<'_>,
    ) {
        let mut conditions: Vec<Value> = self.conditions();
        self.suspend(status, &mut conditions, outcome);
        if let Some(ending) = Ending::of(self) {
            self.remove(self.active.len(), &ending.why(), outcome);
            ending.declare(self, status, &mut conditions, outcome);
        } else if self.is_suspended {
            self.remove(self.active.len(), "the Job is suspended", outcome);
        } else {
            self.manage(snapshot, status, outcome);
        }
        if conditions != self.conditions() {
            status.insert("conditions".to_owned(), Value::Array(conditions));
        }
    }

    fn conditions(&self) -> Vec<Value> {
        field(self.owner.status(), "conditions").as_array().cloned().unwrap_or_default()
    }

    /// Records that the Job stands still or goes on, and when it began.
    fn suspend(
        &self,
        status: &mut Map<String, Value>,
        conditions: &mut Vec<Value>,
        outcome: &mut Outcome<'_>,
    ) {
        let was = self.owner.condition_status("Suspended") == Some("True");
        let say = |word: &'static str, reason: &'static str, message: &'static str| Condition {
            kind: "Suspended".into(),
            status: word,
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
        };
        if self.is_suspended {
            status.insert("startTime".to_owned(), Value::Null);
            outcome.hold(HoldReason::Paused);
            if !was {
                condition::set(conditions, &say("True", "JobSuspended", "Job suspended"), self.now);
                outcome.tell(EventType::Normal, "Suspended", "Job suspended".to_owned());
            }
            return;
        }
        if was {
            condition::set(conditions, &say("False", "JobResumed", "Job resumed"), self.now);
            outcome.tell(EventType::Normal, "Resumed", "Job resumed".to_owned());
        }
        if self.owner.status_member("startTime").is_none_or(Value::is_null) {
            status.insert("startTime".to_owned(), instant(self.now));
        }
    }

    fn remove(&self, count: usize, message: &str, outcome: &mut Outcome<'_>) {
        // Those that have come least far go first.
        let mut going: Vec<&(&Object, Health)> = self.active.iter().collect();
        going.sort_by_key(|(pod, health)| {
            (health.is_ready(), std::cmp::Reverse(pod.created_at()), pod.name())
        });
        for (pod, _) in going.into_iter().take(count) {
            outcome.delete(pod, Why::new("NotWanted", message));
            outcome.group.count(MemberState::Gone);
        }
    }

    /// Makes what is missing, or removes what is too many.
    fn manage(
        &self,
        snapshot: &Snapshot<'_>,
        status: &Map<String, Value>,
        outcome: &mut Outcome<'_>,
    ) {
        let running = self.active.len();
        for (pod, health) in &self.active {
            let detail = if health.is_ready() { "it runs" } else { "it is not ready" };
            let reason = HoldReason::NotAvailable { detail: detail.to_owned() };
            outcome.member(pod.name().clone(), MemberState::Moving, Some(reason), None);
        }
        let wanted = match self.completions {
            None if self.tally.succeeded > 0 => running.min(self.parallelism),
            None => self.parallelism,
            Some(completions) => {
                self.parallelism.min(completions.saturating_sub(self.tally.succeeded))
            }
        };
        if running > wanted {
            return self.remove(running - wanted, "more run than are wanted", outcome);
        }
        outcome.wake_at = self.deadline(status);
        if running == wanted {
            return;
        }
        if let Some(until) = self.backs_off() {
            let detail = format!("{} pods failed", self.tally.failed);
            let reason = HoldReason::Failed { detail };
            return outcome.member("next pod", MemberState::Waiting, Some(reason), Some(until));
        }
        self.make((wanted - running).min(BURST), snapshot, outcome);
    }

    fn make(&self, count: usize, snapshot: &Snapshot<'_>, outcome: &mut Outcome<'_>) {
        let mut names = Names::new(snapshot);
        let free: Vec<Option<usize>> = if self.is_indexed {
            self.free_indexes().into_iter().map(Some).take(count).collect()
        } else {
            vec![None; count]
        };
        for index in free {
            let (base, about) = match index {
                Some(index) => (format!("{}-{index}", self.owner.name()), index.to_string()),
                None => (self.owner.name().to_string(), String::new()),
            };
            let key = names.next(&base, &about);
            let mut pod = pod(self.owner, template(self.owner), &key);
            let finalizers = pod["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            let all: Vec<Value> = finalizers.into_iter().chain([json!(FINALIZER)]).collect();
            pod["metadata"]["finalizers"] = Value::Array(all);
            if let Some(index) = index {
                numbered(&mut pod, self.owner, index);
            }
            outcome.group.count(MemberState::Moving);
            let why = Why::new(
                "TooFew",
                format!("{} of {} pods run", self.active.len(), self.parallelism),
            );
            outcome.create(key, pod, why);
        }
    }

    /// The numbers that have neither succeeded nor a pod at work, the lowest first.
    fn free_indexes(&self) -> Vec<usize> {
        let done = Indexes::read(self.tally.completed_indexes().as_str());
        let taken: BTreeSet<usize> = self
            .kept
            .pods
            .iter()
            .filter(|pod| pod.status_text("phase") != "Failed" && !pod.is_deleting())
            .filter_map(|pod| index_of(pod))
            .collect();
        let all = 0..self.completions.unwrap_or(0);
        all.filter(|index| !done.contains(*index) && !taken.contains(index)).collect()
    }

    /// When the next pod may be made, if failures keep it waiting.
    fn backs_off(&self) -> Option<Timestamp> {
        let (failures, last) = self.tally.failures_in_a_row()?;
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
        let wait = BACKOFF.saturating_mul(1 << doublings).min(BACKOFF_MAX);
        last.checked_add(wait).ok().filter(|until| *until > self.now)
    }

    /// When its time is up.
    fn deadline(&self, status: &Map<String, Value>) -> Option<Timestamp> {
        let begun = status.get("startTime").or_else(|| self.owner.status_member("startTime"));
        let begun = convoy_api::object::meta::timestamp(begun)?;
        let secs = number(self.owner.spec(), "activeDeadlineSeconds")?;
        begun.checked_add(SignedDuration::from_secs(secs)).ok()
    }
}

/// Which number a pod of an indexed Job has.
fn index_of(pod: &Object) -> Option<usize> {
    pod.annotation(INDEX).or_else(|| pod.label(INDEX))?.parse().ok()
}

fn numbered(pod: &mut Value, owner: &Object, index: usize) {
    let text = index.to_string();
    note(pod, "annotations", INDEX, &text);
    note(pod, "labels", INDEX, &text);
    let from = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {
        "fieldPath": format!("metadata.labels['{INDEX}']")}}});
    pod["spec"]["hostname"] = json!(format!("{}-{index}", owner.name()));
    for list in ["initContainers", "containers"] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if !container["env"].is_array() {
                container["env"] = json!([]);
            }
            container["env"].as_array_mut().expect("just made").push(from.clone());
        }
    }
}
