//! What is told about a placement's resource snapshots.

use convoy_api::fleet::placement::ResourceSelectorTerm;

use crate::dialect::fleet::decide::selection::Selection;
use crate::dialect::fleet::decide::selection::group::Decision;
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::report::PartialStep;
use crate::hold::{Hold, HoldReason, NAMED};
use crate::step::Verdict;

pub(crate) fn partial(selection: &Selection<'_>, placement: &Placement<'_>) -> PartialStep {
    let mut partial = PartialStep::default();
    match selection {
        Selection::Compared(Decision::Collecting { until, .. }) => {
            partial.wake_at = Some(*until);
            partial.verdict = Some(Verdict::Moving);
        }
        Selection::Unobserved(error) => {
            let on = format!("resources to select: {error}");
            partial.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
            partial.verdict = Some(Verdict::Held);
        }
        // Upstream calls a placement of nothing complete; a name with a typo is no success.
        Selection::Compared(decision) if decision.selects_nothing() => {
            let wanted = selectors(placement);
            let detail = format!("no object matches spec.resourceSelectors ({wanted})");
            partial.holds.push(Hold::of_rollout(HoldReason::NotSelected { detail }));
            partial.verdict = Some(Verdict::Held);
        }
        Selection::Compared(_) | Selection::Left => {}
    }
    partial
}

/// What is selected, for a person: `Namespace shop, ClusterRole with labels`.
fn selectors(placement: &Placement<'_>) -> String {
    let told = |term: &ResourceSelectorTerm| match &term.name {
        Some(name) => format!("{} {name}", term.kind),
        None if term.label_selector.is_some() => format!("{} with labels", term.kind),
        None => format!("every {}", term.kind),
    };
    let terms = &placement.resource_selectors;
    let mut words: Vec<String> = terms.iter().take(NAMED).map(told).collect();
    if terms.len() > NAMED {
        words.push(format!("{} more", terms.len() - NAMED));
    }
    words.join(", ")
}
