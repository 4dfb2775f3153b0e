//! What people ask of placements and update runs, as far as their API has it.

use convoy_api::Object;
use convoy_api::object::member::list;
use jiff::Timestamp;
use serde_json::json;

use crate::condition::{self, Condition};
use crate::dialect::fleet::names::{
    ACCEPTED, APPROVED, Family, RESOURCE_INDEX, RolloutKind, SUCCEEDED, index, is_latest, is_master,
};
use crate::dialect::fleet::read::run::{approval_subject, current_status, spec};
use crate::intervention::{Intervention, Refused, Revision};
use crate::step::{Action, Verb, Why};
use crate::world::World;

/// The writes of a request.
pub(crate) fn intervene(
    world: &World,
    rollout: &Object,
    intervention: &Intervention,
    now: Timestamp,
) -> Result<Vec<Action>, Refused> {
    let instead = match RolloutKind::of(rollout.kind()) {
        Some(RolloutKind::Run(family)) => {
            return of_run(world, rollout, family, intervention, now);
        }
        Some(RolloutKind::Placement(family)) => of_placement(world, rollout, family, intervention),
        _ => "it is done once: delete it and create another one".to_owned(),
    };
    Err(intervention.unsupported(rollout.kind(), instead))
}

/// What people do to a placement instead.
fn of_placement(
    world: &World,
    placement: &Object,
    family: Family,
    intervention: &Intervention,
) -> String {
    let run = family.run().kind;
    match intervention {
        Intervention::Pause | Intervention::Resume | Intervention::Abort => format!(
            "roll it out by a {run} (spec.strategy.type: External), which can be paused, resumed \
             and aborted"
        ),
        Intervention::Undo { .. } => {
            let earlier = revisions(world, placement);
            let earlier = earlier.iter().rev().find(|revision| !revision.is_current);
            let index = earlier.map_or("N".to_owned(), |revision| revision.number.to_string());
            format!(
                "create a {run} with spec.resourceSnapshotIndex: {index:?}, or change the selected \
                 resources back"
            )
        }
        Intervention::Retry => {
            "member agents apply failed resources again by themselves; change the resources that \
             fail"
                .to_owned()
        }
        Intervention::Approve { .. } => format!("approvals belong to its {run}s: approve one"),
        // Evictions are of placements without a namespace.
        Intervention::Reset if !placement.namespace().is_empty() => {
            "it keeps no progress to forget: member agents apply what it places again by themselves"
                .to_owned()
        }
        Intervention::Reset => "it keeps no progress to forget: evict a cluster with a \
             ClusterResourcePlacementEviction to place it again"
            .to_owned(),
    }
}

fn of_run(
    world: &World,
    run: &Object,
    family: Family,
    intervention: &Intervention,
    now: Timestamp,
) -> Result<Vec<Action>, Refused> {
    let state = spec(run).state.unwrap_or_else(|| "Initialize".to_owned());
    let refused = |words: &str| refused(run, words);
    if matches!(run.condition_status(SUCCEEDED), Some("True" | "False")) {
        return Err(refused("is over; create another run"));
    }
    match intervention {
        Intervention::Pause | Intervention::Abort if state == "Run" => {
            let why = Why::new("Stopped", "start no further cluster");
            Ok(vec![stated(run, "Stop", why)])
        }
        Intervention::Pause | Intervention::Abort => Err(refused("is not running")),
        Intervention::Resume if state == "Run" => Err(refused("is running already")),
        Intervention::Resume => Ok(vec![stated(run, "Run", Why::new("Resumed", "go on"))]),
        Intervention::Approve { stage } => approved(world, run, family, stage.as_deref(), now),
        Intervention::Retry | Intervention::Reset => Err(intervention.unsupported(
            run.kind(),
            "a cluster that fails is looked at again by itself; create \
             another run to begin again",
        )),
        Intervention::Undo { .. } => Err(intervention.unsupported(
            run.kind(),
            "create another run with the resourceSnapshotIndex to go back to",
        )),
    }
}

fn refused(run: &Object, state: &str) -> Refused {
    Refused::not_now(format!("{} {:?} {state}", run.kind().kind, run.name()))
}

fn stated(run: &Object, state: &str, why: Why) -> Action {
    Action::patch(Verb::Record, run, json!({"spec": {"state": state}}), why)
}

/// Approves the request of the stage, or the only one that waits.
fn approved(
    world: &World,
    run: &Object,
    family: Family,
    stage: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Action>, Refused> {
    let requests = world.in_namespace(&family.approval_request(), run.namespace());
    let open: Vec<(&Object, String)> = requests
        .map(|request| (request, approval_subject(request)))
        .filter(|(_, subject)| subject.parent_stage_rollout == run.name().as_str())
        .filter(|(request, _)| {
            [APPROVED, ACCEPTED].iter().all(|kind| current_status(request, kind) != Some("True"))
        })
        .map(|(request, subject)| (request, subject.target_stage))
        .filter(|(_, target)| stage.is_none_or(|stage| stage == target))
        .collect();
    match (open.as_slice(), stage) {
        ([(request, target)], _) => Ok(vec![approval(request, target, now)]),
        ([], None) => Err(refused(run, "has no stage that waits for approval")),
        ([], Some(stage)) => {
            Err(refused(run, &format!("has no stage {stage:?} that waits for approval")))
        }
        (several, _) => {
            let stages: Vec<&str> = several.iter().map(|(_, stage)| stage.as_str()).collect();
            let words =
                format!("waits for {} approvals; name a stage with --stage: ", stages.len());
            Err(refused(run, &(words + &stages.join(", "))))
        }
    }
}

fn approval(request: &Object, stage: &str, now: Timestamp) -> Action {
    let mut conditions = list(request.status(), "conditions").to_vec();
    let wanted = Condition::new(APPROVED, "True", "Approved", "approved with convoy approve")
        .of_generation(request.generation());
    condition::set(&mut conditions, &wanted, now);
    let why = Why::new("Approved", format!("approve stage {stage}"));
    Action::patch_status(Verb::Record, request, json!({"status": {"conditions": conditions}}), why)
}

/// The resource snapshots that a placement has, or the placement of a run.
pub(crate) fn revisions(world: &World, rollout: &Object) -> Vec<Revision> {
    let (family, name) = match RolloutKind::of(rollout.kind()) {
        Some(RolloutKind::Placement(family)) => (family, rollout.name().to_string()),
        Some(RolloutKind::Run(family)) => (family, spec(rollout).placement_name),
        _ => return Vec::new(),
    };
    let kind = family.resource_snapshot();
    let snapshots = world.labelled(&kind, rollout.namespace(), &name);
    let told = snapshots.filter(|snapshot| is_master(snapshot)).filter_map(|snapshot| {
        let resources = list(snapshot.spec(), "selectedResources").len();
        let noun = if resources == 1 { "resource" } else { "resources" };
        Some(Revision {
            number: i64::from(index(snapshot, RESOURCE_INDEX)?),
            object: format!("{} {}", kind.kind, snapshot.name()),
            created_at: snapshot.created_at(),
            is_current: is_latest(snapshot),
            content: format!("{resources} {noun}"),
        })
    });
    let mut told: Vec<Revision> = told.collect();
    told.sort_by_key(|revision| revision.number);
    told
}

#[cfg(test)]
mod tests {
    use convoy_testkit::fleet::{placement, run};
    use convoy_testkit::object;

    use super::*;
    use crate::dialect::fleet::names::PLACEMENT_GROUP;
    use crate::intervention::Intervention::{Abort, Approve, Pause, Resume, Undo};
    use crate::step::Write;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn state_after(run: &Object, asked: &Intervention) -> Option<String> {
        let action = intervene(&World::new(), run, asked, now()).ok()?.remove(0);
        let Write::Patch { patch, .. } = action.write else { panic!("a patch") };
        patch["spec"]["state"].as_str().map(str::to_owned)
    }

    #[test]
    fn a_run_is_stopped_and_goes_on() {
        let running = run("r", "p", "s", "0").with("/spec/state", json!("Run")).build();
        let stopped = run("r", "p", "s", "0").with("/spec/state", json!("Stop")).build();
        let fresh = run("r", "p", "s", "0").with("/spec/state", json!("Initialize")).build();
        assert_eq!(state_after(&running, &Pause).as_deref(), Some("Stop"));
        assert_eq!(state_after(&running, &Abort).as_deref(), Some("Stop"));
        assert_eq!(state_after(&running, &Resume), None);
        assert_eq!(state_after(&stopped, &Resume).as_deref(), Some("Run"));
        assert_eq!(state_after(&fresh, &Resume).as_deref(), Some("Run"));
        assert_eq!(state_after(&stopped, &Pause), None);
    }

    #[test]
    fn the_request_that_waits_is_approved() {
        let request = |stage: &str| {
            object(&format!("{PLACEMENT_GROUP}/v1beta1"), "ClusterApprovalRequest", stage)
                .spec(json!({"parentStageRollout": "r", "targetStage": stage}))
                .build()
        };
        let run = run("r", "p", "s", "0").build();
        let approve = |stage: Option<&str>| Approve { stage: stage.map(str::to_owned) };
        let one: World = [request("canary")].into_iter().collect();
        let actions = intervene(&one, &run, &approve(None), now()).expect("one waits");
        assert_eq!(actions[0].target.name, "canary");
        let two: World = [request("canary"), request("rest")].into_iter().collect();
        assert!(intervene(&two, &run, &approve(None), now()).is_err());
        assert!(intervene(&two, &run, &approve(Some("rest")), now()).is_ok());
        assert!(intervene(&World::new(), &run, &approve(None), now()).is_err());
    }

    #[test]
    fn a_placement_says_what_to_do_instead() {
        let placement = placement("p", json!({})).build();
        for asked in [Pause, Abort, Undo { revision: None }] {
            let refused = intervene(&World::new(), &placement, &asked, now()).expect_err("no");
            assert!(refused.to_string().contains("ClusterStagedUpdateRun"), "{refused}");
        }
    }
}
