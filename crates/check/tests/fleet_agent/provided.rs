//! What an agent with a property provider reports, and what the hub's scheduler makes of it.

use convoy_api::kinds::NAMESPACE;
use convoy_api::{GroupKind, Object};
use convoy_plan::dialect::fleet_agent::{FleetAgent, PropertyProvider};
use convoy_testkit::object;
use serde_json::json;

use super::manifests::{conditions, config, on, shop};
use super::world::{PLACEMENT_API, Site, member, work};
use super::{EU, HOME};

const INTERNAL: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "InternalMemberCluster");
const MEMBER: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "MemberCluster");
const PLACEMENT: GroupKind = GroupKind::new("placement.kubernetes-fleet.io", "ResourcePlacement");
const US: &str = "us";

fn providing(mut site: Site, collects_namespaces: bool) -> Site {
    let provider = PropertyProvider {
        kubernetes_version: "v1.34.1".into(),
        server: "https://eu:6443".into(),
        certificate_authority: "PEM".to_owned(),
        collects_namespaces,
    };
    let agents = std::mem::take(&mut site.agents).into_iter();
    site.agents = agents.map(|agent: FleetAgent| agent.providing(Some(provider.clone()))).collect();
    site
}

#[test]
fn the_namespaces_of_a_member_are_reported_with_their_works() {
    let mut site = providing(
        Site::of_agent(vec![work("web-work", &[shop(), config("a")], &json!({}))], EU),
        true,
    );
    site.applier.insert(object("v1", "Namespace", "own").build().in_cluster(EU));
    site.settle();
    // The first heartbeat came before the Work was applied.
    let internal = INTERNAL.key(HOME, EU);
    site.run_until("the namespace is reported", |site| {
        site.get(&internal).status()["namespaces"] == json!({"own": "", "shop": "web-work"})
    });
    let status = site.get(&internal).status().clone();
    let expected = [
        "ClusterPropertyProviderStarted=True/Started",
        "ClusterPropertyCollectionSucceeded=True/PropertiesCollected",
        "NamespaceCollectionSucceeded=True/Succeeded",
    ];
    assert_eq!(conditions(&status), expected);
    assert_eq!(status["properties"]["k8s.io/k8s-version"]["value"], "v1.34.1");
    assert_eq!(status["properties"]["kubernetes-fleet.io/node-count"]["value"], "0");
    assert_eq!(status["agentStatus"][0]["conditions"].as_array().map(Vec::len), Some(2));
}

#[test]
fn without_collection_no_namespace_is_reported() {
    let mut site = providing(Site::of_agent(vec![], EU), false);
    site.applier.insert(object("v1", "Namespace", "own").build().in_cluster(EU));
    site.settle();
    let status = site.get(&INTERNAL.key(HOME, EU)).status().clone();
    assert!(status["namespaces"].is_null(), "{status}");
    assert_eq!(conditions(&status).len(), 2, "{status}");
}

#[test]
fn a_namespaced_placement_goes_to_the_members_that_have_its_namespace() {
    let selector = json!({"group": "", "version": "v1", "kind": "ConfigMap", "name": "settings"});
    let placement = object(PLACEMENT_API, "ResourcePlacement", "web")
        .namespace("shop")
        .spec(json!({"resourceSelectors": [selector]}))
        .build();
    let settings = Object::from_value(config("a")).expect("an object");
    let hub = vec![member(EU), member(US), object("v1", "Namespace", "shop").build(), settings];
    let mut site = providing(Site::new(hub, &[EU, US]), true);
    site.applier.insert(object("v1", "Namespace", "shop").build().in_cluster(EU));
    // A cluster of which no namespaces are known could have any.
    site.applier.insert(object("v1", "Namespace", "other").build().in_cluster(US));
    site.settle();
    assert_eq!(site.get(&MEMBER.key("", EU)).status()["namespaces"], json!({"shop": ""}));
    site.applier.insert(placement);
    let is_available = |site: &Site| {
        let told = conditions(site.get(&PLACEMENT.key("shop", "web")).status());
        told.iter().any(|it| it.starts_with("ResourcePlacementAvailable=True"))
    };
    site.run_until("the placement is available", is_available);
    let has_settings = |cluster| {
        let key = on(cluster, &convoy_api::kinds::CONFIG_MAP, "shop", "settings");
        site.world().get(&key).is_some()
    };
    assert!(has_settings(EU) && !has_settings(US));
    assert!(site.world().get(&on(US, &NAMESPACE, "", "shop")).is_none());
}
