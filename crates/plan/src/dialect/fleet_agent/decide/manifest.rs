//! What becomes of one manifest.

use convoy_api::Object;

use super::owners::Owners;
use super::writing::{self, Writing};
use crate::availability::{self, Availability};
use crate::dialect::fleet_agent::names::APPLY_FAILED;
use crate::dialect::fleet_agent::read::comparison::{Compared, compared};
use crate::dialect::fleet_agent::read::desired;
use crate::dialect::fleet_agent::read::manifest::Manifest;
use crate::dialect::fleet_agent::read::recorded::spec_hash;
use crate::dialect::fleet_agent::read::strategy::{Comparison, Strategy, TakeOver};
use crate::json_diff::Difference;

/// A manifest, the object that it is about, and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Processed<'w> {
    pub(crate) manifest: Manifest<'w>,
    pub(crate) live: Option<&'w Object>,
    pub(crate) result: ApplyOrReportResult,
    /// Differences are reported, and nothing is applied.
    pub(crate) only_report: bool,
    /// What somebody changed on the member.
    pub(crate) drifts: Vec<Difference>,
    /// What differs before the object is taken over, or instead of applying.
    pub(crate) diffs: Vec<Difference>,
    /// Whether more fields were compared than count.
    pub(crate) is_degraded: bool,
}

/// What became of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ApplyOrReportResult {
    /// The object is, or will be by this write, as the manifest says.
    Applied { write: Option<Writing>, availability: Availability },
    /// The object has to be written first; then it is looked at again.
    Pending { write: Writing },
    /// The same, where the server has denied it before.
    Retried { write: Writing, reason: &'static str, message: String },
    /// Nothing is written, and somebody has to look.
    Failed { reason: &'static str, message: String },
    /// Only compared.
    Reported,
}

/// What one manifest is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) strategy: Strategy,
    pub(crate) applied_work: &'a Object,
    /// Why the server denied the last write of this manifest, as reason and message.
    pub(crate) denied: Option<(&'static str, &'a str)>,
}

pub(crate) fn decide<'w>(
    manifest: Manifest<'w>,
    live: Option<&'w Object>,
    context: Context<'_>,
    work_exists: impl Fn(&str) -> bool,
) -> Processed<'w> {
    let strategy = context.strategy;
    let mut processed = Processed {
        manifest,
        live,
        result: ApplyOrReportResult::Reported,
        only_report: strategy.only_reports(),
        drifts: Vec::new(),
        diffs: Vec::new(),
        is_degraded: false,
    };
    let manifest = &processed.manifest;
    if let Some(problem) = manifest.problem {
        let message = problem.message().to_owned();
        processed.result = ApplyOrReportResult::Failed { reason: problem.reason(), message };
        return processed;
    }
    let Some(live) = live else {
        if strategy.only_reports() {
            processed.diffs = vec![Difference::of_whole_object()];
        } else {
            processed.result =
                pending(writing::created(manifest, strategy, context.applied_work), context);
        }
        return processed;
    };
    if strategy.only_reports() {
        let Compared { differences, is_degraded } = compared(manifest, live, strategy.comparison);
        (processed.diffs, processed.is_degraded) = (differences, is_degraded);
        return processed;
    }
    let owners = Owners::of(live, context.applied_work, work_exists);
    if let Some((reason, message)) = obstacle(&owners, strategy) {
        processed.result = ApplyOrReportResult::Failed { reason, message };
        return processed;
    }
    if !owners.is_ours && strategy.take_over == TakeOver::IfNoDiff {
        let diffs = compared(manifest, live, strategy.comparison).differences;
        if !diffs.is_empty() {
            let message = format!(
                "{} fields differ from the object that is there, the first is {}; make them \
                 equal, or set whenToTakeOver to Always",
                diffs.len(),
                diffs[0].path
            );
            processed.result = ApplyOrReportResult::Failed { reason: "FailedToTakeOver", message };
            processed.diffs = diffs;
            return processed;
        }
    }
    applied(processed, live, &owners, context)
}

/// Why an object that is there is not this Work's to write.
fn obstacle(owners: &Owners<'_>, strategy: Strategy) -> Option<(&'static str, String)> {
    let conflict = owners.conflict(strategy.allow_co_ownership);
    match (owners.is_ours, conflict) {
        (true, conflict) => conflict.map(|message| (APPLY_FAILED, message)),
        (false, _) if strategy.take_over == TakeOver::Never => {
            let message = "the object was there before, and whenToTakeOver is Never".to_owned();
            Some(("NotTakenOver", message))
        }
        (false, conflict) => conflict.map(|message| ("FailedToTakeOver", message)),
    }
}

/// An object that is this Work's, or becomes it.
fn applied<'w>(
    mut processed: Processed<'w>,
    live: &'w Object,
    owners: &Owners<'_>,
    context: Context<'_>,
) -> Processed<'w> {
    let (manifest, strategy) = (&processed.manifest, context.strategy);
    let unchanged = owners.is_ours && spec_hash(live) == Some(&desired::hash_of(manifest));
    if unchanged && strategy.if_not_drifted {
        let Compared { differences: drifts, is_degraded } =
            compared(manifest, live, strategy.comparison);
        if !drifts.is_empty() {
            let message = format!(
                "{} fields were changed on the member, the first is {}; change them back, or set \
                 whenToApply to Always",
                drifts.len(),
                drifts[0].path
            );
            let reason = if is_degraded { "FoundDriftsInDegradedMode" } else { "FoundDrifts" };
            processed.result = ApplyOrReportResult::Failed { reason, message };
            processed.drifts = drifts;
            return processed;
        }
    }
    processed.result =
        match writing::updated(manifest, live, owners, strategy, context.applied_work) {
            Some(write) if !unchanged || context.denied.is_some() => pending(write, context),
            write => {
                ApplyOrReportResult::Applied { write, availability: availability::judge(live) }
            }
        };
    if strategy.comparison == Comparison::Full
        && matches!(processed.result, ApplyOrReportResult::Applied { .. })
    {
        processed.drifts = compared(manifest, live, Comparison::Full).differences;
    }
    processed
}

fn pending(write: Writing, context: Context<'_>) -> ApplyOrReportResult {
    match context.denied {
        Some((reason, message)) => {
            ApplyOrReportResult::Retried { write, reason, message: message.to_owned() }
        }
        None => ApplyOrReportResult::Pending { write },
    }
}
