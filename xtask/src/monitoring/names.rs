//! The series that the control loop serves, read from the code that registers them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::kubernetes::root;

/// What becomes of the name of a metric in the text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gauge,
    Counter,
    Histogram,
}

/// The names of all series: `_total` for counters, and three for each histogram.
pub(super) fn registered() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["crates/plan/src", "crates/controllers/src"] {
        for text in sources(&root().join(folder)) {
            let (code, _) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
            for (name, kind) in of_registry(code).into_iter().chain(of_plan(code)) {
                let endings: &[&str] = match kind {
                    Kind::Gauge => &[""],
                    Kind::Counter => &["_total"],
                    Kind::Histogram => &["_bucket", "_sum", "_count"],
                };
                names.extend(endings.iter().map(|ending| format!("{name}{ending}")));
            }
        }
    }
    names
}

fn sources(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            texts.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            texts.push(fs::read_to_string(path).expect("readable"));
        }
    }
    texts
}

/// Metrics that `registry.register(NAME, HELP, self.FIELD.clone())` registers: the type of the field
/// says what they are.
fn of_registry(code: &str) -> Vec<(String, Kind)> {
    let metric = |call: &str| {
        let name = call.split('"').nth(1)?.to_owned();
        let field = call.split_once("self.")?.1.split('.').next()?;
        let declared = code.lines().find(|line| line.trim().starts_with(&format!("{field}: ")))?;
        let kind = match declared {
            line if line.contains("Histogram") => Kind::Histogram,
            line if line.contains("Counter") => Kind::Counter,
            _ => Kind::Gauge,
        };
        Some((name, kind))
    };
    let calls = code.split("registry.register(").skip(1);
    calls.map(|call| metric(call).expect("a name, and a field of the struct")).collect()
}

/// Metrics that the engine declares: `const X: Metric = Metric::new(NAME, …)` is a gauge, or a
/// counter if decisions increment it.
fn of_plan(code: &str) -> Vec<(String, Kind)> {
    let mut found = Vec::new();
    for declared in code.split("const ").skip(1) {
        let Some((identifier, value)) = declared.split_once(": Metric =") else { continue };
        let value = value.trim_start();
        let kind = if value.starts_with("Metric::histogram(") {
            Kind::Histogram
        } else if code.contains(&format!("Increment::new(&{identifier},")) {
            Kind::Counter
        } else {
            Kind::Gauge
        };
        found.extend(value.split('"').nth(1).map(|name| (name.to_owned(), kind)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let names = registered();
        for name in [
            "convoy_queue_depth",
            "convoy_passes_total",
            "convoy_plan_seconds_bucket",
            "convoy_rollout_seconds_count",
            "convoy_batch_stopped",
            "skyhook_rollout_ceiling",
            "fleet_work_processing_requests_total",
            "fleet_workload_update_run_approval_request_latency_seconds_sum",
        ] {
            assert!(names.contains(name), "{name} is not in {names:#?}");
        }
        assert!(!names.contains("convoy_passes"));
    }
}
