//! The ClusterProfile of a member cluster: made when it has joined, kept up to date, gone before it.

use convoy_api::kinds::NAMESPACE;
use convoy_api::{GroupKind, Object};
use convoy_check::{Applier, settle};
use convoy_plan::dialect::fleet::{Hub, Options};
use convoy_plan::{Dialect, World};
use convoy_testkit::{NOW, object};
use jiff::Timestamp;
use serde_json::json;

const API: &str = "cluster.kubernetes-fleet.io/v1beta1";
const MEMBER: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "MemberCluster");
const INTERNAL: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "InternalMemberCluster");
const PROFILE: GroupKind = GroupKind::new("multicluster.x-k8s.io", "ClusterProfile");
const HOME: &str = "fleet-member-eu-1";
const CLEANUP: &str = "kubernetes-fleet.io/cluster-profile-cleanup";

fn now() -> Timestamp {
    NOW.parse().expect("a fixed instant")
}

fn member() -> Object {
    let identity = json!({"kind": "User", "name": "agent", "apiGroup": ""});
    object(API, "MemberCluster", "eu-1").spec(json!({"identity": identity})).build()
}

/// A hub that serves ClusterProfiles, with one cluster.
fn hub(more: impl IntoIterator<Item = Object>) -> Applier {
    let system = object("v1", "Namespace", "fleet-system").build();
    let mut world: World = [member(), system].into_iter().chain(more).collect();
    world.observe(&PROFILE.in_cluster(""));
    Applier::new(world, now())
}

/// The agent joins or leaves as it is asked, and says how the cluster is.
fn agent(applier: &mut Applier) -> bool {
    let key = INTERNAL.key(HOME, "eu-1");
    let Some(internal) = applier.world().get(&key).cloned() else { return false };
    let joined = if internal.spec()["state"] == "Join" { "True" } else { "False" };
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "Agent", "message": "",
            "lastTransitionTime": NOW, "observedGeneration": 1})
    };
    let conditions = [condition("Joined", joined), condition("Healthy", "True")];
    let agent =
        json!({"type": "MemberAgent", "lastReceivedHeartbeat": NOW, "conditions": conditions});
    if internal.status()["agentStatus"][0] == agent {
        return false;
    }
    let property = |value: &str| json!({"value": value, "observationTime": NOW});
    let status = json!({
        "agentStatus": [agent],
        "conditions": [condition("ClusterPropertyCollectionSucceeded", "True")],
        "properties": {
            "k8s.io/k8s-version": property("v1.34.1"),
            "k8s.io/cluster-entrypoint": property("https://eu-1:6443"),
            "k8s.io/cluster-certificate-authority-data": property("PEM"),
        },
    });
    applier.edit(&key, |raw| raw["status"] = status);
    true
}

fn profile(applier: &Applier) -> Option<&Object> {
    applier.world().find(&PROFILE, "fleet-system", "eu-1")
}

/// Runs to rest, and returns what the profile said about the health of the cluster on the way.
fn settled(applier: &mut Applier) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    let watched = |applier: &mut Applier| {
        let condition = profile(applier).and_then(|it| it.condition("ControlPlaneHealthy"));
        let reason = condition.and_then(|it| it["reason"].as_str()).map(str::to_owned);
        told.extend(reason.filter(|reason| told.last() != Some(reason)));
        agent(applier)
    };
    let settled = settle(applier, 20, watched).expect("the cluster comes to rest");
    assert_eq!(settled.history.findings(), []);
    told
}

#[test]
fn a_joined_cluster_has_a_profile_until_it_leaves() {
    let mut applier = hub([]);
    let told = settled(&mut applier);
    assert_eq!(told[0], "MemberClusterAPIServerHealthy");
    let found = profile(&applier).expect("a profile");
    assert_eq!(found.label("x-k8s.io/cluster-manager"), Some("KubeFleet"));
    let spec = json!({"displayName": "eu-1", "clusterManager": {"name": "KubeFleet"}});
    assert_eq!(*found.spec(), spec);
    assert_eq!(found.status()["version"]["kubernetes"], "v1.34.1");
    let cluster = json!({"server": "https://eu-1:6443", "certificate-authority-data": "UEVN"});
    let access = json!([{"name": "KubeFleet", "cluster": cluster}]);
    assert_eq!(found.status()["accessProviders"], access);
    // Nobody has heard the agent since.
    assert_eq!(found.condition_status("ControlPlaneHealthy"), Some("False"));
    let condition = found.condition("ControlPlaneHealthy").unwrap();
    assert_eq!(condition["reason"], "MemberAgentHeartbeatLost");
    assert_eq!(applier.now().duration_since(now()).as_secs(), 60);
    let key = MEMBER.key("", "eu-1");
    assert!(applier.world().get(&key).unwrap().has_finalizer(CLEANUP));
    applier.edit(&key, |raw| raw["metadata"]["deletionTimestamp"] = json!(NOW));
    settled(&mut applier);
    assert_eq!(profile(&applier), None);
    assert_eq!(applier.world().get(&key), None);
}

#[test]
fn a_profile_that_somebody_changes_or_deletes_is_put_right() {
    let mut applier = hub([]);
    settled(&mut applier);
    let key = PROFILE.key("fleet-system", "eu-1");
    applier.edit(&key, |raw| raw["spec"]["displayName"] = json!("another"));
    applier.edit(&key, |raw| raw["metadata"]["labels"] = json!({"mine": "1"}));
    settled(&mut applier);
    let found = profile(&applier).unwrap();
    assert_eq!(found.spec()["displayName"], "eu-1");
    assert_eq!(found.label("mine"), Some("1"));
    assert_eq!(found.label("x-k8s.io/cluster-manager"), Some("KubeFleet"));
    applier.remove(&key);
    settled(&mut applier);
    assert_eq!(profile(&applier).unwrap().spec()["displayName"], "eu-1");
}

#[test]
fn the_profile_of_another_manager_is_left_alone() {
    let spec = json!({"displayName": "theirs", "clusterManager": {"name": "other"}});
    let theirs = object("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", "eu-1")
        .namespace("fleet-system")
        .spec(spec.clone());
    let mut applier = hub([theirs.build()]);
    settled(&mut applier);
    assert_eq!(*profile(&applier).unwrap().spec(), spec);
    let key = MEMBER.key("", "eu-1");
    assert!(!applier.world().get(&key).unwrap().has_finalizer(CLEANUP));
    let hub = Hub { options: Options::new() };
    let member = applier.world().get(&key).unwrap();
    let step = hub.step(&hub.snapshot(applier.world(), member), applier.now());
    assert!(format!("{:?}", step.holds).contains("belongs to cluster manager"), "{:?}", step.holds);
    applier.edit(&key, |raw| raw["metadata"]["deletionTimestamp"] = json!(NOW));
    settled(&mut applier);
    assert_eq!(*profile(&applier).unwrap().spec(), spec);
    assert_eq!(applier.world().get(&key), None);
}

#[test]
fn there_is_no_profile_where_there_is_no_room_for_it_or_it_is_not_wanted() {
    let mut unserved = Applier::new([member()].into_iter().collect(), now());
    settled(&mut unserved);
    assert_eq!(profile(&unserved), None);
    let mut homeless = hub([]);
    homeless.remove(&NAMESPACE.key("", "fleet-system"));
    settled(&mut homeless);
    assert_eq!(profile(&homeless), None);
    let mut applier = hub([]);
    settled(&mut applier);
    applier.remove(&PROFILE.key("fleet-system", "eu-1"));
    let member = applier.world().get(&MEMBER.key("", "eu-1")).unwrap();
    for (has_cluster_profiles, actions) in [(true, 1), (false, 0)] {
        let hub = Hub { options: Options { has_cluster_profiles, ..Options::new() } };
        let step = hub.step(&hub.snapshot(applier.world(), member), applier.now());
        assert_eq!(step.actions.len(), actions, "{has_cluster_profiles}: {:?}", step.actions);
    }
}
