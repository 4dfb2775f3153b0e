//! The safety limit when everything fails: what upstream does, that it is said, and how a policy
//! counts only what is complete.

use serde_json::{Value, json};

use super::policies::policy;
use super::site::{Site, embedded};
use super::words::{condition, package, word};

const PASSED: &str = "skyhook.nvidia.com/SafetyLimitPassed";
const MESSAGE: &str = "compartment __default__ is past safetyLimit with 5 failed, 0 complete; \
                       failureThreshold no longer applies";

fn broken(version: &str) -> Value {
    json!({"tuning": {"version": version, "image": "example/broken"}})
}

fn failed(site: &Site) -> usize {
    let nodes = site.access.get(&format!("nodes -l site={}", site.name));
    let nodes = nodes["items"].as_array().unwrap().iter();
    nodes.filter(|node| word(node, "safety") == "erroring").count()
}

/// The warnings about the Skyhook, and how often each was given.
fn warnings(site: &Site) -> Vec<(String, u64)> {
    let events = site.access.get(
        "events -n default --field-selector=involvedObject.kind=Skyhook,involvedObject.name=safety,reason=SafetyLimitPassed",
    );
    let events = events["items"].as_array().unwrap().iter();
    events
        .map(|event| {
            let text = event["message"].as_str().unwrap().to_owned();
            (text, event["count"].as_u64().unwrap_or(1))
        })
        .collect()
}

#[test]
fn failures_that_pass_the_safety_limit_say_so() {
    let site = embedded().site("safety", 8);
    // Five of eight are 62 percent.
    let strategy = json!({"fixed": {"initialBatch": 5, "failureThreshold": 1, "safetyLimit": 50}});
    policy(&site, "safety", &json!({"percent": 100}), &strategy);
    let skyhooks = site.record_skyhook("safety");
    site.apply("Skyhook", "safety", &site.paced("safety", &broken("1.0.0")));
    site.wait("safety", "erroring");
    assert_eq!(failed(&site), 8, "as upstream: it goes on");
    let told = skyhooks.find("the condition", |skyhook| {
        let mut all = skyhook["status"]["conditions"].as_array().into_iter().flatten();
        all.any(|condition| condition["message"] == MESSAGE)
    });
    assert_eq!(condition(&told, PASSED), "True/SafetyLimitPassed");
    site.access.until(
        "events -n default --field-selector=involvedObject.name=safety,reason=SafetyLimitPassed",
        |events| !events["items"].as_array().unwrap().is_empty(),
    );
    let [(warning, 1)] = &warnings(&site)[..] else { panic!("{:?}", warnings(&site)) };
    assert!(warning.starts_with(MESSAGE), "{warning}");

    // The same failures of the next version, where only complete nodes count.
    site.access.kubectl("annotate deploymentpolicy safety convoy.dev/safety-progress=completed");
    site.patch("safety", &json!({"spec": {"packages": broken("1.0.1")}}));
    let stopped = site.skyhook_until("safety", |skyhook| {
        skyhook["status"]["compartmentStatuses"]["__default__"]["batchState"]["shouldStop"] == true
    });
    assert_eq!(condition(&stopped, PASSED), "False/SafetyLimitPassed");
    let state = &stopped["status"]["compartmentStatuses"]["__default__"]["batchState"];
    assert_eq!((&state["failedNodes"], &state["completedNodes"]), (&json!(5), &Value::Null));
    assert_eq!(warnings(&site).len(), 1, "nothing more is said");

    // A word that nobody knows stops everything, and is named.
    let annotate = |value: &str| {
        let annotation = format!("convoy.dev/safety-progress={value}");
        site.access.kubectl(&format!("annotate deploymentpolicy safety {annotation} --overwrite"));
    };
    annotate("complete");
    let refused = site.skyhook_until("safety", |skyhook| {
        condition(skyhook, "convoy.dev/Refused").starts_with("True")
    });
    let text = refused["status"]["conditions"].to_string();
    assert!(text.contains(r#"supported values: \"completed\", \"processed\""#), "{text}");
    annotate("processed");
    site.patch("safety", &json!({"spec": {"packages": {"tuning": package("1.0.2")}}}));
    site.wait("safety", "complete");
}
