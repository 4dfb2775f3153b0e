//! Manifests in the style of upstream's samples, with what theirs have: comments, scripts as
//! config, tags that do not count, a package of which only the name is written.

use serde_json::{Value, json};

use super::site::Site;
use super::words::{annotation, is_cordoned, word};

const POLICY: &str = r"
apiVersion: skyhook.nvidia.com/v1alpha1
kind: DeploymentPolicy
metadata:
  name: sample
spec:
  default:
    budget:
      percent: 100 # whoever is nowhere else
    strategy:
      fixed:
        initialBatch: 1
        batchThreshold: 100
        safetyLimit: 50
  compartments:
  - name: critical
    selector: {matchLabels: {priority: critical}}
    budget: {count: 1}
    strategy:
      fixed: {initialBatch: 1, batchThreshold: 100, failureThreshold: 1, safetyLimit: 30}
  - name: production
    selector: {matchLabels: {env: production}}
    budget: {count: 3}
    strategy:
      linear: {initialBatch: 1, delta: 1, batchThreshold: 100, failureThreshold: 2, safetyLimit: 50}
  - name: test
    selector: {matchLabels: {env: test}}
    budget: {percent: 50}
    strategy:
      exponential: {initialBatch: 2, growthFactor: 2, batchThreshold: 90, safetyLimit: 60}
";

const TUNED: &str = r#"
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata:
  labels:
    app.kubernetes.io/name: skyhook
    app.kubernetes.io/managed-by: kustomize
  name: tuned
spec:
  additionalTolerations:
    - key: nvidia.com/gpu
      operator: Exists
  nodeSelectors:
    matchLabels:
      pool: gpu
  podNonInterruptLabels:
    matchLabels:
      key: value
  deploymentPolicy: sample
  packages:
    greeting:
      version: 1.0.0
      image: example.com/packages/script
      dependsOn:
        tuning: 1.0.0
      configMap:
        apply.sh: |-
          #!/bin/bash
          echo "greetings" > /greeting
        config.sh: |-
          #!/bin/bash
          grep greetings /greeting
    tuning:
      version: 1.0.0
      image: example.com/packages/tuning
      interrupt:
          type: reboot
      configInterrupts:
        boot.conf:
          type: reboot
        kernel.conf:
          type: restartAllServices
      configMap:
        boot.conf: |-
            pages=2
        kernel.conf: |-
            vm.max_map_count=262144
        limits.conf: |-
            memlock: 128
"#;

const GROUPED: &str = r#"
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata:
  name: grouped
spec:
  nodeSelectors:
    matchLabels:
      pool: wood
      # pool: stone
  interruptionBudget:
    percent: 25
  packages:
    unwritten:
    zeb:
      version: "2.1.4"
      image: example.com/agentless:latest
      interrupt:
        type: service
        services: [cron]
    dax:
      version: "1.2.3"
      image: example.com/agentless:latest
      interrupt:
        type: service
        services: [containerd, foobar]
"#;

const WORKLOADS: &str = r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: precious, namespace: default}
spec:
  selector: {matchLabels: {app: precious}}
  template:
    metadata: {labels: {app: precious}}
    spec:
      nodeSelector: {use: precious}
      containers:
      - {name: main, image: "example/work:1", command: [sleep, infinity]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: plain, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: plain}}
  template:
    metadata: {labels: {app: plain}}
    spec:
      nodeSelector: {pool: demo}
      containers:
      - {name: main, image: "example/work:1", command: [sleep, infinity]}
"#;

const SHY: &str = r#"
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata:
  name: shy
  annotations:
    skyhook.nvidia.com/pause: "false"
    skyhook.nvidia.com/disable: "false"
spec:
  nodeSelectors: {matchLabels: {pool: demo}}
  interruptionBudget:
    percent: 100
  podNonInterruptLabels: {matchLabels: {app: precious}}
  packages:
    baz:
      version: 1.1.0
      image: example.com/packages/script
      interrupt:
        type: reboot
        # type: service
      configMap:
        config.sh: |-
          #!/bin/bash
          sleep 100
"#;

#[test]
fn samples_roll_out_as_they_are() {
    let site = Site::alone();
    site.label(0..6, "pool=gpu");
    site.label(0..1, "priority=critical");
    site.label(1..4, "env=production");
    site.label(4..6, "env=test");
    site.label(6..10, "pool=wood");
    for manifest in [POLICY, TUNED, GROUPED] {
        site.access.kubectl_with("apply -f -", manifest);
    }
    let status = site.wait("tuned", "complete");
    assert_eq!(status["completeNodes"], "6/6");
    let matched = ["critical", "production", "test", "__default__"]
        .map(|name| status["compartmentStatuses"][name]["matched"].clone());
    assert_eq!(matched, [json!(1), json!(3), json!(2), json!(0)]);
    let status = site.wait("grouped", "complete");
    let told = (&status["completeNodes"], &status["packageList"]);
    assert_eq!(told, (&json!("4/4"), &json!("dax:1.2.3,zeb:2.1.4")));
    let state = annotation(&site.node(6), "nodeState", "grouped").to_owned();
    assert!(state.contains(r#""image":"example.com/agentless","#), "{state}");
}

#[test]
fn a_sample_waits_for_precious_pods() {
    let site = Site::alone();
    site.label(0..2, "pool=demo use=precious");
    site.access.kubectl_with("apply -f -", WORKLOADS);
    site.access.until("daemonset precious -n default", |set| set["status"]["numberReady"] == 2);
    site.access.until("replicaset plain -n default", |set| set["status"]["readyReplicas"] == 3);
    site.access.kubectl_with("apply -f -", SHY);
    for at in 0..2 {
        site.node_until(at, |node| is_cordoned(node) && word(node, "shy") == "in_progress");
    }
    let count = |pods: &Value, app: &str| {
        let pods = pods["items"].as_array().unwrap().iter();
        pods.filter(|pod| pod["metadata"]["labels"]["app"] == app).count()
    };
    let pods = site.access.get("pods -n default");
    assert_eq!((count(&pods, "precious"), annotation(&site.node(0), "nodeState", "shy")), (2, ""));
    // Whoever they belong to takes them away; then the others are drained, and come back.
    let nodes = site.nodes[..2].join(" ");
    site.access.kubectl(&format!("label nodes {nodes} use-"));
    assert_eq!(site.wait("shy", "complete")["completeNodes"], "2/2");
    site.access.until("replicaset plain -n default", |set| set["status"]["readyReplicas"] == 3);
    assert_eq!(count(&site.access.get("pods -n default"), "precious"), 0);
}
