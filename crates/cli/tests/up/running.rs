//! A `convoy up` of a test's own, on a port of its own, gone with the test.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

pub(crate) struct Running {
    child: Child,
    pub(crate) kubeconfig: PathBuf,
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
            kubeconfig: ready["kubeconfig"].as_str().unwrap().into(),
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

    /// Runs kubectl; its output must be a success.
    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        self.kubectl_with(arguments, "")
    }

    pub(crate) fn kubectl_with(&self, arguments: &str, input: &str) -> String {
        let output = self.try_kubectl(arguments, input);
        let text = String::from_utf8(output.stdout).unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments}\n{text}\n{complaint}");
        text
    }

    /// What kubectl prints on standard error when it fails, which it must.
    pub(crate) fn refused(&self, arguments: &str, input: &str) -> String {
        let output = self.try_kubectl(arguments, input);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "kubectl {arguments} succeeded\n{text}");
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn try_kubectl(&self, arguments: &str, input: &str) -> Output {
        let mut child = self.kubectl_command(arguments).spawn().unwrap_or_else(|error| {
            panic!("kubectl cannot be run ({error}): `cargo xtask ci` brings one, or set CONVOY_KUBECTL")
        });
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs another command of the same program against this server.
    pub(crate) fn convoy(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_convoy"));
        command.args(split(arguments)).env("KUBECONFIG", &self.kubeconfig).output().unwrap()
    }

    /// The memory that the server holds.
    pub(crate) fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn kubectl_command(&self, arguments: &str) -> Command {
        let program = std::env::var_os("CONVOY_KUBECTL").unwrap_or_else(|| "kubectl".into());
        let mut command = Command::new(program);
        command
            .args(split(arguments))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.kubeconfig.with_file_name("kubectl-cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
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

/// Words, with single quotes keeping blanks together.
fn split(arguments: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in arguments.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
