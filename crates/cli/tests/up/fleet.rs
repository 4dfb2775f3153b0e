//! Simulated nodes: in `convoy up`, and attached by `convoy fleet`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::running::Running;

#[test]
fn pods_run_on_simulated_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "3"]);
    assert_eq!(running.kubectl("get nodes -o name").lines().count(), 3);
    running.kubectl("run web --image=nginx");
    running.kubectl("wait --for=condition=Ready pod/web --timeout=20s");
    running.kubectl("delete pod web --timeout=20s");
}

#[test]
fn a_fleet_is_attached_and_leaves() {
    let running = Running::start();
    let mut fleet = Command::new(env!("CARGO_BIN_EXE_convoy"))
        .args(["fleet", "--nodes", "5", "--schedule", "--remove-nodes", "--kubeconfig"])
        .arg(&running.kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(fleet.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "5 simulated nodes are ready\n");
    running.kubectl("run web --image=nginx");
    running.kubectl("wait --for=condition=Ready pod/web --timeout=20s");
    Command::new("kill").args(["-TERM", &fleet.id().to_string()]).status().unwrap();
    assert!(fleet.wait().unwrap().success());
    assert_eq!(running.kubectl("get nodes -o name"), "");
}
