//! Simulations agree with reality: a recorded cluster, the same change and the same scenario take as
//! long in virtual time as they take in `convoy up`, for every dialect.

mod clusters;
mod nodes;

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::running::{Running, command};

/// How far simulation and reality may differ, in percent of the real time.
const DIFFERENCE_MAX: f64 = 10.0;

/// On a machine that does other things too, reality takes longer now and then.
const ATTEMPTS: usize = 3;

/// A rollout that is carried out and simulated.
struct Case<'a> {
    /// Of `convoy up`.
    flags: &'a [&'a str],
    /// The nodes of the scenario. Recorded nodes need none of them.
    nodes: &'a str,
    /// Latencies, long in comparison with what the programs themselves take.
    latencies: &'a str,
    /// What is there when the cluster is recorded.
    prepare: &'a dyn Fn(&Running),
    /// The manifests that begin the rollout.
    change: String,
    /// The kind of the rollout, as its key begins.
    kind: &'a str,
    /// Waits until the rollout is done.
    wait: &'a dyn Fn(&Running),
}

impl Case<'_> {
    /// Tries a few times, on a server of its own each; in one of them simulation and reality agree.
    fn agrees(&self) {
        let mut seen = Vec::new();
        for _ in 0..ATTEMPTS {
            let (real, simulated) = self.attempt();
            seen.push(format!("real {real:.2} s, simulated {simulated:.2} s"));
            eprintln!("{}: {}", self.kind, seen[seen.len() - 1]);
            if (simulated - real).abs() <= real * DIFFERENCE_MAX / 100.0 {
                return;
            }
        }
        panic!("{}", seen.join("; "));
    }

    /// Records the cluster, applies the change and waits for its end, and simulates the same: the
    /// seconds that both took.
    fn attempt(&self) -> (f64, f64) {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = directory.path().join(name);
            fs::write(&path, content).unwrap();
            path.display().to_string()
        };
        let scenario = format!("seed: 3\nnodes: {}\n{}", self.nodes, self.latencies);
        let scenario = file("scenario.yaml", scenario.as_bytes());
        let mut up = command(&directory.path().join("data"));
        let running = Running::start_as(up.args(self.flags).args(["--scenario", &scenario]));
        (self.prepare)(&running);
        let recorded = running.convoy("record");
        assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
        let dump = file("dump.yaml", &recorded.stdout);
        let change = file("change.yaml", self.change.as_bytes());
        running.kubectl_with("apply -f -", &self.change);
        let begun = Instant::now();
        (self.wait)(&running);
        let real = begun.elapsed().as_secs_f64();
        drop(running);
        let latencies = file("latencies.yaml", format!("seed: 3\n{}", self.latencies).as_bytes());
        let files = ["-f", &dump, "--apply", &change, "--scenario", &latencies];
        (real, self.simulated(&files, directory.path()))
    }

    fn simulated(&self, files: &[&str], within: &Path) -> f64 {
        let mut convoy = std::process::Command::new(env!("CARGO_BIN_EXE_convoy"));
        convoy.arg("simulate").args(files).args(["--seeds", "3", "-o", "json"]);
        let output = convoy.current_dir(within).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let outlook: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {errors}"));
        let rollouts = outlook["rollouts"].as_array().unwrap();
        let is_it = |it: &&Value| it["object"].as_str().is_some_and(|it| it.starts_with(self.kind));
        let rollout = rollouts.iter().find(is_it).unwrap();
        let median = rollout["durationSeconds"]["median"].as_f64();
        median.unwrap_or_else(|| panic!("not done: {rollout}: {}", outlook["courses"][0]))
    }
}

/// Waits for simulated nodes: they are there once they have reported themselves.
fn await_nodes(running: &Running, count: usize) {
    running.until("nodes", |nodes| {
        let nodes = nodes["items"].as_array().unwrap();
        nodes.len() == count
            && nodes.iter().all(|node| node["status"]["nodeInfo"]["bootID"].is_string())
    });
}
