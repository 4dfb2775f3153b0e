//! Who may write what, by user, group and object.

use convoy_testkit::object;
use serde_json::json;

use super::*;

const USERS: &[&str] = &["system:authenticated"];
const ADMINS: &[&str] = &["system:masters", "system:authenticated"];
const ACCOUNTS: &[&str] = &["system:serviceaccounts", "system:authenticated"];

fn guard() -> GuardRail {
    GuardRail { users: vec!["trusted".to_owned()], denies_labels: false }
}

/// A request of the user ann, who is in these groups.
fn request(operation: &str, kind: [&str; 3], place: [&str; 2], groups: &[&str]) -> Value {
    let kind = json!({"group": kind[0], "version": kind[1], "kind": kind[2]});
    json!({"uid": "1", "operation": operation, "kind": kind, "requestKind": kind,
        "namespace": place[0], "name": place[1],
        "userInfo": {"username": "ann", "groups": groups}})
}

fn refusal(guard: &GuardRail, world: &World, request: &Value) -> Option<String> {
    match judge(guard, world, request) {
        Verdict::Refused(message) => Some(message),
        Verdict::Allowed { .. } => None,
        Verdict::Invalid(message) => panic!("{message}"),
    }
}

fn is_allowed(request: &Value) -> bool {
    refusal(&guard(), &World::new(), request).is_none()
}

const CRD: [&str; 3] = ["apiextensions.k8s.io", "v1", "CustomResourceDefinition"];
const MAP: [&str; 3] = ["", "v1", "ConfigMap"];
const SPACE: [&str; 3] = ["", "v1", "Namespace"];
const MEMBER: [&str; 3] = [CLUSTER_GROUP, "v1beta1", "MemberCluster"];
const WORKS: [&str; 3] = [PLACEMENT_GROUP, "v1beta1", "Work"];

#[test]
fn kinds_and_namespaces_of_the_fleet_are_for_administrators_and_machines() {
    // what, for users, for accounts; administrators may do everything
    let cases = [
        (CRD, ["", "works.placement.kubernetes-fleet.io"], false, false),
        (CRD, ["", "clusterprofiles.multicluster.x-k8s.io"], false, false),
        (CRD, ["", "things.example.com"], true, true),
        (SPACE, ["fleet-system", "fleet-system"], false, true),
        (SPACE, ["kube-public", "kube-public"], false, true),
        (SPACE, ["shop", "shop"], true, true),
        (MAP, ["fleet-system", "settings"], false, true),
        (["events.k8s.io", "v1", "Event"], ["fleet-system", "a.1"], true, true),
        (["", "v1", "Node"], ["", "node-1"], true, true),
        (WORKS, ["shop", "web"], true, true),
    ];
    for (kind, place, users, accounts) in cases {
        for operation in ["CREATE", "UPDATE", "DELETE"] {
            let found = [USERS, ACCOUNTS, ADMINS]
                .map(|groups| is_allowed(&request(operation, kind, place, groups)));
            assert_eq!(found, [users, accounts, true], "{operation} {kind:?} {place:?}");
        }
    }
    let mut listed = request("DELETE", CRD, ["", "works.placement.kubernetes-fleet.io"], USERS);
    listed["userInfo"]["username"] = json!("trusted");
    assert!(is_allowed(&listed));
}

#[test]
fn a_refusal_names_the_user_the_operation_and_the_object() {
    let place = ["fleet-member-eu", "web-work"];
    let mut asked = request("UPDATE", WORKS, place, &["a", "b"]);
    asked["subResource"] = json!("status");
    let identity = json!({"identity": {"kind": "User", "name": "agent"}});
    let member = object("cluster.kubernetes-fleet.io/v1beta1", "MemberCluster", "eu");
    let world: World = [member.spec(identity).build()].into_iter().collect();
    let found = refusal(&guard(), &world, &asked).unwrap();
    assert_eq!(
        found,
        "user: 'ann' in 'groups: [a b]' is not allowed to UPDATE resource \
         placement.kubernetes-fleet.io/v1beta1, Kind=Work/status: fleet-member-eu/web-work"
    );
    let space = request("DELETE", SPACE, ["fleet-system"; 2], &["g"; 11]);
    let found = refusal(&guard(), &world, &space).unwrap();
    assert_eq!(
        found,
        "user: 'ann' in 'groups: [g, g, g,......]' is not allowed to DELETE resource \
         /v1, Kind=Namespace/: /fleet-system"
    );
}

#[test]
fn an_agent_writes_what_is_its_members() {
    let member = |name: &str, identity: &str| {
        let identity = json!({"identity": {"kind": "ServiceAccount", "name": identity}});
        object("cluster.kubernetes-fleet.io/v1beta1", "MemberCluster", name).spec(identity).build()
    };
    let world: World = [member("eu", "ann"), member("us", "bob")].into_iter().collect();
    let may = |user: &str, namespace: &str| {
        let mut asked = request("UPDATE", WORKS, [namespace, "web-work"], USERS);
        asked["userInfo"]["username"] = json!(user);
        refusal(&guard(), &world, &asked).is_none()
    };
    assert!(may("ann", "fleet-member-eu") && !may("ann", "fleet-member-us"));
    let account = "system:serviceaccount:fleet-system:bob";
    assert!(may(account, "fleet-member-us") && !may(account, "fleet-member-eu"));
    assert!(may("ann", "fleet-member-gone"), "its cluster is not known");
    assert!(!may("ann", "fleet-system"));
}

fn cluster(annotations: &Value) -> Value {
    json!({"metadata": {"name": "eu", "annotations": annotations, "labels": {"env": "prod"}},
        "spec": {"identity": {"kind": "User", "name": "agent"}, "taints": []},
        "status": {"conditions": []}})
}

/// What users, and what administrators, may make of a member cluster.
fn changed(guard: &GuardRail, from: &Value, change: impl Fn(&mut Value)) -> [Option<String>; 2] {
    let mut to = from.clone();
    change(&mut to);
    [USERS, ADMINS].map(|groups| {
        let mut asked = request("UPDATE", MEMBER, ["", "eu"], groups);
        (asked["object"], asked["oldObject"]) = (to.clone(), from.clone());
        refusal(guard, &World::new(), &asked)
    })
}

#[test]
fn a_member_cluster_with_a_fleet_annotation_is_guarded() {
    let from = cluster(&json!({"fleet.azure.com/cluster": "1", "fleet.azure.com/more": "1"}));
    let may = |change: &dyn Fn(&mut Value)| changed(&guard(), &from, change).map(|it| it.is_none());
    assert_eq!(may(&|to| to["spec"]["heartbeatPeriodSeconds"] = json!(5)), [false, true]);
    assert_eq!(may(&|to| to["status"]["conditions"] = json!([{}])), [false, true]);
    assert_eq!(may(&|to| to["metadata"]["finalizers"] = json!(["a"])), [false, true]);
    let mark = "fleet.azure.com/cluster";
    assert_eq!(may(&|to| to["metadata"]["annotations"][mark] = json!("2")), [false, true]);
    assert_eq!(may(&|to| to["metadata"]["annotations"]["own"] = json!("2")), [true, true]);
    assert_eq!(may(&|to| to["metadata"]["labels"]["env"] = json!("test")), [true, true]);
    assert_eq!(may(&|to| to["spec"]["taints"] = json!([{"key": "a"}])), [true, true]);
    assert_eq!(may(&|to| to["metadata"]["resourceVersion"] = json!("2")), [true, true]);
    assert_eq!(may(&|to| to["metadata"]["annotations"] = json!({})), [false, false]);
    for operation in ["CREATE", "DELETE"] {
        let found = [USERS, ADMINS].map(|groups| {
            let mut asked = request(operation, MEMBER, ["", "eu"], groups);
            let part = if operation == "CREATE" { "object" } else { "oldObject" };
            asked[part] = from.clone();
            is_allowed(&asked)
        });
        assert_eq!(found, [false, true], "{operation}");
    }
}

#[test]
fn any_other_member_cluster_keeps_only_its_status() {
    let from = cluster(&json!({"own": "1"}));
    let may = |change: &dyn Fn(&mut Value)| changed(&guard(), &from, change).map(|it| it.is_none());
    assert_eq!(may(&|to| to["spec"]["heartbeatPeriodSeconds"] = json!(5)), [true, true]);
    assert_eq!(may(&|to| to["status"]["conditions"] = json!([{}])), [false, true]);
    let mark = "fleet.azure.com/cluster";
    assert_eq!(may(&|to| to["metadata"]["annotations"][mark] = json!("2")), [false, false]);
    let mut asked = request("DELETE", MEMBER, ["", "eu"], USERS);
    asked["oldObject"] = from.clone();
    assert!(is_allowed(&asked));
}

#[test]
fn labels_can_be_kept_from_users() {
    let strict = GuardRail { denies_labels: true, ..guard() };
    let from = cluster(&json!({"fleet.azure.com/cluster": "1"}));
    let may = |change: &dyn Fn(&mut Value)| changed(&strict, &from, change).map(|it| it.is_none());
    assert_eq!(may(&|to| to["metadata"]["labels"]["env"] = json!("test")), [false, true]);
    assert_eq!(may(&|to| to["metadata"]["labels"] = json!({})), [false, true]);
    let own = "kubernetes-fleet.io/member-name";
    assert_eq!(may(&|to| to["metadata"]["labels"][own] = json!("eu")), [true, true]);
}
