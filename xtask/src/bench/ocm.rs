//! `cargo xtask bench ocm`: a hub of Open Cluster Management in one `convoy up`, and clusters that
//! exist on the hub only: this program reports for their agents. They are registered, a placement
//! cuts them into decision groups, and a replica set hands two templates through them to the end.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use convoy_kubernetes::Running;
use serde_json::{Value, json};

use super::proxy::{Job, Proxy};
use super::table::{Figures, print};
use super::up::{self, Up, condition, wait};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Settings {
    /// Number of managed clusters
    #[arg(long, default_value_t = 3_500)]
    clusters: usize,
    /// Number of canaries, which are a decision group of their own and go first
    #[arg(long, default_value_t = 35)]
    canaries: usize,
    /// Number of clusters in each decision group
    #[arg(long, default_value_t = 150)]
    per_group: usize,
    /// Number of clusters that get a template at the same time
    #[arg(long, default_value_t = 350)]
    concurrency: usize,
    /// Number of connections that report for the agents
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Path of a `convoy` binary to measure [default: build one with the dist profile]
    #[arg(long)]
    convoy: Option<PathBuf>,
    /// Timeout of each phase, in minutes
    #[arg(long, default_value_t = 15)]
    minutes: u64,
}

const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const PLACEMENTS: &str =
    "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/apps/placements";
const SETS: &str =
    "/apis/work.open-cluster-management.io/v1alpha1/namespaces/apps/manifestworkreplicasets";
const WORKS: &str = "/apis/work.open-cluster-management.io/v1/manifestworks?resourceVersion=0";
const WORK_GROUP: &str = "/apis/work.open-cluster-management.io/v1/namespaces";

struct Bench<'a> {
    settings: &'a Settings,
    up: Up,
    proxy: Proxy,
}

pub(super) fn run(settings: &Settings) -> Result<()> {
    let convoy = up::binary(settings.convoy.as_deref())?;
    let running = Running::new("bench-ocm")?;
    let mut figures = Figures::default();
    let up = Up::start(&convoy, &running, &[("--controllers", "ocm")])?;
    up.set(&mut figures, "ready")?;
    let crds = Command::new(&convoy).args(["crds", "--dialect", "ocm"]).output()?.stdout;
    let crds = running.write("crds.yaml", &String::from_utf8(crds)?)?;
    up.kubectl(&["apply", "--server-side", "-f", &crds.to_string_lossy()])?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "apps"}});
    let namespace = running.write("apps.json", &namespace.to_string())?;
    up.kubectl(&["create", "-f", &namespace.to_string_lossy()])?;
    let proxy = Proxy::start(&up, &running)?;
    let bench = Bench { settings, up, proxy };
    bench.phase(&mut figures, "clusters registered", Bench::register)?;
    bench.phase(&mut figures, "placement decided", Bench::place)?;
    bench.phase(&mut figures, "first template rolled out", |it| it.roll_out("v1"))?;
    bench.phase(&mut figures, "second template rolled out", |it| it.roll_out("v2"))?;
    figures.set("peak memory, MiB", bench.up.process.peak_mib()?);
    print(&["convoy up"], &[figures])
}

impl Bench<'_> {
    /// Notes how long a phase takes, what it costs the process, and how much is written.
    fn phase(
        &self,
        figures: &mut Figures,
        what: &str,
        run: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        let (begun, used) = (Instant::now(), self.up.process.processor_seconds()?);
        let revision = self.revision()?;
        run(self)?;
        figures.set(&format!("{what} after, s"), begun.elapsed().as_secs_f64());
        let used = self.up.process.processor_seconds()? - used;
        figures.set(&format!("{what}, processor time, s"), used);
        figures.set(&format!("{what}, writes"), self.revision()? - revision);
        figures.set(&format!("{what}, memory, MiB"), self.up.process.resident_mib()?);
        Ok(())
    }

    /// Every write raises it by one.
    fn revision(&self) -> Result<f64> {
        let list = self.up.get("/api/v1/namespaces?limit=1")?;
        let version = list["metadata"]["resourceVersion"].as_str().context("a list has one")?;
        Ok(version.parse()?)
    }

    fn send(&self, jobs: &[Job]) -> Result<()> {
        self.proxy.send(jobs, self.settings.connections)
    }

    /// Creates the clusters, and reports that they are available once they are accepted.
    fn register(&self) -> Result<()> {
        let Settings { clusters, canaries, minutes, .. } = *self.settings;
        let create = |number: usize| {
            let tier = if number < canaries { "canary" } else { "prod" };
            // Nobody renews Leases here.
            let spec = json!({"hubAcceptsClient": true, "leaseDurationSeconds": 86_400});
            let metadata =
                json!({"name": format!("cluster-{number:05}"), "labels": {"tier": tier}});
            let body = json!({"apiVersion": "cluster.open-cluster-management.io/v1",
                "kind": "ManagedCluster", "metadata": metadata, "spec": spec});
            Job { method: "POST", path: CLUSTERS.to_owned(), body }
        };
        self.send(&(0..clusters).map(create).collect::<Vec<_>>())?;
        wait(minutes, "clusters available and without taints", clusters, || {
            let found = self.up.list(&format!("{CLUSTERS}?resourceVersion=0"))?;
            let now = up::now()?;
            let kind = "ManagedClusterConditionAvailable";
            let is_due = |it: &&Value| {
                is_true(it, "HubAcceptedManagedCluster") && condition(it, kind).is_none()
            };
            let jobs: Vec<Job> = found
                .iter()
                .filter(is_due)
                .map(|it| told(CLUSTERS, it, &[(kind, "True")], &now))
                .collect::<Result<_>>()?;
            self.send(&jobs)?;
            let is_free =
                |it: &Value| it["spec"]["taints"].as_array().is_none_or(std::vec::Vec::is_empty);
            Ok(found.iter().filter(|it| is_true(it, kind) && is_free(it)).count())
        })
    }

    /// Binds the set of all clusters, and selects them all.
    fn place(&self) -> Result<()> {
        let Settings { clusters, per_group, minutes, .. } = *self.settings;
        let binding = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2",
            "kind": "ManagedClusterSetBinding", "metadata": {"name": "global"},
            "spec": {"clusterSet": "global"}});
        let canary = json!({"groupName": "canary", "groupClusterSelector":
            {"labelSelector": {"matchLabels": {"tier": "canary"}}}});
        let strategy = json!({"clustersPerDecisionGroup": per_group, "decisionGroups": [canary]});
        let placement = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "Placement", "metadata": {"name": "all"},
            "spec": {"clusterSets": ["global"], "decisionStrategy": {"groupStrategy": strategy}}});
        let bindings = "/apis/cluster.open-cluster-management.io/v1beta2/namespaces/apps/\
                        managedclustersetbindings";
        let post = |path: &str, body| Job { method: "POST", path: path.to_owned(), body };
        self.proxy.send(&[post(bindings, binding), post(PLACEMENTS, placement)], 1)?;
        wait(minutes, "clusters selected", clusters, || {
            let placement = self.up.get(&format!("{PLACEMENTS}/all"))?;
            let selected = placement["status"]["numberOfSelectedClusters"].as_u64().unwrap_or(0);
            Ok(usize::try_from(selected)?)
        })
    }

    /// Hands a template out, and reports success for every agent that has got it.
    fn roll_out(&self, version: &str) -> Result<()> {
        let Settings { clusters, canaries, concurrency, minutes, .. } = *self.settings;
        let exists = self.up.list(SETS)?.iter().any(|it| it["metadata"]["name"] == "web");
        let body = replica_set(version, concurrency);
        let job = if exists {
            Job { method: "PATCH", path: format!("{SETS}/web"), body }
        } else {
            Job { method: "POST", path: SETS.to_owned(), body }
        };
        self.proxy.send(&[job], 1)?;
        let most = concurrency.max(canaries);
        wait(minutes, "clusters have succeeded", clusters, || {
            let (works, now) = (self.up.list(WORKS)?, up::now()?);
            let holds =
                |it: &&Value| it["spec"]["workload"]["manifests"][0]["data"]["version"] == version;
            let (done, due): (Vec<&Value>, Vec<&Value>) =
                works.iter().filter(holds).partition(|it| is_current(it));
            ensure!(due.len() <= most, "{} clusters at a time, {most} may be", due.len());
            let jobs: Vec<Job> = due
                .iter()
                .map(|work| {
                    let namespace = work["metadata"]["namespace"].as_str().context("a work")?;
                    let path = format!("{WORK_GROUP}/{namespace}/manifestworks");
                    let words =
                        [("Applied", "True"), ("Available", "True"), ("Progressing", "False")];
                    told(&path, work, &words, &now)
                })
                .collect::<Result<_>>()?;
            self.send(&jobs)?;
            Ok(done.len())
        })?;
        wait(minutes, "replica sets rolled out", 1, || {
            let set = self.up.get(&format!("{SETS}/web"))?;
            Ok(usize::from(is_true(&set, "PlacementRolledOut")))
        })
    }
}

fn replica_set(version: &str, concurrency: usize) -> Value {
    let progressive = json!({"maxConcurrency": concurrency,
        "mandatoryDecisionGroups": [{"groupName": "canary"}]});
    let reference = json!({"name": "all",
        "rolloutStrategy": {"type": "Progressive", "progressive": progressive}});
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"}, "data": {"version": version}});
    json!({"apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet", "metadata": {"name": "web"},
        "spec": {"placementRefs": [reference],
            "manifestWorkTemplate": {"workload": {"manifests": [settings]}}}})
}

/// Sets conditions in the status of an object, beside those that it has.
fn told(path: &str, object: &Value, words: &[(&str, &str)], now: &str) -> Result<Job> {
    let name = object["metadata"]["name"].as_str().context("an object has a name")?;
    let present = object["status"]["conditions"].as_array();
    let mut conditions: Vec<Value> = present.cloned().unwrap_or_default();
    conditions.retain(|it| words.iter().all(|(kind, _)| it["type"] != *kind));
    conditions.extend(words.iter().map(|(kind, word)| {
        json!({"type": kind, "status": word, "reason": "Reported", "message": "",
            "lastTransitionTime": now, "observedGeneration": object["metadata"]["generation"]})
    }));
    let body = json!({"status": {"conditions": conditions}});
    Ok(Job { method: "PATCH", path: format!("{path}/{name}/status"), body })
}

fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|it| it["status"] == "True")
}

/// Whether the agent of a work has spoken about what it has now.
fn is_current(work: &Value) -> bool {
    condition(work, "Progressing")
        .is_some_and(|it| it["observedGeneration"] == work["metadata"]["generation"])
}
