//! Hubs of Open Cluster Management and their managed clusters, and hubs with a defect.

use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::dialect::ocm::{Hub, HubControllers};
use convoy_plan::dialect::{Need, Watch};
use convoy_plan::{Dialect, Snapshot, Step, World};
use convoy_sim::seed::Seed;
use convoy_sim::simulation::ocm::OcmFleet;
use convoy_sim::simulation::{RunSummary, Simulation};
use jiff::Timestamp;
use serde_json::{Value, json};

static HUB: Hub = Hub { parts: HubControllers::ALL };

/// Enough to meet every pair of faults, and within two minutes on two cores.
const SEEDS: u32 = 1_000;

fn run(seed: u64) -> Result<RunSummary, String> {
    let (trial, settings) = OcmFleet::from_seed(seed);
    Simulation::new(Seed::new(seed), settings, trial).run().map_err(|failure| failure.to_string())
}

fn run_defective(seed: u64, hub: &'static Defective) -> Result<RunSummary, String> {
    let (trial, settings) = OcmFleet::from_seed(seed);
    let trial = trial.with_hub(hub);
    Simulation::new(Seed::new(seed), settings, trial).run().map_err(|failure| failure.to_string())
}

#[test]
fn replica_sets_roll_out_in_order_whatever_happens() {
    let name = "replica_sets_roll_out_in_order_whatever_happens";
    super::every_seed(name, SEEDS, run);
}

/// The worlds above would show a hub that admits one more, that goes out of turn, or that cuts
/// decision groups anew.
#[test]
fn a_hub_that_goes_out_of_turn_is_found_out() {
    for hub in &DEFECTIVE {
        let mut failures = (0..60).filter_map(|seed| run_defective(seed, hub).err());
        let is_shown = failures.any(|failure| failure.contains(hub.found));
        assert!(is_shown, "nobody says {:?}", hub.found);
    }
}

#[test]
fn a_seed_gives_the_same_world_of_replica_sets_every_time() {
    assert_eq!(run(11), run(11));
}

/// A hub that reads its objects wrongly.
struct Defective {
    kind: &'static str,
    misread: fn(&mut Value),
    /// What is said about it.
    found: &'static str,
}

static DEFECTIVE: [Defective; 4] = [
    Defective { kind: "ManifestWorkReplicaSet", misread: one_more, found: "in flight" },
    Defective { kind: "ManifestWorkReplicaSet", misread: no_mandatory, found: "is through" },
    Defective { kind: "ManifestWorkReplicaSet", misread: all_at_once, found: "is through" },
    Defective { kind: "Placement", misread: cut_anew, found: "decision group" },
];

fn strategies(set: &mut Value) -> impl Iterator<Item = &mut Value> {
    let references = set["spec"]["placementRefs"].as_array_mut().into_iter().flatten();
    references.map(|reference| &mut reference["rolloutStrategy"])
}

fn one_more(set: &mut Value) {
    for strategy in strategies(set).filter(|it| it["type"] == "Progressive") {
        let limit = &mut strategy["progressive"]["maxConcurrency"];
        if let Some(number) = limit.as_u64() {
            *limit = json!(number + u64::from(number > 0));
        }
    }
}

fn no_mandatory(set: &mut Value) {
    for strategy in strategies(set) {
        for block in ["progressive", "progressivePerGroup"] {
            if let Some(block) = strategy.get_mut(block) {
                block["mandatoryDecisionGroups"] = json!([]);
            }
        }
    }
}

fn all_at_once(set: &mut Value) {
    for strategy in strategies(set).filter(|it| it["type"] == "ProgressivePerGroup") {
        *strategy = json!({"type": "All"});
    }
}

fn cut_anew(placement: &mut Value) {
    placement["metadata"]["annotations"]["convoy.dev/regroup"] = json!("compact");
}

impl Dialect for Defective {
    fn name(&self) -> &'static str {
        HUB.name()
    }

    fn watches(&self) -> &'static [Watch] {
        HUB.watches()
    }

    fn needs(&self, world: &World, rollout: &Object) -> Vec<Need> {
        HUB.needs(world, rollout)
    }

    fn takes_along(&self, kind: &GroupKind) -> bool {
        HUB.takes_along(kind)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        HUB.rollouts(world)
    }

    fn is_rollout(&self, world: &World, object: &Object) -> bool {
        HUB.is_rollout(world, object)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        HUB.affected(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        HUB.snapshot(world, rollout)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        if rollout.kind().kind != self.kind {
            return HUB.step(snapshot, now);
        }
        let mut raw = rollout.raw().clone();
        (self.misread)(&mut raw);
        let misread = rollout.with_raw(raw);
        HUB.step(&Snapshot::new(&misread, snapshot.iter()), now)
    }
}
