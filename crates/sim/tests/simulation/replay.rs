//! Plans agree with controllers in virtual time, whatever happens: every decision of a simulated run
//! is compared with the plan of what the loop knew.

use convoy_plan::dialect::fleet;
use convoy_plan::{Action, Write};
use convoy_sim::seed::Seed;
use convoy_sim::simulation::apps::Apps;
use convoy_sim::simulation::cluster::{ServerKind, WriteRecord};
use convoy_sim::simulation::disruptions::Disruptions;
use convoy_sim::simulation::fleets::Fleets;
use convoy_sim::simulation::ocm::OcmFleet;
use convoy_sim::simulation::skyhooks::Skyhooks;
use convoy_sim::simulation::{Decision, RunSettings, Simulation, Trial};

use crate::comparison::{AS_IT_IS, Comparison, Decided};
use crate::observed::{Observed, Onlooker};

impl Onlooker for Comparison {
    fn decided(&mut self, decision: &Decision<'_>) {
        let Decision { index, step, cache, now } = *decision;
        self.compare(&Decided::new(index, step, cache, now));
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        self.wrote(record);
        Ok(())
    }
}

/// Runs a trial and compares.
fn replay<T: Trial>(
    seed: u64,
    (trial, settings): (T, RunSettings),
    distort: fn(&mut Vec<Action>),
) -> Comparison {
    let mut comparison = Comparison::new(trial.loops(), distort);
    let trial = Observed { trial, onlooker: &mut comparison };
    let run = Simulation::new(Seed::new(seed), settings, trial).run();
    run.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    comparison
}

/// Runs some seeds of a dialect; all plans equal what was written.
fn agrees(dialect: &str, decisions: usize, run: impl Fn(u64) -> Comparison) {
    let (mut compared, mut beside, mut writes) = (0, 0, 0);
    for seed in 0..SEEDS {
        let comparison = run(seed);
        let differences = comparison.differences;
        let (count, first) = (differences.len(), differences.first());
        assert!(
            count == 0,
            "{dialect}, seed {seed}: {count} differ, first {}",
            first.expect("one")
        );
        compared += comparison.compared;
        beside += comparison.beside;
        writes += comparison.writes;
    }
    eprintln!("{dialect}: {compared} plans, {beside} of other controllers, {writes} writes");
    assert!(compared >= decisions, "{dialect}: only {compared} decisions were planned");
    assert!(writes > 0, "{dialect}: nothing was written");
}

const SEEDS: u64 = 2;

/// With the options that `convoy plan` assumes.
static HUB: fleet::Hub = fleet::Hub { options: fleet::Options::new() };

#[test]
fn plans_of_deployments_equal_what_was_written() {
    agrees("apps", 100, |seed| replay(seed, Apps::from_seed(seed, ServerKind::Real), AS_IT_IS));
}

#[test]
fn plans_of_skyhooks_equal_what_was_written() {
    agrees("skyhook", 100, |seed| {
        replay(seed, Skyhooks::from_seed(seed, ServerKind::Real), AS_IT_IS)
    });
}

#[test]
fn plans_of_placements_equal_what_was_written() {
    agrees("fleet", 100, |seed| {
        let (trial, settings) = Fleets::from_seed(seed);
        replay(seed, (trial.with_hub(&HUB), settings), AS_IT_IS)
    });
}

#[test]
fn plans_of_pools_equal_what_was_written() {
    agrees("karpenter", 100, |seed| replay(seed, Disruptions::from_seed(seed), AS_IT_IS));
}

#[test]
fn plans_of_replica_sets_equal_what_was_written() {
    agrees("ocm", 100, |seed| replay(seed, OcmFleet::from_seed(seed), AS_IT_IS));
}

/// The comparisons above show a plan that lacks an action: it differs from the decision, and the
/// write is in no plan.
#[test]
fn a_plan_that_lacks_an_action_is_found_out() {
    let comparison = replay(0, Apps::from_seed(0, ServerKind::Light), |actions| {
        actions.retain(|action| !matches!(action.write, Write::Delete { .. }));
    });
    let found = |what: &str| comparison.differences.iter().any(|it| it.contains(what));
    assert!(found(": plan "), "{:?}", comparison.differences);
    assert!(found("Modified Pod/") || found("Deleted Pod/"), "{:?}", comparison.differences);
}
