//! DaemonSets, StatefulSets and Jobs with a small kubelet beside them.

use convoy_api::apps::POD;
use convoy_api::{Object, ObjectKey};
use convoy_check::Applier;
use convoy_plan::dialect::workloads::Workloads;
use convoy_plan::{Dialect, Step, Verdict, World};
use convoy_testkit::{Builder, NOW, apps, node, object};
use jiff::ToSpan;
use serde_json::{Value, json};

/// The rollout with what is around it.
pub(crate) struct Scene {
    pub(crate) applier: Applier,
    pub(crate) dialect: &'static Workloads,
    pub(crate) key: ObjectKey,
    pub(crate) luck: u64,
    /// Jobs: what containers end with; none: they run on.
    pub(crate) ends: fn(u64) -> Option<&'static str>,
}

impl Scene {
    pub(crate) fn new(
        dialect: &'static Workloads,
        rollout: Builder,
        nodes: usize,
        luck: u64,
    ) -> Self {
        let rollout = rollout.build();
        let key = rollout.key().clone();
        let nodes = (0..nodes).map(|at| node(&format!("n{at}")).build());
        let world: World = nodes.chain([rollout]).collect();
        let applier = Applier::new(world, NOW.parse().expect("a constant"));
        Self { applier, dialect, key, luck, ends: |_| None }
    }

    fn roll(&mut self) -> u64 {
        self.luck = self.luck.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        self.luck >> 32
    }

    pub(crate) fn decide(&self) -> Step {
        let world = self.applier.world();
        let rollout = world.get(&self.key).expect("the rollout stays");
        self.dialect.step(&self.dialect.snapshot(world, rollout), self.applier.now())
    }

    pub(crate) fn pods(&self) -> Vec<Object> {
        self.applier.world().of(&POD).cloned().collect()
    }

    pub(crate) fn owner(&self) -> Object {
        self.applier.world().get(&self.key).expect("the rollout stays").clone()
    }

    /// What kubelets do in one round, for pods that are lucky.
    fn kubelets_move(&mut self) {
        for pod in self.pods() {
            if self.roll().is_multiple_of(3) {
                continue;
            }
            let key = pod.key().clone();
            if pod.is_deleting() {
                let held =
                    pod.metadata()["finalizers"].as_array().is_some_and(|all| !all.is_empty());
                if held {
                    continue;
                }
                self.applier.remove(&key);
                continue;
            }
            let (now, ends) = (self.applier.now().to_string(), (self.ends)(self.roll()));
            let node = pod.spec().pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0").cloned();
            if pod.status_text("phase") == "Running" {
                if let Some(phase) = ends {
                    self.applier.edit(&key, |raw| {
                        raw["status"] = json!({"phase": phase, "containerStatuses": [
                            {"state": {"terminated": {"finishedAt": now}}}]});
                    });
                }
                continue;
            }
            if ["Succeeded", "Failed"].contains(&pod.status_text("phase")) {
                continue;
            }
            self.applier.edit(&key, |raw| {
                raw["spec"]["nodeName"] = node.unwrap_or_else(|| json!("n0"));
                raw["status"] = json!({"phase": "Running", "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": now}]});
            });
        }
    }

    /// Decides, applies and lets kubelets move until nothing happens any more.
    pub(crate) fn settle(&mut self, check: impl Fn(&Self)) -> Step {
        let mut quiet = 0;
        for _ in 0..2_000 {
            let step = self.decide();
            for group in &step.groups {
                assert!(group.is_partition(), "{group:?}");
            }
            let idle = step.actions.is_empty() && step.status.is_none();
            let explained = step.verdict == Verdict::Done || !step.holds.is_empty();
            assert!(
                !idle || explained || step.groups[0].moving + step.groups[0].gone > 0,
                "{step:?}"
            );
            self.applier.apply(&step).expect("nobody else writes");
            check(self);
            let later = self.applier.now().checked_add(7.seconds()).expect("not yet the end");
            self.applier.advance_to(later);
            let before = self.pods();
            self.kubelets_move();
            check(self);
            quiet = if idle && before == self.pods() { quiet + 1 } else { 0 };
            if quiet > 8 && step.wake_at.is_none() && step.verdict != Verdict::Moving {
                return step;
            }
        }
        panic!("it does not come to rest: {:?}", self.decide());
    }
}

pub(crate) fn daemon_set(strategy: &Value) -> Builder {
    object("apps/v1", "DaemonSet", "web").namespace("shop").spec(json!({
        "selector": {"matchLabels": {"app": "web"}}, "template": apps::template("web:v1"),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": strategy}}))
}

pub(crate) fn stateful_set(replicas: i64, policy: &str) -> Builder {
    object("apps/v1", "StatefulSet", "web").namespace("shop").spec(json!({
        "replicas": replicas, "serviceName": "web", "podManagementPolicy": policy,
        "selector": {"matchLabels": {"app": "web"}}, "template": apps::template("web:v1"),
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}))
}

pub(crate) fn job(completions: i64, parallelism: i64, mode: &str) -> Builder {
    object("batch/v1", "Job", "work").namespace("shop").spec(json!({
        "completions": completions, "parallelism": parallelism, "completionMode": mode,
        "backoffLimit": 1000, "selector": {"matchLabels": {"app": "web"}},
        "template": apps::template("web:v1")}))
}

pub(crate) fn set_image(scene: &mut Scene, image: &str) {
    let image = json!(image);
    let key = scene.key.clone();
    scene.applier.edit(&key, |raw| {
        raw["spec"]["template"]["spec"]["containers"][0]["image"] = image;
        raw["metadata"]["generation"] =
            json!(raw["metadata"]["generation"].as_i64().unwrap_or(1) + 1);
    });
}
