//! The daily commands against a server: kubectl's flags and exit statuses, and what the verbs that
//! act write for each dialect.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::access::split;
use crate::home::define;
use crate::placements::guide::run_through;
use crate::running::{Running, command};

/// Images that cannot be pulled, and nodes that are quick.
const SCENARIO: &str = "
nodes: [{count: 3}]
latencies: {pull: 5ms..20ms, start: 5ms..20ms, ready: 10ms..50ms, stop: 5ms..30ms}
rules:
- when: {image: \"*:bad\"}
  then: {fails: image-pull-error}
";

/// What a command left behind.
pub(crate) struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    /// What it printed, which must be a success.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// What a person reads of it.
    pub(crate) fn said(&self) -> &str {
        self.stderr.strip_prefix("error: ").unwrap_or(&self.stdout)
    }

    /// Its complaint, with which it must have ended.
    pub(crate) fn refused(self) -> String {
        assert_eq!(self.code, 1, "{}{}", self.stdout, self.stderr);
        self.stderr
    }
}

pub(crate) fn convoy(running: &Running, arguments: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convoy"));
    ran(command.args(split(arguments)).env("KUBECONFIG", &running.kubeconfig))
}

fn ran(command: &mut Command) -> Ran {
    let output = command.env_remove("CLICOLOR_FORCE").output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn apply(running: &Running, object: &Value) {
    running.kubectl_with("apply -f -", &object.to_string());
}

pub(crate) fn web(image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": image}]}}}})
}

#[test]
fn the_guide_to_stuck_rollouts_prints_what_it_shows() {
    run_through("up/daily.rs::the_guide_to_stuck_rollouts_prints_what_it_shows", 8);
}

#[test]
fn a_bad_deployment_is_seen_explained_and_undone() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = directory.path().join("scenario.yaml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    let mut up = command(&directory.path().join("data"));
    let running = Running::start_as(up.arg("--scenario").arg(&scenario));
    apply(&running, &web("example/web:1"));
    let watched = convoy(&running, "status web --watch --timeout 2m").ok();
    assert!(watched.contains("\n✔ Deployment default/web: Done, 3 of 3 done\n"), "{watched:?}");
    apply(&running, &web("example/web:bad"));
    let timed_out = convoy(&running, "status deploy/web -w --timeout 3s").refused();
    assert_eq!(timed_out, "error: timed out waiting for the rollout\n");
    is_explained(&running);
    is_paused_and_resumed(&running);
    is_undone(&running);
    others_may_not(&running);
    kubectl_has_it_as_a_plugin(&running, directory.path());
}

fn is_explained(running: &Running) {
    let why = convoy(running, "why web").ok();
    assert!(why.contains("not available: container web: "), "{why}");
    assert!(why.contains("ImagePull"), "{why}");
    let listed = convoy(running, "get").ok();
    let line = listed.lines().nth(1).unwrap_or_default();
    assert!(line.starts_with("deployment/web  Moving"), "{listed}");
    let pods = running.get("pods");
    let stuck = pods["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|pod| pod["spec"]["containers"][0]["image"] == "example/web:bad");
    let name = stuck.unwrap()["metadata"]["name"].as_str().unwrap();
    let why = convoy(running, &format!("why pod {name}")).ok();
    assert!(why.contains(&format!("pod {name} in web-")), "{why}");
    let plan = convoy(running, "plan").ok();
    assert!(plan.starts_with("Deployment default/web: Moving"), "{plan}");
}

fn is_paused_and_resumed(running: &Running) {
    let is_paused = || running.get("deployment web")["spec"]["paused"] == true;
    let dry = convoy(running, "pause web --dry-run").ok();
    assert_eq!(
        dry,
        "would write deployment.apps/web: start nothing new\n\
         deployment.apps/web paused (server dry run)\n"
    );
    assert!(!is_paused());
    assert_eq!(
        convoy(running, "pause web --reason 'the image is bad'").ok(),
        "deployment.apps/web paused\n"
    );
    assert!(is_paused());
    assert_eq!(convoy(running, "get -o name").ok(), "deployment.apps/web\n");
    assert!(convoy(running, "get web").ok().contains("Paused"));
    let again = convoy(running, "pause deployment web").refused();
    assert_eq!(again, "error: Deployment \"web\" is already paused\n");
    let undone = convoy(running, "undo web").refused();
    assert!(undone.contains("is paused; run `convoy resume` first"), "{undone}");
    assert_eq!(convoy(running, "resume web").ok(), "deployment.apps/web resumed\n");
    assert!(!is_paused());
}

fn is_undone(running: &Running) {
    assert_eq!(convoy(running, "undo web").ok(), "deployment.apps/web rolled back\n");
    convoy(running, "status web -w --timeout 2m").ok();
    let image =
        running.get("deployment web")["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!(image, "example/web:1");
    let history: Value =
        serde_json::from_str(&convoy(running, "history web -o json").ok()).unwrap();
    let verbs: Vec<&str> = history["interventions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["verb"].as_str().unwrap())
        .collect();
    assert_eq!(verbs, ["pause", "resume", "undo"]);
    assert_eq!(history["interventions"][0]["reason"], "the image is bad");
    assert_ne!(history["interventions"][0]["actor"], "unknown");
    assert_eq!(history["revisions"].as_array().unwrap().len(), 2, "{history}");
    let abort = convoy(running, "abort web").refused();
    assert!(abort.starts_with("error: the Deployment API has no abort; `convoy undo`"), "{abort}");
}

fn others_may_not(running: &Running) {
    let listed = convoy(running, "get --as eve").refused();
    assert!(listed.contains("User \"eve\" cannot list"), "{listed}");
    running.kubectl("create namespace shop");
    running.kubectl("create rolebinding ann -n shop --clusterrole=edit --user=ann");
    let mut other = web("example/web:1");
    other["metadata"]["namespace"] = json!("shop");
    apply(running, &other);
    convoy(running, "status web -n shop --as ann -w --timeout 2m").ok();
    assert!(convoy(running, "pause web -n shop --as ann").ok().contains("paused"));
    let history = convoy(running, "history web -n shop --as ann").ok();
    assert!(history.contains("pause         ann"), "{history}");
    let all = convoy(running, "get -A").ok();
    assert!(
        all.contains("default    deployment/web") && all.contains("shop       deployment/web"),
        "{all}"
    );
    let denied = convoy(running, "pause web --as ann").refused();
    assert!(denied.contains("ann"), "{denied}");
}

fn kubectl_has_it_as_a_plugin(running: &Running, directory: &Path) {
    let plugins = directory.join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    let link = plugins.join("kubectl-convoy");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_convoy"), link).unwrap();
    let path = format!("{}:{}", plugins.display(), std::env::var("PATH").unwrap_or_default());
    let mut kubectl = running.kubectl_command("convoy get -A -o name");
    assert_eq!(ran(kubectl.env("PATH", &path)).ok(), "deployment.apps/web\ndeployment.apps/web\n");
    let mut kubectl = running.kubectl_command("convoy status --help");
    let help = ran(kubectl.env("PATH", &path)).ok();
    assert!(help.contains("Usage: kubectl convoy status"), "{help}");
}

/// A rollout of each dialect on a server where nobody acts on them.
pub(crate) fn rollouts_of_all_dialects() -> Vec<Value> {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let fleet = "placement.kubernetes-fleet.io/v1beta1";
    let selector = json!({"group": "", "version": "v1", "kind": "Namespace", "name": "default"});
    vec![
        json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
            "metadata": {"name": "tuning"}, "spec": {
                "nodeSelectors": {"matchLabels": {"kubernetes.io/os": "linux"}},
                "packages": {"tuning": {"version": "1.0.0", "image": "example/tuning"}}}}),
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"},
            "spec": {"template": {"spec": {"nodeClassRef": class, "requirements": []}},
                "disruption": {"budgets": [{"nodes": "2"}], "consolidateAfter": "0s"}}}),
        json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "stores"}, "spec": {}}),
        json!({"apiVersion": "work.open-cluster-management.io/v1alpha1",
            "kind": "ManifestWorkReplicaSet", "metadata": {"name": "till"}, "spec": {
                "manifestWorkTemplate": {"workload": {"manifests": [{"apiVersion": "v1",
                    "kind": "ConfigMap", "metadata": {"name": "till", "namespace": "default"}}]}},
                "placementRefs": [{"name": "stores"}]}}),
        json!({"apiVersion": fleet, "kind": "ClusterResourcePlacement", "metadata": {"name": "shop"},
            "spec": {"resourceSelectors": [selector], "strategy": {"type": "External"}}}),
        json!({"apiVersion": fleet, "kind": "ClusterStagedUpdateStrategy",
            "metadata": {"name": "slow"}, "spec": {"stages": [{"name": "canary",
                "afterStageTasks": [{"type": "Approval"}]}]}}),
        json!({"apiVersion": fleet, "kind": "ClusterStagedUpdateRun", "metadata": {"name": "first"},
            "spec": {"placementName": "shop", "stagedRolloutStrategyName": "slow", "state": "Run"}}),
        json!({"apiVersion": fleet, "kind": "ClusterApprovalRequest",
            "metadata": {"name": "first-after-canary"},
            "spec": {"parentStageRollout": "first", "targetStage": "canary"}}),
    ]
}

#[test]
fn every_dialect_is_acted_on_by_its_own_fields() {
    let directory = tempfile::tempdir().unwrap();
    let mut up = command(&directory.path().join("data"));
    let running = Running::start_as(up.arg("--controllers=none"));
    for dialect in ["skyhook", "fleet", "karpenter", "ocm"] {
        define(&running, dialect);
    }
    for object in rollouts_of_all_dialects() {
        apply(&running, &object);
    }
    let names = convoy(&running, "get -o name").ok();
    assert_eq!(names.lines().count(), 6, "{names}");
    nodes_are_paused(&running);
    clusters_are_paused(&running);
    what_an_api_lacks_is_said(&running);
}

fn nodes_are_paused(running: &Running) {
    let annotations = |what: &str| running.get(what)["metadata"]["annotations"].clone();
    let budgets = || running.get("nodepool general")["spec"]["disruption"]["budgets"].clone();
    convoy(running, "pause skyhook/tuning").ok();
    assert_eq!(annotations("skyhook tuning")["skyhook.nvidia.com/pause"], "true");
    convoy(running, "abort tuning --reason 'not today'").ok();
    assert_eq!(annotations("skyhook tuning")["skyhook.nvidia.com/disable"], "true");
    convoy(running, "resume tuning").ok();
    assert!(annotations("skyhook tuning").get("skyhook.nvidia.com/pause").is_none());
    assert!(annotations("skyhook tuning").get("skyhook.nvidia.com/disable").is_none());
    let retry = convoy(running, "retry tuning").refused();
    assert!(retry.contains("has no failed package and no stopped compartment"), "{retry}");
    convoy(running, "pause nodepool general").ok();
    assert_eq!(budgets(), json!([{"nodes": "2"}, {"nodes": "0"}]));
    convoy(running, "resume general").ok();
    assert_eq!(budgets(), json!([{"nodes": "2"}]));
}

fn clusters_are_paused(running: &Running) {
    let state = || running.get("csur first")["spec"]["state"].clone();
    convoy(running, "pause placement/stores").ok();
    let disabled = "cluster.open-cluster-management.io/experimental-scheduling-disable";
    let annotations = running.get("placements.cluster.open-cluster-management.io stores")
        ["metadata"]["annotations"]
        .clone();
    assert_eq!(annotations[disabled], "true");
    assert!(convoy(running, "get placement").ok().contains("Paused"));
    convoy(running, "pause csur/first").ok();
    assert_eq!(state(), "Stop");
    convoy(running, "resume first").ok();
    assert_eq!(state(), "Run");
    let unknown = convoy(running, "approve first --stage absent").refused();
    assert!(unknown.contains("has no stage \"absent\" that waits for approval"), "{unknown}");
    convoy(running, "approve first").ok();
    let conditions =
        running.get("clusterapprovalrequest first-after-canary")["status"]["conditions"].clone();
    assert_eq!(
        (&conditions[0]["type"], &conditions[0]["status"]),
        (&json!("Approved"), &json!("True"))
    );
    let again = convoy(running, "approve first").refused();
    assert!(again.contains("has no stage that waits for approval"), "{again}");
    let history = convoy(running, "history csur/first").ok();
    assert!(history.contains("approve"), "{history}");
}

fn what_an_api_lacks_is_said(running: &Running) {
    let kinds = [
        "skyhook/tuning",
        "nodepool/general",
        "placement/stores",
        "mwrs/till",
        "crp/shop",
        "csur/first",
    ];
    let verbs = ["pause", "resume", "abort", "retry", "undo", "approve", "reset"];
    let mut text = String::new();
    for kind in kinds {
        for verb in verbs {
            let ran = convoy(running, &format!("{verb} {kind} --dry-run"));
            _ = write!(text, "$ convoy {verb} {kind} --dry-run\n{}", ran.said());
        }
    }
    let golden = format!("{}/tests/golden/daily/interventions.txt", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(golden, &text);
}
