//! `convoy demo`, from its first line to the directory that it removes.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::home::CONVOY;
use crate::shell::{Guides, Shell};

/// A demo whose temporary files are in a directory of the test.
fn demo(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(CONVOY);
    command.arg("demo").args(arguments).env("TMPDIR", directory).stdin(Stdio::null());
    command
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn every_rollout_ends_as_it_should_and_nothing_is_left() {
    let mut guides = Guides::of("up/demo.rs::every_rollout_ends_as_it_should_and_nothing_is_left");
    assert_eq!(guides.take("first-ten-minutes.md", "convoy demo"), "convoy demo");
    let directory = tempfile::tempdir().unwrap();
    let ended = demo(directory.path(), &[]).output().unwrap();
    let told = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{told}\n{}", String::from_utf8_lossy(&ended.stderr));
    for expected in [
        "Deployment shop/web: 6 of 6 replicas have what is new; at most 1 down at once, 1 allowed",
        "Skyhook gpu-driver: 6 of 6 nodes have what is new",
        "ManifestWorkReplicaSet settings/settings: 4 of 4 clusters have what is new",
        "NodePool workers: 3 of 3 nodes have what is new; at most 1 down at once, 1 allowed",
        "ClusterResourcePlacement store: the bad release reached 1 of 4 clusters; 3 kept working",
        "3 bindings wait: 1 of 1 slots of maxUnavailable in use by store-member-",
        "No budget was exceeded and every guarantee held",
    ] {
        assert!(told.contains(expected), "{expected:?} is not in\n{told}");
    }
    assert!(!told.contains('\x1b'), "no colors where there is no terminal");
    assert!(is_empty(directory.path()));
}

/// As in an image with a read-only root.
#[test]
fn a_demo_without_room_for_files_says_what_to_do() {
    let ended = demo(Path::new("/nowhere"), &[]).output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success());
    assert!(told.contains("could not create a temporary directory in /nowhere"), "{told}");
    assert!(told.contains("set TMPDIR"), "{told}");
}

/// Waits for the line that says that the rollouts begin.
fn await_beginning(child: &mut Child) {
    let mut seen = Vec::new();
    let out = child.stdout.as_mut().unwrap();
    while !seen.ends_with(b"Now these change:\n") {
        let mut byte = [0];
        let read = std::io::Read::read(out, &mut byte).unwrap();
        assert_eq!(read, 1, "it ended: {}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
}

#[test]
fn an_interrupted_demo_takes_its_server_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut child =
        demo(directory.path(), &["--dialect", "apps"]).stdout(Stdio::piped()).spawn().unwrap();
    await_beginning(&mut child);
    let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(process, Signal::INT).unwrap();
    let begun = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(is_empty(directory.path()));
}

#[test]
fn a_demo_that_is_kept_says_what_to_try() {
    let directory = tempfile::tempdir().unwrap();
    let ended = demo(directory.path(), &["--dialect=apps", "--keep"]).output().unwrap();
    let told = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{told}");
    let line = |start: &str| {
        let line = told.lines().find_map(|line| line.trim().strip_prefix(start));
        line.unwrap_or_else(|| panic!("no {start:?} in\n{told}")).to_owned()
    };
    let access = crate::access::Access::new(line("export KUBECONFIG=").into());
    assert_eq!(access.kubectl("get deployments -n shop -o name"), "deployment.apps/web\n");
    // Everything else that it says works as it stands, but for the line that ends the server.
    let shell = Shell::new(&access.kubeconfig);
    let (_, lines) = told.split_once("export KUBECONFIG=").unwrap();
    let lines: Vec<&str> = lines.lines().skip(1).map(str::trim).collect();
    for (command, expected) in lines.iter().zip(["web", "Done", "web", "Ready"]) {
        let said = shell.run(command);
        assert!(said.contains(expected), "{command}: {said}");
    }
    assert_eq!(lines.len(), 5, "{lines:?}");
    let down = line("convoy down ");
    let kept = down.split(' ').nth(1).unwrap().trim_end_matches(';');
    let stopped = Command::new(CONVOY).args(["down", "--data-dir", kept]).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
}
