//! Why something stands still. Conditions, events, `convoy plan -o text`, the dashboard and
//! the audit log are renderings of these, so each carries its numbers.

mod remedy;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use smol_str::SmolStr;

/// How many members a hold names.
pub const NAMED: usize = 3;

/// The first few members that a hold names. Thousands may wait for the same ones, so all of them
/// share one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Arc<[SmolStr]>);

/// One member, or the rollout itself, that does not move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hold {
    /// Absent when the rollout as a whole waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<SmolStr>,
    /// The compartment, decision group, stage or pool it waits in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<SmolStr>,
    #[serde(flatten)]
    pub reason: HoldReason,
    /// When time alone frees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The reasons, shared by all dialects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum HoldReason {
    /// Every slot of a limit is taken. `by` names the first few members that hold one.
    BudgetSpent { limit: &'static str, in_flight: u32, ceiling: u32, by: Names },
    /// So many members have to stay available, and no more are. `unavailable` counts those that are
    /// wanted and not available, and `by` names the first few, where they have names.
    AvailabilityFloor {
        limit: &'static str,
        available: u32,
        required: u32,
        unavailable: u32,
        by: Names,
    },
    /// A batch is under way and nothing new starts until it is finished.
    BatchRunning { batch: u32, unfinished: u32, by: Names },
    /// The batch that starts now is full.
    BatchFull { batch: u32, size: u32 },
    /// Too much failed; someone has to look. `limit` names the setting that says how much is too
    /// much, `value` is what it says, `remedy` what to do next.
    FailureStop { limit: &'static str, value: u32, failures: u32, remedy: &'static str },
    /// A maintenance window is closed, or a blackout is open.
    WindowClosed,
    /// An earlier group has to finish first.
    GroupOrder { behind: String, unfinished: u32 },
    /// A rollout that goes first is not finished on this member.
    BehindRollout { rollout: String, priority: i64 },
    /// Someone paused it.
    Paused,
    /// Someone disabled it.
    Disabled,
    /// The member is marked to be left alone.
    Ignored { by: String },
    /// A taint of the member that the rollout does not tolerate.
    TaintNotTolerated { taint: String },
    /// An object that is referred to does not exist.
    Missing { kind: &'static str, name: String },
    /// Pods have to go first, and this budget does not let them.
    PodDisruptionBudget { budget: String, pod: String, allowed: i64 },
    /// A pod that must finish by itself is still there.
    PodProtected { pod: String },
    /// Pods are leaving the member.
    Draining { pods: u32 },
    /// Has the new revision; it counts once it has been healthy for long enough.
    Settling { for_secs: i64 },
    /// In flight, and not yet known to be available.
    NotAvailable { detail: String },
    /// Another part of the member's own work has to finish first.
    Depends { on: String },
    /// A person has to approve.
    Approval { request: String },
    /// Failed, and nothing here will try again by itself.
    Failed { detail: String },
    /// Not chosen by the scheduler.
    NotSelected { detail: String },
    /// The dialect's rules keep this member from being disturbed.
    NotDisruptable { detail: String },
    /// The member is already as it should be in every way that would make it a candidate.
    NoReason,
    /// No action, no timer and not done: someone has to look (G6).
    Stalled { detail: String },
    /// The rollout object was refused; these fields are at fault.
    Invalid { fields: Vec<String> },
    /// An object that the rollout hangs on was refused: what is missing with it must not be
    /// taken for gone. `others` counts further such objects.
    HangsOnRefused { object: String, field: String, message: String, others: u32 },
    /// A control loop does not know all objects that the decision needs: those of a kind, or of
    /// a cluster where `kind` is empty. An empty `cluster` is the home cluster; an empty `detail`
    /// means that nothing went wrong so far.
    NotObserved { cluster: String, kind: String, detail: String },
    /// A defect: planning this rollout panicked. Others are not affected (G12).
    PlanFailed { panic: String },
}

impl Deref for Names {
    type Target = [SmolStr];

    fn deref(&self) -> &[SmolStr] {
        &self.0
    }
}

impl FromIterator<SmolStr> for Names {
    fn from_iter<I: IntoIterator<Item = SmolStr>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

impl From<Vec<SmolStr>> for Names {
    fn from(names: Vec<SmolStr>) -> Self {
        Self(names.into())
    }
}

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl Hold {
    pub fn of_rollout(reason: HoldReason) -> Self {
        Self { member: None, group: None, reason, until: None }
    }

    pub fn of_member(member: impl Into<SmolStr>, reason: HoldReason) -> Self {
        Self { member: Some(member.into()), group: None, reason, until: None }
    }

    #[must_use]
    pub fn in_group(mut self, group: impl Into<SmolStr>) -> Self {
        self.group = Some(group.into());
        self
    }

    #[must_use]
    pub fn until(mut self, instant: Option<Timestamp>) -> Self {
        self.until = instant;
        self
    }
}

impl HoldReason {
    /// The reason without its numbers, as JSON and metrics name it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::BudgetSpent { .. } => "BudgetSpent",
            Self::AvailabilityFloor { .. } => "AvailabilityFloor",
            Self::BatchRunning { .. } => "BatchRunning",
            Self::BatchFull { .. } => "BatchFull",
            Self::FailureStop { .. } => "FailureStop",
            Self::WindowClosed => "WindowClosed",
            Self::GroupOrder { .. } => "GroupOrder",
            Self::BehindRollout { .. } => "BehindRollout",
            Self::Paused => "Paused",
            Self::Disabled => "Disabled",
            Self::Ignored { .. } => "Ignored",
            Self::TaintNotTolerated { .. } => "TaintNotTolerated",
            Self::Missing { .. } => "Missing",
            Self::PodDisruptionBudget { .. } => "PodDisruptionBudget",
            Self::PodProtected { .. } => "PodProtected",
            Self::Draining { .. } => "Draining",
            Self::Settling { .. } => "Settling",
            Self::NotAvailable { .. } => "NotAvailable",
            Self::Depends { .. } => "Depends",
            Self::Approval { .. } => "Approval",
            Self::Failed { .. } => "Failed",
            Self::NotSelected { .. } => "NotSelected",
            Self::NotDisruptable { .. } => "NotDisruptable",
            Self::NoReason => "NoReason",
            Self::Stalled { .. } => "Stalled",
            Self::Invalid { .. } => "Invalid",
            Self::HangsOnRefused { .. } => "HangsOnRefused",
            Self::NotObserved { .. } => "NotObserved",
            Self::PlanFailed { .. } => "PlanFailed",
        }
    }
}

/// What to do about a panic.
pub(crate) const REPORT_DEFECT: &str =
    "this is a defect in Convoy: please report it with this object";

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BudgetSpent { limit, in_flight, ceiling, by } => {
                spent(f, limit, *in_flight, *ceiling, by)
            }
            Self::AvailabilityFloor { limit, available, required, unavailable, by } => {
                floor(f, limit, *available, *required)?;
                unavailable_beside(f, *unavailable, by)
            }
            Self::BatchRunning { batch, unfinished, by } => {
                write!(f, "batch {batch} is still running, {unfinished} unfinished")?;
                named(f, ": ", by, *unfinished)
            }
            Self::BatchFull { batch, size } => write!(f, "batch {batch} is full (size {size})"),
            Self::FailureStop { limit, value, failures, remedy } => {
                let noun = if *failures == 1 { "failure" } else { "failures" };
                write!(f, "stopped after {failures} {noun} ({limit}: {value}); {remedy}")
            }
            Self::WindowClosed => f.write_str("outside its maintenance window"),
            Self::GroupOrder { behind, unfinished } => {
                write!(f, "waits for {behind} to finish, {unfinished} unfinished")
            }
            Self::BehindRollout { rollout, priority } => {
                write!(f, "waits for {rollout} (priority {priority})")
            }
            Self::Paused => f.write_str("paused"),
            Self::Disabled => f.write_str("disabled"),
            Self::Ignored { by } => write!(f, "ignored: {by}"),
            Self::TaintNotTolerated { taint } => write!(f, "taint {taint} is not tolerated"),
            Self::Missing { kind, name } => write!(f, "{kind} {name:?} not found"),
            Self::PodDisruptionBudget { budget, pod, allowed } => {
                let noun = if *allowed == 1 { "disruption" } else { "disruptions" };
                write!(f, "PodDisruptionBudget {budget} allows {allowed} {noun}, ")?;
                write!(f, "so pod {pod} cannot be evicted")
            }
            Self::PodProtected { pod } => write!(f, "pod {pod} must not be interrupted"),
            Self::Draining { pods } => {
                write!(f, "draining, {pods} {} left", if *pods == 1 { "pod" } else { "pods" })
            }
            Self::Settling { for_secs } => write!(f, "must stay available for {for_secs}s"),
            Self::NotAvailable { detail } => write!(f, "not available: {detail}"),
            Self::Depends { on } => write!(f, "waits for {on}"),
            Self::Approval { request } => write!(f, "waits for approval: {request}"),
            Self::Failed { detail } => write!(f, "failed: {detail}"),
            Self::NotSelected { detail } => write!(f, "not selected: {detail}"),
            Self::NotDisruptable { detail } => f.write_str(detail),
            Self::NoReason => f.write_str("up to date"),
            Self::Stalled { detail } => write!(f, "stalled: {detail}"),
            Self::Invalid { fields } => write!(f, "invalid: {}", fields.join(", ")),
            Self::HangsOnRefused { object, field, message, others } => {
                refused(f, object, field, message, *others)
            }
            Self::NotObserved { cluster, kind, detail } => unobserved(f, cluster, kind, detail),
            Self::PlanFailed { panic } => write!(f, "planning failed ({panic}); {REPORT_DEFECT}"),
        }
    }
}

fn spent(
    f: &mut fmt::Formatter<'_>,
    limit: &str,
    in_flight: u32,
    ceiling: u32,
    by: &[SmolStr],
) -> fmt::Result {
    match ceiling {
        _ if in_flight > ceiling => {
            write!(f, "{limit} allows {ceiling}, but {in_flight} are in use")?;
        }
        0 => return write!(f, "{limit} is 0"),
        _ => write!(f, "{in_flight} of {ceiling} slots of {limit} in use")?,
    }
    named(f, " by ", by, in_flight)
}

fn floor(f: &mut fmt::Formatter<'_>, limit: &str, available: u32, required: u32) -> fmt::Result {
    write!(f, "{limit} requires {required}, and {available} {} available", are(available))
}

/// Whoever is not available, in the sentence about those who are.
fn unavailable_beside(f: &mut fmt::Formatter<'_>, count: u32, names: &[SmolStr]) -> fmt::Result {
    match (count, names.is_empty()) {
        (0, _) => Ok(()),
        (count, true) => write!(f, "; {count} {} not", are(count)),
        (count, false) => named(f, "; not available: ", names, count),
    }
}

fn are(count: u32) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn unobserved(f: &mut fmt::Formatter<'_>, cluster: &str, kind: &str, detail: &str) -> fmt::Result {
    match (cluster, kind) {
        (cluster, "") => write!(f, "the objects of cluster {cluster:?} are not known yet")?,
        ("", kind) => write!(f, "objects of kind {kind} are not known yet")?,
        (cluster, kind) => {
            write!(f, "objects of kind {kind} in cluster {cluster:?} are not known yet")?;
        }
    }
    if detail.is_empty() { Ok(()) } else { write!(f, ": {detail}") }
}

fn refused(
    f: &mut fmt::Formatter<'_>,
    object: &str,
    field: &str,
    message: &str,
    others: u32,
) -> fmt::Result {
    let colon = if field.is_empty() { "" } else { ": " };
    write!(f, "depends on {object}, which is invalid: {field}{colon}{message}")?;
    if others > 0 { write!(f, " (and {others} more objects)") } else { Ok(()) }
}

/// `by a, b, c and 4 more`, where `total` members are meant.
fn named(f: &mut fmt::Formatter<'_>, before: &str, names: &[SmolStr], total: u32) -> fmt::Result {
    if names.is_empty() {
        return Ok(());
    }
    write!(f, "{before}{}", names.join(", "))?;
    let shown = u32::try_from(names.len()).unwrap_or(u32::MAX);
    match total.saturating_sub(shown) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_the_one_in_json() {
        let detail = String::new;
        for reason in [
            HoldReason::Paused,
            HoldReason::WindowClosed,
            HoldReason::NoReason,
            HoldReason::BatchFull { batch: 1, size: 1 },
            HoldReason::TaintNotTolerated { taint: detail() },
            HoldReason::Draining { pods: 1 },
            HoldReason::Stalled { detail: detail() },
        ] {
            assert_eq!(serde_json::json!(reason)["reason"], reason.word());
        }
    }
}
