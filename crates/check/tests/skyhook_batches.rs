//! A batch is scored by its own nodes, whatever else completes, fails, recovers, joins, leaves or is
//! reset between any two writes: batches of an exponential policy double from one, and a new run
//! begins at one.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

use std::collections::BTreeSet;

use convoy_api::kinds::NODE;
use convoy_api::kinds::POD;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::{Applier, check};
use convoy_plan::World;
use convoy_plan::dialect::skyhook::manual;
use convoy_testkit::{Builder, NOW, node, object};
use serde_json::{Value, json};

const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");
const POLICY: GroupKind = GroupKind::new("skyhook.nvidia.com", "DeploymentPolicy");

/// A fleet with one Skyhook, and the sizes of the batches that it started.
struct Fleet {
    applier: Applier,
    failing: BTreeSet<String>,
    batches: Vec<usize>,
}

fn policy(strategy: &Value) -> Object {
    object("skyhook.nvidia.com/v1alpha1", "DeploymentPolicy", "p")
        .spec(json!({"default": {"budget": {"percent": 100}, "strategy": strategy}}))
        .build()
}

fn machine(number: usize) -> Object {
    node(&format!("n{number:02}")).with("/metadata/creationTimestamp", json!(NOW)).build()
}

fn exponential() -> Value {
    json!({"exponential": {}})
}

impl Fleet {
    fn new(nodes: usize, strategy: &Value) -> Self {
        let skyhook = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s").spec(
            json!({"deploymentPolicy": "p", "packages": {"pa": {"version": "1.0.0", "image": "x"}}}),
        );
        let objects = [policy(strategy), Builder::build(skyhook)];
        let world: World = objects.into_iter().chain((0..nodes).map(machine)).collect();
        let applier = Applier::new(world, NOW.parse().unwrap());
        Self { applier, failing: BTreeSet::new(), batches: Vec::new() }
    }

    /// The state is kept when the rollout completes.
    fn kept(mut self) -> Self {
        self.edit(&SKYHOOK, "s", |raw| {
            raw["spec"]["deploymentPolicyOptions"] = json!({"resetBatchStateOnCompletion": false});
        });
        self
    }

    /// Nodes on which every package fails from now on.
    fn failing(mut self, nodes: &[&str]) -> Self {
        self.failing = nodes.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    fn edit(&mut self, kind: &GroupKind, name: &str, change: impl FnOnce(&mut Value)) {
        self.applier.edit(&kind.key("", name), change);
    }

    fn version(&mut self, version: &str) {
        self.edit(&SKYHOOK, "s", |raw| raw["spec"]["packages"]["pa"]["version"] = json!(version));
    }

    fn skyhook(&self) -> Object {
        self.applier.world().get(&SKYHOOK.key("", "s")).unwrap().clone()
    }

    fn batch(&self, compartment: &str) -> Value {
        self.skyhook().status()["compartmentStatuses"][compartment]["batchState"].clone()
    }

    /// One pass of the control loop, of which only the first writes are made, and one of every
    /// kubelet; whether anything changed.
    fn cut(&mut self, writes: usize) -> bool {
        let plan = convoy_plan::plan(self.applier.world(), self.applier.now());
        assert_eq!(check(self.applier.world(), &plan), []);
        let mut step = plan.steps[0].clone();
        let starts = step.decision["start"].as_array().unwrap().len();
        if starts > 0 {
            self.batches.push(starts);
        }
        let quiet = step.is_quiet();
        if writes < step.actions.len() {
            step.actions.truncate(writes);
            step.status = None;
        }
        // A pod of the same name may still be there: a refusal ends a real step as well.
        drop(self.applier.apply(&step));
        self.run_pods() || !quiet
    }

    fn pass(&mut self) -> bool {
        self.cut(usize::MAX)
    }

    fn rest(&mut self) -> &mut Self {
        for _ in 0..300 {
            if !self.pass() {
                return self;
            }
        }
        panic!("it never rests: {}", self.skyhook().status());
    }

    /// Rests, and the batches since the last time.
    fn batches(&mut self) -> Vec<usize> {
        self.rest();
        std::mem::take(&mut self.batches)
    }

    fn run_pods(&mut self) -> bool {
        let pods: Vec<Object> = self.applier.world().of(&POD).cloned().collect();
        let mut changed = false;
        for pod in pods {
            let steps = pod.spec()["initContainers"].as_array().unwrap().len();
            let node = pod.spec()["nodeName"].as_str().unwrap();
            let report = if self.failing.contains(node) {
                json!([{"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 1}])
            } else {
                json!(vec![json!({"state": {"terminated": {"exitCode": 0}}}); steps])
            };
            if pod.status().get("initContainerStatuses") != Some(&report) {
                changed = true;
                self.applier.edit(pod.key(), |raw| {
                    raw["status"]["initContainerStatuses"] = report;
                });
            }
        }
        changed
    }

    fn merge(&mut self, key: &ObjectKey, patch: Option<Value>) {
        let Some(patch) = patch else { return };
        self.applier.edit(key, |raw| json_patch::merge(raw, &patch));
    }

    /// `kubectl skyhook deployment-policy reset`.
    fn reset_batches(&mut self) {
        let patch = manual::reset_batches(&self.skyhook());
        self.merge(&SKYHOOK.key("", "s"), patch);
    }

    /// `kubectl skyhook reset`, with as many passes of the control loop after each write.
    fn reset(&mut self, keeps_batches: bool, passes: usize) {
        let patch = manual::forget_picks(&self.skyhook(), keeps_batches);
        self.merge(&SKYHOOK.key("", "s"), patch);
        let nodes: Vec<ObjectKey> =
            self.applier.world().of(&NODE).map(|node| node.key().clone()).collect();
        for node in nodes {
            (0..passes).for_each(|_| _ = self.pass());
            let patch = manual::forget(self.applier.world().get(&node).unwrap(), "s");
            self.merge(&node, patch);
        }
    }
}

#[test]
fn a_reset_of_complete_nodes_starts_from_batch_one_whoever_reads_between_its_writes() {
    let mut fleet = Fleet::new(51, &exponential());
    assert_eq!(fleet.batches(), [1, 2, 4, 8, 16, 20]);
    fleet.reset(false, 0);
    assert_eq!(fleet.batches(), [1, 2, 4, 8, 16, 20]);
    for passes in [1, 3] {
        let mut fleet = Fleet::new(12, &exponential());
        assert_eq!(fleet.batches(), [1, 2, 4, 5]);
        fleet.reset(false, passes);
        let batches = fleet.batches();
        assert_eq!((batches[0], batches.iter().sum::<usize>()), (1, 12));
        assert!(batches.windows(2).all(|pair| pair[1] <= 2 * pair[0]), "{batches:?}");
    }
}

#[test]
fn a_reset_in_the_middle_of_a_rollout_starts_from_batch_one() {
    for passes in [0, 1, 2] {
        let mut fleet = Fleet::new(20, &exponential());
        while fleet.batches != [1, 2, 4] {
            fleet.pass();
        }
        fleet.pass();
        fleet.batches.clear();
        fleet.reset(false, passes);
        let batches = fleet.batches();
        assert_eq!(batches[0], 1, "{passes} {batches:?}");
        assert!(batches.windows(2).all(|pair| pair[1] <= 2 * pair[0]), "{passes} {batches:?}");
        assert_eq!(fleet.skyhook().status()["completeNodes"], "20/20");
    }
}

#[test]
fn nodes_that_join_a_complete_compartment_start_from_batch_one() {
    for (joining, expected) in [(12, vec![1, 2, 4, 5]), (20, vec![1, 2, 4, 8, 5])] {
        let mut fleet = Fleet::new(7, &exponential());
        assert_eq!(fleet.batches(), [1, 2, 4]);
        (7..7 + joining).for_each(|number| fleet.applier.insert(machine(number)));
        assert_eq!(fleet.batches(), expected);
    }
}

#[test]
fn complete_nodes_that_join_a_running_batch_do_not_count_in_it() {
    let mut fleet = Fleet::new(30, &exponential());
    fleet.rest();
    fleet.batches.clear();
    fleet.version("1.1.0");
    while fleet.batches != [1, 2] {
        fleet.pass();
    }
    // They bring their packages, and the marks of a Skyhook of the same name elsewhere.
    let state = json!({"pa|1.1.0": {"name": "pa", "version": "1.1.0", "image": "x",
        "stage": "config", "state": "complete"}});
    for number in 30..45 {
        let mut raw = machine(number).raw().clone();
        raw["metadata"]["annotations"] = json!({"skyhook.nvidia.com/nodeState_s": state.to_string(),
            "skyhook.nvidia.com/status_s": "complete",
            "skyhook.nvidia.com/batch_s": r#"{"compartment":"__default__","batch":2,"picked":"2020-01-01T00:00:00Z"}"#});
        fleet.applier.insert(Object::from_value(raw).unwrap());
    }
    assert_eq!(fleet.batches()[..4], [1, 2, 4, 8]);
}

#[test]
fn a_reset_of_batches_after_a_stop_gives_failing_nodes_a_fresh_count() {
    for threshold in [1, 3] {
        let strategy = json!({"fixed": {"initialBatch": 1, "failureThreshold": threshold}});
        let names: Vec<String> = (0..20).map(|number| format!("n{number:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut fleet = Fleet::new(20, &strategy).failing(&names);
        let tries = vec![1; threshold];
        assert_eq!(fleet.batches(), tries);
        assert_eq!(fleet.batch("__default__")["shouldStop"], true);
        fleet.reset_batches();
        assert_eq!(fleet.batch("__default__"), json!({"currentBatch": 1}));
        assert_eq!(fleet.batches(), tries, "failureThreshold {threshold}");
        let stopped = fleet.batch("__default__");
        assert_eq!(
            (&stopped["shouldStop"], &stopped["failedNodes"], &stopped["consecutiveFailures"]),
            (&json!(true), &json!(threshold), &json!(threshold))
        );
    }
}

#[test]
fn batches_that_run_during_a_reset_of_batches_keep_their_slots_and_do_not_count() {
    let mut fleet = Fleet::new(20, &exponential());
    while fleet.batches != [1, 2, 4] {
        fleet.pass();
    }
    fleet.reset_batches();
    fleet.pass();
    let picked = fleet.skyhook().status()["nodePriority"].as_object().unwrap().len();
    assert_eq!(picked, 4, "nobody else starts");
    fleet.batches.clear();
    assert_eq!(fleet.batches(), [1, 2, 4, 6]);
}

/// Its mark is gone, and that does not make its batch one of upstream's.
#[test]
fn a_node_that_forgets_while_it_keeps_its_slot_does_not_count() {
    let mut fleet = Fleet::new(20, &exponential());
    while fleet.batches != [1] {
        fleet.pass();
    }
    fleet.reset_batches();
    let node = NODE.key("", "n00");
    let patch = manual::forget(fleet.applier.world().get(&node).unwrap(), "s");
    fleet.merge(&node, patch);
    fleet.batches.clear();
    assert_eq!(fleet.batches()[..3], [1, 2, 4]);
}

#[test]
fn a_reset_of_nodes_alone_leaves_the_batch_state_as_it_was() {
    for passes in [0, 1, 3] {
        let mut fleet = Fleet::new(6, &json!({"linear": {}})).kept();
        assert_eq!(fleet.batches(), [1, 2, 3]);
        let before = fleet.batch("__default__");
        assert_eq!(before, json!({"currentBatch": 4, "completedNodes": 6, "lastBatchSize": 3}));
        fleet.edit(&SKYHOOK, "s", |raw| {
            raw["metadata"]["annotations"]["skyhook.nvidia.com/disable"] = json!("true");
        });
        fleet.reset(true, passes);
        fleet.rest();
        assert_eq!(fleet.batch("__default__"), before);
        fleet.edit(&SKYHOOK, "s", |raw| {
            raw["metadata"]["annotations"]["skyhook.nvidia.com/disable"] = json!("false");
        });
        assert_eq!(fleet.batches(), [4, 2]);
    }
}

#[test]
fn where_state_is_kept_the_last_batch_counts_and_the_next_run_goes_on_from_it() {
    let mut fleet = Fleet::new(7, &exponential()).kept();
    assert_eq!(fleet.batches(), [1, 2, 4]);
    let state = json!({"currentBatch": 4, "completedNodes": 7, "lastBatchSize": 4});
    assert_eq!(fleet.batch("__default__"), state);
    fleet.version("1.1.0");
    assert_eq!(fleet.batches(), [7]);
}

#[test]
fn a_node_that_recovers_during_a_later_batch_does_not_count_in_it() {
    let mut fleet = Fleet::new(30, &exponential()).failing(&["n00"]);
    while fleet.batches != [1, 1] {
        fleet.pass();
    }
    fleet.failing.clear();
    fleet.rest();
    assert_eq!(fleet.batches[..4], [1, 1, 2, 4], "{:?}", fleet.batches);
}

#[test]
fn a_version_that_changes_under_a_batch_starts_from_batch_one() {
    let mut fleet = Fleet::new(20, &exponential());
    while fleet.batches != [1, 2, 4] {
        fleet.pass();
    }
    fleet.version("1.1.0");
    fleet.batches.clear();
    assert_eq!(fleet.batches()[..4], [1, 2, 4, 8]);
}

#[test]
fn a_compartment_that_comes_back_starts_from_batch_one() {
    let mut fleet = Fleet::new(20, &exponential()).failing(&["n00"]);
    let named = |name: &str| {
        let terms = json!({"budget": {"percent": 100}, "strategy": {"exponential": {}}});
        let mut listed = terms.clone();
        listed["name"] = json!(name);
        listed["selector"] = json!({});
        json!({"default": terms, "compartments": [listed]})
    };
    fleet.edit(&POLICY, "p", |raw| raw["spec"] = named("one"));
    while fleet.batches.len() < 2 {
        fleet.pass();
    }
    fleet.edit(&POLICY, "p", |raw| raw["spec"] = named("other"));
    fleet.pass();
    fleet.edit(&POLICY, "p", |raw| raw["spec"] = named("one"));
    fleet.batches.clear();
    assert_eq!(fleet.batches()[..3], [1, 2, 4]);
    assert_eq!(fleet.skyhook().status()["completeNodes"], "19/20");
}

#[test]
fn a_crash_between_any_two_writes_leaves_the_batches_as_they_are() {
    for cut in 0..24 {
        let mut fleet = Fleet::new(15, &exponential());
        while fleet.batches != [1, 2, 4] {
            let before = fleet.applier.clone();
            fleet.pass();
            if fleet.batches == [1, 2, 4] {
                fleet.applier = before;
                fleet.batches.pop();
                fleet.cut(cut);
            }
        }
        fleet.rest();
        let mut batches = fleet.batches.clone();
        if batches[3] == 4 {
            batches.remove(3); // the slots were not taken when it crashed
        }
        assert_eq!(batches, [1, 2, 4, 8], "after {cut} writes");
    }
}

/// What upstream wrote, or an earlier version, is scored by difference, and what follows by marks.
#[test]
fn state_without_marks_is_scored_by_difference_once() {
    let mut fleet = Fleet::new(30, &exponential());
    while fleet.batches != [1, 2, 4] {
        fleet.pass();
    }
    let nodes: Vec<ObjectKey> =
        fleet.applier.world().of(&NODE).map(|one| one.key().clone()).collect();
    for node in nodes {
        fleet.applier.edit(&node, |raw| {
            let annotations = raw["metadata"]["annotations"].as_object_mut();
            _ = annotations.and_then(|all| all.remove("skyhook.nvidia.com/batch_s"));
        });
    }
    fleet.batches.clear();
    assert_eq!(fleet.batches(), [8, 15]);
}
