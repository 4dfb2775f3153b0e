//! Which limit a node that waits is told about, one row per case.

use convoy_api::Object;
use convoy_api::skyhook::SKYHOOK;
use convoy_testkit::{Builder, NOW, node, object};
use serde_json::{Value, json};

use crate::dialect::skyhook::Skyhook;
use crate::dialect::skyhook::names::{DISABLE, IGNORE, PAUSE};
use crate::step::{Step, Verb};
use crate::world::World;

const API_VERSION: &str = "skyhook.nvidia.com/v1alpha1";
const STATUS: &str = "skyhook.nvidia.com/status_tune";

fn skyhook(spec: &Value) -> Builder {
    let mut all = json!({"deploymentPolicy": "slow",
        "packages": {"pa": {"version": "1.0.0", "image": "x"}}});
    for (field, value) in spec.as_object().unwrap() {
        all[field] = value.clone();
    }
    object(API_VERSION, "Skyhook", "tune").spec(all)
}

fn policy(ceiling: u32, batch: u32) -> Object {
    let strategy = json!({"fixed": {"initialBatch": batch, "failureThreshold": 1}});
    let default = json!({"budget": {"count": ceiling}, "strategy": strategy});
    object(API_VERSION, "DeploymentPolicy", "slow").spec(json!({"default": default})).build()
}

/// The step of `skyhook` on the nodes `n1` and `n2` beside `others`.
fn decided(skyhook: Builder, others: Vec<Object>) -> Step {
    let mut world = World::new();
    let nodes = ["n1", "n2"].map(|name| node(name).build());
    for object in nodes.into_iter().chain(others).chain([skyhook.build()]) {
        world.insert(object); // of two objects with one key, the last counts
    }
    let key = SKYHOOK.key("", "tune");
    crate::decide(&Skyhook::new(), &world, &[], &key, NOW.parse().unwrap()).unwrap()
}

/// What the node `n2` is told.
fn hold(step: &Step) -> String {
    let hold = step.holds.iter().find(|hold| hold.member.as_deref() == Some("n2"));
    hold.map_or("nothing".to_owned(), |hold| hold.reason.to_string())
}

#[test]
fn a_node_that_waits_is_told_the_first_limit_that_is_full() {
    let plain = || skyhook(&json!({}));
    let running = || node("n1").annotation(STATUS, "in_progress").build();
    let stopped = || {
        let state = json!({"currentBatch": 2, "consecutiveFailures": 1, "shouldStop": true});
        plain().status(json!({"packageList": "pa:1.0.0",
            "compartmentStatuses": {"__default__": {"batchState": state}}}))
    };
    let ignored = || node("n2").label(IGNORE, "true").build();
    let stop = "stopped after 1 failure (failureThreshold: 1); fix the package, then run \
                `convoy retry`";
    let cases = [
        (plain(), vec![policy(2, 2)], "nothing"),
        (plain(), vec![policy(2, 1)], "batch 1 is full (size 1)"),
        (plain(), vec![policy(1, 2)], "1 of 1 slots of the compartment in use by n1"),
        (plain(), vec![policy(2, 2), running()], "batch 1 is still running, 1 unfinished: n1"),
        (stopped(), vec![policy(2, 2)], stop),
        (stopped(), vec![policy(2, 2), running()], stop),
        (stopped().annotation(PAUSE, "true"), vec![policy(2, 2)], "paused"),
        (plain().annotation(DISABLE, "true"), vec![policy(2, 2), running()], "disabled"),
        (plain(), vec![], "DeploymentPolicy \"slow\" not found"),
        (stopped(), vec![policy(2, 2), ignored()], "ignored: label skyhook.nvidia.com/ignore"),
        (
            skyhook(&json!({"serial": true})),
            vec![policy(2, 2)],
            "1 of 1 slots of spec.serial in use by n1",
        ),
    ];
    for (skyhook, others, expected) in cases {
        assert_eq!(hold(&decided(skyhook, others)), expected);
    }
}

/// One obstacle after the other is taken away, from the first on.
#[test]
fn a_node_is_told_the_first_of_its_obstacles() {
    let order = ["Ignored", "BehindRollout", "NotDisruptable", "TaintNotTolerated", "nothing"];
    for (cleared, expected) in order.into_iter().enumerate() {
        let mut n2 = node("n2");
        if cleared < 1 {
            n2 = n2.label(IGNORE, "true");
        }
        if cleared < 3 {
            n2 = n2.annotation("skyhook.nvidia.com/nodeState_tune", "{");
        }
        if cleared < 4 {
            n2 = n2.with("/spec/taints", json!([{"key": "broken", "effect": "NoSchedule"}]));
        }
        let first =
            json!({"priority": 100, "packages": {"pb": {"version": "1.0.0", "image": "y"}}});
        let first = object(API_VERSION, "Skyhook", "first").spec(first).build();
        let others = [policy(2, 2), n2.build()].into_iter().chain((cleared < 2).then_some(first));
        let step = decided(skyhook(&json!({})), others.collect());
        let told = step.holds.iter().find(|hold| hold.member.as_deref() == Some("n2"));
        assert_eq!(told.map_or("nothing", |hold| hold.reason.word()), expected);
    }
}

#[test]
fn a_failed_node_is_tried_again_after_those_never_started() {
    let state = json!({"pa|1.0.0": {"name": "pa", "version": "1.0.0", "image": "x",
        "stage": "apply", "state": "erroring"}});
    let failed = || {
        let key = "skyhook.nvidia.com/nodeState_tune";
        node("n1").annotation(STATUS, "erroring").annotation(key, &state.to_string()).build()
    };
    let started = |others: Vec<Object>| -> Vec<(String, &'static str)> {
        let others = others.into_iter().chain([policy(2, 2), failed()]).collect();
        let step = decided(skyhook(&json!({})), others);
        let starts = step
            .actions
            .iter()
            .filter(|action| matches!(action.verb, Verb::Start(_) | Verb::Retry(_)));
        starts.map(|action| (action.target.name.to_string(), action.verb.into())).collect()
    };
    assert_eq!(started(vec![]), [("n2".to_owned(), "Start")]); // one node is not processed yet
    let ignored = node("n2").label(IGNORE, "true").build();
    assert_eq!(started(vec![ignored]), [("n1".to_owned(), "Retry")]);
}
