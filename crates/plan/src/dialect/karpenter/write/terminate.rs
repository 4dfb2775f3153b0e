//! Nodes on their way out: drained in groups, volumes detached, machine given back, finalizers
//! removed. Every step is noted on the claim, so that it is taken once.

use std::collections::BTreeMap;

use convoy_api::Object;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::counts;
use super::writes::{Wait, Writes};
use crate::condition::{instant, since};
use crate::dialect::karpenter::names::VOLUME_ATTACHMENT;
use crate::dialect::karpenter::names::{
    DISRUPTED_EFFECT, DISRUPTED_TAINT, FINALIZER, KWOK_GROUP, KWOK_NODE_CLASS, annotation,
    condition, label,
};
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::lifecycle::NodeClass;
use crate::dialect::karpenter::read::node::Node;
use crate::dialect::karpenter::read::pod::{Owner, Pod};
use crate::finalizer;
use crate::hold::HoldReason;
use crate::object_patch::ObjectPatch;
use crate::pod_budget::PodBudgets;
use crate::snapshot::Snapshot;
use crate::step::{Action, EventType, Propagation, Verb, Why};
use crate::taint;

/// How long a node counts as draining at least, for pods that are still on their way to it.
const DRAIN_LEAST: SignedDuration = SignedDuration::from_secs(5);

/// A pod that should have been gone for this long is not waited for.
const STUCK: SignedDuration = SignedDuration::from_secs(60);

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
    writes.event(member.claim.key(), EventType::Warning, "TerminationGracePeriodExpiring", message);
    Some(deadline)
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
    let Leaving { now, member, .. } = leaving;
    close(node, writes);
    if member.claim.condition_status(condition::DRAINED) != Some("True") {
        patch.set(condition::DRAINED, "Unknown", "Draining", "");
        if let Some(hold) = drain(leaving, deadline, writes) {
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
    if let Some(hold) = volumes(leaving, node, deadline, patch, writes) {
        return Some(hold);
    }
    let hold = terminate(leaving, patch);
    if hold.is_none() {
        let mut released = ObjectPatch::new(node.object, now);
        released.release(FINALIZER);
        let why = Why::new("Terminated", "the provider has terminated the instance");
        writes.delete.extend(released.actions(Verb::Release, &why));
        writes.counts.extend(counts::node_terminated(member.claim, node.object, now));
    }
    hold
}

/// Keeps new pods and traffic away.
fn close(node: &Node<'_>, writes: &mut Writes) {
    let is_excluded = node.object.label(label::EXCLUDE_BALANCERS).is_some();
    if node.facts.is_tainted && is_excluded {
        return;
    }
    let mut taints = taint::others(node.object, DISRUPTED_TAINT);
    taints.push(json!({"key": DISRUPTED_TAINT, "effect": DISRUPTED_EFFECT}));
    let patch = json!({
        "metadata": {"labels": {label::EXCLUDE_BALANCERS: "karpenter"}},
        "spec": {"taints": taints},
    });
    let why = Why::new("Terminating", "the node is being deleted");
    writes.start.push(Action::patch(Verb::Taint, node.object, patch, why).concurrently());
}

/// Evicts pods group by group. None: no pod has to be waited for any more.
fn drain(
    leaving: Leaving<'_, '_>,
    deadline: Option<Timestamp>,
    writes: &mut Writes,
) -> Option<Wait> {
    let now = leaving.now;
    let is_stuck = |pod: &Pod<'_>| {
        let due = pod.object.deleted_at().and_then(|at| at.checked_add(STUCK).ok());
        due.is_some_and(|due| due < now)
    };
    let waited: Vec<&Pod<'_>> =
        leaving.pods.iter().filter(|pod| pod.is_drainable() && !is_stuck(pod)).collect();
    if waited.is_empty() {
        return None;
    }
    let is_forced = |pod: &&Pod<'_>| deadline.is_some_and(|deadline| is_due(pod, deadline, now));
    let (forced, rest): (Vec<&Pod<'_>>, Vec<&Pod<'_>>) =
        waited.iter().copied().partition(is_forced);
    if let Some(deadline) = deadline {
        for pod in forced {
            force(leaving, pod, deadline, writes);
        }
    }
    let mut groups: BTreeMap<(bool, bool), Vec<&Pod<'_>>> = BTreeMap::new();
    for pod in rest {
        groups
            .entry((pod.is_critical(), pod.facts.owner == Owner::DaemonSet))
            .or_default()
            .push(pod);
    }
    let first = groups.into_values().next().unwrap_or_default();
    let hold = evict(leaving, &first, writes);
    let forced_at = waited.iter().filter_map(|pod| force_at(pod, deadline?));
    // It is due after that instant, not at it.
    let forced_at =
        forced_at.map(|at| if at == now { at + SignedDuration::from_millis(1) } else { at });
    let freed_at = first.iter().filter_map(|pod| pod.protected_until());
    let next = forced_at.chain(freed_at).filter(|at| *at > now).min();
    let pods = crate::count(waited.len());
    if let (Some(reason), Some(node)) = (&hold, leaving.member.node) {
        let message =
            format!("Failed to drain node, {pods} pods are waiting to be evicted: {reason}");
        writes.state(node.object.key(), EventType::Warning, "FailedDraining", message);
    }
    let reason = hold.unwrap_or(HoldReason::Draining { pods });
    Some((reason, next))
}

/// Evicts what may be evicted; gives back what keeps the others.
fn evict(leaving: Leaving<'_, '_>, pods: &[&Pod<'_>], writes: &mut Writes) -> Option<HoldReason> {
    let mut hold = None;
    for pod in pods.iter().filter(|pod| !pod.facts.is_terminating) {
        if pod.is_protected(leaving.now) {
            hold.get_or_insert(HoldReason::PodProtected { pod: pod.path() });
            continue;
        }
        if let Err((budget, allowed)) = leaving.pod_budgets.take(pod.object, &mut writes.spent) {
            let pod = pod.path();
            hold.get_or_insert(HoldReason::PodDisruptionBudget { budget, pod, allowed });
            continue;
        }
        let why = Why::new(
            "Draining",
            format!("node {} is being drained", pod.node_name().unwrap_or_default()),
        );
        writes.event(
            pod.object.key(),
            EventType::Normal,
            "Evicted",
            format!("Evicted pod: {}", why.message),
        );
        writes.delete.push(Action::evict(pod.object, None, why));
        writes.counts.push(counts::pod_drained(leaving.member.facts, pod.object));
    }
    hold
}

/// After when a pod is deleted by force, so that it still gets its grace period before the deadline;
/// a pod that names none is not.
fn force_at(pod: &Pod<'_>, deadline: Timestamp) -> Option<Timestamp> {
    let grace = pod.object.spec().get("terminationGracePeriodSeconds").and_then(Value::as_i64)?;
    deadline.checked_sub(SignedDuration::from_secs(grace.clamp(0, 1 << 40))).ok()
}

/// Whether a pod is deleted by force, or would end too late without that.
fn is_due(pod: &Pod<'_>, deadline: Timestamp, now: Timestamp) -> bool {
    match pod.object.deleted_at() {
        Some(ends) => ends > deadline,
        None => force_at(pod, deadline).is_some_and(|at| at < now),
    }
}

/// Deletes a pod, or again one that would end too late, with the time that is left.
fn force(leaving: Leaving<'_, '_>, pod: &Pod<'_>, deadline: Timestamp, writes: &mut Writes) {
    let now = leaving.now;
    let left = deadline.duration_since(now).as_secs().max(1);
    // Times of deletion have whole seconds: asking once more would gain nothing.
    let ends = SignedDuration::from_secs(left.saturating_add(1));
    let is_soon = |at: Timestamp| at.duration_since(now) <= ends;
    if pod.object.deleted_at().is_some_and(is_soon) {
        return;
    }
    let message = format!("deleted {left} s before the termination grace period of its node ends");
    writes.event(pod.object.key(), EventType::Normal, "Disrupted", message.clone());
    if pod.object.deleted_at().is_none() {
        writes.counts.push(counts::pod_drained(leaving.member.facts, pod.object));
    }
    writes.delete.push(Action::force(pod.object, left, Why::new("Deadline", message)));
}

/// Waits for volumes to be detached, until the deadline.
fn volumes(
    leaving: Leaving<'_, '_>,
    node: &Node<'_>,
    deadline: Option<Timestamp>,
    patch: &mut ObjectPatch<'_>,
    writes: &mut Writes,
) -> Option<Wait> {
    let on_node = |volume: &&&Object| {
        volume.spec().get("nodeName").and_then(Value::as_str) == Some(node.object.name())
    };
    let attached = leaving.snapshot.of(&VOLUME_ATTACHMENT).iter().filter(on_node).count();
    if attached == 0 {
        patch.set(condition::VOLUMES_DETACHED, "True", condition::VOLUMES_DETACHED, "");
        return None;
    }
    if deadline.is_some_and(|deadline| deadline <= leaving.now) {
        let reason = "TerminationGracePeriodElapsed";
        patch.set(condition::VOLUMES_DETACHED, "False", reason, reason);
        return None;
    }
    patch.set(condition::VOLUMES_DETACHED, "Unknown", "AwaitingVolumeDetachment", "");
    let on = format!("{attached} volume(s) to be detached");
    writes.state(node.object.key(), EventType::Normal, "AwaitingVolumeDetachment", on.clone());
    Some((HoldReason::Depends { on }, deadline))
}

/// Asks the provider for the machine's end, and waits for its word.
fn terminate(leaving: Leaving<'_, '_>, patch: &mut ObjectPatch<'_>) -> Option<Wait> {
    let member = leaving.member;
    if member.facts.provider_id.is_empty() {
        return None; // there never was a machine
    }
    patch.set(condition::INSTANCE_TERMINATING, "True", condition::INSTANCE_TERMINATING, "");
    // A simulated machine is its Node, which is being deleted or gone by now.
    let is_simulated =
        member.claim.spec().pointer("/nodeClassRef/group") == Some(&Value::from(KWOK_GROUP));
    let on = "the provider to terminate the instance".to_owned();
    if is_simulated {
        let until = simulated_end(leaving).filter(|until| *until > leaving.now)?;
        return Some((HoldReason::Depends { on }, Some(until)));
    }
    let is_gone = member.claim.annotation(annotation::INSTANCE) == Some("Terminated");
    (!is_gone).then_some((HoldReason::Depends { on }, None))
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
