//! Runs `e2e.test`, Kubernetes' own end-to-end suite, and reads its reports.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use convoy_kubernetes::Running;
use serde_json::Value;

use super::list::{SpecResult, first_line};

/// The suite and the kubectl that some specs run.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) program: PathBuf,
    pub(super) kubectl: PathBuf,
    /// Directory for logs and reports.
    pub(super) reports: PathBuf,
}

/// A spec of the suite.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) labels: BTreeSet<String>,
}

/// A spec that ran to its end.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) spec: String,
    pub(super) outcome: SpecResult,
    pub(super) seconds: f64,
    /// Whether the timeout of the suite ended it.
    pub(super) timed_out: bool,
}

/// After the timeout of the suite, which then cleans up.
const GRACE: Duration = Duration::from_mins(2);

impl Suite {
    /// All specs, without running any.
    pub(super) fn specs(&self) -> Result<Vec<Spec>> {
        let running = Running::new("conformance")?;
        let report = self.reports.join("specs.json");
        let mut command = Command::new(&self.program);
        command.args(["--ginkgo.dry-run", "--provider=skeleton", "--ginkgo.skip=^$"]);
        command.arg(format!("--ginkgo.json-report={}", report.display()));
        let log = File::create(self.reports.join("specs.log"))?;
        command.stdout(log.try_clone()?).stderr(log);
        let code = running.start_as(&mut command)?.wait(GRACE)?;
        let reports =
            specs_in(&report).with_context(|| format!("e2e.test exited with {code:?}"))?;
        let spec = |report: &Value| Spec { name: name(report), labels: labels(report) };
        Ok(reports.iter().filter(|report| is_spec(report)).map(spec).collect())
    }

    /// Runs specs one after the other, within a timeout for all of them. Those that it prevented are
    /// not in the result.
    pub(super) fn run(
        &self,
        kubeconfig: &Path,
        specs: &[String],
        timeout: Duration,
        title: &str,
    ) -> Result<Vec<Ended>> {
        let running = Running::new("conformance")?;
        let report = self.reports.join(format!("{title}.json"));
        let mut command = Command::new(&self.program);
        command.arg(format!("--kubeconfig={}", kubeconfig.display()));
        command.arg(format!("--kubectl-path={}", self.kubectl.display()));
        command.arg(format!("--ginkgo.json-report={}", report.display()));
        command.arg(format!("--ginkgo.timeout={}s", timeout.as_secs()));
        command.arg(format!("--ginkgo.focus={}", focus(specs)));
        // Simulated nodes have no logs, and addresses that nobody answers at.
        command.args(["--provider=skeleton", "--dump-logs-on-failure=false", "--ginkgo.no-color"]);
        let log = self.reports.join(format!("{title}.log"));
        let output = File::create(&log)?;
        command.stdout(output.try_clone()?).stderr(output);
        running.start_as(&mut command)?.wait(timeout + GRACE)?;
        let Ok(reports) = specs_in(&report) else {
            let log = fs::read_to_string(&log).unwrap_or_default();
            bail!("e2e.test left no report: {}", log.lines().last().unwrap_or("no output"));
        };
        if let Some(failure) = reports.iter().find(|report| !is_spec(report) && has_failed(report))
        {
            let message = first_line(text(&failure["Failure"]["Message"]));
            bail!("{} of e2e.test failed: {message}", text(&failure["LeafNodeType"]));
        }
        let wanted: BTreeSet<&String> = specs.iter().collect();
        let ended = reports.iter().filter_map(ended);
        Ok(ended.filter(|ended| wanted.contains(&ended.spec)).collect())
    }
}

/// A pattern for the full names of these specs; the suite's name comes before them.
fn focus(specs: &[String]) -> String {
    let escaped = specs.iter().map(|spec| {
        let special = |letter: &char| r"\.+*?()|[]{}^$".contains(*letter);
        let letters = spec
            .chars()
            .flat_map(|letter| special(&letter).then_some('\\').into_iter().chain([letter]));
        letters.collect::<String>()
    });
    format!(" (?:{})$", escaped.collect::<Vec<_>>().join("|"))
}

/// The reports of specs in a report of the suite, and of what is done before and after them.
fn specs_in(report: &Path) -> Result<Vec<Value>> {
    let report = fs::read(report).context("no report")?;
    let mut report: Value = serde_json::from_slice(&report)?;
    match report[0]["SpecReports"].take() {
        Value::Array(specs) => Ok(specs),
        _ => bail!("the report has no specs"),
    }
}

fn is_spec(report: &Value) -> bool {
    report["LeafNodeType"] == "It"
}

fn has_failed(report: &Value) -> bool {
    !matches!(text(&report["State"]), "passed" | "skipped" | "pending")
}

fn name(report: &Value) -> String {
    let containers = report["ContainerHierarchyTexts"].as_array().into_iter().flatten();
    let texts = containers.chain([&report["LeafNodeText"]]).map(text);
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

fn labels(report: &Value) -> BTreeSet<String> {
    let containers = report["ContainerHierarchyLabels"].as_array().into_iter().flatten();
    let lists = containers.chain([&report["LeafNodeLabels"]]);
    lists
        .flat_map(|list| list.as_array().into_iter().flatten())
        .map(|label| text(label).to_owned())
        .collect()
}

/// How a spec ended; nothing if it did not run.
fn ended(report: &Value) -> Option<Ended> {
    let message = text(&report["Failure"]["Message"]);
    let state = text(&report["State"]);
    let outcome = match state {
        "passed" => SpecResult::Passed,
        "skipped" | "pending" if message.is_empty() => return None,
        "skipped" | "pending" => SpecResult::Skipped(message.to_owned()),
        _ => SpecResult::Failed(message.to_owned()),
    };
    let nanoseconds = report["RunTime"].as_f64().unwrap_or_default();
    let timed_out = matches!(state, "timedout" | "interrupted" | "aborted");
    is_spec(report).then(|| Ended {
        spec: name(report),
        outcome,
        seconds: nanoseconds / 1e9,
        timed_out,
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pattern_has_the_literal_names() {
        let specs = ["[sig-apps] a (b)".to_owned(), "c.d".to_owned()];
        assert_eq!(focus(&specs), r" (?:\[sig-apps\] a \(b\)|c\.d)$");
    }

    #[test]
    fn a_spec_that_did_not_run_has_no_outcome() {
        let report = |state: &str, message: &str| {
            json!({"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-apps] Job", ""],
                "LeafNodeText": "ends", "State": state, "Failure": {"Message": message},
                "RunTime": 1_500_000_000_u64, "ContainerHierarchyLabels": [["sig-apps"], null],
                "LeafNodeLabels": ["Conformance"]})
        };
        assert!(ended(&report("skipped", "")).is_none());
        let skipped = ended(&report("skipped", "needs a cloud")).unwrap();
        assert_eq!(skipped.outcome, SpecResult::Skipped("needs a cloud".to_owned()));
        let late = ended(&report("timedout", "A suite timeout occurred")).unwrap();
        assert!(late.timed_out && matches!(late.outcome, SpecResult::Failed(_)));
        let passed = ended(&report("passed", "")).unwrap();
        assert_eq!(
            (passed.spec.as_str(), passed.outcome),
            ("[sig-apps] Job ends", SpecResult::Passed)
        );
        assert!((passed.seconds - 1.5).abs() < 1e-9);
        let labels = labels(&report("passed", ""));
        assert_eq!(
            labels.iter().map(String::as_str).collect::<Vec<_>>(),
            ["Conformance", "sig-apps"]
        );
    }
}
