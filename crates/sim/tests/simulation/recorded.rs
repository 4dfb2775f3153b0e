//! Plans agree with controllers in real time: the control loops, the machines and the users of a
//! trial run on an embedded server, and every decision is compared afterwards with the plan of what
//! the loop knew.

#[path = "recorded/home.rs"]
mod home;
#[path = "recorded/transport.rs"]
mod transport;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use convoy_controllers::reconciler::DecisionObserver;
use convoy_plan::dialect::fleet;
use convoy_sim::seed::Seed;
use convoy_sim::simulation::apps::Apps;
use convoy_sim::simulation::cluster::{Cluster, ServerKind};
use convoy_sim::simulation::disruptions::Disruptions;
use convoy_sim::simulation::fleets::Fleets;
use convoy_sim::simulation::ocm::OcmFleet;
use convoy_sim::simulation::random::Random;
use convoy_sim::simulation::skyhooks::Skyhooks;
use convoy_sim::simulation::{RunSettings, Trial};
use jiff::Timestamp;

use self::home::Home;
use crate::comparison::{AS_IT_IS, Comparison, Decided};

/// How long users act.
const UNREST: Duration = Duration::from_secs(20);
/// The pause between two of their actions.
const ACTIONS_EVERY: Duration = Duration::from_millis(1_500);
/// How often new records are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Nothing has been written for so long when a run is over.
const REST: Duration = Duration::from_secs(3);
/// The longest run: one that does not come to rest is compared all the same.
const LONGEST: Duration = Duration::from_secs(45);

/// Runs a trial in real time, and compares what was recorded.
async fn record<T: Trial>(seed: u64, (mut trial, _): (T, RunSettings)) -> Comparison {
    let mut home = Home::start(&trial).await;
    let decided = Arc::<Mutex<Vec<Decided>>>::default();
    let begin = trial.begin();
    home.send_all(begin).await;
    for (index, dialects) in trial.loops().into_iter().enumerate() {
        let decided = Arc::clone(&decided);
        let observer: DecisionObserver = Box::new(move |step, cache, now| {
            let mut decided = decided.lock().unwrap_or_else(PoisonError::into_inner);
            decided.push(Decided::new(index, step, cache, now));
        });
        home.run(dialects, &trial.members(index), observer);
    }
    let mut random = Random::new(Seed::new(seed));
    let (begun, mut acted, mut written) = (Instant::now(), Instant::now(), Instant::now());
    let mut is_ending = false;
    while begun.elapsed() < LONGEST && !(is_ending && written.elapsed() > REST) {
        tokio::time::sleep(LOOK_EVERY).await;
        for record in home.read() {
            written = Instant::now();
            // Who wrote is not known in time, so that promises are left to virtual time.
            _ = trial.see(&record);
            home.react(trial.react(&record, &mut random));
        }
        if begun.elapsed() < UNREST {
            if acted.elapsed() > ACTIONS_EVERY {
                acted = Instant::now();
                let mut clock = Cluster::new(ServerKind::Light, Seed::new(seed), Timestamp::now());
                let requests = trial.act(&mut random, &mut clock);
                home.send_all(requests).await;
            }
        } else if !is_ending {
            (is_ending, written) = (true, Instant::now());
            let mut clock = Cluster::new(ServerKind::Light, Seed::new(seed), Timestamp::now());
            home.send_all(trial.end(&mut clock)).await;
        }
    }
    let records = home.end().await;
    let mut comparison = Comparison::new(trial.loops(), AS_IT_IS);
    for record in &records {
        comparison.note(&record.object, record.is_deletion());
    }
    for decided in decided.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        comparison.compare(decided);
    }
    comparison.forget_newest();
    for record in &records {
        comparison.wrote(record);
    }
    comparison
}

/// All plans equal what was written.
fn agrees<T: Trial>(dialect: &str, trial: (T, RunSettings)) {
    let runtime = tokio::runtime::Runtime::new().expect("the machine has resources");
    let Comparison { compared, beside, writes, differences, .. } =
        runtime.block_on(record(SEED, trial));
    let (count, first) = (differences.len(), differences.first());
    assert!(count == 0, "{dialect}: {count} differ, first {}", first.expect("one"));
    eprintln!("{dialect}: {compared} plans, {beside} of other controllers, {writes} writes");
    assert!(compared >= DECISIONS_MIN, "{dialect}: only {compared} decisions were planned");
    assert!(writes > 0, "{dialect}: nothing was written");
}

const SEED: u64 = 0;
/// Fewer show that something else is wrong.
const DECISIONS_MIN: usize = 50;

/// With the options that `convoy plan` assumes.
static HUB: fleet::Hub = fleet::Hub { options: fleet::Options::new() };

/// All at once: most of the time they wait.
#[test]
fn plans_equal_what_was_written_in_real_time() {
    std::thread::scope(|scope| {
        scope.spawn(|| agrees("apps", Apps::from_seed(SEED, ServerKind::Real)));
        scope.spawn(|| agrees("skyhook", Skyhooks::from_seed(SEED, ServerKind::Real)));
        scope.spawn(|| {
            let (trial, settings) = Fleets::from_seed(SEED);
            agrees("fleet", (trial.with_hub(&HUB), settings));
        });
        scope.spawn(|| agrees("karpenter", Disruptions::from_seed(SEED)));
        scope.spawn(|| agrees("ocm", OcmFleet::from_seed(SEED)));
    });
}
