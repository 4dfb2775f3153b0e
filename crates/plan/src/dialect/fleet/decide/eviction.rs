//! Evictions: taking a placement off one cluster, once, as far as its disruption budget allows.

pub mod budget;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};
use crate::dialect::fleet::decide::eviction::budget::Verdicts;
use crate::dialect::fleet::decide::rollout;
use crate::dialect::fleet::names::{DIALECT, DISRUPTION_BUDGET, EVICTION, Family};
use crate::dialect::fleet::read::binding::{AVAILABLE, Binding};
use crate::dialect::fleet::read::placement::{Pick, Placement, list, text};
use crate::gate::Permit;
use crate::hold::{Hold, HoldReason};
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Step, Verb, Verdict, Why};

const VALID: &str = "Valid";
const EXECUTED: &str = "Executed";

/// The bindings of a placement by their cluster.
type ByCluster<'b, 'w> = BTreeMap<&'w str, Vec<&'b Binding<'w>>>;

/// What comes of one eviction.
#[derive(Clone, Debug)]
enum Outcome<'w> {
    /// It cannot be meant as it is written.
    Invalid { message: String },
    /// Allowed; the binding is deleted unless that is under way.
    Evicted { delete: Option<&'w Object>, message: String },
    /// Understood, and not done.
    Refused { reason: HoldReason, message: String },
}

/// The step of one eviction. It is decided once; afterwards it only stands as a record.
pub fn step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let eviction = snapshot.rollout();
    let mut step = Step::new(DIALECT, eviction, Verdict::Done);
    step.decision = json!({"remove": []});
    if is_final(eviction) || eviction.is_deleting() {
        return step;
    }
    let outcome = outcome(snapshot, eviction);
    match &outcome {
        Outcome::Invalid { message } => {
            step.verdict = Verdict::Stopped;
            let reason = HoldReason::Failed { detail: message.clone() };
            step.holds.push(Hold::of_rollout(reason));
        }
        Outcome::Evicted { delete, message } => {
            step.verdict = Verdict::Moving;
            step.decision =
                json!({"remove": delete.map(Object::name).into_iter().collect::<Vec<_>>()});
            let why = Why::new("Evicted", message.clone());
            step.actions.extend(delete.map(|binding| {
                Action::delete(
                    Verb::Remove(Permit::unchecked()),
                    binding,
                    Propagation::Background,
                    why,
                )
            }));
        }
        Outcome::Refused { reason, .. } => {
            step.verdict = Verdict::Stopped;
            step.holds.push(Hold::of_rollout(reason.clone()));
        }
    }
    step.status = Some(status(eviction, &outcome, now));
    step
}

/// Whether the outcome is recorded. What is asked cannot be changed, so it stays recorded.
fn is_final(eviction: &Object) -> bool {
    eviction.condition_status(VALID) == Some("False") || eviction.condition(EXECUTED).is_some()
}

/// Evictions are decided in the order of their names, each seeing what the ones before it
/// are about to delete: together they stay within the budget even if all run at once.
fn outcome<'w>(snapshot: &Snapshot<'w>, eviction: &Object) -> Outcome<'w> {
    let placement = match placement(snapshot, eviction) {
        Ok(placement) => placement,
        Err(message) => return Outcome::Invalid { message },
    };
    let bindings = rollout::bindings(snapshot, &placement);
    let mut verdicts = Verdicts::new(&placement, &bindings, budget(snapshot, &placement));
    let mut by_cluster: ByCluster<'_, '_> = BTreeMap::new();
    for binding in &bindings {
        by_cluster.entry(binding.cluster()).or_default().push(binding);
    }
    let mut going = BTreeSet::new();
    let earlier = snapshot.of(&EVICTION).iter().filter(|other| {
        let same = text(other.spec(), "placementName") == placement.name();
        same && other.key() < eviction.key() && !is_final(other) && !other.is_deleting()
    });
    for other in earlier {
        let decided = decide(other, &by_cluster, &verdicts, &going);
        if let Outcome::Evicted { delete: Some(binding), .. } = decided {
            going.insert(binding.name().as_str());
            verdicts.lose(binding);
        }
    }
    decide(eviction, &by_cluster, &verdicts, &going)
}

fn placement<'w>(snapshot: &Snapshot<'w>, eviction: &Object) -> Result<Placement<'w>, String> {
    let name = text(eviction.spec(), "placementName");
    let object = snapshot.find(&Family::Cluster.placement(), "", name);
    let object = object.ok_or_else(|| format!("ClusterResourcePlacement {name:?} not found"))?;
    if object.is_deleting() {
        return Err(format!("ClusterResourcePlacement {name:?} is being deleted"));
    }
    let placement = Placement::read(object).map_err(|unsound| unsound.to_string())?;
    match placement.policy.pick {
        Pick::Fixed(_) => Err(format!(
            "ClusterResourcePlacement {name:?} is of type PickFixed: take the cluster off its list"
        )),
        Pick::All | Pick::Number(_) => Ok(placement),
    }
}

fn budget<'w>(snapshot: &Snapshot<'w>, placement: &Placement<'_>) -> Option<&'w Object> {
    snapshot.find(&DISRUPTION_BUDGET, "", placement.name())
}

fn decide<'w>(
    eviction: &Object,
    bindings: &ByCluster<'_, 'w>,
    verdicts: &Verdicts<'_>,
    going: &BTreeSet<&str>,
) -> Outcome<'w> {
    let cluster = text(eviction.spec(), "clusterName");
    let invalid = |message| Outcome::Invalid { message };
    let of_cluster = bindings.get(cluster).map_or(&[][..], Vec::as_slice);
    let Some(binding) = of_cluster.first() else {
        return invalid(format!("the placement has no binding for cluster {cluster:?}"));
    };
    if let Some(second) = of_cluster.get(1) {
        let (one, two) = (binding.name(), second.name());
        return invalid(format!("cluster {cluster:?} has two bindings, {one} and {two}"));
    }
    let leaves = binding.is_deleting() || going.contains(binding.name());
    let evicted = |message: &str| Outcome::Evicted {
        delete: (!leaves).then_some(binding.object),
        message: message.to_owned(),
    };
    if leaves {
        return evicted("the binding is being deleted already");
    }
    if !binding.is_placed() {
        let message = format!("nothing is placed on cluster {cluster:?} yet");
        let reason = HoldReason::NotDisruptable { detail: message.clone() };
        return Outcome::Refused { reason, message };
    }
    if binding.has_failed() || binding.is_diff_reported() {
        return evicted("the placement does not work on the cluster, so no budget is needed");
    }
    match verdicts.one_more() {
        Ok(message) => evicted(&message),
        Err((reason, message)) => Outcome::Refused { reason, message },
    }
}

fn status(eviction: &Object, outcome: &Outcome<'_>, now: Timestamp) -> Value {
    let mut conditions = list(eviction.status(), "conditions").to_vec();
    let mut set = |kind: &str, good: bool, reason: &str, message: &str| {
        let wanted = Condition {
            kind: kind.into(),
            status: if good { "True" } else { "False" },
            reason: format!("ClusterResourcePlacementEviction{reason}").into(),
            message: message.into(),
            observed_generation: Some(eviction.generation()),
        };
        condition::set(&mut conditions, &wanted, now);
    };
    match outcome {
        Outcome::Invalid { message } => set(VALID, false, "Invalid", message),
        Outcome::Evicted { message, .. } => {
            set(VALID, true, "Valid", "the eviction can be carried out as it is written");
            set(EXECUTED, true, "Executed", message);
        }
        Outcome::Refused { message, .. } => {
            set(VALID, true, "Valid", "the eviction can be carried out as it is written");
            set(EXECUTED, false, "NotExecuted", message);
        }
    }
    let mut status = eviction.status().as_object().cloned().unwrap_or_else(Map::new);
    status.insert("conditions".into(), Value::Array(conditions));
    Value::Object(status)
}

/// Whether the resources on a binding's cluster are known to work, and to stay.
fn is_available(binding: &Binding<'_>) -> bool {
    binding.is_true(AVAILABLE) && !binding.is_deleting()
}

#[cfg(test)]
mod tests {
    use super::*;

    const API: &str = "placement.kubernetes-fleet.io/v1beta1";

    fn object(kind: &str, name: &str, spec: &Value) -> Object {
        let raw = json!({"apiVersion": API, "kind": kind,
            "metadata": {"name": name, "generation": 1}, "spec": spec});
        Object::from_value(raw).unwrap()
    }

    fn binding(cluster: &str) -> Object {
        let raw = json!({"apiVersion": API, "kind": "ClusterResourceBinding",
            "metadata": {"name": format!("web-{cluster}"), "generation": 1,
                "labels": {"kubernetes-fleet.io/parent-CRP": "web"}},
            "spec": {"state": "Bound", "targetCluster": cluster},
            "status": {"conditions": [{"type": "Available", "status": "True",
                "reason": "AllWorkAreAvailable", "observedGeneration": 1}]}});
        Object::from_value(raw).unwrap()
    }

    fn eviction(name: &str, cluster: &str) -> Object {
        let spec = json!({"placementName": "web", "clusterName": cluster});
        object("ClusterResourcePlacementEviction", name, &spec)
    }

    #[test]
    fn evictions_at_once_stay_within_the_budget_together() {
        let policy = json!({"policy": {"placementType": "PickN", "numberOfClusters": 3}});
        let objects = [
            object("ClusterResourcePlacement", "web", &policy),
            object(
                "ClusterResourcePlacementDisruptionBudget",
                "web",
                &json!({"maxUnavailable": 2}),
            ),
            binding("c1"),
            binding("c2"),
            binding("c3"),
            eviction("a", "c1"),
            eviction("b", "c2"),
            eviction("c", "c3"),
            eviction("d", "c9"),
            eviction("e", "c1"),
        ];
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let decided = |name: &str| {
            let rollout = objects.iter().find(|object| object.name() == name).unwrap();
            let step = step(&Snapshot::new(rollout, objects.iter()), now);
            let status = step.status.unwrap();
            let last = status["conditions"].as_array().unwrap().last().unwrap().clone();
            (step.decision["remove"].clone(), last["reason"].as_str().unwrap().to_owned())
        };
        let reason = |word: &str| format!("ClusterResourcePlacementEviction{word}");
        assert_eq!(decided("a"), (json!(["web-c1"]), reason("Executed")));
        assert_eq!(decided("b"), (json!(["web-c2"]), reason("Executed")));
        assert_eq!(decided("c"), (json!([]), reason("NotExecuted")));
        assert_eq!(decided("d"), (json!([]), reason("Invalid")));
        assert_eq!(decided("e"), (json!([]), reason("Executed")), "the first one did it");
    }
}
