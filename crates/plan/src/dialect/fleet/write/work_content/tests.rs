//! What stands in Works: manifests from snapshots and envelopes, with overrides, under names that stay.

use convoy_testkit::{Builder, fleet, object};
use serde_json::json;

use super::*;
use crate::dialect::Dialect;
use crate::dialect::fleet::Fleet;
use crate::step::{Action, Step, Verdict, Write};
use crate::world::World;

const NOW: &str = "2026-01-01T00:00:00Z";
const HOME: &str = "fleet-member-eu-1";
const PLACEMENT_API: &str = "placement.kubernetes-fleet.io/v1beta1";

fn front(replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "front", "namespace": "shop"}, "spec": {"replicas": replicas}})
}

fn internal() -> Object {
    object("cluster.kubernetes-fleet.io/v1beta1", "InternalMemberCluster", "eu-1")
        .namespace(HOME)
        .spec(json!({"state": "Join"}))
        .build()
}

/// A binding of cluster eu-1 for which the rollout has started.
fn binding() -> Builder {
    let started = fleet::condition("RolloutStarted", "True", "RolloutStarted", 1, NOW);
    fleet::binding("web", "eu-1", "Bound", "web-0-snapshot")
        .with("/metadata/generation", json!(1))
        .status(json!({"conditions": [started]}))
}

fn hub(resources: &[Value], more: Vec<Object>) -> World {
    let member = fleet::member("eu-1", NOW).label("region", "eu").build();
    let snapshot = fleet::resource_snapshot("web", 0, true, resources).build();
    [member, internal(), snapshot].into_iter().chain(more).collect()
}

fn step(world: &World) -> Step {
    let binding = world.of(&crate::dialect::fleet::names::Family::Cluster.binding()).next();
    let binding = binding.expect("there is a binding");
    assert!(Fleet.is_rollout(world, binding), "its Works are made here");
    Fleet.step(&Fleet.snapshot(world, binding), NOW.parse().unwrap())
}

fn conditions(step: &Step) -> Vec<String> {
    let status = step.status.as_ref().expect("the status changes");
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    let entries = status["conditions"].as_array().unwrap().iter();
    entries
        .map(|it| format!("{}={}/{}", word(it, "type"), word(it, "status"), word(it, "reason")))
        .collect()
}

fn creates(step: &Step) -> Vec<(&str, &Value)> {
    let created = step.actions.iter().filter_map(|action| match &action.write {
        Write::Create { object } => Some((action.target.name.as_str(), object)),
        _ => None,
    });
    created.collect()
}

#[test]
fn a_bound_binding_gets_a_work_with_what_was_selected() {
    let world = hub(&[front(3)], vec![binding().build()]);
    let step = step(&world);
    let [(name, work)] = creates(&step)[..] else { panic!("{:?}", step.actions) };
    assert_eq!(name, "web-work");
    assert_eq!(work["metadata"]["namespace"], HOME);
    let labels = &work["metadata"]["labels"];
    assert_eq!(labels["kubernetes-fleet.io/parent-CRP"], "web");
    assert_eq!(labels["kubernetes-fleet.io/parent-resource-binding"], "web-eu-1");
    assert_eq!(labels["kubernetes-fleet.io/parent-resource-snapshot-index"], "0");
    let annotations = &work["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes-fleet.io/parent-resource-snapshot-name"], "web-0-snapshot");
    // SHA-256 over `null`: there is no override.
    let none = "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b";
    assert_eq!(annotations["kubernetes-fleet.io/parent-resource-override-snapshot-hash"], none);
    assert_eq!(work["spec"]["workload"]["manifests"], json!([front(3)]));
    assert_eq!(work["spec"]["applyStrategy"]["type"], "ClientSideApply");
    assert_eq!(
        conditions(&step),
        [
            "RolloutStarted=True/RolloutStarted",
            "Overridden=True/NoOverrideSpecified",
            "WorkSynchronized=True/AllWorkSynced",
            "Applied=False/ApplyInProgress",
        ]
    );
}

#[test]
fn nothing_is_made_before_the_rollout_has_started() {
    let waiting = fleet::binding("web", "eu-1", "Bound", "web-0-snapshot")
        .with("/metadata/generation", json!(2))
        .status(json!({"conditions":
            [fleet::condition("RolloutStarted", "True", "RolloutStarted", 1, NOW)]}));
    let step = step(&hub(&[front(3)], vec![waiting.build()]));
    assert_eq!((step.verdict, step.actions.len(), step.status), (Verdict::Held, 0, None));
}

/// The Work that the first step made, as the member's report leaves it.
fn work(world: &World, conditions: &Value) -> Object {
    let step = step(world);
    let mut raw = creates(&step)[0].1.clone();
    raw["metadata"]["generation"] = json!(1);
    raw["status"] = json!({"conditions": conditions});
    Object::from_value(raw).unwrap()
}

fn reported() -> Value {
    json!([
        fleet::condition("Applied", "True", "AllManifestsApplied", 1, NOW),
        fleet::condition("Available", "True", "AllManifestsAvailable", 1, NOW),
    ])
}

#[test]
fn what_the_member_reports_becomes_the_bindings_status() {
    let mut world = hub(&[front(3)], vec![binding().build()]);
    world.insert(work(&world, &reported()));
    let step = step(&world);
    assert_eq!(step.actions, []);
    assert_eq!(step.verdict, Verdict::Done);
    let last = conditions(&step).pop();
    assert_eq!(last.as_deref(), Some("Available=True/AllWorkAreAvailable"));
}

#[test]
fn a_work_is_patched_when_its_binding_moves_on() {
    let mut world = hub(&[front(3)], vec![binding().build()]);
    world.insert(work(&world, &reported()));
    world.insert(fleet::resource_snapshot("web", 1, true, &[front(5)]).build());
    world.insert(binding().with("/spec/resourceSnapshotName", json!("web-1-snapshot")).build());
    let step = step(&world);
    let [Action { write: Write::Patch { patch, .. }, .. }] = &step.actions[..] else {
        panic!("{:?}", step.actions)
    };
    assert_eq!(patch["spec"], json!({"workload": {"manifests": [front(5)]}}));
    let labels = json!({"kubernetes-fleet.io/parent-resource-snapshot-index": "1"});
    assert_eq!(patch["metadata"]["labels"], labels);
    assert_eq!(conditions(&step).pop().as_deref(), Some("Applied=False/ApplyInProgress"));
}

fn resource_override(rule: &Value) -> Object {
    let selector = json!({"group": "apps", "version": "v1", "kind": "Deployment", "name": "front"});
    object(PLACEMENT_API, "ResourceOverrideSnapshot", "more-0")
        .namespace("shop")
        .spec(json!({"overrideSpec": {"resourceSelectors": [selector],
            "policy": {"overrideRules": [rule]}}}))
        .build()
}

fn overridden_binding() -> Object {
    let overrides = json!([{"namespace": "shop", "name": "more-0"}]);
    binding().with("/spec/resourceOverrideSnapshots", overrides).build()
}

#[test]
fn overrides_change_what_a_cluster_gets() {
    let rule = json!({"clusterSelector": {}, "jsonPatchOverrides":
        [{"op": "replace", "path": "/spec/replicas", "value": 9}]});
    let world = hub(&[front(3)], vec![overridden_binding(), resource_override(&rule)]);
    let step = step(&world);
    assert_eq!(creates(&step)[0].1["spec"]["workload"]["manifests"], json!([front(9)]));
    assert_eq!(conditions(&step)[1], "Overridden=True/OverriddenSucceeded");
}

#[test]
fn an_override_that_does_not_fit_is_told_and_nothing_is_written() {
    let rule = json!({"clusterSelector": {}, "jsonPatchOverrides":
        [{"op": "remove", "path": "/spec/none"}]});
    let cases = [
        ("does not fit", vec![overridden_binding(), resource_override(&rule)]),
        ("does not exist", vec![overridden_binding()]),
    ];
    for (words, more) in cases {
        let step = step(&hub(&[front(3)], more));
        assert_eq!((step.actions.len(), step.verdict), (0, Verdict::Stopped), "{words}");
        assert_eq!(conditions(&step)[1..], ["Overridden=False/OverriddenFailed"]);
        let message = &step.status.as_ref().unwrap()["conditions"][1]["message"];
        assert!(message.as_str().unwrap().contains(words), "{message}");
    }
}

#[test]
fn an_envelope_has_a_work_of_its_own() {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "shop"}, "spec": {"hard": {"pods": "3"}}});
    let envelope = json!({"apiVersion": PLACEMENT_API, "kind": "ResourceEnvelope",
        "metadata": {"name": "limits", "namespace": "shop"}, "data": {"quota.yaml": quota}});
    let world = hub(&[front(3), envelope], vec![binding().build()]);
    let step = step(&world);
    let made = creates(&step);
    // The first 8 bytes of SHA-256 over "ResourceEnvelope/shop/limits".
    let name = "web-work-envelope-9701cfd447af2021";
    assert_eq!(made.iter().map(|it| it.0).collect::<Vec<_>>(), ["web-work", name]);
    assert_eq!(made[1].1["spec"]["workload"]["manifests"], json!([quota]));
    let labels = &made[1].1["metadata"]["labels"];
    assert_eq!(labels["kubernetes-fleet.io/envelope-work"], "ResourceEnvelope");
    assert_eq!(labels["kubernetes-fleet.io/envelope-name"], "limits");
    assert_eq!(labels["kubernetes-fleet.io/envelope-namespace"], "shop");
}

#[test]
fn works_of_a_namespaced_placement_carry_its_namespace() {
    let started = fleet::condition("RolloutStarted", "True", "RolloutStarted", 1, NOW);
    let label = "kubernetes-fleet.io/parent-CRP";
    let binding = object(PLACEMENT_API, "ResourceBinding", "web-eu-1")
        .namespace("shop")
        .label(label, "web")
        .with("/metadata/generation", json!(1))
        .spec(json!({"state": "Bound", "targetCluster": "eu-1",
            "resourceSnapshotName": "web-0-snapshot"}))
        .status(json!({"conditions": [started]}))
        .build();
    let part = |name: &str, of: &Value| {
        object(PLACEMENT_API, "ResourceSnapshot", name)
            .namespace("shop")
            .label(label, "web")
            .label("kubernetes-fleet.io/resource-index", "0")
            .spec(json!({"selectedResources": [of]}))
    };
    let master = part("web-0-snapshot", &front(1))
        .label("kubernetes-fleet.io/is-latest-snapshot", "true")
        .annotation("kubernetes-fleet.io/number-of-resource-snapshots", "2");
    let further = part("web-0-0", &front(2))
        .annotation("kubernetes-fleet.io/subindex-of-resource-snapshot", "0");
    let mut world = hub(&[], vec![binding.clone(), master.build()]);
    let step = |world: &World| Fleet.step(&Fleet.snapshot(world, &binding), NOW.parse().unwrap());
    let incomplete = step(&world);
    assert_eq!(incomplete.actions.len(), 1, "only the finalizer, {:?}", incomplete.actions);
    world.insert(further.build());
    let complete = step(&world);
    let names: Vec<&str> = creates(&complete).iter().map(|it| it.0).collect();
    assert_eq!(names, ["shop.web-0", "shop.web-work"]);
    let work = Object::from_value(creates(&complete)[0].1.clone()).unwrap();
    assert_eq!(work.label("kubernetes-fleet.io/parent-placement-namespace"), Some("shop"));
    world.insert(work.clone());
    assert!(
        Fleet.affected(&world, work.key()).contains(binding.key()),
        "it reports to its binding"
    );
}

#[test]
fn what_cannot_become_a_work_is_named() {
    let misplaced = json!({"apiVersion": PLACEMENT_API, "kind": "ClusterResourceEnvelope",
        "metadata": {"name": "roles"}, "data": {"front": front(1)}});
    let large = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "big", "namespace": "shop"}, "data": {"x": "y".repeat(1_500_000)}});
    let cases = [(misplaced, "ClusterResourceEnvelope roles"), (large, "Work web-work")];
    for (resource, words) in cases {
        let step = step(&hub(&[resource], vec![binding().build()]));
        assert_eq!((step.actions.len(), step.verdict), (0, Verdict::Stopped), "{words}");
        assert_eq!(
            conditions(&step).pop().as_deref(),
            Some("WorkSynchronized=False/SyncWorkFailed")
        );
        let message = &step.status.as_ref().unwrap()["conditions"][2]["message"];
        assert!(message.as_str().unwrap().contains(words), "{message}");
    }
}

#[test]
fn a_deleted_binding_waits_for_its_works() {
    let world = hub(&[front(3)], vec![binding().build()]);
    let work = work(&world, &reported());
    let deleted = || binding().with("/metadata/deletionTimestamp", json!(NOW));
    let mut world = hub(&[front(3)], vec![deleted().build(), work.clone()]);
    let leaving = step(&world);
    let [Action { target, write: Write::Delete { .. }, .. }] = &leaving.actions[..] else {
        panic!("{:?}", leaving.actions)
    };
    assert_eq!(target, work.key());
    world.remove(work.key());
    let gone = step(&world);
    let [Action { write: Write::Patch { patch, .. }, .. }] = &gone.actions[..] else {
        panic!("{:?}", gone.actions)
    };
    assert_eq!(patch["metadata"]["finalizers"], json!([]));
    let placement = fleet::placement("web", json!(null))
        .with("/spec/strategy", json!({"deleteStrategy": {"propagationPolicy": "Abandon"}}))
        .with("/metadata/deletionTimestamp", json!(NOW));
    let mut held = work.raw().clone();
    held["metadata"]["finalizers"] = json!(["kubernetes-fleet.io/work-cleanup"]);
    world.insert(work.with_raw(held));
    world.insert(placement.build());
    let verbs: Vec<&str> = step(&world).actions.iter().map(|it| it.verb.into()).collect();
    assert_eq!(verbs, ["Release", "Delete"], "the objects stay on the member");
}

#[test]
fn a_refused_work_is_told_in_the_servers_words() {
    let world = hub(&[front(3)], vec![binding().build()]);
    let step = step(&world);
    let binding = world.get(&step.rollout).unwrap();
    let denial = crate::step::Denial {
        target: step.actions[0].target.clone(),
        verb: "create",
        message: "request is too large".to_owned(),
    };
    let snapshot = Fleet.snapshot(&world, binding);
    let complaint = Fleet.complaint(&snapshot, &denial, NOW.parse().unwrap());
    let status = complaint.status.unwrap();
    let last = status["conditions"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["type"], &last["status"]), (&json!("WorkSynchronized"), &json!("False")));
    let message = last["message"].as_str().unwrap();
    assert!(message.contains("web-work") && message.contains("too large"), "{message}");
}
