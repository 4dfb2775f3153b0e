//! Which nodes consolidation takes, alone and together, and which it leaves.

use convoy_api::Object;
use convoy_testkit::{Builder, NOW, karpenter};
use serde_json::{Value, json};

use super::{disrupted, drifted, drifting, node, step};
use crate::dialect::Dialect;
use crate::dialect::karpenter::Karpenter;
use crate::{Action, Step, Verb, World, Write};

const TYPE: &str = "node.kubernetes.io/instance-type";

/// A pool that makes on-demand nodes of these types, and consolidates at once.
fn making(types: &[&str]) -> Builder {
    let is_in = |key: &str, values: Value| json!({"key": key, "operator": "In", "values": values});
    let types: Vec<String> = types.iter().map(|name| format!("{name}-amd64-linux")).collect();
    let requirements = json!([
        is_in(TYPE, json!(types)),
        is_in("karpenter.sh/capacity-type", json!(["on-demand"]))
    ]);
    let disruption = json!({"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]});
    karpenter::pool("default", &disruption).with("/spec/template/spec/requirements", requirements)
}

/// A node of a type, with one pod.
fn pair(name: &str, kind: &str, cpu: &str) -> Vec<Object> {
    let of_type = |builder: Builder| builder.label(TYPE, &format!("{kind}-amd64-linux")).build();
    let pod = karpenter::pod(&format!("p-{name}"), name, cpu).build();
    vec![of_type(karpenter::claim("default", name)), of_type(node(name)), pod]
}

#[test]
fn three_nodes_become_one_but_two_do_not_become_one_of_their_type() {
    let nodes = |names: &[&str], kind: &str, cpu: &str| -> Vec<Object> {
        names.iter().flat_map(|name| pair(name, kind, cpu)).collect()
    };
    // 0.217 an hour instead of 3 times 0.134; no two of the pods fit together onto one of these.
    let three = nodes(&["a", "b", "c"], "m-4x", "2");
    let merged = step(three.into_iter().chain([making(&["m-4x", "c-8x"]).build()]));
    assert_eq!(disrupted(&merged), ["a", "b", "c"]);
    // A new one of the same type could take both, but to delete one of them does as well.
    let two = nodes(&["a", "b"], "m-4x", "1");
    let kept = step(two.into_iter().chain([making(&["m-4x"]).build()]));
    assert_eq!(disrupted(&kept), ["a"]);
}

#[test]
fn pods_do_not_move_to_a_node_that_others_have_just_come_to() {
    let quiet = json!({"consolidateAfter": "1h", "budgets": [{"nodes": "100%"}]});
    let pool = || making(&["s-4x"]).with("/spec/disruption", quiet.clone()).build();
    let since = |name: &str, at: &str| {
        let claim = karpenter::claim("default", name).with("/status/lastPodEventTime", json!(at));
        [claim.build(), node(name).build(), karpenter::pod(&format!("p-{name}"), name, "1").build()]
    };
    let long_ago = "2025-12-31T22:00:00Z";
    let at = |event: &str| {
        let nodes = since("a", long_ago).into_iter().chain(since("b", event));
        step(nodes.chain([pool()]))
    };
    assert_eq!(disrupted(&at(long_ago)), ["a"]);
    assert_eq!(disrupted(&at("2025-12-31T23:30:00Z")), [""; 0]);
}

/// What starts of a pool.
fn started(objects: Vec<Object>, pool: &str) -> Vec<String> {
    let class = karpenter::node_class().build();
    let world: World = objects.into_iter().chain([class]).collect();
    let rollouts = Karpenter.rollouts(&world);
    let rollout = rollouts.into_iter().find(|rollout| rollout.name() == pool).unwrap();
    let step = Karpenter.step(&Karpenter.snapshot(&world, rollout), NOW.parse().unwrap());
    disrupted(&step).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_move_across_pools_has_to_be_worth_it_to_each_balanced_one() {
    let pool = |name: &str, policy: &str| {
        let disruption = json!({"consolidateAfter": "0s", "consolidationPolicy": policy,
            "budgets": [{"nodes": "100%"}]});
        karpenter::pool(name, &disruption).build()
    };
    let large = |builder: Builder| builder.label(TYPE, "s-64x-amd64-linux");
    let room =
        json!({"cpu": "63900m", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "20Gi"});
    let other = |policy: &str| {
        let mut objects = vec![pool("default", "Balanced"), pool("other", policy)];
        objects.extend(karpenter::pair("default", "a"));
        objects.extend(karpenter::pair("other", "b"));
        // Most of what the other pool costs, and hardly any of its pods.
        objects.push(large(karpenter::claim("other", "c")).build());
        let roomy =
            large(karpenter::node_of("other", "c")).with("/status/allocatable", room.clone());
        objects.push(roomy.annotation("karpenter.sh/do-not-disrupt", "true").build());
        objects.push(karpenter::pod("on-a", "a", "10m").build());
        objects.extend((0..20).map(|at| karpenter::pod(&format!("on-b-{at}"), "b", "10m").build()));
        objects
    };
    let both = |policy: &str| ["default", "other"].map(|name| started(other(policy), name));
    assert_eq!(both("WhenEmptyOrUnderutilized"), [vec!["a".to_owned()], vec!["b".to_owned()]]);
    assert_eq!(both("Balanced"), [vec!["a".to_owned()], vec![]]);
}

#[test]
fn a_node_with_a_pod_of_a_stateful_set_that_is_ending_is_not_empty() {
    let empty = || {
        let disruption = json!({"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty",
            "budgets": [{"nodes": "100%"}]});
        karpenter::pool("default", &disruption).build()
    };
    let owned = |kind: &str, builder: Builder| {
        let owner = json!([{"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "x", "controller": true}]);
        builder.with("/metadata/ownerReferences", owner).build()
    };
    let ending = || karpenter::pod("p", "n", "1").with("/metadata/deletionTimestamp", json!(NOW));
    let running = || karpenter::pod("p", "n", "1");
    let cases = [
        (owned("StatefulSet", ending()), false),
        (owned("ReplicaSet", ending()), true),
        (owned("DaemonSet", running()), true),
        (owned("ReplicaSet", running()), false),
    ];
    for (pod, is_empty) in cases {
        let name = pod.metadata()["ownerReferences"][0]["kind"].clone();
        let step = step(karpenter::pair("default", "n").into_iter().chain([empty(), pod]));
        assert_eq!(!disrupted(&step).is_empty(), is_empty, "{name}");
    }
}

#[test]
fn a_type_that_the_provider_no_longer_has_is_drift_after_an_hour() {
    let capacity = "karpenter.sh/capacity-type";
    let zone = "topology.kubernetes.io/zone";
    let cases = [
        ("known", (TYPE, "s-4x-amd64-linux"), "2025-12-31T00:00:00Z", false),
        ("unknown", (TYPE, "s-5x-amd64-linux"), "2025-12-31T00:00:00Z", true),
        ("unknown, young", (TYPE, "s-5x-amd64-linux"), "2025-12-31T23:30:00Z", false),
        ("another zone", (zone, "moon-1a"), "2025-12-31T00:00:00Z", true),
        ("reserved may be on demand", (capacity, "reserved"), "2025-12-31T00:00:00Z", false),
    ];
    for (case, (key, value), created, drifts) in cases {
        let claim = karpenter::claim("default", "n").label(key, value).created_at(created);
        let objects = [drifting(), claim.build(), node("n").label(key, value).build()];
        let step = step(objects);
        assert_eq!(!disrupted(&step).is_empty(), drifts, "{case}");
        let mut conditions = step.actions.iter().filter_map(conditions).flatten();
        let found = conditions.find(|entry| entry["type"] == "Drifted");
        let reason = found.map(|entry| entry["reason"].clone());
        assert_eq!(reason, drifts.then(|| json!("InstanceTypeNotFound")), "{case}");
    }
}

fn conditions(action: &Action) -> Option<&Vec<Value>> {
    let Write::Patch { patch, .. } = &action.write else { return None };
    patch.pointer("/status/conditions")?.as_array()
}

#[test]
fn a_command_whose_replacement_does_not_come_is_undone_after_ten_minutes() {
    let waiting = |since: &str| -> Step {
        let mut conditions: Vec<Value> =
            ["Launched", "Registered", "Initialized"].map(karpenter::is).into();
        conditions.push(json!({"type": "DisruptionReason", "status": "True", "reason": "Drifted",
            "message": "Drifted", "lastTransitionTime": since}));
        let note = json!({"id": "1", "replacements": ["new"]}).to_string();
        let claim = drifted("n")
            .with("/status/conditions", json!(conditions))
            .annotation("convoy.dev/disruption-command", &note);
        let taint = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
        let new = karpenter::claim("default", "new").status(json!({"providerID": "kwok://new"}));
        let objects = [claim, node("n").with("/spec/taints", taint), new];
        step(objects.map(Builder::build).into_iter().chain([drifting()]))
    };
    let untaints = |step: &Step| step.actions.iter().any(|action| action.verb == Verb::Untaint);
    assert!(!untaints(&waiting("2025-12-31T23:51:00Z")));
    assert!(untaints(&waiting("2025-12-31T23:50:00Z")));
}
