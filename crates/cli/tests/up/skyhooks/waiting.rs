//! Every node that waits says why, with the numbers: to whoever describes the Skyhook, and in the
//! decision log.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::policies::policy;
use super::site::{Site, embedded};
use super::words::{condition, package, package_with};
use crate::home::CONVOY;

const WAITING: &str = "skyhook.nvidia.com/NodesWaiting";

/// A pod on the first node that its budget keeps there.
fn guard(site: &Site) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "why", "namespace": "default", "labels": {"app": "why"}},
        "spec": {"terminationGracePeriodSeconds": 1,
            "nodeSelector": {"kubernetes.io/hostname": site.nodes[0]},
            "containers": [{"name": "main", "image": "example/work"}]}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "why", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "why"}}}});
    for object in [pod, budget] {
        site.access.kubectl_with("create -f -", &object.to_string());
    }
    site.access.kubectl("wait --for=condition=Ready pod/why -n default --timeout=60s");
}

/// What the decision log of an observer says of each node of a Skyhook, once it says something
/// of so many.
fn logged(site: &Site, skyhook: &str, nodes: usize) -> BTreeMap<String, Value> {
    let log = site.path("decisions.jsonl");
    let mut observer = Command::new(CONVOY)
        .args(["run", "--dialects=skyhook", "--observe", "--kubeconfig"])
        .arg(&site.access.kubeconfig)
        .arg("--decision-log")
        .arg(&log)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let holds = loop {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let rollout = format!("skyhook.nvidia.com/Skyhook/{skyhook}");
        let last = lines.rfind(|line| line["rollout"] == rollout.as_str());
        let holds = last.map(|mut line| line["holds"].take());
        let holds: BTreeMap<String, Value> = holds
            .iter()
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(|hold| Some((hold["member"].as_str()?.to_owned(), hold.clone())))
            .collect();
        if holds.len() == nodes {
            break holds;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "{text}");
        std::thread::sleep(Duration::from_millis(50));
    };
    observer.kill().unwrap();
    observer.wait().unwrap();
    holds
}

/// What the Waiting condition of a Skyhook says.
fn message(skyhook: &Value) -> String {
    let mut all = skyhook["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.find(|condition| condition["type"] == WAITING);
    found.map_or_else(String::new, |found| found["message"].as_str().unwrap().to_owned())
}

#[test]
fn every_node_that_waits_says_why() {
    let site = embedded().site("why", 4);
    guard(&site);
    site.label(2..3, "why=first");
    site.access.kubectl(&format!("taint node {} late=yes:NoSchedule", site.nodes[3]));
    let first = json!({"priority": 1, "packages": {"tuning": package("1.0.0")},
        "nodeSelectors": {"matchLabels": {"why": "first"}}});
    site.apply_annotated(
        "Skyhook",
        "why-first",
        &json!({"skyhook.nvidia.com/pause": "true"}),
        &first,
    );
    site.wait("why-first", "paused");
    policy(&site, "why", &json!({"count": 1}), &json!({"fixed": {"initialBatch": 1}}));
    let disturbing = package_with("1.0.0", json!({"interrupt": {"type": "noop"}}));
    site.apply("Skyhook", "why", &site.paced("why", &json!({"driver": disturbing})));

    let nodes: [&str; 4] = std::array::from_fn(|at| site.nodes[at].as_str());
    let [guarded, behind, later, tainted] = nodes;
    let sentences = [
        format!(
            "1 node of __default__ [{guarded}]: PodDisruptionBudget default/why allows 0 disruptions, so pod default/why cannot be evicted"
        ),
        format!(
            "1 node of __default__ [{behind}]: batch 1 is still running, 1 unfinished: {guarded}"
        ),
        format!("1 node of __default__ [{later}]: waits for why-first (priority 1)"),
        format!("1 node of __default__ [{tainted}]: taint late=yes:NoSchedule is not tolerated"),
    ];
    site.skyhook_until("why", |skyhook| {
        let message = message(skyhook);
        sentences.iter().all(|sentence| message.contains(sentence.as_str()))
    });
    let described = site.access.kubectl("describe skyhook why");
    let described = described.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in &sentences {
        assert!(described.contains(sentence.as_str()), "{sentence} is not in {described}");
    }
    let holds = logged(&site, "why", 4);
    let reasons = ["PodDisruptionBudget", "BatchRunning", "BehindRollout", "TaintNotTolerated"];
    for (node, reason) in nodes.into_iter().zip(reasons) {
        assert_eq!(
            (&holds[node]["reason"], &holds[node]["group"]),
            (&json!(reason), &json!("__default__"))
        );
    }
    assert_eq!(
        (&holds[guarded]["budget"], &holds[guarded]["allowed"]),
        (&json!("default/why"), &json!(0))
    );
    assert_eq!((&holds[behind]["batch"], &holds[behind]["unfinished"]), (&json!(1), &json!(1)));

    // Nothing is in the way any more.
    site.access.kubectl("delete poddisruptionbudget why -n default");
    site.access.kubectl("annotate skyhook why-first skyhook.nvidia.com/pause-");
    site.access.kubectl(&format!("taint node {tainted} late-"));
    site.wait("why", "complete");
    let skyhook =
        site.skyhook_until("why", |skyhook| condition(skyhook, WAITING).starts_with("False"));
    assert_eq!(message(&skyhook), "No node waits.");
}
