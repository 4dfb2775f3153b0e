//! What the vigil over rollouts of Open Cluster Management finds, and what it lets pass.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

use convoy_check::{Hand, ReplicaSets};
use convoy_testkit::ocm::{NAMESPACE, condition, replica_set, template};
use convoy_testkit::{Builder, NOW, object};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Four clusters in two groups of two, decided.
fn vigil(strategy: &Value) -> ReplicaSets {
    let mut vigil = ReplicaSets::default();
    let references = json!([{"name": "web", "rolloutStrategy": strategy}]);
    let set = replica_set("web", "v1", &references).build();
    vigil.see(&set, false, Hand::Other, now()).unwrap();
    decide(&mut vigil, &[&["a", "b"], &["c", "d"]]).unwrap();
    vigil.rest(now()).unwrap_err(); // whoever may start waits
    vigil
}

/// Writes the decisions of a placement with two clusters in a group, and its status.
fn decide(vigil: &mut ReplicaSets, groups: &[&[&str]]) -> Result<(), String> {
    let named: Vec<(&str, &[&str])> = groups.iter().map(|group| ("", *group)).collect();
    decide_named(vigil, &named)
}

fn decide_named(vigil: &mut ReplicaSets, groups: &[(&str, &[&str])]) -> Result<(), String> {
    let mut told = Vec::new();
    for (index, (name, clusters)) in groups.iter().enumerate() {
        write_decision(vigil, index, name, clusters);
        told.push(json!({"decisionGroupIndex": index, "decisionGroupName": name,
            "decisions": [format!("web-decision-{}", index + 1)], "clusterCount": clusters.len()}));
    }
    let group_strategy = json!({"groupStrategy": {"clustersPerDecisionGroup": 2}});
    let placement = object("cluster.open-cluster-management.io/v1beta1", "Placement", "web")
        .namespace(NAMESPACE)
        .spec(json!({"decisionStrategy": group_strategy}))
        .status(json!({"decisionGroups": told}))
        .build();
    vigil.see(&placement, false, Hand::Loop, now())
}

fn write_decision(vigil: &mut ReplicaSets, index: usize, name: &str, clusters: &[&str]) {
    let decision = format!("web-decision-{}", index + 1);
    let entries: Vec<Value> =
        clusters.iter().map(|cluster| json!({"clusterName": cluster, "reason": ""})).collect();
    let object =
        object("cluster.open-cluster-management.io/v1beta1", "PlacementDecision", &decision)
            .namespace(NAMESPACE)
            .label("cluster.open-cluster-management.io/placement", "web")
            .label("cluster.open-cluster-management.io/decision-group-index", &index.to_string())
            .label("cluster.open-cluster-management.io/decision-group-name", name)
            .status(json!({"decisions": entries}))
            .build();
    vigil.see(&object, false, Hand::Loop, now()).unwrap();
}

fn work(cluster: &str, version: &str) -> Builder {
    object("work.open-cluster-management.io/v1", "ManifestWork", "web1")
        .namespace(cluster)
        .label(
            "work.open-cluster-management.io/manifestworkreplicaset",
            &format!("{NAMESPACE}.web"),
        )
        .label("work.open-cluster-management.io/placementname", "web")
        .with("/metadata/generation", json!(1))
        .spec(template(version))
}

/// A hub hands out the template.
fn start(vigil: &mut ReplicaSets, cluster: &str) -> Result<(), String> {
    vigil.see(&work(cluster, "v1").build(), false, Hand::Loop, now())
}

/// An agent reports about it.
fn report(vigil: &mut ReplicaSets, cluster: &str, applied: &str) {
    let conditions = json!({"conditions": [
        condition("Applied", applied, 1, NOW), condition("Available", "True", 1, NOW)]});
    let work = work(cluster, "v1").status(conditions).build();
    vigil.see(&work, false, Hand::Loop, now()).unwrap();
}

#[test]
fn one_cluster_too_many_is_seen() {
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}});
    let mut vigil = vigil(&strategy);
    start(&mut vigil, "a").unwrap();
    start(&mut vigil, "b").unwrap();
    let mut over = vigil.clone();
    let error = start(&mut over, "c").unwrap_err();
    assert!(error.contains("one of 3 in flight; 2 may be"), "{error}");
    report(&mut vigil, "a", "True");
    start(&mut vigil, "c").unwrap();
    // A failure keeps its slot, and none is tolerated.
    report(&mut vigil, "b", "False");
    start(&mut vigil, "d").unwrap_err();
}

#[test]
fn who_may_be_known_as_successful_is_not_counted() {
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    let mut vigil = vigil(&strategy);
    start(&mut vigil, "a").unwrap();
    report(&mut vigil, "a", "True");
    report(&mut vigil, "a", "False");
    let mut late = vigil.clone();
    start(&mut late, "b").unwrap(); // the hub has not heard of the failure
    vigil.rest(now()).unwrap();
    start(&mut vigil, "b").unwrap_err();
}

#[test]
fn a_group_out_of_turn_is_seen() {
    let strategy = json!({"type": "ProgressivePerGroup",
        "progressivePerGroup": {"minSuccessTime": "10s"}});
    let mut vigil = vigil(&strategy);
    start(&mut vigil.clone(), "c").unwrap_err();
    start(&mut vigil, "a").unwrap();
    start(&mut vigil, "b").unwrap();
    for cluster in ["a", "b"] {
        report(&mut vigil, cluster, "True");
    }
    let error = start(&mut vigil.clone(), "c").unwrap_err();
    assert!(error.contains("before group 0 is through"), "{error}");
    let later = now() + SignedDuration::from_secs(10);
    vigil.see(&work("c", "v1").build(), false, Hand::Loop, later).unwrap();
}

#[test]
fn mandatory_groups_go_first_and_whole() {
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1,
        "mandatoryDecisionGroups": [{"groupIndex": 1}]}});
    let mut vigil = vigil(&strategy);
    start(&mut vigil.clone(), "a").unwrap_err();
    start(&mut vigil, "c").unwrap();
    vigil.rest(now()).unwrap_err(); // d belongs to it too
    start(&mut vigil, "d").unwrap();
    vigil.rest(now()).unwrap();
    report(&mut vigil, "c", "True");
    start(&mut vigil.clone(), "a").unwrap_err();
    report(&mut vigil, "d", "True");
    start(&mut vigil, "a").unwrap();
    start(&mut vigil, "b").unwrap_err();
}

#[test]
fn clusters_that_leave_their_group_are_seen() {
    let decided = |groups: &[&[&str]]| {
        let mut vigil = vigil(&json!({"type": "All"}));
        for index in [0, 1] {
            // Nobody is missing meanwhile.
            write_decision(&mut vigil, index, "", &["a", "b", "c", "d"]);
        }
        decide(&mut vigil, groups)
    };
    decided(&[&["a", "b"], &["c", "d"], &["e"]]).unwrap();
    decided(&[&["a", "e"], &["c", "d"]]).unwrap();
    let error = decided(&[&["a", "c"], &["b", "d"]]).unwrap_err();
    assert!(error.contains("are not any more"), "{error}");
    decided(&[&["c", "d"], &["a", "b"]]).unwrap_err();
    let mut vigil = vigil(&json!({"type": "All"}));
    let error = decide(&mut vigil, &[&["a", "b", "e"], &["c", "d"]]).unwrap_err();
    assert!(error.contains("with 3 clusters of 2"), "{error}");
}

#[test]
fn a_cluster_that_moves_to_a_named_group_may() {
    let mut vigil = vigil(&json!({"type": "All"}));
    let groups: [(&str, &[&str]); 3] = [("canary", &["a"]), ("", &["b"]), ("", &["c", "d"])];
    decide_named(&mut vigil, &groups).unwrap();
}

#[test]
fn a_work_that_is_lost_or_doubled_is_seen() {
    let mut vigil = vigil(&json!({"type": "All"}));
    for cluster in ["a", "b", "c", "d"] {
        start(&mut vigil, cluster).unwrap();
    }
    vigil.rest(now()).unwrap();
    let going = work("a", "v1").with("/metadata/deletionTimestamp", json!(NOW)).build();
    let error = vigil.clone().see(&going, false, Hand::Loop, now()).unwrap_err();
    assert!(error.contains("selects the cluster"), "{error}");
    vigil.clone().see(&going, false, Hand::Other, now()).unwrap();
    let second = work("a", "v1").with("/metadata/name", json!("web2")).build();
    vigil.clone().see(&second, false, Hand::Loop, now()).unwrap_err();
    let other = work("a", "v9").build();
    vigil.clone().see(&other, false, Hand::Loop, now()).unwrap_err();
    decide(&mut vigil, &[&["b"], &["c", "d"]]).unwrap();
    vigil.see(&going, false, Hand::Loop, now()).unwrap();
    let set = replica_set("web", "v1", &json!([])).build();
    vigil.see(&set, true, Hand::Other, now()).unwrap();
    vigil.rest(now()).unwrap();
    vigil.left_behind().unwrap_err();
}
