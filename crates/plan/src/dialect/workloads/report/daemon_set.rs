//! A decision about a DaemonSet as a [`Step`]. Its members are nodes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;

use super::Members;
use crate::dialect::workloads::decide::daemon_set::{DaemonSetDecision, decide};
use crate::dialect::workloads::decide::revisions::expired;
use crate::dialect::workloads::names::REVISION_HASH;
use crate::dialect::workloads::read::daemon_set::{DaemonNode, DaemonPod, DaemonSet, Fit};
use crate::dialect::workloads::read::{Health, Unreadable};
use crate::dialect::workloads::status::daemon_set::status;
use crate::dialect::workloads::write::daemon_set::writes;
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;
use crate::step::{MemberState, Step};

pub(crate) fn step(
    dialect: &'static str,
    snapshot: &Snapshot<'_>,
    now: Timestamp,
) -> Result<Step, Unreadable> {
    let set = DaemonSet::read(snapshot, now)?;
    let decision = decide(&set);
    let live: BTreeSet<&str> =
        set.pods.all.iter().filter_map(|pod| pod.label(REVISION_HASH)).collect();
    let writes = writes(&set, &decision, &expired(&set.revisions, &live), snapshot);
    let mut members = Members::new(set.owner);
    members.group.ceiling = decision.ceiling;
    for (at, node) in set.nodes.iter().enumerate() {
        if let Some((state, hold, until)) = standing(&set, &decision, at, node) {
            members.add(node.name, state, hold, until);
        }
    }
    let removed = decision.removals.values().flatten();
    let summary = json!({
        "createPods": decision.starts.len(),
        "deletePods": removed.map(|(pod, _)| pod.name()).collect::<Vec<_>>(),
    });
    Ok(members.step(dialect, writes, set.owner, status(&set), summary))
}

type Standing = (MemberState, Option<HoldReason>, Option<Timestamp>);

/// When a pod that settles is available.
fn settles_at(pod: &DaemonPod<'_>) -> Option<Timestamp> {
    match pod.health {
        Health::Settling { until, .. } => until,
        _ => None,
    }
}

/// Where a node stands, and what it waits for; none if it has nothing to do with the set.
fn standing(
    set: &DaemonSet<'_>,
    decision: &DaemonSetDecision<'_>,
    at: usize,
    node: &DaemonNode<'_>,
) -> Option<Standing> {
    let leaves = decision.removals.contains_key(&at) || node.is_terminating();
    let starts = decision.starts.contains(&at);
    let hold = decision.holds.get(&at).cloned();
    let plain = |state| Some((state, None, None));
    if !node.fit.should_run() {
        return match (&node.fit, hold) {
            _ if node.pods.is_empty() => None,
            _ if leaves => plain(MemberState::Gone),
            (_, Some(reason)) => Some((MemberState::Waiting, Some(reason), None)),
            // It may stay, though nothing would be started there now.
            (Fit::MayStay { taint }, None) => {
                let reason = HoldReason::TaintNotTolerated { taint: taint.clone() };
                Some((MemberState::Done, Some(reason), None))
            }
            (_, None) => plain(MemberState::Done),
        };
    }
    if leaves || starts {
        return plain(MemberState::Moving);
    }
    if hold.is_some() {
        // What it counts for changes by itself when its pod has settled.
        return Some((MemberState::Waiting, hold, node.active().find_map(settles_at)));
    }
    let surges = node.active().count() > 1;
    match node.active().find(|pod| pod.is_updated).map(|pod| pod.health) {
        None => plain(MemberState::Moving),
        Some(Health::Available) if surges => plain(MemberState::Moving),
        Some(Health::Available) => plain(MemberState::Done),
        Some(Health::Settling { until, .. }) => {
            let reason = HoldReason::Settling { for_secs: set.min_ready_secs };
            Some((MemberState::Settling, Some(reason), until))
        }
        Some(_) => {
            let detail = "its pod is not ready".to_owned();
            Some((MemberState::Moving, Some(HoldReason::NotAvailable { detail }), None))
        }
    }
}
