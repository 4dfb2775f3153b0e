//! Staged update runs, planned and applied to their end, stopped, resumed and aborted.

#[path = "fleet/agents.rs"]
mod agents;

use agents::{Agents, BINDING, act, decision, instant, namespace};
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::{Applier, Settled, settle};
use convoy_plan::{HoldReason, Verdict, World};
use convoy_testkit::{NOW, fleet, property};
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};

const RUN: GroupKind = GroupKind::new("placement.kubernetes-fleet.io", "ClusterStagedUpdateRun");

const PLACEMENT: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement");

const WILLING: Agents = Agents { pace: 1, approve: true, untracked: true };

/// Six clusters in two rings, scheduled, with nothing on them yet.
fn fleet_of_six(stages: &Value) -> Applier {
    let ring = |at: u32| if at <= 2 { "canary" } else { "prod" };
    let mut world: World = (1..=6)
        .map(|at| fleet::member(&format!("c{at}"), NOW).label("ring", ring(at)).build())
        .collect();
    world.insert(namespace());
    let names: Vec<String> = (1..=6).map(|at| format!("c{at}")).collect();
    let policy = json!({"placementType": "PickFixed", "clusterNames": names});
    let external = fleet::placement("web", policy).with("/spec/strategy/type", json!("External"));
    world.insert(external.build());
    world.insert(fleet::strategy("rings", stages.clone()).build());
    let mut applier = Applier::new(world, instant());
    settle(&mut applier, 40, |it| act(it, WILLING)).expect("it comes to rest");
    applier
}

fn rings() -> Value {
    json!([
        {"name": "canary", "labelSelector": {"matchLabels": {"ring": "canary"}},
         "afterStageTasks": [{"type": "TimedWait", "waitTime": "5m"}, {"type": "Approval"}]},
        {"name": "empty", "labelSelector": {"matchLabels": {"ring": "nobody"}}},
        {"name": "prod", "labelSelector": {"matchLabels": {"ring": "prod"}},
         "maxConcurrency": "50%", "beforeStageTasks": [{"type": "Approval"}]}])
}

fn start(applier: &mut Applier, name: &str) -> ObjectKey {
    let run = fleet::run(name, "web", "rings", "").build();
    let key = run.key().clone();
    applier.insert(run);
    key
}

fn rest(applier: &mut Applier, agents: Agents) -> Settled {
    let settled = settle(applier, 200, |it| act(it, agents)).expect("it comes to rest");
    assert_eq!(settled.history.findings(), []);
    settled
}

fn verdict(settled: &Settled, run: &ObjectKey) -> Verdict {
    settled.plan.steps.iter().find(|step| step.rollout == *run).expect("the run is planned").verdict
}

fn bound(applier: &Applier) -> usize {
    let bindings = applier.world().of(&BINDING);
    bindings.filter(|it| it.spec()["state"] == "Bound").count()
}

/// What shifts under a run: its name, the kind changed, and the change.
type Shift = (&'static str, GroupKind, fn(&mut Value));

#[test]
fn a_run_goes_to_its_end() {
    let mut applier = fleet_of_six(&rings());
    start(&mut applier, "one");
    let settled = rest(&mut applier, WILLING);
    let step = decision(&settled.plan, "ClusterStagedUpdateRun");
    assert_eq!(step.verdict, Verdict::Done, "{}", step.to_json());
    assert!(applier.now() >= instant() + SignedDuration::from_mins(5), "it waited");
    assert_eq!(bound(&applier), 6);
}

#[test]
fn a_run_waits_for_a_person_and_says_so() {
    let mut applier = fleet_of_six(&rings());
    start(&mut applier, "one");
    let settled = rest(&mut applier, Agents { approve: false, ..WILLING });
    let step = decision(&settled.plan, "ClusterStagedUpdateRun");
    assert_eq!(step.verdict, Verdict::Held);
    let request = "one-after-canary".to_owned();
    assert_eq!(step.holds[0].reason, HoldReason::Approval { request });
    assert_eq!(bound(&applier), 2);
}

#[test]
fn a_stopped_run_starts_nothing_and_can_be_resumed() {
    let mut applier = fleet_of_six(&rings());
    let run = start(&mut applier, "one");
    // One round: initialised or about to be, at most one cluster begun.
    for _ in 0..3 {
        let plan = convoy_plan::plan(applier.world(), applier.now());
        for step in &plan.steps {
            applier.apply(step).unwrap();
        }
    }
    applier.edit(&run, |raw| raw["spec"]["state"] = json!("Stop"));
    let begun = bound(&applier);
    let settled = rest(&mut applier, WILLING);
    assert_eq!(verdict(&settled, &run), Verdict::Paused);
    assert_eq!(bound(&applier), begun);
    applier.edit(&run, |raw| raw["spec"]["state"] = json!("Run"));
    let settled = rest(&mut applier, WILLING);
    assert_eq!(verdict(&settled, &run), Verdict::Done);
    assert_eq!(bound(&applier), 6);
}

#[test]
fn a_run_is_aborted_when_the_ground_shifts() {
    let shifts: [Shift; 3] = [
        ("apply strategy", PLACEMENT, |raw| {
            raw["spec"]["strategy"]["applyStrategy"] = json!({"whenToApply": "IfNotDrifted"});
        }),
        ("placement gone rolling", PLACEMENT, |raw| {
            raw["spec"]["strategy"] = json!({"type": "RollingUpdate"});
        }),
        ("recorded stage", RUN, |raw| {
            raw["status"]["stagesStatus"][0]["stageName"] = json!("other");
        }),
    ];
    for (name, kind, change) in shifts {
        let mut applier = fleet_of_six(&rings());
        let run = start(&mut applier, "one");
        rest(&mut applier, Agents { approve: false, ..WILLING });
        let key = if kind == RUN { run.clone() } else { kind.key("", "web") };
        applier.edit(&key, change);
        let settled = rest(&mut applier, Agents { approve: false, ..WILLING });
        assert_eq!(verdict(&settled, &run), Verdict::Stopped, "{name}");
        let status = applier.world().get(&run).map(Object::status).cloned().unwrap();
        let conditions = status["conditions"].as_array().unwrap();
        let last = conditions.iter().find(|it| it["type"] == "Succeeded").unwrap();
        assert_eq!(last["reason"], "UpdateRunFailed", "{name}");
    }
}

#[test]
fn de_selected_clusters_go_last() {
    let mut applier = fleet_of_six(&rings());
    start(&mut applier, "one");
    rest(&mut applier, WILLING);
    applier.edit(&PLACEMENT.key("", "web"), |raw| {
        raw["spec"]["policy"]["clusterNames"] = json!(["c1", "c2", "c3"]);
    });
    rest(&mut applier, WILLING);
    assert_eq!(applier.world().of(&BINDING).count(), 6, "nobody but a run removes them");
    let run = start(&mut applier, "two");
    let settled = rest(&mut applier, WILLING);
    assert_eq!(verdict(&settled, &run), Verdict::Done);
    assert_eq!(applier.world().of(&BINDING).count(), 3);
}

#[test]
fn a_deleted_run_takes_its_requests_along() {
    let mut applier = fleet_of_six(&rings());
    let run = start(&mut applier, "one");
    rest(&mut applier, Agents { approve: false, ..WILLING });
    applier.edit(&run, |raw| raw["metadata"]["deletionTimestamp"] = json!(NOW));
    rest(&mut applier, Agents { approve: false, ..WILLING });
    assert!(applier.world().get(&run).is_none());
    let requests = GroupKind::new("placement.kubernetes-fleet.io", "ClusterApprovalRequest");
    assert_eq!(applier.world().of(&requests).count(), 0);
}

proptest! {
    #![proptest_config(property::config(12))]

    #[test]
    fn every_run_keeps_the_promises_to_its_end(
        limits in (1..5u32, 1..=100u32),
        wait_mins in 1..90u32,
        tasks in any::<[bool; 3]>(),
        pace in 1..5usize,
    ) {
        let approval = |wanted: bool| if wanted { json!([{"type": "Approval"}]) } else { json!([]) };
        let mut after = approval(tasks[1]);
        if tasks[2] {
            let wait = json!({"type": "TimedWait", "waitTime": format!("{wait_mins}m")});
            after.as_array_mut().unwrap().push(wait);
        }
        let stages = json!([
            {"name": "canary", "labelSelector": {"matchLabels": {"ring": "canary"}},
             "maxConcurrency": limits.0, "afterStageTasks": after},
            {"name": "prod", "labelSelector": {"matchLabels": {"ring": "prod"}},
             "maxConcurrency": format!("{}%", limits.1), "beforeStageTasks": approval(tasks[0])}]);
        let mut applier = fleet_of_six(&stages);
        let run = start(&mut applier, "one");
        let agents = Agents { pace, ..WILLING };
        let settled = settle(&mut applier, 200, |it| act(it, agents));
        let settled = settled.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(settled.history.findings().is_empty(), "{:?}", settled.history.findings());
        prop_assert_eq!(verdict(&settled, &run), Verdict::Done);
        prop_assert_eq!(bound(&applier), 6);
    }
}
