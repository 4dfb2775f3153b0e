//! One decision about a Skyhook, snapshot and step, from a world that is there already, and
//! whole plans from objects that are merely parsed (`cold`): fleets of 10 to 100,000 nodes in
//! 20 compartments, never seen before and halfway through.

use convoy_api::Object;
use convoy_plan::dialect::Dialect;
use convoy_plan::dialect::skyhook::Skyhook;
use convoy_plan::{Step, World, plan};
use convoy_testkit::{Builder, NOW, node, object, parsed};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // as the binary has it

const COMPARTMENTS: u32 = 20;
const NODES: [u32; 4] = [10, 1_000, 10_000, 100_000];
const VERSION: &str = "skyhook.nvidia.com/v1alpha1";

/// Each compartment has a label of its own, so that every selector asks another question.
fn policy() -> Builder {
    let compartment = |number: u32| {
        let strategy = match number % 3 {
            0 => json!({"fixed": {"initialBatch": 5}}),
            1 => json!({"linear": {"delta": 2}}),
            _ => json!({"exponential": {}}),
        };
        json!({"name": format!("pool-{number}"), "budget": {"percent": 10}, "strategy": strategy,
            "selector": {"matchLabels": {"pool": number.to_string()},
                "matchExpressions": [{"key": format!("not-{number}"), "operator": "DoesNotExist"}]}})
    };
    let compartments: Vec<Value> = (0..COMPARTMENTS).map(compartment).collect();
    object(VERSION, "DeploymentPolicy", "policy")
        .spec(json!({"default": {"budget": {"count": 1}}, "compartments": compartments}))
}

fn skyhook() -> Builder {
    object(VERSION, "Skyhook", "roll").spec(json!({"deploymentPolicy": "policy", "packages": {
        "driver": {"version": "2.0.0", "image": "example/driver", "interrupt": {"type": "reboot"}},
        "tuning": {"version": "1.0.0", "image": "example/tuning", "dependsOn": {"driver": "2.0.0"}},
    }}))
}

/// A node as clusters have them, with the usual conditions and labels.
fn worker(index: u32) -> Builder {
    let conditions: Vec<Value> = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
        .iter()
        .map(|kind| json!({"type": kind, "status": "False", "reason": "KubeletHas"}))
        .collect();
    node(&format!("worker-{index:06}"))
        .label("pool", &(index % COMPARTMENTS).to_string())
        .label("kubernetes.io/os", "linux")
        .label("topology.kubernetes.io/zone", "a")
        .with("/status/conditions", json!(conditions))
}

/// A fleet that no Skyhook has looked at.
fn untouched(nodes: u32) -> Vec<Object> {
    let workers = (0..nodes).map(worker);
    let all = workers.chain([policy(), skyhook()]).map(Builder::build);
    all.map(|object| parsed(&object)).collect()
}

/// A fleet of which every second node is complete and the others wait on the old version, as
/// the engine itself records it.
fn halfway(nodes: u32) -> Vec<Object> {
    let entry = |name: &str, version: &str, stage: &str| {
        format!(
            r#""{name}|{version}":{{"name":"{name}","version":"{version}","image":"example/{name}","stage":"{stage}","state":"complete"}}"#
        )
    };
    let (driver, old) =
        (entry("driver", "2.0.0", "post-interrupt"), entry("driver", "1.0.0", "post-interrupt"));
    let tuning = entry("tuning", "1.0.0", "config");
    let mut objects = untouched(0);
    for index in 0..nodes {
        let complete = (index / COMPARTMENTS).is_multiple_of(2);
        let (word, state) = if complete {
            ("complete", format!("{{{driver},{tuning}}}"))
        } else {
            ("waiting", format!("{{{old},{tuning}}}"))
        };
        let recorded = worker(index)
            .label("skyhook.nvidia.com/status_roll", word)
            .annotation("skyhook.nvidia.com/status_roll", word)
            .annotation("skyhook.nvidia.com/version_roll", "v0.13.0")
            .annotation("skyhook.nvidia.com/nodeState_roll", &state);
        objects.push(parsed(&recorded.build()));
    }
    objects
}

fn decide(world: &World, now: Timestamp) -> Step {
    let dialect = Skyhook::new();
    let rollout = dialect.rollouts(world)[0];
    dialect.step(&dialect.snapshot(world, rollout), now)
}

fn bench(criterion: &mut Criterion) {
    let now: Timestamp = NOW.parse().expect("a constant of the test kit");
    for (name, make) in [("untouched", untouched as fn(u32) -> Vec<Object>), ("halfway", halfway)] {
        let mut group = criterion.benchmark_group(format!("skyhook/{name}"));
        group.sample_size(10);
        for nodes in NODES {
            group.bench_function(BenchmarkId::from_parameter(nodes), |bencher| {
                let world: World = make(nodes).into_iter().collect();
                bencher.iter(|| decide(&world, now));
            });
            group.bench_function(BenchmarkId::new("cold", nodes), |bencher| {
                let objects = make(nodes);
                bencher.iter_batched(
                    || objects.clone(),
                    |objects| plan(&objects.into_iter().collect(), now),
                    BatchSize::PerIteration,
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
