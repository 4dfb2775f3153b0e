//! `convoy why` on a cluster of a thousand nodes, for reasons of the rollout, of its batches, of its
//! nodes and of other rollouts: whoever asks gets the answer within a second.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::daily::{apply, convoy};
use crate::home::define;
use crate::running::{Running, command};

const ANSWER_MAX: Duration = Duration::from_secs(1);

/// On a machine that does other things too, an answer takes longer now and then.
const ATTEMPTS: usize = 8;

fn skyhook(name: &str, priority: u32, more: &Value) -> Value {
    let mut spec = json!({"priority": priority, "deploymentPolicy": "pairs",
        "nodeSelectors": {"matchLabels": {"kubernetes.io/os": "linux"}},
        "packages": {name: {"version": "1.0.0", "image": "example/package"}}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
        "metadata": {"name": name}, "spec": spec})
}

fn server(directory: &std::path::Path) -> Running {
    let mut up = command(&directory.join("data"));
    let running = Running::start_as(up.args(["--nodes", "1000", "--wait", "--controllers=none"]));
    define(&running, "skyhook");
    apply(
        &running,
        &json!({"apiVersion": "skyhook.nvidia.com/v1alpha1",
        "kind": "DeploymentPolicy", "metadata": {"name": "pairs"}, "spec": {"default":
            {"budget": {"count": 2}, "strategy": {"fixed": {"initialBatch": 2}}}}}),
    );
    running.kubectl("taint nodes node-7 node-8 broken=yes:NoSchedule");
    running.kubectl("label node node-9 skyhook.nvidia.com/ignore=true");
    apply(&running, &skyhook("first", 100, &json!({})));
    apply(&running, &skyhook("later", 200, &json!({})));
    apply(&running, &skyhook("paused", 300, &json!({"pause": true})));
    running
}

#[test]
fn why_answers_within_a_second_on_a_thousand_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let running = server(directory.path());
    for (question, told) in [
        ("why", "995 nodes in __default__ wait: batch 1 is full (size 2)"),
        ("why skyhook/later", "wait for first (priority 100)"),
        ("why skyhook/first", "taint broken=yes:NoSchedule is not tolerated"),
        ("why node node-9", "ignored: "),
        ("why skyhook/paused", "paused"),
        ("why node node-77", "waits: batch 1 is full (size 2)"),
    ] {
        let attempts = (0..ATTEMPTS).map(|_| {
            let asked = Instant::now();
            let answer = convoy(&running, question).ok();
            assert!(answer.contains(told), "{question}: {answer}");
            asked.elapsed()
        });
        let mut slowest = Vec::new();
        let is_quick = attempts.inspect(|took| slowest.push(*took)).any(|took| took <= ANSWER_MAX);
        assert!(is_quick, "{question} takes {slowest:?}");
    }
}
