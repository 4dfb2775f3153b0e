//! A provider that is told to misbehave, what becomes of the nodes, and what is counted.

use convoy_kubernetes::free_ports;
use serde_json::{Value, json};

use super::{apply, class, is, items, pool};
use crate::home::define;
use crate::running::Running;
use crate::scrape::scrape_until;

fn has_image(claim: &Value, image: &str) -> bool {
    claim["status"]["imageID"] == image && is(claim, "Ready")
}

#[test]
fn machines_follow_the_image_and_interrupted_ones_are_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let [port] = free_ports().unwrap();
    let listen = format!("127.0.0.1:{port}");
    let gate = "StaticCapacity=true";
    let flags = ["--nodes", "1", "--feature-gates", gate, "--metrics-listen", &listen];
    let running = Running::start_in(directory.path(), &flags);
    define(&running, "karpenter");
    let mut of_v1 = class();
    of_v1["metadata"]["annotations"] =
        json!({"convoy.dev/image": "v1", "convoy.dev/termination-delay": "1s"});
    apply(&running, &of_v1);
    let mut fixed = pool(&json!({"consolidateAfter": "Never", "budgets": [{"nodes": "1"}]}));
    fixed["spec"]["replicas"] = json!(2);
    apply(&running, &fixed);
    let all = |image: &'static str| {
        running.until("nodeclaims", move |claims| {
            items(claims).count() == 2 && items(claims).all(|claim| has_image(claim, image))
        })
    };
    all("v1");
    running.kubectl("annotate kwoknodeclass default --overwrite convoy.dev/image=v2");
    let claims = all("v2");
    let first = claims["items"][0]["metadata"]["name"].as_str().unwrap();
    running.kubectl(&format!("annotate nodeclaim {first} convoy.dev/instance-state=Interrupted"));
    running.until("nodeclaims", |claims| {
        let others = items(claims).filter(|claim| claim["metadata"]["name"] != first);
        others.filter(|claim| has_image(claim, "v2")).count() == 2
    });
    let of = |metric: &str, labels: &str, count: u32| format!("{metric}{{{labels}}} {count}");
    let disrupted = |reason: &str| {
        format!(
            "reason=\"{reason}\",nodepool=\"default\",capacity_type=\"spot\",\
             consolidation_policy=\"\",termination_mode=\"graceful\""
        )
    };
    let deleted = "karpenter_nodeclaims_disrupted_total";
    let begun = "karpenter_voluntary_disruption_decisions_total";
    scrape_until(
        port,
        &[
            of(deleted, &disrupted("drifted"), 2),
            of(deleted, &disrupted("interrupted"), 1),
            of(begun, "decision=\"replace\",reason=\"drifted\",consolidation_type=\"\"", 2),
            of("karpenter_nodepools_usage", "nodepool=\"default\",resource_type=\"nodes\"", 2)
                + ".0",
        ],
    );
}

#[test]
fn a_pool_without_its_node_class_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "1"]);
    define(&running, "karpenter");
    apply(&running, &pool(&json!({"consolidateAfter": "Never"})));
    running.until("events", |events| {
        let is_told = |event: &Value| {
            event["reason"] == "NotFound"
                && event["type"] == "Warning"
                && event["message"] == "KWOKNodeClass \"default\" not found"
        };
        items(events).any(is_told)
    });
    let status = running.convoy("status nodepool/default -w --timeout 1s");
    let text = String::from_utf8_lossy(&status.stdout);
    assert_eq!(status.status.code(), Some(1), "{text}");
    assert!(text.contains("KWOKNodeClass \"default\" not found"), "{text}");
    apply(&running, &class());
    let status = running.convoy("status nodepool/default -w --timeout 30s");
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
    let why = running.convoy("why nodepool/default");
    let text = String::from_utf8_lossy(&why.stdout);
    assert!(text.contains("Drifted: 0 allowed (the pool has no nodes"), "{text}");
}

#[test]
fn a_deleted_node_without_a_claim_goes() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "1"]);
    define(&running, "karpenter");
    apply(
        &running,
        &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "stray",
            "labels": {"karpenter.kwok.sh/kwoknodeclass": "default"},
            "finalizers": ["karpenter.sh/termination"]},
            "spec": {"providerID": "kwok://stray"}}),
    );
    running.kubectl("delete node stray --timeout=30s");
    let nodes = running
        .until("nodes", |nodes| items(nodes).all(|node| node["metadata"]["name"] != "stray"));
    assert_eq!(items(&nodes).count(), 1, "the other one stays");
}
