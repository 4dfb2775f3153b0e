//! `cargo xtask bench fleet`: a hub and its member clusters in one `convoy up`. Placements are rolled
//! out to the end, then the process is started again on the same data, which must change nothing.
//!
//! Each placement has a namespace with a ConfigMap, and names its clusters. Heartbeats are the only
//! writes after the second start that do not count: every object of the fleet on the hub and on the
//! members is compared with what it was before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use convoy_kubernetes::{Process, Programs, Running, flags, own_kubectl};
use serde_json::{Value, json};

use super::table::{Figures, print};

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
/// Interval between polls; polling takes time from the cores that roll out.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the second process runs before the objects are compared: agents report every 15 s.
const QUIET: Duration = Duration::from_secs(30);

/// A process of `convoy up`, and how long it took to be ready.
struct Up {
    process: Process,
    begun: Instant,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
}

/// The objects of one list, by namespace and name, without what a heartbeat changes.
type Objects = BTreeMap<String, Value>;

pub(super) fn run(settings: &Settings) -> Result<()> {
    let convoy = match &settings.convoy {
        Some(path) => path.canonicalize().context("--convoy: no such file")?,
        None => super::programs(None)?.join("convoy"),
    };
    let running = Running::new("bench-fleet")?;
    let mut figures = Figures::default();
    let up = Up::start(&convoy, &running, settings)?;
    up.set(&mut figures, "first start: ready")?;
    let joined = settings.members;
    wait(settings, "members joined", joined, || up.reporting(""))?;
    up.set(&mut figures, "first start: all members joined")?;
    let (begun, used) = (Instant::now(), up.process.processor_seconds()?);
    let input = running.write("placements.json", &placements(settings).to_string())?;
    up.kubectl(&["create", "-f", &input.to_string_lossy()])?;
    wait(settings, "placements available", settings.placements, || up.available())?;
    figures.set("placements: all available after, s", begun.elapsed().as_secs_f64());
    let used = up.process.processor_seconds()? - used;
    figures.set("placements: processor time, s", used);
    figures.set("placements: peak memory, MiB", up.process.peak_mib()?);
    std::thread::sleep(QUIET);
    let before = up.objects(settings)?;
    ensure!(up.process.end()?.is_none_or(|code| code == 0), "convoy up failed");

    let since = now()?;
    let up = Up::start(&convoy, &running, settings)?;
    up.set(&mut figures, "restart: ready")?;
    wait(settings, "members reported", joined, || up.reporting(&since))?;
    up.set(&mut figures, "restart: all members reported")?;
    std::thread::sleep(QUIET);
    let available = up.available()?;
    ensure!(available == settings.placements, "{available} placements are available");
    let after = up.objects(settings)?;
    figures.set("restart: peak memory, MiB", up.process.peak_mib()?);
    let idle = (Instant::now(), up.process.processor_seconds()?);
    std::thread::sleep(QUIET);
    let used = up.process.processor_seconds()? - idle.1;
    figures.set("at rest: cores used", used / idle.0.elapsed().as_secs_f64());
    let count: usize = before.values().map(BTreeMap::len).sum();
    figures.set("objects compared", f64::from(u32::try_from(count)?));
    let changed = changes(&before, &after);
    figures.set("objects written after the restart", f64::from(u32::try_from(changed.len())?));
    print(&["convoy up"], &[figures])?;
    ensure!(changed.is_empty(), "written after the restart: {}", changed.join(", "));
    Ok(())
}

impl Up {
    fn start(convoy: &Path, running: &Running, settings: &Settings) -> Result<Self> {
        let kubeconfig = running.directory.join("admin.kubeconfig");
        let [data, config] = [running.directory.join("data"), kubeconfig.clone()]
            .map(|path| path.to_string_lossy().into_owned());
        let [members, nodes] = [settings.members, settings.nodes].map(|count| count.to_string());
        let mut command = Command::new(convoy);
        command.arg("up").stdout(Stdio::piped()).args(flags(&[
            ("--listen", "127.0.0.1:0"),
            ("--data-dir", &data),
            ("--kubeconfig", &config),
            ("--members", &members),
            ("--member-nodes", &nodes),
            ("--output", "json"),
        ]));
        let begun = Instant::now();
        let mut process = running.start_as(&mut command)?;
        process.first_line()?;
        let kubectl = own_kubectl().map_or_else(|| Programs::find().map(|it| it.kubectl), Ok)?;
        Ok(Self { process, begun, kubectl, kubeconfig })
    }

    /// Notes the time since the start, the processor time and the memory.
    fn set(&self, figures: &mut Figures, what: &str) -> Result<()> {
        figures.set(&format!("{what} after, s"), self.begun.elapsed().as_secs_f64());
        figures.set(&format!("{what}, processor time, s"), self.process.processor_seconds()?);
        figures.set(&format!("{what}, memory, MiB"), self.process.resident_mib()?);
        Ok(())
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.kubectl);
        command.args(arguments).args(["--output", "json"]).env("KUBECONFIG", &self.kubeconfig);
        let output = command.output().context("could not run kubectl")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {complaint}", arguments.join(" "));
        Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut command = Command::new(&self.kubectl);
        command.args(["get", "--raw", path]).env("KUBECONFIG", &self.kubeconfig);
        let output = command.output().context("could not run kubectl")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "could not list {path}: {complaint}");
        let mut list: Value = serde_json::from_slice(&output.stdout)?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("{path} is no list"),
        }
    }

    /// How many members have joined, and reported at an instant or later.
    fn reporting(&self, since: &str) -> Result<usize> {
        let members = self.list(&format!("{MEMBERS}/memberclusters?resourceVersion=0"))?;
        let is_reporting = |member: &&Value| {
            let agent = &member["status"]["agentStatus"][0];
            let heard = agent["lastReceivedHeartbeat"].as_str().unwrap_or_default();
            is_true(member, "Joined") && heard >= since
        };
        Ok(members.iter().filter(is_reporting).count())
    }

    fn available(&self) -> Result<usize> {
        let path = format!("{PLACEMENTS}/clusterresourceplacements?resourceVersion=0");
        let placements = self.list(&path)?;
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
            let items = self.list(&path)?;
            // The API server puts its certificate into every namespace, whenever it comes to that.
            let items = items.into_iter().filter(|it| it["metadata"]["name"] != ROOT_CERTIFICATE);
            anyhow::Ok((path, items.map(named).collect()))
        };
        paths.into_iter().map(listed).collect()
    }
}

fn is_true(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.is_some_and(|it| {
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

fn wait(
    settings: &Settings,
    what: &str,
    wanted: usize,
    mut count: impl FnMut() -> Result<usize>,
) -> Result<()> {
    let (started, limit) = (Instant::now(), Duration::from_secs(settings.minutes * 60));
    loop {
        let found = count()?;
        eprintln!("{:6.1} s: {found} of {wanted} {what}", started.elapsed().as_secs_f64());
        if found >= wanted {
            return Ok(());
        }
        ensure!(started.elapsed() < limit, "timed out: {found} of {wanted} {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The time as heartbeats tell it, to the second.
fn now() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output();
    let output = output.context("could not run date")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
