//! Nodes that are emptied before they go: closed to new pods and traffic, drained in groups, their
//! volumes detached.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::object::member::{field, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::counts;
use super::writes::{Wait, Writes};
use crate::dialect::karpenter::names::{
    DISRUPTED_EFFECT, DISRUPTED_TAINT, VOLUME_ATTACHMENT, event, label,
};
use crate::dialect::karpenter::read::node::Node;
use crate::dialect::karpenter::read::pod::{Owner, Pod};
use crate::hold::{HoldReason, NAMED};
use crate::pod_budget::PodBudgets;
use crate::snapshot::Snapshot;
use crate::step::{Action, EventType, Verb, Why};
use crate::taint;

/// A pod that should have been gone for this long is not waited for.
const STUCK: SignedDuration = SignedDuration::from_secs(60);

/// A Node that is being deleted, and what its end depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain<'c, 'w> {
    pub(crate) now: Timestamp,
    pub(crate) node: Node<'w>,
    /// The pods on it.
    pub(crate) pods: &'c [Pod<'w>],
    pub(crate) pod_budgets: &'c PodBudgets<'w>,
    pub(crate) snapshot: &'c Snapshot<'w>,
    /// When its pods go regardless.
    pub(crate) deadline: Option<Timestamp>,
    /// The disruption that it goes for; empty if it was simply deleted.
    pub(crate) disruption: &'c str,
}

/// Whether the volumes of a node are detached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Volumes {
    Detached,
    Awaited(Wait),
    /// They are not, and its deadline has passed.
    GivenUp,
}

impl Drain<'_, '_> {
    /// Keeps new pods and traffic away.
    pub(crate) fn close(&self, writes: &mut Writes) {
        let node = &self.node;
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
    pub(crate) fn empty(&self, writes: &mut Writes) -> Option<Wait> {
        let (now, deadline) = (self.now, self.deadline);
        let waited: Vec<&Pod<'_>> =
            self.pods.iter().filter(|pod| pod.is_drainable() && !is_stuck(pod, now)).collect();
        if waited.is_empty() {
            return None;
        }
        let is_forced =
            |pod: &&Pod<'_>| deadline.is_some_and(|deadline| is_due(pod, deadline, now));
        let (forced, rest): (Vec<&Pod<'_>>, Vec<&Pod<'_>>) =
            waited.iter().copied().partition(is_forced);
        if let Some(deadline) = deadline {
            for pod in forced {
                self.force(pod, deadline, writes);
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
        let hold = self.evict(&first, writes);
        let forced_at = waited.iter().filter_map(|pod| force_at(pod, deadline?));
        // It is due after that instant, not at it.
        let forced_at =
            forced_at.map(|at| if at == now { at + SignedDuration::from_millis(1) } else { at });
        let freed_at = first.iter().filter_map(|pod| pod.protected_until());
        let next = forced_at.chain(freed_at).filter(|at| *at > now).min();
        let pods = crate::count(waited.len());
        if let Some(reason) = &hold {
            let message =
                format!("Failed to drain node, {pods} pods are waiting to be evicted: {reason}");
            let key = self.node.object.key();
            writes.state(key, EventType::Warning, event::FAILED_DRAINING, message);
        }
        let reason = hold.unwrap_or(HoldReason::Draining { pods });
        Some((reason, next))
    }

    /// Evicts what may be evicted; gives back what keeps the others.
    fn evict(&self, pods: &[&Pod<'_>], writes: &mut Writes) -> Option<HoldReason> {
        let mut hold = None;
        for pod in pods.iter().filter(|pod| !pod.facts.is_terminating) {
            if pod.is_protected(self.now) {
                hold.get_or_insert(HoldReason::PodProtected { pod: pod.path() });
                continue;
            }
            if let Err((budget, allowed)) = self.pod_budgets.take(pod.object, &mut writes.spent) {
                let pod = pod.path();
                hold.get_or_insert(HoldReason::PodDisruptionBudget { budget, pod, allowed });
                continue;
            }
            let why =
                Why::new("Draining", format!("node {} is being drained", self.node.object.name()));
            let message = format!("Evicted pod: {}", counts::drain_reason(self.disruption));
            writes.event(pod.object.key(), EventType::Normal, event::EVICTED, message);
            writes.delete.push(Action::evict(pod.object, None, why));
            writes.counts.push(counts::pod_drained(self.disruption, pod.object));
            writes.counts.push(counts::pod_evicted(pod.object));
        }
        hold
    }

    /// Deletes a pod, or again one that would end too late, with the time that is left.
    fn force(&self, pod: &Pod<'_>, deadline: Timestamp, writes: &mut Writes) {
        let now = self.now;
        let left = deadline.duration_since(now).as_secs().max(1);
        // Times of deletion have whole seconds: asking once more would gain nothing.
        let ends = SignedDuration::from_secs(left.saturating_add(1));
        let is_soon = |at: Timestamp| at.duration_since(now) <= ends;
        if pod.object.deleted_at().is_some_and(is_soon) {
            return;
        }
        let message = format!(
            "deleted with {left} s of grace, because the termination grace period of its node \
             ends at {deadline}"
        );
        writes.event(pod.object.key(), EventType::Normal, event::DISRUPTED, message.clone());
        if pod.object.deleted_at().is_none() {
            writes.counts.push(counts::pod_drained(self.disruption, pod.object));
        }
        writes.delete.push(Action::force(pod.object, left, Why::new("Deadline", message)));
    }

    /// Whether the volumes are detached; they are waited for until the deadline.
    pub(crate) fn volumes(&self, writes: &mut Writes) -> Volumes {
        let node = self.node.object;
        let on_node = |attachment: &&&Object| {
            let volume = text(field(attachment.spec(), "source"), "persistentVolumeName");
            attachment.spec_text("nodeName") == node.name() && !volume.is_empty()
        };
        let attached: Vec<&str> = self
            .snapshot
            .of(&VOLUME_ATTACHMENT)
            .iter()
            .filter(on_node)
            .map(|attachment| attachment.name().as_str())
            .collect();
        if attached.is_empty() {
            return Volumes::Detached;
        }
        if self.deadline.is_some_and(|deadline| deadline <= self.now) {
            return Volumes::GivenUp;
        }
        let count = attached.len();
        let named = attached.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = count.saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let message = format!("Awaiting the deletion of VolumeAttachments ({named}{more})");
        writes.state(node.key(), EventType::Normal, event::AWAITING_VOLUME_DETACHMENT, message);
        let on = format!("{count} volume(s) to be detached ({named}{more})");
        Volumes::Awaited((HoldReason::Depends { on }, self.deadline))
    }
}

fn is_stuck(pod: &Pod<'_>, now: Timestamp) -> bool {
    let due = pod.object.deleted_at().and_then(|at| at.checked_add(STUCK).ok());
    due.is_some_and(|due| due < now)
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
