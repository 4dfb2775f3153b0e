//! A pool with 50 budgets, most of them windows, over fleets of several sizes: snapshot and
//! step from a world that is there already, and whole plans from objects that are merely
//! parsed (`cold`). Every node gets a reason. Another pool has a pod on each node and consolidates.

use std::cell::LazyCell;

use convoy_api::Object;
use convoy_plan::dialect::karpenter::Karpenter;
use convoy_plan::{Dialect, World, plan};
use convoy_testkit::{NOW, karpenter, parsed};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // as the binary has it

const MEMBERS: [usize; 5] = [10, 1_000, 5_000, 10_000, 100_000];

fn budgets() -> Vec<Value> {
    let reasons = ["Drifted", "Empty", "Underutilized"];
    let scheduled = (0..49).map(|at| {
        let (hour, percent) = (at % 24, 5 + at);
        json!({"nodes": format!("{percent}%"), "schedule": format!("{at} {hour} * * mon-fri"),
            "duration": "8h", "reasons": [reasons[at % 3]]})
    });
    scheduled.chain([json!({"nodes": "1%"})]).collect()
}

/// Every third node was made from an earlier template.
fn pair(at: usize) -> [Object; 2] {
    let name = format!("n{at:06}");
    let node = karpenter::node_of("default", &name).build();
    let claim = karpenter::claim("default", &name);
    if !at.is_multiple_of(3) {
        return [claim.build(), node];
    }
    let drifted = json!({"type": "Drifted", "status": "True", "reason": "NodePoolDrifted",
        "message": "NodePoolDrifted", "lastTransitionTime": "2025-12-31T12:00:00Z"});
    let mut raw = claim.annotation("karpenter.sh/nodepool-hash", "1").json();
    raw["status"]["conditions"].as_array_mut().expect("a list").push(drifted);
    [Object::from_value(raw).expect("a whole object"), node]
}

fn objects(members: usize) -> Vec<Object> {
    let disruption = json!({"consolidateAfter": "Never", "budgets": budgets()});
    let pool = karpenter::pool("default", &disruption).build();
    (0..members).flat_map(pair).chain([pool]).map(|object| parsed(&object)).collect()
}

/// A pod on every node and consolidation on: each node is looked at for what it would save.
fn busy(members: usize) -> Vec<Object> {
    let disruption = json!({"consolidateAfter": "0s", "budgets": budgets()});
    let pool = karpenter::pool("default", &disruption).build();
    let pod = |at: usize| {
        let node = format!("n{at:06}");
        karpenter::pod(&format!("p{at:06}"), &node, "2").build()
    };
    let members = (0..members).flat_map(|at| pair(at).into_iter().chain([pod(at)]));
    members.chain([pool]).map(|object| parsed(&object)).collect()
}

fn consolidation(criterion: &mut Criterion) {
    let now: Timestamp = NOW.parse().expect("a constant");
    let mut group = criterion.benchmark_group("karpenter, a pod on each node");
    group.sample_size(10);
    for members in [10, 1_000, 5_000] {
        let world = LazyCell::new(|| busy(members).into_iter().collect::<World>());
        group.bench_function(BenchmarkId::from_parameter(members), |bench| {
            let pool = Karpenter.rollouts(&world)[0];
            bench.iter(|| Karpenter.step(&Karpenter.snapshot(&world, pool), now));
        });
    }
    group.finish();
}

fn bench(criterion: &mut Criterion) {
    let now: Timestamp = NOW.parse().expect("a constant");
    let mut group = criterion.benchmark_group("karpenter, 50 budgets");
    group.sample_size(10);
    for members in MEMBERS {
        // One world for all samples: what a decision has read is kept beside it.
        let world = LazyCell::new(|| objects(members).into_iter().collect::<World>());
        group.bench_function(BenchmarkId::from_parameter(members), |bench| {
            let pool = Karpenter.rollouts(&world)[0];
            bench.iter(|| Karpenter.step(&Karpenter.snapshot(&world, pool), now));
        });
        group.bench_function(BenchmarkId::new("cold", members), |bench| {
            let objects = objects(members);
            bench.iter_batched(
                || objects.clone(),
                |objects| plan(&objects.into_iter().collect(), now),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, bench, consolidation);
criterion_main!(benches);
