//! One row per rule: what is changed in a sound Deployment, and what is said about it.

use convoy_testkit::object;
use serde_json::json;

use super::*;
use crate::diagnostic::Severity;

fn sound() -> convoy_testkit::Builder {
    object("apps/v1", "Deployment", "web").namespace("shop").spec(json!({
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    }))
}

fn said(object: &Object) -> Vec<String> {
    let errors = findings(object).into_iter().filter(|found| found.severity == Severity::Error);
    errors.map(|found| format!("{}: {}", found.field, found.message)).collect()
}

#[test]
fn a_sound_deployment_passes() {
    assert_eq!(said(&sound().build()), Vec::<String>::new());
}

fn assert_refused(cases: &[(&str, Value, &str)]) {
    for (pointer, value, expected) in cases {
        let said = said(&sound().with(pointer, value.clone()).build());
        assert!(said.iter().any(|said| said.contains(expected)), "{pointer} {value}: {said:?}");
    }
}

#[test]
fn sizes_and_times_have_bounds() {
    assert_refused(&[
        (
            "/spec/replicas",
            json!(-1),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "/spec/replicas",
            json!("three"),
            "spec.replicas: Invalid value: \"three\": want an integer",
        ),
        ("/spec/minReadySeconds", json!(-1), "spec.minReadySeconds: Invalid value: -1"),
        ("/spec/revisionHistoryLimit", json!(-2), "spec.revisionHistoryLimit: Invalid value: -2"),
        ("/spec/minReadySeconds", json!(600), "must be greater than minReadySeconds"),
        (ROLLBACK_TO, json!("-1"), "must be greater than or equal to 0"),
        (ROLLBACK_TO, json!("last"), "must be a revision"),
    ]);
}

const ROLLBACK_TO: &str = "/metadata/annotations/deprecated.deployment.rollback.to";

#[test]
fn a_selector_must_be_sound_and_fit_the_template() {
    let near = json!({"matchExpressions": [{"key": "app", "operator": "Near"}]});
    assert_refused(&[
        ("/spec/selector", json!(null), "spec.selector: Required value"),
        ("/spec/selector", json!({}), "empty selector is invalid for deployment"),
        (
            "/spec/selector",
            near,
            "spec.selector.matchExpressions[0].operator: Invalid value: \"Near\": \
             not a valid selector operator",
        ),
        (
            "/spec/selector/matchLabels/app",
            json!("api"),
            "`selector` does not match template `labels`",
        ),
    ]);
}

#[test]
fn a_strategy_must_leave_room_to_move() {
    let rolling = "/spec/strategy/rollingUpdate";
    assert_refused(&[
        (
            rolling,
            json!({"maxSurge": 0, "maxUnavailable": "0%"}),
            "may not be 0 when `maxSurge` is 0",
        ),
        (rolling, json!({"maxUnavailable": "101%"}), "must not be greater than 100%"),
        (
            rolling,
            json!({"maxSurge": -1}),
            "maxSurge: Invalid value: -1: must be greater than or equal to 0",
        ),
        (rolling, json!({"maxSurge": "few"}), "a valid percent string must be a numeric string"),
        (
            "/spec/strategy",
            json!({"type": "Recreate", "rollingUpdate": {}}),
            "Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            "/spec/strategy/type",
            json!("Blue"),
            "Unsupported value: \"Blue\": supported values: \"Recreate\", \"RollingUpdate\"",
        ),
    ]);
}

#[test]
fn a_template_is_that_of_a_pod_that_always_runs() {
    let pod = |field: &str| format!("/spec/template/spec/{field}");
    assert_refused(&[
        (&pod("containers"), json!([]), "spec.template.spec.containers: Required value"),
        (
            &pod("containers"),
            json!([{"name": "a"}]),
            "spec.template.spec.containers[0].image: Required value",
        ),
        (
            &pod("restartPolicy"),
            json!("Never"),
            "restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
        ),
        (
            &pod("activeDeadlineSeconds"),
            json!(5),
            "activeDeadlineSeconds in ReplicaSet is not Supported",
        ),
        (
            &pod("volumes"),
            json!([{"name": "a"}, {"name": "a"}]),
            "spec.template.spec.volumes[1].name: Duplicate value: \"a\"",
        ),
    ]);
}

#[test]
fn containers_are_checked_one_by_one() {
    let cases = [
        (
            json!({"ports": [{"containerPort": 70_000}]}),
            "ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535",
        ),
        (
            json!({"ports": [{"containerPort": 80, "protocol": "ICMP"}]}),
            "ports[0].protocol: Unsupported value",
        ),
        (json!({"env": [{"value": "x"}]}), "env[0].name: Required value"),
        (
            json!({"volumeMounts": [{"name": "data", "mountPath": "/data"}]}),
            "volumeMounts[0].name: Not found: \"data\"",
        ),
        (
            json!({"livenessProbe": {}}),
            "livenessProbe: Required value: must specify a handler type",
        ),
        (
            json!({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": 2}}}),
            "resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit",
        ),
        (
            json!({"imagePullPolicy": "Sometimes"}),
            "imagePullPolicy: Unsupported value: \"Sometimes\"",
        ),
        (json!({"name": "Web"}), "name: Invalid value: \"Web\": a lowercase RFC 1123 label"),
    ];
    for (more, expected) in cases {
        let mut container = json!({"name": "web", "image": "web:1"});
        json_patch::merge(&mut container, &more);
        let object = sound().with("/spec/template/spec/containers", json!([container])).build();
        let said = said(&object);
        assert!(said.iter().any(|said| said.contains(expected)), "{more}: {said:?}");
    }
}

#[test]
fn an_unknown_field_is_only_a_warning() {
    let object = sound().with("/spec/futureField", json!(1)).build();
    assert_eq!(said(&object), Vec::<String>::new());
    assert!(findings(&object)[0].message.contains("unknown field \"spec.futureField\""));
}
