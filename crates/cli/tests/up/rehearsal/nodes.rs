//! Rollouts of one cluster: pods of a Deployment, nodes of a Skyhook and of a NodePool.

use serde_json::{Value, json};

use super::{Case, await_nodes};
use crate::home::define;
use crate::karpenter::{class, fill, pool};
use crate::running::Running;

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 4
  minReadySeconds: 2
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: 'example/web:1'}]
";

const SKYHOOK: &str = "
apiVersion: skyhook.nvidia.com/v1alpha1
kind: DeploymentPolicy
metadata: {name: one-by-one}
spec:
  default: {budget: {count: 1}, strategy: {fixed: {initialBatch: 1}}}
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: tuning}
spec:
  deploymentPolicy: one-by-one
  nodeSelectors: {matchLabels: {kubernetes.io/os: linux}}
  packages:
    tuning: {version: 1.0.0, image: example/tuning}
";

/// It selects no node.
const IDLE: &str = "
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: idle}
spec:
  nodeSelectors: {matchLabels: {nobody: has}}
  packages:
    tuning: {version: 1.0.0, image: example/tuning}
";

#[test]
fn a_deployment_takes_as_long_as_was_simulated() {
    let rolled = |running: &Running| {
        running.kubectl("rollout status deployment/web --timeout=120s");
    };
    let case = Case {
        flags: &[],
        nodes: "[{name: worker, count: 4}]",
        latencies: "latencies: {pull: 500ms, start: 200ms, ready: 1s, stop: 500ms}",
        prepare: &|running| {
            await_nodes(running, 4);
            running.kubectl_with("apply -f -", DEPLOYMENT);
            rolled(running);
        },
        change: DEPLOYMENT.replace("example/web:1", "example/web:2"),
        kind: "apps/Deployment/",
        wait: &rolled,
    };
    case.agrees();
}

/// Two nodes after each other, with two stages each. A stage is a pod with three containers: the
/// shorter these are, the more the programs' own time counts.
#[test]
fn a_skyhook_takes_as_long_as_was_simulated() {
    let case = Case {
        flags: &[],
        nodes: "[{name: worker, count: 2}]",
        latencies: "latencies: {pull: 500ms, start: 200ms, ready: 500ms, stop: 500ms, init: 1s}",
        prepare: &|running| {
            await_nodes(running, 2);
            // A server that has just started looks for the kind every 5 s until it is defined.
            running.kubectl_with("apply -f -", IDLE);
            running.until("skyhook idle", |skyhook| skyhook["status"]["status"].is_string());
        },
        change: SKYHOOK.to_owned(),
        kind: "skyhook.nvidia.com/Skyhook/tuning",
        wait: &|running| {
            let complete = "wait --for=jsonpath={.status.status}=complete skyhook/tuning";
            running.kubectl(&format!("{complete} --timeout=120s"));
        },
    };
    case.agrees();
}

/// Three nodes are replaced, one at a time.
#[test]
fn a_drift_takes_as_long_as_was_simulated() {
    let mut changed = pool(&json!({"consolidateAfter": "Never", "budgets": [{"nodes": "1"}]}));
    changed["spec"]["template"]["metadata"]["labels"] = json!({"revision": "two"});
    let case = Case {
        flags: &[],
        nodes: "[{name: own, count: 1}]",
        latencies: "latencies: {pull: 500ms, start: 200ms, ready: 1s, stop: 500ms}",
        prepare: &|running| {
            await_nodes(running, 1);
            define(running, "karpenter");
            crate::karpenter::apply(running, &class());
            fill(running);
        },
        change: changed.to_string(),
        kind: "karpenter.sh/NodePool/",
        wait: &|running| {
            let is_current = |claim: &Value| claim["metadata"]["labels"]["revision"] == "two";
            running.until("nodeclaims", |claims| {
                let claims = claims["items"].as_array().unwrap();
                claims.len() == 3 && claims.iter().all(is_current)
            });
        },
    };
    case.agrees();
}
