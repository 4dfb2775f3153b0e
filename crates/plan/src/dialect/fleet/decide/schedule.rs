//! The scheduler: which member clusters a placement gets. Bindings of the active policy are
//! never judged again, so later changes of a cluster do not move anything.

pub mod classes;
pub mod cycle;
pub mod filter;
pub mod score;

use crate::dialect::fleet::decide::schedule::classes::Classes;
use crate::dialect::fleet::decide::schedule::cycle::settled;
use crate::dialect::fleet::decide::selection::policy::Line;
use crate::dialect::fleet::names::MEMBER_CLUSTER;
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::report::Part;
use crate::dialect::fleet::status::policy as report;
use crate::dialect::fleet::write::schedule as write;
use crate::snapshot::Snapshot;
use crate::step::Verdict;
use convoy_api::Object;
use jiff::Timestamp;
use serde_json::json;

/// Decides the placement's clusters. Nothing without member clusters: a bag without them
/// says nothing about where resources could go.
pub fn part(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    line: &Line<'_>,
    now: Timestamp,
) -> Part {
    let clusters = snapshot.of(&MEMBER_CLUSTER);
    let mut part = Part::default();
    if clusters.is_empty() {
        return part;
    }
    let bindings: Vec<&Object> = snapshot
        .of(&placement.binding_kind())
        .iter()
        .copied()
        .filter(|binding| placement.owns(binding))
        .collect();
    let classes = Classes::sorted(bindings, clusters, &line.active_name);
    let outcome = settled(placement, clusters, &classes, now);
    let names: Vec<&str> = outcome.selected.keys().copied().collect();
    part.decision.insert("clusterCount".into(), json!(names.len()));
    part.decision.insert("clusters".into(), json!(names));
    part.actions = write::actions(snapshot, placement, &classes, &outcome, &line.active_name);
    // A snapshot that is about to be written itself gets its status in the next pass.
    if let Some(policy) = line.unchanged() {
        part.actions.extend(report::status(placement, policy, &outcome, now));
    }
    part.holds = report::holds(placement, &outcome);
    part.verdict = (!part.holds.is_empty()).then_some(Verdict::Held);
    part
}
