//! A `convoy up` of a test's own, on a port of its own, gone with the test.

use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::access::{Access, split};

pub(crate) struct Running {
    child: Child,
    access: Access,
    pub(crate) url: String,
    /// Kept until the test ends.
    directory: Option<tempfile::TempDir>,
}

impl Running {
    /// A server with a data directory of its own.
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut running = Self::start_in(directory.path(), &[]);
        running.directory = Some(directory);
        running
    }

    /// A server in a directory that outlives it.
    pub(crate) fn start_in(directory: &Path, more: &[&str]) -> Self {
        Self::start_as(command(directory).args(more))
    }

    /// A server as a command describes it.
    pub(crate) fn start_as(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("not ready: {line:?}: {error}"));
        Self {
            child,
            access: Access::new(ready["kubeconfig"].as_str().unwrap().into()),
            url: ready["url"].as_str().unwrap().to_owned(),
            directory: None,
        }
    }

    /// Sends a signal by name and waits for the end; the exit code.
    pub(crate) fn end(&mut self, signal: &str) -> Option<i32> {
        let id = self.child.id().to_string();
        Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap();
        self.child.wait().unwrap().code()
    }

    /// Runs another command of the same program against this server.
    pub(crate) fn convoy(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_convoy"));
        command.args(split(arguments)).env("KUBECONFIG", &self.kubeconfig).output().unwrap()
    }

    /// What the system allows the server.
    pub(crate) fn limits(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/limits", self.child.id())).unwrap()
    }

    /// The memory that the server holds.
    pub(crate) fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Deref for Running {
    type Target = Access;

    fn deref(&self) -> &Access {
        &self.access
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `convoy up` in a directory, on a free port, announcing itself in JSON.
pub(crate) fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convoy"));
    command.args(["up", "--listen", "127.0.0.1:0", "--output", "json", "--data-dir"]);
    command.arg(directory);
    command
}
