//! What people ask of a Skyhook, as writes to its annotations and status, to nodes and to package
//! pods: the same that `kubectl skyhook` does.

use convoy_api::Object;
use convoy_api::kinds::{NODE, POD};
use serde_json::{Map, Value};

use super::manual::{self, Switch};
use crate::dialect::skyhook::names::{DISABLE, NAME, PAUSE};
use crate::dialect::skyhook::read::batch::BatchState;
use crate::dialect::skyhook::read::pod::{PackageTag, PodResult, pod_result};
use crate::intervention::{Intervention, Refused};
use crate::merge_patch::nested;
use crate::step::{Action, Propagation, Verb, Why};
use crate::world::World;

/// The writes of a request.
pub(crate) fn intervene(
    world: &World,
    skyhook: &Object,
    intervention: &Intervention,
) -> Result<Vec<Action>, Refused> {
    let is = |annotation: &str| skyhook.annotation(annotation) == Some("true");
    match intervention {
        Intervention::Pause if is(PAUSE) => Err(refused(skyhook, "is already paused")),
        Intervention::Pause => Ok(vec![switched(skyhook, Switch::Pause)]),
        Intervention::Abort if is(DISABLE) => Err(refused(skyhook, "is already disabled")),
        Intervention::Abort => Ok(vec![switched(skyhook, Switch::Disable)]),
        Intervention::Resume => {
            let set = [PAUSE, DISABLE].into_iter().filter(|annotation| is(annotation));
            let set: Map<String, Value> = set.map(|it| (it.to_owned(), Value::Null)).collect();
            if set.is_empty() {
                return Err(refused(skyhook, "is not paused"));
            }
            let patch = nested(&["metadata", "annotations"], Value::Object(set));
            Ok(vec![Action::patch(Verb::Record, skyhook, patch, Why::new("Resumed", "go on"))])
        }
        Intervention::Retry => retried(world, skyhook),
        Intervention::Reset => reset(world, skyhook),
        Intervention::Undo { .. } => Err(intervention.unsupported(
            skyhook.kind(),
            "it keeps no revisions: apply the previous spec, whose older package versions are \
             rolled out like newer ones",
        )),
        Intervention::Approve { .. } => Err(intervention.unsupported(
            skyhook.kind(),
            "pause it before the step that needs approval, and run `convoy resume` to approve",
        )),
    }
}

fn refused(skyhook: &Object, state: &str) -> Refused {
    Refused::not_now(format!("Skyhook {:?} {state}", skyhook.name()))
}

fn switched(skyhook: &Object, switch: Switch) -> Action {
    let (reason, message) = match switch {
        Switch::Pause => ("Paused", "start nothing new"),
        Switch::Disable => ("Disabled", "start nothing new, and let other Skyhooks go first"),
        Switch::Resume | Switch::Enable => ("Resumed", "go on"),
    };
    Action::patch(Verb::Record, skyhook, switch.patch(), Why::new(reason, message))
}

/// Package pods that failed are deleted, and so made again at once; compartments that reached
/// their failure limit begin with their first batch.
fn retried(world: &World, skyhook: &Object) -> Result<Vec<Action>, Refused> {
    let mut actions = Vec::new();
    if is_stopped(skyhook)
        && let Some(patch) = manual::reset_batches(skyhook)
    {
        let why = Why::new("Retried", "begin with the first batch after a failure stop");
        actions.push(Action::patch_status(Verb::Record, skyhook, patch, why));
    }
    let ours = world.of(&POD).filter(|pod| pod.label(NAME) == Some(skyhook.name()));
    for pod in ours.filter(|pod| has_failed(pod) && !pod.is_deleting()) {
        let why = Why::new("Retried", "run the failed stage again");
        actions.push(Action::delete(Verb::Delete, pod, Propagation::Background, why));
    }
    if actions.is_empty() {
        return Err(refused(skyhook, "has no failed package and no stopped compartment"));
    }
    Ok(actions)
}

fn has_failed(pod: &Object) -> bool {
    PackageTag::of(pod)
        .is_some_and(|tag| matches!(pod_result(pod, tag.stage), PodResult::Failed { .. }))
}

fn is_stopped(skyhook: &Object) -> bool {
    let all = skyhook.status().get("compartmentStatuses").and_then(Value::as_object);
    let states = all.into_iter().flat_map(|all| all.values());
    states
        .filter_map(|status| status.get("batchState"))
        .any(|state| BatchState::read(Some(state)).should_stop)
}

/// The status goes first: whoever reads it between two nodes finds a run that has not begun.
fn reset(world: &World, skyhook: &Object) -> Result<Vec<Action>, Refused> {
    let picks = manual::forget_picks(skyhook, false).map(|patch| {
        let why = Why::new("Reset", "begin a new run");
        Action::patch_status(Verb::Record, skyhook, patch, why)
    });
    let nodes = world.of(&NODE).filter_map(|node| {
        let patch = manual::forget(node, skyhook.name())?;
        let why = Why::new("Reset", "forget the packages of the node");
        Some(Action::patch(Verb::Record, node, patch, why).concurrently())
    });
    let actions: Vec<Action> = picks.into_iter().chain(nodes).collect();
    if actions.is_empty() {
        return Err(refused(skyhook, "has no state on any node"));
    }
    Ok(actions)
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{node, object};
    use serde_json::json;

    use super::*;
    use crate::intervention::Intervention::{Abort, Pause, Reset, Resume, Retry};

    fn skyhook() -> convoy_testkit::Builder {
        object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
    }

    fn world(objects: &[&Object]) -> World {
        objects.iter().map(|object| (*object).clone()).collect()
    }

    #[test]
    fn switches_are_set_once_and_taken_away_together() {
        let plain = skyhook().build();
        let none = world(&[]);
        assert_eq!(intervene(&none, &plain, &Pause).map(|actions| actions.len()), Ok(1));
        assert!(intervene(&none, &plain, &Resume).is_err());
        let both = skyhook().annotation(PAUSE, "true").annotation(DISABLE, "true").build();
        assert!(intervene(&none, &both, &Pause).is_err());
        assert!(intervene(&none, &both, &Abort).is_err());
        assert_eq!(intervene(&none, &both, &Resume).map(|actions| actions.len()), Ok(1));
    }

    #[test]
    fn what_failed_runs_again() {
        let tag = r#"{"name":"a","version":"1","skyhook":"s","stage":"apply","image":"i"}"#;
        let pod = |name: &str, code: i64| {
            object("v1", "Pod", name)
                .label(NAME, "s")
                .annotation("skyhook.nvidia.com/package", tag)
                .status(json!({"initContainerStatuses":
                    [{"state": {"terminated": {"exitCode": code}}}]}))
                .build()
        };
        let stopped = skyhook()
            .status(json!({"compartmentStatuses": {"x": {"batchState":
                {"currentBatch": 2, "shouldStop": true}}}}))
            .build();
        let world = world(&[&pod("bad", 1), &pod("good", 0)]);
        let actions = intervene(&world, &stopped, &Retry).expect("something failed");
        let names: Vec<&str> = actions.iter().map(|action| action.target.name.as_str()).collect();
        assert_eq!(names, ["s", "bad"]);
        assert!(intervene(&World::new(), &skyhook().build(), &Retry).is_err());
    }

    #[test]
    fn nodes_forget_after_the_status() {
        let picked = skyhook().status(json!({"nodePriority": {"n": "2026-01-01T00:00:00Z"}}));
        let known = node("n").annotation("skyhook.nvidia.com/status_s", "complete").build();
        let world = world(&[&known, &node("m").build()]);
        let actions = intervene(&world, &picked.build(), &Reset).expect("there is state");
        let names: Vec<&str> = actions.iter().map(|action| action.target.name.as_str()).collect();
        assert_eq!(names, ["s", "n"]);
    }
}
