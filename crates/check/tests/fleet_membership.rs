//! A cluster's whole membership: it is given a place, joins, reports, is asked to leave, leaves.

use convoy_api::GroupKind;
use convoy_api::kinds::NAMESPACE;
use convoy_check::{Applier, settle};
use convoy_plan::dialect::fleet::{Fleet, Hub};
use convoy_plan::{Dialect, World, decide};
use convoy_testkit::{NOW, object};
use jiff::Timestamp;
use serde_json::json;

const API: &str = "cluster.kubernetes-fleet.io/v1beta1";
const MEMBER: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "MemberCluster");
const INTERNAL: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "InternalMemberCluster");
const ROLE_BINDING: GroupKind = GroupKind::new("rbac.authorization.k8s.io", "RoleBinding");
const WORK: GroupKind = GroupKind::new("placement.kubernetes-fleet.io", "Work");
const PLACEMENT_API: &str = "placement.kubernetes-fleet.io/v1beta1";
const HOME: &str = "fleet-member-eu-1";

fn now() -> Timestamp {
    NOW.parse().expect("a fixed instant")
}

fn fleet_of_one() -> Applier {
    let identity = json!({"kind": "User", "name": "agent", "apiGroup": ""});
    let member = object(API, "MemberCluster", "eu-1").spec(json!({"identity": identity}));
    let world: World = [member.build()].into_iter().collect();
    Applier::new(world, now())
}

/// The agent does as it is asked, if it answers at all.
fn agent(applier: &mut Applier) -> bool {
    let key = INTERNAL.key(HOME, "eu-1");
    let Some(internal) = applier.world().get(&key).cloned() else { return false };
    let joined = if internal.spec()["state"] == "Join" { "True" } else { "False" };
    let agent = json!({"type": "MemberAgent", "lastReceivedHeartbeat": NOW, "conditions": [
        {"type": "Joined", "status": joined, "reason": "Agent", "message": "",
         "lastTransitionTime": NOW, "observedGeneration": 1}]});
    if internal.status()["agentStatus"][0] == agent {
        return false;
    }
    applier.edit(&key, |raw| raw["status"]["agentStatus"] = json!([agent]));
    true
}

fn settled(applier: &mut Applier, outside: impl FnMut(&mut Applier) -> bool) {
    let settled = settle(applier, 20, outside).expect("membership comes to rest");
    assert_eq!(settled.history.findings(), []);
}

fn delete(applier: &mut Applier) {
    applier.edit(&MEMBER.key("", "eu-1"), |raw| {
        raw["metadata"]["deletionTimestamp"] = json!(NOW);
    });
}

#[test]
fn a_cluster_joins_and_leaves() {
    let mut applier = fleet_of_one();
    settled(&mut applier, agent);
    let member = applier.world().find(&MEMBER, "", "eu-1").unwrap();
    assert_eq!(member.condition_status("Joined"), Some("True"));
    assert_eq!(member.condition_status("ReadyToJoin"), Some("True"));
    assert_eq!(member.label("kubernetes-fleet.io/member-name"), Some("eu-1"));
    let binding = applier.world().find(&ROLE_BINDING, HOME, "fleet-rolebinding-eu-1").unwrap();
    assert_eq!(binding.raw()["subjects"][0]["apiGroup"], "rbac.authorization.k8s.io");
    let work = object("placement.kubernetes-fleet.io/v1beta1", "Work", "web-work")
        .namespace(HOME)
        .with("/metadata/finalizers", json!(["kubernetes-fleet.io/work-cleanup"]));
    applier.insert(work.build());
    delete(&mut applier);
    settled(&mut applier, agent);
    assert!(applier.world().find(&NAMESPACE, "", HOME).is_none());
    assert!(applier.world().find(&MEMBER, "", "eu-1").is_none());
    let work = applier.world().find(&WORK, HOME, "web-work").unwrap();
    assert!(!work.has_finalizer("kubernetes-fleet.io/work-cleanup"), "it is let go, not undone");
}

#[test]
fn works_of_a_cluster_that_leaves_are_left_to_its_agent() {
    let mut applier = fleet_of_one();
    settled(&mut applier, agent);
    let labels = json!({"kubernetes-fleet.io/parent-CRP": "web",
        "kubernetes-fleet.io/parent-resource-binding": "web-eu-1"});
    let work = object(PLACEMENT_API, "Work", "web-work")
        .namespace(HOME)
        .with("/metadata/labels", labels)
        .with("/metadata/finalizers", json!(["kubernetes-fleet.io/work-cleanup"]));
    let binding = object(PLACEMENT_API, "ClusterResourceBinding", "web-eu-1")
        .label("kubernetes-fleet.io/parent-CRP", "web")
        .with("/metadata/finalizers", json!(["kubernetes-fleet.io/work-cleanup"]))
        .with("/metadata/deletionTimestamp", json!(NOW))
        .spec(json!({"state": "Unscheduled", "targetCluster": "eu-1",
            "resourceSnapshotName": "web-0-snapshot"}))
        .build();
    let key = binding.key().clone();
    applier.insert(work.build());
    applier.insert(binding);
    let deletions = |applier: &Applier| {
        let (world, now) = (applier.world(), applier.now());
        let step = decide(&Fleet, world, &[], &key, now).expect("the binding is a rollout");
        step.actions.iter().filter(|action| action.target.kind == WORK).count()
    };
    assert_eq!(deletions(&applier), 1, "its Work goes with the binding");
    delete(&mut applier);
    assert_eq!(deletions(&applier), 0, "the agent would take the objects off");
    settled(&mut applier, agent);
    assert!(applier.world().get(&key).is_none(), "it waits for nothing once the cluster left");
}

#[test]
fn a_placement_lets_go_of_the_last_cluster() {
    let placement = object(PLACEMENT_API, "ClusterResourcePlacement", "web")
        .spec(json!({"resourceSelectors": [], "policy": {"placementType": "PickAll"}}))
        .build();
    let binding = object(PLACEMENT_API, "ClusterResourceBinding", "web-eu-1")
        .label("kubernetes-fleet.io/parent-CRP", "web")
        .with("/metadata/finalizers", json!(["kubernetes-fleet.io/scheduler-crb-cleanup"]))
        .with("/metadata/deletionTimestamp", json!(NOW))
        .spec(json!({"state": "Unscheduled", "targetCluster": "eu-1"}))
        .build();
    let (rollout, binding_key) = (placement.key().clone(), binding.key().clone());
    let world: World = [placement, binding].into_iter().collect();
    let releases = |dialect: &dyn Dialect| {
        let step = decide(dialect, &world, &[], &rollout, now()).expect("it is a rollout");
        step.actions.iter().any(|action| action.target == binding_key)
    };
    assert!(releases(&Hub::default()), "a hub sees that no cluster is left");
    assert!(!releases(&Fleet), "files may leave the clusters out");
}

#[test]
fn a_cluster_that_does_not_answer_is_let_go_after_a_while() {
    let mut applier = fleet_of_one();
    settled(&mut applier, agent);
    delete(&mut applier);
    settled(&mut applier, |_| false);
    assert!(applier.world().find(&MEMBER, "", "eu-1").is_none());
    let waited = applier.now().duration_since(now());
    assert_eq!(waited.as_mins(), 15);
}
