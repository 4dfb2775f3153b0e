//! Where placements are tried: a hub with four member clusters, on which every test has a namespace
//! and a placement to itself.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use convoy_kubernetes::{Process, Running};
use serde_json::{Value, json};

use super::record::Bindings;
use crate::access::Access;
use crate::home::{self, CONVOY};

pub(super) const MEMBERS: [&str; 4] = ["member-1", "member-2", "member-3", "member-4"];

/// The members that have servers of their own.
pub(crate) const REAL: [&str; 2] = ["far-1", "far-2"];

/// The labels of the seed's two examples.
const LABELS: &str =
    "env=prod,member-1:loc=west,member-2:loc=west,member-3:loc=east,member-4:loc=east";

/// A hub with its members, and the process that they run in.
pub(crate) struct Home {
    hub: Access,
    members: BTreeMap<String, Access>,
    _processes: Vec<Process>,
}

/// The one of all tests that leave membership and taints alone.
pub(super) fn embedded() -> &'static Home {
    static HOME: OnceLock<Home> = OnceLock::new();
    HOME.get_or_init(|| start("placements"))
}

/// The one of tests that change what the members are, for one of them at a time.
pub(super) fn changing() -> MutexGuard<'static, Home> {
    static HOME: OnceLock<Mutex<Home>> = OnceLock::new();
    let home = HOME.get_or_init(|| Mutex::new(start("members")));
    // A test that failed says so itself.
    home.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hub and two members, each on a real kube-apiserver.
pub(crate) fn real() -> &'static Home {
    static HOME: OnceLock<Home> = OnceLock::new();
    HOME.get_or_init(|| {
        let (hub, members, processes) = home::real_with_members(&REAL, &SNAPSHOTS_AT_ONCE);
        Home { hub, members, _processes: processes }
    })
}

/// `convoy up` with four members, which takes snapshots at once.
fn start(name: &str) -> Home {
    let running = Running::new(name).unwrap();
    let scenario = running.write("scenario.yaml", &home::scenario("[]")).unwrap();
    let kubeconfig = running.directory.join("kubeconfig");
    let mut up = Command::new(CONVOY);
    up.args(["up", "--ephemeral", "--listen=127.0.0.1:0", "--output=json", "--kubeconfig"]);
    up.arg(&kubeconfig).args(["--members=4", "--member-nodes=1", "--member-labels", LABELS]);
    up.args(SNAPSHOTS_AT_ONCE);
    let (up, _) = home::start(&running, up.arg("--scenario").arg(scenario));
    // It is gone with this process: what is in a static is never dropped.
    std::mem::forget(running);
    let hub = Access::new(kubeconfig);
    hub.kubectl("wait --for=condition=Joined memberclusters --all --timeout=60s");
    let member = |name: &str| (name.to_owned(), hub.at(&format!("convoy-{name}")));
    let members = MEMBERS.into_iter().map(member).collect();
    Home { hub, members, _processes: vec![up] }
}

/// Tests change one thing at a time, and do not wait for more changes.
pub(crate) const SNAPSHOTS_AT_ONCE: [&str; 2] = [
    "--resource-snapshot-creation-minimum-interval=0s",
    "--resource-changes-collection-duration=0s",
];

impl Home {
    /// A member as its administrator sees it.
    pub(crate) fn member(&self, name: &str) -> &Access {
        &self.members[name]
    }

    /// A namespace on the hub, for a placement of the same name.
    pub(crate) fn site(&self, name: &str) -> Site {
        self.hub.kubectl(&format!("create namespace {name}"));
        let (hub, members) = (self.hub.clone(), self.members.clone());
        Site { hub, members, name: name.to_owned(), directory: tempfile::tempdir().unwrap() }
    }
}

/// What one test works with.
pub(crate) struct Site {
    pub(crate) hub: Access,
    pub(crate) members: BTreeMap<String, Access>,
    /// The namespace that is placed, and the placement.
    pub(crate) name: String,
    directory: tempfile::TempDir,
}

impl Site {
    /// Runs kubectl in the namespace on the hub.
    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        self.hub.kubectl(&format!("-n {} {arguments}", self.name))
    }

    /// The Deployment `web`, in the first version.
    pub(crate) fn deploy(&self) {
        self.kubectl("create deployment web --image=example/web:1 --replicas=2");
    }

    pub(crate) fn set_image(&self, tag: &str) {
        self.kubectl(&format!("set image deployment/web web=example/web:{tag}"));
    }

    pub(crate) fn apply(&self, object: &Value) {
        self.hub.kubectl_with("apply -f -", &object.to_string());
    }

    /// Places the namespace.
    pub(crate) fn place(&self, policy: &Value, strategy: &Value) {
        self.place_with(&self.name, &json!({"policy": policy, "strategy": strategy}));
    }

    /// A placement of the namespace with these fields.
    pub(crate) fn place_with(&self, name: &str, fields: &Value) {
        let selector =
            json!({"group": "", "version": "v1", "kind": "Namespace", "name": self.name});
        let mut spec = json!({"resourceSelectors": [selector]});
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.apply(&json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourcePlacement", "metadata": {"name": name}, "spec": spec}));
    }

    /// Merges a patch into an object that has no namespace.
    pub(crate) fn patch(&self, what: &str, patch: &Value) {
        self.hub.kubectl(&format!("patch {what} --type=merge -p {patch}"));
    }

    pub(crate) fn patch_placement(&self, spec: &Value) {
        let placement = format!("clusterresourceplacement {}", self.name);
        self.patch(&placement, &json!({"spec": spec}));
    }

    /// Waits until the placement is as it should be.
    pub(crate) fn until(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        self.until_named(&self.name, is_so)
    }

    pub(crate) fn until_named(&self, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let what = format!("clusterresourceplacement {name}");
        patiently(&what, || Some(self.hub.get(&what)), is_so)
    }

    /// Waits until all picked clusters have what is selected now, and it works there.
    pub(crate) fn finished(&self, index: u32) -> Value {
        self.until(|placement| {
            has_selected(placement, index) && placed(placement, "Available").starts_with("True")
        })
    }

    /// Everything that becomes of the bindings from now on.
    pub(crate) fn record(&self) -> Bindings {
        Bindings::record(&self.hub, &self.name, self.directory.path())
    }

    /// The image of `web` on a member; none if it is not there.
    pub(crate) fn image(&self, member: &str) -> Option<String> {
        let found = self.on(member, "deployment web");
        Some(found?["spec"]["template"]["spec"]["containers"][0]["image"].as_str()?.to_owned())
    }

    /// An object of the namespace on a member, if it is there.
    pub(crate) fn on(&self, member: &str, what: &str) -> Option<Value> {
        let asked = format!("get {what} -n {} -o json", self.name);
        let output = self.members[member].try_kubectl(&asked, "");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || complaint.contains("NotFound"), "{complaint}");
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Waits until an object of the namespace on a member is as it should be.
    pub(crate) fn until_on(
        &self,
        member: &str,
        what: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Value {
        patiently(&format!("{what} on {member}"), || self.on(member, what), is_so)
    }

    /// The members that have the Deployment, and its tag there.
    pub(crate) fn tags(&self) -> Vec<(String, String)> {
        let tag = |member: &String| {
            let image = self.image(member)?;
            Some((member.clone(), image.rsplit(':').next()?.to_owned()))
        };
        self.members.keys().filter_map(tag).collect()
    }
}

/// Looks until something is as it should be; what is not there is null.
fn patiently(
    what: &str,
    look: impl Fn() -> Option<Value>,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    let begun = Instant::now();
    loop {
        let found = look().unwrap_or_default();
        if is_so(&found) {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_mins(2), "{what} never got there: {found:#}");
        // Every look is a process, and many tests look at once.
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Whether a placement tells of the resources of an index.
pub(crate) fn has_selected(placement: &Value, index: u32) -> bool {
    let found = placement["status"]["observedResourceIndex"].as_str();
    found.and_then(|found| found.parse().ok()) == Some(index)
}

/// A condition of a placement as `Status/Reason`, by its name without the kind; empty if there is none
/// of the newest generation.
pub(crate) fn placed(placement: &Value, kind: &str) -> String {
    let (current, kind) =
        (&placement["metadata"]["generation"], format!("ClusterResourcePlacement{kind}"));
    word(&placement["status"]["conditions"], &kind, current)
}

/// The same for one cluster of a placement.
pub(crate) fn on_cluster(placement: &Value, cluster: &str, kind: &str) -> String {
    let current = &placement["metadata"]["generation"];
    word(&entry(placement, cluster)["conditions"], kind, current)
}

/// What a placement tells about one cluster.
pub(crate) fn entry<'p>(placement: &'p Value, cluster: &str) -> &'p Value {
    let mut entries = placement["status"]["placementStatuses"].as_array().into_iter().flatten();
    entries.find(|entry| entry["clusterName"] == cluster).unwrap_or(&Value::Null)
}

/// The clusters that a placement tells of, in order of their names.
pub(crate) fn clusters(placement: &Value) -> Vec<&str> {
    let entries = placement["status"]["placementStatuses"].as_array().into_iter().flatten();
    let mut names: Vec<&str> = entries.filter_map(|entry| entry["clusterName"].as_str()).collect();
    names.sort_unstable();
    names
}

/// A condition as `Status/Reason`, if it is of a generation.
pub(crate) fn word(conditions: &Value, kind: &str, generation: &Value) -> String {
    let mut all = conditions.as_array().into_iter().flatten();
    let found = all.find(|found| {
        found["type"] == kind
            && (generation.is_null() || found["observedGeneration"] == *generation)
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.map_or_else(String::new, |found| {
        format!("{}/{}", text(&found["status"]), text(&found["reason"]))
    })
}

/// The clusters with a label, as many as are asked for.
pub(crate) fn pick(count: u32, key: &str, value: &str) -> Value {
    let term = json!({"labelSelector": {"matchLabels": {key: value}}});
    let required = json!({"clusterSelectorTerms": [term]});
    let affinity =
        json!({"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    json!({"placementType": "PickN", "numberOfClusters": count, "affinity": affinity})
}

pub(crate) fn fixed(clusters: &[&str]) -> Value {
    json!({"placementType": "PickFixed", "clusterNames": clusters})
}

pub(crate) fn rolling(fields: &Value) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": fields})
}
