//! Two real processes and a Lease: the leader is stopped in the middle of its work, and wakes up
//! when the other one leads.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use convoy_kubernetes::free_ports;

use crate::access::Access;
use crate::home::control_loop;
use crate::running::Running;
use crate::scrape::scrape;

const LEASE: &str =
    "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: convoy, namespace: default}";
/// Short, so that the test is: a successor acts after six seconds of silence and two of grace.
const LEASE_SECS: &str = "--lease-duration=6";

/// A candidate for the Lease, killed with the test.
struct Loop {
    child: Child,
    port: u16,
}

impl Loop {
    fn start(kubeconfig: &Path) -> Self {
        let [port] = free_ports().unwrap();
        let mut command = control_loop(kubeconfig, "apps,replicasets");
        command.args(["--leader-elect", "--lease-namespace=default", LEASE_SECS]);
        command.arg(format!("--metrics-listen=127.0.0.1:{port}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("Running"), "{line}");
        Self { child, port }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// How many creations of it succeeded.
    fn creations(&self) -> usize {
        let text = scrape(self.port);
        let of = r#"convoy_writes_total{verb="create",code="201"} "#;
        let count = text.lines().find_map(|line| line.strip_prefix(of));
        count.map_or(0, |count| count.parse().unwrap())
    }

    /// Waits for the end; the exit code and what it said.
    fn end(&mut self) -> (Option<i32>, String) {
        let started = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(30), "it does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn holder(site: &Access, is_it: impl Fn(&str) -> bool) -> String {
    let started = Instant::now();
    loop {
        let of = "get lease convoy --ignore-not-found -o jsonpath={.spec.holderIdentity}";
        let holder = site.kubectl(of);
        if is_it(&holder) {
            return holder;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "the Lease is held by {holder:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn pods(site: &Access) -> usize {
    site.kubectl("get pods -o name").lines().count()
}

#[test]
fn a_leader_that_was_stopped_creates_nothing_when_it_wakes() {
    let directory = tempfile::tempdir().unwrap();
    // No nodes: nobody but the loops writes pods.
    let site = Running::start_in(directory.path(), &["--controllers", "none"]);
    // Never held, so that the first one need not wait.
    site.kubectl_with("create -f -", LEASE);
    let mut first = Loop::start(&site.kubeconfig);
    let leader = holder(&site, |name| !name.is_empty());
    let second = Loop::start(&site.kubeconfig);

    site.kubectl("create deployment web --image=example/web:1 --replicas=400");
    let started = Instant::now();
    while first.creations() < 40 {
        assert!(started.elapsed() < Duration::from_mins(1), "it creates nothing");
        std::thread::sleep(Duration::from_millis(2));
    }
    first.signal("-STOP");
    let stopped_at = pods(&site);
    assert!(stopped_at < 390, "it was stopped too late, at {stopped_at} of 400 pods");
    site.kubectl("scale deployment web --replicas=10");
    holder(&site, |name| !name.is_empty() && name != leader);
    let started = Instant::now();
    while pods(&site) != 10 {
        assert!(started.elapsed() < Duration::from_mins(1), "{} pods", pods(&site));
        std::thread::sleep(Duration::from_millis(200));
    }

    let mut watch = site.kubectl_command("get pods --watch-only -o name").spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1)); // until it watches
    first.signal("-CONT");
    let (code, said) = first.end();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("lost the Lease default/convoy"), "{said}");
    std::thread::sleep(Duration::from_secs(1));
    watch.kill().unwrap();
    let mut seen = String::new();
    watch.stdout.take().unwrap().read_to_string(&mut seen).unwrap();
    watch.wait().unwrap();
    assert_eq!(seen, "", "the pods changed; the process said:\n{said}");
    assert_eq!(pods(&site), 10);

    // A deleted Lease is taken back by its holder.
    let leader = holder(&site, |name| !name.is_empty());
    site.kubectl("delete lease convoy");
    assert_eq!(holder(&site, |name| !name.is_empty()), leader);
    drop(second);
}
