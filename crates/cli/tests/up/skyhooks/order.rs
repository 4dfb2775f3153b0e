//! Several Skyhooks on the same nodes: whose turn it is, node by node.

use serde_json::{Value, json};

use super::site::{APPLY, Site, embedded};
use super::words::{package, package_with, word};

const PAUSE: &str = "skyhook.nvidia.com/pause";
const DISABLE: &str = "skyhook.nvidia.com/disable";

fn add(site: &Site, name: &str, priority: u32, annotations: &Value, package: &Value) {
    let spec = json!({"priority": priority, "packages": {"foobar": package},
        "nodeSelectors": {"matchLabels": {"site": site.name}}});
    site.apply_annotated("Skyhook", name, annotations, &spec);
}

#[test]
fn skyhooks_take_turns_on_every_node_by_itself() {
    let site = embedded().site("order", 2);
    let block = |taint: &str| site.access.kubectl(&format!("taint node {} {taint}", site.nodes[1]));
    block("test-block=true:NoSchedule");
    let disturbing =
        package_with("1.2", json!({"interrupt": {"type": "service", "services": ["cron"]}}));
    add(&site, "order-zzz", 1, &json!({DISABLE: "false"}), &disturbing);
    add(&site, "order-b", 2, &json!({DISABLE: "false", PAUSE: "true"}), &disturbing);
    add(&site, "order-c", 2, &json!({DISABLE: "false", PAUSE: "false"}), &package("1.2"));
    add(&site, "order-d", 2, &json!({DISABLE: "true", PAUSE: "false"}), &package("1.2"));
    site.node_until(0, |node| {
        word(node, "order-zzz") == "complete" && word(node, "order-b") == "paused"
    });
    site.node_until(1, |node| word(node, "order-zzz") == "blocked");
    site.wait("order-b", "paused");
    site.wait("order-c", "waiting");
    site.wait("order-d", "disabled");

    // The second node is still at the first Skyhook while the first one is at the second.
    site.hold(0..2, APPLY);
    site.access.kubectl(&format!("annotate skyhook order-b {PAUSE}=false --overwrite"));
    block("test-block-");
    site.wait("order-zzz", "in_progress");
    site.wait("order-b", "in_progress");
    site.wait("order-c", "waiting");
    site.wait("order-d", "disabled");
    // Who is picked stands in the status before it stands on the nodes.
    let words =
        |node: &Value| (word(node, "order-zzz").to_owned(), word(node, "order-b").to_owned());
    let reads = |node: &Value, zzz: &str, b: &str| words(node) == (zzz.to_owned(), b.to_owned());
    site.node_until(0, |node| reads(node, "complete", "in_progress"));
    site.node_until(1, |node| reads(node, "in_progress", "waiting"));
    site.let_go(0..2);
    for name in ["order-zzz", "order-b", "order-c"] {
        assert_eq!(site.wait(name, "complete")["completeNodes"], "2/2");
    }
    for at in 0..2 {
        let node = site.node(at);
        let words =
            ["zzz", "b", "c", "d"].map(|name| word(&node, &format!("order-{name}")).to_owned());
        assert_eq!(words, ["complete", "complete", "complete", "disabled"]);
    }
    assert_eq!(site.skyhook("order-d")["status"]["status"], "disabled");
}

/// A Skyhook that is paused holds back those behind it; one that fails does too, and says so.
#[test]
fn pauses_and_failures_hold_back_those_behind() {
    let site = embedded().site("gang", 3);
    add(&site, "gang-first", 1, &json!({PAUSE: "true"}), &package("1.0.0"));
    add(
        &site,
        "gang-second",
        2,
        &json!({}),
        &json!({"version": "1.0.0", "image": "example/broken"}),
    );
    site.wait("gang-first", "paused");
    site.wait("gang-second", "waiting");
    site.access.kubectl(&format!("annotate skyhook gang-first {PAUSE}-"));
    site.wait("gang-first", "complete");
    let status = site.wait("gang-second", "erroring");
    assert_eq!(status["completeNodes"], "0/3");
    let label = "skyhook.nvidia.com/status_gang-second=erroring";
    let failing = site.access.kubectl(&format!("get nodes -l {label} -o name"));
    assert_eq!(failing.lines().count(), 3, "{failing}");
    let described = site.access.kubectl(&format!("describe node {}", site.nodes[0]));
    assert!(described.contains("skyhook.nvidia.com/gang-second/Erroring"), "{described}");

    // A sound package takes its place.
    add(&site, "gang-second", 2, &json!({}), &package("1.0.1"));
    assert_eq!(site.wait("gang-second", "complete")["completeNodes"], "3/3");
}
