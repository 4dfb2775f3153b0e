//! Every guarantee finds the plan that breaks it: a check that cannot fail would be worth
//! nothing. The plans here are made by hand, as no engine of ours should make them.

use convoy_api::Object;
use convoy_check::{Finding, Guarantee, History, check};
use convoy_plan::gate::{Permit, grant};
use convoy_plan::{
    Action, GroupReport, Hold, HoldReason, MemberState, Plan, Step, Verb, Verdict, Why, World,
};
use convoy_testkit::{NOW, karpenter, node, object};
use serde_json::{Value, json};

/// What the gate gives where nothing limits.
fn permit() -> Permit {
    grant(1, &[]).permit().expect("nothing limits")
}

fn skyhook() -> Object {
    object("skyhook.nvidia.com/v1alpha1", "Skyhook", "gpu").spec(json!({})).build()
}

fn world(objects: Vec<Object>) -> World {
    objects.into_iter().collect()
}

fn plan(step: Step) -> Plan {
    Plan { now: NOW.parse().expect("an instant"), diagnostics: Vec::new(), steps: vec![step] }
}

fn broken(world: &World, step: Step) -> Vec<Guarantee> {
    let findings = check(world, &plan(step));
    findings.iter().map(|finding: &Finding| finding.guarantee).collect()
}

fn moving(rollout: &Object) -> Step {
    let mut step = Step::new("skyhook", rollout, Verdict::Moving);
    step.wake_at = "2026-01-01T01:00:00Z".parse().ok();
    step
}

fn group(states: &[MemberState]) -> GroupReport {
    let mut report = GroupReport::new("prod");
    for state in states {
        report.count(*state);
    }
    report
}

fn why() -> Why {
    Why::new("Test", "for the test")
}

#[test]
fn a_sound_step_has_no_findings() {
    let rollout = skyhook();
    let mut step = moving(&rollout);
    step.groups.push(group(&[MemberState::Moving, MemberState::Waiting]));
    step.holds.push(Hold::of_member("n2", HoldReason::Paused).in_group("prod"));
    assert_eq!(broken(&world(vec![rollout]), step), []);
}

#[test]
fn g1_finds_more_nodes_in_progress_than_the_ceiling() {
    let policy = object("skyhook.nvidia.com/v1alpha1", "DeploymentPolicy", "careful")
        .spec(json!({"default": {"budget": {"count": 1}}}))
        .build();
    let rollout = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "gpu")
        .spec(json!({"deploymentPolicy": "careful"}))
        .build();
    let nodes: Vec<Object> = ["n1", "n2"].map(|name| node(name).build()).to_vec();
    let start =
        json!({"metadata": {"annotations": {"skyhook.nvidia.com/status_gpu": "in_progress"}}});
    let mut step = moving(&rollout);
    step.decision = json!({"compartments": {"__default__": {"members": ["n1", "n2"]}}});
    step.actions = nodes
        .iter()
        .map(|node| Action::patch(Verb::Start(permit()), node, start.clone(), why()))
        .collect();
    let mut objects = nodes;
    objects.extend([policy, rollout]);
    assert_eq!(broken(&world(objects), step), [Guarantee::G1]);
}

#[test]
fn g1_finds_replicas_beyond_the_surge_and_below_the_promise() {
    let deployment = object("apps/v1", "Deployment", "web")
        .namespace("shop")
        .spec(json!({"replicas": 4, "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}))
        .build();
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
        "uid": deployment.uid(), "controller": true}]);
    let set = object("apps/v1", "ReplicaSet", "web-1")
        .namespace("shop")
        .with("/metadata/ownerReferences", owner)
        .spec(json!({"replicas": 4}))
        .status(json!({"availableReplicas": 4}))
        .build();
    let scaled = |replicas: u32| {
        let mut step = Step { dialect: "apps", ..moving(&deployment) };
        let patch = json!({"spec": {"replicas": replicas}});
        step.actions.push(Action::patch(Verb::Scale(permit()), &set, patch, why()));
        broken(&world(vec![deployment.clone(), set.clone()]), step)
    };
    assert_eq!(scaled(6), [Guarantee::G1]);
    assert_eq!(scaled(2), [Guarantee::G1]);
    assert_eq!(scaled(5), []);
    assert_eq!(scaled(3), []);
}

#[test]
fn g1_finds_a_placement_that_disturbs_too_many_clusters() {
    let placement =
        object("placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "shop")
            .spec(json!({"policy": {"placementType": "PickN", "numberOfClusters": 3},
            "strategy": {"rollingUpdate": {"maxUnavailable": 1}}}))
            .build();
    let binding = |name: &str| {
        object("placement.kubernetes-fleet.io/v1beta1", "ClusterResourceBinding", name)
            .label("kubernetes-fleet.io/parent-CRP", "shop")
            .spec(json!({"state": "Bound"}))
            .status(json!({"conditions": [{"type": "Available", "status": "True", "reason": "AllWorkAreAvailable",
                "observedGeneration": 1, "lastTransitionTime": "2025-12-31T00:00:00Z"}]}))
            .build()
    };
    let objects = vec![placement.clone(), binding("a"), binding("b"), binding("c")];
    let rolled = |names: Value| {
        let mut step = Step { dialect: "fleet", ..moving(&placement) };
        step.decision = json!({"roll": names, "remove": []});
        broken(&world(objects.clone()), step)
    };
    assert_eq!(rolled(json!(["a", "b"])), [Guarantee::G1]);
    assert_eq!(rolled(json!(["a"])), []);
}

#[test]
fn g1_finds_more_disruptions_than_a_reason_allows() {
    let pool = |budgets: Value| karpenter::pool("default", &json!({"budgets": budgets})).build();
    let members: Vec<Object> =
        ["n1", "n2", "n3"].into_iter().flat_map(|name| karpenter::pair("default", name)).collect();
    let of = |kind: &str, name: &str| {
        members.iter().find(|it| it.kind().kind == kind && it.name() == name).unwrap()
    };
    let begins = |name: &str, reason: &str| {
        let conditions = json!([{"type": "DisruptionReason", "status": "True", "reason": reason}]);
        let patch = json!({"status": {"conditions": conditions}});
        Action::patch_status(Verb::Record, of("NodeClaim", name), patch, why())
    };
    let taints = |name: &str| {
        let taint = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
        let patch = json!({"spec": {"taints": taint}});
        Action::patch(Verb::Taint, of("Node", name), patch, why())
    };
    let found = |budgets: Value, actions: Vec<Action>| {
        let pool = pool(budgets);
        let step = Step { dialect: "karpenter", actions, ..moving(&pool) };
        broken(&world(members.iter().cloned().chain([pool]).collect()), step)
    };
    let by_reason = json!([{"nodes": "1", "reasons": ["Drifted"]}, {"nodes": "2"}]);
    let over = [Guarantee::G1];
    let two = vec![begins("n1", "Drifted"), begins("n2", "Drifted")];
    assert_eq!(found(by_reason.clone(), two), over);
    let each = vec![taints("n1"), begins("n1", "Drifted"), begins("n2", "Empty")];
    assert_eq!(found(by_reason.clone(), each), []);
    let all = ["n1", "n2", "n3"].map(taints).to_vec();
    assert_eq!(found(by_reason, all), over, "for no reason that is known");
    let closed = json!([{"nodes": "100%"}, {"nodes": "1", "schedule": "bad", "duration": "1h"}]);
    assert_eq!(found(closed, vec![begins("n1", "Empty")]), over);
}

#[test]
fn g1_finds_a_group_that_grows_past_its_ceiling_between_two_plans() {
    let rollout = skyhook();
    let at = |moving_now: usize| {
        let mut step = moving(&rollout);
        let mut report = group(&vec![MemberState::Moving; moving_now]);
        report.ceiling = Some(2);
        step.groups.push(report);
        plan(step)
    };
    let world = world(vec![rollout.clone()]);
    let mut history = History::new();
    history.observe(&world, &at(2));
    assert_eq!(history.findings(), []);
    history.observe(&world, &at(3));
    assert_eq!(history.findings()[0].guarantee, Guarantee::G1);
}

#[test]
fn g3_finds_a_rollout_that_is_done_by_old_evidence() {
    let rollout = object("apps/v1", "Deployment", "web")
        .namespace("shop")
        .with("/metadata/generation", json!(2))
        .status(json!({"observedGeneration": 1}))
        .build();
    let step = Step::new("ocm", &rollout, Verdict::Done);
    assert_eq!(broken(&world(vec![rollout]), step), [Guarantee::G3]);
}

#[test]
fn g4_finds_members_in_no_state_and_members_that_wait_without_a_word() {
    let rollout = skyhook();
    let world = world(vec![rollout.clone()]);
    let mut lost = moving(&rollout);
    lost.groups.push(GroupReport { total: 2, done: 1, ..GroupReport::new("prod") });
    assert_eq!(broken(&world, lost), [Guarantee::G4]);
    let mut silent = moving(&rollout);
    silent.groups.push(group(&[MemberState::Waiting]));
    assert_eq!(broken(&world, silent), [Guarantee::G4]);
    let mut twice = moving(&rollout);
    twice.holds = vec![
        Hold::of_member("n1", HoldReason::Paused),
        Hold::of_member("n1", HoldReason::Disabled),
    ];
    assert_eq!(broken(&world, twice), [Guarantee::G4]);
}

#[test]
fn g6_finds_a_rollout_that_stands_still_without_a_word() {
    let rollout = skyhook();
    let world = world(vec![rollout.clone()]);
    for verdict in [Verdict::Moving, Verdict::Held, Verdict::Stopped, Verdict::Paused] {
        let step = Step::new("skyhook", &rollout, verdict);
        assert_eq!(broken(&world, step), [Guarantee::G6], "{verdict:?}");
    }
}

#[test]
fn g8_finds_a_status_that_grows_with_the_fleet() {
    let rollout = skyhook();
    let world = world(vec![rollout.clone()]);
    let mut step = moving(&rollout);
    let names: Vec<Value> = (0..100_000).map(|number| json!(format!("node-{number}"))).collect();
    step.status = Some(json!({"nodes": names}));
    assert_eq!(broken(&world, step), [Guarantee::G8]);
    let mut step = moving(&rollout);
    let by = (0..20).map(|number| format!("n{number}").into()).collect();
    let reason = HoldReason::BatchRunning { batch: 1, unfinished: 20, by };
    step.holds.push(Hold::of_rollout(reason));
    assert_eq!(broken(&world, step), [Guarantee::G8]);
}

#[test]
fn g9_finds_a_cordon_or_a_taint_lifted_that_is_not_ours() {
    let rollout = skyhook();
    let theirs = node("theirs").spec(json!({"unschedulable": true})).build();
    let shared = node("shared")
        .annotation("skyhook.nvidia.com/cordon_gpu", "true")
        .annotation("skyhook.nvidia.com/cordon_other", "true")
        .spec(json!({"unschedulable": true}))
        .build();
    let tainted = node("tainted")
        .spec(json!({"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]}))
        .build();
    let uncordon = json!({"spec": {"unschedulable": null},
        "metadata": {"annotations": {"skyhook.nvidia.com/cordon_gpu": null}}});
    for (target, patch) in
        [(&theirs, &uncordon), (&shared, &uncordon), (&tainted, &json!({"spec": {"taints": []}}))]
    {
        let mut step = moving(&rollout);
        step.actions.push(Action::patch(Verb::Uncordon, target, patch.clone(), why()));
        let world = world(vec![rollout.clone(), target.clone()]);
        assert_eq!(broken(&world, step), [Guarantee::G9], "{}", target.name());
    }
}

#[test]
fn g10_finds_timers_that_are_past_or_slept_through() {
    let rollout = skyhook();
    let world = world(vec![rollout.clone()]);
    let mut late = moving(&rollout);
    late.wake_at = Some("2025-12-31T00:00:00Z".parse().unwrap());
    assert_eq!(broken(&world, late), [Guarantee::G10]);
    let mut asleep = moving(&rollout);
    let until = "2026-01-01T00:10:00Z".parse().ok();
    asleep.holds.push(Hold::of_rollout(HoldReason::WindowClosed).until(until));
    assert_eq!(broken(&world, asleep), [Guarantee::G10]);
}
