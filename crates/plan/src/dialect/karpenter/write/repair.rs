//! Nodes that are repaired: deleted, with a deadline that has come.

use jiff::Timestamp;

use super::counts;
use super::writes::Writes;
use crate::dialect::karpenter::decide::Disruptions;
use crate::dialect::karpenter::names::{annotation, event};
use crate::dialect::karpenter::read::Cluster;
use crate::gate::Permit;
use crate::hold::HoldReason;
use crate::object_patch::ObjectPatch;
use crate::step::{EventType, MemberState, Why};

/// Deletes a claim; its node is not waited for, whatever grace period the claim has.
pub(super) fn begin(
    cluster: &Cluster<'_>,
    permit: Permit,
    at: usize,
    patch: &mut ObjectPatch<'_>,
    writes: &mut Writes,
) {
    let member = &cluster.members[at];
    let noted = member.claim.annotation(annotation::TERMINATION_TIMESTAMP);
    let deadline = noted.and_then(|text| text.parse::<Timestamp>().ok());
    if deadline.is_none_or(|deadline| deadline > cluster.now) {
        let text = crate::condition::instant(cluster.now);
        patch.annotate(annotation::TERMINATION_TIMESTAMP, text.as_str());
    }
    let why = Why::new("Unhealthy", "the Node has been unhealthy for longer than is tolerated");
    writes.counts.push(counts::claim_unhealthy(member.claim, member.facts));
    writes.terminate(cluster, member, why.reason, permit, why);
    writes.states.insert(at, (MemberState::Gone, None));
}

/// Tells why unhealthy nodes stay.
pub(super) fn blocked(
    cluster: &Cluster<'_>,
    disruptions: &Disruptions<'_, '_>,
    writes: &mut Writes,
) {
    for (at, hold) in &disruptions.repairs.blocked {
        let member = &cluster.members[*at];
        if let (Some(node), HoldReason::BudgetSpent { in_flight, ceiling, .. }) =
            (member.node, hold)
        {
            let message = format!(
                "{in_flight} nodes of the NodePool are unhealthy, more than the {ceiling} (20%) up \
                 to which nodes are repaired"
            );
            let key = node.object.key();
            writes.state(key, EventType::Warning, event::NODE_REPAIR_BLOCKED, message);
        }
        let state = || (MemberState::Waiting, Some((hold.clone(), None)));
        writes.states.entry(*at).or_insert_with(state);
    }
}
