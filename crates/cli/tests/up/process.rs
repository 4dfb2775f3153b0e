//! The process: how it starts, refuses to start, and ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::running::{Running, command};

#[test]
fn what_was_written_is_there_again_after_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = Running::start_in(directory.path(), &[]);
    first.kubectl("create configmap kept --from-literal=a=b");
    let before = first.kubectl("get configmap kept -o yaml");
    assert_eq!(first.end("TERM"), Some(0));
    let again = Running::start_in(directory.path(), &[]);
    assert_eq!(again.kubectl("get configmap kept -o yaml"), before);
}

#[test]
fn a_killed_server_loses_nothing_that_it_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = Running::start_in(directory.path(), &[]);
    first.kubectl("create configmap kept --from-literal=a=b");
    first.end("KILL");
    let again = Running::start_in(directory.path(), &[]);
    assert_eq!(again.kubectl("get configmap kept -o jsonpath={.data.a}"), "b");
}

#[test]
fn a_signal_ends_it_soon_and_watches_properly() {
    let mut running = Running::start();
    let mut watch = running.kubectl_command("get configmaps --watch -o name").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let begun = Instant::now();
    assert_eq!(running.end("INT"), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let ended = watch.wait().unwrap();
    assert!(ended.success(), "the watch ended with {ended}");
}

#[test]
fn the_directory_has_one_owner() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &[]);
    let second = command(directory.path()).output().unwrap();
    let complaint = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(complaint.contains("is in use by another process"), "{complaint}");
    running.kubectl("get namespaces");
}

#[test]
fn a_taken_port_is_named() {
    let running = Running::start();
    let address = running.url.trim_start_matches("https://");
    let output = Command::new(env!("CARGO_BIN_EXE_convoy"))
        .args(["up", "--ephemeral", "--listen", address])
        .output()
        .unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint.contains(address) && complaint.contains("--listen"), "{complaint}");
}

#[test]
fn data_of_a_newer_format_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = Running::start_in(directory.path(), &[]);
    assert_eq!(first.end("TERM"), Some(0));
    fs::write(directory.path().join("store/FORMAT"), "99\n").unwrap();
    let output = command(directory.path()).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint.contains("format 99"), "{complaint}");
}

#[test]
fn keys_and_kubeconfig_are_for_their_owner_alone() {
    let running = Running::start();
    let data = running.kubeconfig.parent().unwrap();
    for file in ["admin.kubeconfig", "pki/ca.key", "pki/server.key", "pki/admin.key"] {
        let mode = fs::metadata(data.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}
