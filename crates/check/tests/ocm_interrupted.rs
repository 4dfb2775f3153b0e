//! A placement whose decisions are rewritten, and a process that ends between any two writes: its
//! successor ends up with the same decision groups, or at least with all of them in their order.

use convoy_api::ocm::names::{GROUP_INDEX_LABELS, MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION};
use convoy_api::{Object, ObjectKey};
use convoy_check::{Applier, settle};
use convoy_plan::dialect::ocm::Ocm;
use convoy_plan::{Step, decide};
use convoy_testkit::ocm::{NAMESPACE, bound_set, managed_cluster, placement};
use convoy_testkit::{Builder, NOW, property};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Groups of so many, those of canaries first.
fn applier(clusters: &[(&str, &str)], per_group: usize) -> Applier {
    let canary = json!({"groupName": "canary", "groupClusterSelector":
        {"labelSelector": {"matchLabels": {"tier": "canary"}}}});
    let beta = json!({"groupName": "beta", "groupClusterSelector":
        {"labelSelector": {"matchLabels": {"tier": "beta"}}}});
    let groups = json!({"clustersPerDecisionGroup": per_group, "decisionGroups": [canary, beta]});
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

fn next(applier: &Applier) -> Step {
    let key: ObjectKey = PLACEMENT.key(NAMESPACE, "web");
    decide(&Ocm, applier.world(), &[], &key, applier.now()).expect("it is there")
}

/// Makes the first writes of a step, and nothing more.
fn interrupt(applier: &mut Applier, step: Step, written: usize) {
    let actions = step.actions[..written].to_vec();
    let part = Step { actions, status: None, events: Vec::new(), ..step };
    applier.apply(&part).expect("nobody else writes");
}

/// Whatever the process has written of its step when it ends, the outcome is the same.
fn is_resumed(before: &[(&str, &str)], change: impl Fn(&mut Applier)) {
    let start = || {
        let mut applier = applier(before, 2);
        change(&mut applier);
        let step = next(&applier);
        (applier, step)
    };
    let (mut whole, step) = start();
    assert!(step.actions.len() > 2, "there is something to rewrite");
    settle(&mut whole, 20, |_| false).expect("it settles");
    for written in 0..=step.actions.len() {
        let (mut applier, step) = start();
        interrupt(&mut applier, step, written);
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

const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
/// Without a tier a cluster is not there.
const TIERS: [&str; 4] = ["", "canary", "beta", "prod"];

type Fleet = Vec<(&'static str, &'static str)>;

fn fleet(tiers: &[usize]) -> Fleet {
    let tiers = tiers.iter().map(|tier| TIERS[*tier]);
    NAMES.into_iter().zip(tiers).filter(|(_, tier)| !tier.is_empty()).collect()
}

/// Clusters that come, go and get other tiers.
fn become_fleet(applier: &mut Applier, before: &Fleet, after: &Fleet) {
    for (name, _) in before {
        applier.remove(&MANAGED_CLUSTER.key("", name));
    }
    for (name, tier) in after {
        applier.insert(managed_cluster(name).label("tier", tier).build());
    }
}

/// Clusters that stay in their tier stay in their group, and the groups of a tier in their order.
fn are_kept(former: &Applier, latter: &Applier, stayed: &Fleet) -> Result<(), String> {
    let place = |applier: &Applier, cluster: &str| {
        let found = groups(applier).into_iter().find(|(_, it)| it.iter().any(|it| it == cluster));
        found.and_then(|(index, _)| index.parse::<usize>().ok())
    };
    for (one, tier) in stayed {
        for (other, _) in stayed.iter().filter(|(_, of)| of == tier) {
            let order = |it: &Applier| place(it, one).cmp(&place(it, other));
            if order(former) != order(latter) {
                let groups = (groups(former), groups(latter));
                return Err(format!("{one} and {other}: {:?} became {:?}", groups.0, groups.1));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(property::config(32))]

    /// One process ends after some writes, the next after some of its own; meanwhile clusters
    /// change again.
    #[test]
    fn groups_keep_their_order_wherever_a_process_ends(
        tiers in [0..TIERS.len(), 0..TIERS.len(), 0..TIERS.len()].prop_map(Vec::from),
        drawn in vec((0..TIERS.len(), 0..TIERS.len()), NAMES.len() - 3),
        later in vec(0..TIERS.len(), NAMES.len()),
        per_group in 1..4usize,
        second in 0..6usize,
    ) {
        // Some get another tier for certain.
        let turned = tiers.iter().map(|tier| (*tier, (tier + 1) % TIERS.len()));
        let all: Vec<(usize, usize)> = turned.chain(drawn).collect();
        let before = fleet(&all.iter().map(|it| it.0).collect::<Vec<_>>());
        let after = fleet(&all.iter().map(|it| it.1).collect::<Vec<_>>());
        let last = fleet(&later);
        let former = applier(&before, per_group);
        let start = || {
            let mut applier = applier(&before, per_group);
            become_fleet(&mut applier, &before, &after);
            applier
        };
        let stays = |fleet: &Fleet, other: &Fleet| -> Fleet {
            fleet.iter().filter(|it| other.contains(it)).copied().collect()
        };
        let stayed = stays(&before, &after);
        for written in 0..=next(&start()).actions.len() {
            let mut applier = start();
            let step = next(&applier);
            interrupt(&mut applier, step, written);
            let step = next(&applier);
            let again = second.min(step.actions.len());
            interrupt(&mut applier, step, again);
            let mut changed = applier.clone();
            settle(&mut applier, 20, |_| false).expect("it settles");
            let kept = are_kept(&former, &applier, &stayed);
            prop_assert!(kept.is_ok(), "after {written} and {again} writes: {}", kept.unwrap_err());
            become_fleet(&mut changed, &after, &last);
            settle(&mut changed, 20, |_| false).expect("it settles");
            let kept = are_kept(&former, &changed, &stays(&stayed, &last));
            prop_assert!(kept.is_ok(), "{written}, {again}, changed: {}", kept.unwrap_err());
        }
    }
}
