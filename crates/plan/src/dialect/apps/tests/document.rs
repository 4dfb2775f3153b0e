//! The Deployment document of 2015, where apps/v1 and so Convoy do otherwise: rows of the table in
//! `docs/concepts/apps.md`. Rounding and defaults of the budgets are beside `Strategy::read`.

use convoy_testkit::{Builder, NOW, apps};
use serde_json::{Value, json};

use super::{decide, world};
use crate::dialect::Dialect;
use crate::dialect::apps::Apps;
use crate::step::Write;
use crate::world::World;

/// What validation says about a Deployment, as `FIELD: MESSAGE`.
fn said(deployment: Builder) -> Vec<String> {
    let found = Apps.validate(&World::new(), &deployment.build());
    found.iter().map(|found| format!("{}: {}", found.field, found.message)).collect()
}

#[test]
fn a_selector_has_no_default() {
    let deployment = apps::deployment(1, "web:v1").with("/spec/selector", Value::Null);
    assert_eq!(said(deployment), ["spec.selector: Required value"]);
}

#[test]
fn fields_that_were_never_part_of_the_version_are_named() {
    for (field, value) in [
        ("rollbackTo", json!({"revision": 1})),
        ("triggers", json!([{"type": "NewImage"}])),
        ("uniqueLabelKey", json!("pod-template-hash")),
    ] {
        let deployment = apps::deployment(1, "web:v1").with(&format!("/spec/{field}"), value);
        let [message] = &said(deployment)[..] else { panic!("{field}") };
        assert!(message.contains(&format!("unknown field \"spec.{field}\"")), "{message}");
    }
}

#[test]
fn there_are_two_strategies() {
    for kind in ["Custom", "BlueGreen"] {
        let deployment = apps::deployment(1, "web:v1").with("/spec/strategy/type", json!(kind));
        let expected = format!(
            "spec.strategy.type: Unsupported value: {kind:?}: supported values: \"Recreate\", \
             \"RollingUpdate\""
        );
        assert_eq!(said(deployment), [expected]);
    }
}

/// Pods that are not ready count, too; ready and available ones have counters of their own.
#[test]
fn replicas_count_pods_that_are_not_ready() {
    let old = apps::replica_set("web-1", "web:v1", 2, 4);
    let new = apps::replica_set("web-2", "web:v2", 3, 4)
        .created_at("2025-12-02T00:00:00Z")
        .with("/status/readyReplicas", json!(1))
        .with("/status/availableReplicas", json!(0));
    let step = decide(&world([apps::deployment(4, "web:v2"), old, new]));
    let status = &step.decision["status"];
    let counted = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
    assert_eq!(counted.map(|field| status[field].as_i64()), [Some(5), Some(3), Some(3), Some(2)]);
}

/// It gets an owner reference and the records of a ReplicaSet; its labels, selector, template and
/// pods stay as they are. Its template makes it the new one, whatever hash it carries.
#[test]
fn an_adopted_set_keeps_its_labels() {
    let orphan = apps::replica_set("mine", "web:v1", 1, 1)
        .with("/metadata/ownerReferences", json!([]))
        .with("/metadata/labels", json!({"app": "web"}))
        .with("/spec/selector", json!({"matchLabels": {"app": "web"}}))
        .with("/spec/template", apps::template("web:v1"));
    let pod = apps::replica("mine-a", "mine", NOW).with("/metadata/labels", json!({"app": "web"}));
    let step = decide(&world([apps::deployment(1, "web:v1"), orphan, pod]));
    assert_eq!(step.decision["adopt"], json!(["mine"]));
    assert_eq!(step.decision["create"], Value::Null, "its template is the Deployment's");
    let targets: Vec<&str> = step.actions.iter().map(|action| &*action.target.kind.kind).collect();
    assert_eq!(targets[..2], ["Deployment", "ReplicaSet"], "first the owner is confirmed");
    for action in &step.actions {
        let Write::Patch { patch, .. } = &action.write else { panic!("{action:?}") };
        assert_ne!(action.target.kind.kind, "Pod");
        assert_eq!(patch.pointer("/metadata/labels"), None, "{patch}");
        assert_eq!(patch.get("spec"), None, "{patch}");
    }
}
