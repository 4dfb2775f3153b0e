//! G12: an object with a field of any type fails nobody's decision, neither on the hub nor on a
//! member.

use convoy_api::{GroupKind, Object};
use convoy_plan::dialect::fleet::Fleet;
use convoy_plan::dialect::fleet_agent::FleetAgent;
use convoy_plan::{Dialect, HoldReason, World, decide};
use convoy_testkit::{NOW, fleet, object};
use serde_json::{Value, json};

use super::world::{PLACEMENT_API, Site, config, deployment, now, work};

/// Every version of `value` in which one member has another type.
fn damaged(value: &Value) -> Vec<Value> {
    let others = [json!(null), json!("x"), json!({"x": [1]}), json!([{}])];
    let mut paths = Vec::new();
    collect(value, String::new(), &mut paths);
    let mut found = Vec::new();
    for path in paths {
        for other in &others {
            let mut copy = value.clone();
            *copy.pointer_mut(&path).expect("it was found there") = other.clone();
            found.push(copy);
        }
    }
    found
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{path}/{name}"), paths);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                collect(value, format!("{path}/{at}"), paths);
            }
        }
        _ => {}
    }
    if !path.is_empty() {
        paths.push(path);
    }
}

/// Damages every object in turn, and decides about every rollout.
fn survives(dialect: &dyn Dialect, world: &World) {
    let objects: Vec<Object> = world.iter().cloned().collect();
    let mut decided = 0;
    for object in &objects {
        for raw in damaged(object.raw()) {
            let Ok(copy) = Object::from_value(raw) else { continue };
            let mut world = world.clone();
            world.remove(object.key());
            world.insert(copy.in_cluster(&object.key().cluster));
            for rollout in dialect.rollouts(&world) {
                let step = decide(dialect, &world, &[], rollout.key(), now());
                let step = step.expect("it is a rollout");
                let failed =
                    step.holds.iter().find(|it| matches!(it.reason, HoldReason::PlanFailed { .. }));
                assert_eq!(failed, None, "{}", copied(&world, object));
                decided += 1;
            }
        }
    }
    assert!(decided > 1000, "only {decided} decisions");
}

fn copied(world: &World, object: &Object) -> String {
    world.get(object.key()).map_or_else(String::new, |it| it.raw().to_string())
}

#[test]
fn a_damaged_object_fails_no_decision_of_an_agent() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "key", "namespace": "shop"}, "data": {"a": "YQ=="},
        "stringData": {"token": "abc"}});
    let strategy = json!({"comparisonOption": "FullComparison", "whenToApply": "IfNotDrifted",
        "whenToTakeOver": "IfNoDiff"});
    let manifests = [config("a"), secret, deployment("v1")];
    let mut site = Site::of_agent(vec![work("web-work", &manifests, &strategy)], "eu");
    site.settle();
    survives(&FleetAgent::new("eu"), site.world());
}

#[test]
fn a_damaged_object_fails_no_work_of_a_binding() {
    let started = fleet::condition("RolloutStarted", "True", "RolloutStarted", 1, NOW);
    let binding = fleet::binding("web", "eu", "Bound", "web-0-snapshot")
        .with("/metadata/generation", json!(1))
        .with("/spec/clusterResourceOverrideSnapshots", json!(["more-0"]))
        .status(json!({"conditions": [started]}));
    let envelope = json!({"apiVersion": PLACEMENT_API, "kind": "ResourceEnvelope",
        "metadata": {"name": "limits", "namespace": "shop"}, "data": {"settings": config("a")}});
    let snapshot = fleet::resource_snapshot("web", 0, true, &[deployment("v1"), envelope]);
    let rule = json!({"clusterSelector": {"clusterSelectorTerms": []}, "jsonPatchOverrides":
        [{"op": "add", "path": "/metadata/labels", "value": {"at": "${MEMBER-CLUSTER-NAME}"}}]});
    let shop = json!({"group": "", "version": "v1", "kind": "Namespace", "name": "shop"});
    let overrides = object(PLACEMENT_API, "ClusterResourceOverrideSnapshot", "more-0")
        .spec(json!({"overrideSpec": {"clusterResourceSelectors": [shop],
            "policy": {"overrideRules": [rule]}}}));
    let internal = object("cluster.kubernetes-fleet.io/v1beta1", "InternalMemberCluster", "eu")
        .namespace("fleet-member-eu")
        .spec(json!({"state": "Join"}));
    let objects = vec![
        binding.build(),
        snapshot.build(),
        overrides.build(),
        internal.build(),
        fleet::member("eu", NOW).build(),
    ];
    let mut site = Site::new(objects, &["eu"]);
    site.settle();
    let works = GroupKind::new("placement.kubernetes-fleet.io", "Work");
    assert_eq!(site.world().of(&works).count(), 2);
    survives(&Fleet, site.world());
}
