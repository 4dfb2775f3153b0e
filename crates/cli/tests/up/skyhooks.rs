//! Skyhooks in the embedded home, met with stock kubectl: the policy scenarios of upstream's own
//! suite, failures, pauses and priorities, with every change of every node looked at afterwards.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::running::Running;

const WAIT_MAX: Duration = Duration::from_mins(2);

/// Nodes that are quick, and packages whose image says `broken` fail.
const SCENARIO: &str = "
nodes:
- {name: node, count: 15}
latencies: {pull: 1ms, start: 1ms, ready: 1ms, stop: 1ms, init: 5ms..40ms}
rules:
- when: {image: \"*/broken*\"}
  then: {fails: crash, after: 5ms, exitCode: 2}
";

pub(crate) struct Home {
    pub(crate) running: Running,
    pub(crate) directory: TempDir,
}

impl Home {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scenario = directory.path().join("scenario.yaml");
        std::fs::write(&scenario, SCENARIO).unwrap();
        let more = ["--scenario", scenario.to_str().unwrap(), "--controllers", "all"];
        let running = Running::start_in(directory.path(), &more);
        let definitions = running.convoy("crds --dialect skyhook").stdout;
        running.kubectl_with("apply -f -", std::str::from_utf8(&definitions).unwrap());
        running.kubectl("wait --for=condition=established crd --all --timeout=30s");
        running.kubectl("create namespace skyhook");
        Self { running, directory }
    }

    pub(crate) fn apply(&self, kind: &str, name: &str, spec: &Value) {
        let object = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec});
        self.running.kubectl_with("apply -f -", &object.to_string());
    }

    pub(crate) fn skyhook(&self, name: &str) -> Value {
        let text = self.running.kubectl(&format!("get skyhook {name} -o json"));
        serde_json::from_str(&text).unwrap()
    }

    /// Waits until the status says this word.
    pub(crate) fn wait(&self, name: &str, word: &str) -> Value {
        let begun = Instant::now();
        loop {
            let status = self.skyhook(name)["status"].clone();
            if status["status"] == word {
                return status;
            }
            assert!(begun.elapsed() < WAIT_MAX, "{name} is not {word}: {status:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn label(&self, nodes: std::ops::Range<usize>, label: &str) {
        let names: Vec<String> = nodes.map(|at| format!("node-{at}")).collect();
        self.running.kubectl(&format!("label nodes {} {label} --overwrite", names.join(" ")));
    }

    /// Writes down every change of every node from now on.
    fn record(&self, name: &str) -> Record {
        let file = self.directory.path().join(format!("{name}.events"));
        let mut command =
            self.running.kubectl_command("get nodes -w -o json --output-watch-events");
        let child = command.stdout(File::create(&file).unwrap()).spawn().unwrap();
        let record = Record { child, file, skyhook: name.to_owned() };
        let begun = Instant::now();
        while record.states().is_empty() {
            assert!(begun.elapsed() < WAIT_MAX, "the watch does not begin");
            std::thread::sleep(Duration::from_millis(20));
        }
        record
    }
}

/// A watch of all nodes, kept in a file.
struct Record {
    child: Child,
    file: PathBuf,
    skyhook: String,
}

impl Record {
    /// The words that all nodes carried, after each change.
    fn states(&self) -> Vec<BTreeMap<String, String>> {
        let text = std::fs::read_to_string(&self.file).unwrap();
        let mut nodes: BTreeMap<String, String> = BTreeMap::new();
        let mut states = Vec::new();
        let events = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        for event in events.map_while(Result::ok) {
            let metadata = &event["object"]["metadata"];
            let word = metadata["annotations"]
                [format!("skyhook.nvidia.com/status_{}", self.skyhook)]
            .as_str();
            let name = metadata["name"].as_str().unwrap().to_owned();
            nodes.insert(name, word.unwrap_or_default().to_owned());
            states.push(nodes.clone());
        }
        states
    }

    /// The most nodes of a range that were in progress at one instant.
    fn most(&self, nodes: std::ops::Range<usize>) -> usize {
        let names: Vec<String> = nodes.map(|at| format!("node-{at}")).collect();
        let count = |state: &BTreeMap<String, String>| {
            names
                .iter()
                .filter(|name| state.get(*name).is_some_and(|word| word == "in_progress"))
                .count()
        };
        self.states().iter().map(count).max().unwrap_or(0)
    }

    /// How many nodes were in progress, change by change, without repetitions.
    fn course(&self) -> Vec<usize> {
        let count = |state: &BTreeMap<String, String>| {
            state.values().filter(|word| *word == "in_progress").count()
        };
        let mut course: Vec<usize> = self.states().iter().map(count).collect();
        course.dedup();
        course
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A package without and one with an interrupt.
pub(crate) fn packages(version: &str) -> Value {
    json!({"tuning": {"version": version, "image": "example/tuning"},
        "driver": {"version": version, "image": "example/driver", "dependsOn": {"tuning": version},
            "interrupt": {"type": "reboot"}}})
}

fn plain(version: &str, image: &str) -> Value {
    json!({"tuning": {"version": version, "image": image}})
}

pub(crate) fn targets(policy: &str, label: &str, packages: &Value) -> Value {
    json!({"deploymentPolicy": policy, "nodeSelectors": {"matchLabels": {label: "yes"}}, "packages": packages})
}

#[test]
fn policies_pace_rollouts() {
    let home = Home::start();

    // Linear: batches of 1, 2, 3 and the rest, never more than 4 at once.
    home.label(0..8, "linear=yes");
    home.apply(
        "DeploymentPolicy",
        "linear",
        &json!({"default": {"budget": {"count": 4},
        "strategy": {"linear": {"initialBatch": 1, "delta": 1}}}}),
    );
    let record = home.record("linear");
    home.apply("Skyhook", "linear", &targets("linear", "linear", &packages("1.0.0")));
    let status = home.wait("linear", "complete");
    let all = &status["compartmentStatuses"]["__default__"];
    assert_eq!(
        (&all["matched"], &all["ceiling"], &all["completed"]),
        (&json!(8), &json!(4), &json!(8))
    );
    assert_eq!((&all["progressPercent"], &all["inProgress"]), (&json!(100), &json!(0)));
    let course = record.course();
    assert!(course.iter().all(|count| *count <= 4), "{course:?}");
    for batch in 1..=3 {
        assert!(course.contains(&batch), "batch of {batch}: {course:?}");
    }
    drop(record);

    // Several compartments, each with a ceiling of its own.
    home.label(0..15, "multi=yes");
    home.label(0..5, "tier=critical");
    home.label(5..11, "tier=standard");
    home.label(11..15, "tier=test");
    let compartment = |name: &str, budget: Value, first: u32| {
        json!({"name": name, "budget": budget, "selector": {"matchLabels": {"tier": name}},
            "strategy": {"exponential": {"initialBatch": first}}})
    };
    let compartments = [
        compartment("critical", json!({"count": 2}), 1),
        compartment("standard", json!({"percent": 33}), 1),
        compartment("test", json!({"percent": 50}), 2),
    ];
    home.apply(
        "DeploymentPolicy",
        "multi",
        &json!({"default": {"budget": {"count": 1}}, "compartments": compartments}),
    );
    let record = home.record("multi");
    home.apply("Skyhook", "multi", &targets("multi", "multi", &plain("1.0.0", "example/tuning")));
    let status = home.wait("multi", "complete");
    let ceilings: Vec<&Value> = ["critical", "standard", "test"]
        .iter()
        .map(|name| &status["compartmentStatuses"][name]["ceiling"])
        .collect();
    assert_eq!(ceilings, [2, 1, 2]);
    assert!(record.most(0..5) <= 2 && record.most(5..11) <= 1 && record.most(11..15) <= 2);
    assert_eq!((record.most(5..11), record.most(11..15)), (1, 2));
    drop(record);

    // The legacy budget.
    home.label(0..6, "legacy=yes");
    let record = home.record("legacy");
    home.apply("Skyhook", "legacy", &json!({"interruptionBudget": {"count": 3},
        "nodeSelectors": {"matchLabels": {"legacy": "yes"}}, "packages": plain("1.0.0", "example/tuning")}));
    let status = home.wait("legacy", "complete");
    let all = &status["compartmentStatuses"]["__default__"];
    assert_eq!((&all["matched"], &all["ceiling"]), (&json!(6), &json!(3)));
    assert_eq!(record.most(0..15), 3);
}

#[test]
fn overlapping_compartments_and_batch_state() {
    let home = Home::start();
    home.label(0..6, "overlap=yes");
    home.label(0..2, "region=us-west");
    home.label(2..4, "env=production");
    home.label(4..6, "region=us-west");
    home.label(4..6, "env=production");
    let strategy = json!({"fixed": {"initialBatch": 1}});
    let wide = json!({"exponential": {"initialBatch": 2}});
    let compartments = json!([
        {"name": "us-west", "budget": {"count": 2}, "strategy": wide, "selector": {"matchLabels": {"region": "us-west"}}},
        {"name": "production", "budget": {"count": 2}, "strategy": wide, "selector": {"matchLabels": {"env": "production"}}},
        {"name": "prod-us-west", "budget": {"count": 1}, "strategy": strategy,
            "selector": {"matchLabels": {"region": "us-west", "env": "production"}}},
    ]);
    home.apply(
        "DeploymentPolicy",
        "overlap",
        &json!({"default": {"budget": {"count": 1}}, "compartments": compartments}),
    );
    let record = home.record("overlap");
    home.apply(
        "Skyhook",
        "overlap",
        &targets("overlap", "overlap", &plain("1.0.0", "example/tuning")),
    );
    let status = home.wait("overlap", "complete");
    for (name, ceiling) in [("us-west", 2), ("production", 2), ("prod-us-west", 1)] {
        let told = &status["compartmentStatuses"][name];
        assert_eq!((&told["matched"], &told["ceiling"]), (&json!(2), &json!(ceiling)), "{name}");
    }
    assert!(record.most(4..6) <= 1, "the strictest compartment keeps what both select");
    drop(record);

    // Batch state is forgotten when a rollout is complete, unless somebody says otherwise.
    home.label(0..8, "reset=yes");
    home.apply(
        "DeploymentPolicy",
        "reset",
        &json!({"resetBatchStateOnCompletion": true,
        "default": {"budget": {"count": 2}, "strategy": {"exponential": {}}}}),
    );
    home.apply("Skyhook", "reset", &targets("reset", "reset", &plain("1.0.0", "example/tuning")));
    let status = home.wait("reset", "complete");
    assert_eq!(
        status["compartmentStatuses"]["__default__"]["batchState"],
        json!({"currentBatch": 1})
    );
}

#[test]
fn failures_pauses_and_priorities() {
    let home = Home::start();
    home.label(0..3, "gang=yes");
    let spec = |packages: Value, priority: u32| {
        json!({"priority": priority, "interruptionBudget": {"count": 1},
        "nodeSelectors": {"matchLabels": {"gang": "yes"}}, "packages": packages})
    };

    // A paused Skyhook starts nothing, and holds back those behind it.
    let first = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
        "metadata": {"name": "first", "annotations": {"skyhook.nvidia.com/pause": "true"}},
        "spec": spec(plain("1.0.0", "example/tuning"), 1)});
    home.running.kubectl_with("apply -f -", &first.to_string());
    home.apply("Skyhook", "second", &spec(plain("1.0.0", "example/broken"), 2));
    home.wait("first", "paused");
    home.wait("second", "waiting");
    home.running.kubectl("annotate skyhook first skyhook.nvidia.com/pause-");
    home.wait("first", "complete");

    // A legacy budget has no failure limit: each node in turn is tried, and says that it fails.
    let status = home.wait("second", "erroring");
    assert_eq!(status["completeNodes"], "0/3");
    let failing =
        home.running.kubectl("get nodes -l skyhook.nvidia.com/status_second=erroring -o name");
    assert_eq!(failing.lines().count(), 3, "{failing}");
    let described = home.running.kubectl("describe node node-0");
    assert!(described.contains("skyhook.nvidia.com/second/Erroring"), "{described}");

    // A sound package takes its place.
    home.apply("Skyhook", "second", &spec(plain("1.0.1", "example/tuning"), 2));
    let status = home.wait("second", "complete");
    assert_eq!(status["completeNodes"], "3/3");

    // Nothing is left on nodes and in the namespace when it goes.
    home.running.kubectl("delete skyhook second --timeout=60s");
    home.running.kubectl("delete skyhook first --timeout=60s");
    let pods = home.running.kubectl("get pods -n skyhook -o name");
    assert_eq!(pods, "");
    assert!(!home.running.kubectl("get nodes").contains("SchedulingDisabled"));
}

#[test]
fn the_guide_rolls_out() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/skyhook.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = guide.split_once("```yaml\n").unwrap();
    let (objects, _) = rest.split_once("```").unwrap();
    let home = Home::start();
    let record = home.record("tuning");
    home.running.kubectl_with("apply -f -", objects);
    home.running.kubectl("wait --for=condition=Ready skyhook/tuning --timeout=120s");
    assert_eq!(home.skyhook("tuning")["status"]["completeNodes"], "15/15");
    let course = record.course();
    assert!(course.contains(&1) && course.iter().all(|count| *count <= 5), "{course:?}");
}
