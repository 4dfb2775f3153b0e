//! Every command that looks, on the example of every dialect: formats, rehearsals and validation.
//! What `get`, `status`, `why` and `history` print is in `daily.rs`, plans are in `examples.rs`.

use std::path::PathBuf;

use serde_json::Value;

use crate::binary::{self, Run};

/// An example, its instant, and a rollout in it.
const EXAMPLES: [(&str, &str, &str); 5] = [
    ("skyhook", "2026-01-01T00:00:00Z", "skyhook/gpu-driver"),
    ("fleet", "2026-01-01T00:00:00Z", "crp/shop"),
    ("apps", "2026-01-01T00:05:00Z", "deploy/web"),
    ("karpenter", "2026-01-05T10:00:00Z", "nodepool/general"),
    ("ocm", "2026-01-01T12:00:00Z", "mwrs/till"),
];

fn run(example: &str, now: &str, arguments: &str) -> Run {
    let file = format!("examples/{example}.yaml");
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let words: Vec<&str> = arguments.split(' ').chain(["-f", &file, "--now", now]).collect();
    binary::run_in(&root, &words)
}

fn golden(directory: &str, example: &str, run: &Run, code: i32) {
    assert_eq!((run.code, run.stderr.as_str()), (Some(code), ""), "{example}: {}", run.stdout);
    let manifest = env!("CARGO_MANIFEST_DIR");
    let file = format!("{manifest}/tests/golden/{directory}/{example}.txt");
    expectorate::assert_contents(file, &run.stdout);
}

#[test]
fn every_daily_command_has_every_format() {
    for (example, now, rollout) in EXAMPLES {
        for command in ["get", "get KIND", "status", "why", "history"] {
            let command = match command {
                "get" => "get".to_owned(),
                "get KIND" => format!("get {}", rollout.split('/').next().unwrap()),
                command => format!("{command} {rollout}"),
            };
            let print = |format: &str| {
                let run = run(example, now, &format!("{command} -o {format}"));
                let said = (run.code, run.stderr.as_str());
                assert_eq!(said, (Some(0), ""), "{command} -o {format}: {}", run.stdout);
                run.stdout
            };
            let json: Value = serde_json::from_str(&print("json")).unwrap();
            let yaml: Value = serde_saphyr::from_str(&print("yaml")).unwrap();
            assert_eq!(json, yaml, "{command} on {example}");
            assert!(print("table").len() <= print("wide").len(), "{command} on {example}");
            let (names, name) = (print("name"), rollout.split('/').next_back().unwrap());
            assert!(names.lines().any(|line| line.ends_with(&format!("/{name}"))), "{names}");
            for line in names.lines() {
                let (kind, name) = line.split_once('/').unwrap();
                assert!(kind.contains('.') && !name.contains(['/', ' ']), "{command}: {line:?}");
            }
        }
    }
}

/// A member has no name of its own among rollouts: those that hold it are named.
#[test]
fn the_rollouts_that_hold_a_member_are_named() {
    let ask = |arguments: &str| run("skyhook", "2026-01-01T00:00:00Z", arguments).stdout;
    let held = "skyhook.skyhook.nvidia.com/gpu-driver\n";
    assert_eq!(ask("why node gpu-staging-2 -o name"), held);
    assert_eq!(ask("why node gpu-production-1 -o name"), "", "nothing holds it");
}

#[test]
fn the_example_of_every_dialect_is_rehearsed() {
    for (example, now, _) in EXAMPLES {
        let run = run(example, now, "simulate --seeds 2");
        // One is stopped by a failure, one by its release, and one keeps a node that is protected.
        let code = i32::from(["skyhook", "ocm", "karpenter"].contains(&example));
        golden("rehearsed", example, &run, code);
    }
}

#[test]
fn the_short_form_of_a_rehearsal_is_its_summary() {
    for (example, now, _) in [EXAMPLES[0], EXAMPLES[3]] {
        let long = run(example, now, "simulate");
        let short = run(example, now, "plan --until done");
        assert_eq!(short.code, long.code, "{}", short.stderr);
        assert!(long.stdout.ends_with(&short.stdout), "{example}:\n{}", short.stdout);
        assert!(!short.stdout.contains("timeline"), "{}", short.stdout);
    }
}

#[test]
fn the_examples_are_valid() {
    for (example, ..) in EXAMPLES {
        let file = format!("examples/{example}.yaml");
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let run = binary::run_in(&root, &["validate", "-f", &file]);
        assert_eq!(run.code, Some(0), "{example}: {}", run.stdout);
    }
}

/// Mistakes of each kind in the objects of each dialect.
#[test]
fn mistakes_in_the_objects_of_every_dialect_are_found() {
    for (dialect, text) in MISTAKES {
        let directory = tempfile::tempdir().unwrap();
        let file = format!("{dialect}.yaml");
        std::fs::write(directory.path().join(&file), text).unwrap();
        let run = binary::run_in(directory.path(), &["validate", "--strict", "-f", &file]);
        golden("validate/dialects", dialect, &run, 1);
    }
}

const MISTAKES: [(&str, &str); 5] = [
    (
        "skyhook",
        r#"apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: driver}
spec:
  deploymentPolicy: pares
  nodeSelectors: {matchLabels: {gpu: "yes"}}
  interruptionBudget: {percent: 20, count: 3}
  prioritty: 3
  packages:
    driver: {version: 1.0.0, image: example/driver, interrupt: {type: rebot}}
    tools: {version: 1.0.0, image: example/tools, dependsOn: {libs: 1.0.0}}
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: DeploymentPolicy
metadata: {name: pairs}
spec:
  default: {budget: {percent: 200}, strategy: {fixed: {initialBatch: 0}}}
  compartments:
  - {name: a, selector: {matchLabels: {zone: a}}, budget: {count: one}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {gpu: "no"}}
"#,
    ),
    (
        "fleet",
        r#"apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespac, name: shop}]
  policy: {placementType: PickFixd, clusterNames: [eu-1, eu-9]}
  strategy: {rollingUpdate: {maxUnavailable: "half", maxSurge: 1}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacementDisruptionBudget
metadata: {name: shop}
spec: {maxUnavailable: 1, minAvailable: 1}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: first}
spec: {placementName: shopp, stagedRolloutStrategyName: slow, state: Runn}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: eu-1}
spec: {identity: {kind: User, name: eu-1, apiGroup: ""}, heartbeatPeriodSeconds: often}
"#,
    ),
    (
        "apps",
        r"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replica: 3
  minReadySeconds: a minute
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdte}
  template:
    metadata: {labels: {app: wob}}
    spec:
      containers: [{name: web, image: example/web, imagePullPolicy: Allways}]
",
    ),
    (
        "karpenter",
        r#"apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: Inn, values: [spot]}]
  disruption:
    consolidateAfter: soon
    consolidationPolicy: WhenEmty
    budgets:
    - {nodes: "110%"}
    - {nodes: "1", schedule: "0 25 * * *", duration: 1h}
    - {nodes: "1", reasons: [Drift]}
"#,
    ),
    (
        "ocm",
        r#"apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: stores, namespace: shop}
spec:
  clusterSets: [stores]
  numberOfClusters: two
  predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {tier: edge}}}}]
---
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: till, namespace: shop}
spec:
  manifestWorkTemplate: {workload: {manifests: []}}
  placementRefs:
  - {name: store, rolloutStrategy: {type: Progresive, progressive: {maxConcurrency: some}}}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: oslo, labels: {tier: core}}
spec: {hubAcceptsClient: "yes"}
"#,
    ),
];
