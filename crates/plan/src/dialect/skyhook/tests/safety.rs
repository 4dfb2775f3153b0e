//! The safety limit: what failed nodes count for, and what is said where they pass it.

use convoy_api::Object;
use convoy_api::skyhook::SKYHOOK;
use convoy_testkit::{NOW, node, object};
use serde_json::{Value, json};

use crate::dialect::skyhook::Skyhook;
use crate::step::{EventType, Step};
use crate::world::World;

const API_VERSION: &str = "skyhook.nvidia.com/v1alpha1";
const CONDITION: &str = "skyhook.nvidia.com/SafetyLimitPassed";
const PASSED: &str = "compartment __default__ is past safetyLimit with 12 failed, 0 complete; \
                      failureThreshold no longer applies";

/// A policy whose first batch is 12 nodes, and which one failed batch stops; `progress` is the
/// annotation, if it has one.
fn policy(strategy: &Value, progress: Option<&str>) -> Object {
    let default = json!({"budget": {"percent": 100}, "strategy": strategy});
    let policy = object(API_VERSION, "DeploymentPolicy", "p").spec(json!({"default": default}));
    match progress {
        Some(value) => policy.annotation("convoy.dev/safety-progress", value).build(),
        None => policy.build(),
    }
}

fn fixed(more: Value) -> Value {
    let mut fixed = json!({"initialBatch": 12, "failureThreshold": 1});
    fixed.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"fixed": fixed})
}

/// 20 nodes, of which some have failed, some are complete, and the others were never started.
fn nodes(failed: usize, complete: usize) -> Vec<Object> {
    let state = |state: &str| {
        json!({"pa|1.0.0": {"name": "pa", "version": "1.0.0", "image": "x",
            "stage": if state == "complete" { "config" } else { "apply" }, "state": state}})
    };
    let marked = |at: usize, word: &str| {
        node(&format!("n{at:02}"))
            .annotation("skyhook.nvidia.com/status_tune", word)
            .annotation("skyhook.nvidia.com/nodeState_tune", &state(word).to_string())
            .build()
    };
    (0..20)
        .map(|at| match at {
            at if at < failed => marked(at, "erroring"),
            at if at < failed + complete => marked(at, "complete"),
            at => node(&format!("n{at:02}")).build(),
        })
        .collect()
}

/// The step of a Skyhook whose status is `status`.
fn decided(policy: Object, nodes: Vec<Object>, status: Value) -> Step {
    let spec = json!({"deploymentPolicy": "p",
        "packages": {"pa": {"version": "1.0.0", "image": "x"}}});
    let skyhook = object(API_VERSION, "Skyhook", "tune").spec(spec).status(status);
    let world: World = nodes.into_iter().chain([policy, skyhook.build()]).collect();
    let now = NOW.parse().unwrap();
    crate::decide(&Skyhook::new(), &world, &[], &SKYHOOK.key("", "tune"), now).unwrap()
}

/// A Skyhook before its first batch is scored.
fn fresh() -> Value {
    json!({"packageList": "pa:1.0.0", "status": "in_progress"})
}

fn condition(status: &Value) -> Option<(String, String)> {
    let all = status["conditions"].as_array().unwrap();
    let found = all.iter().find(|condition| condition["type"] == CONDITION)?;
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    Some((text("status"), text("message")))
}

fn warnings(step: &Step) -> Vec<&str> {
    let warnings = step.events.iter().filter(|event| event.kind == EventType::Warning);
    warnings.map(|event| event.message.as_str()).collect()
}

fn stops(step: &Step) -> bool {
    step.decision["stopped"] == json!(["__default__"])
}

#[test]
fn failures_that_pass_the_limit_are_told_once() {
    let policy = || policy(&fixed(json!({})), None);
    let step = decided(policy(), nodes(12, 0), fresh());
    assert!(!stops(&step), "as upstream: 12 of 20 are processed, which is past 50%");
    let status = step.status.clone().unwrap();
    assert_eq!(condition(&status), Some(("True".to_owned(), PASSED.to_owned())));
    let [warning] = warnings(&step)[..] else { panic!("{:?}", step.events) };
    assert!(warning.starts_with(PASSED), "{warning}");
    assert!(warning.contains("convoy.dev/safety-progress"), "what to do: {warning}");
    // The next pass says no more.
    let again = decided(policy(), nodes(12, 0), status.clone());
    assert_eq!(warnings(&again), Vec::<&str>::new());
    // When enough nodes are complete, the limit is passed as it should be.
    let recovered = decided(policy(), nodes(2, 18), status);
    assert_eq!(condition(&recovered.status.unwrap()).unwrap().0, "False");
}

#[test]
fn nothing_is_told_where_failures_change_nothing() {
    let exponential = json!({"exponential": {"initialBatch": 12}});
    let tolerant = fixed(json!({"batchThreshold": 80}));
    let cases = [
        ("not past the limit", fixed(json!({})), nodes(9, 0)),
        ("past it by complete nodes", fixed(json!({})), nodes(2, 10)),
        ("a batch that tolerates its failures", tolerant, nodes(2, 9)),
        ("a limit of 100%", fixed(json!({"safetyLimit": 100})), nodes(12, 0)),
        ("no failureThreshold", exponential, nodes(12, 0)),
    ];
    for (case, strategy, nodes) in cases {
        let step = decided(policy(&strategy, None), nodes, fresh());
        assert_eq!(condition(&step.status.clone().unwrap()), None, "{case}");
        assert_eq!(warnings(&step), Vec::<&str>::new(), "{case}");
    }
}

#[test]
fn only_complete_nodes_count_where_the_policy_says_so() {
    let step = |progress: &str, failed: usize, complete: usize| {
        let policy = policy(&fixed(json!({})), Some(progress));
        decided(policy, nodes(failed, complete), fresh())
    };
    let stopped = step("completed", 12, 0);
    assert!(stops(&stopped));
    assert_eq!(condition(&stopped.status.clone().unwrap()), None);
    assert_eq!(warnings(&stopped), Vec::<&str>::new());
    assert!(!stops(&step("completed", 2, 10)), "10 of 20 are complete");
    assert!(!stops(&step("processed", 12, 0)), "the default by its name");
}

#[test]
fn batches_shrink_until_enough_nodes_are_complete() {
    let strategy = json!({"exponential": {"initialBatch": 12}});
    let size = |progress: &str| {
        let step = decided(policy(&strategy, Some(progress)), nodes(12, 0), fresh());
        step.decision["batch"]["__default__"]["nextBatchSize"].clone()
    };
    assert_eq!(size("processed"), json!(8), "the 8 that remain of 24");
    assert_eq!(size("completed"), json!(6), "half of 12");
}

/// Neither the document's defaults nor the strategy of `default`: see "Defaults" in
/// `docs/concepts/skyhook.md`.
#[test]
fn without_a_strategy_batches_fill_the_ceiling_and_nothing_stops() {
    let policy = |count: u32| {
        let budget = json!({"budget": {"count": count}});
        object(API_VERSION, "DeploymentPolicy", "p").spec(json!({"default": budget})).build()
    };
    let state = json!({"consecutiveFailures": 9, "shouldStop": true});
    let status = json!({"packageList": "pa:1.0.0", "status": "in_progress",
        "compartmentStatuses": {"__default__": {"batchState": state}}});
    let step = decided(policy(5), nodes(12, 0), status.clone());
    assert_eq!(step.decision["startCount"]["__default__"], json!(5));
    assert_eq!(step.decision["stopped"], json!([]));
    let published = &step.status.unwrap()["compartmentStatuses"]["__default__"];
    assert_eq!(published.get("batchState"), None);
    let mut running = nodes(12, 0);
    running.push(node("n99").annotation("skyhook.nvidia.com/status_tune", "in_progress").build());
    let step = decided(policy(5), running, status);
    assert_eq!(step.decision["startCount"]["__default__"], json!(0), "the batch is still running");
}

#[test]
fn another_word_in_the_annotation_is_refused() {
    let policy = policy(&fixed(json!({})), Some("complete"));
    let found = crate::dialect::Dialect::validate(&Skyhook::new(), &World::new(), &policy);
    let [found] = &found[..] else { panic!("{found:?}") };
    assert_eq!(found.field, "metadata.annotations[convoy.dev/safety-progress]");
    let expected = r#"Unsupported value: "complete": supported values: "completed", "processed""#;
    assert_eq!(found.message, expected);
}
