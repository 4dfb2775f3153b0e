//! Plans and findings as text. Color only repeats what the words say.

#[cfg(feature = "server")]
mod budgets;
#[cfg(feature = "server")]
pub(crate) mod causes;
#[cfg(feature = "server")]
pub(crate) mod disruptable;
#[cfg(feature = "server")]
pub(crate) mod forecast;
#[cfg(feature = "server")]
pub(crate) mod history;
mod holds;
#[cfg(feature = "server")]
pub(crate) mod listing;
mod rollout;
mod style;
mod table;
mod time;
#[cfg(feature = "server")]
pub(crate) mod tree;
mod words;

use std::collections::BTreeSet;
use std::fmt::Write;

use convoy_api::ObjectKey;
use convoy_plan::{Severity, Step, Verdict};

use crate::finding::{self, Finding};
use crate::report::Report;
use style::{BAD, DIM, HEADING, painted};
use table::{Cell, Table};
use words::{count, plain, target};

/// Logical clusters, a line each.
#[cfg(feature = "server")]
pub(crate) fn clusters(clusters: &[serde_json::Value]) -> String {
    let mut table = Table::new(&["NAME", "PHASE", "CONTEXT", "URL"].map(Cell::heading));
    for cluster in clusters {
        let cell = |field: &str| Cell::new(cluster[field].as_str().unwrap_or_default());
        table.row(["name", "phase", "context", "url"].map(cell).to_vec());
    }
    let mut text = String::new();
    table.write(&mut text, 0);
    text
}

/// A whole plan: every rollout, the availability of other objects, the findings, the violated
/// guarantees, and a summary line.
pub fn plan(report: &Report) -> String {
    let mut text = String::new();
    let (mut judged, rollouts): (Vec<&Step>, Vec<&Step>) =
        report.plan.steps.iter().partition(|step| is_availability(step));
    // The report of a rollout includes the availability of its object.
    let told: BTreeSet<&ObjectKey> = rollouts.iter().map(|step| &step.rollout).collect();
    judged.retain(|step| !told.contains(&step.rollout));
    for step in &rollouts {
        rollout::write(&mut text, step, report);
        text.push('\n');
    }
    if !judged.is_empty() {
        availability(&mut text, &judged);
        text.push('\n');
    }
    for found in &report.findings {
        text.push_str(&finding(found));
    }
    if !report.findings.is_empty() {
        text.push('\n');
    }
    if let Some(violations) = &report.violations {
        guarantees(&mut text, violations);
    }
    text.push_str(&summary(report, &rollouts));
    text
}

/// A rollout in a line: where it stands and how far it is.
#[cfg(feature = "server")]
pub(crate) fn title(step: &Step) -> String {
    rollout::title(step)
}

/// Why members of a rollout wait, a line for each reason.
#[cfg(feature = "server")]
pub(crate) fn reasons(step: &Step, now: jiff::Timestamp) -> String {
    let mut text = String::new();
    holds::write(&mut text, step, now);
    text
}

/// The findings of `convoy validate`, and a summary line.
pub(crate) fn validation(objects: usize, findings: &[Finding]) -> String {
    let mut text: String = findings.iter().map(finding).collect();
    let _ = writeln!(text, "{} read: {}", count(objects, "object"), verdicts(findings));
    text
}

/// One finding: location, object, field, message.
pub(crate) fn finding(finding: &Finding) -> String {
    let word = match finding.severity {
        Severity::Error => painted(style::BAD, "error"),
        Severity::Warning => painted(style::CAREFUL, "warning"),
        Severity::Note => "note".to_owned(),
    };
    let location =
        finding.location.as_ref().map(|location| format!("{}: ", plain(&location.to_string())));
    let mut text = format!("{word}: {}", location.unwrap_or_default());
    match finding.object.as_str() {
        "" => {}
        object => text.push_str(&painted(HEADING, &object_words(object))),
    }
    let separator = if finding.object.is_empty() { "" } else { "\n  " };
    match finding.field.as_str() {
        "" => {
            let _ = writeln!(text, "{separator}{}", plain(&finding.message));
        }
        field => {
            let _ = writeln!(text, "{separator}{}: {}", plain(field), plain(&finding.message));
        }
    }
    text
}

/// `apiVersion/Kind/namespace/name` as `Kind namespace/name`. An `apiVersion` may have a
/// slash of its own, a name may not.
fn object_words(object: &str) -> String {
    let mut parts = object.rsplitn(4, '/');
    let (name, namespace, kind) = (parts.next(), parts.next(), parts.next());
    match (kind, namespace, name) {
        (Some(kind), Some(""), Some(name)) => plain(&format!("{kind} {name}")),
        (Some(kind), Some(namespace), Some(name)) => plain(&format!("{kind} {namespace}/{name}")),
        _ => plain(object),
    }
}

fn verdicts(findings: &[Finding]) -> String {
    let errors = finding::count(findings, Severity::Error);
    let warnings = finding::count(findings, Severity::Warning);
    match (errors, warnings) {
        (0, 0) => painted(style::GOOD, "no problems found"),
        (0, _) => format!("no errors, {}", count(warnings, "warning")),
        (_, 0) => painted(style::BAD, &count(errors, "error")),
        _ => format!("{}, {}", painted(BAD, &count(errors, "error")), count(warnings, "warning")),
    }
}

/// Whether a step only reports the availability of an object that is no rollout.
fn is_availability(step: &Step) -> bool {
    let only_key = step.decision.as_object().filter(|decision| decision.len() == 1);
    only_key.is_some_and(|decision| decision.contains_key("available"))
        && step.groups.is_empty()
        && step.actions.is_empty()
}

/// Maximum number of objects listed with their availability.
const AVAILABILITY_MAX: usize = 30;

fn availability(text: &mut String, steps: &[&Step]) {
    let mut judged: Vec<(&str, &Step)> =
        steps.iter().map(|step| (judgement(step), *step)).collect();
    judged.sort_by_key(|(word, _)| *word == "Available"); // unavailable objects come first
    let available = judged.iter().filter(|(word, _)| *word == "Available").count();
    let heading = painted(HEADING, "Availability");
    let _ = writeln!(text, "{heading}: {available} of {} available", count(judged.len(), "object"));
    let mut table = Table::new(&[]);
    for (word, step) in judged.iter().take(AVAILABILITY_MAX) {
        let style = match *word {
            "Available" => style::GOOD,
            "Failed" => style::BAD,
            _ => DIM,
        };
        let why = step.holds.first().map(|hold| plain(&hold.reason.to_string()));
        table.row(vec![
            Cell::new(target(&step.rollout)),
            Cell::new(*word).styled(style),
            Cell::new(why.unwrap_or_default()),
        ]);
    }
    table.write(text, 2);
    if let Some(more) = judged.len().checked_sub(AVAILABILITY_MAX).filter(|more| *more > 0) {
        let _ =
            writeln!(text, "  {}", painted(DIM, &format!("and {}", count(more, "more object"))));
    }
}

/// The availability of the object of an availability step.
fn judgement(step: &Step) -> &str {
    let mut found = step.decision["available"].as_object().into_iter().flatten();
    found.find_map(|(_, word)| word.as_str()).unwrap_or("Unknown")
}

fn guarantees(text: &mut String, violations: &[convoy_check::Finding]) {
    if violations.is_empty() {
        let _ = writeln!(text, "{}", painted(style::GOOD, "all guarantees hold"));
    }
    for found in violations {
        let word = painted(BAD, "violated guarantee");
        let _ = writeln!(text, "{word}: {}", plain(&found.to_string()));
    }
}

fn summary(report: &Report, rollouts: &[&Step]) -> String {
    if report.manifests.world.is_empty() {
        return "no objects found\n".to_owned();
    }
    let objects = count(report.manifests.world.len(), "object");
    if rollouts.is_empty() {
        return format!("no rollouts found in {objects}\n");
    }
    let mut parts = Vec::new();
    for verdict in [
        Verdict::Moving,
        Verdict::Held,
        Verdict::Paused,
        Verdict::Stopped,
        Verdict::Invalid,
        Verdict::Done,
    ] {
        let number = rollouts.iter().filter(|step| step.verdict == verdict).count();
        if number > 0 {
            parts.push(format!("{number} {}", words::verdict(verdict).to_lowercase()));
        }
    }
    let rollouts = count(rollouts.len(), "rollout");
    let separator = if parts.is_empty() { "" } else { ": " };
    format!("{rollouts} in {objects}{separator}{}\n", parts.join(", "))
}
