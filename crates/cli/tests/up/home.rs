//! The two homes of the control loop, each started once for all the tests that meet it: our
//! own server with its simulated nodes, and a real Kubernetes with the same nodes attached.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use convoy_kubernetes::{ControlPlane, Process, Programs, Running, WITHOUT_DEPLOYMENTS};
use serde_json::Value;

use crate::access::Access;

pub(crate) const CONVOY: &str = env!("CARGO_BIN_EXE_convoy");

/// Nodes that are quick, and images that tell what becomes of their pods.
const SCENARIO: &str = r#"
nodes: [{count: 4}]
latencies: {pull: 5ms..20ms, start: 5ms..20ms, ready: 10ms..50ms, stop: 5ms..30ms}
rules:
- when: {image: "*:stuck"}
  then: {fails: never-ready}
- when: {image: "*:bad"}
  then: {fails: image-pull-error}
"#;

/// An API server with nodes, and everything that keeps it running.
pub(crate) struct Home {
    /// As who may do everything.
    pub(crate) access: Access,
    _processes: Vec<Process>,
    _running: Box<dyn Send + Sync>,
}

impl Home {
    /// A namespace of a test's own.
    pub(crate) fn namespace(&self, test: &str) -> Access {
        self.access.within(&test.replace('_', "-"))
    }
}

/// `convoy up` with simulated nodes, and `convoy run` with both dialects.
pub(crate) fn embedded() -> &'static Home {
    static HOME: OnceLock<Home> = OnceLock::new();
    HOME.get_or_init(|| {
        let running = Running::new("embedded").unwrap();
        let scenario = running.write("scenario.yaml", SCENARIO).unwrap();
        let kubeconfig = running.directory.join("kubeconfig");
        let mut up = Command::new(CONVOY);
        up.args(["up", "--ephemeral", "--listen=127.0.0.1:0", "--output=json", "--kubeconfig"]);
        up.arg(&kubeconfig).arg("--scenario").arg(scenario);
        let (up, ready) = start(&running, &mut up);
        let ready: Value = serde_json::from_str(&ready).unwrap();
        assert_eq!(ready["kubeconfig"].as_str(), kubeconfig.to_str());
        let (control, _) = start(&running, &mut control_loop(&kubeconfig, "apps,replicasets"));
        let access = Access::new(kubeconfig);
        Home { access, _processes: vec![control, up], _running: Box::new(running) }
    })
}

/// kube-apiserver, etcd and kube-controller-manager without its deployment controller; `convoy
/// fleet` as its nodes, and `convoy run` with the account of `deploy/`.
pub(crate) fn real() -> &'static Home {
    static HOME: OnceLock<Home> = OnceLock::new();
    HOME.get_or_init(|| {
        let control_plane = real_control_plane();
        let manager = control_plane.manage(WITHOUT_DEPLOYMENTS, &[]).unwrap();
        let fleet = fleet(&control_plane);
        let access = Access::new(control_plane.kubeconfig.clone());
        let account = deploy(&control_plane, &access);
        let mut control = control_loop(&account, "apps");
        let (control, _) = start(&control_plane.running, control.arg("--leader-elect"));
        let processes = vec![control, fleet, manager];
        Home { access, _processes: processes, _running: Box::new(control_plane) }
    })
}

pub(crate) fn real_control_plane() -> ControlPlane {
    let programs = Programs::find().unwrap_or_else(|error| panic!("this test needs it: {error}"));
    ControlPlane::start(&programs, &[]).unwrap()
}

/// Simulated nodes on a real API server, which has no scheduler.
pub(crate) fn fleet(control_plane: &ControlPlane) -> Process {
    let running = &control_plane.running;
    let scenario = running.write("scenario.yaml", SCENARIO).unwrap();
    let mut fleet = Command::new(CONVOY);
    fleet.args(["fleet", "--schedule", "--kubeconfig"]).arg(&control_plane.kubeconfig);
    let (fleet, ready) = start(running, fleet.arg("--scenario").arg(scenario));
    assert_eq!(ready, "4 simulated nodes are ready\n");
    fleet
}

/// Applies the manifests; a kubeconfig of the account that they make.
fn deploy(control_plane: &ControlPlane, access: &Access) -> PathBuf {
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    access.kubectl(&format!("apply -k {}", manifests.display()));
    let token = access.kubectl("create token convoy -n convoy-system --duration=2h");
    control_plane.kubeconfig_of("account", token.trim()).unwrap()
}

/// `convoy run`, to be started.
pub(crate) fn control_loop(kubeconfig: &Path, dialects: &str) -> Command {
    let mut command = Command::new(CONVOY);
    command.args(["run", "--dialects", dialects, "--kubeconfig"]).arg(kubeconfig);
    command
}

/// Starts a program that prints a line once it is ready; that line.
pub(crate) fn start(running: &Running, command: &mut Command) -> (Process, String) {
    let mut process = running.start_as(command.stdout(Stdio::piped())).unwrap();
    let line = process.first_line().unwrap();
    (process, line)
}
