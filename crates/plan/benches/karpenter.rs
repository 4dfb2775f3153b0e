//! A pool with 50 budgets, most of them windows, over fleets of several sizes: from objects
//! that are parsed already to a decision with a reason for every node.

use convoy_api::Object;
use convoy_plan::dialect::karpenter::Karpenter;
use convoy_plan::{Dialect, World};
use convoy_testkit::{NOW, karpenter};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use serde_json::{Value, json};

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

fn snapshot_and_step(criterion: &mut Criterion) {
    let now: Timestamp = NOW.parse().expect("a constant");
    let disruption = json!({"consolidateAfter": "Never", "budgets": budgets()});
    let mut group = criterion.benchmark_group("karpenter, 50 budgets");
    group.sample_size(10);
    for members in MEMBERS {
        let mut world: World = (0..members).flat_map(pair).collect();
        world.insert(karpenter::pool("default", &disruption).build());
        let pool = Karpenter.rollouts(&world)[0];
        group.bench_function(BenchmarkId::from_parameter(members), |bench| {
            bench.iter(|| Karpenter.step(&Karpenter.snapshot(&world, pool), now));
        });
    }
    group.finish();
}

criterion_group!(benches, snapshot_and_step);
criterion_main!(benches);
