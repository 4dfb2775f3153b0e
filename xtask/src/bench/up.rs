//! A process of `convoy up` under measurement.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use convoy_kubernetes::{Process, Programs, Running, flags, own_kubectl};
use serde_json::Value;

use super::table::Figures;

/// Interval between polls; polling takes time from the cores that are measured.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A process of `convoy up`, and when it was started.
pub(super) struct Up {
    pub(super) process: Process,
    begun: Instant,
    pub(super) kubectl: PathBuf,
    pub(super) kubeconfig: PathBuf,
}

/// The binary to measure: the one that is given, or one of the dist profile.
pub(super) fn binary(given: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(path) => path.canonicalize().context("--convoy: no such file"),
        None => Ok(super::programs(None)?.join("convoy")),
    }
}

impl Up {
    /// Starts it on the data of a directory, with more flags, and waits until it is ready.
    pub(super) fn start(convoy: &Path, running: &Running, more: &[(&str, &str)]) -> Result<Self> {
        let kubeconfig = running.directory.join("admin.kubeconfig");
        let [data, config] = [running.directory.join("data"), kubeconfig.clone()]
            .map(|path| path.to_string_lossy().into_owned());
        let mut command = Command::new(convoy);
        command.arg("up").stdout(Stdio::piped()).args(flags(&[
            ("--listen", "127.0.0.1:0"),
            ("--data-dir", &data),
            ("--kubeconfig", &config),
            ("--output", "json"),
        ]));
        command.args(flags(more));
        let begun = Instant::now();
        let mut process = running.start_as(&mut command)?;
        process.first_line()?;
        let kubectl = own_kubectl().map_or_else(|| Programs::find().map(|it| it.kubectl), Ok)?;
        Ok(Self { process, begun, kubectl, kubeconfig })
    }

    /// Notes the time since the start, the processor time and the memory.
    pub(super) fn set(&self, figures: &mut Figures, what: &str) -> Result<()> {
        figures.set(&format!("{what} after, s"), self.begun.elapsed().as_secs_f64());
        figures.set(&format!("{what}, processor time, s"), self.process.processor_seconds()?);
        figures.set(&format!("{what}, memory, MiB"), self.process.resident_mib()?);
        Ok(())
    }

    pub(super) fn kubectl(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.output(&[arguments, &["--output", "json"]].concat())?;
        Ok(serde_json::from_slice(&output).unwrap_or_default())
    }

    /// The response to a GET.
    pub(super) fn get(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&self.output(&["get", "--raw", path])?)?)
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<Value>> {
        match self.get(path)?["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("{path} is no list"),
        }
    }

    fn output(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new(&self.kubectl);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        let output = command.output().context("could not run kubectl")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {complaint}", arguments.join(" "));
        Ok(output.stdout)
    }
}

/// A condition of an object.
pub(super) fn condition<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind)
}

/// Polls until so many are counted.
pub(super) fn wait(
    minutes: u64,
    what: &str,
    wanted: usize,
    mut count: impl FnMut() -> Result<usize>,
) -> Result<()> {
    let (started, limit) = (Instant::now(), Duration::from_secs(minutes * 60));
    loop {
        let found = count()?;
        eprintln!("{:6.1} s: {found} of {wanted} {what}", started.elapsed().as_secs_f64());
        if found >= wanted {
            return Ok(());
        }
        ensure!(started.elapsed() < limit, "timed out: {found} of {wanted} {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The time as objects tell it, to the second.
pub(super) fn now() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output();
    let output = output.context("could not run date")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
