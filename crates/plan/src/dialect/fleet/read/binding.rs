//! Bindings: a placement's hold on one cluster, read straight from the JSON.
//!
//! Conditions speak of the generation they were written for; those of an older one count
//! neither as good nor as bad news.

use convoy_api::Object;
use convoy_api::object::member::{member, same};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::dialect::fleet::names::{
    APPLIED, AVAILABLE, DIFF_REPORTED, OVERRIDDEN, PREVIOUS_STATE, ROLLOUT_STARTED,
    WORK_SYNCHRONIZED,
};
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::placement::{Placement, apply_strategy, field, list, text};
use crate::snapshot::Snapshot;

/// Reasons that come with `Available=True` when some resource cannot be tracked.
const UNTRACKABLE: [&str; 2] = ["NotAllWorkAreAvailabilityTrackable", "WorkNotTrackable"];

/// Reasons of a condition that is False only for now. `ApplyInProgress` is written right after
/// every change, so taking it for a failure would lift the surge limit.
const TRANSIENT: [&str; 5] = [
    "OverriddenPending",
    "WorkNotSynchronizedYet",
    "ApplyPending",
    "ResourceNotAvailableYet",
    "ApplyInProgress",
];

/// The shortest time there is.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// One `ClusterResourceBinding` or `ResourceBinding`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'w> {
    pub(crate) object: &'w Object,
    pub(crate) state: State,
    cluster: &'w str,
    generation: i64,
    deleting: bool,
    conditions: &'w [Value],
    /// In the order of [`KINDS`], those of the current generation.
    current: [Option<&'w Value>; KINDS.len()],
}

/// The types of conditions that count.
const KINDS: [&str; 6] =
    [ROLLOUT_STARTED, OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE, DIFF_REPORTED];

/// What the scheduler and the rollout have made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Picked; nothing is on the cluster yet.
    Scheduled,
    /// The resources are, or are to be, on the cluster.
    Bound,
    /// No longer picked; the resources stay until the binding is deleted.
    Unscheduled,
}

/// Whether the resources a binding stands for are known to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// Counts as ready from this instant on, for want of a better test.
    At(Timestamp),
    /// An event will tell.
    Unknown,
}

/// How well a cluster suits a placement. Compared in this order; larger is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Score {
    pub(crate) topology: i32,
    pub(crate) affinity: i32,
    /// An older policy had picked the cluster: moving costs something.
    pub(crate) kept: bool,
}

/// What a binding's spec should say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DesiredBinding<'a> {
    pub(crate) resource_snapshot: &'a str,
    pub(crate) overrides: &'a Applicable,
    /// In canonical form; absent where it is pushed on its own.
    pub(crate) apply_strategy: Option<&'a Value>,
}

impl DesiredBinding<'_> {
    /// Whether the binding is Bound and says exactly this.
    pub(crate) fn is_met_by(&self, binding: &Binding<'_>) -> bool {
        self.apply_strategy.is_none_or(|wanted| binding.has_strategy(wanted))
            && binding.state == State::Bound
            && binding.resource_snapshot() == self.resource_snapshot
            && *self.overrides == Applicable::of_binding(binding.object)
    }
}

/// The bindings of a placement, by name.
pub(crate) fn bindings<'w>(snapshot: &Snapshot<'w>, placement: &Placement<'_>) -> Vec<Binding<'w>> {
    let all = snapshot.of(&placement.binding_kind()).iter();
    let owned = all.filter(|object| placement.owns(object));
    owned.filter_map(|object| Binding::read(object)).collect()
}

impl<'w> Binding<'w> {
    /// None: its state is none of the known words, and nothing is done with it.
    pub(crate) fn read(object: &'w Object) -> Option<Self> {
        let state = match object.spec_text("state") {
            "Scheduled" => State::Scheduled,
            "Bound" => State::Bound,
            "Unscheduled" => State::Unscheduled,
            _ => return None,
        };
        let (generation, conditions) = (object.generation(), list(object.status(), "conditions"));
        Some(Self {
            object,
            state,
            cluster: object.spec_text("targetCluster"),
            generation,
            deleting: object.is_deleting(),
            conditions,
            current: current(object, conditions, generation),
        })
    }

    pub(crate) fn name(&self) -> &'w str {
        self.object.name()
    }

    pub(crate) fn cluster(&self) -> &'w str {
        self.cluster
    }

    pub(crate) fn resource_snapshot(&self) -> &'w str {
        self.object.spec_text("resourceSnapshotName")
    }

    pub(crate) fn policy_snapshot(&self) -> &'w str {
        self.object.spec_text("schedulingPolicySnapshotName")
    }

    pub(crate) fn generation(&self) -> i64 {
        self.generation
    }

    /// Its conditions, those of older generations among them.
    pub(crate) fn conditions(&self) -> &'w [Value] {
        self.conditions
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// Whether it was Bound before it was de-selected.
    pub(crate) fn was_bound(&self) -> bool {
        self.object.annotation(PREVIOUS_STATE) == Some("Bound")
    }

    /// Whether resources may be on the cluster because of it.
    pub(crate) fn is_placed(&self) -> bool {
        match self.state {
            State::Scheduled => false,
            State::Bound => true,
            State::Unscheduled => self.was_bound(),
        }
    }

    /// Whether it carries this apply strategy, which is in canonical form. One without any does
    /// not: whoever makes bindings leaves it to the rollout.
    pub(crate) fn has_strategy(&self, wanted: &Value) -> bool {
        let carried = field(self.object.spec(), "applyStrategy");
        // Most say it in the very words.
        !carried.is_null() && (same(carried, wanted) || apply_strategy(carried) == *wanted)
    }

    /// A condition of the binding's current generation.
    pub(crate) fn condition(&self, kind: &str) -> Option<&'w Value> {
        self.current[KINDS.iter().position(|known| *known == kind)?]
    }

    /// The status word of a condition of the current generation.
    pub(crate) fn status(&self, kind: &str) -> Option<&'w str> {
        member(self.condition(kind)?, "status")?.as_str()
    }

    pub(crate) fn is_true(&self, kind: &str) -> bool {
        self.status(kind) == Some("True")
    }

    /// Whether the resources work; `period` is how long untrackable ones have to stand.
    pub(crate) fn readiness(&self, period: SignedDuration, now: Timestamp) -> Readiness {
        if self.is_true(DIFF_REPORTED) {
            return Readiness::Ready;
        }
        let Some(available) = self.condition(AVAILABLE) else { return Readiness::Unknown };
        if text(available, "status") != "True" {
            return Readiness::Unknown;
        }
        if !UNTRACKABLE.contains(&text(available, "reason")) {
            return Readiness::Ready;
        }
        // Without a readable time it has stood since the beginning, as a zero time would.
        let since = timestamp(member(available, "lastTransitionTime")).unwrap_or(Timestamp::MIN);
        // Strictly longer than the period.
        let ready_at = since.checked_add(period).and_then(|end| end.checked_add(INSTANT));
        match ready_at {
            Ok(at) if at <= now => Readiness::Ready,
            Ok(at) => Readiness::At(at),
            Err(_) => Readiness::At(Timestamp::MAX),
        }
    }

    /// The first condition that says the resources will not work as they are.
    pub(crate) fn failure(&self) -> Option<&'w Value> {
        [OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE].into_iter().find_map(|kind| {
            let condition = self.condition(kind)?;
            let failed = text(condition, "status") == "False"
                && !TRANSIENT.contains(&text(condition, "reason"));
            failed.then_some(condition)
        })
    }

    /// Why it has failed, for a person.
    pub(crate) fn failure_message(&self) -> String {
        let failure = self.failure().map(|condition| {
            let word = |name| text(condition, name);
            let told = format!("{} is False/{}: {}", word("type"), word("reason"), word("message"));
            self.with_cause(told, word("type"))
        });
        failure.unwrap_or_else(|| self.explanation())
    }

    /// Until when resources that were applied may become available: a period from the instant at
    /// which they were not.
    pub(crate) fn may_become_available_until(&self, period: SignedDuration) -> Option<Timestamp> {
        let failure = self.failure().filter(|failure| text(failure, "type") == AVAILABLE)?;
        timestamp(member(failure, "lastTransitionTime"))?.checked_add(period).ok()
    }

    /// What is told of a condition, with the first object that is the cause.
    fn with_cause(&self, told: String, condition: &str) -> String {
        match self.first_failure(condition) {
            Some(cause) => format!("{told}; {cause}"),
            None => told,
        }
    }

    /// The first object that could not be applied, or is not available, in the words of its cluster.
    fn first_failure(&self, condition: &str) -> Option<String> {
        let failed = list(self.object.status(), "failedPlacements");
        let is_it = |entry: &&Value| text(field(entry, "condition"), "type") == condition;
        let mut failed = failed.iter().filter(is_it);
        let (first, others) = (failed.next()?, failed.count());
        let (kind, namespace, name) =
            (text(first, "kind"), text(first, "namespace"), text(first, "name"));
        let slash = if namespace.is_empty() { "" } else { "/" };
        let message = text(field(first, "condition"), "message");
        let others = if others == 0 { String::new() } else { format!(" (and {others} more)") };
        Some(format!("{kind} {namespace}{slash}{name}: {message}{others}"))
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure().is_some()
    }

    /// Whether differences were looked for instead of applying, whatever came of it.
    pub(crate) fn is_diff_reported(&self) -> bool {
        self.condition(DIFF_REPORTED).is_some()
    }

    /// Why it is not ready, for a person.
    pub(crate) fn explanation(&self) -> String {
        let kinds = [OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE, DIFF_REPORTED];
        let mut current = kinds.into_iter().filter_map(|kind| Some((kind, self.condition(kind)?)));
        let wanting = current.clone().find(|(_, found)| text(found, "status") != "True");
        match wanting.or_else(|| current.next_back()) {
            Some((kind, found)) => {
                let told = format!("{kind} is {}/{}", text(found, "status"), text(found, "reason"));
                self.with_cause(told, kind)
            }
            None => "nothing is reported for its current generation yet".to_owned(),
        }
    }
}

/// The first condition of each type, where it speaks of `generation`.
fn current<'w>(
    object: &Object,
    conditions: &'w [Value],
    generation: i64,
) -> [Option<&'w Value>; KINDS.len()] {
    let (mut current, mut seen) = ([None; KINDS.len()], [false; KINDS.len()]);
    for (condition, summary) in conditions.iter().zip(object.condition_summaries()) {
        let Some(at) = KINDS.iter().position(|known| *known == summary.kind) else { continue };
        if !seen[at] {
            seen[at] = true;
            let observed = member(condition, "observedGeneration").and_then(Value::as_i64);
            current[at] = (observed.unwrap_or(0) == generation).then_some(condition);
        }
    }
    current
}

/// The cluster that a binding is about.
pub(crate) fn target(binding: &Object) -> &str {
    binding.spec_text("targetCluster")
}

/// The state of a binding, whatever the word.
pub(crate) fn state_of(binding: &Object) -> &str {
    binding.spec_text("state")
}

/// The policy snapshot that picked the cluster.
pub(crate) fn policy_of(binding: &Object) -> &str {
    binding.spec_text("schedulingPolicySnapshotName")
}

/// The score that was written down when the cluster was picked.
pub(crate) fn recorded_score(binding: &Object) -> Option<Score> {
    let score = field(field(binding.spec(), "clusterDecision"), "clusterScore");
    let part = |name: &str| {
        let value = member(score, name).and_then(Value::as_i64).unwrap_or(0);
        i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
    };
    score.is_object().then(|| Score {
        topology: part("priorityScore"),
        affinity: part("affinityScore"),
        kept: false,
    })
}

/// The state that an Unscheduled binding had before. Where nobody wrote it down, a binding that
/// names a resource snapshot was Bound.
pub(crate) fn previous_state(binding: &Object) -> &'static str {
    match binding.annotation(PREVIOUS_STATE) {
        Some("Bound") => "Bound",
        Some(_) => "Scheduled",
        None if text(binding.spec(), "resourceSnapshotName").is_empty() => "Scheduled",
        None => "Bound",
    }
}

/// The decision that was written down when the cluster was picked.
pub(crate) fn recorded_decision(binding: &Object) -> Option<&Value> {
    let decision = member(binding.spec(), "clusterDecision")?;
    member(decision, "clusterName").filter(|name| name.is_string())?;
    Some(decision)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn binding(conditions: &Value) -> Object {
        Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourceBinding", "metadata": {"name": "b", "generation": 2},
            "spec": {"state": "Bound"}, "status": {"conditions": conditions}}))
        .unwrap()
    }

    fn condition(kind: &str, status: &str, reason: &str, observed: i64) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "observedGeneration": observed,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn readiness_is_about_the_current_generation() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let period = SignedDuration::from_secs(60);
        let late = at("2026-01-01T00:01:00.5Z");
        let untracked = condition("Available", "True", "NotAllWorkAreAvailabilityTrackable", 2);
        let cases = [
            (
                "available",
                json!([condition("Available", "True", "AllWorkAreAvailable", 2)]),
                late,
                Readiness::Ready,
            ),
            (
                "of old",
                json!([condition("Available", "True", "AllWorkAreAvailable", 1)]),
                late,
                Readiness::Unknown,
            ),
            (
                "diff",
                json!([condition("DiffReported", "True", "AllWorkHaveDiffReported", 2)]),
                late,
                Readiness::Ready,
            ),
            ("stood", json!([untracked]), late, Readiness::Ready),
            (
                "to the instant",
                json!([untracked]),
                at("2026-01-01T00:01:00Z"),
                Readiness::At(at("2026-01-01T00:01:00.000000001Z")),
            ),
            ("nothing", json!([]), late, Readiness::Unknown),
        ];
        for (name, conditions, now, want) in cases {
            let object = binding(&conditions);
            let binding = Binding::read(&object).unwrap();
            assert_eq!(binding.readiness(period, now), want, "{name}");
        }
    }

    #[test]
    fn a_failure_to_apply_is_told_with_its_cause() {
        let mut object = binding(&json!([condition("Applied", "False", "NotAllApplied", 2)]));
        let told = |object: &Object| Binding::read(object).unwrap().failure_message();
        assert_eq!(told(&object), "Applied is False/NotAllApplied: ");
        let entry = |name: &str, kind: &str| {
            json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name,
                "condition": {"type": kind, "status": "False", "message": format!("{name} is bad")}})
        };
        let mut raw = object.raw().clone();
        raw["status"]["failedPlacements"] =
            json!([entry("a", "Available"), entry("b", "Applied"), entry("c", "Applied")]);
        object = Object::from_value(raw).unwrap();
        let cause = "ConfigMap shop/b: b is bad (and 1 more)";
        assert_eq!(told(&object), format!("Applied is False/NotAllApplied: ; {cause}"));
    }

    #[test]
    fn what_is_applied_may_become_available_for_a_period() {
        let period = SignedDuration::from_secs(60);
        let until = |kind: &str, transition: Option<&str>| {
            let mut condition = condition(kind, "False", "NotAllWorkAreAvailable", 2);
            if let Some(instant) = transition {
                condition["lastTransitionTime"] = json!(instant);
            } else {
                condition.as_object_mut().unwrap().remove("lastTransitionTime");
            }
            let object = binding(&json!([condition]));
            Binding::read(&object).unwrap().may_become_available_until(period)
        };
        let since = Some("2026-01-01T00:00:00Z");
        assert_eq!(until("Available", since), Some("2026-01-01T00:01:00Z".parse().unwrap()));
        assert_eq!(until("Available", None), None, "nobody knows since when");
        assert_eq!(until("Applied", since), None, "waiting does not help");
    }

    #[test]
    fn a_binding_has_failed_when_a_current_condition_says_so_for_good() {
        let cases = [
            ("Overridden", "OverriddenFailed", 2, true),
            ("WorkSynchronized", "SyncWorkFailed", 2, true),
            ("Applied", "NotAllWorkHaveBeenApplied", 2, true),
            ("Available", "NotAllWorkAreAvailable", 2, true),
            ("Available", "NeverHeardOf", 2, true),
            ("Available", "NotAllWorkAreAvailable", 1, false),
            ("Applied", "ApplyInProgress", 2, false),
            ("Applied", "ApplyPending", 2, false),
            ("Available", "ResourceNotAvailableYet", 2, false),
            ("WorkSynchronized", "WorkNotSynchronizedYet", 2, false),
            ("DiffReported", "NotAllWorkHaveDiffReported", 2, false),
        ];
        for (kind, reason, observed, want) in cases {
            let object = binding(&json!([condition(kind, "False", reason, observed)]));
            assert_eq!(Binding::read(&object).unwrap().has_failed(), want, "{kind} {reason}");
        }
    }
}
