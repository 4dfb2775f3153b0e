//! One row per rule, with the words that clients look for.

use convoy_testkit::object;
use serde_json::{Value, json};

use super::*;

const VERSION: &str = "skyhook.nvidia.com/v1alpha1";

fn errors(kind: &str, spec: Value) -> String {
    let object = object(VERSION, kind, "x").spec(spec).build();
    let found = validate(&World::new(), &object, Moment::Planning);
    let texts: Vec<String> =
        found.iter().map(|found| format!("{}: {}", found.field, found.message)).collect();
    texts.join("; ")
}

#[test]
fn skyhooks_are_refused_in_the_words_of_the_api() {
    let package = |more: Value| {
        let mut body = json!({"version": "1.2.3", "image": "x"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"packages": {"driver": body}})
    };
    let amounts = |cpu: &str, limit: &str| {
        package(json!({"resources": {"cpuRequest": cpu, "cpuLimit": limit,
            "memoryRequest": "1Mi", "memoryLimit": "1Mi"}}))
    };
    let cases = [
        (json!({"interruptionBudget": {"percent": 1, "count": 1}}), "both percent and count"),
        (
            json!({"interruptionBudget": {"count": 1}, "deploymentPolicy": "p"}),
            "deploymentPolicy and interruptionBudget are mutually exclusive",
        ),
        (
            json!({"nodeSelectors": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            "node selectors are not valid: ",
        ),
        (package(json!({"name": "other"})), "error package driver's name was set to other"),
        (
            json!({"packages": {"driver1": {"version": "1", "image": "x"}}}),
            "package name [driver1] is not valid. must match [",
        ),
        (
            package(json!({"configMap": {"a": ""}, "configInterrupts": {"*.b": {"type": "noop"}}})),
            r#"error config interrupt glob "*.b" does not match any configMap keys"#,
        ),
        (
            package(json!({"configInterrupts": {"b.conf": {"type": "noop"}}})),
            "error config interrupt for key that doesn't exist: b.conf",
        ),
        (
            package(json!({"version": "1.2.3.4"})),
            "error version string for driver is invalid: 1.2.3.4",
        ),
        (package(json!({"resources": {"cpuRequest": "1"}})), "if any resource override is set"),
        (amounts("2", "1"), r#"package "driver": cpuLimit (1) must be >= cpuRequest (2)"#),
        (amounts("0", "1"), "all resource values must be positive"),
        (package(json!({"dependsOn": {"x": ""}})), "DependsOn version is empty for [x]"),
        (
            package(json!({"dependsOn": {"milkshake": "1.2.3"}})),
            "spec.packages.driver.dependsOn.milkshake: package \"milkshake|1.2.3\" not found",
        ),
        (
            json!({"packages": {"aa": {"version": "1", "image": "x", "dependsOn": {"bb": "1"}},
                "bb": {"version": "1", "image": "x", "dependsOn": {"aa": "1"}}}}),
            "aa -> bb -> aa",
        ),
        (json!({"deploymentPolicy": "p"}), r#"deploymentPolicy "p" not found"#),
    ];
    for (spec, expected) in cases {
        let found = errors("Skyhook", spec.clone());
        assert!(found.contains(expected), "{spec}: {found:?} lacks {expected:?}");
    }
    assert_eq!(errors("Skyhook", package(json!({"dependsOn": {}}))), "");
}

/// It is read as the word that was meant.
#[test]
fn a_word_that_the_api_does_not_have_hides_nothing_else() {
    let package = json!({"version": "1.2.3", "image": "x", "interrupt": {"type": "rebot"}});
    let other = json!({"version": "1.2.3", "image": "x", "dependsOn": {"milkshake": "1.2.3"}});
    let found = errors(
        "Skyhook",
        json!({"interruptionBudget": {"percent": 1, "count": 1},
            "packages": {"driver": package, "other": other}}),
    );
    let word = r#"spec.packages.driver.interrupt.type: Unsupported value: "rebot": "#;
    for expected in [word, "both percent and count", "\"milkshake|1.2.3\" not found"] {
        assert!(found.contains(expected), "{found:?} lacks {expected:?}");
    }
    assert_eq!(found.matches("interrupt.type").count(), 1, "{found}");
}

#[test]
fn a_name_that_no_annotation_key_can_hold_is_refused() {
    let found = |length: usize| {
        let object = object(VERSION, "Skyhook", &"s".repeat(length)).spec(json!({})).build();
        validate(&World::new(), &object, Moment::Planning).len()
    };
    assert_eq!((found(53), found(54)), (0, 1));
}

#[test]
fn policies_are_refused_in_the_words_of_the_api() {
    let with = |compartments: Value| json!({"default": {"budget": {"count": 1}}, "compartments": compartments});
    let named = |name: &str, selector: Value| json!({"name": name, "selector": selector, "budget": {"count": 1}});
    let cases = [
        (json!({"default": {}}), "default budget: exactly one of percent or count must be set"),
        (
            json!({"default": {"budget": {"count": 1, "percent": 1}}}),
            "default budget: percent and count are mutually exclusive",
        ),
        (
            json!({"default": {"budget": {"count": 1}, "strategy": {}}}),
            "default strategy: exactly one of fixed, linear, or exponential must be set",
        ),
        (with(json!([named("__default__", json!({}))])), "is reserved and cannot be used"),
        (
            with(json!([named("a", json!({})), named("a", json!({}))])),
            r#"compartment name "a" is not unique"#,
        ),
        (
            with(json!([named("a", json!({})), named("b", json!({}))])),
            r#"compartment "b" has identical selector to compartment "a""#,
        ),
        (
            with(json!([named(
                "x",
                json!({"matchExpressions": [{"key": "a", "operator": "Of"}]})
            )])),
            r#"compartment "x" has invalid selector: "#,
        ),
    ];
    for (spec, expected) in cases {
        let found = errors("DeploymentPolicy", spec.clone());
        assert!(found.contains(expected), "{spec}: {found:?} lacks {expected:?}");
    }
    assert!(!errors("DeploymentPolicy", json!({})).is_empty());
}

#[test]
fn an_unknown_field_hides_nothing() {
    let found =
        errors("Skyhook", json!({"pace": 1, "interruptionBudget": {"percent": 1, "count": 1}}));
    assert!(found.contains("unknown field \"spec.pace\""), "{found}");
    assert!(found.contains("both percent and count"), "{found}");
}

#[test]
fn a_dependency_that_is_not_there_is_told_at_its_field_and_in_the_words_of_the_webhook() {
    let spec = |name: &str, version: &str| {
        json!({"packages": {
            "tools": {"version": "1.0.0", "image": "x"},
            "tune": {"version": "1.0.0", "image": "x", "dependsOn": {name: version}}}})
    };
    let typo = "spec.packages.tune.dependsOn.tols: package \"tols|1.0.0\" not found; did you mean \"tools\"?";
    assert_eq!(errors("Skyhook", spec("tols", "1.0.0")), typo);
    let version = "spec.packages.tune.dependsOn.tools: package \"tools|2.0.0\" not found: \"tools\" has version 1.0.0";
    assert_eq!(errors("Skyhook", spec("tools", "2.0.0")), version);
    let object = object(VERSION, "Skyhook", "x").spec(spec("tols", "1.0.0")).build();
    let found = validate(&World::new(), &object, Moment::Admission);
    let words = "graph is invalid: error graph is not valid, missing: [tols|1.0.0]";
    assert_eq!((found[0].field.as_str(), found[0].message.as_str()), ("spec.packages", words));
}

#[test]
fn a_toleration_with_unknown_words_is_told() {
    let spec = json!({"additionalTolerations": [
        {"key": "a", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "b", "operator": "Exist", "effect": "NoSchedul"}]});
    let found = errors("Skyhook", spec);
    assert!(
        found.starts_with("spec.additionalTolerations[1].operator: Unsupported value"),
        "{found}"
    );
    assert!(found.contains("spec.additionalTolerations[1].effect: Unsupported value"), "{found}");
}
