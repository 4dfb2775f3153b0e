//! The two homes of the control loop, each started once for all the tests that meet it: our
//! own server with its simulated nodes, and a real Kubernetes with the same nodes attached.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use convoy_kubernetes::{ControlPlane, Process, Running, WITHOUT_DEPLOYMENTS};
use serde_json::{Value, json};

use crate::access::Access;
use crate::audit::AuditLog;

pub(crate) const CONVOY: &str = env!("CARGO_BIN_EXE_convoy");

/// Nodes that are quick and really reboot; images that tell what becomes of their pods, and
/// packages that fail or take their time as their images, versions and variables say.
const BEHAVIOUR: &str = r#"
latencies: {pull: 5ms..20ms, start: 5ms..20ms, ready: 10ms..50ms, stop: 5ms..30ms, init: 5ms..30ms}
rules:
- when: {image: "*:stuck"}
  then: {fails: never-ready}
- when: {image: "*:bad"}
  then: {fails: image-pull-error}
- when: {package: {version: "*-absent", step: init}}
  then: {fails: image-pull-error}
- when: {image: "*/broken*"}
  then: {fails: crash, after: 5ms, exitCode: 2}
- when: {env: {EXIT_CODE: "2"}}
  then: {fails: crash, after: 5ms, exitCode: 2}
- when: {env: {SLEEP_LEN: "1000"}}
  then: {init: 1000s}
- when: {package: {interrupt: node_restart}}
  then: {reboots: 100ms}
"#;

/// The nodes where Deployments go.
const NODES: &str = "[{count: 4}]";

/// And those of Skyhooks, which drain them: nobody else is put there.
const WITH_SKYHOOKS: &str = r#"[{count: 4}, {name: hook, count: 60, capacity: {pods: "0"}}]"#;

/// A scenario with these nodes.
pub(crate) fn scenario(nodes: &str) -> String {
    format!("nodes: {nodes}\n{BEHAVIOUR}")
}

/// An API server with nodes, and everything that keeps it running.
pub(crate) struct Home {
    /// As who may do everything.
    pub(crate) access: Access,
    _processes: Vec<Process>,
    running: ServerKind,
}

/// Where the programs run.
enum ServerKind {
    Embedded { _running: Running },
    Real(ControlPlane),
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
        let scenario = running.write("scenario.yaml", &scenario(NODES)).unwrap();
        let kubeconfig = running.directory.join("kubeconfig");
        let mut up = Command::new(CONVOY);
        up.args(["up", "--ephemeral", "--listen=127.0.0.1:0", "--output=json", "--kubeconfig"]);
        // One control loop only: the other process.
        up.arg(&kubeconfig).arg("--controllers=none").arg("--scenario").arg(scenario);
        let (up, ready) = start(&running, &mut up);
        let ready: Value = serde_json::from_str(&ready).unwrap();
        assert_eq!(ready["kubeconfig"].as_str(), kubeconfig.to_str());
        let (control, _) = start(&running, &mut control_loop(&kubeconfig, "apps,replicasets"));
        let access = Access::new(kubeconfig);
        let running = ServerKind::Embedded { _running: running };
        Home { access, _processes: vec![control, up], running }
    })
}

/// kube-apiserver, etcd and kube-controller-manager without its deployment controller; `convoy
/// fleet` as its nodes, and `convoy run` with the account of `deploy/`.
pub(crate) fn real() -> &'static Home {
    static HOME: OnceLock<Home> = OnceLock::new();
    HOME.get_or_init(|| {
        let control_plane = real_control_plane();
        let manager = control_plane.manage(WITHOUT_DEPLOYMENTS, &[]).unwrap();
        let fleet = attach(&control_plane, &scenario(WITH_SKYHOOKS));
        let access = Access::new(control_plane.kubeconfig.clone());
        let account = deploy(&control_plane, &access, "deploy", "convoy-system");
        let mut control = control_loop(&account, "apps");
        let (control, _) = start(&control_plane.running, control.arg("--leader-elect"));
        let processes = vec![control, fleet, manager];
        Home { access, _processes: processes, running: ServerKind::Real(control_plane) }
    })
}

/// The same Kubernetes, and a loop for Skyhooks with the account of `deploy/skyhook`, which serves
/// its numbers on a port.
pub(crate) fn real_with_skyhooks(metrics: u16) -> (Access, Process) {
    let home = real();
    let ServerKind::Real(control_plane) = &home.running else { unreachable!("it is real") };
    define(&home.access, "skyhook");
    let account = deploy(control_plane, &home.access, "deploy/skyhook", "skyhook");
    let mut control = control_loop(&account, "skyhook");
    control.arg(format!("--metrics-listen=127.0.0.1:{metrics}"));
    let (control, _) = start(&control_plane.running, &mut control);
    (home.access.clone(), control)
}

/// The same Kubernetes as the hub of member clusters that are real, too: a loop with the account of
/// `deploy/fleet`, and agents with the account of `deploy/fleet-agent` on their member and one on
/// the hub that may do what the hub grants to it.
pub(crate) fn real_with_members(
    names: &[&str],
    flags: &[&str],
) -> (Access, BTreeMap<String, Access>, Vec<Process>) {
    let home = real();
    let ServerKind::Real(hub) = &home.running else { unreachable!("it is real") };
    let access = &home.access;
    define(access, "fleet");
    let mut control = control_loop(&deploy(hub, access, "deploy/fleet", "fleet-system"), "fleet");
    let (control, _) = start(&hub.running, control.args(flags));
    let mut processes = vec![control];
    let mut members = BTreeMap::new();
    for name in names {
        let member = real_control_plane();
        processes.push(member.manage("*", &[]).unwrap());
        processes.push(fleet(&member));
        let at = Access::new(member.kubeconfig.clone());
        define(&at, "fleet");
        install(&at, "deploy/fleet-agent");
        access.kubectl(&format!("create serviceaccount {name} -n fleet-system"));
        let identity = json!({"kind": "ServiceAccount", "namespace": "fleet-system", "name": name});
        let registered = json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
            "kind": "MemberCluster", "metadata": {"name": name, "labels": {"name": name}},
            "spec": {"identity": identity, "heartbeatPeriodSeconds": 15}});
        access.kubectl_with("apply -f -", &registered.to_string());
        let mut agent = Command::new(CONVOY);
        agent.args(["agent", "--cluster", name, "--hub-kubeconfig"]);
        agent.arg(account(hub, access, "fleet-system", name)).arg("--member-kubeconfig");
        agent.arg(account(&member, &at, "fleet-system", "convoy-agent"));
        processes.push(start(&member.running, &mut agent).0);
        // It is gone with this process: what is in a static is never dropped.
        std::mem::forget(member);
        members.insert((*name).to_owned(), at);
    }
    access.kubectl("wait --for=condition=Joined memberclusters --all --timeout=120s");
    (access.clone(), members, processes)
}

/// The cluster that the hub of Open Cluster Management manages in [`real_with_ocm`]: itself.
pub(crate) const MANAGED: &str = "local-cluster";

/// The same Kubernetes as a hub of Open Cluster Management that manages itself: a loop with the
/// account of `deploy/ocm`, and agents with the account of `deploy/ocm-agent` and one that has the
/// roles that the hub makes for the cluster.
pub(crate) fn real_with_ocm() -> (Access, Vec<Process>) {
    const HUB: &str = "open-cluster-management-hub";
    let home = real();
    let ServerKind::Real(hub) = &home.running else { unreachable!("it is real") };
    let access = &home.access;
    define(access, "ocm");
    let mut control = control_loop(&deploy(hub, access, "deploy/ocm", HUB), "ocm");
    let (control, _) = start(&hub.running, &mut control);
    install(access, "deploy/ocm-agent");
    let registered = json!({"apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster", "metadata": {"name": MANAGED},
        "spec": {"hubAcceptsClient": true}});
    access.kubectl_with("apply -f -", &registered.to_string());
    let accepted = "wait --for=condition=HubAcceptedManagedCluster managedcluster --all";
    access.kubectl(&format!("{accepted} --timeout=60s"));
    access.kubectl(&format!("create serviceaccount {MANAGED} -n {HUB}"));
    let (role, who) = ("open-cluster-management:managedcluster", format!("{HUB}:{MANAGED}"));
    let bind = |binding: &str, role: &str| {
        access.kubectl(&format!("create {binding} --clusterrole={role} --serviceaccount={who}"));
    };
    bind(&format!("clusterrolebinding convoy:{MANAGED}"), &format!("{role}:{MANAGED}"));
    for agent in ["registration", "work"] {
        bind(&format!("rolebinding convoy:{agent} -n {MANAGED}"), &format!("{role}:{agent}"));
    }
    let mut agent = Command::new(CONVOY);
    agent.args(["agent", "--api", "ocm", "--cluster", MANAGED, "--hub-kubeconfig"]);
    agent.arg(account(hub, access, HUB, MANAGED)).arg("--member-kubeconfig");
    agent.arg(account(hub, access, "open-cluster-management-agent", "convoy-agent"));
    let (agent, _) = start(&hub.running, &mut agent);
    (access.clone(), vec![control, agent])
}

/// A Kubernetes of its own with one simulated node, and a loop with the account of
/// `deploy/karpenter` that makes more of them and converts NodePools.
pub(crate) fn real_with_karpenter() -> (Access, Vec<Process>) {
    const WITHIN: &str = "karpenter";
    let control_plane = real_control_plane();
    let manager = control_plane.manage("*", &[]).unwrap();
    let fleet = attach(&control_plane, &scenario("[{count: 1}]"));
    let access = Access::new(control_plane.kubeconfig.clone());
    define(&access, "karpenter");
    let mut control =
        control_loop(&deploy(&control_plane, &access, "deploy/karpenter", WITHIN), "karpenter");
    control.args(["--webhook-listen=127.0.0.1:0", "--webhook-host=127.0.0.1", "--leader-elect"]);
    control.args(["--webhook-namespace", WITHIN, "--lease-namespace", WITHIN]);
    let (control, _) = start(&control_plane.running, &mut control);
    // It is gone with this process: what is in a static is never dropped.
    std::mem::forget(control_plane);
    (access, vec![control, fleet, manager])
}

/// Makes the kinds of a dialect known.
pub(crate) fn define(access: &Access, dialect: &str) {
    let definitions = Command::new(CONVOY).args(["crds", "--dialect", dialect]).output().unwrap();
    let definitions = String::from_utf8(definitions.stdout).unwrap();
    access.kubectl_with("apply --server-side -f -", &definitions);
    access.kubectl("wait --for=condition=established crd --all --timeout=60s");
}

pub(crate) fn real_control_plane() -> ControlPlane {
    // As nearly every cluster: packages of Skyhooks may do anything to their node.
    let (control_plane, log) = AuditLog::control_plane(&[("--allow-privileged", "true")]);
    log.keep();
    control_plane
}

/// Simulated nodes on a real API server, which has no scheduler.
pub(crate) fn fleet(control_plane: &ControlPlane) -> Process {
    attach(control_plane, &scenario(NODES))
}

pub(crate) fn attach(control_plane: &ControlPlane, scenario: &str) -> Process {
    let running = &control_plane.running;
    let scenario = running.write("scenario.yaml", scenario).unwrap();
    let mut fleet = Command::new(CONVOY);
    fleet.args(["fleet", "--schedule", "--kubeconfig"]).arg(&control_plane.kubeconfig);
    let (fleet, ready) = start(running, fleet.arg("--scenario").arg(scenario));
    assert!(ready.ends_with(" simulated nodes are ready\n"), "{ready}");
    fleet
}

/// Applies manifests; a kubeconfig of the account that they make.
fn deploy(control_plane: &ControlPlane, access: &Access, manifests: &str, within: &str) -> PathBuf {
    install(access, manifests);
    account(control_plane, access, within, "convoy")
}

pub(crate) fn install(access: &Access, manifests: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(manifests);
    access.kubectl(&format!("apply -k {}", path.display()));
}

/// A kubeconfig of an account.
pub(crate) fn account(
    control_plane: &ControlPlane,
    access: &Access,
    within: &str,
    name: &str,
) -> PathBuf {
    let token = access.kubectl(&format!("create token {name} -n {within} --duration=2h"));
    control_plane.kubeconfig_of(&format!("{within}-{name}"), token.trim()).unwrap()
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
