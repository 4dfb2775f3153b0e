//! The control loop in virtual time, under everything that may go wrong. Each seed is a world;
//! one that fails prints the command that runs it again.

#[path = "simulation/comparison.rs"]
mod comparison;
#[path = "simulation/generous.rs"]
mod generous;
#[path = "simulation/observed.rs"]
mod observed;
#[path = "simulation/ocm.rs"]
mod ocm;
#[path = "simulation/permissions.rs"]
mod permissions;
#[expect(clippy::disallowed_methods, reason = "these runs are in real time")]
#[path = "simulation/recorded.rs"]
mod recorded;
#[path = "simulation/replay.rs"]
mod replay;

use convoy_plan::Dialect;
use convoy_sim::seed::Seed;
use convoy_sim::simulation::apps::Apps;
use convoy_sim::simulation::cluster::ServerKind;
use convoy_sim::simulation::disruptions::Disruptions;
use convoy_sim::simulation::fleets::Fleets;
use convoy_sim::simulation::pools::PoolRehearsal;
use convoy_sim::simulation::rehearsal::Rehearsal;
use convoy_sim::simulation::skyhooks::Skyhooks;
use convoy_sim::simulation::together::Together;
use convoy_sim::simulation::{RunSummary, Simulation};
use convoy_testkit::seeds;

use generous::{GENEROUS, Generous};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // as the binary has

/// Enough to meet every pair of faults, and within a minute or two on two cores.
const SEEDS: u32 = 1_000;
/// Enough to tell whether the small server does as the real one.
const SEEDS_OF_REAL: u32 = 30;
/// The same of Skyhooks, which write more.
const SEEDS_OF_REAL_SKYHOOKS: u32 = 8;

/// Fewer, since pools write much; weeks of pools are tried elsewhere.
const SEEDS_OF_POOLS: u32 = 200;
/// Enough to meet every pair of dialects.
const SEEDS_TOGETHER: u32 = 100;
/// Enough to stop a leader between any two of its requests.
const SEEDS_OF_LEADERS: u32 = 150;

fn run(seed: u64, server: ServerKind) -> Result<RunSummary, String> {
    let (trial, settings) = Apps::from_seed(seed, server);
    Simulation::new(Seed::new(seed), settings, trial).run().map_err(|failure| failure.to_string())
}

fn run_skyhook(seed: u64, server: ServerKind) -> Result<RunSummary, String> {
    let (trial, settings) = Skyhooks::from_seed(seed, server);
    Simulation::new(Seed::new(seed), settings, trial).run().map_err(|failure| failure.to_string())
}

fn run_fleet(seed: u64) -> Result<RunSummary, String> {
    let (trial, settings) = Fleets::from_seed(seed);
    Simulation::new(Seed::new(seed), settings, trial).run().map_err(|failure| failure.to_string())
}

fn run_pool(seed: u64) -> Result<RunSummary, String> {
    let (trial, settings) = Disruptions::from_seed(seed);
    Simulation::new(Seed::new(seed), settings, trial).run().map_err(|failure| failure.to_string())
}

fn run_together(seed: u64) -> Result<RunSummary, String> {
    let (trial, settings) = Together::from_seed(seed);
    Simulation::new(Seed::new(seed), settings, trial).run().map_err(|failure| failure.to_string())
}

fn run_hub(seed: u64, hub: &'static dyn Dialect) -> Result<RunSummary, String> {
    let (trial, settings) = Fleets::from_seed(seed);
    let trial = trial.with_hub(hub);
    Simulation::new(Seed::new(seed), settings, trial).run().map_err(|failure| failure.to_string())
}

/// Two processes, of which one leads.
fn run_led(seed: u64, is_fenced: bool) -> Result<RunSummary, String> {
    let (trial, mut settings) = Apps::led_from_seed(seed, ServerKind::Light);
    if let Some(leadership) = &mut settings.leadership {
        leadership.is_fenced = is_fenced;
    }
    Simulation::new(Seed::new(seed), settings, trial).run().map_err(|failure| failure.to_string())
}

#[test]
fn deployments_keep_their_promise_whatever_happens() {
    let name = "deployments_keep_their_promise_whatever_happens";
    every_seed(name, SEEDS, |seed| run(seed, ServerKind::Light));
}

#[test]
fn they_keep_it_on_the_real_server_too() {
    let name = "they_keep_it_on_the_real_server_too";
    every_seed(name, SEEDS_OF_REAL, |seed| run(seed, ServerKind::Real));
}

#[test]
fn no_compartment_has_more_in_progress_than_its_ceiling() {
    let name = "no_compartment_has_more_in_progress_than_its_ceiling";
    every_seed(name, SEEDS, |seed| run_skyhook(seed, ServerKind::Light));
}

#[test]
fn nor_has_it_on_the_real_server() {
    let name = "nor_has_it_on_the_real_server";
    every_seed(name, SEEDS_OF_REAL_SKYHOOKS, |seed| run_skyhook(seed, ServerKind::Real));
}

#[test]
fn placements_keep_enough_clusters_working_whatever_happens() {
    let name = "placements_keep_enough_clusters_working_whatever_happens";
    every_seed(name, SEEDS, run_fleet);
}

#[test]
fn pools_keep_their_budgets_whatever_happens() {
    let name = "pools_keep_their_budgets_whatever_happens";
    every_seed(name, SEEDS_OF_POOLS, run_pool);
}

/// The worlds above would show a pool that disrupts one node more than it may.
#[test]
fn a_pool_that_disrupts_one_more_is_found_out() {
    let run = |seed: u64| {
        let (trial, settings) = Disruptions::from_seed(seed);
        Simulation::new(Seed::new(seed), settings, trial.lenient()).run()
    };
    let failures = (0..60).filter_map(|seed| run(seed).err());
    let shown = failures.filter(|failure| failure.message.contains("nodes are disrupted")).take(2);
    assert_eq!(shown.count(), 2, "more by one goes unseen in almost all of 60 worlds");
}

#[test]
fn dialects_keep_their_promises_in_one_world() {
    let name = "dialects_keep_their_promises_in_one_world";
    every_seed(name, SEEDS_TOGETHER, run_together);
}

/// The worlds above would show a hub that lets one more cluster go or come than it may.
#[test]
fn a_hub_that_admits_one_more_is_found_out() {
    for (field, found) in
        [("maxUnavailable", "clusters that work"), ("maxSurge", "carry resources")]
    {
        let hub: &'static Generous = if field == "maxSurge" { &GENEROUS[1] } else { &GENEROUS[0] };
        let failures = (0..200).filter_map(|seed| run_hub(seed, hub).err());
        let shown = failures.filter(|failure| failure.contains(found)).take(2).count();
        assert_eq!(shown, 2, "{field}: more by one goes unseen in almost all of 200 worlds");
    }
}

#[test]
fn a_deposed_leader_writes_nothing_whenever_it_is_stopped() {
    let name = "a_deposed_leader_writes_nothing_whenever_it_is_stopped";
    every_seed(name, SEEDS_OF_LEADERS, |seed| run_led(seed, true));
}

/// The worlds above would show a leader that does not look at its tenure.
#[test]
fn leaders_that_do_not_look_at_their_tenure_are_found_out() {
    let failures: Vec<String> = (0..20).filter_map(|seed| run_led(seed, false).err()).collect();
    let shown = |what: &str| failures.iter().filter(|failure| failure.contains(what)).count();
    assert!(shown("has written") >= 3, "{failures:#?}");
}

#[test]
fn a_rollout_is_rehearsed_to_its_end() {
    let (trial, settings) = Rehearsal::new(40, 2);
    let summary =
        Simulation::new(Seed::new(1), settings, trial).run().expect("nothing is in its way");
    assert!(summary.writes > 40 * 2 * 10, "{summary:?}");
}

#[test]
fn a_pool_gets_its_nodes_and_drifts_within_its_budget() {
    let (trial, settings) = PoolRehearsal::new(25, || ());
    let summary =
        Simulation::new(Seed::new(1), settings, trial).run().expect("nothing is in its way");
    assert!(summary.writes > 25 * 2 * 10, "{summary:?}");
}

#[test]
fn a_seed_gives_the_same_world_every_time() {
    for server in [ServerKind::Light, ServerKind::Real] {
        assert_eq!(run(11, server), run(11, server));
        assert_eq!(run_skyhook(11, server), run_skyhook(11, server));
    }
}

/// Runs a world per seed.
fn every_seed(test: &str, cases: u32, run: impl Fn(u64) -> Result<RunSummary, String> + Sync) {
    let target = format!("--test simulation {test}");
    let summaries = seeds::every_seed("convoy-sim", &target, cases, run);
    let writes: usize = summaries.iter().map(|summary| summary.writes).sum();
    let events: u64 = summaries.iter().map(|summary| summary.events).sum();
    eprintln!("{} seeds, {writes} writes, {events} events", summaries.len());
}
