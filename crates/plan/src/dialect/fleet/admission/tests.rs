//! What the webhooks say, in the words that clients of upstream look for.

use convoy_testkit::object;
use serde_json::json;

use super::*;
use crate::admission::Circumstances;

fn webhook(name: &str) -> &'static Webhook {
    let name = format!("fleet.{name}.validating");
    WEBHOOKS.iter().find(|webhook| webhook.name == name).expect("it is registered")
}

fn built(kind: &str, name: &str, spec: Value) -> Object {
    object("placement.kubernetes-fleet.io/v1beta1", kind, name).spec(spec).build()
}

fn placement(spec: Value) -> Object {
    built("ClusterResourcePlacement", "web", spec)
}

/// The refusal of a write, empty if it is allowed.
fn refusal(hook: &str, world: &World, object: &Object, old: Option<&Object>) -> String {
    let request = Request {
        operation: if old.is_none() { Operation::Create } else { Operation::Update },
        name: object.name(),
        object: Some(object.raw()),
        old: old.map(Object::raw),
        user: "",
        circumstances: Circumstances::default(),
    };
    match admit(webhook(hook), world, &request) {
        Verdict::Refused(message) | Verdict::Invalid(message) => message,
        Verdict::Allowed { .. } => String::new(),
    }
}

#[test]
fn a_placement_selects_kinds_that_are_served_in_its_scope() {
    let asked = |group: &str, kind: &str, world: &World| {
        let selectors = json!([{"group": group, "version": "v1", "kind": kind, "name": "a"}]);
        let spec = json!({"resourceSelectors": selectors});
        refusal("clusterresourceplacementv1beta1", world, &placement(spec), None)
    };
    let none = World::new();
    assert_eq!(asked("", "Namespace", &none), "");
    let refused = asked("", "InvalidNamespace", &none);
    assert!(refused.contains("failed to get GVR of the selector"), "{refused}");
    let refused = asked("apps", "Deployment", &none);
    let wanted =
        "the resource is not found in schema (please retry) or it is not a cluster scoped resource";
    assert!(refused.contains(wanted), "{refused}");
    let definition = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "tests.a.b")
        .spec(json!({"group": "a.b", "names": {"kind": "Test"}, "scope": "Cluster"}))
        .build();
    assert_ne!(asked("a.b", "Test", &none), "");
    assert_eq!(asked("a.b", "Test", &[definition].into_iter().collect()), "");
}

#[test]
fn type_and_tolerations_of_a_placement_stay() {
    let of = |policy: Value| placement(json!({"policy": policy}));
    let refused = |old: Value, new: Value| {
        let hook = "clusterresourceplacementv1beta1";
        refusal(hook, &World::new(), &of(new), Some(&of(old)))
    };
    let pick_n = json!({"placementType": "PickN", "numberOfClusters": 1});
    let pick_all = json!({"placementType": "PickAll"});
    assert!(refused(pick_all.clone(), pick_n.clone()).contains("placement type is immutable"));
    assert!(refused(Value::Null, pick_n.clone()).contains("placement type is immutable"));
    assert_eq!(refused(pick_n, pick_all), "");
    let tolerations = |keys: &[&str]| {
        let all: Vec<Value> = keys.iter().map(|key| json!({"key": key, "value": "a"})).collect();
        json!({"tolerations": all})
    };
    assert_eq!(refused(tolerations(&["a"]), tolerations(&["b", "a"])), "");
    let message = refused(tolerations(&["a", "b"]), tolerations(&["a", "c"]));
    assert!(message.contains("only additions to tolerations are allowed"), "{message}");
}

#[test]
fn selectors_of_clusters_are_printed_with_what_is_wrong() {
    let spec = json!({"policy": {"placementType": "PickN", "numberOfClusters": 1, "affinity":
        {"clusterAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1,
            "preference": {"labelSelector": {"matchExpressions":
                [{"key": "test-key", "operator": "In"}]}}}]}}}});
    let hook = "clusterresourceplacementv1beta1";
    let refused = refusal(hook, &World::new(), &placement(spec), None);
    let wanted = "the labelSelector in preferred cluster selector &LabelSelector{MatchLabels:\
        map[string]string{},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement\
        {Key:test-key,Operator:In,Values:[],},},} is invalid:";
    assert!(refused.contains(wanted), "{refused}");
}

fn override_of(name: &str, resource: &str, patches: Value) -> Object {
    let selector = json!({"group": "", "version": "v1", "kind": "Namespace", "name": resource,
        "selectionScope": "NamespaceWithResources"});
    built(
        "ClusterResourceOverride",
        name,
        json!({"clusterResourceSelectors": [selector],
        "policy": {"overrideRules": [{"jsonPatchOverrides": patches}]}}),
    )
}

#[test]
fn an_override_is_refused_with_every_rule_that_it_breaks() {
    let patch = json!([{"op": "remove", "path": "/meta/labels/a"}]);
    let stored = override_of("stored", "shop", patch.clone());
    let world: World = [stored.clone()].into_iter().collect();
    let bad = json!([{"op": "remove", "path": "/kind", "value": 1},
        {"op": "add", "path": "////", "value": 1}, {"op": "add", "path": "", "value": 1}]);
    let refused =
        refusal("clusterresourceoverride", &world, &override_of("new", "shop", bad), None);
    for wanted in [
        "invalid resource selector {Group: Version:v1 Kind:Namespace Name:shop LabelSelector:nil \
         SelectionScope:NamespaceWithResources}: the resource has been selected by both new and \
         stored, which is not supported",
        "remove operation cannot have value",
        "cannot override typeMeta fields",
        "path cannot contain empty string",
        "path cannot be empty",
    ] {
        assert!(refused.contains(wanted), "{wanted}: {refused}");
    }
    let mut changed = stored.raw().clone();
    changed["spec"]["policy"]["overrideRules"] = json!([]);
    let changed = Object::from_value(changed).expect("it is an object");
    let allowed = refusal("clusterresourceoverride", &world, &changed, Some(&stored));
    assert_eq!(allowed, "", "it does not stand beside itself");

    let mut many = World::new();
    for number in 0..100 {
        many.insert(override_of(&format!("o-{number}"), &format!("r-{number}"), patch.clone()));
    }
    let one_more = override_of("new", "shop", patch);
    let refused = refusal("clusterresourceoverride", &many, &one_more, None);
    assert!(refused.contains("at most 100 cluster resources can be created"), "{refused}");
}

#[test]
fn evictions_and_budgets_fit_their_placement() {
    let pick =
        |policy: Value| -> World { [placement(json!({"policy": policy}))].into_iter().collect() };
    let evict = built(
        "ClusterResourcePlacementEviction",
        "e",
        json!({"placementName": "web", "clusterName": "a"}),
    );
    let fixed = pick(json!({"placementType": "PickFixed", "clusterNames": ["a"]}));
    let refused = refusal("clusterresourceplacementeviction", &fixed, &evict, None);
    assert!(refused.contains("policy type PickFixed is not supported"), "{refused}");
    let all = pick(json!({"placementType": "PickAll"}));
    assert_eq!(refusal("clusterresourceplacementeviction", &all, &evict, None), "");
    let budget = |spec: Value| {
        let budget = built("ClusterResourcePlacementDisruptionBudget", "web", spec);
        refusal("clusterresourceplacementdisruptionbudget", &all, &budget, None)
    };
    assert_eq!(budget(json!({"minAvailable": 1})), "");
    assert!(budget(json!({"minAvailable": "10%"})).contains("as a percentage 10%"));
    assert!(budget(json!({"maxUnavailable": 1})).contains("max unavailable 1"));
}

#[test]
fn taints_of_a_member_are_well_formed() {
    let member = object("cluster.kubernetes-fleet.io/v1beta1", "MemberCluster", "east")
        .spec(json!({}))
        .build();
    let mut tainted = member.raw().clone();
    tainted["spec"] = json!({"taints": [{"key": "key@1234:", "effect": "NoSchedule"}]});
    let tainted = Object::from_value(tainted).expect("it is an object");
    let refused = refusal("membercluster", &World::new(), &tainted, Some(&member));
    let wanted = "name part must consist of alphanumeric characters, '-', '_' or '.', and must \
        start and end with an alphanumeric character";
    assert!(refused.contains(wanted), "{refused}");
}
