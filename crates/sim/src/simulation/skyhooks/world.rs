//! What a world of Skyhooks is made of: its machines, its packages and its policies.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::scenario::Scenario;
use crate::simulation::random::Random;

/// How much there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    is_large: bool,
    /// Nodes of two pools, which are two compartments.
    nodes: [i64; 2],
}

impl Size {
    pub(super) fn random(random: &mut Random) -> Self {
        let is_large = random.happens(50);
        let (first, rest) = if is_large { (6, 4) } else { (3, 2) };
        Self { is_large, nodes: [random.between(1, first), random.between(0, rest)] }
    }

    pub(super) fn fault_phase(&self, random: &mut Random) -> SignedDuration {
        if self.is_large { random.millis(8_000, 40_000) } else { random.millis(2_000, 12_000) }
    }

    /// The machines, and what befalls them.
    pub(super) fn scenario(&self, seed: u64, random: &mut Random) -> Scenario {
        let mut events = Vec::new();
        if random.happens(300) {
            let (at, lasts) = (random.between(1, 15), random.between(5, 60));
            events.push(json!({"node": "a-0", "at": format!("{at}s"), "event": "reboot",
                "for": format!("{lasts}s")}));
        }
        if random.happens(200) {
            let at = random.between(1, 15);
            events.push(json!({"node": "a-1", "at": format!("{at}s"), "event": "vanish"}));
        }
        let pools = ["a", "b"].into_iter().zip(self.nodes).filter(|(_, count)| *count > 0);
        let pools: Vec<Value> = pools
            .map(|(name, count)| json!({"name": name, "count": count, "labels": {"pool": name}}))
            .collect();
        // Most machines have their images: containers that wait for nothing have less to tell.
        let image = if random.happens(200) { "0s..1s" } else { "0s" };
        let text = json!({
            "seed": seed,
            "nodes": pools,
            "heartbeat": "30s",
            "latencies": {"pull": image, "start": image, "init": "0s..2s", "stop": "0s..2s"},
            "rules": [
                {"when": {"image": "*/bad"}, "then": {"fails": "crash", "after": "100ms", "exitCode": 2}},
                {"when": {"image": "*/flaky"}, "then": {"fails": "crash", "after": "100ms", "times": 2}},
            ],
            "nodeEvents": events,
        });
        Scenario::from_yaml(&text.to_string()).expect("the text above is a scenario")
    }
}

/// Which packages there are, and what they ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackageSet {
    has_files: bool,
    has_driver: bool,
    interrupt: Option<&'static str>,
}

impl PackageSet {
    pub(super) fn random(random: &mut Random) -> Self {
        let (has_files, has_driver) = (random.happens(500), random.happens(400));
        let interrupts = [None, None, Some("reboot"), Some("restartAllServices"), Some("noop")];
        let interrupt = random.pick(&interrupts).copied().flatten();
        Self { has_files, has_driver, interrupt }
    }

    /// Packages of a version; the first is of a sort, and may have files of its own.
    pub(super) fn packages(&self, version: u32, files: u32, sort: &str) -> Value {
        let version = format!("1.0.{version}");
        let mut packages =
            json!({"tuning": {"version": version, "image": format!("example/{sort}")}});
        if self.has_files {
            packages["tuning"]["configMap"] = json!({"values": files.to_string()});
        }
        if self.has_driver {
            packages["driver"] = json!({"version": version, "image": "example/driver",
                "dependsOn": {"tuning": version}});
        }
        if let Some(kind) = self.interrupt {
            let last = if self.has_driver { "driver" } else { "tuning" };
            packages[last]["interrupt"] = json!({"type": kind});
        }
        packages
    }
}

pub(super) fn policy(random: &mut Random) -> Value {
    let mut compartment = || {
        let budget = if random.happens(500) {
            json!({"count": random.between(1, 3)})
        } else {
            json!({"percent": random.between(1, 100)})
        };
        let mut strategy = match random.between(0, 3) {
            0 => json!({"fixed": {"initialBatch": random.between(1, 3)}}),
            1 => json!({"linear": {"initialBatch": 1, "delta": random.between(1, 2)}}),
            _ => json!({"exponential": {"initialBatch": 1}}),
        };
        if random.happens(200) {
            let terms = strategy.as_object_mut().into_iter().flatten();
            terms.for_each(|(_, terms)| terms["failureThreshold"] = json!(1));
        }
        json!({"budget": budget, "strategy": strategy})
    };
    let (mut first, default) = (compartment(), compartment());
    first["name"] = json!("first");
    first["selector"] = json!({"matchLabels": {"pool": "a"}});
    let mut spec = json!({"default": default, "compartments": [first]});
    if random.happens(300) {
        spec["resetBatchStateOnCompletion"] = json!(false);
    }
    json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "DeploymentPolicy",
        "metadata": {"name": "policy"}, "spec": spec})
}
