//! The rollout engine beside upstream's own rollout helper on the same large rollouts:
//! `cargo bench --profile release -p convoy-check --bench ocm_upstream -- CLUSTERS`. Needs Go.
//!
//! The helper is given groups and statuses that are in memory as it wants them. The engine answers
//! the same question from the same, and that has to be ten times as fast. Beside it stands the whole
//! step from the objects of a hub, which no part of the helper does: the engine finds the works,
//! compares them with the template, reads their conditions, says who waits for what, and makes the
//! writes and the status.

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
use convoy_plan::dialect::ocm::{Ocm, ReportedGroup, WorkStatus, next_clusters};
use convoy_testkit::NOW;
use convoy_testkit::ocm::NAMESPACE;
use jiff::{SignedDuration, Timestamp};
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
        let (choice, chosen) = fastest_choice(case);
        assert_eq!(chosen, theirs.starts.len(), "{name}: the engine chooses other numbers");
        let (step, started) = fastest_step(case);
        assert_eq!(started, theirs.starts.len(), "{name}: the step starts other numbers");
        let millis = |it: Duration| it.as_secs_f64() * 1e3;
        let theirs = millis(Duration::from_nanos(theirs.nanoseconds));
        let (choice, step) = (millis(choice), millis(step));
        least = least.min(theirs / choice);
        println!(
            "{name}: helper {theirs:.2} ms, engine {choice:.3} ms, {:.0} times; whole step \
             {step:.2} ms, {:.1} times",
            theirs / choice,
            theirs / step
        );
    }
    assert!(least >= 10.0, "the engine is only {least:.1} times as fast");
}

/// How long the fastest of several calls takes, and what it gives.
fn fastest<T>(mut call: impl FnMut() -> T) -> (Duration, T) {
    let mut timed = || {
        let begun = Instant::now();
        let result = black_box(call());
        (begun.elapsed(), result)
    };
    let mut best = timed();
    for _ in 1..CALLS {
        let next = timed();
        if next.0 < best.0 {
            best = next;
        }
    }
    best
}

/// The choice of clusters from groups and statuses that are read already, and how many it starts.
fn fastest_choice(case: &Case) -> (Duration, usize) {
    let now: Timestamp = NOW.parse().expect("an instant");
    let reported = |member: &Member| {
        let (status, secs) = member.status?;
        let status = match status {
            Status::ToApply => WorkStatus::ToApply,
            Status::Progressing => WorkStatus::Progressing,
            Status::Succeeded => WorkStatus::Succeeded,
            Status::Failed => WorkStatus::Failed,
        };
        Some((status, Some(now - SignedDuration::from_secs(secs))))
    };
    let groups: Vec<ReportedGroup<'_>> = (0..)
        .zip(&case.groups)
        .map(|(index, group)| {
            let members = group.members.iter();
            let members = members.map(|it| (it.cluster.as_str(), reported(it))).collect();
            ReportedGroup { index, name: group.name.as_str().into(), members }
        })
        .collect();
    let (took, chosen) = fastest(|| next_clusters(&groups, &case.strategy, now));
    (took, chosen.expect("sound strategies").0.len())
}

/// The whole step of the replica set, and how many it starts.
fn fastest_step(case: &Case) -> (Duration, usize) {
    let world = case.world();
    let set = world.find(&MANIFEST_WORK_REPLICA_SET, NAMESPACE, "web").expect("made above");
    let now = NOW.parse().expect("an instant");
    let (took, step) = fastest(|| Ocm.step(&Ocm.snapshot(&world, set), now));
    let started = step.actions.iter().filter(|it| it.target.kind == MANIFEST_WORK).count();
    (took, started)
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
