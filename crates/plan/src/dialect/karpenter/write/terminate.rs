//! Claims on their way out: their Node drained, the machine given back, finalizers removed. Every
//! step is noted on the claim, so that it is taken once. A Node without a claim has an end of its
//! own.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::counts;
use super::drain::{Drain, Volumes};
use super::writes::{Wait, Writes};
use crate::condition::{instant, since};
use crate::dialect::karpenter::names::{
    FINALIZER, KWOK_GROUP, KWOK_NODE_CLASS, annotation, condition, event,
};
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::lifecycle::NodeClass;
use crate::dialect::karpenter::read::node::Node;
use crate::dialect::karpenter::read::pod::Pod;
use crate::finalizer;
use crate::hold::HoldReason;
use crate::object_patch::ObjectPatch;
use crate::pod_budget::PodBudgets;
use crate::snapshot::Snapshot;
use crate::step::{Action, EventType, Propagation, Verb, Why};

/// How long a node counts as draining at least, for pods that are still on their way to it.
const DRAIN_LEAST: SignedDuration = SignedDuration::from_secs(5);

/// A claim that is being deleted, and what its end depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving<'c, 'w> {
    pub(crate) now: Timestamp,
    pub(crate) member: &'c Member<'w>,
    /// The pods on its Node.
    pub(crate) pods: &'c [Pod<'w>],
    pub(crate) pod_budgets: &'c PodBudgets<'w>,
    pub(crate) snapshot: &'c Snapshot<'w>,
    /// Its Node has been unhealthy for so long that nothing is waited for.
    pub(crate) is_hurried: bool,
}

/// Takes the next steps in the deletion of a claim; what it waits for.
pub(crate) fn claim(leaving: Leaving<'_, '_>, writes: &mut Writes) -> Option<Wait> {
    let member = leaving.member;
    let mut patch = ObjectPatch::new(member.claim, leaving.now);
    let deadline = deadline(leaving, &mut patch, writes);
    let hold = match member.node {
        _ if member.shared.is_some() => member.shared.and_then(|node| wait_for(&node, writes)),
        Some(node) if !node.facts.is_deleting => {
            delete_node(&node, writes);
            None
        }
        Some(node) => leave(leaving, &node, deadline, &mut patch, writes),
        None => give_back(leaving, &mut patch, writes),
    };
    let why = Why::new("Terminating", "the NodeClaim is being deleted");
    writes.record.extend(patch.actions(Verb::Record, &why));
    hold
}

/// When the node goes regardless; noted on the claim the first time it is known.
fn deadline(
    leaving: Leaving<'_, '_>,
    patch: &mut ObjectPatch<'_>,
    writes: &mut Writes,
) -> Option<Timestamp> {
    let Leaving { now, member, is_hurried, .. } = leaving;
    let noted = member.claim.annotation(annotation::TERMINATION_TIMESTAMP);
    let known = noted.and_then(|text| text.parse::<Timestamp>().ok());
    if is_hurried && known.is_none_or(|known| known > now) {
        patch.annotate(annotation::TERMINATION_TIMESTAMP, instant(now).as_str());
        return Some(now);
    }
    if noted.is_some() {
        return known;
    }
    let deadline = member.claim.deleted_at()?.checked_add(member.facts.grace_period?).ok()?;
    patch.annotate(annotation::TERMINATION_TIMESTAMP, instant(deadline).as_str());
    let message = format!("All pods will be deleted by {deadline}");
    let node = member.node.map(|node| node.object.key());
    for key in node.into_iter().chain([member.claim.key()]) {
        let reason = event::TERMINATION_GRACE_PERIOD_EXPIRING;
        writes.event(key, EventType::Warning, reason, message.clone());
    }
    Some(deadline)
}

/// Of several claims none is the Node's own: it is drained by itself, and each claim waits for its
/// end.
fn wait_for(node: &Node<'_>, writes: &mut Writes) -> Option<Wait> {
    if !node.facts.is_deleting {
        delete_node(node, writes);
        return None;
    }
    let on = format!("Node {} to be gone, which other NodeClaims have too", node.object.name());
    Some((HoldReason::Depends { on }, None))
}

/// Deletes the Node; its finalizer keeps it until it is drained.
fn delete_node(node: &Node<'_>, writes: &mut Writes) {
    let why = Why::new("ClaimDeleted", "the NodeClaim of this Node is being deleted");
    let added = finalizer::added(node.object, &[FINALIZER], why.clone());
    writes.delete.extend(added.map(Action::concurrently));
    writes.delete.push(Action::delete(Verb::Delete, node.object, Propagation::Background, why));
}

/// Taint, drain, volumes, machine, finalizer: whichever comes next.
fn leave(
    leaving: Leaving<'_, '_>,
    node: &Node<'_>,
    deadline: Option<Timestamp>,
    patch: &mut ObjectPatch<'_>,
    writes: &mut Writes,
) -> Option<Wait> {
    let Leaving { now, member, pods, pod_budgets, snapshot, .. } = leaving;
    if is_lost(node, member) {
        release(leaving, node, "the provider no longer has the instance", writes);
        return None;
    }
    let disruption = member.facts.disruption_word();
    let drain = Drain { now, node: *node, pods, pod_budgets, snapshot, deadline, disruption };
    drain.close(writes);
    if member.claim.condition_status(condition::DRAINED) != Some("True") {
        patch.set(condition::DRAINED, "Unknown", "Draining", "");
        if let Some(hold) = drain.empty(writes) {
            return Some(hold);
        }
        let since = since(member.claim, condition::DRAINED);
        let until = since.unwrap_or(now).checked_add(DRAIN_LEAST).ok();
        if until.is_some_and(|until| until > now) {
            return Some((HoldReason::Draining { pods: 0 }, until));
        }
        patch.set(condition::DRAINED, "True", condition::DRAINED, "");
        writes.counts.push(counts::node_drained(member.claim));
    }
    if let Some(hold) = volumes(&drain, patch, writes) {
        return Some(hold);
    }
    let hold = terminate(leaving, patch);
    if hold.is_none() {
        release(leaving, node, "the provider has terminated the instance", writes);
    }
    hold
}

/// Whether the machine of a Node is gone. The kubelet of a Node that is Ready runs, whatever the
/// provider says. A simulated machine is its Node, and gone once that is being deleted.
fn is_lost(node: &Node<'_>, member: &Member<'_>) -> bool {
    let is_told = || member.claim.annotation(annotation::INSTANCE) == Some("Terminated");
    !node.facts.is_ready && (is_simulated(member) || is_told())
}

/// Lets the Node go.
fn release(leaving: Leaving<'_, '_>, node: &Node<'_>, why: &str, writes: &mut Writes) {
    let Leaving { now, member, .. } = leaving;
    let mut released = ObjectPatch::new(node.object, now);
    released.release(FINALIZER);
    writes.delete.extend(released.actions(Verb::Release, &Why::new("Terminated", why)));
    writes.counts.extend(counts::node_terminated(member.claim, node.object, now));
}

/// Waits for volumes to be detached, until the deadline.
fn volumes(
    drain: &Drain<'_, '_>,
    patch: &mut ObjectPatch<'_>,
    writes: &mut Writes,
) -> Option<Wait> {
    let kind = condition::VOLUMES_DETACHED;
    match drain.volumes(writes) {
        Volumes::Detached => patch.set(kind, "True", kind, ""),
        Volumes::GivenUp => {
            let reason = "TerminationGracePeriodElapsed";
            patch.set(kind, "False", reason, reason);
        }
        Volumes::Awaited(wait) => {
            patch.set(kind, "Unknown", "AwaitingVolumeDetachment", "");
            return Some(wait);
        }
    }
    None
}

/// Asks the provider for the machine's end, and waits for its word.
fn terminate(leaving: Leaving<'_, '_>, patch: &mut ObjectPatch<'_>) -> Option<Wait> {
    let member = leaving.member;
    if member.facts.provider_id.is_empty() {
        return None; // there never was a machine
    }
    patch.set(condition::INSTANCE_TERMINATING, "True", condition::INSTANCE_TERMINATING, "");
    let on = "the provider to terminate the instance".to_owned();
    // Its Node is being deleted or gone by now.
    if is_simulated(member) {
        let until = simulated_end(leaving).filter(|until| *until > leaving.now)?;
        return Some((HoldReason::Depends { on }, Some(until)));
    }
    let is_gone = member.claim.annotation(annotation::INSTANCE) == Some("Terminated");
    (!is_gone).then_some((HoldReason::Depends { on }, None))
}

fn is_simulated(member: &Member<'_>) -> bool {
    member.claim.spec().pointer("/nodeClassRef/group") == Some(&Value::from(KWOK_GROUP))
}

/// When a simulated machine that is told to end is gone, if its node class lets that take time.
fn simulated_end(leaving: Leaving<'_, '_>) -> Option<Timestamp> {
    let claim = leaving.member.claim;
    let name = claim.spec().pointer("/nodeClassRef/name").and_then(Value::as_str)?;
    let class = leaving.snapshot.find(&KWOK_NODE_CLASS, "", name)?;
    let since = since(claim, condition::INSTANCE_TERMINATING);
    since.unwrap_or(leaving.now).checked_add(NodeClass::read(class).termination_delay).ok()
}

/// Without a Node: the machine goes, then the claim.
fn give_back(
    leaving: Leaving<'_, '_>,
    patch: &mut ObjectPatch<'_>,
    writes: &mut Writes,
) -> Option<Wait> {
    let hold = terminate(leaving, patch);
    if hold.is_none() {
        writes.counts.extend(counts::claim_terminated(leaving.member.claim, leaving.now));
        patch.release(FINALIZER);
    }
    hold
}

/// The end of a Node that has no claim of its own: drained, and let go. There is nothing to note it
/// on, and no machine to give back.
pub(crate) fn node_alone(drain: &Drain<'_, '_>, writes: &mut Writes) -> Option<Wait> {
    let node = &drain.node;
    // Its machine is a simulated one, and gone otherwise.
    if node.facts.is_ready {
        drain.close(writes);
        if let Some(wait) = drain.empty(writes) {
            return Some(wait);
        }
        if let Volumes::Awaited(wait) = drain.volumes(writes) {
            return Some(wait);
        }
    }
    let why = Why::new("Terminated", "the Node has no NodeClaim, and no pods that are waited for");
    writes.delete.extend(finalizer::removed(node.object, &[FINALIZER], why));
    None
}
