//! Pods that stand for nothing any more: a state that was taken off a node, a spec that changed
//! under running pods.

use serde_json::{Value, json};

use super::site::{APPLY, embedded};
use super::words::{
    AT_WORK, COMPLETE, annotation, node_state, package, package_with, says, state, tag, word,
};

fn pair(bb: Value) -> Value {
    let mut bb = package_with("1.2", bb);
    bb["dependsOn"] = json!({"aa": "1.2.3"});
    json!({"aa": package("1.2.3"), "bb": bb})
}

#[test]
fn a_node_without_its_state_starts_over() {
    let site = embedded().site("cleanup", 2);
    let mut spec = site.spec(&pair(json!({"configMap": {"foo": "bar"}})));
    spec["interruptionBudget"] = json!({"percent": 100});
    site.apply("Skyhook", "cleanup", &spec);
    let status = site.wait("cleanup", "complete");
    let words = json!({&site.nodes[0]: "complete", &site.nodes[1]: "complete"});
    assert_eq!(
        (&status["nodeStatus"], &status["packageList"]),
        (&words, &json!("aa:1.2.3,bb:1.2"))
    );
    assert_eq!(status["nodesInProgress"], 0);

    site.no_pods("cleanup");
    let pods = site.record_pods("cleanup");
    spec["packages"] = pair(json!({"configMap": {"foo": "buz"}, "gracefulShutdown": "46s"}));
    site.apply("Skyhook", "cleanup", &spec);
    site.wait("cleanup", "complete");
    assert_eq!(pods.pod("bb", "config")["spec"]["terminationGracePeriodSeconds"], 46);
    assert_eq!(pods.stages(2), ["bb config", "bb config"]);
    drop(pods);
    site.no_pods("cleanup");

    // It fails from now on; one node forgets what it has.
    let pods = site.record_pods("cleanup");
    let broken = json!({"configMap": {"foo": "bur"}, "gracefulShutdown": "46s",
        "env": [{"name": "EXIT_CODE", "value": "2"}]});
    spec["packages"] = pair(broken);
    site.apply("Skyhook", "cleanup", &spec);
    pods.pod("bb", "config");
    site.access
        .kubectl(&format!("annotate node {} skyhook.nvidia.com/nodeState_cleanup-", site.nodes[0]));
    let ended = |node: &Value, stage: &str| {
        let state = node_state(node, "cleanup");
        let (aa, bb) = (&state["aa|1.2.3"], &state["bb|1.2"]);
        aa["stage"] == "config"
            && aa["state"] == "complete"
            && bb["stage"] == stage
            && bb["state"] == "erroring"
            && word(node, "cleanup") == "erroring"
    };
    site.node_until(0, |node| ended(node, "apply"));
    site.node_until(1, |node| ended(node, "config"));
    site.wait("cleanup", "erroring");
    let again = |package: &str, stage: &str| {
        pods.find(&format!("{package} {stage} again"), |pod| {
            tag(pod)["name"] == package
                && tag(pod)["stage"] == stage
                && pod["spec"]["nodeName"] == site.nodes[0].as_str()
        });
    };
    again("aa", "apply");
    again("aa", "config");
    again("bb", "apply");
    // One that fails on each node is left.
    site.access.until("pods -n skyhook -l skyhook.nvidia.com/name=cleanup", |left| {
        left["items"].as_array().unwrap().len() == 2
    });
}

#[test]
fn pods_follow_the_spec_that_changed_under_them() {
    let site = embedded().site("validate", 1);
    site.hold(0..1, APPLY);
    let pods = site.record_pods("validate");
    let huge = json!({"cpuRequest": "10", "cpuLimit": "10", "memoryRequest": "10Gi", "memoryLimit": "10Gi"});
    let packages = json!({
        "bad-image": package("3.2.3-bogus"),
        "bad-resources": package_with("1.2.3", json!({"resources": huge})),
        "bad-env": package_with("5.4.3", json!({"env": [{"name": "SLEEP_LEN", "value": "1000"}]})),
    });
    site.apply("Skyhook", "validate", &site.spec(&packages));
    let begun = [
        "bad-env 5.4.3 apply in_progress",
        "bad-image 3.2.3-bogus apply in_progress",
        "bad-resources 1.2.3 apply in_progress",
    ];
    site.node_until(0, |node| {
        annotation(node, "nodeState", "validate") == state(&begun)
            && says(node, "validate", AT_WORK)
    });
    let status = site.wait("validate", "in_progress");
    assert_eq!(status["nodeStatus"], json!({&site.nodes[0]: "in_progress"}));
    for name in ["bad-env", "bad-resources"] {
        pods.until(name, |_| pods.made(name).len() == 1);
    }

    let packages = json!({"bad-image": package("3.2.3"), "bad-resources": package("1.2.3"),
        "bad-env": package_with("5.4.3", json!({"env": [{"name": "SLEEP_LEN", "value": "3"}]}))});
    site.apply("Skyhook", "validate", &site.spec(&packages));
    for name in ["bad-env", "bad-resources"] {
        // They are told that they stand for nothing any more, and others take their place.
        pods.find(name, |pod| tag(pod)["name"] == name && tag(pod)["invalid"] == true);
        pods.until(name, |_| pods.made(name).len() == 2);
    }
    site.let_go(0..1);
    site.wait("validate", "complete");
    let node = site.node_until(0, |node| says(node, "validate", COMPLETE));
    let done = [
        "bad-env 5.4.3 config complete",
        "bad-image 3.2.3 config complete",
        "bad-resources 1.2.3 config complete",
    ];
    assert_eq!(annotation(&node, "nodeState", "validate"), state(&done));
}
