//! The nightly trial, `cargo xtask torture`: two processes that lead in turn are killed, stopped
//! and woken up, and lose their Lease, while Deployments and Skyhooks roll out without end; a
//! client of its own counts after every write.

use std::env;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoy_api::Object;
use convoy_check::{Hand, Vigil};
use convoy_sim::seed::Seed;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::deployments::{self, DEPLOYMENTS, PODS};
use crate::skyhooks::{self, SKYHOOKS};
use crate::stage::{Process, Stage, convoy};
use crate::watcher::Watcher;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
/// The shortest that there is: another process acts four seconds after the last sign of life.
const LEASE_SECS: u64 = 3;
/// A leader that sleeps this long is always replaced.
const SLEEP: Duration = Duration::from_secs(7);
/// How long a leader may be missing: machines are busy at times.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often each thing is done, and for how long at most.
struct Trial {
    kills: u32,
    stops: u32,
    deletions: u32,
    limit: Duration,
}

impl Trial {
    fn from_environment() -> Self {
        let number = |name: &str, otherwise: u32| {
            env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
        };
        Self {
            kills: number("CONVOY_KILLS", 200),
            stops: number("CONVOY_STOPS", 50),
            deletions: number("CONVOY_DELETIONS", 50),
            limit: Duration::from_mins(number("CONVOY_MINUTES", 60).into()),
        }
    }

    fn rounds(&self) -> u32 {
        self.kills + self.stops + self.deletions
    }
}

/// What is done to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Torment {
    Kill,
    Stop,
    Deletion,
}

/// A process that may lead.
struct Candidate {
    name: String,
    process: Process,
}

impl Candidate {
    fn start(stage: &Stage, number: u32) -> Self {
        let name = format!("candidate-{number}");
        let mut command = convoy();
        command.args(["run", "--dialects", "apps,replicasets,skyhook", "--leader-elect"]);
        command.arg(format!("--lease-duration={LEASE_SECS}")).arg("--lease-namespace=default");
        command.arg("--kubeconfig").arg(&stage.kubeconfig).env("POD_NAME", &name);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { name, process: Process(child) }
    }

    fn signal(&self, signal: &str) {
        let id = self.process.0.id().to_string();
        drop(Command::new("kill").args([signal, &id]).status());
    }

    fn leads(&self, holder: &str) -> bool {
        holder.rsplit_once('_').is_some_and(|(name, _)| name == self.name)
    }
}

/// Two candidates, of whom one leads.
struct Pair<'s> {
    stage: &'s Stage,
    candidates: Vec<Candidate>,
    started: u32,
}

impl Pair<'_> {
    /// The candidate that leads, once one does; a process that ended is started again.
    async fn leader(&mut self) -> usize {
        let begun = Instant::now();
        loop {
            self.candidates.retain_mut(|one| one.process.0.try_wait().unwrap().is_none());
            while self.candidates.len() < 2 {
                self.candidates.push(Candidate::start(self.stage, self.started));
                self.started += 1;
            }
            let lease = self.stage.find(&format!("{LEASES}/convoy")).await;
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            if let Some(at) = self.candidates.iter().position(|one| one.leads(holder)) {
                return at;
            }
            assert!(begun.elapsed() < PATIENCE, "nobody leads: {lease:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn suffer(&mut self, torment: Torment) {
        let leader = self.leader().await;
        match torment {
            Torment::Kill => self.candidates[leader].signal("-KILL"),
            Torment::Stop => {
                self.candidates[leader].signal("-STOP");
                tokio::time::sleep(SLEEP).await;
                self.candidates[leader].signal("-CONT");
            }
            Torment::Deletion => {
                let path = format!("{LEASES}/convoy");
                self.stage.send(Method::DELETE, &path, json!({})).await;
            }
        }
    }
}

/// The nodes of Skyhooks, and some that nobody drains: whatever pods lose there, the loop took.
fn scenario() -> String {
    let more = "nodes:\n- {name: web, count: 3, labels: {pool: web}}\n";
    skyhooks::SCENARIO.replacen("nodes:\n", more, 1)
}

/// Draws what comes next, so that all are mixed.
fn draw(seed: Seed, round: u32, left: [u32; 3]) -> Torment {
    let all: u32 = left.iter().sum();
    let at = seed.nth(round).between(0, i64::from(all) - 1);
    let at = u32::try_from(at).unwrap();
    if at < left[0] {
        Torment::Kill
    } else if at < left[0] + left[1] {
        Torment::Stop
    } else {
        Torment::Deletion
    }
}

/// Lets both kinds roll out without end; how many rollouts were completed.
async fn roll(stage: Arc<Stage>, vigil: Arc<Mutex<Vigil>>, end: Arc<AtomicBool>) -> u32 {
    let path = format!("{DEPLOYMENTS}/web");
    let (mut version, mut completed) = (0, 0);
    while !end.load(Ordering::Relaxed) {
        version += 1;
        let containers = json!([{"name": "web", "image": format!("web:{version}")}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        stage.send(Method::PATCH, &path, patch).await;
        skyhooks::set_version(&stage, &format!("2.0.{version}")).await;
        let begun = Instant::now();
        while !end.load(Ordering::Relaxed) {
            let deployment = stage.get(&path).await;
            let skyhook = stage.get(&format!("{SKYHOOKS}/tuning")).await;
            if deployments::is_complete(&deployment) && is_complete(&skyhook) {
                vigil.lock().unwrap().rest(Timestamp::now());
                completed += 1;
                break;
            }
            let state = json!([deployment["status"], skyhook["status"]]);
            assert!(begun.elapsed() < Duration::from_mins(5), "it does not go on: {state:#}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    completed
}

fn is_complete(skyhook: &Value) -> bool {
    skyhook["status"]["status"] == "complete"
        && skyhook["status"]["observedGeneration"] == skyhook["metadata"]["generation"]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes 20 minutes: cargo xtask torture"]
async fn budgets_hold_whatever_happens_to_leaders() {
    let (trial, begun) = (Trial::from_environment(), Instant::now());
    let stage = Arc::new(Stage::set(&scenario()).await);
    skyhooks::furnish(&stage).await;
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "convoy", "namespace": "default"}});
    stage.send(Method::POST, LEASES, lease).await;
    let log = skyhooks::follow(&stage).await;
    skyhooks::create_skyhook(&stage).await;
    let mut deployment = deployments::deployment();
    deployment["spec"]["template"]["spec"]["nodeSelector"] = json!({"pool": "web"});
    let made = stage.send(Method::POST, DEPLOYMENTS, deployment).await;
    let mut vigil = Vigil::default();
    vigil.see(&Object::from_value(made).unwrap(), false, Hand::Other, Timestamp::now()).unwrap();
    let vigil = Arc::new(Mutex::new(vigil));
    let seen = Arc::clone(&vigil);
    let watcher = Watcher::start(stage.client.clone(), PODS, move |pod, is_gone| {
        seen.lock().unwrap().see(pod, is_gone, Hand::Loop, Timestamp::now())
    })
    .await;
    let end = Arc::new(AtomicBool::new(false));
    let rollouts = tokio::spawn(roll(Arc::clone(&stage), vigil, Arc::clone(&end)));

    let seed = Seed::new(1).child("torture", "");
    let mut pair = Pair { stage: &stage, candidates: Vec::new(), started: 0 };
    let mut left = [trial.kills, trial.stops, trial.deletions];
    for round in 0..trial.rounds() {
        assert!(begun.elapsed() < trial.limit, "{left:?} are left at the end of the time");
        let torment = draw(seed, round, left);
        pair.suffer(torment).await;
        left[torment as usize] -= 1;
        watcher.approve();
        // Into another moment of the work each time.
        let pause = seed.child("pause", "").nth(round).between(50, 1_500);
        tokio::time::sleep(Duration::from_millis(u64::try_from(pause).unwrap())).await;
    }
    pair.leader().await;
    end.store(true, Ordering::Relaxed);
    let completed = rollouts.await.unwrap();
    watcher.approve();
    let (pods, writes) = (watcher.seen(), log.complete(&stage).await);
    log.judge(&[], |_| {}).unwrap();
    let Trial { kills, stops, deletions, .. } = trial;
    let (processes, took) = (pair.started, begun.elapsed().as_secs());
    eprintln!(
        "{kills} kills, {stops} stops, {deletions} deleted leases, {processes} processes, \
         {completed} rollouts of both kinds, {pods} writes of pods and {writes} of nodes, packages \
         and Skyhooks seen, no budget exceeded, {took} s"
    );
    assert!(completed > 0 && pods > 100, "too little happened");
}
