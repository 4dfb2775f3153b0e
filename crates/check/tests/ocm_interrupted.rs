//! A placement whose decisions are rewritten, and a process that ends between any two writes: its
//! successor ends up with the same decision groups.

use convoy_api::ocm::names::{GROUP_INDEX_LABELS, MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION};
use convoy_api::{Object, ObjectKey};
use convoy_check::{Applier, settle};
use convoy_plan::dialect::ocm::Ocm;
use convoy_plan::{Step, decide};
use convoy_testkit::ocm::{NAMESPACE, bound_set, managed_cluster, placement};
use convoy_testkit::{Builder, NOW};
use serde_json::{Value, json};

/// Groups of two, those of canaries first.
fn applier(clusters: &[(&str, &str)]) -> Applier {
    let canary = json!({"groupName": "canary", "groupClusterSelector":
        {"labelSelector": {"matchLabels": {"tier": "canary"}}}});
    let beta = json!({"groupName": "beta", "groupClusterSelector":
        {"labelSelector": {"matchLabels": {"tier": "beta"}}}});
    let groups = json!({"clustersPerDecisionGroup": 2, "decisionGroups": [canary, beta]});
    let spec = json!({"decisionStrategy": {"groupStrategy": groups}});
    let mut objects: Vec<Object> = bound_set().map(Builder::build).into_iter().collect();
    objects.push(placement("web", spec).build());
    let member = |(name, tier): &(&str, &str)| managed_cluster(name).label("tier", tier).build();
    objects.extend(clusters.iter().map(member));
    let world = objects.into_iter().collect();
    let mut applier = Applier::new(world, NOW.parse().expect("an instant"));
    settle(&mut applier, 20, |_| false).expect("it settles");
    applier
}

/// The clusters of each group.
fn groups(applier: &Applier) -> Vec<(String, Vec<String>)> {
    let decisions = applier.world().of(&PLACEMENT_DECISION);
    let mut found: Vec<(String, Vec<String>)> = decisions
        .map(|decision| {
            let index = decision.label(GROUP_INDEX_LABELS[0]).unwrap_or_default().to_owned();
            let entries = decision.status()["decisions"].as_array().cloned().unwrap_or_default();
            let name = |entry: &Value| entry["clusterName"].as_str().unwrap_or_default().to_owned();
            (index, entries.iter().map(name).collect())
        })
        .collect();
    found.sort();
    found
}

/// Whatever the process has written of its step when it ends, the outcome is the same.
fn is_resumed(before: &[(&str, &str)], change: impl Fn(&mut Applier)) {
    let start = || {
        let mut applier = applier(before);
        change(&mut applier);
        let key: ObjectKey = PLACEMENT.key(NAMESPACE, "web");
        let step = decide(&Ocm, applier.world(), &[], &key, applier.now()).expect("it is there");
        (applier, step)
    };
    let (mut whole, step) = start();
    assert!(step.actions.len() > 2, "there is something to rewrite");
    settle(&mut whole, 20, |_| false).expect("it settles");
    for written in 0..=step.actions.len() {
        let (mut applier, step) = start();
        let actions = step.actions[..written].to_vec();
        let part = Step { actions, status: None, events: Vec::new(), ..step };
        applier.apply(&part).expect("nobody else writes");
        settle(&mut applier, 20, |_| false).expect("it settles");
        assert_eq!(groups(&applier), groups(&whole), "after {written} writes");
    }
}

const CLUSTERS: [(&str, &str); 5] =
    [("a", "canary"), ("b", "prod"), ("c", "prod"), ("d", "prod"), ("e", "prod")];

#[test]
fn groups_move_up_when_the_first_is_gone() {
    is_resumed(&CLUSTERS, |applier| applier.remove(&MANAGED_CLUSTER.key("", "a")));
}

#[test]
fn groups_move_down_when_a_named_one_comes_first() {
    is_resumed(&CLUSTERS[1..], |applier| {
        applier.insert(managed_cluster("a").label("tier", "canary").build());
    });
}

#[test]
fn named_groups_of_several_keep_their_order() {
    let clusters = [
        ("a", "canary"),
        ("b", "beta"),
        ("c", "beta"),
        ("d", "beta"),
        ("e", "beta"),
        ("f", "prod"),
        ("g", "prod"),
        ("h", "prod"),
    ];
    is_resumed(&clusters, |applier| applier.remove(&MANAGED_CLUSTER.key("", "a")));
}
