//! Packages that disturb their node: cordon, what is waited for and what is evicted, one
//! interrupt for several packages.

use serde_json::{Value, json};

use super::record::Record;
use super::site::{Site, embedded};
use super::words::{
    AT_WORK, COMPLETE, annotation, is_cordoned, node_state, order, package, package_with, says,
    state, steps, tag, word,
};

/// A pod on the site's node.
fn workload(site: &Site, name: &str, labels: &Value, more: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"terminationGracePeriodSeconds": 5, "nodeSelector": {"site": site.name},
            "containers": [{"name": "main", "image": "example/work"}]}});
    for (field, value) in more.as_object().into_iter().flatten() {
        pod["metadata"][field] = value.clone();
    }
    pod
}

fn service(services: &[&str]) -> Value {
    json!({"interrupt": {"type": "service", "services": services}})
}

/// One package that disturbs nobody, two that go first and disturb, three that follow.
fn packages() -> Value {
    let with = |version: &str, depends_on: Value, mut more: Value| {
        more["dependsOn"] = depends_on;
        package_with(version, more)
    };
    json!({
        "jason": package_with("1.3.2", json!({"agentImageOverride": "example/agent:3.2.3"})),
        "dexter": package_with("1.2.3", json!({"interrupt": {"type": "reboot"}, "configMap": {"a.conf": "1\n"}})),
        "john": package_with("1.2.3", service(&["rsyslog"])),
        "spencer": with("3.2.3", json!({"dexter": "1.2.3"}), json!({})),
        "baxter": with("3.3", json!({"spencer": "3.2.3"}), service(&["rsyslog"])),
        "foobar": with("1.2", json!({"dexter": "1.2.3", "baxter": "3.3"}), json!({})),
    })
}

/// A pod that must not be disturbed, one that may be, and one that poses as a package's.
fn furnish(site: &Site) {
    let tag = r#"{"name":"invalid","version":"1.2.3","stage":"apply","skyhook":"interrupt","image":"example/pack"}"#;
    let stray = workload(
        site,
        "stray",
        &json!({"skyhook.nvidia.com/name": "interrupt", "skyhook.nvidia.com/package": "invalid-1.2.3"}),
        json!({"namespace": "skyhook", "annotations": {"skyhook.nvidia.com/package": tag}}),
    );
    let protected = workload(site, "protected", &json!({"keep": "me"}), json!({}));
    let plain = workload(site, "plain", &json!({"drain": "me"}), json!({}));
    for pod in [protected, plain, stray] {
        site.access.kubectl_with("create -f -", &pod.to_string());
    }
    site.access.kubectl("wait --for=condition=Ready pod/protected pod/plain --timeout=60s");
}

#[test]
fn a_node_is_made_ready_and_disturbed_once() {
    let site = embedded().site("interrupt", 1);
    let boot = site.node(0)["status"]["nodeInfo"]["bootID"].clone();
    furnish(&site);
    let (nodes, pods) = (site.record_nodes(), site.record_pods("interrupt"));
    let mut spec = site.spec(&packages());
    spec["podNonInterruptLabels"] = json!({"matchLabels": {"keep": "me"}});
    site.apply("Skyhook", "interrupt", &spec);

    // What disturbs nobody goes ahead; the rest waits for the protected pod.
    let node = site.node_until(0, |node| {
        annotation(node, "nodeState", "interrupt") == state(&["jason 1.3.2 config complete"])
            && is_cordoned(node)
            && says(node, "interrupt", AT_WORK)
    });
    assert_eq!(word(&node, "interrupt"), "in_progress");
    assert_eq!(node["metadata"]["labels"]["skyhook.nvidia.com/status_interrupt"], "in_progress");
    assert_eq!(annotation(&node, "cordon", "interrupt"), "true");
    let jason = pods.pod("jason", "apply");
    let images: Vec<&str> = jason["spec"]["initContainers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["image"].as_str().unwrap())
        .collect();
    assert_eq!(images, ["example/pack:1.3.2", "example/agent:3.2.3", "example/agent:3.2.3"]);
    site.access.kubectl("get pod protected plain");
    site.access.kubectl("wait --for=delete pod/stray -n skyhook --timeout=60s");

    site.access.kubectl("delete pod protected --timeout=60s");
    site.access.kubectl("wait --for=delete pod/plain --timeout=60s");
    site.wait("interrupt", "complete");
    let node = site.node_until(0, |node| {
        says(node, "interrupt", COMPLETE) && node["spec"]["taints"].is_null()
    });
    assert_eq!(annotation(&node, "cordon", "interrupt"), "");
    assert_ne!(node["spec"]["unschedulable"], true);
    assert_ne!(node["status"]["nodeInfo"]["bootID"], boot, "it really went down");
    went_through(&nodes, &pods, &node);
}

/// What became of node and pods on the way, and in the end.
fn went_through(nodes: &Record, pods: &Record, node: &Value) {
    let both = nodes.find("both at apply", |node| {
        let state = node_state(node, "interrupt");
        ["dexter|1.2.3", "john|1.2.3"]
            .iter()
            .all(|name| state[name]["stage"] == "apply" && state[name]["state"] == "in_progress")
    });
    assert_eq!(annotation(&both, "cordon", "interrupt"), "true");
    nodes.find("john skipped", |node| {
        let john = &node_state(node, "interrupt")["john|1.2.3"];
        john["stage"] == "interrupt" && john["state"] == "skipped"
    });
    assert_eq!(order(&pods.pod("dexter", "interrupt")), json!({"type": "node_restart"}));
    assert_eq!(
        order(&pods.pod("baxter", "interrupt")),
        json!({"type": "service_restart", "services": ["rsyslog"]})
    );
    let run = pods.stages(17);
    let interrupts: Vec<&String> =
        run.iter().filter(|stage| stage.ends_with(" interrupt")).collect();
    assert_eq!(interrupts, ["dexter interrupt", "baxter interrupt"]);
    let done = [
        "baxter 3.3 post-interrupt complete",
        "dexter 1.2.3 post-interrupt complete",
        "foobar 1.2 config complete",
        "jason 1.3.2 config complete",
        "john 1.2.3 post-interrupt complete",
        "spencer 3.2.3 config complete",
    ];
    assert_eq!(annotation(node, "nodeState", "interrupt"), state(&done));
}

#[test]
fn one_interrupt_stands_for_several() {
    let site = embedded().site("grouping", 1);
    let (nodes, pods) = (site.record_nodes(), site.record_pods("grouping"));
    let packages = json!({"zeb": package_with("2.1.4", service(&["cron"])),
        "dax": package_with("1.2.3", service(&["containerd", "foobar"]))});
    let mut spec = site.spec(&packages);
    spec["additionalTolerations"] = json!([{"key": "nvidia.com/gpu", "operator": "Exists"}]);
    site.apply("Skyhook", "grouping", &spec);
    site.wait("grouping", "complete");
    nodes.find("a cordon", |node| {
        is_cordoned(node)
            && word(node, "grouping") == "in_progress"
            && says(node, "grouping", AT_WORK)
    });
    for stage in ["apply", "config", "post-interrupt"] {
        let pod = pods.pod("dax", stage);
        assert_eq!(
            pod["metadata"]["annotations"]["skyhook.nvidia.com/package"],
            format!(
                r#"{{"name":"dax","version":"1.2.3","skyhook":"grouping","stage":"{stage}","image":"example/pack"}}"#
            )
        );
        let expected = [
            "dax-init".to_owned(),
            format!("dax-{stage} {stage} /root"),
            format!("dax-{stage}check {stage}-check /root"),
        ];
        assert_eq!(steps(&pod), expected);
    }
    let pod = pods.pod("dax", "interrupt");
    assert_eq!(
        tag(&pod),
        json!({"name": "dax", "version": "1.2.3", "skyhook": "grouping", "stage": "interrupt", "image": "example/pack"})
    );
    assert_eq!(
        order(&pod),
        json!({"type": "service_restart", "services": ["containerd", "cron", "foobar"]})
    );
    let tolerations = pod["spec"]["tolerations"].as_array().unwrap();
    assert!(
        tolerations.iter().any(|it| it["key"] == "nvidia.com/gpu" && it["operator"] == "Exists")
    );
    let run = pods.stages(7);
    assert_eq!(run.iter().filter(|stage| stage.ends_with(" interrupt")).count(), 1, "{run:?}");
    let node = site
        .node_until(0, |node| says(node, "grouping", COMPLETE) && node["spec"]["taints"].is_null());
    let done = ["dax 1.2.3 post-interrupt complete", "zeb 2.1.4 post-interrupt complete"];
    assert_eq!(annotation(&node, "nodeState", "grouping"), state(&done));
    assert!(annotation(&node, "version", "grouping").len() >= 6);
}

/// A refused eviction is waited for, and said.
#[test]
fn a_budget_of_pods_holds_the_drain() {
    let site = embedded().site("budget", 1);
    let pod = workload(&site, "guarded", &json!({"app": "guarded"}), json!({}));
    site.access.kubectl_with("create -f -", &pod.to_string());
    site.access.kubectl("wait --for=condition=Ready pod/guarded --timeout=60s");
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "guarded", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}});
    site.access.kubectl_with("create -f -", &budget.to_string());
    site.apply(
        "Skyhook",
        "budget",
        &site.spec(
            &json!({"dax": package_with("1.2.3", service(&["cron"])), "eve": package("1.0.0")}),
        ),
    );
    site.node_until(0, |node| {
        annotation(node, "nodeState", "budget") == state(&["eve 1.0.0 config complete"])
            && is_cordoned(node)
    });
    site.access.kubectl("get pod guarded");
    site.access.kubectl("delete poddisruptionbudget guarded");
    site.wait("budget", "complete");
    site.access.kubectl("wait --for=delete pod/guarded --timeout=60s");
}
