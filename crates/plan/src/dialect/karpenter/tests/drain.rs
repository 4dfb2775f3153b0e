//! Nodes that are emptied before they go: which pods are waited for, in which order they are
//! evicted, and Nodes that have no claim of their own.

use convoy_api::Object;
use convoy_testkit::{Builder, NOW, karpenter, object};
use serde_json::{Value, json};

use super::{drifted, drifting, evicted, leaving, node, pdb};
use crate::dialect::Dialect;
use crate::dialect::karpenter::Operator;
use crate::hold::HoldReason;
use crate::permission::uncovered;
use crate::{Action, Step, World, Write};

fn deleted(builder: Builder) -> Builder {
    builder.with("/metadata/deletionTimestamp", json!(NOW))
}

fn is_down(builder: Builder) -> Builder {
    builder.with("/status/conditions", json!([{"type": "Ready", "status": "False"}]))
}

fn pod(name: &str) -> Builder {
    karpenter::pod(name, "n", "1")
}

fn patch(action: &Action) -> Option<&Value> {
    match &action.write {
        Write::Patch { patch, .. } => Some(patch),
        _ => None,
    }
}

/// The kinds of the objects that a step takes our finalizer off.
fn released(step: &Step) -> Vec<&str> {
    let is_it = |action: &&Action| {
        patch(action).and_then(|patch| patch.pointer("/metadata/finalizers")) == Some(&json!([]))
    };
    step.actions.iter().filter(is_it).map(|action| action.target.kind.kind.as_str()).collect()
}

/// The condition that a step gives to the claim, as status and reason.
fn condition(step: &Step, kind: &str) -> Option<(String, String)> {
    let conditions = step.actions.iter().filter_map(patch);
    let mut entries = conditions
        .filter_map(|patch| patch.pointer("/status/conditions")?.as_array())
        .flatten()
        .filter(|entry| entry["type"] == kind);
    let word = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
    entries.next().map(|entry| (word(entry, "status"), word(entry, "reason")))
}

fn world_of(objects: impl IntoIterator<Item = Object>) -> World {
    objects.into_iter().chain([karpenter::node_class().build()]).collect()
}

/// The step of the controller about an object.
fn step_about(world: &World, kind: &str, name: &str) -> Option<Step> {
    let operator = Operator::new();
    let rollouts = operator.rollouts(world);
    let rollout = rollouts.into_iter().find(|it| it.kind().kind == kind && it.name() == name)?;
    let step = operator.step(&operator.snapshot(world, rollout), NOW.parse().unwrap());
    assert_eq!(uncovered(operator.permissions(), None, &step), []);
    Some(step)
}

#[test]
fn a_node_without_a_claim_is_drained_and_released() {
    let end = |node: Builder, others: Vec<Object>| {
        step_about(&world_of(others.into_iter().chain([node.build()])), "Node", "n")
    };
    let leaves = || deleted(node("n"));
    let drains = end(leaves(), vec![pod("p").build()]).unwrap();
    assert_eq!(evicted(&drains).len(), 1);
    let tainted = drains.actions.iter().find_map(|action| patch(action)?.pointer("/spec/taints"));
    assert_eq!(tainted.unwrap()[0]["key"], "karpenter.sh/disrupted");
    assert_eq!(released(&drains), [""; 0]);
    let held = end(leaves(), vec![pod("p").build(), pdb("web", 0)]).unwrap();
    assert_eq!((evicted(&held).len(), released(&held)), (0, vec![]));
    let attached = end(leaves(), vec![attachment("a", "n", "pv-1")]).unwrap();
    assert_eq!(released(&attached), [""; 0]);
    // Nothing says since when it is drained: no least time.
    let ends = end(leaves(), vec![]).unwrap();
    assert_eq!(released(&ends), ["Node"]);
    let lost = end(is_down(leaves()), vec![pod("p").build()]).unwrap();
    assert_eq!((evicted(&lost).len(), released(&lost)), (0, vec!["Node"]));
    let class = "/metadata/labels/karpenter.kwok.sh~1kwoknodeclass";
    let others = [
        node("n"),
        leaves().with("/metadata/finalizers", json!([])),
        leaves().with(class, Value::Null),
    ];
    for (at, other) in others.into_iter().enumerate() {
        assert!(end(other, vec![]).is_none(), "case {at} is not ours to end");
    }
    let owned = end(leaves(), vec![karpenter::claim("default", "n").build()]);
    assert!(owned.is_none(), "its claim sees to it");
}

#[test]
fn what_concerns_a_node_without_a_claim_is_looked_at_again() {
    let objects = [
        deleted(node("n")).build(),
        pod("p").build(),
        pdb("web", 0),
        attachment("a", "n", "pv-1"),
        karpenter::claim("default", "m").build(),
    ];
    let world = world_of(objects.clone());
    let node = objects[0].key();
    let operator = Operator::new();
    for (at, object) in objects.iter().enumerate() {
        let found = operator.affected(&world, object.key());
        assert_eq!(found.contains(node), at < 4, "{}", object.key());
    }
}

#[test]
fn of_several_claims_with_one_machine_none_is_the_nodes_own() {
    let twin = |name: &str| {
        deleted(karpenter::claim("default", name)).with("/status/providerID", json!("kwok://n"))
    };
    let objects = || {
        [twin("n"), twin("m"), deleted(node("n"))]
            .map(Builder::build)
            .into_iter()
            .chain([drifting()])
    };
    let world = world_of(objects().chain([pod("p").build()]));
    let of_node = step_about(&world, "Node", "n").unwrap();
    assert_eq!(evicted(&of_node).len(), 1);
    let of_pool = step_about(&world, "NodePool", "default").unwrap();
    assert_eq!((evicted(&of_pool).len(), released(&of_pool)), (0, vec![]));
    assert_eq!(condition(&of_pool, "Drained"), None);
    let on = "Node n to be gone, which other NodeClaims have too".to_owned();
    let waits: Vec<_> = of_pool.holds.iter().filter(|hold| hold.member.is_some()).collect();
    assert_eq!(waits.len(), 2);
    assert!(waits.iter().all(|hold| hold.reason == HoldReason::Depends { on: on.clone() }));
    let without_pool = world_of([twin("n"), twin("m"), deleted(node("n"))].map(Builder::build));
    for name in ["n", "m"] {
        let step = step_about(&without_pool, "NodeClaim", name).unwrap();
        assert_eq!(released(&step), [""; 0], "{name}");
    }
    let gone = world_of([twin("n"), twin("m")].map(Builder::build).into_iter().chain([drifting()]));
    let of_pool = step_about(&gone, "NodePool", "default").unwrap();
    assert_eq!(released(&of_pool), ["NodeClaim", "NodeClaim"]);
}

#[test]
fn a_node_whose_machine_is_lost_is_not_drained() {
    let end = |claim: Builder, node: Builder| {
        let objects = [deleted(claim), deleted(node), pod("p")].map(Builder::build);
        super::step(objects.into_iter().chain([drifting()]))
    };
    let claim = || karpenter::claim("default", "n");
    let lost = end(claim(), is_down(node("n")));
    assert_eq!((evicted(&lost).len(), released(&lost)), (0, vec!["Node"]));
    let runs = end(claim(), node("n"));
    assert_eq!((evicted(&runs).len(), released(&runs)), (1, vec![]));
    let foreign = || claim().with("/spec/nodeClassRef/group", json!("karpenter.k8s.aws"));
    let unknown = end(foreign(), is_down(node("n")));
    assert_eq!(
        (evicted(&unknown).len(), released(&unknown)),
        (1, vec![]),
        "nobody said it is gone"
    );
    let told = foreign().annotation("convoy.dev/instance-state", "Terminated");
    let told = end(told, is_down(node("n")));
    assert_eq!((evicted(&told).len(), released(&told)), (0, vec!["Node"]));
}

fn attachment(name: &str, node: &str, volume: &str) -> Object {
    object("storage.k8s.io/v1", "VolumeAttachment", name)
        .spec(json!({"nodeName": node, "source": {"persistentVolumeName": volume}}))
        .build()
}

/// A claim that is drained since a while.
fn drained() -> Builder {
    let mut conditions: Vec<Value> =
        ["Launched", "Registered", "Initialized"].map(karpenter::is).into();
    conditions.push(karpenter::is("Drained"));
    drifted("n").with("/status/conditions", json!(conditions))
}

#[test]
fn volumes_that_are_attached_hold_a_node_until_its_deadline() {
    let both = || vec![attachment("a", "n", "pv-1"), attachment("b", "n", "pv-2")];
    let waits = leaving(drained(), both());
    assert_eq!(released(&waits), [""; 0]);
    let awaited = ("Unknown".to_owned(), "AwaitingVolumeDetachment".to_owned());
    assert_eq!(condition(&waits, "VolumesDetached"), Some(awaited));
    let told: Vec<&str> = waits.events.iter().map(|event| event.message.as_str()).collect();
    assert!(told.contains(&"Awaiting the deletion of VolumeAttachments (a, b)"), "{told:?}");
    let detached = ("True".to_owned(), "VolumesDetached".to_owned());
    for others in [vec![], vec![attachment("a", "m", "pv-1")], vec![attachment("a", "n", "")]] {
        let goes = leaving(drained(), others);
        assert_eq!(condition(&goes, "VolumesDetached"), Some(detached.clone()));
        assert_eq!(released(&goes), ["Node"]);
    }
    let late = drained().annotation("karpenter.sh/nodeclaim-termination-timestamp", NOW);
    let late = leaving(late, both());
    let elapsed = ("False".to_owned(), "TerminationGracePeriodElapsed".to_owned());
    assert_eq!(condition(&late, "VolumesDetached"), Some(elapsed));
    assert_eq!(released(&late), ["Node"]);
}

#[test]
fn a_node_is_draining_for_at_least_five_seconds() {
    let draining = |since: &str| {
        let mut conditions: Vec<Value> =
            ["Launched", "Registered", "Initialized"].map(karpenter::is).into();
        conditions.push(json!({"type": "Drained", "status": "Unknown", "reason": "Draining",
            "message": "", "lastTransitionTime": since}));
        leaving(drifted("n").with("/status/conditions", json!(conditions)), Vec::new())
    };
    let begins = leaving(drifted("n"), Vec::new());
    let unknown = ("Unknown".to_owned(), "Draining".to_owned());
    assert_eq!(condition(&begins, "Drained"), Some(unknown));
    assert_eq!(begins.wake_at, Some("2026-01-01T00:00:05Z".parse().unwrap()));
    let early = draining("2025-12-31T23:59:56Z");
    assert_eq!(early.wake_at, Some("2026-01-01T00:00:01Z".parse().unwrap()));
    assert_eq!((condition(&early, "Drained"), released(&early)), (None, vec![]));
    let done = draining("2025-12-31T23:59:55Z");
    let drained = ("True".to_owned(), "Drained".to_owned());
    assert_eq!((condition(&done, "Drained"), released(&done)), (Some(drained), vec!["Node"]));
}

/// Whether a drain waits for a pod, and whether it evicts it.
#[test]
fn pods_that_stay_or_are_as_good_as_gone_are_not_waited_for() {
    let disrupted = json!([{"key": "karpenter.sh/disrupted", "operator": "Exists"}]);
    let owned = |kind: &str| json!([{"apiVersion": "v1", "kind": kind, "name": "x", "uid": "x", "controller": true}]);
    let ending = |at: &str| pod("p").with("/metadata/deletionTimestamp", json!(at));
    let cases = [
        ("plain", pod("p"), (true, true)),
        ("finished", pod("p").with("/status/phase", json!("Succeeded")), (false, false)),
        ("tolerates the taint", pod("p").with("/spec/tolerations", disrupted), (false, false)),
        ("mirror", pod("p").with("/metadata/ownerReferences", owned("Node")), (false, false)),
        (
            "of a DaemonSet",
            pod("p").with("/metadata/ownerReferences", owned("DaemonSet")),
            (true, true),
        ),
        ("just terminating", ending(NOW), (true, false)),
        ("a minute late", ending("2025-12-31T23:59:00Z"), (true, false)),
        ("more than that", ending("2025-12-31T23:58:59Z"), (false, false)),
    ];
    for (case, pod, expected) in cases {
        let step = leaving(drifted("n"), vec![pod.build()]);
        let is_waited =
            step.holds.iter().any(|hold| matches!(hold.reason, HoldReason::Draining { pods: 1 }));
        assert_eq!((is_waited, !evicted(&step).is_empty()), expected, "{case}");
    }
}

#[test]
fn a_node_that_goes_is_closed_to_pods_and_to_traffic() {
    let step = leaving(drifted("n"), vec![pod("p").build()]);
    let closed = step.actions.iter().filter_map(patch).find(|it| it.get("spec").is_some()).unwrap();
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    assert_eq!(closed["metadata"]["labels"][label], "karpenter");
    let taint = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
    assert_eq!(closed["spec"]["taints"], taint);
}

#[test]
fn pods_of_daemon_sets_and_critical_pods_are_evicted_last() {
    let set = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "x", "controller": true}]);
    let owners = "/metadata/ownerReferences";
    let critical = |builder: Builder| {
        builder.with("/spec/priorityClassName", json!("system-cluster-critical"))
    };
    let groups = [
        pod("plain"),
        pod("agent").with(owners, set.clone()),
        critical(pod("critical")),
        critical(pod("critical-agent").with(owners, set)),
    ];
    let groups: Vec<Object> = groups.map(Builder::build).into();
    for first in 0..groups.len() {
        let step = leaving(drifted("n"), groups[first..].to_vec());
        let evicted: Vec<_> = evicted(&step).iter().map(|key| key.name.clone()).collect();
        assert_eq!(evicted, [groups[first].name().clone()]);
    }
}
