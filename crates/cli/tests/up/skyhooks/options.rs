//! What a loop for Skyhooks is started with, and what becomes of it.

use serde_json::json;

use super::site::{APPLY, Site};
use super::words::{annotation, is_tainted, package, tag};

const OPTIONS: [&str; 8] = [
    "--skyhook-namespace=packages",
    "--agent-image=example/agent:v9",
    "--pause-image=example/pause:1",
    "--image-pull-secret=pulls",
    "--copy-dir-root=/opt/packages",
    "--agent-log-root=/opt/logs",
    "--runtime-required-taint=example.com/late=yes:NoSchedule",
    "--reapply-on-reboot",
];

#[test]
fn pods_taints_and_reboots_are_as_the_options_say() {
    let site = Site::alone_with(&OPTIONS);
    site.label(0..1, "site=alone");
    site.hold(0..1, APPLY);
    let mut spec = site.spec(&json!({"spencer": package("3.2.3")}));
    (spec["runtimeRequired"], spec["autoTaintNewNodes"]) = (json!(true), json!(true));
    site.apply("Skyhook", "options", &spec);
    let node = site.node_until(0, |node| is_tainted(node, "example.com/late"));
    assert_eq!(annotation(&node, "autoTaint", "example.com_late"), "true");
    let pods = "pods -n packages -l skyhook.nvidia.com/name=options";
    let pods = site.access.until(pods, |pods| !pods["items"][0].is_null());
    let pod = &pods["items"][0];
    assert_eq!(tag(pod)["stage"], "apply");
    let (spec, step) = (&pod["spec"], &pod["spec"]["initContainers"][1]);
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "pulls"}]));
    assert_eq!(spec["containers"][0]["image"], "example/pause:1");
    assert_eq!(step["image"], "example/agent:v9");
    let copied = step["args"][2].as_str().unwrap();
    assert!(copied.starts_with("/opt/packages/options/spencer-3.2.3-"), "{copied}");
    let variable = |name: &str| {
        let mut all = step["env"].as_array().unwrap().iter();
        all.find(|variable| variable["name"] == name).map(|found| found["value"].clone())
    };
    assert_eq!(variable("SKYHOOK_LOG_DIR"), Some(json!("/opt/logs/options")));
    assert_eq!(variable("SKYHOOK_ROOT_DIR"), Some(json!("/opt/packages/options")));
    site.let_go(0..1);
    site.wait("options", "complete");
    site.node_until(0, |node| !is_tainted(node, "example.com/late"));
    reboots(&site);
}

/// A machine that goes down for a reason of its own starts over.
fn reboots(site: &Site) {
    let nodes = site.record_nodes();
    let step = |name: &str| json!([{"name": name, "image": format!("example/{name}")}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "clumsy", "namespace": "default"},
        "spec": {"nodeName": site.nodes[0], "restartPolicy": "OnFailure",
            "initContainers": step("rebooter"), "containers": step("work")}});
    let rule = r#"[{when: {image: "example/rebooter*"}, then: {reboots: 100ms}}]"#;
    site.access.kubectl(&format!("annotate node {} 'sim.convoy.dev/rules={rule}'", site.nodes[0]));
    site.access.kubectl_with("create -f -", &pod.to_string());
    nodes.find("a node that forgot", |node| {
        node["metadata"]["name"] == site.nodes[0].as_str()
            && annotation(node, "nodeState", "options").is_empty()
    });
    site.node_until(0, |node| {
        annotation(node, "nodeState", "options").contains("\"config\",\"state\":\"complete\"")
    });
    site.wait("options", "complete");
    site.told(0, "detected reboot, resetting node");
}
