//! Skyhooks that go, and pods of Skyhooks that are not there.

use serde_json::json;

use super::site::{APPLY, embedded};
use super::words::{annotation, is_cordoned, package, package_with, state, word};

#[test]
fn a_skyhook_goes_and_leaves_what_nodes_have() {
    let site = embedded().site("delete", 1);
    let base = package_with("1.2.3", json!({"configMap": {"game.conf": "lives=3\n"}}));
    let packages = json!({"base": base, "tools": package_with("3.2.3", json!({"dependsOn": {"base": "1.2.3"}}))});
    site.apply("Skyhook", "delete", &site.spec(&packages));
    site.wait("delete", "complete");
    let owned = || {
        let labels =
            ["skyhook.nvidia.com/name=delete", "skyhook.nvidia.com/skyhook-node-meta=delete"];
        labels.map(|label| {
            site.access
                .kubectl(&format!("get pods,configmaps -n skyhook -l {label} -o name"))
                .lines()
                .count()
        })
    };
    // Pods of finished packages are on their way out when the Skyhook is complete.
    site.no_pods("delete");
    assert_eq!(owned(), [1, 1]);
    site.access.kubectl("delete skyhook delete --timeout=60s");
    site.access.kubectl(
        "wait --for=delete configmap -n skyhook -l skyhook.nvidia.com/name=delete --timeout=60s",
    );
    site.access.kubectl("wait --for=delete configmap -n skyhook -l skyhook.nvidia.com/skyhook-node-meta=delete --timeout=60s");
    assert_eq!(owned(), [0, 0]);
    // Packages are not uninstalled, and nodes remember them.
    let node = site.node(0);
    let done = ["base 1.2.3 config complete", "tools 3.2.3 config complete"];
    assert_eq!(
        (annotation(&node, "nodeState", "delete"), word(&node, "delete")),
        (state(&done).as_str(), "complete")
    );
}

#[test]
fn a_skyhook_that_goes_halfway_gives_its_node_back() {
    let site = embedded().site("halfway", 1);
    site.hold(0..1, APPLY);
    let packages = json!({"driver": package_with("1.0.0", json!({"interrupt": {"type": "reboot"}})), "tools": package("1.0.0")});
    site.apply("Skyhook", "halfway", &site.spec(&packages));
    site.node_until(0, |node| is_cordoned(node) && word(node, "halfway") == "in_progress");
    site.access.kubectl("delete skyhook halfway --timeout=60s");
    site.access.kubectl(
        "wait --for=delete pod -n skyhook -l skyhook.nvidia.com/name=halfway --timeout=60s",
    );
    let node = site.node_until(0, |node| node["spec"]["taints"].is_null());
    assert_ne!(node["spec"]["unschedulable"], true);
    assert_eq!(annotation(&node, "cordon", "halfway"), "");
}

/// Upstream's scenario of a pod that somebody made: what it did counts, though no Skyhook asked
/// for it.
#[test]
fn what_a_pod_made_by_hand_did_is_recorded() {
    let site = embedded().site("by-hand", 1);
    let step = |name: &str| json!({"name": name, "image": "busybox"});
    let steps = ["foobar-init", "foobar-apply", "foobar-applycheck"].map(step);
    let tag = json!({"name": "foobar", "version": "1.2.3", "stage": "apply", "skyhook": "foobar"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "made-by-hand",
        "labels": {"skyhook.nvidia.com/name": "foobar"},
        "annotations": {"skyhook.nvidia.com/package": tag.to_string()},
    },
    "spec": {
        "restartPolicy": "OnFailure",
        "nodeSelector": {"site": "by-hand"},
        "initContainers": steps,
        "containers": [step("pause")],
    }});
    site.access.kubectl_with("create -n default -f -", &pod.to_string());
    let node = site.node_until(0, |node| !annotation(node, "nodeState", "foobar").is_empty());
    assert_eq!(
        annotation(&node, "nodeState", "foobar"),
        r#"{"foobar|1.2.3":{"name":"foobar","version":"1.2.3","image":"","stage":"apply","state":"complete"}}"#
    );
    site.access.kubectl("wait --for=delete pod/made-by-hand -n default --timeout=60s");
    let told = "Package [foobar:1.2.3] state complete on [skyhook:foobar]";
    site.told(0, told);
}
