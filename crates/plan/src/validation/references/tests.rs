//! One row per reference: two objects, and what is said about the first.

use convoy_testkit::object;
use serde_json::json;

use super::*;

fn told(objects: Vec<Object>, extent: Extent) -> Vec<(String, String)> {
    let mut world = World::new();
    for object in objects {
        world.insert(object);
    }
    let found = check(&world, extent);
    found.into_iter().map(|found| (found.field, found.message)).collect()
}

fn node(name: &str, pool: &str) -> Object {
    object("v1", "Node", name).with("/metadata/labels", json!({"pool": pool})).build()
}

fn hook(selector: Value) -> Object {
    let spec = json!({"nodeSelectors": {"matchLabels": selector}, "packages": {}});
    object("skyhook.nvidia.com/v1alpha1", "Skyhook", "tune").spec(spec).build()
}

#[test]
fn a_selector_that_matches_nothing_says_which_label_is_missing() {
    let nodes = || vec![node("a", "gpu"), node("b", "cpu")];
    let with = |selector: Value| {
        let mut objects = nodes();
        objects.push(hook(selector));
        told(objects, Extent::Part)
    };
    assert_eq!(with(json!({"pool": "gpu"})), []);
    let field = "spec.nodeSelectors".to_owned();
    assert_eq!(
        with(json!({"pool": "gpus"})),
        [(
            field.clone(),
            "matches no Node: none has pool=gpus, the values are cpu, gpu; did you mean \"gpu\"?"
                .to_owned()
        )]
    );
    assert_eq!(
        with(json!({"pol": "gpu"})),
        [(field, "matches no Node: none has the label \"pol\"; did you mean \"pool\"?".to_owned())]
    );
}

#[test]
fn without_objects_of_the_kind_nothing_is_said_unless_everything_is_there() {
    let alone = || vec![hook(json!({"pool": "gpu"}))];
    assert_eq!(told(alone(), Extent::Part), []);
    let whole = told(alone(), Extent::Whole);
    assert_eq!(whole[0].1, "matches no Node: there is none");
}

#[test]
fn a_name_that_leads_nowhere_is_told_with_the_one_that_was_meant() {
    let deployment = |volume: Value| {
        let spec = json!({"template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [], "volumes": [{"name": "v", "configMap": volume}]}}});
        object("apps/v1", "Deployment", "web").namespace("shop").spec(spec).build()
    };
    let settings = || object("v1", "ConfigMap", "settings").namespace("shop").build();
    let with = |volume: Value| told(vec![deployment(volume), settings()], Extent::Part);
    assert_eq!(with(json!({"name": "settings"})), []);
    assert_eq!(with(json!({"name": "setings", "optional": true})), []);
    let field = "spec.template.spec.volumes[0].configMap.name".to_owned();
    let message = "ConfigMap \"setings\" not found; did you mean \"settings\"?".to_owned();
    assert_eq!(with(json!({"name": "setings"})), [(field, message)]);
}

#[test]
fn services_select_pods_and_what_makes_pods() {
    let labels = json!({"app": "web"});
    let template = json!({"template": {"metadata": {"labels": labels}}});
    let deployment =
        object("apps/v1", "Deployment", "web").namespace("shop").spec(template).build();
    let service = |app: &str| {
        let spec = json!({"selector": {"app": app}});
        object("v1", "Service", "web").namespace("shop").spec(spec).build()
    };
    assert_eq!(told(vec![deployment.clone(), service("web")], Extent::Part), []);
    let found = told(vec![deployment, service("wob")], Extent::Part);
    assert_eq!(found[0].0, "spec.selector");
    assert!(found[0].1.ends_with("did you mean \"web\"?"), "{found:?}");
}

#[test]
fn placements_name_clusters_and_resources() {
    let member = object("cluster.kubernetes-fleet.io/v1beta1", "MemberCluster", "east").build();
    let namespace = object("v1", "Namespace", "shop").build();
    let placement = object(
        "placement.kubernetes-fleet.io/v1beta1",
        "ClusterResourcePlacement",
        "p",
    )
    .spec(json!({
        "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "shp"}],
        "policy": {"placementType": "PickFixed", "clusterNames": ["eest", "east"]},
    }))
    .build();
    let found = told(vec![member, namespace, placement], Extent::Part);
    let found: Vec<(&str, &str)> = found.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
    assert_eq!(
        found,
        [
            ("spec.resourceSelectors[0]", "Namespace \"shp\" not found; did you mean \"shop\"?"),
            (
                "spec.policy.clusterNames[0]",
                "MemberCluster \"eest\" not found; did you mean \"east\"?"
            ),
        ]
    );
}
