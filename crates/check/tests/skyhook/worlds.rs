//! Random fleets of nodes, their policy and their Skyhooks.

use convoy_api::Object;
use convoy_plan::World;
use convoy_testkit::{node, object};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A fleet, its policy, its Skyhooks and what goes wrong, drawn at random.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Pool, taint and ignore label of each node.
    pub(crate) nodes: Vec<(u8, bool, bool)>,
    /// Strategy, budget and thresholds of each compartment; none: a legacy budget.
    pub(crate) compartments: Vec<(u8, u8, u8)>,
    /// Priority and packages of each Skyhook; a package is its kind.
    pub(crate) skyhooks: Vec<(u8, Vec<u8>)>,
    /// Nodes of which one in so many fails, and whether for good.
    pub(crate) failures: (u8, bool),
    pub(crate) seed: u64,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let nodes = prop::collection::vec(
        (0..4u8, prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
        1..12,
    );
    let compartments = prop::collection::vec((0..4u8, 1..101u8, 0..4u8), 0..4);
    let skyhooks = prop::collection::vec((1..3u8, prop::collection::vec(0..6u8, 0..4)), 1..3);
    let failures = (2..8u8, any::<bool>());
    (nodes, compartments, skyhooks, failures, any::<u64>()).prop_map(
        |(nodes, compartments, skyhooks, failures, seed)| Case {
            nodes,
            compartments,
            skyhooks,
            failures,
            seed,
        },
    )
}

pub(crate) fn strategy(kind: u8, threshold: u8) -> Value {
    let failures = (threshold > 0).then_some(threshold);
    match kind {
        0 => json!({"fixed": {"initialBatch": 2, "failureThreshold": failures}}),
        1 => json!({"linear": {"delta": 2, "failureThreshold": failures, "safetyLimit": 80}}),
        2 => json!({"exponential": {"failureThreshold": failures, "batchThreshold": 60}}),
        _ => Value::Null,
    }
}

/// The policy, if the case has one. The first compartment gives the default.
pub(crate) fn policy(case: &Case) -> Option<Object> {
    let terms = |(kind, budget, threshold): &(u8, u8, u8)| {
        let budget = if budget % 2 == 0 {
            json!({"percent": budget})
        } else {
            json!({"count": budget % 5 + 1})
        };
        let mut terms = json!({"budget": budget});
        let strategy = strategy(*kind, *threshold);
        if !strategy.is_null() {
            terms["strategy"] = strategy;
        }
        terms
    };
    let default = terms(case.compartments.first()?);
    let compartments: Vec<Value> = case.compartments[1..]
        .iter()
        .enumerate()
        .map(|(pool, compartment)| {
            let mut body = terms(compartment);
            body["name"] = json!(format!("pool-{pool}"));
            body["selector"] = json!({"matchLabels": {"pool": pool.to_string()}});
            body
        })
        .collect();
    let spec = json!({"default": default, "compartments": compartments});
    let progress = if case.seed.is_multiple_of(3) { "completed" } else { "processed" };
    let policy = object("skyhook.nvidia.com/v1alpha1", "DeploymentPolicy", "policy").spec(spec);
    Some(policy.annotation("convoy.dev/safety-progress", progress).build())
}

/// Packages by letter, each kind with what makes it special; later ones depend on the first.
pub(crate) fn packages(kinds: &[u8], version: &str) -> Value {
    let mut packages = serde_json::Map::new();
    for (index, kind) in kinds.iter().enumerate() {
        let name = format!("p{}", char::from(b'a' + u8::try_from(index).expect("a few packages")));
        let mut body = json!({"version": version, "image": format!("example/{name}")});
        match kind {
            1 => body["interrupt"] = json!({"type": "reboot"}),
            2 => body["interrupt"] = json!({"type": "service", "services": [name]}),
            3 => {
                body["configMap"] = json!({"a.conf": version, "b.conf": "1"});
                body["configInterrupts"] = json!({"a.*": {"type": "noop"}});
            }
            4 if index > 0 => body["dependsOn"] = json!({"pa": version}),
            5 => body["env"] = json!([{"name": "MODE", "value": "x"}]),
            _ => {}
        }
        packages.insert(name, body);
    }
    Value::Object(packages)
}

pub(crate) fn world(case: &Case) -> World {
    let mut world = World::new();
    for (index, (pool, tainted, ignored)) in case.nodes.iter().enumerate() {
        let name = format!("n{index:02}");
        let mut builder = node(&name)
            .label("pool", &pool.to_string())
            .created_at(&format!("2025-12-{:02}T00:00:00Z", 28 - index))
            .with("/status/nodeInfo/bootID", json!("first"));
        if *tainted {
            let taint = json!([{"key": "broken", "effect": "NoSchedule"}]);
            builder = builder.with("/spec/taints", taint);
        }
        if *ignored {
            builder = builder.label("skyhook.nvidia.com/ignore", "true");
        }
        world.insert(builder.build());
        let workload = object("v1", "Pod", &format!("web-{index}"))
            .namespace("shop")
            .label("app", "web")
            .spec(json!({"nodeName": name}))
            .status(json!({"phase": "Running"}));
        world.insert(workload.build());
    }
    let budget = object("policy/v1", "PodDisruptionBudget", "web")
        .namespace("shop")
        .spec(json!({"selector": {"matchLabels": {"app": "web"}}}))
        .status(json!({"disruptionsAllowed": 1}));
    world.insert(budget.build());
    let policy = policy(case);
    for (index, (priority, kinds)) in case.skyhooks.iter().enumerate() {
        let mut spec = json!({"priority": priority, "packages": packages(kinds, "1.0.0")});
        if policy.is_some() {
            spec["deploymentPolicy"] = json!("policy");
        } else {
            spec["interruptionBudget"] = json!({"count": case.seed % 4});
        }
        let name = format!("s{index}");
        world.insert(object("skyhook.nvidia.com/v1alpha1", "Skyhook", &name).spec(spec).build());
    }
    if let Some(policy) = policy {
        world.insert(policy);
    }
    world
}
