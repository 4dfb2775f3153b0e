//! A decision about a StatefulSet as a [`Step`]. Its members are ordinals.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;

use super::Members;
use crate::dialect::workloads::decide::revisions::expired;
use crate::dialect::workloads::decide::stateful_set::{StatefulSetDecision, decide};
use crate::dialect::workloads::names::REVISION_HASH;
use crate::dialect::workloads::read::stateful_set::StatefulSet;
use crate::dialect::workloads::read::{Health, Unreadable};
use crate::dialect::workloads::status::stateful_set::status;
use crate::dialect::workloads::write::stateful_set::writes;
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;
use crate::step::{MemberState, Step};

pub(crate) fn step(
    dialect: &'static str,
    snapshot: &Snapshot<'_>,
    now: Timestamp,
) -> Result<Step, Unreadable> {
    let set = StatefulSet::read(snapshot, now)?;
    let decision = decide(&set);
    let hashes = set.owned.all.iter().filter_map(|pod| pod.label(REVISION_HASH));
    let live: BTreeSet<&str> = hashes.chain([set.current.as_str()]).collect();
    let writes = writes(&set, &decision, &expired(&set.revisions, &live), snapshot);
    let mut members = Members::new(set.owner);
    if !set.owner.is_deleting() {
        let ordinals = decision.near.iter().chain(set.pods.keys()).copied();
        let ordinals: BTreeSet<i64> = ordinals.collect();
        let seen = ordinals.iter().filter(|ordinal| set.wanted.contains(ordinal)).count();
        for ordinal in ordinals {
            let (state, hold, until) = standing(&set, &decision, ordinal);
            members.add(set.name(ordinal), state, hold, until);
        }
        members.wait_unseen(set.wanted.end - set.wanted.start, seen, decision.far_hold.clone());
    }
    let summary = json!({"currentRevision": set.current, "updateRevision": set.update});
    Ok(members.step(dialect, writes, set.owner, status(&set), summary))
}

fn standing(
    set: &StatefulSet<'_>,
    decision: &StatefulSetDecision<'_>,
    ordinal: i64,
) -> (MemberState, Option<HoldReason>, Option<Timestamp>) {
    let held = || match decision.holds.get(&ordinal) {
        Some((reason, until)) => (MemberState::Waiting, Some(reason.clone()), *until),
        None => (MemberState::Moving, None, None),
    };
    match set.pods.get(&ordinal) {
        _ if !set.wanted.contains(&ordinal) => (MemberState::Gone, None, None),
        Some((_, Health::Terminating | Health::Finished)) => (MemberState::Moving, None, None),
        Some((_, Health::NotReady)) => {
            let detail = "its pod is not ready".to_owned();
            (MemberState::Moving, Some(HoldReason::NotAvailable { detail }), None)
        }
        Some((_, Health::Settling { until, .. })) => {
            let reason = HoldReason::Settling { for_secs: set.min_ready_secs };
            (MemberState::Settling, Some(reason), *until)
        }
        Some((pod, Health::Available)) if set.is_outdated(ordinal, pod) => held(),
        Some((_, Health::Available)) => (MemberState::Done, None, None),
        None => held(),
    }
}
