//! What is told about scheduling: the clusters, and what keeps the policy from being fulfilled.

use serde_json::json;

use crate::dialect::fleet::decide::schedule::Schedule;
use crate::dialect::fleet::decide::schedule::cycle::Picks;
use crate::dialect::fleet::read::placement::{Pick, Placement};
use crate::dialect::fleet::report::PartialStep;
use crate::hold::{Hold, HoldReason};
use crate::step::Verdict;

pub(crate) fn partial(schedule: &Schedule<'_>, placement: &Placement<'_>) -> PartialStep {
    let mut partial = PartialStep::default();
    let names: Vec<&str> = schedule.picks.selected.keys().copied().collect();
    partial.decision.insert("clusterCount".into(), json!(names.len()));
    partial.decision.insert("clusters".into(), json!(names));
    partial.holds = holds(&schedule.picks, placement);
    // A policy without clusters is fulfilled if it is for all, as upstream sees it.
    let is_wanted = schedule.picks.is_fulfilled(placement) && !names.is_empty();
    let is_held = !partial.holds.is_empty() && !is_wanted;
    partial.verdict = is_held.then_some(Verdict::Held);
    partial
}

fn holds(picks: &Picks<'_>, placement: &Placement<'_>) -> Vec<Hold> {
    match &placement.policy.pick {
        Pick::All if picks.selected.is_empty() => {
            let detail = picks.summary(placement);
            vec![Hold::of_rollout(HoldReason::NotSelected { detail })]
        }
        Pick::All => Vec::new(),
        Pick::Fixed(_) => picks
            .unselected
            .iter()
            .map(|unselected| {
                let detail = unselected.reason.clone().into_owned();
                Hold::of_member(unselected.cluster.clone(), HoldReason::NotSelected { detail })
            })
            .collect(),
        Pick::Number(_) if picks.is_fulfilled(placement) => Vec::new(),
        Pick::Number(_) => {
            let detail = picks.summary(placement);
            vec![Hold::of_rollout(HoldReason::NotSelected { detail })]
        }
    }
}
