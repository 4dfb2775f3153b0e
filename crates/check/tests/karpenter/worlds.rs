//! Random pools of nodes in the middle of anything, and the provider of their machines.

use convoy_api::Object;
use convoy_api::karpenter::names::NODE_CLAIM;
use convoy_check::Applier;
use convoy_plan::World;
use convoy_testkit::karpenter;
use proptest::prelude::*;
use serde_json::{Value, json};

pub(crate) fn with_condition(claim: &Object, condition: Value) -> Object {
    let mut raw = claim.raw().clone();
    raw["status"]["conditions"].as_array_mut().expect("claims have conditions").push(condition);
    claim.with_raw(raw)
}

/// A claim whose hash is of an earlier template.
pub(crate) fn outdated(pool: &str, name: &str) -> [Object; 2] {
    let claim = karpenter::claim(pool, name).annotation("karpenter.sh/nodepool-hash", "1").build();
    [claim, karpenter::node_of(pool, name).build()]
}

/// One node in the middle of anything.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn on its own")]
pub(crate) struct Found {
    pub(crate) drifted: bool,
    pub(crate) ready: bool,
    pub(crate) initialized: bool,
    pub(crate) deleting: bool,
    pub(crate) disrupting: bool,
    pub(crate) tainted: bool,
    pub(crate) protected: bool,
    pub(crate) pods: u8,
    pub(crate) pool: u8,
}

pub(crate) fn found() -> impl Strategy<Value = Found> {
    let rarely = || prop::bool::weighted(0.15);
    let flags = (
        any::<bool>(),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.9),
        rarely(),
        rarely(),
        rarely(),
        rarely(),
    );
    (flags, 0..3u8, 0..2u8).prop_map(
        |((drifted, ready, initialized, deleting, disrupting, tainted, protected), pods, pool)| {
            Found {
                drifted,
                ready,
                initialized,
                deleting,
                disrupting,
                tainted,
                protected,
                pods,
                pool,
            }
        },
    )
}

pub(crate) fn budget() -> impl Strategy<Value = Value> {
    let nodes = prop_oneof![
        (0..6u32).prop_map(|count| count.to_string()),
        (0..=100u32).prop_map(|percent| format!("{percent}%")),
    ];
    let reasons = prop::sample::subsequence(vec!["Empty", "Drifted", "Underutilized"], 0..=3);
    let window = prop::option::of(prop::sample::select(vec![
        ("0 0 * * *", "1h"),
        ("30 23 * * *", "1h"),
        ("@hourly", "10m"),
        ("0 12 * * *", "2h"),
        ("0 0 30 2 *", "1h"),
        ("0 0 * * sat-sun", "1h"),
    ]));
    (nodes, reasons, window).prop_map(|(nodes, reasons, window)| {
        let mut budget = json!({"nodes": nodes});
        if !reasons.is_empty() {
            budget["reasons"] = json!(reasons);
        }
        if let Some((schedule, duration)) = window {
            budget["schedule"] = json!(schedule);
            budget["duration"] = json!(duration);
        }
        budget
    })
}

pub(crate) fn world_of(nodes: &[Found], budgets: &[Value], after: &str) -> World {
    let mut world = World::new();
    for pool in ["a", "b"] {
        let disruption = json!({"consolidateAfter": after, "budgets": budgets});
        world.insert(karpenter::pool(pool, &disruption).build());
    }
    for (at, found) in nodes.iter().enumerate() {
        let (name, pool) = (format!("n{at:02}"), if found.pool == 0 { "a" } else { "b" });
        let [mut claim, node] =
            if found.drifted { outdated(pool, &name) } else { karpenter::pair(pool, &name) };
        if found.disrupting {
            let reason = json!({"type": "DisruptionReason", "status": "True", "reason": "Drifted",
                "message": "Drifted", "lastTransitionTime": "2025-12-31T23:59:00Z"});
            claim = with_condition(&claim, reason);
        }
        let mut raw = node.raw().clone();
        if !found.ready {
            raw["status"]["conditions"][0]["status"] = json!("Unknown");
        }
        if !found.initialized {
            raw["metadata"]["labels"]["karpenter.sh/initialized"] = json!("false");
        }
        if found.tainted {
            raw["spec"]["taints"] = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}, {"key": "x", "effect": "NoSchedule"}]);
        }
        if found.protected {
            raw["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        }
        let mut claim_raw = claim.raw().clone();
        if found.deleting {
            claim_raw["metadata"]["deletionTimestamp"] = json!("2025-12-31T23:58:00Z");
        }
        world.insert(claim.with_raw(claim_raw));
        world.insert(node.with_raw(raw));
        for pod in 0..found.pods {
            world.insert(karpenter::pod(&format!("p{at}-{pod}"), &name, "900m").build());
        }
    }
    world
}

/// What a provider and kubelets do: machines come up, and go down when asked.
pub(crate) fn provider(applier: &mut Applier) -> bool {
    let claims: Vec<Object> = applier.world().of(&NODE_CLAIM).cloned().collect();
    let mut changed = false;
    for claim in claims {
        let terminates = claim.condition_status("InstanceTerminating") == Some("True");
        if terminates && claim.annotation("convoy.dev/instance-state").is_none() {
            applier.edit(claim.key(), |raw| {
                raw["metadata"]["annotations"]["convoy.dev/instance-state"] = json!("Terminated");
            });
            changed = true;
        }
        if claim.status().is_null() && !claim.is_deleting() {
            let pool =
                claim.label("karpenter.sh/nodepool").expect("claims name their pool").to_owned();
            let model = karpenter::claim(&pool, claim.name()).json();
            applier.edit(claim.key(), |raw| raw["status"] = model["status"].clone());
            applier.insert(karpenter::node_of(&pool, claim.name()).build());
            changed = true;
        }
    }
    changed
}
