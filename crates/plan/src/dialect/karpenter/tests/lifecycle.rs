//! The life of a claim: stages in, writes out.

use convoy_api::Object;
use convoy_testkit::karpenter::node_class as class;
use convoy_testkit::{Builder, NOW, karpenter, object};
use serde_json::{Value, json};

use super::{drifting, pdb};
use crate::dialect::Dialect;
use crate::dialect::karpenter::Operator;
use crate::permission::uncovered;
use crate::{Action, Step, Verdict, World, Write};

/// A claim that was created now, with these requirements.
fn fresh(requirements: &Value) -> Builder {
    object("karpenter.sh/v1", "NodeClaim", "n")
        .label("karpenter.sh/nodepool", "default")
        .label("karpenter.kwok.sh/kwoknodeclass", "default")
        .created_at(NOW)
        .with("/metadata/finalizers", json!(["karpenter.sh/termination"]))
        .spec(json!({"requirements": requirements, "nodeClassRef":
            {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "resources": {"requests": {"cpu": "3"}}}))
}

/// A claim with these conditions, the first ones True since a time.
fn reached(kinds: &[&str], since: &str) -> Builder {
    let is = |kind: &&str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "",
        "lastTransitionTime": since})
    };
    let conditions: Vec<Value> = kinds.iter().map(is).collect();
    fresh(&json!([])).created_at(since).status(json!({"providerID": "kwok://n",
        "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3900m", "memory": "8Gi", "pods": "64"}, "conditions": conditions}))
}

fn step_at(objects: impl IntoIterator<Item = Object>, now: &str) -> Step {
    let world: World = objects.into_iter().collect();
    let operator = Operator::new();
    let claim = operator.rollouts(&world)[0];
    let step = operator.step(&operator.snapshot(&world, claim), now.parse().unwrap());
    assert_eq!(uncovered(operator.permissions(), None, &step), []);
    step
}

fn step(objects: impl IntoIterator<Item = Object>) -> Step {
    step_at(objects, NOW)
}

fn patch(action: &Action) -> &Value {
    let Write::Patch { patch, .. } = &action.write else { panic!("a patch: {action:?}") };
    patch
}

/// Status, reason and message of a condition that a step sets on the claim.
fn condition(step: &Step, kind: &str) -> [String; 3] {
    let conditions = step.actions.iter().filter_map(|action| match &action.write {
        Write::Patch { patch, .. } => patch.pointer("/status/conditions")?.as_array(),
        _ => None,
    });
    let found = conditions.flatten().find(|entry| entry["type"] == kind);
    let entry = found.unwrap_or_else(|| panic!("no {kind}: {step:?}"));
    ["status", "reason", "message"].map(|field| entry[field].as_str().unwrap().to_owned())
}

#[test]
fn a_claim_is_launched_as_the_cheapest_machine_that_does() {
    let step = step([class().build(), fresh(&json!([])).build()]);
    let labels = &patch(&step.actions[0])["metadata"]["labels"];
    // Three cpus do not fit onto a machine of two, and memory costs extra.
    assert_eq!(labels["node.kubernetes.io/instance-type"], "c-4x-amd64-linux");
    assert_eq!(labels["karpenter.sh/capacity-type"], "spot");
    let status = &patch(&step.actions[1])["status"];
    assert_eq!(status["providerID"], "kwok://n");
    assert_eq!(status["allocatable"]["cpu"], "3900m");
    assert_eq!(condition(&step, "Launched")[0], "True");
    let awaiting = ["Unknown", "AwaitingReconciliation", "object is awaiting reconciliation"];
    assert_eq!(condition(&step, "Registered"), awaiting);
    let root = ["Unknown", "ReconcilingDependents", "Registered=Unknown, Initialized=Unknown"];
    assert_eq!(condition(&step, "Ready"), root);
    let on_demand = json!([{"key": "karpenter.sh/capacity-type", "operator": "In",
        "values": ["on-demand"]}, {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]);
    let step = self::step([class().build(), fresh(&on_demand).build()]);
    let labels = &patch(&step.actions[0])["metadata"]["labels"];
    assert_eq!(labels["node.kubernetes.io/instance-type"], "c-4x-arm64-linux");
    assert_eq!(labels["karpenter.sh/capacity-type"], "on-demand");
}

#[test]
fn the_finalizer_comes_before_the_launch() {
    let bare = fresh(&json!([])).with("/metadata/finalizers", json!([])).build();
    let step = step([class().build(), bare]);
    assert_eq!(step.actions.len(), 1);
    let finalizers = &patch(&step.actions[0])["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["karpenter.sh/termination"]));
}

#[test]
fn a_claim_without_a_machine_is_given_up_after_a_pause() {
    let gpu = json!([{"key": "kubernetes.io/arch", "operator": "In", "values": ["s390x"]}]);
    let none = "no instance type meets the requirements and resource requests";
    let sold_out = class().annotation("convoy.dev/sold-out", "spot,on-demand").build();
    let unready =
        class().status(json!({"conditions": [{"type": "Ready", "status": "False"}]})).build();
    let cases = [
        (vec![class().build(), fresh(&gpu).build()], none, "insufficient_capacity"),
        (vec![sold_out, fresh(&json!([])).build()], none, "insufficient_capacity"),
        (
            vec![fresh(&json!([])).build()],
            "KWOKNodeClass default does not exist",
            "insufficient_capacity",
        ),
        (
            vec![unready, fresh(&json!([])).build()],
            "KWOKNodeClass default is not ready",
            "nodeclass_not_ready",
        ),
    ];
    for (objects, message, reason) in cases {
        let waits = step(objects.clone());
        assert_eq!(condition(&waits, "Launched"), ["Unknown", "LaunchFailed", message]);
        assert_eq!(waits.wake_at, Some("2026-01-01T00:00:10Z".parse().unwrap()));
        let ends = step_at(objects, "2026-01-01T00:00:10Z");
        let [Action { write: Write::Delete { .. }, why, .. }] = &ends.actions[..] else {
            panic!("{ends:?}")
        };
        assert_eq!(why.reason, reason);
    }
    let other = fresh(&json!([])).with("/spec/nodeClassRef/group", json!("karpenter.k8s.aws"));
    let foreign = step([other.build()]);
    assert_eq!(foreign.holds.len(), 1, "{foreign:?}");
}

#[test]
fn a_claim_without_a_pool_goes_with_its_node() {
    let claim = || reached(&["Launched", "Registered", "Initialized"], NOW).build();
    let node = object("v1", "Node", "n")
        .with("/metadata/finalizers", json!(["karpenter.sh/termination"]))
        .with("/metadata/deletionTimestamp", json!(NOW))
        .spec(json!({"providerID": "kwok://n"}))
        .build();
    let goes = step([class().build(), claim(), node.clone()]);
    let [Action { write: Write::Delete { .. }, why, target, .. }] = &goes.actions[..] else {
        panic!("{goes:?}")
    };
    assert_eq!((why.reason, target.kind.kind.as_str()), ("NodeDeleted", "NodeClaim"));
    let pool = object("karpenter.sh/v1", "NodePool", "default").build();
    let stays = step([class().build(), claim(), node, pool]);
    let is_deletion = |action: &Action| matches!(action.write, Write::Delete { .. });
    assert!(!stays.actions.iter().any(is_deletion), "the pool sees to it: {stays:?}");
}

#[test]
fn a_machine_appears_after_the_delay_of_its_class() {
    let slow = || class().spec(json!({"nodeRegistrationDelay": "30s"})).build();
    let claim = || reached(&["Launched"], NOW).build();
    let boots = step([slow(), claim()]);
    assert_eq!(boots.wake_at, Some("2026-01-01T00:00:30Z".parse().unwrap()));
    let missing = ["Unknown", "NodeNotFound", "Node not registered with cluster"];
    assert_eq!(condition(&boots, "Registered"), missing);
    let up = step_at([slow(), claim()], "2026-01-01T00:00:30Z");
    let Write::Create { object: node } = &up.actions[0].write else { panic!("{up:?}") };
    assert_eq!(node["spec"]["providerID"], "kwok://n");
    let taint = json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]);
    assert_eq!(node["spec"]["taints"], taint);
    assert_eq!(node["metadata"]["annotations"]["sim.convoy.dev/node"], "true");
}

#[test]
fn a_node_is_registered_in_one_patch_and_initialized_when_it_is_fit() {
    let startup = json!([{"key": "agent", "value": "out", "effect": "NoSchedule"}]);
    let joins = reached(&["Launched"], NOW).with("/spec/startupTaints", startup.clone());
    let unregistered = json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
        {"key": "other", "effect": "NoSchedule"}]);
    let node = |taints: &Value| {
        object("v1", "Node", "n")
            .spec(json!({"providerID": "kwok://n", "taints": taints}))
            .status(json!({"allocatable": {"cpu": "3900m"},
                "conditions": [{"type": "Ready", "status": "True"}]}))
    };
    let registers = step([class().build(), joins.build(), node(&unregistered).build()]);
    let joined = patch(&registers.actions[0]);
    assert_eq!(joined["metadata"]["labels"]["karpenter.sh/registered"], "true");
    assert_eq!(joined["metadata"]["finalizers"], json!(["karpenter.sh/termination"]));
    assert_eq!(joined["metadata"]["ownerReferences"][0]["kind"], "NodeClaim");
    let taints = json!([{"key": "other", "effect": "NoSchedule"}, startup[0]]);
    assert_eq!(joined["spec"]["taints"], taints);
    assert_eq!(condition(&registers, "Registered")[0], "True");
    let claim = || {
        reached(&["Launched", "Registered"], NOW)
            .with("/spec/startupTaints", startup.clone())
            .with("/status/nodeName", json!("n"))
            .build()
    };
    let down = node(&json!([])).status(json!({"conditions": []}));
    let bare =
        node(&json!([])).status(json!({"conditions": [{"type": "Ready", "status": "True"}]}));
    let not_ready = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]);
    let cases = [
        (down, "NodeNotReady", "Node status is NotReady"),
        (
            node(&startup),
            "StartupTaintsExist",
            "StartupTaint \"agent=out:NoSchedule\" still exists",
        ),
        (
            node(&not_ready),
            "KnownEphemeralTaintsExist",
            "KnownEphemeralTaint \"node.kubernetes.io/not-ready:NoExecute\" still exists",
        ),
        (bare, "ResourceNotRegistered", "Resource \"cpu\" was requested but not registered"),
    ];
    for (node, reason, message) in cases {
        let waits = step([class().build(), claim(), node.build()]);
        assert_eq!(condition(&waits, "Initialized"), ["Unknown", reason, message]);
    }
    let fit = step([class().build(), claim(), node(&json!([])).build()]);
    assert_eq!(patch(&fit.actions[0])["metadata"]["labels"]["karpenter.sh/initialized"], "true");
    assert_eq!(condition(&fit, "Ready"), ["True", "Ready", ""]);
}

#[test]
fn claims_that_do_not_get_on_are_given_up() {
    let given_up = |objects: Vec<Object>, now: &str| {
        let step = step_at(objects, now);
        step.actions.iter().find_map(|action| match &action.write {
            Write::Delete { .. } => Some(action.why.reason),
            _ => None,
        })
    };
    let other =
        || fresh(&json!([])).with("/spec/nodeClassRef/group", json!("karpenter.k8s.aws")).build();
    assert_eq!(given_up(vec![other()], "2026-01-01T00:04:59Z"), None);
    assert_eq!(given_up(vec![other()], "2026-01-01T00:05:00Z"), Some("launch_timeout"));
    let slow = || class().spec(json!({"nodeRegistrationDelay": "1h"})).build();
    let launched = || reached(&["Launched"], NOW).build();
    assert_eq!(given_up(vec![slow(), launched()], "2026-01-01T00:14:59Z"), None);
    let late = given_up(vec![slow(), launched()], "2026-01-01T00:15:00Z");
    assert_eq!(late, Some("registration_timeout"));
    let lost = reached(&["Launched", "Registered", "Initialized"], NOW)
        .with("/status/nodeName", json!("n"));
    assert_eq!(given_up(vec![class().build(), lost.build()], NOW), Some("garbage_collected"));
}

#[test]
fn a_node_keeps_its_own_taints_where_its_claim_says_so() {
    let taints = json!([{"key": "team", "value": "a", "effect": "NoSchedule"}]);
    let own = json!([{"key": "own", "effect": "NoSchedule"},
        {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]);
    let registered = |value: &str| {
        let claim = reached(&["Launched"], NOW)
            .label("karpenter.sh/do-not-sync-taints", value)
            .with("/spec/taints", taints.clone())
            .with("/spec/startupTaints", json!([{"key": "agent", "effect": "NoExecute"}]));
        let node = object("v1", "Node", "n").spec(json!({"providerID": "kwok://n", "taints": own}));
        let step = step([class().build(), claim.build(), node.build()]);
        let keys = patch(&step.actions[0])["spec"]["taints"].as_array().unwrap().clone();
        keys.iter().map(|taint| taint["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(registered("true"), ["own"]);
    assert_eq!(registered("false"), ["own", "team", "agent"]);
}

#[test]
fn several_nodes_of_one_machine_are_final() {
    let node =
        |name: &str| object("v1", "Node", name).spec(json!({"providerID": "kwok://n"})).build();
    let claim = reached(&["Launched"], NOW).build();
    let step = step([class().build(), claim.clone(), node("a"), node("b")]);
    assert_eq!(condition(&step, "Registered")[..2], ["False", "MultipleNodesFound"]);
    let mut raw = claim.raw().clone();
    let conditions = raw["status"]["conditions"].as_array_mut().unwrap();
    conditions
        .push(json!({"type": "Registered", "status": "False", "reason": "MultipleNodesFound",
        "message": "Invariant violated, matched multiple nodes", "lastTransitionTime": NOW}));
    let later = self::step([class().build(), claim.with_raw(raw), node("a")]);
    assert!(later.actions.iter().all(|action| action.target.kind.kind != "Node"), "{later:?}");
}

#[test]
fn a_claim_that_is_ready_writes_nothing() {
    let done: Vec<Object> =
        karpenter::pair("default", "n").into_iter().chain([class().build()]).collect();
    let step = step(done);
    assert_eq!((step.actions.len(), step.verdict, step.wake_at), (0, Verdict::Done, None));
}

#[test]
fn a_claim_whose_pool_is_gone_is_drained_and_released() {
    let deleted =
        |builder: Builder| builder.with("/metadata/deletionTimestamp", json!(NOW)).build();
    let claim = || deleted(karpenter::claim("default", "n"));
    let node = || deleted(karpenter::node_of("default", "n"));
    let pod = karpenter::pod("p", "n", "1").build();
    let drains = step([claim(), node(), pod.clone()]);
    assert!(drains.actions.iter().any(|it| matches!(it.write, Write::Evict { .. })), "{drains:?}");
    let held = step([claim(), node(), pod.clone(), pdb("web", 0)]);
    assert!(!held.actions.iter().any(|it| matches!(it.write, Write::Evict { .. })), "{held:?}");
    assert_eq!(held.verdict, Verdict::Moving, "it is tainted first");
    let pooled = step([drifting(), claim(), node(), pod]);
    assert_eq!(pooled.actions.len(), 0, "its pool sees to it");
    let last = step([claim()]);
    let finalizers = last.actions.iter().find_map(|it| patch(it).pointer("/metadata/finalizers"));
    assert_eq!(finalizers, Some(&json!([])));
}

#[test]
fn pods_that_fit_nowhere_get_nodes_once_every_claim_is_launched() {
    let ready = |raw: Object| {
        let mut value = raw.raw().clone();
        value["status"] = json!({"conditions": [karpenter::is("Ready")]});
        raw.with_raw(value)
    };
    let pod = |name: &str| {
        object("v1", "Pod", name)
            .namespace("default")
            .spec(json!({"containers": [{"name": "c", "image": "i",
                "resources": {"requests": {"cpu": "3"}}}]}))
            .status(json!({"phase": "Pending", "conditions":
                [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}))
            .build()
    };
    let created = |objects: Vec<Object>| {
        let step = super::step(objects);
        step.actions.iter().filter(|action| super::creates(action)).count()
    };
    assert_eq!(created(vec![ready(drifting()), pod("p"), pod("q")]), 1, "one node for both");
    assert_eq!(created(vec![drifting(), pod("p"), pod("q")]), 0, "the pool is not ready");
    let unlaunched = || fresh(&json!([])).build();
    assert_eq!(created(vec![ready(drifting()), pod("p"), unlaunched()]), 0, "wait for its launch");
    let launched = reached(&["Launched"], NOW).build();
    assert_eq!(created(vec![ready(drifting()), pod("p"), launched]), 0, "one is on its way");
}

#[test]
fn a_node_that_is_smaller_than_expected_is_told() {
    let kinds = ["Launched", "Registered", "Initialized", "Ready"];
    let claim = || reached(&kinds, NOW).with("/status/nodeName", json!("n"));
    let node = |cpu: &str| {
        object("v1", "Node", "n")
            .label("karpenter.kwok.sh/kwoknodeclass", "default")
            .spec(json!({"providerID": "kwok://n"}))
            .status(json!({"capacity": {"cpu": cpu}}))
            .build()
    };
    let small = step([class().build(), claim().build(), node("3")]);
    let said = ["False", "ConsistencyCheckFailed", "Consistency Check Failed"];
    assert_eq!(condition(&small, "ConsistentStateFound"), said);
    let told = "the Node has 75% of the cpu that its NodeClaim expects";
    let event = &small.events[0];
    assert_eq!((event.reason.as_str(), event.message.as_str()), ("FailedConsistencyCheck", told));
    let fit = step([class().build(), claim().build(), node("3600m")]);
    assert_eq!(condition(&fit, "ConsistentStateFound")[0], "True");
}

#[test]
fn claims_and_nodes_without_the_label_of_their_class_get_it() {
    let key = "karpenter.kwok.sh/kwoknodeclass";
    let without = |object: Object| {
        let mut raw = object.raw().clone();
        raw["metadata"]["labels"].as_object_mut().unwrap().shift_remove(key);
        object.with_raw(raw)
    };
    let pair = karpenter::pair("default", "n").map(without);
    let step = step(pair.into_iter().chain([class().build()]));
    let labelled: Vec<&str> = step
        .actions
        .iter()
        .filter(|action| patch(action)["metadata"]["labels"][key] == "default")
        .map(|action| action.target.kind.kind.as_str())
        .collect();
    assert_eq!(labelled, ["Node", "NodeClaim"]);
}
