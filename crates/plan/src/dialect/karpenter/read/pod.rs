//! Pods as a disruption sees them: which have to move, which may not be disturbed.

use convoy_api::Object;
use convoy_api::object::meta::timestamp;
use convoy_api::text::GoDuration;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::dialect::karpenter::names::{DISRUPTED_TAINT, annotation, pod_annotation};
use crate::pods::node_of;
use crate::taint::{Taint, Toleration};

/// A pod and what matters about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pod<'w> {
    pub(crate) object: &'w Object,
    pub(crate) owner: Owner,
    pub(crate) is_finished: bool,
    pub(crate) is_terminating: bool,
    /// Stays where it is whatever happens to the node.
    tolerates_disruption: bool,
    pub(crate) protection: Protection,
}

/// The kinds of owner that make a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    DaemonSet,
    /// A mirror of a pod that the kubelet runs by itself.
    Node,
    StatefulSet,
    Other,
}

/// What the do-not-disrupt annotation of a pod asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    None,
    ForEver,
    Until(Timestamp),
    /// Neither `true` nor a duration: ignored, with a warning.
    Unreadable,
}

impl<'w> Pod<'w> {
    pub(crate) fn new(object: &'w Object) -> Self {
        let phase = object.status().get("phase").and_then(Value::as_str);
        Self {
            object,
            owner: Owner::of(object),
            is_finished: matches!(phase, Some("Succeeded" | "Failed")),
            is_terminating: object.is_deleting(),
            tolerates_disruption: tolerates_disruption(object),
            protection: Protection::of(object),
        }
    }

    pub(crate) fn node_name(&self) -> Option<&'w str> {
        node_of(self.object)
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.is_finished && !self.is_terminating
    }

    /// Whether a node is to be found or made for it: the scheduler has found none, and does not
    /// preempt other pods for it. A pod that is held back by a gate, or that nobody has looked at
    /// yet, waits for something else.
    pub(crate) fn is_provisionable(&self) -> bool {
        let scheduled = self.object.condition("PodScheduled");
        let reason = scheduled.and_then(|entry| entry.get("reason")).and_then(Value::as_str);
        let nominated = self.object.status().get("nominatedNodeName").and_then(Value::as_str);
        self.is_active()
            && reason == Some("Unschedulable")
            && nominated.is_none_or(str::is_empty)
            && !matches!(self.owner, Owner::DaemonSet | Owner::Node)
    }

    /// Whether it comes back elsewhere when its node goes.
    pub(crate) fn is_reschedulable(&self) -> bool {
        let coming_back = self.is_terminating && self.owner == Owner::StatefulSet;
        (self.is_active() || coming_back) && !matches!(self.owner, Owner::DaemonSet | Owner::Node)
    }

    /// Whether draining would evict it.
    pub(crate) fn is_evictable(&self, now: Timestamp) -> bool {
        self.is_active()
            && !self.tolerates_disruption
            && self.owner != Owner::Node
            && !self.is_protected(now)
    }

    /// Whether draining has to wait for it to go, one way or another.
    pub(crate) fn is_drainable(&self) -> bool {
        !self.is_finished && !self.tolerates_disruption && self.owner != Owner::Node
    }

    pub(crate) fn is_protected(&self, now: Timestamp) -> bool {
        match self.protection {
            Protection::ForEver => true,
            Protection::Until(end) => now < end,
            Protection::None | Protection::Unreadable => false,
        }
    }

    /// When its protection ends, if it has one that does.
    pub(crate) fn protected_until(&self) -> Option<Timestamp> {
        match self.protection {
            Protection::Until(end) => Some(end),
            _ => None,
        }
    }

    pub(crate) fn is_critical(&self) -> bool {
        let class = self.object.spec().get("priorityClassName").and_then(Value::as_str);
        matches!(class, Some("system-cluster-critical" | "system-node-critical"))
    }

    /// What evicting it costs: 1, more for dear or important pods, less for cheap ones.
    pub(crate) fn eviction_cost(&self) -> f64 {
        let dear = self
            .object
            .annotation(pod_annotation::DELETION_COST)
            .and_then(|text| text.parse::<f64>().ok());
        let priority = self.object.spec().get("priority").and_then(Value::as_f64);
        let cost = 1.0
            + dear.unwrap_or(0.0) / f64::from(1 << 27)
            + priority.unwrap_or(0.0) / f64::from(1 << 25);
        cost.clamp(-10.0, 10.0)
    }

    /// When it was bound, began to terminate or finished, whichever came last.
    pub(crate) fn last_event(&self) -> Option<Timestamp> {
        if self.owner == Owner::DaemonSet {
            return None;
        }
        let scheduled = self.object.condition("PodScheduled");
        let bound = timestamp(scheduled.and_then(|entry| entry.get("lastTransitionTime")));
        let grace =
            self.object.metadata().get("deletionGracePeriodSeconds").and_then(Value::as_i64);
        let grace = SignedDuration::from_secs(grace.unwrap_or(0).clamp(0, 1 << 32));
        let terminating = self.object.deleted_at().and_then(|at| at.checked_sub(grace).ok());
        let containers = self.object.status().get("containerStatuses").and_then(Value::as_array);
        let finished = containers.into_iter().flatten().filter(|_| self.is_finished);
        let finished = finished
            .filter_map(|status| timestamp(status.pointer("/state/terminated/finishedAt")))
            .max();
        bound.max(terminating).max(finished)
    }

    /// `namespace/name`.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.object.namespace(), self.object.name())
    }
}

impl Owner {
    fn of(pod: &Object) -> Self {
        let mut kinds = pod.owners().map(|owner| match owner.kind {
            "DaemonSet" => Self::DaemonSet,
            "Node" => Self::Node,
            "StatefulSet" => Self::StatefulSet,
            _ => Self::Other,
        });
        let mirrored = || pod.annotation(pod_annotation::CONFIG_MIRROR).map(|_| Self::Node);
        kinds.find(|kind| *kind != Self::Other).or_else(mirrored).unwrap_or(Self::Other)
    }
}

impl Protection {
    fn of(pod: &Object) -> Self {
        let Some(text) = pod.annotation(annotation::DO_NOT_DISRUPT) else { return Self::None };
        if text == "true" {
            return Self::ForEver;
        }
        match text.parse::<GoDuration>() {
            Ok(duration) if duration.as_nanos() > 0 => {
                let started = timestamp(pod.status().get("startTime"));
                let end = started.map(|started| started.checked_add(duration.signed()));
                match end {
                    Some(Ok(end)) => Self::Until(end),
                    _ => Self::ForEver,
                }
            }
            _ => Self::Unreadable,
        }
    }
}

fn tolerates_disruption(pod: &Object) -> bool {
    let taint = Taint { key: DISRUPTED_TAINT, value: "", effect: "NoSchedule" };
    let tolerations = pod.spec().get("tolerations").and_then(Value::as_array);
    let mut tolerations = tolerations.into_iter().flatten().map(Toleration::from_value);
    tolerations.any(|toleration| toleration.tolerates(&taint))
}
