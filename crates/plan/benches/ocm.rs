//! Snapshot and step of a placement and of a replica set, from a world that is there already.

use std::hint::black_box;

use convoy_api::Object;
use convoy_api::ocm::names::{MANIFEST_WORK_REPLICA_SET, PLACEMENT};
use convoy_plan::dialect::ocm::Ocm;
use convoy_plan::{Dialect, Step, World, Write};
use convoy_testkit::ocm::{
    NAMESPACE, bound_set, condition, managed_cluster, placement, replica_set, template,
};
use convoy_testkit::{Builder, NOW, object, parsed};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // as the binary has it

/// Clusters in named rings and groups of 150, a third of them rolled out.
fn world(clusters: usize) -> World {
    let mut world: World = bound_set().map(Builder::build).into_iter().collect();
    let spec = json!({
        "predicates": [{"requiredClusterSelector": {"labelSelector": {"matchExpressions":
            [{"key": "env", "operator": "In", "values": ["prod", "stage"]}]}}}],
        "tolerations": [{"key": "slow", "operator": "Exists"}],
        "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 150, "decisionGroups": [
            {"groupName": "canary", "groupClusterSelector":
                {"labelSelector": {"matchLabels": {"ring": "canary"}}}}]}}});
    world.insert(placement("everywhere", spec).build());
    let references = json!([{"name": "everywhere", "rolloutStrategy": {"type": "Progressive",
        "progressive": {"maxConcurrency": "10%", "maxFailures": "5%", "progressDeadline": "10m"}}}]);
    world.insert(replica_set("web", "v2", &references).build());
    for index in 0..clusters {
        world.insert(member(index));
        world.insert(work(index, if index.is_multiple_of(3) { "v2" } else { "v1" }));
    }
    decide(world).iter().map(parsed).collect()
}

fn member(index: usize) -> Object {
    managed_cluster(&format!("cluster-{index:06}"))
        .label("env", if index.is_multiple_of(2) { "prod" } else { "stage" })
        .label("ring", if index.is_multiple_of(50) { "canary" } else { "main" })
        .with("/spec/taints", json!([{"key": "slow", "effect": "NoSelect"}]))
        .with("/status/clusterClaims", json!([{"name": "region", "value": "eu"}]))
        .build()
}

fn work(index: usize, version: &str) -> Object {
    object("work.open-cluster-management.io/v1", "ManifestWork", "web")
        .namespace(&format!("cluster-{index:06}"))
        .label(
            "work.open-cluster-management.io/manifestworkreplicaset",
            &format!("{NAMESPACE}.web"),
        )
        .label("work.open-cluster-management.io/placementname", "everywhere")
        .spec(template(version))
        .status(json!({"conditions": [
            condition("Applied", "True", 1, "2025-12-31T00:00:00Z"),
            condition("Available", "True", 1, "2025-12-31T00:00:00Z")]}))
        .build()
}

/// Writes the placement's decisions into the world.
fn decide(mut world: World) -> World {
    let rollout = world.find(&PLACEMENT, NAMESPACE, "everywhere").expect("made above").clone();
    let step = decision(&world, &rollout);
    let mut status: Option<Value> = None;
    for action in step.actions {
        let written = match action.write {
            Write::Create { object } => object,
            Write::Patch { patch, .. } => {
                let Some(found) = world.get(&action.target) else { continue };
                let mut raw = found.raw().clone();
                raw["status"] = patch["status"].clone();
                raw
            }
            _ => continue,
        };
        status = status.or(step.status.clone());
        world.insert(Object::from_value(written).expect("a whole object"));
    }
    let mut raw = rollout.raw().clone();
    raw["status"] = status.unwrap_or_default();
    world.insert(rollout.with_raw(raw));
    world
}

fn decision(world: &World, rollout: &Object) -> Step {
    let now: Timestamp = NOW.parse().expect("an instant");
    Ocm.step(&Ocm.snapshot(world, rollout), now)
}

fn steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ocm");
    group.sample_size(10);
    for clusters in [10, 1_000, 10_000, 100_000] {
        for (label, kind, name) in [
            ("placement", PLACEMENT, "everywhere"),
            ("replica set", MANIFEST_WORK_REPLICA_SET, "web"),
        ] {
            group.bench_function(BenchmarkId::new(label, clusters), |bencher| {
                let world = world(clusters);
                let rollout = world.find(&kind, NAMESPACE, name).expect("made above");
                bencher.iter(|| black_box(decision(&world, rollout)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
