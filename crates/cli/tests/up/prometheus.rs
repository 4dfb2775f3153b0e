//! A real Prometheus that watches processes, and `promtool`, built at the versions in
//! `prometheus/go.mod`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::clients::{go_program, go_tool};

/// How often targets are scraped and rules are evaluated.
const EVERY: &str = "global: {scrape_interval: 1s, evaluation_interval: 1s}\n";

const PATIENCE: Duration = Duration::from_mins(1);

/// The program of Prometheus that checks rules and runs their tests.
pub(crate) fn promtool() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| go_tool("prometheus", "github.com/prometheus/prometheus/cmd/promtool"))
}

/// Discovery, scraping, rules, storage and queries, all of Prometheus itself; `prometheus/main.go`
/// has no web interface. It ends with this value, and with this process.
pub(crate) struct Prometheus {
    child: Child,
    expressions: ChildStdin,
    results: BufReader<ChildStdout>,
    directory: tempfile::TempDir,
}

/// A series of an instant vector.
#[derive(Debug, Deserialize)]
pub(crate) struct Sample {
    pub(crate) labels: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct QueryResult {
    samples: Option<Vec<Sample>>,
    error: Option<String>,
}

impl Prometheus {
    /// Watches what a configuration says, which has no section `global`.
    pub(crate) fn start(configuration: &str) -> Self {
        static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
        let program = PROGRAM.get_or_init(|| go_program("prometheus"));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("prometheus.yaml");
        std::fs::write(&file, format!("{EVERY}{configuration}")).unwrap();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let mut command = Command::new(program);
        command.arg(&file).arg(directory.path().join("data"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, expressions: input, results: BufReader::new(output), directory }
    }

    /// The series that an expression gives now.
    pub(crate) fn query(&mut self, expr: &str) -> Vec<Sample> {
        let mut line = String::new();
        let asked = writeln!(self.expressions, "{expr}");
        let received = asked.and_then(|()| self.results.read_line(&mut line));
        let result: Option<QueryResult> =
            received.ok().and_then(|_| serde_json::from_str(&line).ok());
        let result = result.unwrap_or_else(|| panic!("Prometheus has ended: {}", self.log()));
        if let Some(error) = result.error {
            panic!("{expr}: {error}");
        }
        result.samples.unwrap_or_default()
    }

    /// The same, once there is a series.
    pub(crate) fn until(&mut self, expr: &str) -> Vec<Sample> {
        let begun = Instant::now();
        loop {
            let found = self.query(expr);
            if !found.is_empty() {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "{expr} gives nothing: {}", self.log());
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
