//! Stages, dependencies and version changes, one row per case.

use convoy_api::Object;
use convoy_testkit::object;
use serde_json::{Value, json};

use super::*;

fn skyhook(packages: &Value) -> Object {
    object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
        .spec(json!({"packages": packages}))
        .build()
}

fn state(entries: &[(&str, &str, &str, &str)]) -> NodeState {
    let entries: serde_json::Map<String, Value> = entries
        .iter()
        .map(|(name, version, stage, state)| {
            let entry = json!({"name": name, "version": version, "image": "x",
                "stage": stage, "state": state});
            (format!("{name}|{version}"), entry)
        })
        .collect();
    NodeState::parse(&Value::Object(entries).to_string()).unwrap()
}

#[test]
fn a_node_is_complete_when_every_package_is_and_nothing_leaves() {
    let object = skyhook(&json!({"a": {"version": "2.0.0", "image": "x"},
        "b": {"version": "1.0.0", "image": "x", "interrupt": {"type": "reboot"}}}));
    let hook = Hook::read(&object).unwrap();
    let a = ("a", "2.0.0", "config", "complete");
    let b = ("b", "1.0.0", "post-interrupt", "complete");
    let cases = [
        ("all there", vec![a, b], true),
        ("b not interrupted", vec![a, ("b", "1.0.0", "config", "complete")], false),
        ("a missing", vec![b], false),
        ("an older a is left over", vec![a, b, ("a", "1.0.0", "config", "complete")], true),
        ("a newer a is there", vec![a, b, ("a", "3.0.0", "config", "complete")], false),
        ("c is gone from the spec", vec![a, b, ("c", "1.0.0", "config", "complete")], false),
    ];
    for (case, entries, complete) in cases {
        assert_eq!(is_node_complete(&hook, &state(&entries)), complete, "{case}");
    }
}

#[test]
fn a_package_runs_once_its_dependencies_are_complete() {
    let object = skyhook(&json!({"a": {"version": "1", "image": "x"},
        "b": {"version": "1", "image": "x"},
        "c": {"version": "1", "image": "x", "dependsOn": {"a": "1", "b": "1"}}}));
    let hook = Hook::read(&object).unwrap();
    let names = |entries: &[(&str, &str, &str, &str)]| -> Vec<String> {
        runnable(&hook, &state(entries)).iter().map(|package| package.name.clone()).collect()
    };
    let a = ("a", "1", "config", "complete");
    assert_eq!(names(&[]), ["a", "b"]);
    assert_eq!(names(&[a]), ["b"]);
    assert_eq!(names(&[a, ("b", "1", "config", "complete")]), ["c"]);
    assert_eq!(names(&[a, ("b", "1", "apply", "erroring")]), ["b"]);
}

#[test]
fn versions_change_by_upgrade_or_by_uninstalling_first() {
    let object = skyhook(&json!({"dogs": {"version": "1.2.5", "image": "x"},
        "nullptr": {"version": "2.0.1", "image": "x"}, "same": {"version": "1.2.0", "image": "x"}}));
    let hook = Hook::read(&object).unwrap();
    let mut changed = state(&[
        ("cats", "1.0.0", "config", "complete"),
        ("dogs", "1.2.6", "config", "complete"),
        ("nullptr", "2.0.0", "config", "complete"),
        ("same", "1.2", "config", "complete"),
    ]);
    change_versions(&hook, &mut changed);
    let wanted = state(&[
        ("cats", "1.0.0", "uninstall", "in_progress"),
        ("dogs", "1.2.5", "uninstall", "skipped"),
        ("dogs", "1.2.6", "uninstall", "in_progress"),
        ("nullptr", "2.0.0", "config", "complete"),
        ("nullptr", "2.0.1", "upgrade", "in_progress"),
        ("same", "1.2", "config", "complete"),
        ("same", "1.2.0", "upgrade", "in_progress"),
    ]);
    assert_eq!(changed, wanted);
    let once = changed.clone();
    change_versions(&hook, &mut changed);
    assert_eq!(changed, once, "a second look changes nothing");
}
