//! What becomes of the endpoints of Services.

use convoy_testkit::{Builder, NOW, node, object};
use serde_json::{Value, json};

use super::*;
use crate::step::Write;

fn service(spec: &Value) -> Builder {
    object("v1", "Service", "web").namespace("shop").label("team", "a").spec(spec.clone())
}

fn selecting(more: &Value) -> Builder {
    let mut spec = json!({"clusterIP": "10.0.0.9", "ipFamilies": ["IPv4"],
        "selector": {"app": "web"},
        "ports": [{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}]});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    service(&spec)
}

fn pod(name: &str, ip: &str, is_ready: bool) -> Builder {
    let port = json!({"name": "web", "containerPort": 8080, "protocol": "TCP"});
    object("v1", "Pod", name)
        .namespace("shop")
        .label("app", "web")
        .spec(json!({"nodeName": "n1", "containers": [{"name": "c", "ports": [port]}]}))
        .status(json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}]}))
}

fn world(objects: impl IntoIterator<Item = Builder>) -> World {
    objects.into_iter().map(Builder::build).collect()
}

fn step(world: &World) -> Step {
    let rollout = Endpoints.rollouts(world)[0];
    Endpoints.step(&Endpoints.snapshot(world, rollout), NOW.parse().unwrap())
}

/// Carries the step out as a server would.
fn carry_out(world: &mut World, step: &Step) {
    for (number, action) in step.actions.iter().enumerate() {
        match &action.write {
            Write::Create { object } => {
                let mut object = object.clone();
                object["metadata"]["uid"] = json!(format!("uid-{}", action.target));
                object["metadata"]["resourceVersion"] = json!(number.to_string());
                world.insert(Object::from_value(object).unwrap());
            }
            Write::Patch { patch, .. } => {
                let mut object = world.get(&action.target).unwrap().raw().clone();
                json_patch_merge(&mut object, patch);
                world.insert(Object::from_value(object).unwrap());
            }
            Write::Delete { .. } => _ = world.remove(&action.target),
            other => panic!("{other:?}"),
        }
    }
}

/// RFC 7386.
fn json_patch_merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().shift_remove(key);
        } else {
            json_patch_merge(&mut target[key], value);
        }
    }
}

fn made(world: &mut World) -> (Value, Vec<Value>) {
    let decided = step(world);
    carry_out(world, &decided);
    assert!(step(world).actions.is_empty(), "{:?}", step(world).actions);
    let raw = |kind| world.of(kind).map(|object| object.raw().clone()).collect::<Vec<_>>();
    (raw(&ENDPOINTS).pop().unwrap_or_default(), raw(&convoy_api::kinds::ENDPOINT_SLICE))
}

#[test]
fn pods_of_a_service_are_listed() {
    let zone = node("n1").label("topology.kubernetes.io/zone", "z1");
    let ended = pod("d", "10.1.0.4", true).with("/status/phase", json!("Succeeded"));
    let going = pod("c", "10.1.0.3", true).with("/metadata/deletionTimestamp", json!(NOW));
    let other = pod("o", "10.1.0.9", true).label("app", "other");
    let pods = [pod("a", "10.1.0.1", true), pod("b", "10.1.0.2", false), going, ended, other];
    let mut world = world(pods.into_iter().chain([selecting(&json!({})), zone]));
    let (endpoints, slices) = made(&mut world);
    assert_eq!(
        endpoints["metadata"]["labels"],
        json!({"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"})
    );
    let target = |name: &str| json!({"kind": "Pod", "namespace": "shop", "name": name, "uid": format!("uid-pod-{name}")});
    let address =
        |ip: &str, name: &str| json!({"ip": ip, "nodeName": "n1", "targetRef": target(name)});
    assert_eq!(
        endpoints["subsets"],
        json!([{"addresses": [address("10.1.0.1", "a")],
            "notReadyAddresses": [address("10.1.0.2", "b")],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}])
    );
    let [slice] = slices.as_slice() else { panic!("{slices:?}") };
    assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "web");
    assert_eq!(slice["metadata"]["ownerReferences"][0]["kind"], "Service");
    let endpoint = |ip: &str, name: &str, [ready, serving, terminating]: [bool; 3]| {
        json!({"addresses": [ip], "nodeName": "n1", "zone": "z1", "targetRef": target(name),
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating}})
    };
    assert_eq!(
        slice["endpoints"],
        json!([
            endpoint("10.1.0.1", "a", [true, true, false]),
            endpoint("10.1.0.2", "b", [false, false, false]),
            endpoint("10.1.0.3", "c", [false, true, true]),
        ])
    );
}

#[test]
fn a_service_without_pods_has_an_empty_slice_that_the_first_pod_takes() {
    let mut world = world([selecting(&json!({"clusterIP": "None"}))]);
    let (endpoints, before) = made(&mut world);
    assert_eq!(endpoints["subsets"], json!([]));
    assert_eq!(endpoints["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    assert_eq!((before.len(), &before[0]["endpoints"]), (1, &json!([])));
    world.insert(pod("a", "10.1.0.1", true).build());
    let (_, after) = made(&mut world);
    assert_eq!(after.len(), 1);
    assert_eq!(after[0]["metadata"]["name"], before[0]["metadata"]["name"]);
    assert_eq!(after[0]["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
}

#[test]
fn pods_that_are_not_ready_are_published_if_the_service_asks_for_them() {
    let going = pod("b", "10.1.0.2", false).with("/metadata/deletionTimestamp", json!(NOW));
    let published = selecting(&json!({"publishNotReadyAddresses": true}));
    let mut world = world([published, pod("a", "10.1.0.1", false), going]);
    let (endpoints, slices) = made(&mut world);
    assert_eq!(endpoints["subsets"][0]["addresses"].as_array().unwrap().len(), 2);
    assert_eq!(slices[0]["endpoints"][1]["conditions"]["ready"], true);
}

#[test]
fn endpoints_stay_in_their_slice() {
    let pods = |count: usize| {
        (0..count).map(|at| pod(&format!("p{at:03}"), &format!("10.1.0.{at}"), true))
    };
    let mut world = world(pods(205).chain([selecting(&json!({}))]));
    let (_, slices) = made(&mut world);
    let counts = |slices: &[Value]| {
        let mut counts: Vec<usize> =
            slices.iter().map(|slice| slice["endpoints"].as_array().unwrap().len()).collect();
        counts.sort_unstable();
        counts
    };
    assert_eq!(counts(&slices), [5, 100, 100]);
    world.remove(pod("p000", "", true).build().key());
    let decided = step(&world);
    assert_eq!(decided.actions.len(), 2, "the Endpoints and one slice change");
    carry_out(&mut world, &decided);
    world.insert(pod("q", "10.1.1.1", true).build());
    let (_, slices) = made(&mut world);
    assert_eq!(counts(&slices).iter().sum::<usize>(), 205);
    assert_eq!(slices.len(), 3);
}

#[test]
fn pods_with_other_ports_are_told_apart() {
    let mut other = pod("b", "10.1.0.2", true).build().raw().clone();
    other["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(9090);
    let mut world = world([selecting(&json!({})), pod("a", "10.1.0.1", true)]);
    world.insert(Object::from_value(other).unwrap());
    let (endpoints, slices) = made(&mut world);
    assert_eq!((endpoints["subsets"].as_array().unwrap().len(), slices.len()), (2, 2));
}

#[test]
fn endpoints_of_others_are_mirrored() {
    let custom = json!([{"addresses": [{"ip": "10.9.0.1"}], "ports": [{"port": 80}]}]);
    let endpoints = object("v1", "Endpoints", "web").namespace("shop").with("/subsets", custom);
    let mut world = world([service(&json!({"clusterIP": "10.0.0.9"})), endpoints.clone()]);
    let (_, slices) = made(&mut world);
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0]["metadata"]["ownerReferences"][0]["kind"], "Endpoints");
    assert_eq!(slices[0]["ports"], json!([{"name": "", "port": 80, "protocol": "TCP"}]));
    assert_eq!(
        slices[0]["endpoints"],
        json!([{"addresses": ["10.9.0.1"], "conditions": {"ready": true}}])
    );
    world.insert(endpoints.clone().with("/subsets", json!([])).build());
    assert!(made(&mut world).1.is_empty());
    let skipped = endpoints.label("endpointslice.kubernetes.io/skip-mirror", "true");
    world.insert(skipped.build());
    assert!(step(&world).actions.is_empty());
}

#[test]
fn endpoints_go_with_their_service() {
    let mut with_selector = world([selecting(&json!({}))]);
    made(&mut with_selector);
    let custom = json!([{"addresses": [{"ip": "10.9.0.1"}]}]);
    let endpoints = object("v1", "Endpoints", "web").namespace("shop").with("/subsets", custom);
    let mut mirrored = world([service(&json!({"clusterIP": "10.0.0.9"})), endpoints.clone()]);
    made(&mut mirrored);
    for mut world in [with_selector, mirrored] {
        let key = service(&json!({})).build().key().clone();
        world.remove(&key);
        assert_eq!(Endpoints.affected(&world, &key).len(), 1);
        let decided = step(&world);
        carry_out(&mut world, &decided);
        assert_eq!(world.of(&ENDPOINTS).count(), 0);
    }
    // Those that never had a Service are somebody else's.
    assert!(Endpoints.rollouts(&world([endpoints])).is_empty());
}

#[test]
fn heartbeats_of_pods_concern_no_service() {
    let before = pod("a", "10.1.0.1", true).build();
    let after = pod("a", "10.1.0.1", true).with("/status/message", json!("x")).build();
    let world = world([selecting(&json!({})), pod("a", "10.1.0.1", true)]);
    let now = NOW.parse().unwrap();
    assert_eq!(Endpoints.affected_by(&world, &before, &after, now), Some(Vec::new()));
    let lost = pod("a", "10.1.0.1", false).build();
    assert_eq!(Endpoints.affected_by(&world, &before, &lost, now), None);
    assert_eq!(Endpoints.affected(&world, before.key()).len(), 1);
}
