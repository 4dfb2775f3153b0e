//! No account may do what nobody does: every permission in the tables of the dialects, from which the
//! roles in `deploy/` are generated, is taken by a decision in a simulated world or in a vector. That
//! no decision takes more is looked at wherever one is made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use convoy_api::{GroupKind, Object};
use convoy_plan::dialect::apps::Deployments;
use convoy_plan::dialect::fleet_agent::FleetAgent;
use convoy_plan::dialect::karpenter::Operator;
use convoy_plan::dialect::ocm_agent::{self, OcmAgent};
use convoy_plan::dialect::ocm_registration::{self, OcmRegistration};
use convoy_plan::dialect::skyhook::Skyhook;
use convoy_plan::dialect::{fleet, ocm};
use convoy_plan::permission::{ApiVerb, Needed, Permission, needed};
use convoy_plan::{Dialect, World, decide, validate_object};
use convoy_sim::seed::Seed;
use convoy_sim::simulation::apps::Apps;
use convoy_sim::simulation::cluster::ServerKind;
use convoy_sim::simulation::disruptions::Disruptions;
use convoy_sim::simulation::fleets::Fleets;
use convoy_sim::simulation::ocm::OcmFleet;
use convoy_sim::simulation::skyhooks::Skyhooks;
use convoy_sim::simulation::{Decision, RunSettings, Simulation, Trial};
use jiff::Timestamp;
use serde_json::Value;

use crate::observed::{Observed, Onlooker};

/// Enough to meet everything that users do.
const SEEDS: u64 = 8;

/// Objects about which single decisions take what is rare: deletions, and what people have changed.
const RARE: &str = include_str!("permissions.yaml");

/// What neither worlds nor vectors have. These tests decide about it, and would fail without it: a file
/// and a function of it.
const ELSEWHERE: [(&str, &str, &str); 5] = [
    ("skyhook", "Evict Pod", A_POD_IS_EVICTED),
    ("karpenter", "Delete Pod", A_POD_IS_DELETED),
    ("fleet", "multicluster.x-k8s.io/ClusterProfile", A_CLUSTER_HAS_A_PROFILE),
    ("ocm-registration", "ManagedCluster", A_CLUSTER_JOINS),
    ("ocm-registration", "Lease", A_CLUSTER_JOINS),
];

const A_POD_IS_EVICTED: &str = "crates/check/tests/skyhook_scenarios.rs::\
                                a_protected_pod_is_waited_for_and_others_are_evicted";
const A_POD_IS_DELETED: &str = "crates/plan/src/dialect/karpenter/tests.rs::\
                                a_deadline_overrides_what_pods_ask_for";
const A_CLUSTER_HAS_A_PROFILE: &str =
    "crates/check/tests/fleet_profile.rs::a_joined_cluster_has_a_profile_until_it_leaves";
const A_CLUSTER_JOINS: &str = "crates/check/tests/ocm_registration.rs::\
                               a_cluster_joins_once_it_is_accepted_and_stays_available";

/// What was taken, by the name of the dialect.
type Taken = BTreeMap<&'static str, BTreeSet<Needed>>;

impl Onlooker for Taken {
    fn decided(&mut self, decision: &Decision<'_>) {
        let step = decision.step;
        self.entry(step.dialect).or_default().extend(needed(step));
    }
}

fn simulate<T: Trial>(seed: u64, (trial, settings): (T, RunSettings), taken: &mut Taken) {
    let trial = Observed { trial, onlooker: taken };
    let run = Simulation::new(Seed::new(seed), settings, trial).run();
    run.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
}

/// What the dialects, as controllers, decide about the objects of all vectors.
fn decide_vectors(dialects: &[&dyn Dialect], taken: &mut Taken) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/vectors");
    for file in std::fs::read_dir(folder).expect("there are vectors") {
        let text = std::fs::read_to_string(file.expect("readable").path()).expect("readable");
        let vectors: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        for vector in &vectors {
            let objects = vector["objects"].as_array().into_iter().flatten().cloned();
            let world: World = objects.filter_map(|it| Object::from_value(it).ok()).collect();
            let now = vector["now"].as_str().unwrap_or("2026-01-01T00:00:00Z");
            let now = now.parse().expect("a time");
            for dialect in dialects {
                decide_world(*dialect, &world, now, taken);
            }
        }
    }
}

fn decide_world(dialect: &dyn Dialect, world: &World, now: Timestamp, taken: &mut Taken) {
    let validated = world.by_kind().filter(|(kind, _)| dialect.validates(kind));
    let refused: Vec<_> = validated
        .flat_map(|(_, objects)| objects)
        .flat_map(|object| validate_object(dialect, world, object))
        .collect();
    for rollout in dialect.rollouts(world) {
        let step = decide(dialect, world, &refused, rollout.key(), now);
        taken.entry(dialect.name()).or_default().extend(step.iter().flat_map(needed));
    }
}

/// The same for the worlds in a file.
fn decide_rare(dialects: &[&dyn Dialect], taken: &mut Taken) {
    let worlds: Vec<Vec<Value>> = serde_saphyr::from_str(RARE).expect("YAML");
    for objects in worlds {
        let objects = objects.into_iter().map(|it| Object::from_value(it).expect("an object"));
        let world: World = objects.collect();
        for dialect in dialects {
            decide_world(*dialect, &world, "2026-01-01T00:00:00Z".parse().expect("it is"), taken);
        }
    }
}

/// Whether a permission was taken, for this kind or for the one of the other scope: KubeFleet has
/// `ResourceBinding` and `ClusterResourceBinding`, and the same code for both.
fn is_taken(taken: &BTreeSet<Needed>, wanted: &Needed) -> bool {
    let name = wanted.kind.kind.as_str();
    let other = match name.strip_prefix("Cluster") {
        Some(namespaced) => namespaced.into(),
        None => format!("Cluster{name}").into(),
    };
    let other = GroupKind { group: wanted.kind.group.clone(), kind: other };
    taken.contains(wanted) || taken.contains(&Needed { kind: other, ..wanted.clone() })
}

/// The permissions of a table that nothing takes.
fn idle(
    rows: Option<&'static [Permission]>,
    is_member: bool,
    taken: &BTreeSet<Needed>,
) -> Vec<String> {
    let all = rows.into_iter().flatten().flat_map(|row| row.verbs.iter().map(move |it| (row, *it)));
    let is_idle = |(row, verb): &(&Permission, ApiVerb)| {
        !is_taken(taken, &Needed { kind: row.kind.clone(), verb: *verb, is_member })
    };
    all.filter(is_idle).map(|(row, verb)| format!("{verb:?} {}", row.kind)).collect()
}

fn is_elsewhere(idle: &str) -> bool {
    ELSEWHERE.iter().any(|(dialect, what, _)| {
        idle.strip_prefix(dialect)
            .is_some_and(|rest| rest.starts_with(": ") && rest.ends_with(what))
    })
}

#[test]
fn what_is_elsewhere_is_tested_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (dialect, permission, test) in ELSEWHERE {
        let (file, function) = test.split_once("::").expect("a file and a function");
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let is_there = text.contains(&format!("#[test]\nfn {function}() {{"));
        assert!(is_there, "{dialect}: {permission}: there is no test {test}");
    }
}

#[test]
fn every_permission_is_needed() {
    let (skyhook, fleet, operator) = (Skyhook::new(), fleet::Hub::default(), Operator::new());
    let hub = ocm::Hub { parts: ocm::HubControllers::ALL };
    let (agent, work) =
        (FleetAgent::new("member-1"), OcmAgent::new(ocm_agent::Options::new("cluster-1", "")));
    let registration = OcmRegistration::new(ocm_registration::Options::new("cluster-1"));
    let mut taken = Taken::new();
    for seed in 0..SEEDS {
        simulate(seed, Apps::from_seed(seed, ServerKind::Light), &mut taken);
        simulate(seed, Skyhooks::from_seed(seed, ServerKind::Light), &mut taken);
        simulate(seed, Fleets::from_seed(seed), &mut taken);
        simulate(seed, Disruptions::from_seed(seed), &mut taken);
        simulate(seed, OcmFleet::from_seed(seed), &mut taken);
    }
    let of_homes: [&dyn Dialect; 5] = [&Deployments, &skyhook, &fleet, &operator, &hub];
    decide_vectors(&of_homes, &mut taken);
    decide_rare(&of_homes, &mut taken);
    let mut idle_ones = Vec::new();
    let dialects: [&dyn Dialect; 8] =
        [&Deployments, &skyhook, &fleet, &operator, &hub, &agent, &work, &registration];
    for dialect in dialects {
        let taken = taken.remove(dialect.name()).unwrap_or_default();
        let home = idle(dialect.permissions(), false, &taken);
        let member = idle(dialect.member_permissions(), true, &taken);
        let named = |idle: String| format!("{}: {idle}", dialect.name());
        idle_ones.extend(home.into_iter().chain(member).map(named));
    }
    idle_ones.retain(|idle| !is_elsewhere(idle));
    assert!(idle_ones.is_empty(), "nothing takes\n{}", idle_ones.join("\n"));
}
