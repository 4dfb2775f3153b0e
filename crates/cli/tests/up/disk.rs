//! A disk that is full or broken: writes are refused in words, reads go on, nothing is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::running::{Running, command};

/// Builds the library that breaks the disk on demand.
fn library(directory: &Path) -> PathBuf {
    let library = directory.join("broken_disk.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/up/broken_disk.c");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    let done = compile.status().unwrap_or_else(|error| panic!("this test needs cc: {error}"));
    assert!(done.success());
    library
}

/// Breaks the disk of a server in a way, and looks at what it says and what it keeps.
fn breaks(way: &str, cause: &str) {
    let tools = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    let disk = tools.path().join("disk");
    let mut up = command(data.path());
    let mut running =
        Running::start_as(up.env("LD_PRELOAD", library(tools.path())).env("CONVOY_DISK", &disk));
    running.kubectl("create configmap before --from-literal=a=b");
    fs::write(disk.with_extension(way), "").unwrap();
    for name in ["during", "again"] {
        let refused = running.refused(&format!("create configmap {name}"), "");
        assert!(
            refused.contains("the store rejects writes after a failed commit")
                && refused.contains(cause),
            "{refused}"
        );
    }
    // What is known to be safe is still served, and those who ask for health are told.
    assert_eq!(running.kubectl("get configmap before -o jsonpath={.data.a}"), "b");
    running.refused("get configmap during", "");
    let health = running.refused("get --raw /readyz?verbose", "");
    assert!(health.contains("[-]store failed"), "{health}");
    // A disk that recovers does not make what was refused certain: only a new start does.
    fs::remove_file(disk.with_extension(way)).unwrap();
    running.refused("create configmap later", "");
    assert_eq!(running.end("TERM"), Some(2), "it says that not all is well");
    let again = Running::start_in(data.path(), &[]);
    assert_eq!(again.kubectl("get configmap before -o jsonpath={.data.a}"), "b");
    again.kubectl("create configmap later");
    again.kubectl("get configmap later");
}

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    breaks("full", "No space left on device");
}

#[test]
fn a_disk_that_cannot_sync_refuses_writes_and_loses_nothing() {
    breaks("broken", "Input/output error");
}

#[test]
fn a_disk_that_is_full_at_start_is_named() {
    let tools = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    let disk = tools.path().join("disk");
    fs::write(disk.with_extension("full"), "").unwrap();
    let mut up = command(data.path());
    let output =
        up.env("LD_PRELOAD", library(tools.path())).env("CONVOY_DISK", &disk).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("No space left on device"), "{complaint}");
}
