//! What the observer of compartments finds, and what it lets pass.

use convoy_testkit::{Builder, node, object};
use serde_json::json;

use super::*;

fn policy(count: u64, strategy: Value) -> Object {
    object("skyhook.nvidia.com/v1alpha1", "DeploymentPolicy", "p")
        .spec(json!({"default": {"budget": {"count": count}, "strategy": strategy}}))
        .build()
}

fn going(name: &str) -> Builder {
    node(name).annotation("skyhook.nvidia.com/status_s", "in_progress")
}

fn picked(names: &[&str], state: Value) -> Object {
    let picked: BTreeMap<&str, &str> = names.iter().map(|name| (*name, "now")).collect();
    object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
        .status(json!({"nodePriority": picked,
            "compartmentStatuses": {DEFAULT: {"batchState": state}}}))
        .build()
}

#[test]
fn ceilings_hold_and_a_smaller_one_only_after_a_rest() {
    let mut vigil = Compartments::of("s");
    vigil.see(&policy(2, json!({})), false).unwrap();
    for name in ["a", "b"] {
        vigil.see(&going(name).build(), false).unwrap();
    }
    assert!(vigil.see(&going("c").build(), false).is_err());
    vigil.see(&node("c").build(), false).unwrap();
    vigil.see(&policy(1, json!({})), false).unwrap();
    vigil.see(&node("b").build(), false).unwrap();
    vigil.see(&going("b").build(), false).unwrap();
    vigil.see(&node("b").build(), false).unwrap();
    vigil.rest();
    assert!(vigil.see(&going("b").build(), false).is_err());
}

#[test]
fn a_pause_leaves_slots_where_they_are() {
    let mut vigil = Compartments::of("s");
    vigil.see(&policy(2, json!({})), false).unwrap();
    let paused = |name: &str| node(name).annotation("skyhook.nvidia.com/status_s", "paused");
    for name in ["a", "b"] {
        vigil.see(&going(name).build(), false).unwrap();
        vigil.see(&paused(name).build(), false).unwrap();
    }
    vigil.see(&paused("c").build(), false).unwrap();
    vigil.see(&policy(1, json!({})), false).unwrap();
    vigil.rest();
    vigil.see(&going("a").build(), false).unwrap();
    vigil.see(&going("b").build(), false).unwrap();
    assert!(vigil.see(&going("c").build(), false).is_err());
}

#[test]
fn who_moves_keeps_its_slot_and_takes_no_other() {
    let pool = json!({"name": "pool", "budget": {"count": 1},
        "selector": {"matchLabels": {"pool": "a"}}});
    let policy = object("skyhook.nvidia.com/v1alpha1", "DeploymentPolicy", "p")
        .spec(json!({"default": {"budget": {"count": 1}}, "compartments": [pool]}));
    let mut vigil = Compartments::of("s");
    vigil.see(&policy.build(), false).unwrap();
    vigil.see(&going("a").label("pool", "a").build(), false).unwrap();
    vigil.see(&going("b").build(), false).unwrap();
    vigil.see(&going("b").label("pool", "a").build(), false).unwrap();
    assert!(vigil.see(&going("c").label("pool", "a").build(), false).is_err());
    vigil.see(&node("c").label("pool", "a").build(), false).unwrap();
    vigil.see(&going("d").build(), false).unwrap();
    assert!(vigil.see(&going("e").build(), false).is_err());
}

#[test]
fn nodes_that_the_skyhook_is_not_about_do_not_count() {
    let mut vigil = Compartments::of("s");
    vigil.see(&policy(1, json!({})), false).unwrap();
    let skyhook = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
        .spec(json!({"nodeSelectors": {"matchLabels": {"fleet": "yes"}}}));
    vigil.see(&skyhook.build(), false).unwrap();
    vigil.see(&going("a").build(), false).unwrap();
    vigil.see(&going("b").label("fleet", "yes").build(), false).unwrap();
    assert!(vigil.see(&going("c").label("fleet", "yes").build(), false).is_err());
}

#[test]
fn nobody_is_picked_while_a_batch_goes_on() {
    let mut vigil = Compartments::of("s");
    vigil.see(&policy(2, json!({})), false).unwrap();
    for name in ["a", "b"] {
        vigil.see(&node(name).build(), false).unwrap();
    }
    vigil.see(&picked(&["a"], json!({})), false).unwrap();
    vigil.see(&going("a").build(), false).unwrap();
    assert!(vigil.see(&picked(&["a", "b"], json!({})), false).is_err());
}

fn six_nodes(policy: &Object) -> Compartments {
    let mut vigil = Compartments::of("s");
    vigil.see(policy, false).unwrap();
    for name in ["a", "b", "c", "d", "e", "f"] {
        vigil.see(&node(name).build(), false).unwrap();
    }
    vigil
}

#[test]
fn a_batch_has_as_many_as_its_strategy_says() {
    let strategy = json!({"exponential": {}});
    let failed = json!({"lastBatchSize": 2, "lastBatchFailed": true, "failedNodes": 2});
    let grown = json!({"lastBatchSize": 1, "completedNodes": 1});
    let cases = [
        (&["a"][..], json!({}), true),
        (&["a", "b"], json!({}), false),
        (&["a", "b"], grown.clone(), true),
        (&["a", "b", "c"], grown, false),
        (&["a", "b"], failed, false),
    ];
    for (names, state, expected) in cases {
        let mut vigil = six_nodes(&policy(9, strategy.clone()));
        let seen = vigil.see(&picked(names, state.clone()), false);
        assert_eq!(seen.is_ok(), expected, "{names:?} {state}");
    }
}

#[test]
fn failed_nodes_are_progress_unless_the_policy_says_otherwise() {
    let state = json!({"lastBatchSize": 3, "lastBatchFailed": true, "failedNodes": 3});
    for (progress, expected) in [("processed", true), ("completed", false)] {
        let mut policy = policy(9, json!({"exponential": {}})).raw().clone();
        policy["metadata"]["annotations"] = json!({SAFETY_PROGRESS: progress});
        let mut vigil = six_nodes(&Object::from_value(policy).unwrap());
        for name in ["a", "b", "c"] {
            let failed = node(name).annotation("skyhook.nvidia.com/status_s", "erroring");
            vigil.see(&failed.build(), false).unwrap();
        }
        let seen = vigil.see(&picked(&["d", "e"], state.clone()), false);
        assert_eq!(seen.is_ok(), expected, "{progress}");
    }
}

#[test]
fn pods_are_made_where_a_slot_was_taken() {
    let mut vigil = Compartments::of("s");
    vigil.see(&policy(1, json!({})), false).unwrap();
    vigil.see(&node("a").build(), false).unwrap();
    let pod = |uid: &str| {
        let made = object("v1", "Pod", uid).with("/metadata/uid", json!(uid)).label(NAME, "s");
        made.spec(json!({"nodeName": "a"})).build()
    };
    assert!(vigil.see(&pod("one"), false).is_err());
    vigil.see(&going("a").build(), false).unwrap();
    assert!(vigil.see(&pod("two"), false).is_ok());
}

#[test]
fn a_batch_is_scored_by_the_nodes_that_were_picked_for_it() {
    let scored =
        |batch: u64, size: u64| picked(&[], json!({"currentBatch": batch, "lastBatchSize": size}));
    let reset = || picked(&[], json!({"currentBatch": 1}));
    let cases = [
        ("its nodes", vec![scored(2, 2)], true),
        ("more", vec![scored(2, 3)], false),
        ("fewer", vec![scored(2, 1)], false),
        ("it was scored before", vec![scored(2, 2), scored(3, 2)], false),
        ("its size changes later", vec![scored(2, 2), scored(2, 1)], false),
        ("a reset came between", vec![reset(), scored(2, 2)], false),
        ("a reset comes later", vec![scored(2, 2), reset()], true),
    ];
    for (case, statuses, expected) in cases {
        let mut vigil = Compartments::of("s");
        vigil.see(&policy(9, json!({"fixed": {"initialBatch": 2}})), false).unwrap();
        for name in ["a", "b", "c"] {
            vigil.see(&node(name).build(), false).unwrap();
        }
        vigil.see(&picked(&["a", "b"], json!({"currentBatch": 1})), false).unwrap();
        for name in ["a", "b", "c"] {
            let done = node(name).annotation("skyhook.nvidia.com/status_s", "complete");
            vigil.see(&done.build(), false).unwrap();
        }
        let mut seen = statuses.iter().map(|status| vigil.see(status, false));
        assert_eq!(seen.all(|seen| seen.is_ok()), expected, "{case}");
    }
}

#[test]
fn nodes_that_keep_a_slot_after_a_reset_are_not_picked() {
    let mut vigil = Compartments::of("s");
    vigil.see(&policy(9, json!({"exponential": {}})), false).unwrap();
    for name in ["a", "b", "c"] {
        vigil.see(&going(name).build(), false).unwrap();
    }
    let kept = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
        .with("/metadata/creationTimestamp", json!("2026-01-01T00:00:00Z"))
        .status(
            json!({"nodePriority": {"a": "2026-01-01T00:00:00Z", "b": "2026-01-01T00:00:00Z"}}),
        );
    vigil.see(&kept.build(), false).unwrap();
}
