//! Scheduling, from random fleets and through changes of mind: never more clusters than asked
//! for, never one that does not fit, and at rest once everything is placed.

#[path = "fleet/agents.rs"]
mod agents;

use std::collections::{BTreeMap, BTreeSet};

use agents::{Agents, BINDING, act, decision, instant, namespace};
use convoy_api::{GroupKind, Object};
use convoy_check::{Applier, settle};
use convoy_plan::{World, plan};
use convoy_testkit::{NOW, fleet, object, property};
use proptest::prelude::*;
use serde_json::{Value, json};

const GROUP: &str = "placement.kubernetes-fleet.io";
const PLACEMENT: GroupKind = GroupKind::new(GROUP, "ClusterResourcePlacement");
const POLICY: GroupKind = GroupKind::new(GROUP, "ClusterSchedulingPolicySnapshot");
const RESOURCES: GroupKind = GroupKind::new(GROUP, "ClusterResourceSnapshot");
const AGENTS: Agents = Agents { pace: 20, approve: false, untracked: false };

/// A cluster that is picked in a step is one that does not work yet, for the rollout of that step.
#[test]
fn a_cluster_that_joins_uses_up_what_an_update_needs() {
    let policy = json!({"placementType": "PickAll"});
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}});
    let bound = |cluster: &str| {
        let available = fleet::condition("Available", "True", "AllWorkAreAvailable", 1, NOW);
        fleet::binding("web", cluster, "Bound", "web-0-snapshot")
            .with("/metadata/generation", json!(1))
            .status(json!({"conditions": [available]}))
            .build()
    };
    let snapshot = fleet::resource_snapshot("web", 1, true, &[namespace().raw().clone()]).build();
    let updated = |members: &[&str]| {
        let placement =
            fleet::placement("web", policy.clone()).with("/spec/strategy", rolling.clone());
        let objects = [placement.build(), namespace(), bound("a"), bound("b"), snapshot.clone()];
        let members = members.iter().map(|name| fleet::member(name, NOW).build());
        let world: World = objects.into_iter().chain(members).collect();
        let plan = plan(&world, instant());
        let step = decision(&plan, "ClusterResourcePlacement");
        step.decision["roll"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(updated(&["a", "b"]), 1, "an update in place may take one");
    assert_eq!(updated(&["a", "b", "c"]), 0, "of three, two have to work");
}

#[derive(Clone, Debug)]
struct Member {
    region: Option<usize>,
    gold: bool,
    tainted: bool,
    silent: bool,
    nodes: Option<u32>,
}

fn member() -> impl Strategy<Value = Member> {
    (
        prop::option::weighted(0.9, 0..3usize),
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.8, 0..9u32),
    )
        .prop_map(|(region, gold, tainted, silent, nodes)| Member {
            region,
            gold,
            tainted,
            silent,
            nodes,
        })
}

fn built(at: usize, member: &Member) -> Object {
    let heartbeat = if member.silent { "2025-12-31T00:00:00Z" } else { NOW };
    let mut builder = fleet::member(&format!("c{at:02}"), heartbeat);
    if let Some(region) = member.region {
        builder = builder.label("region", &format!("r{region}"));
    }
    if member.gold {
        builder = builder.label("tier", "gold");
    }
    if member.tainted {
        builder = builder.with("/spec/taints", json!([{"key": "k", "effect": "NoSchedule"}]));
    }
    if let Some(nodes) = member.nodes {
        let value = json!({"value": nodes.to_string(), "observationTime": NOW});
        builder =
            builder.with("/status/properties", json!({"kubernetes-fleet.io/node-count": value}));
    }
    builder.build()
}

fn fits(cluster: &Object, policy: &Value) -> bool {
    let gold =
        policy.pointer("/affinity/clusterAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let tolerated = policy.get("tolerations").is_some();
    let heard = cluster.status()["agentStatus"][0]["lastReceivedHeartbeat"] == NOW;
    (gold.is_none() || cluster.label("tier") == Some("gold"))
        && (tolerated || cluster.spec().get("taints").is_none())
        && heard
}

fn policy() -> impl Strategy<Value = Value> {
    let number = prop::option::of(0..8u32);
    let spread = prop::option::weighted(0.4, (1..3u32, any::<bool>()));
    (number, any::<bool>(), any::<bool>(), spread, any::<bool>()).prop_map(
        |(number, gold, tolerant, spread, sorted)| {
            let mut policy = json!({"placementType": "PickAll"});
            if gold {
                policy["affinity"]["clusterAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                    json!({"clusterSelectorTerms": [{"labelSelector": {"matchLabels": {"tier": "gold"}}}]});
            }
            if tolerant {
                policy["tolerations"] = json!([{"key": "k", "operator": "Exists"}]);
            }
            let Some(number) = number else { return policy };
            policy["placementType"] = json!("PickN");
            policy["numberOfClusters"] = json!(number);
            if let Some((skew, strict)) = spread {
                let when = if strict { "DoNotSchedule" } else { "ScheduleAnyway" };
                policy["topologySpreadConstraints"] =
                    json!([{"topologyKey": "region", "maxSkew": skew, "whenUnsatisfiable": when}]);
            }
            if sorted {
                let sorter = json!({"name": "kubernetes-fleet.io/node-count", "sortOrder": "Descending"});
                policy["affinity"]["clusterAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                    json!([{"weight": 50, "preference": {"propertySorter": sorter}}]);
            }
            policy
        },
    )
}

fn world(members: &[Member], policy: &Value) -> World {
    let mut world: World =
        members.iter().enumerate().map(|(at, member)| built(at, member)).collect();
    world.insert(namespace());
    world.insert(fleet::placement("web", policy.clone()).build());
    world
}

fn target(binding: &Object) -> String {
    binding.spec()["targetCluster"].as_str().unwrap_or_default().to_owned()
}

/// By cluster, the bindings that count.
fn picked(world: &World) -> BTreeMap<String, Object> {
    let live =
        world.of(&BINDING).filter(|it| !it.is_deleting() && it.spec()["state"] != "Unscheduled");
    live.map(|it| (target(it), it.clone())).collect()
}

fn settled(applier: &mut Applier) -> Result<(), TestCaseError> {
    let settled = settle(applier, 80, |it| act(it, AGENTS));
    let settled = settled.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert!(settled.history.findings().is_empty(), "{:?}", settled.history.findings());
    Ok(())
}

fn clusters_of(applier: &Applier) -> Vec<Object> {
    let kind = GroupKind::new("cluster.kubernetes-fleet.io", "MemberCluster");
    applier.world().of(&kind).cloned().collect()
}

/// The clusters picked are as many as can be, fit, and are spread as asked.
fn sound(applier: &Applier, policy: &Value) -> Result<(), TestCaseError> {
    let picked = picked(applier.world());
    let clusters = clusters_of(applier);
    let fitting: BTreeSet<&str> =
        clusters.iter().filter(|it| fits(it, policy)).map(|it| it.name().as_str()).collect();
    for cluster in picked.keys() {
        prop_assert!(fitting.contains(cluster.as_str()), "{cluster} does not fit {policy}");
    }
    let spread = policy.get("topologySpreadConstraints").is_some();
    match policy.get("numberOfClusters").and_then(Value::as_u64) {
        None => prop_assert_eq!(picked.len(), fitting.len()),
        Some(wanted) => {
            let wanted = usize::try_from(wanted).expect("a small number");
            prop_assert!(picked.len() <= wanted);
            prop_assert!(spread || picked.len() == wanted.min(fitting.len()));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(property::config(32))]

    #[test]
    fn clusters_that_fit_are_picked(members in prop::collection::vec(member(), 1..10), policy in policy()) {
        let mut applier = Applier::new(world(&members, &policy), instant());
        settled(&mut applier)?;
        sound(&applier, &policy)?;
    }

    #[test]
    fn a_new_policy_moves_what_no_longer_fits(
        members in prop::collection::vec(member(), 1..10),
        first in policy(),
        second in policy(),
    ) {
        let mut applier = Applier::new(world(&members, &first), instant());
        settled(&mut applier)?;
        applier.edit(&PLACEMENT.key("", "web"), |raw| {
            raw["spec"]["policy"] = second.clone();
            raw["metadata"]["generation"] = json!(2);
        });
        settled(&mut applier)?;
        sound(&applier, &second)?;
        let latest = applier.world().of(&POLICY).filter(|it| {
            it.label("kubernetes-fleet.io/is-latest-snapshot") == Some("true")
        });
        prop_assert_eq!(latest.count(), 1);
    }

    #[test]
    fn a_cluster_that_leaves_is_given_up(members in prop::collection::vec(member(), 2..8), policy in policy()) {
        let mut applier = Applier::new(world(&members, &policy), instant());
        settled(&mut applier)?;
        let Some(leaver) = clusters_of(&applier).first().cloned() else { return Ok(()) };
        applier.remove(leaver.key());
        settled(&mut applier)?;
        prop_assert!(!picked(applier.world()).contains_key(leaver.name().as_str()));
        sound(&applier, &policy)?;
    }

    #[test]
    fn a_deleted_placement_leaves_nothing(members in prop::collection::vec(member(), 1..6), policy in policy()) {
        let mut applier = Applier::new(world(&members, &policy), instant());
        settled(&mut applier)?;
        applier.edit(&PLACEMENT.key("", "web"), |raw| {
            raw["metadata"]["deletionTimestamp"] = json!(NOW);
        });
        settled(&mut applier)?;
        for kind in [BINDING, POLICY, RESOURCES] {
            prop_assert_eq!(applier.world().of(&kind).count(), 0, "{}", kind);
        }
    }
}

#[test]
fn spreading_keeps_to_the_skew() {
    let members: Vec<Member> = (0..9)
        .map(|at| Member {
            region: Some(at % 3),
            gold: true,
            tainted: false,
            silent: false,
            nodes: None,
        })
        .collect();
    let policy = json!({"placementType": "PickN", "numberOfClusters": 7,
        "topologySpreadConstraints": [{"topologyKey": "region", "maxSkew": 1}]});
    let mut applier = Applier::new(world(&members, &policy), instant());
    settled(&mut applier).unwrap();
    let mut regions: BTreeMap<String, u32> = BTreeMap::new();
    let chosen = picked(applier.world());
    for cluster in clusters_of(&applier).iter().filter(|it| chosen.contains_key(it.name().as_str()))
    {
        *regions.entry(cluster.label("region").unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(regions.values().sum::<u32>(), 7);
    assert!(regions.values().max().unwrap() - regions.values().min().unwrap() <= 1, "{regions:?}");
}

#[test]
fn changes_are_collected_before_they_become_a_snapshot() {
    let policy = json!({"placementType": "PickAll"});
    let mut applier = Applier::new(world(&[], &policy), instant());
    applier.insert(built(
        0,
        &Member { region: None, gold: true, tainted: false, silent: false, nodes: None },
    ));
    settled(&mut applier).unwrap();
    assert_eq!(applier.world().of(&RESOURCES).count(), 1);
    let settings = object("v1", "ConfigMap", "settings").namespace("shop");
    applier.insert(settings.build());
    let waiting = plan(applier.world(), applier.now());
    let step = decision(&waiting, "ClusterResourcePlacement");
    let wake_at = step.wake_at.expect("it waits for further changes");
    assert!(wake_at > applier.now());
    settled(&mut applier).unwrap();
    assert!(applier.now() >= wake_at);
    assert_eq!(applier.world().of(&RESOURCES).count(), 2);
    let bound = picked(applier.world());
    assert_eq!(bound["c00"].spec()["resourceSnapshotName"], "web-1-snapshot");
}
