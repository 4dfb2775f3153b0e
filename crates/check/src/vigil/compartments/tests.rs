//! Writes that stay within the bounds of a compartment, and writes that do not.

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
