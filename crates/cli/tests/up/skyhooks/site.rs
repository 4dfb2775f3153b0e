//! Where Skyhooks are tried: a home with many nodes, of which every test has some to itself.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoy_kubernetes::{Process, free_ports};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::record::{Record, Watch};
use crate::access::Access;
use crate::home::{self, CONVOY};
use crate::running::Running;

/// The stage of any package that goes first.
pub(crate) const APPLY: &str = "{package: {stage: apply}}";

/// A server with nodes, and how many of them are taken.
pub(crate) struct Home {
    access: Access,
    taken: AtomicUsize,
    /// Where its loop serves numbers.
    metrics: u16,
    _processes: Vec<Process>,
}

/// `convoy up` with its own controllers and simulated nodes, and limits as upstream's chart has
/// them.
pub(crate) fn embedded() -> &'static Home {
    static HOME: OnceLock<Home> = OnceLock::new();
    HOME.get_or_init(|| {
        let running = convoy_kubernetes::Running::new("skyhooks").unwrap();
        let scenario = home::scenario("[{name: hook, count: 150}]");
        let scenario = running.write("scenario.yaml", &scenario).unwrap();
        let kubeconfig = running.directory.join("kubeconfig");
        let mut up = std::process::Command::new(CONVOY);
        up.args(["up", "--ephemeral", "--listen=127.0.0.1:0", "--output=json"]);
        up.args(["--controllers=all", "--kubeconfig"]).arg(&kubeconfig);
        let [metrics] = free_ports().unwrap();
        up.arg(format!("--metrics-listen=127.0.0.1:{metrics}"));
        let (up, _) = home::start(&running, up.arg("--scenario").arg(scenario));
        // It is gone with this process: what is in a static is never dropped.
        std::mem::forget(running);
        let access = Access::new(kubeconfig);
        let amounts = json!({"cpu": "500m", "memory": "256Mi"});
        let limit = json!({"type": "Container", "default": amounts, "defaultRequest": amounts});
        let range = json!({"apiVersion": "v1", "kind": "LimitRange",
            "metadata": {"name": "amounts", "namespace": "skyhook"}, "spec": {"limits": [limit]}});
        access.kubectl_with("apply -f -", &range.to_string());
        Home { access, taken: AtomicUsize::new(0), metrics, _processes: vec![up] }
    })
}

/// The real Kubernetes of all tests, with a loop for Skyhooks.
pub(crate) fn real() -> &'static Home {
    static HOME: OnceLock<Home> = OnceLock::new();
    HOME.get_or_init(|| {
        let [metrics] = free_ports().unwrap();
        let (access, control) = home::real_with_skyhooks(metrics);
        Home { access, taken: AtomicUsize::new(0), metrics, _processes: vec![control] }
    })
}

impl Home {
    /// Some nodes that nobody else has, labelled `site=NAME`.
    pub(crate) fn site(&self, name: &str, nodes: usize) -> Site {
        let first = self.taken.fetch_add(nodes, Ordering::Relaxed);
        let names = (first..first + nodes).map(|at| format!("hook-{at}")).collect();
        let mut site = Site::new(self.access.clone(), name, names);
        site.metrics = Some(self.metrics);
        site.label(0..nodes, &format!("site={name}"));
        // A node that has just registered carries a taint until it is known to be ready.
        site.access.until(&format!("nodes -l site={name}"), |nodes| {
            let mut nodes = nodes["items"].as_array().unwrap().iter();
            nodes.all(|node| node["spec"]["taints"].is_null())
        });
        site
    }
}

/// What one test works with.
pub(crate) struct Site {
    pub(crate) access: Access,
    pub(crate) name: String,
    pub(crate) nodes: Vec<String>,
    pub(crate) directory: TempDir,
    /// Where the numbers of its loop are, if they are served.
    pub(crate) metrics: Option<u16>,
    /// By path and selector.
    watches: RefCell<BTreeMap<(String, String), Rc<Watch>>>,
    /// A server of its own, if it has one.
    _running: Option<Running>,
}

impl Site {
    fn new(access: Access, name: &str, nodes: Vec<String>) -> Self {
        let (name, directory) = (name.to_owned(), tempfile::tempdir().unwrap());
        let (metrics, watches) = (None, RefCell::default());
        Self { access, name, nodes, directory, metrics, watches, _running: None }
    }

    /// A server of its own, with fifteen nodes.
    pub(crate) fn alone() -> Self {
        Self::alone_with(&[])
    }

    /// The same, started with more flags.
    pub(crate) fn alone_with(flags: &[&str]) -> Self {
        Self::alone_of(15, flags)
    }

    /// The same, with as many nodes as are asked for.
    pub(crate) fn alone_of(count: usize, flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scenario = directory.path().join("scenario.yaml");
        std::fs::write(&scenario, home::scenario(&format!("[{{count: {count}}}]"))).unwrap();
        let more = ["--scenario", scenario.to_str().unwrap(), "--controllers", "all"];
        let running = Running::start_in(directory.path(), &[&more, flags].concat());
        let nodes = (0..count).map(|at| format!("node-{at}")).collect();
        let access = Access::clone(&running);
        Self { directory, _running: Some(running), ..Self::new(access, "alone", nodes) }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    pub(crate) fn apply(&self, kind: &str, name: &str, spec: &Value) {
        self.apply_annotated(kind, name, &json!({}), spec);
    }

    pub(crate) fn apply_annotated(
        &self,
        kind: &str,
        name: &str,
        annotations: &Value,
        spec: &Value,
    ) {
        let object = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": kind,
            "metadata": {"name": name, "annotations": annotations}, "spec": spec});
        self.access.kubectl_with("apply -f -", &object.to_string());
    }

    /// Changes some of a Skyhook.
    pub(crate) fn patch(&self, skyhook: &str, patch: &Value) {
        self.access.kubectl(&format!("patch skyhook {skyhook} --type=merge -p '{patch}'"));
    }

    /// Packages for all nodes of the site, one node at a time.
    pub(crate) fn spec(&self, packages: &Value) -> Value {
        json!({"interruptionBudget": {"count": 1}, "packages": packages,
            "nodeSelectors": {"matchLabels": {"site": self.name}}})
    }

    /// The same, paced by a policy.
    pub(crate) fn paced(&self, policy: &str, packages: &Value) -> Value {
        json!({"deploymentPolicy": policy, "packages": packages,
            "nodeSelectors": {"matchLabels": {"site": self.name}}})
    }

    pub(crate) fn skyhook(&self, name: &str) -> Value {
        self.access.get(&format!("skyhook {name}"))
    }

    /// Waits until the status says this word about what is asked for now.
    pub(crate) fn wait(&self, name: &str, word: &str) -> Value {
        let found = self.skyhook_until(name, |skyhook| {
            let (status, metadata) = (&skyhook["status"], &skyhook["metadata"]);
            status["status"] == word
                && (word != "complete" || status["observedGeneration"] == metadata["generation"])
        });
        found["status"].clone()
    }

    /// Waits until a Skyhook is as it should be.
    pub(crate) fn skyhook_until(&self, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        self.skyhook_watch(name).until(name, &self.skyhook(name), is_so)
    }

    pub(crate) fn label(&self, nodes: std::ops::Range<usize>, label: &str) {
        let names = self.nodes[nodes].join(" ");
        self.access.kubectl(&format!("label nodes {names} {label} --overwrite"));
    }

    pub(crate) fn node(&self, at: usize) -> Value {
        self.access.get(&format!("node {}", self.nodes[at]))
    }

    /// Waits until a node is as it should be.
    pub(crate) fn node_until(&self, at: usize, is_so: impl Fn(&Value) -> bool) -> Value {
        self.node_watch().until(&self.nodes[at], &self.node(at), is_so)
    }

    /// Waits until whoever describes a node reads this among its events.
    pub(crate) fn told(&self, at: usize, message: &str) {
        let events = format!(
            "events -n default --field-selector=involvedObject.kind=Node,involvedObject.name={}",
            self.nodes[at]
        );
        self.access.until(&events, |events| {
            let mut all = events["items"].as_array().unwrap().iter();
            all.any(|event| event["message"].as_str().is_some_and(|it| it.contains(message)))
        });
    }

    /// Containers for which the condition holds run until they are let go.
    pub(crate) fn hold(&self, nodes: std::ops::Range<usize>, when: &str) {
        let rules = format!("sim.convoy.dev/rules=[{{when: {when}, then: {{init: 9h}}}}]");
        let names = self.nodes[nodes].join(" ");
        self.access.kubectl(&format!("annotate nodes {names} '{rules}' --overwrite"));
    }

    pub(crate) fn let_go(&self, nodes: std::ops::Range<usize>) {
        let names = self.nodes[nodes].join(" ");
        self.access.kubectl(&format!("annotate nodes {names} sim.convoy.dev/rules-"));
    }

    /// Every change of the nodes from now on.
    pub(crate) fn record_nodes(&self) -> Record {
        self.record(self.node_watch())
    }

    /// Waits until the pods of a Skyhook are gone. Those of finished packages are on their way
    /// out when it is complete, and may stay a moment longer.
    pub(crate) fn no_pods(&self, skyhook: &str) {
        let pods = format!("pods -n skyhook -l skyhook.nvidia.com/name={skyhook}");
        self.access.until(&pods, |pods| pods["items"].as_array().unwrap().is_empty());
    }

    /// Every change of a Skyhook's pods from now on.
    pub(crate) fn record_pods(&self, skyhook: &str) -> Record {
        let selector = format!("labelSelector=skyhook.nvidia.com/name%3D{skyhook}");
        self.record(self.watch("/api/v1/namespaces/skyhook/pods", &selector))
    }

    /// Every change of a Skyhook from now on.
    pub(crate) fn record_skyhook(&self, skyhook: &str) -> Record {
        self.record(self.skyhook_watch(skyhook))
    }

    fn record(&self, watch: Rc<Watch>) -> Record {
        let now = self.access.kubectl("get --raw /api/v1/nodes?limit=1");
        let now: Value = serde_json::from_str(&now).unwrap();
        let version = now["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        Record::new(watch, version)
    }

    fn node_watch(&self) -> Rc<Watch> {
        let selector = match self.name.as_str() {
            "alone" => String::new(),
            name => format!("labelSelector=site%3D{name}"),
        };
        self.watch("/api/v1/nodes", &selector)
    }

    fn skyhook_watch(&self, name: &str) -> Rc<Watch> {
        let selector = format!("fieldSelector=metadata.name%3D{name}");
        self.watch("/apis/skyhook.nvidia.com/v1alpha1/skyhooks", &selector)
    }

    /// One watch for each, begun when it is first needed.
    fn watch(&self, path: &str, selector: &str) -> Rc<Watch> {
        let mut watches = self.watches.borrow_mut();
        let start = || Rc::new(Watch::start(&self.access, path, selector, self.directory.path()));
        let key = (path.to_owned(), selector.to_owned());
        Rc::clone(watches.entry(key).or_insert_with(start))
    }
}

/// Every scenario as two tests, on nodes of its own in each home.
macro_rules! in_both_homes {
    ($($scenario:ident on $nodes:literal),* $(,)?) => {
        mod embedded {
            $(#[test]
            fn $scenario() {
                let home = crate::skyhooks::site::embedded();
                super::$scenario(&home.site(&stringify!($scenario).replace('_', "-"), $nodes));
            })*
        }

        mod real {
            $(#[test]
            fn $scenario() {
                let home = crate::skyhooks::site::real();
                super::$scenario(&home.site(&stringify!($scenario).replace('_', "-"), $nodes));
            })*
        }
    };
}
pub(crate) use in_both_homes;
