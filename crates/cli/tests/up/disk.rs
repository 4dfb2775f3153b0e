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

/// A server on a disk that can be broken, with one object in it.
struct Server {
    running: Running,
    data: tempfile::TempDir,
    disk: PathBuf,
    _tools: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let tools = tempfile::tempdir().unwrap();
        let data = tempfile::tempdir().unwrap();
        let disk = tools.path().join("disk");
        let mut up = command(data.path());
        let said = fs::File::create(tools.path().join("said")).unwrap();
        up.env("LD_PRELOAD", library(tools.path())).env("CONVOY_DISK", &disk).stderr(said);
        let running = Running::start_as(&mut up);
        running.kubectl("create configmap before --from-literal=a=b");
        Self { running, data, disk, _tools: tools }
    }

    /// Breaks the disk in a way, and looks at what the server says and what it keeps.
    fn breaks(&self, way: &str, cause: &str) {
        let running = &self.running;
        fs::write(self.disk.with_extension(way), "").unwrap();
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
        fs::remove_file(self.disk.with_extension(way)).unwrap();
    }

    /// What the server has logged, to the same disk.
    fn said(&self) -> String {
        fs::read_to_string(self.disk.with_file_name("said")).unwrap()
    }

    /// Starts again, where everything is.
    fn starts_again(&self) {
        let again = Running::start_in(self.data.path(), &[]);
        assert_eq!(again.kubectl("get configmap before -o jsonpath={.data.a}"), "b");
        again.kubectl("create configmap last");
        again.kubectl("get configmap last");
    }
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space() {
    let mut server = Server::start();
    server.breaks("full", "No space left on device");
    server.running.kubectl("create configmap later");
    server.running.kubectl("get --raw /readyz");
    let said = server.said();
    assert!(said.contains("the store takes writes again"), "{said}");
    assert_eq!(server.running.end("TERM"), Some(0));
    server.starts_again();
}

#[test]
fn a_disk_that_cannot_sync_refuses_writes_and_loses_nothing() {
    let mut server = Server::start();
    server.breaks("broken", "Input/output error");
    let said = server.said();
    assert!(said.contains("the store rejects writes") && said.contains("output error"), "{said}");
    // A disk that recovers does not make what was refused certain: only a new start does.
    server.running.refused("create configmap later", "");
    assert_eq!(server.running.end("TERM"), Some(2), "it says that not all is well");
    server.starts_again();
}

/// What a server says that ends at once.
fn complaint(data: &Path) -> String {
    let output = command(data).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn lost_objects_are_told_and_may_be_accepted() {
    let data = tempfile::tempdir().unwrap();
    let mut running = Running::start_in(data.path(), &[]);
    running.kubectl("create configmap lost");
    let version = running.kubectl("get configmap lost -o jsonpath={.metadata.resourceVersion}");
    assert_eq!(running.end("TERM"), Some(0));
    fs::remove_file(data.path().join("store/objects/0.jnl")).unwrap();
    let said = complaint(data.path());
    assert!(said.contains("the log 0.jnl is missing") && said.contains("--accept-loss"), "{said}");
    // Saying so has changed nothing.
    assert!(complaint(data.path()).contains("the log 0.jnl is missing"));
    let said = data.path().join("said");
    let mut up = command(data.path());
    up.arg("--accept-loss").stderr(fs::File::create(&said).unwrap());
    let mut again = Running::start_as(&mut up);
    again.refused("get configmap lost", "");
    again.kubectl("create configmap found");
    let next = again.kubectl("get configmap found -o jsonpath={.metadata.resourceVersion}");
    let number = |text: &str| text.parse::<u64>().unwrap();
    assert!(number(&next) > number(&version), "{next} after {version}");
    let said = fs::read_to_string(said).unwrap();
    assert!(said.contains(&format!("revision_before={}", number(&version))), "{said}");
    assert_eq!(again.end("TERM"), Some(0));
    Running::start_in(data.path(), &[]).kubectl("get configmap found");
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
