//! Nodes that may not be touched yet, and nodes that nobody else may use yet.

use serde_json::{Value, json};

use super::site::{APPLY, Site, embedded};
use super::words::{COMPLETE, annotation, condition, is_tainted, package, says, state, tag, word};

const RUNTIME: &str = "skyhook.nvidia.com";
const NOT_TOLERABLE: &str = "skyhook.nvidia.com/TaintNotTolerable";

fn taint(site: &Site, at: usize, taint: &str) {
    site.access.kubectl(&format!("taint node {} {taint} --overwrite", site.nodes[at]));
}

/// Whether label and annotation of a node both are this word.
fn is(node: &Value, skyhook: &str, wanted: &str) -> bool {
    let label = &node["metadata"]["labels"][format!("skyhook.nvidia.com/status_{skyhook}")];
    word(node, skyhook) == wanted && label == wanted
}

#[test]
fn a_taint_that_nobody_tolerates_blocks() {
    let site = embedded().site("taints", 1);
    taint(&site, 0, "nvidia.com/gpu:NoSchedule");
    let mut spec = site.spec(&json!({"spencer": package("3.2.3")}));
    site.apply("Skyhook", "taints", &spec);
    let status = site.wait("taints", "blocked");
    assert_eq!(status["nodeStatus"], json!({&site.nodes[0]: "blocked"}));
    assert!(is(&site.node(0), "taints", "blocked"));
    let skyhook = site.skyhook("taints");
    assert_eq!(condition(&skyhook, NOT_TOLERABLE), "True/TaintNotTolerable");
    let shown = site.access.kubectl("describe skyhook taints");
    let message = format!("Node [{}] has taints that are not tolerable. Skipping.", site.nodes[0]);
    assert!(shown.contains(&message), "{shown}");

    spec["additionalTolerations"] = json!([{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]);
    site.apply("Skyhook", "taints", &spec);
    site.wait("taints", "complete");
    let node = site.node_until(0, |node| says(node, "taints", COMPLETE));
    assert!(is(&node, "taints", "complete") && is_tainted(&node, "nvidia.com/gpu"));
    assert_eq!(annotation(&node, "nodeState", "taints"), state(&["spencer 3.2.3 config complete"]));
    let skyhook = site.skyhook("taints");
    assert_eq!(condition(&skyhook, NOT_TOLERABLE), "False/TaintNotTolerable");
}

#[test]
fn a_required_runtime_frees_each_node_by_itself() {
    let site = embedded().site("runtime", 2);
    for at in 0..2 {
        taint(&site, at, "skyhook.nvidia.com=runtime-required:NoSchedule");
    }
    taint(&site, 1, "test-block=true:NoSchedule");
    let pods = site.record_pods("runtime");
    let mut spec = site.spec(&json!({"spencer": package("3.2.3")}));
    spec["runtimeRequired"] = json!(true);
    site.apply("Skyhook", "runtime", &spec);
    site.node_until(0, |node| is(node, "runtime", "complete") && !is_tainted(node, RUNTIME));
    let blocked = site.node_until(1, |node| is(node, "runtime", "blocked"));
    assert!(is_tainted(&blocked, RUNTIME) && is_tainted(&blocked, "test-block"));
    taint(&site, 1, "test-block-");
    site.node_until(1, |node| is(node, "runtime", "complete") && !is_tainted(node, RUNTIME));
    assert_eq!(site.wait("runtime", "complete")["completeNodes"], "2/2");
    for node in &site.nodes {
        for stage in ["apply", "config"] {
            pods.find(stage, |pod| {
                tag(pod)["stage"] == stage && pod["spec"]["nodeName"] == node.as_str()
            });
        }
    }
}

#[test]
fn new_nodes_are_tainted_once() {
    let site = embedded().site("newcomers", 1);
    site.hold(0..1, APPLY);
    let mut spec = site.spec(&json!({"spencer": package("3.2.3")}));
    (spec["runtimeRequired"], spec["autoTaintNewNodes"]) = (json!(true), json!(true));
    site.apply("Skyhook", "newcomers", &spec);
    let node = site.node_until(0, |node| is_tainted(node, RUNTIME));
    assert_eq!(annotation(&node, "autoTaint", "skyhook.nvidia.com"), "true");
    site.let_go(0..1);
    site.wait("newcomers", "complete");
    site.node_until(0, |node| is(node, "newcomers", "complete") && !is_tainted(node, RUNTIME));
    // By now the node is known.
    let nodes = site.record_nodes();
    site.apply("Skyhook", "newcomers-too", &spec);
    site.wait("newcomers-too", "complete");
    let events = nodes.all(&site.node(0));
    assert!(!events.is_empty() && !events.iter().any(|(_, node)| is_tainted(node, RUNTIME)));
}
