//! Cases in which a decision used to differ from upstream's.

use convoy_api::Object;
use convoy_testkit::{Builder, karpenter, object};
use serde_json::{Value, json};

use super::{creates, disrupted, drifted, drifting, node, pool, step};
use crate::diagnostic::Severity;
use crate::dialect::Dialect;
use crate::dialect::karpenter::Karpenter;
use crate::{HoldReason, Step, Verb, Write};

/// A pod without a node, with what the scheduler says about it.
fn waiting(name: &str, conditions: &Value) -> Builder {
    object("v1", "Pod", name)
        .namespace("default")
        .spec(json!({"containers":
            [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": "1"}}}]}))
        .status(json!({"phase": "Pending", "conditions": conditions}))
}

fn refused(reason: &str) -> Value {
    json!([{"type": "PodScheduled", "status": "False", "reason": reason}])
}

fn owned_by(kind: &str) -> Value {
    json!([{"apiVersion": "v1", "kind": kind, "name": "x", "uid": "x", "controller": true}])
}

#[test]
fn only_pods_that_the_scheduler_refused_nominate_a_node() {
    let empty = || pool(&json!({"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}));
    let refused = |name: &str| waiting(name, &refused("Unschedulable"));
    let owner = "/metadata/ownerReferences";
    let cases = [
        ("refused", refused("p"), true),
        ("gated", waiting("p", &self::refused("SchedulingGated")), false),
        ("not looked at", waiting("p", &json!([])), false),
        ("preempting", refused("p").with("/status/nominatedNodeName", json!("n")), false),
        ("of a DaemonSet", refused("p").with(owner, owned_by("DaemonSet")), false),
        ("mirror", refused("p").with(owner, owned_by("Node")), false),
        ("finished", refused("p").with("/status/phase", json!("Failed")), false),
    ];
    for (case, pod, nominates) in cases {
        let pair = karpenter::pair("default", "n");
        let step = step(pair.into_iter().chain([empty(), pod.build()]));
        let why = &step.decision["notDisruptable"]["n"];
        assert_eq!(*why == "node is nominated for a pending pod", nominates, "{case}: {why}");
        assert_eq!(disrupted(&step).is_empty(), nominates, "{case}");
    }
}

#[test]
fn a_claims_labels_do_not_stand_in_for_those_of_its_registered_node() {
    let policy = || pool(&json!({"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}));
    let kind = "node.kubernetes.io/instance-type";
    let objects = |node: Builder| {
        let large = karpenter::claim("default", "n").label(kind, "s-64x-amd64-linux");
        [policy(), large.build(), node.build(), karpenter::pod("p", "n", "2").build()]
    };
    let large = || node("n").label(kind, "s-64x-amd64-linux");
    assert_eq!(disrupted(&step(objects(large()))), ["n"]);
    for key in [kind, "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"] {
        let pointer = format!("/metadata/labels/{}", key.replace('/', "~1"));
        let step = step(objects(large().with(&pointer, Value::Null)));
        assert_eq!(disrupted(&step), [""; 0], "{key}");
    }
}

/// The conditions and annotations that the step gives to a claim.
fn patched(step: &Step, name: &str) -> (Value, Value) {
    let (mut conditions, mut annotations) = (Value::Null, json!({}));
    for action in step.actions.iter().filter(|action| action.target.name == name) {
        let Write::Patch { patch, .. } = &action.write else { continue };
        if let Some(found) = patch.pointer("/status/conditions") {
            conditions = found.clone();
        }
        if let Some(found) = patch.pointer("/metadata/annotations") {
            annotations = found.clone();
        }
    }
    (conditions, annotations)
}

#[test]
fn migrating_the_hash_keeps_a_drifted_claim_drifted() {
    let version = "karpenter.sh/nodepool-hash-version";
    let closed = || {
        let pool = karpenter::pool(
            "default",
            &json!({"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}),
        );
        pool.annotation(version, "v2").annotation("karpenter.sh/nodepool-hash", "17").build()
    };
    let mut conditions: Vec<Value> =
        ["Launched", "Registered", "Initialized", "Ready"].map(karpenter::is).into();
    let plain = drifted("n").annotation(version, "v2");
    let mut mark = karpenter::is("Drifted");
    mark["reason"] = json!("NodePoolDrifted");
    conditions.push(mark);
    let marked =
        drifted("m").annotation(version, "v2").with("/status/conditions", json!(conditions));
    let step =
        step([closed(), plain.build(), node("n").build(), marked.build(), node("m").build()]);
    let (_, annotations) = patched(&step, "n");
    assert_eq!(annotations, json!({"karpenter.sh/nodepool-hash": karpenter::HASH, version: "v3"}));
    let (conditions, annotations) = patched(&step, "m");
    assert_eq!(annotations, json!({version: "v3"}), "its own hash stays, and so does its drift");
    assert_eq!(conditions, Value::Null, "Drifted is left as it is");
    let held = step.holds.iter().find(|hold| hold.member.as_deref() == Some("m")).unwrap();
    assert!(matches!(held.reason, HoldReason::BudgetSpent { .. }), "{:?}", held.reason);
}

#[test]
fn a_claim_whose_instance_is_terminating_is_no_candidate() {
    let mut conditions: Vec<Value> =
        ["Launched", "Registered", "Initialized"].map(karpenter::is).into();
    conditions.push(karpenter::is("InstanceTerminating"));
    let claim = drifted("n").with("/status/conditions", json!(conditions));
    let tainted = node("n")
        .with("/spec/taints", json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]));
    let step = step([drifting(), claim.build(), tainted.build()]);
    assert_eq!(disrupted(&step), [""; 0]);
    assert_eq!(step.decision["notDisruptable"]["n"], "node is deleting or marked for deletion");
    assert!(!step.actions.iter().any(|action| action.verb == Verb::Untaint), "{step:?}");
}

#[test]
fn only_the_taint_with_our_effect_is_ours() {
    let ours = json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"});
    let other = json!({"key": "karpenter.sh/disrupted", "effect": "NoExecute"});
    let taints_after = |objects: Vec<Object>| {
        let step = step(objects);
        let patch =
            step.actions.iter().find(|action| matches!(action.verb, Verb::Taint | Verb::Untaint));
        patch.map(|action| {
            let Write::Patch { patch, .. } = &action.write else { panic!("a patch") };
            patch["spec"]["taints"].clone()
        })
    };
    let quiet = || pool(&json!({"consolidateAfter": "Never"}));
    let current = || karpenter::claim("default", "n").build();
    let with = |taints: Value| node("n").with("/spec/taints", taints).build();
    let left = taints_after(vec![quiet(), current(), with(json!([other]))]);
    assert_eq!(left, None, "somebody else's");
    let left = taints_after(vec![quiet(), current(), with(json!([other, ours]))]);
    assert_eq!(left, Some(json!([other])));
    let begun = taints_after(vec![drifting(), drifted("n").build(), with(json!([other]))]);
    assert_eq!(begun, Some(json!([other, ours])));
}

/// How many nodes a drift of node `a` makes, whose pod `p` has this in its spec; node `b` has
/// room, and pod `q` of the same application.
fn made_for(pointer: &str, value: &Value, limits: &Value) -> (Vec<String>, usize) {
    let pod = |name: &str, at: &str| karpenter::pod(name, at, "100m");
    let pool = karpenter::pool(
        "default",
        &json!({"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]}),
    );
    let pool = pool.with("/spec/limits", limits.clone()).build();
    let wishes = pod("p", "a").with(pointer, value.clone()).build();
    let objects = [pool, drifted("a").build(), node("a").build(), wishes, pod("q", "b").build()];
    let step = step(objects.into_iter().chain(karpenter::pair("default", "b")));
    let disrupted = disrupted(&step).into_iter().map(str::to_owned).collect();
    (disrupted, step.actions.iter().filter(|action| creates(action)).count())
}

#[test]
fn preferences_are_honoured_while_a_node_can_be_had_with_them() {
    let web = json!({"matchLabels": {"app": "web"}});
    let apart = json!([{"weight": 1, "podAffinityTerm":
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": web}}]);
    let spread = json!([{"topologyKey": "kubernetes.io/hostname", "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": web}]);
    let node = json!([{"weight": 1, "preference": {"matchExpressions":
        [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-b"]}]}}]);
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let cases = [
        (format!("/spec/affinity/podAntiAffinity/{preferred}"), apart),
        ("/spec/topologySpreadConstraints".to_owned(), spread),
        (format!("/spec/affinity/nodeAffinity/{preferred}"), node),
    ];
    for (pointer, value) in cases {
        let free = made_for(&pointer, &value, &json!({}));
        assert_eq!(free, (vec!["a".to_owned()], 1), "{pointer}: a node of its own");
        let full = made_for(&pointer, &value, &json!({"nodes": 2}));
        assert_eq!(full, (vec!["a".to_owned()], 0), "{pointer}: no room for one, so without");
    }
}

#[test]
fn a_node_that_only_a_pending_pod_goes_to_is_told_so() {
    // Pod `p` fits nowhere but onto `b` once `a` is gone.
    let pending = waiting("p", &refused("Unschedulable")).build();
    let objects = [drifting(), pending, drifted("a").build(), drifted("b").build()];
    let nodes = [node("a").build(), node("b").build()];
    let step = step(objects.into_iter().chain(nodes));
    let words: Vec<String> = step.holds.iter().map(|hold| format!("{:?}", hold.reason)).collect();
    assert!(words.iter().any(|word| word.contains("nominated for a pending pod")), "{words:?}");
    assert!(!words.iter().any(|word| word.contains("will move to this node")), "{words:?}");
}

#[test]
fn a_budget_that_always_applies_is_not_warned_about_as_having_an_outside() {
    let warnings = |schedule: &str, duration: &str| -> Vec<String> {
        let budget = json!({"nodes": "1", "schedule": schedule, "duration": duration});
        let pool = pool(&json!({"budgets": [budget]}));
        super::super::validate::pool(&pool).into_iter().map(|it| it.message).collect()
    };
    let always = warnings("* * * * *", "1h");
    assert_eq!(always.len(), 1, "{always:?}");
    assert!(always[0].contains("applies always"), "{always:?}");
    let window = warnings("0 9 * * *", "8h");
    assert!(window.len() == 1 && window[0].contains("is unlimited"), "{window:?}");
    let bad = warnings("0 9 * * monday", "8h");
    assert!(bad[0].contains("day of week is a number from 0 to 6"), "{bad:?}");
    assert!(!bad[0].contains("strconv"), "{bad:?}");
}

#[test]
fn expired_can_be_named_where_expiration_is_budgeted() {
    let pool = |expiration: &str| {
        let budgets = json!([{"nodes": "0", "reasons": ["Expired"]}, {"nodes": "100%"}]);
        karpenter::pool("default", &json!({"consolidateAfter": "Never", "budgets": budgets}))
            .annotation("convoy.dev/expiration", expiration)
            .build()
    };
    let world = crate::World::new();
    let errors = |pool: &Object| {
        let found = Karpenter.validate(&world, pool);
        found.into_iter().filter(|it| it.severity == Severity::Error).count()
    };
    assert_eq!(errors(&pool("budgeted")), 0);
    assert!(errors(&pool("forceful")) > 0);
    let old = || karpenter::claim("default", "n").with("/spec/expireAfter", json!("1h")).build();
    let step = step([pool("budgeted"), old(), node("n").build()]);
    assert_eq!(disrupted(&step), [""; 0], "its own budget is 0");
    let reason = json!({"Underutilized": 1, "Empty": 1, "Drifted": 1, "Expired": 0});
    assert_eq!(step.decision["allowed"]["default"], reason);
}

#[test]
fn a_claim_of_the_older_version_is_a_member_like_others() {
    let mut raw = drifted("n").build().raw().clone();
    raw["apiVersion"] = json!("karpenter.sh/v1beta1");
    raw["spec"]["nodeClassRef"] = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass", "name": "default"});
    let claim = Object::from_value(raw).unwrap();
    let world = crate::World::new();
    assert_eq!(Karpenter.validate(&world, &claim), []);
    assert_eq!(disrupted(&step([drifting(), claim, node("n").build()])), ["n"]);
}

#[test]
fn every_reason_explains_what_it_allows() {
    let budgets = json!([
        {"nodes": "34%"},
        {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 0 * * *", "duration": "8h"}]);
    let pool = |budgets: &Value| pool(&json!({"consolidateAfter": "Never", "budgets": budgets}));
    let mut unready = node("c").build().raw().clone();
    unready["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    let pair = |name: &str| karpenter::pair("default", name);
    let nodes = || {
        let down = [
            karpenter::claim("default", "c").build(),
            Object::from_value(unready.clone()).unwrap(),
        ];
        pair("a").into_iter().chain(pair("b")).chain(down).collect::<Vec<_>>()
    };
    let explained = |budgets: &Value| {
        let step = step(nodes().into_iter().chain([pool(budgets)]));
        step.decision["explain"]["default"].clone()
    };
    let found = explained(&budgets);
    let empty = json!({"allowed": 1, "limit": 2, "inUse": 1, "usedBy": ["c"], "budget": 0,
        "formula": "budget 0: 34% of 3 nodes, rounded up, is 2; 2 - 1 down = 1",
        "changesAt": null});
    assert_eq!(found["Empty"], empty);
    let drifted = json!({"allowed": 0, "limit": 0, "inUse": 1, "usedBy": ["c"], "budget": 1,
        "formula": "budget 1: 0 nodes; 0 - 1 down = 0", "changesAt": "2026-01-01T08:00:00Z"});
    assert_eq!(found["Drifted"], drifted);
    let none = explained(&json!([{"nodes": "1", "reasons": ["Drifted"]}]));
    assert_eq!(none["Empty"]["formula"], "no active budget covers Empty: 3 - 1 down = 2");
    let bad = explained(&json!([{"nodes": "1", "schedule": "0 9 * * sat-sun", "duration": "1h"}]));
    let text = bad["Empty"]["formula"].as_str().unwrap();
    assert!(text.starts_with("0 for every reason: budget 0 cannot be evaluated"), "{text}");
    let bad = explained(&json!([{"nodes": "1", "schedule": "0 9 * * sat-sun"}]));
    let text = bad["Drifted"]["formula"].as_str().unwrap();
    assert!(text.starts_with("0 for every reason: budget 0 cannot be evaluated"), "{text}");
}

#[test]
fn limits_are_published_before_nodes_are_subtracted() {
    let budgets = json!([{"nodes": "3", "reasons": ["Drifted"]}]);
    let pool = pool(&json!({"consolidateAfter": "Never", "budgets": budgets}));
    let leaving = drifted("n").with("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    let step = step([pool, leaving.build(), node("n").build()]);
    let value = |metric: &str, reason: &str| {
        let is_it = |it: &&crate::series::Series| {
            it.metric.name == metric && it.labels.contains(&("reason", reason.to_owned()))
        };
        step.series.iter().find(is_it).map(|it| it.value)
    };
    let allowed = "karpenter_nodepools_allowed_disruptions";
    assert_eq!(value(allowed, "Drifted"), Some(3));
    assert_eq!(value(allowed, "Empty"), Some(2_147_483_647));
    assert_eq!(value("karpenter_nodepools_nodes_consuming_budgets", "Empty"), Some(1));
}

#[test]
fn a_node_that_waits_for_one_reason_is_looked_at_again_for_another() {
    let budgets = json!([{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "100%"}]);
    let pool = pool(&json!({"consolidateAfter": "10s", "budgets": budgets}));
    let claim = drifted("n").with("/status/lastPodEventTime", json!("2025-12-31T23:59:55Z"));
    let step = step([pool, claim.build(), node("n").build()]);
    assert_eq!(disrupted(&step), [""; 0]);
    let empty_at = "2026-01-01T00:00:05Z".parse().unwrap();
    assert_eq!(step.wake_at, Some(empty_at), "it may go because it is empty then");
}
