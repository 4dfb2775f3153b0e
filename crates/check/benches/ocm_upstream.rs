//! The rollout engine beside upstream's own rollout helper on the same large rollouts:
//! `cargo bench --profile release -p convoy-check --bench ocm_upstream -- CLUSTERS`. Needs Go.
//!
//! The helper is given groups and statuses that are in memory as it wants them. The engine is given
//! the objects of a hub: it also finds the works, compares them with the template, reads their
//! conditions and says who waits for what.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench looks at the clock, and says what it measured"
)]

#[path = "../tests/ocm_upstream/cases.rs"]
mod cases;

use std::hint::black_box;
use std::time::{Duration, Instant};

use convoy_api::ocm::names::{MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET};
use convoy_plan::Dialect;
use convoy_plan::dialect::ocm::Ocm;
use convoy_testkit::NOW;
use convoy_testkit::ocm::NAMESPACE;
use serde_json::{Value, json};

use cases::{Case, Group, Member, Status, ask, helper};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // as the binary has

/// The fastest of so many calls counts, on either side.
const CALLS: u32 = 20;

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let clusters = words.next().and_then(|word| word.parse().ok()).unwrap_or(3_500);
    let limits = json!({"maxFailures": "5%", "progressDeadline": "10m"});
    let mut progressive = limits.clone();
    progressive["maxConcurrency"] = json!("10%");
    let progressive = json!({"type": "Progressive", "progressive": progressive});
    let per_group = json!({"type": "ProgressivePerGroup", "progressivePerGroup": limits});
    let mut named = Vec::new();
    for (name, strategy) in [("Progressive", &progressive), ("ProgressivePerGroup", &per_group)] {
        for done in [clusters / 3, clusters / 2, clusters] {
            named.push((format!("{name}, {done} done"), case(clusters, done, strategy)));
        }
    }
    let all: Vec<Case> = named.iter().map(|(_, case)| case.clone()).collect();
    let answers = ask(&helper(), &all, CALLS);
    println!("{clusters} clusters in groups of 150");
    let mut least = f64::INFINITY;
    for ((name, case), theirs) in named.iter().zip(&answers) {
        let (ours, started) = fastest(case);
        assert_eq!(started, theirs.starts.len(), "{name}: other answers");
        let theirs = Duration::from_nanos(theirs.nanoseconds).as_secs_f64() * 1e3;
        let ours = ours.as_secs_f64() * 1e3;
        let ratio = theirs / ours;
        least = least.min(ratio);
        println!("{name}: helper {theirs:.2} ms, engine {ours:.2} ms, {ratio:.0} times");
    }
    assert!(least >= 10.0, "the engine is only {least:.1} times as fast");
}

/// How long the fastest decision takes, and how many it starts.
fn fastest(case: &Case) -> (Duration, usize) {
    let world = case.world();
    let set = world.find(&MANIFEST_WORK_REPLICA_SET, NAMESPACE, "web").expect("made above");
    let now = NOW.parse().expect("an instant");
    let mut fastest = Duration::MAX;
    let mut started = 0;
    for _ in 0..CALLS {
        let begun = Instant::now();
        let step = black_box(Ocm.step(&Ocm.snapshot(&world, set), now));
        fastest = fastest.min(begun.elapsed());
        started = step.actions.iter().filter(|it| it.target.kind == MANIFEST_WORK).count();
    }
    (fastest, started)
}

/// So many clusters of which the first are through.
fn case(clusters: usize, done: usize, strategy: &Value) -> Case {
    let members: Vec<Member> = (0..clusters)
        .map(|number| Member {
            cluster: format!("cluster-{number:05}"),
            status: (number < done).then_some((Status::Succeeded, 3_600)),
        })
        .collect();
    let group = |members: &[Member]| Group { name: String::new(), members: members.to_vec() };
    Case { strategy: strategy.clone(), groups: members.chunks(150).map(group).collect() }
}
