//! How a process ends that serves webhooks: the next leader acts at once, and reviews are answered until
//! the API server has learned that they go elsewhere.

use std::time::{Duration, Instant};

use convoy_kubernetes::{Process, free_ports};

use crate::access::Access;
use crate::home;
use crate::running::Running;
use crate::scrape::request;

/// Never held, so that nobody waits for a holder.
const LEASE: &str =
    "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: convoy, namespace: default}";

/// A policy that only webhooks refuse.
const REFUSED: &str = "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: DeploymentPolicy\n\
                       metadata: {name: refused}\n\
                       spec: {default: {budget: {percent: 10}, strategy: {fixed: {}}}, \
                       compartments: [\
                       {name: a, budget: {count: 1}, selector: {matchLabels: {a: b}}}, \
                       {name: a, budget: {count: 1}, selector: {matchLabels: {a: c}}}]}\n";

/// The port of metrics of a process.
struct Leader {
    process: Process,
    metrics: u16,
}

impl Leader {
    /// A process that leads, serves webhooks, and is asked.
    fn start(place: &convoy_kubernetes::Running, access: &Access) -> Self {
        let [metrics] = free_ports().unwrap();
        let mut command = home::control_loop(&access.kubeconfig, "skyhook");
        command.args(["--webhook-listen=127.0.0.1:0", "--webhook-host=127.0.0.1"]);
        command.args(["--webhook-namespace=default"]);
        command.args(["--leader-elect", "--lease-namespace=default"]);
        command.arg(format!("--metrics-listen=127.0.0.1:{metrics}"));
        let leader = Self { process: home::start(place, &mut command).0, metrics };
        access.until("lease convoy", |lease| !lease["spec"]["holderIdentity"].is_null());
        until("it is not ready", || leader.is_ready());
        until("nobody asks it", || said(access).contains("is not unique"));
        leader
    }

    fn is_ready(&self) -> bool {
        let address = format!("127.0.0.1:{}", self.metrics);
        request(&address, "GET", "/readyz", "").starts_with("HTTP/1.0 200")
    }

    /// Tells it to end, and waits until it knows.
    fn terminate(&self) {
        self.process.terminate().unwrap();
        until("it is still ready", || !self.is_ready());
    }
}

/// Why the policy was refused.
fn said(access: &Access) -> String {
    let output = access.try_kubectl("apply --dry-run=server -f -", REFUSED);
    String::from_utf8(output.stderr).unwrap()
}

fn until(otherwise: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{otherwise}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn webhooks_are_answered_while_a_process_ends() {
    let directory = tempfile::tempdir().unwrap();
    let server =
        Running::start_in(directory.path(), &["--skip-admission", "--controllers", "none"]);
    let place = convoy_kubernetes::Running::new("ending").unwrap();
    home::define(&server, "skyhook");
    server.kubectl_with("create -f -", LEASE);
    let mut leader = Leader::start(&place, &server);
    let told = Instant::now();
    leader.terminate();
    // A standby would take the Lease now, and not only when the process has ended.
    server.until("lease convoy", |lease| {
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty()
    });
    assert!(told.elapsed() < Duration::from_secs(3), "the Lease was held for {:?}", told.elapsed());
    while told.elapsed() < Duration::from_secs(3) {
        let said = said(&server);
        assert!(said.contains("is not unique"), "after {:?}: {said}", told.elapsed());
    }
    let left = Duration::from_secs(8).saturating_sub(told.elapsed());
    assert_eq!(leader.process.wait(left).unwrap(), Some(0), "it does not end");
    let said = said(&server);
    assert!(said.contains("failed calling webhook"), "{said}");

    // Who does not want to wait says so twice.
    let mut leader = Leader::start(&place, &server);
    leader.terminate();
    leader.process.terminate().unwrap();
    assert_eq!(leader.process.wait(Duration::from_secs(3)).unwrap(), Some(0), "it does not end");
}
