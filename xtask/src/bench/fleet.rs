//! `cargo xtask bench fleet`: a hub and its member clusters in one `convoy up`. Placements are rolled
//! out to the end, then the process is started again on the same data, which must change nothing.
//!
//! Each placement has a namespace with a ConfigMap, and names its clusters. Heartbeats are the only
//! writes after the second start that do not count: every object of the fleet on the hub and on the
//! members is compared with what it was before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use convoy_kubernetes::Running;
use serde_json::{Value, json};

use super::table::{Figures, print};
use super::up::{self, Up, condition, wait};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Settings {
    /// Number of member clusters
    #[arg(long, default_value_t = 200)]
    members: usize,
    /// Number of placements
    #[arg(long, default_value_t = 100)]
    placements: usize,
    /// Number of clusters of each placement
    #[arg(long, default_value_t = 100)]
    clusters: usize,
    /// Number of simulated nodes in each member cluster
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// Path of a `convoy` binary to measure [default: build one with the dist profile]
    #[arg(long)]
    convoy: Option<PathBuf>,
    /// Timeout of each phase, in minutes
    #[arg(long, default_value_t = 15)]
    minutes: u64,
}

const PLACEMENTS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1";
const MEMBERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1";
const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";
/// How long the second process runs before the objects are compared: agents report every 15 s.
const QUIET: Duration = Duration::from_secs(30);

/// A hub and its members.
struct Hub(Up);

/// The objects of one list, by namespace and name, without what a heartbeat changes.
type Objects = BTreeMap<String, Value>;

pub(super) fn run(settings: &Settings) -> Result<()> {
    let convoy = up::binary(settings.convoy.as_deref())?;
    let running = Running::new("bench-fleet")?;
    let mut figures = Figures::default();
    let hub = Hub::start(&convoy, &running, settings)?;
    hub.0.set(&mut figures, "first start: ready")?;
    let joined = settings.members;
    wait(settings.minutes, "members joined", joined, || hub.reporting(""))?;
    hub.0.set(&mut figures, "first start: all members joined")?;
    let (begun, used) = (Instant::now(), hub.0.process.processor_seconds()?);
    let input = running.write("placements.json", &placements(settings).to_string())?;
    hub.0.kubectl(&["create", "-f", &input.to_string_lossy()])?;
    wait(settings.minutes, "placements available", settings.placements, || hub.available())?;
    figures.set("placements: all available after, s", begun.elapsed().as_secs_f64());
    let used = hub.0.process.processor_seconds()? - used;
    figures.set("placements: processor time, s", used);
    figures.set("placements: peak memory, MiB", hub.0.process.peak_mib()?);
    std::thread::sleep(QUIET);
    let before = hub.objects(settings)?;
    ensure!(hub.0.process.end()?.is_none_or(|code| code == 0), "convoy up failed");

    let since = up::now()?;
    let hub = Hub::start(&convoy, &running, settings)?;
    hub.0.set(&mut figures, "restart: ready")?;
    wait(settings.minutes, "members reported", joined, || hub.reporting(&since))?;
    hub.0.set(&mut figures, "restart: all members reported")?;
    std::thread::sleep(QUIET);
    let available = hub.available()?;
    ensure!(available == settings.placements, "{available} placements are available");
    let after = hub.objects(settings)?;
    figures.set("restart: peak memory, MiB", hub.0.process.peak_mib()?);
    let idle = (Instant::now(), hub.0.process.processor_seconds()?);
    std::thread::sleep(QUIET);
    let used = hub.0.process.processor_seconds()? - idle.1;
    figures.set("at rest: cores used", used / idle.0.elapsed().as_secs_f64());
    let count: usize = before.values().map(BTreeMap::len).sum();
    figures.set("objects compared", f64::from(u32::try_from(count)?));
    let changed = changes(&before, &after);
    figures.set("objects written after the restart", f64::from(u32::try_from(changed.len())?));
    print(&["convoy up"], &[figures])?;
    ensure!(changed.is_empty(), "written after the restart: {}", changed.join(", "));
    Ok(())
}

impl Hub {
    fn start(convoy: &Path, running: &Running, settings: &Settings) -> Result<Self> {
        let [members, nodes] = [settings.members, settings.nodes].map(|count| count.to_string());
        let more = [("--members", members.as_str()), ("--member-nodes", nodes.as_str())];
        Up::start(convoy, running, &more).map(Self)
    }

    /// How many members have joined, and reported at an instant or later.
    fn reporting(&self, since: &str) -> Result<usize> {
        let members = self.0.list(&format!("{MEMBERS}/memberclusters?resourceVersion=0"))?;
        let is_reporting = |member: &&Value| {
            let agent = &member["status"]["agentStatus"][0];
            let heard = agent["lastReceivedHeartbeat"].as_str().unwrap_or_default();
            is_true(member, "Joined") && heard >= since
        };
        Ok(members.iter().filter(is_reporting).count())
    }

    fn available(&self) -> Result<usize> {
        let path = format!("{PLACEMENTS}/clusterresourceplacements?resourceVersion=0");
        let placements = self.0.list(&path)?;
        let is_available = |it: &&Value| is_true(it, "ClusterResourcePlacementAvailable");
        Ok(placements.iter().filter(is_available).count())
    }

    /// The objects of the fleet, by the path of their list.
    fn objects(&self, settings: &Settings) -> Result<BTreeMap<String, Objects>> {
        let placed = [
            "clusterresourceplacements",
            "clusterresourcebindings",
            "clusterresourcesnapshots",
            "clusterschedulingpolicysnapshots",
            "works",
        ];
        let joined = ["memberclusters", "internalmemberclusters"];
        let rights = ["roles", "rolebindings"];
        let mut paths: Vec<String> = placed.map(|it| format!("{PLACEMENTS}/{it}")).into();
        paths.extend(joined.map(|it| format!("{MEMBERS}/{it}")));
        paths.extend(rights.map(|it| format!("/apis/rbac.authorization.k8s.io/v1/{it}")));
        let content = ["/api/v1/namespaces", "/api/v1/configmaps"];
        paths.extend(content.map(str::to_owned));
        for number in 1..=settings.members {
            let cluster = format!("/clusters/member-{number}");
            paths.extend(content.map(|path| format!("{cluster}{path}")));
            paths.push(format!("{cluster}{PLACEMENTS}/appliedworks"));
        }
        let listed = |path: String| {
            let items = self.0.list(&path)?;
            // The API server puts its certificate into every namespace, whenever it comes to that.
            let items = items.into_iter().filter(|it| it["metadata"]["name"] != ROOT_CERTIFICATE);
            anyhow::Ok((path, items.map(named).collect()))
        };
        paths.into_iter().map(listed).collect()
    }
}

fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|it| {
        it["status"] == "True" && it["observedGeneration"] == object["metadata"]["generation"]
    })
}

/// An object by its name. Of what reports about a member, heartbeats and the times of readings are
/// left out, and with them the version of the object.
fn named(mut object: Value) -> (String, Value) {
    let metadata = &object["metadata"];
    let part = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    let name = format!("{}/{}", part("namespace"), part("name"));
    let reports = !object["status"]["agentStatus"].is_null();
    if reports {
        for field in ["resourceVersion", "managedFields"] {
            remove(&mut object["metadata"], field);
        }
        let status = &mut object["status"];
        remove(&mut status["agentStatus"][0], "lastReceivedHeartbeat");
        remove(&mut status["resourceUsage"], "observationTime");
        let properties = status["properties"].as_object_mut().into_iter().flatten();
        for (_, property) in properties {
            remove(property, "observationTime");
        }
    }
    (name, object)
}

fn remove(object: &mut Value, field: &str) {
    if let Some(members) = object.as_object_mut() {
        members.remove(field);
    }
}

/// The objects that differ, came or went.
fn changes(before: &BTreeMap<String, Objects>, after: &BTreeMap<String, Objects>) -> Vec<String> {
    let empty = Objects::new();
    let mut found = Vec::new();
    for path in before.keys().chain(after.keys().filter(|path| !before.contains_key(*path))) {
        let [one, other] = [before, after].map(|lists| lists.get(path).unwrap_or(&empty));
        let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
        let changed = names.filter(|name| one.get(*name) != other.get(*name));
        found.extend(changed.map(|name| format!("{path} {name}")));
    }
    found
}

/// The placements and what they place. Each takes the clusters that follow its number.
fn placements(settings: &Settings) -> Value {
    let clusters = settings.clusters.min(settings.members);
    let objects = (0..settings.placements).flat_map(|number| {
        let name = format!("shop-{number:04}");
        let first = number * settings.members / settings.placements;
        let names: Vec<String> = (0..clusters)
            .map(|at| format!("member-{}", (first + at) % settings.members + 1))
            .collect();
        let selector = json!({"group": "", "version": "v1", "kind": "Namespace", "name": name});
        let rolling = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
        [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "settings", "namespace": name},
                "data": {"number": number.to_string()}}),
            json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
                "kind": "ClusterResourcePlacement", "metadata": {"name": name},
                "spec": {"resourceSelectors": [selector],
                    "policy": {"placementType": "PickFixed", "clusterNames": names},
                    "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}}),
        ]
    });
    json!({"apiVersion": "v1", "kind": "List", "items": objects.collect::<Vec<_>>()})
}
