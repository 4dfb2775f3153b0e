//! A placement in the middle of a rolling update, and a staged run in its first stage: snapshot
//! and step from a world that is there already, and whole plans from objects that are merely
//! parsed (`cold`).

use convoy_api::Object;
use convoy_plan::dialect::fleet::Fleet;
use convoy_plan::dialect::fleet::names::Family;
use convoy_plan::{Dialect, World, Write, plan};
use convoy_testkit::{NOW, fleet, object, parsed};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // as the binary has it

const MEMBERS: [usize; 4] = [10, 1_000, 10_000, 100_000];

/// Every second cluster has the newest resources; one in a hundred does not work.
fn binding(at: usize) -> Object {
    let snapshot = if at.is_multiple_of(2) { "web-1-snapshot" } else { "web-0-snapshot" };
    let (status, reason) = match at % 100 {
        99 => ("False", "NotAllWorkAreAvailable"),
        _ => ("True", "AllWorkAreAvailable"),
    };
    let conditions = json!([
        fleet::condition("RolloutStarted", "True", "RolloutStarted", 1, NOW),
        fleet::condition("Applied", "True", "AllWorkHaveBeenApplied", 1, NOW),
        fleet::condition("Available", status, reason, 1, NOW),
    ]);
    fleet::binding("web", &format!("c{at:06}"), "Bound", snapshot)
        .status(json!({"conditions": conditions}))
        .build()
}

fn policy() -> Object {
    let scheduled = fleet::condition("Scheduled", "True", "SchedulingPolicyFulfilled", 1, NOW);
    let api_version = "placement.kubernetes-fleet.io/v1beta1";
    object(api_version, "ClusterSchedulingPolicySnapshot", "web-0")
        .label("kubernetes-fleet.io/parent-CRP", "web")
        .label("kubernetes-fleet.io/is-latest-snapshot", "true")
        .label("kubernetes-fleet.io/policy-index", "0")
        .annotation("kubernetes-fleet.io/CRP-generation", "1")
        .spec(json!({"policy": {"placementType": "PickAll"}}))
        .status(json!({"observedCRPGeneration": 1, "conditions": [scheduled]}))
        .build()
}

fn world(members: usize, strategy: &Value) -> World {
    let resource = |version: &str| {
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "shop", "labels": {"version": version}}})
    };
    let placement = fleet::placement("web", json!({"placementType": "PickAll"}))
        .with("/spec/strategy", strategy.clone());
    let mut world: World = (0..members).map(binding).collect();
    for at in 0..members {
        let ring = if at < members / 10 { "canary" } else { "prod" };
        world.insert(fleet::member(&format!("c{at:06}"), NOW).label("ring", ring).build());
    }
    world.insert(object("v1", "Namespace", "shop").label("version", "2").build());
    world.insert(placement.build());
    world.insert(policy());
    world.insert(fleet::resource_snapshot("web", 0, false, &[resource("1")]).build());
    world.insert(fleet::resource_snapshot("web", 1, true, &[resource("2")]).build());
    reported(world).iter().map(parsed).collect()
}

/// The world with the statuses of placement and policy as the engine itself writes them; it
/// takes two passes, for the one is made from the other.
fn reported(mut world: World) -> World {
    for _ in 0..2 {
        let rollout = placement_of(&world).clone();
        let step = Fleet.step(&Fleet.snapshot(&world, &rollout), now());
        let written = step.actions.into_iter().find(|it| it.target == *policy().key());
        if let Some(Write::Patch { patch, .. }) = written.map(|action| action.write) {
            world.insert(with_status(&policy(), patch["status"].clone()));
        }
        if let Some(status) = step.status {
            world.insert(with_status(&rollout, status));
        }
    }
    world
}

fn with_status(object: &Object, status: Value) -> Object {
    let mut raw = object.raw().clone();
    raw["status"] = status;
    object.with_raw(raw)
}

fn placement_of(world: &World) -> &Object {
    world.find(&Family::Cluster.placement(), "", "web").expect("made above")
}

fn now() -> Timestamp {
    NOW.parse().expect("a fixed instant")
}

fn steps(c: &mut Criterion, name: &str, kind: &str, world: impl Fn(usize) -> World) {
    let mut group = c.benchmark_group(name);
    group.sample_size(10);
    for members in MEMBERS {
        group.bench_function(BenchmarkId::from_parameter(members), |bencher| {
            let world = world(members);
            let rollouts = Fleet.rollouts(&world);
            let rollout = rollouts.into_iter().find(|rollout| rollout.kind().kind == kind);
            let rollout = rollout.expect("the world has one");
            bencher.iter(|| Fleet.step(&Fleet.snapshot(&world, rollout), now()));
        });
        group.bench_function(BenchmarkId::new("cold", members), |bencher| {
            let objects: Vec<Object> = world(members).iter().cloned().collect();
            bencher.iter_batched(
                || objects.clone(),
                |objects| plan(&objects.into_iter().collect(), now()),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn rolling(c: &mut Criterion) {
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}});
    steps(c, "fleet/rolling", "ClusterResourcePlacement", |members| world(members, &strategy));
}

fn staged(c: &mut Criterion) {
    let stages = json!([
        {"name": "canary", "labelSelector": {"matchLabels": {"ring": "canary"}},
         "maxConcurrency": "10%"},
        {"name": "prod", "labelSelector": {"matchLabels": {"ring": "prod"}},
         "maxConcurrency": "20%"}]);
    steps(c, "fleet/staged", "ClusterStagedUpdateRun", |members| {
        let mut world = world(members, &json!({"type": "External"}));
        world.insert(fleet::strategy("rings", stages.clone()).build());
        world.insert(fleet::run("one", "web", "rings", "1").build());
        world
    });
}

criterion_group!(benches, rolling, staged);
criterion_main!(benches);
