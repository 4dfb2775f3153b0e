//! What is refused, and what is filled in, before Skyhooks and their policies are stored: by the
//! embedded server itself, and on a real one by the webhooks that `convoy run` serves.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use convoy_kubernetes::{ControlPlane, Process, free_ports};
use serde_json::{Value, json};

use crate::access::Access;
use crate::home::{CONVOY, control_loop, fleet, real_control_plane, start};
use crate::running::Running;

const WAIT_MAX: Duration = Duration::from_mins(2);

fn object(kind: &str, name: &str, spec: &Value) -> String {
    json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": kind, "metadata": {"name": name},
        "spec": spec})
    .to_string()
}

fn skyhook(name: &str, policy: &str) -> String {
    let packages = json!({"tuning": {"version": "1.0.0", "image": "host:5000/tuning:ignored"}});
    object("Skyhook", name, &json!({"deploymentPolicy": policy, "packages": packages}))
}

/// A Skyhook that depends on a package that is not there.
fn thirsty() -> String {
    let package = |version: &str, on: Value| json!({"version": version, "image": "example/agentless", "dependsOn": on});
    let packages = json!({"cookies": package("3.2.3", json!({"milkshake": "1.2.3"})),
        "milk": package("1.2", json!({}))});
    object("Skyhook", "thirsty", &json!({"packages": packages}))
}

fn define(access: &Access) {
    let definitions = Command::new(CONVOY).args(["crds", "--dialect", "skyhook"]).output().unwrap();
    let definitions = String::from_utf8(definitions.stdout).unwrap();
    access.kubectl_with("apply -f -", &definitions);
    access.kubectl("wait --for=condition=established crd --all --timeout=60s");
}

/// What upstream's suite asks of its webhooks, in both homes.
fn the_rules_hold(access: &Access) {
    let refused = access.refused("apply -f -", &thirsty());
    assert!(
        refused.contains(
            "admission webhook \"validate-skyhook.nvidia.com\" denied the request: graph is \
             invalid: error graph is not valid, missing: [milkshake|1.2.3]"
        ),
        "{refused}"
    );
    let compartment = |label: &str| json!({"name": "twice", "budget": {"count": 1}, "selector": {"matchLabels": {"a": label}}});
    let spec = json!({"default": {"budget": {"percent": 50}, "strategy": {"fixed": {}}},
        "compartments": [compartment("b"), compartment("c")]});
    let refused = access.refused("apply -f -", &object("DeploymentPolicy", "twice", &spec));
    assert!(
        refused.contains(
            "admission webhook \"validate-deploymentpolicy.nvidia.com\" denied the request: \
             compartment name \"twice\" is not unique"
        ),
        "{refused}"
    );
    let refused = access.refused("apply -f -", &skyhook("lost", "nowhere"));
    assert!(refused.contains("deploymentPolicy \"nowhere\" not found"), "{refused}");

    // What is sound is stored with everything filled in.
    let spec = json!({"default": {"budget": {"percent": 100}, "strategy": {"exponential": {}}}});
    access.kubectl_with("apply -f -", &object("DeploymentPolicy", "careful", &spec));
    assert_eq!(
        access.get("deploymentpolicy careful")["spec"]["default"]["strategy"]["exponential"],
        json!({"initialBatch": 1, "batchThreshold": 100, "safetyLimit": 50, "growthFactor": 2})
    );
    access.kubectl_with("apply -f -", &skyhook("tuned", "careful"));
    let stored = access.get("skyhook tuned");
    let package = &stored["spec"]["packages"]["tuning"];
    assert_eq!(
        (&package["name"], &package["image"]),
        (&json!("tuning"), &json!("host:5000/tuning"))
    );
    assert_eq!(stored["spec"]["priority"], 200);

    let elsewhere = r#"patch skyhook tuned --type=merge -p {"spec":{"deploymentPolicy":"gone"}}"#;
    let refused = access.refused(elsewhere, "");
    assert!(refused.contains("deploymentPolicy \"gone\" not found"), "{refused}");
    let refused = access.refused("delete deploymentpolicy careful", "");
    assert!(
        refused.contains(
            "cannot delete DeploymentPolicy \"careful\": still referenced by 1 Skyhook(s): [tuned]"
        ),
        "{refused}"
    );
    access.kubectl("annotate skyhook tuned skyhook.nvidia.com/pause=true");
    access.kubectl("delete skyhook tuned --timeout=60s");
    access.kubectl("delete deploymentpolicy careful");
}

#[test]
fn the_embedded_server_has_the_rules_built_in() {
    let directory = tempfile::tempdir().unwrap();
    let home = Running::start_in(directory.path(), &["--controllers", "skyhook"]);
    the_rules_hold(&home);
    // Nothing is registered for it.
    assert_eq!(home.kubectl("get validatingwebhookconfigurations -o name"), "");
    // Each logical cluster has its own policies.
    let metrics = home.kubectl("get --raw /metrics");
    let counted = "name=\"validate-skyhook.nvidia.com\"";
    assert!(metrics.contains(counted), "{metrics}");
}

#[test]
fn the_embedded_server_can_leave_the_rules_out() {
    let directory = tempfile::tempdir().unwrap();
    let home = Running::start_in(directory.path(), &["--skip-admission"]);
    define(&home);
    home.kubectl_with("apply -f -", &thirsty());
    let stored = home.get("skyhook thirsty");
    assert_eq!(stored["spec"]["packages"]["milk"]["name"], Value::Null);
}

/// Waits until `kubectl describe` of an object says all of `wanted`.
fn described(access: &Access, object: &str, wanted: &[&str]) {
    let begun = Instant::now();
    loop {
        let text = access.kubectl(&format!("describe {object}"));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if wanted.iter().all(|it| text.contains(it)) {
            return;
        }
        assert!(begun.elapsed() < WAIT_MAX, "{object} does not say {wanted:?}: {text}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What got past admission is not passed over in silence.
#[test]
fn invalid_objects_in_the_store_say_so() {
    let directory = tempfile::tempdir().unwrap();
    let home =
        Running::start_in(directory.path(), &["--skip-admission", "--controllers", "skyhook"]);
    home.kubectl_with("apply -f -", &thirsty());
    let refused = "Type: convoy.dev/Refused";
    described(
        &home,
        "skyhook thirsty",
        &[refused, "Reason: Invalid", "milkshake", "Warning Refused"],
    );
    let budget = |count: i64| json!({"default": {"budget": {"count": count, "percent": 50}}});
    home.kubectl_with("apply -f -", &object("DeploymentPolicy", "careful", &budget(1)));
    home.kubectl_with("apply -f -", &skyhook("tuned", "careful"));
    described(&home, "skyhook tuned", &[refused, "Reason: HangsOnRefused", "DeploymentPolicy"]);
    described(&home, "deploymentpolicy careful", &["Warning Refused", "until it is corrected"]);
    let corrected = json!({"default": {"budget": {"count": 1}}});
    home.kubectl_with("apply -f -", &object("DeploymentPolicy", "careful", &corrected));
    described(&home, "skyhook tuned", &[refused, "Reason: Accepted"]);
}

/// As in a cluster: `convoy run` registers a service, and the server asks whoever stands behind it.
#[test]
fn webhooks_are_asked_through_their_service() {
    let directory = tempfile::tempdir().unwrap();
    let home = Running::start_in(directory.path(), &["--skip-admission"]);
    define(&home);
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/skyhook");
    home.kubectl(&format!("apply -k {}", manifests.display()));
    let [port] = free_ports().unwrap();
    // No network leads to pods here, and nobody keeps endpoints: there is one, on loopback.
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": "convoy-webhook", "namespace": "skyhook"},
        "subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "webhooks", "port": port}]}]});
    home.kubectl_with("apply -f -", &endpoints.to_string());
    let place = convoy_kubernetes::Running::new("webhooks").unwrap();
    let mut command = control_loop(&home.kubeconfig, "skyhook");
    command.arg(format!("--webhook-listen=127.0.0.1:{port}")).arg("--webhook-namespace=skyhook");
    let _convoy = start(&place, &mut command).0;
    the_rules_hold(&home);
}

/// The guide's example of a refusal says what the server says.
#[test]
fn the_guide_shows_a_refusal() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/skyhook.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = guide.split_once("## Validation at admission").unwrap();
    let block = |language: &str| {
        let (_, body) = rest.split_once(&format!("```{language}\n")).unwrap();
        body.split_once("```").unwrap().0
    };
    let home = Running::start();
    define(&home);
    let refused = home.refused("apply -f -", block("yaml"));
    let shown: Vec<&str> = block("text").lines().skip(1).collect();
    assert_eq!(refused.trim().replace("STDIN", "broken.yaml"), shown.join("\n"));
}

/// A real API server, its controllers and simulated nodes, and what `deploy/skyhook` makes.
struct Cluster {
    control_plane: ControlPlane,
    access: Access,
    /// Of the account that the manifests make.
    account: std::path::PathBuf,
    _processes: Vec<Process>,
}

impl Cluster {
    fn start() -> Self {
        let control_plane = real_control_plane();
        let manager = control_plane.manage("*", &[]).unwrap();
        let fleet = fleet(&control_plane);
        let access = Access::new(control_plane.kubeconfig.clone());
        define(&access);
        let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/skyhook");
        access.kubectl(&format!("apply -k {}", manifests.display()));
        let token = access.kubectl("create token convoy -n skyhook --duration=2h");
        let account = control_plane.kubeconfig_of("account", token.trim()).unwrap();
        Self { control_plane, access, account, _processes: vec![fleet, manager] }
    }

    /// `convoy run` outside the cluster, with the webhooks.
    fn run(&self) -> Process {
        let mut command = control_loop(&self.account, "skyhook");
        command.args(["--webhook-listen=127.0.0.1:0", "--webhook-host=127.0.0.1"]);
        command.args(["--webhook-namespace=skyhook", "--leader-elect"]);
        command.args(["--lease-namespace=skyhook"]);
        start(&self.control_plane.running, &mut command).0
    }

    /// Waits until the API server asks the webhooks, which takes it a moment.
    fn is_asking(&self) {
        until("it does not ask", || {
            let output = self.access.try_kubectl("apply --dry-run=server -f -", &thirsty());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            said.contains("validate-skyhook.nvidia.com").then_some(()).ok_or(said)
        });
    }
}

/// Looks until something is so.
fn until(what: &str, is_so: impl Fn() -> Result<(), String>) {
    let begun = Instant::now();
    while let Err(said) = is_so() {
        assert!(begun.elapsed() < WAIT_MAX, "{what}: {said}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

const VALIDATING: &str = "validatingwebhookconfiguration skyhook-operator-validating-webhook";
const MUTATING: &str = "mutatingwebhookconfiguration skyhook-operator-mutating-webhook";
const SECRET: &str = "secret webhook-cert -n skyhook";

fn bundles(access: &Access) -> Vec<Value> {
    let of = |what: &str| {
        let configuration = access.get(what);
        let webhooks = configuration["webhooks"].as_array().unwrap().clone();
        webhooks.into_iter().map(|webhook| webhook["clientConfig"]["caBundle"].clone())
    };
    of(VALIDATING).chain(of(MUTATING)).collect()
}

#[test]
fn a_real_server_asks_the_webhooks() {
    let cluster = Cluster::start();
    let access = &cluster.access;
    let convoy = cluster.run();
    cluster.is_asking();
    the_rules_hold(access);

    // With the account of the manifests a rollout comes to its end.
    let packages = json!({"tuning": {"version": "1.0.0", "image": "example/tuning"},
        "driver": {"version": "1.0.0", "image": "example/driver", "dependsOn": {"tuning": "1.0.0"},
            "configMap": {"a": "b"}, "interrupt": {"type": "reboot"}}});
    access.kubectl_with("apply -f -", &object("Skyhook", "all", &json!({"packages": packages})));
    access.kubectl("wait --for=condition=Ready skyhook/all --timeout=120s");
    assert_eq!(access.get("skyhook all")["status"]["completeNodes"], "4/4");

    // A change by somebody else is undone.
    let secret = access.get(SECRET);
    let authority = secret["data"]["ca.crt"].clone();
    assert!(bundles(access).iter().all(|bundle| *bundle == authority));
    let expires = &secret["metadata"]["annotations"]["skyhook.nvidia.com/expiration"];
    assert!(expires.as_str().unwrap().ends_with("T00:00:00Z"), "{expires}");
    access.kubectl(&format!(
        "patch {VALIDATING} --type=json -p \
         [{{\"op\":\"remove\",\"path\":\"/webhooks/0/clientConfig/caBundle\"}},\
         {{\"op\":\"replace\",\"path\":\"/webhooks/1/failurePolicy\",\"value\":\"Ignore\"}}]"
    ));
    access.until(VALIDATING, |found| {
        found["webhooks"][0]["clientConfig"]["caBundle"] == authority
            && found["webhooks"][1]["failurePolicy"] == "Fail"
    });
    access.kubectl(&format!("delete {MUTATING}"));
    until("it is not registered again", || {
        let output = access.try_kubectl(&format!("get {MUTATING}"), "");
        output.status.success().then_some(()).ok_or_else(String::new)
    });

    // A certificate that ends soon is replaced, and nobody notices.
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24);
    access.kubectl(&format!("annotate {SECRET} --overwrite skyhook.nvidia.com/expiration={soon}"));
    let renewed = access.until(SECRET, |secret| secret["data"]["ca.crt"] != authority);
    until("the new authority is not trusted", || {
        let bundles = bundles(access);
        let trusted = bundles.iter().all(|bundle| *bundle == renewed["data"]["ca.crt"]);
        trusted.then_some(()).ok_or_else(|| format!("{bundles:?}"))
    });
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(13) {
        let refused = access.refused("apply --dry-run=server -f -", &thirsty());
        assert!(refused.contains("graph is invalid"), "{refused}");
        std::thread::sleep(Duration::from_millis(200));
    }

    // Without anybody to ask nothing gets in, and what is there can still go.
    assert_eq!(convoy.end().unwrap(), Some(0));
    let refused = access.refused("apply -f -", &skyhook("late", ""));
    assert!(refused.contains("failed calling webhook"), "{refused}");
    access.kubectl("delete skyhook all --wait=false");
    let _convoy = cluster.run();
    access.kubectl("wait --for=delete skyhook/all --timeout=60s");
}
