//! Whether the machines of a pool become nodes, as its condition says.

use convoy_api::Object;
use convoy_testkit::{Builder, NOW, karpenter, object};
use serde_json::{Value, json};

use super::{drifting, step_without_class as step};
use crate::{Step, Write};

const NOTE: &str = "convoy.dev/node-registrations";

fn owned(claim: Builder) -> Builder {
    let owner = json!([{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default",
        "uid": "pool"}]);
    claim.with("/metadata/ownerReferences", owner)
}

fn pool(note: Option<&str>) -> Object {
    let mut raw = drifting().raw().clone();
    raw["metadata"]["uid"] = json!("pool");
    raw["metadata"]["generation"] = json!(1);
    if let Some(note) = note {
        raw["metadata"]["annotations"][NOTE] = json!(note);
    }
    drifting().with_raw(raw)
}

/// A claim that was given up: launched, and never registered.
fn lost(name: &str) -> Object {
    let since = "2025-12-31T23:40:00Z";
    let entry = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": kind,
        "message": "", "lastTransitionTime": since})
    };
    let claim = object("karpenter.sh/v1", "NodeClaim", name)
        .label("karpenter.sh/nodepool", "default")
        .created_at(since)
        .with("/metadata/finalizers", json!(["karpenter.sh/termination"]))
        .with("/metadata/deletionTimestamp", json!(NOW))
        .status(json!({"providerID": format!("kwok://{name}"),
            "conditions": [entry("Launched", "True"), entry("Registered", "Unknown")]}));
    owned(claim).build()
}

/// Status and reason of the condition that a step writes.
fn health(step: &Step) -> Option<[String; 2]> {
    let conditions = step.status.as_ref()?["conditions"].as_array()?;
    let entry = conditions.iter().find(|entry| entry["type"] == "NodeRegistrationHealthy")?;
    Some(["status", "reason"].map(|field| entry[field].as_str().unwrap().to_owned()))
}

fn note(step: &Step) -> Option<&str> {
    step.actions.iter().find_map(|action| match &action.write {
        Write::Patch { patch, .. } => {
            patch.pointer("/metadata/annotations")?.get(NOTE).and_then(Value::as_str)
        }
        _ => None,
    })
}

#[test]
fn one_node_that_registers_is_enough() {
    let good = || owned(karpenter::claim("default", "n")).build();
    let first = step([pool(None), good()]);
    assert_eq!(health(&first).unwrap(), ["True", "NodeRegistrationHealthy"]);
    assert_eq!(note(&first), Some("1.0 2025-12-31T00:00:00Z S"));
    let then = step([pool(note(&first)), good()]);
    assert_eq!(note(&then), None, "the claim counts once");
    let foreign = step([pool(None), karpenter::claim("default", "n").build()]);
    assert_eq!(health(&foreign).unwrap(), ["Unknown", "AwaitingReconciliation"]);
}

#[test]
fn two_claims_that_are_given_up_are_too_many() {
    let one = step([pool(None), lost("a")]);
    assert_eq!(health(&one).unwrap()[0], "Unknown");
    assert_eq!(note(&one), Some("1.0 2026-01-01T00:00:00Z F"));
    let two = step([pool(None), lost("a"), lost("b")]);
    assert_eq!(health(&two).unwrap(), ["False", "RegistrationFailed"]);
    let noted = two.actions.iter().position(|it| it.target.kind.kind == "NodePool").unwrap();
    let let_go = two.actions.iter().position(|it| it.target.name == "a");
    assert!(let_go.is_none_or(|at| noted < at), "noted before the claim is gone: {two:?}");
}

#[test]
fn another_template_begins_anew() {
    let good = owned(karpenter::claim("default", "n")).build();
    let changed = step([pool(Some("0.0 2025-12-31T00:00:00Z SFF")), good]);
    assert_eq!(health(&changed).unwrap(), ["Unknown", "AwaitingReconciliation"]);
    assert_eq!(note(&changed), Some("1.0 2026-01-01T00:00:00Z "));
}
