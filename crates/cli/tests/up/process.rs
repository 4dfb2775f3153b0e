//! The process: how it starts, refuses to start, and ends.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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

/// `convoy up` in a shell that has done something before.
fn command_after(setup: &str, data: &Path) -> Command {
    let mut shell = Command::new("sh");
    let up = command(data);
    shell.args(["-c", &format!("{setup}; exec \"$0\" \"$@\"")]).arg(up.get_program());
    shell.args(up.get_args());
    shell
}

/// Every file below a directory, with the directory itself, except for what `kubectl` keeps there.
fn everything(path: &Path) -> Vec<PathBuf> {
    if path.ends_with("kubectl-cache") {
        return Vec::new();
    }
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            found.extend(everything(&entry.unwrap().path()));
        }
    }
    found
}

#[test]
fn everything_on_disk_is_for_its_owner_alone() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let audit = data.join("audit.log");
    let start = |name: &str| {
        let said = fs::File::create(parent.path().join(name)).unwrap();
        let mut up = command_after("umask 0", &data);
        let mut running = Running::start_as(up.arg("--audit-log").arg(&audit).stderr(said));
        running.kubectl("create configmap kept");
        running.kubectl("delete configmap kept");
        for path in everything(&data) {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
        }
        assert_eq!(running.end("TERM"), Some(0));
        fs::read_to_string(parent.path().join(name)).unwrap()
    };
    let said = start("first");
    assert!(!said.contains("permissions"), "{said}");
    // As an earlier version, or a copy, may have left it.
    for path in everything(&data) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let said = start("second");
    for name in ["data", "store", "pki", "admin.kubeconfig", "audit.log"] {
        let is_named = |line: &str| {
            line.contains("removed the permissions of other users")
                && line.contains(&format!("{name} files="))
        };
        assert!(said.lines().any(is_named), "{name}: {said}");
    }
}

#[test]
fn the_limit_of_open_files_is_raised() {
    let data = tempfile::tempdir().unwrap();
    let running = Running::start_as(&mut command_after("ulimit -S -n 200", data.path()));
    let limits = running.limits();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3], words[4], "{line}");
}

/// Connects until so many connections are open, and says nothing on any of them.
fn crowd(address: &str, connections: &mut Vec<TcpStream>, wanted: usize) {
    connections.retain(|stream| {
        stream.set_nonblocking(true).unwrap();
        let closed = matches!((&mut &*stream).read(&mut [0; 1]), Ok(0));
        !closed
    });
    while connections.len() < wanted {
        connections.push(TcpStream::connect(address).unwrap());
    }
}

#[test]
fn half_open_connections_cost_no_write() {
    // The number at which the store ran out of files once: 13 are left of a hard limit of 1,024.
    const HALF_OPEN: usize = 1_011;
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let data = tempfile::tempdir().unwrap();
    let mut running = Running::start_as(&mut command_after("ulimit -n 1024", data.path()));
    let address = running.url.trim_start_matches("https://").to_owned();
    let mut connections = Vec::new();
    for write in 0..3 {
        crowd(&address, &mut connections, HALF_OPEN);
        running.kubectl(&format!("create configmap during-{write}"));
    }
    running.kubectl("get --raw /readyz");
    drop(connections);
    assert_eq!(running.end("TERM"), Some(0));
    let again = Running::start_in(data.path(), &[]);
    let kept = again.kubectl("get configmaps -o name");
    let kept = kept.lines().filter(|name| name.starts_with("configmap/during-")).count();
    assert_eq!(kept, 3);
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
