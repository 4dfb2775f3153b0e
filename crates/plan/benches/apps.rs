//! Snapshot and step of a Deployment with old ReplicaSets, and of a ReplicaSet with pods.

use std::hint::black_box;

use convoy_api::Object;
use convoy_plan::{DIALECTS, Dialect, Step, World};
use convoy_testkit::{NOW, apps, parsed};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // as the binary has it

fn decide(dialect: &dyn Dialect, world: &World, rollout: &Object, now: Timestamp) -> Step {
    dialect.step(&dialect.snapshot(world, rollout), now)
}

fn dialect() -> &'static dyn Dialect {
    *DIALECTS.iter().find(|dialect| dialect.name() == "apps").expect("one of the five")
}

/// A Deployment with a new and ten old ReplicaSets: at rest, or with a template that is new.
fn deployment(replicas: i64, image: &str) -> World {
    let sets = (0..=10).map(|revision| {
        let size = if revision == 10 { replicas } else { 0 };
        apps::replica_set(&format!("web-{revision}"), &format!("web:v{revision}"), size, replicas)
            .annotation("deployment.kubernetes.io/revision", &(revision + 1).to_string())
            .created_at(&format!("2025-12-{:02}T00:00:00Z", revision + 1))
            .build()
    });
    let deployment = apps::deployment(replicas, image)
        .annotation("deployment.kubernetes.io/revision", "11")
        .build();
    sets.chain([deployment]).map(|object| parsed(&object)).collect()
}

fn deployments(criterion: &mut Criterion) {
    let now: Timestamp = NOW.parse().expect("an instant");
    let mut group = criterion.benchmark_group("apps/deployment");
    for replicas in [10, 1_000, 10_000, 100_000] {
        for (name, image) in [("at-rest", "web:v10"), ("new-template", "web:v11")] {
            group.bench_function(BenchmarkId::new(name, replicas), |bench| {
                let world = deployment(replicas, image);
                let rollout = dialect().rollouts(&world)[0];
                bench.iter(|| decide(dialect(), black_box(&world), rollout, now));
            });
        }
    }
    group.finish();
}

/// One pod too many, so that they are ranked.
fn pods_and_set(pods: i64) -> World {
    let set = apps::replica_set("web-1", "web:v1", pods - 1, pods).build();
    let pods_of_set = (0..pods)
        .map(|pod| apps::replica(&format!("p{pod}"), "web-1", "2025-12-31T00:00:00Z").build());
    pods_of_set.chain([set]).map(|object| parsed(&object)).collect()
}

fn replica_sets(criterion: &mut Criterion) {
    let now: Timestamp = NOW.parse().expect("an instant");
    let mut group = criterion.benchmark_group("apps/replica-set");
    group.sample_size(10);
    for pods in [10, 1_000, 10_000, 100_000] {
        group.bench_function(BenchmarkId::new("one-too-many", pods), |bench| {
            let world = pods_and_set(pods);
            let rollout = dialect().rollouts(&world)[0];
            bench.iter(|| decide(dialect(), black_box(&world), rollout, now));
        });
    }
    group.finish();
}

criterion_group!(benches, deployments, replica_sets);
criterion_main!(benches);
