//! Pods as a disruption sees them: which have to move, which may not be disturbed.

use convoy_api::Object;
use convoy_api::object::meta::timestamp;
use convoy_api::text::GoDuration;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use smol_str::SmolStr;

use super::pod_requirements::PodRequirements;
use crate::dialect::karpenter::names::{
    CONFIG_MIRROR, DISRUPTED_TAINT, POD_DELETION_COST, annotation,
};
use crate::pods::node_of;
use crate::resources::Amounts;
use crate::taint::{Taint, Toleration};

/// A pod and what matters about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pod<'w> {
    /// Where it stands among the pods of the snapshot, which are in key order.
    pub(crate) place: usize,
    pub(crate) object: &'w Object,
    pub(crate) facts: &'w PodFacts,
}

/// What a pod says about itself.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, read from the object"
)]
pub(crate) struct PodFacts {
    /// The node that it is on; empty if it is on none.
    pub(crate) node: SmolStr,
    pub(crate) owner: Owner,
    pub(crate) is_finished: bool,
    pub(crate) is_terminating: bool,
    /// Stays where it is whatever happens to the node.
    tolerates_disruption: bool,
    pub(crate) protection: Protection,
    is_provisionable: bool,
    eviction_cost: f64,
    last_event: Option<Timestamp>,
    /// What it takes of its node.
    pub(crate) amounts: Amounts,
    /// Whether it takes ports of its node.
    pub(crate) has_ports: bool,
    /// Whether it may not run beside some other pods.
    pub(crate) keeps_others_away: bool,
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
    pub(crate) fn node_name(&self) -> Option<&'w str> {
        Some(self.facts.node.as_str()).filter(|node| !node.is_empty())
    }

    pub(crate) fn is_active(&self) -> bool {
        self.facts.is_active()
    }

    /// Whether a node is to be found or made for it: the scheduler has found none, and does not
    /// preempt other pods for it. A pod that is held back by a gate, or that nobody has looked at
    /// yet, waits for something else.
    pub(crate) fn is_provisionable(&self) -> bool {
        self.facts.is_provisionable
    }

    /// Whether it comes back elsewhere when its node goes.
    pub(crate) fn is_reschedulable(&self) -> bool {
        let PodFacts { is_terminating, owner, .. } = self.facts;
        let coming_back = *is_terminating && *owner == Owner::StatefulSet;
        (self.is_active() || coming_back) && !owner.stays()
    }

    /// Whether draining would evict it.
    pub(crate) fn is_evictable(&self, now: Timestamp) -> bool {
        self.is_active()
            && !self.facts.tolerates_disruption
            && self.facts.owner != Owner::Node
            && !self.is_protected(now)
    }

    /// Whether draining has to wait for it to go, one way or another.
    pub(crate) fn is_drainable(&self) -> bool {
        let PodFacts { is_finished, tolerates_disruption, owner, .. } = self.facts;
        !is_finished && !tolerates_disruption && *owner != Owner::Node
    }

    pub(crate) fn is_protected(&self, now: Timestamp) -> bool {
        match self.facts.protection {
            Protection::ForEver => true,
            Protection::Until(end) => now < end,
            Protection::None | Protection::Unreadable => false,
        }
    }

    /// When its protection ends, if it has one that does.
    pub(crate) fn protected_until(&self) -> Option<Timestamp> {
        match self.facts.protection {
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
        self.facts.eviction_cost
    }

    /// When it was bound, began to terminate or finished, whichever came last.
    pub(crate) fn last_event(&self) -> Option<Timestamp> {
        self.facts.last_event
    }

    /// `namespace/name`.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.object.namespace(), self.object.name())
    }
}

impl PodFacts {
    pub(crate) fn read(pod: &Object) -> Self {
        let phase = pod.status().get("phase").and_then(Value::as_str);
        let needs = PodRequirements::of(pod);
        let mut facts = Self {
            node: node_of(pod).map(SmolStr::new).unwrap_or_default(),
            owner: Owner::of(pod),
            is_finished: matches!(phase, Some("Succeeded" | "Failed")),
            is_terminating: pod.is_deleting(),
            tolerates_disruption: tolerates_disruption(pod),
            protection: Protection::of(pod),
            is_provisionable: false,
            eviction_cost: eviction_cost(pod),
            last_event: None,
            has_ports: !needs.ports().is_empty(),
            amounts: needs.amounts,
            keeps_others_away: needs.topology.into_required().keeps_others_away(),
        };
        facts.is_provisionable = facts.is_active() && !facts.owner.stays() && is_unschedulable(pod);
        facts.last_event = last_event(pod, &facts);
        facts
    }

    fn is_active(&self) -> bool {
        !self.is_finished && !self.is_terminating
    }
}

/// Whether the scheduler has found no node for a pod, and does not preempt others for it.
fn is_unschedulable(pod: &Object) -> bool {
    let scheduled = pod.condition("PodScheduled");
    let reason = scheduled.and_then(|entry| entry.get("reason")).and_then(Value::as_str);
    let nominated = pod.status().get("nominatedNodeName").and_then(Value::as_str);
    reason == Some("Unschedulable") && nominated.is_none_or(str::is_empty)
}

fn eviction_cost(pod: &Object) -> f64 {
    let dear = pod.annotation(POD_DELETION_COST).and_then(|text| text.parse::<f64>().ok());
    let priority = pod.spec().get("priority").and_then(Value::as_f64);
    let cost = 1.0
        + dear.unwrap_or(0.0) / f64::from(1 << 27)
        + priority.unwrap_or(0.0) / f64::from(1 << 25);
    cost.clamp(-10.0, 10.0)
}

fn last_event(pod: &Object, facts: &PodFacts) -> Option<Timestamp> {
    if facts.owner == Owner::DaemonSet {
        return None;
    }
    let scheduled = pod.condition("PodScheduled");
    let bound = timestamp(scheduled.and_then(|entry| entry.get("lastTransitionTime")));
    let grace = pod.metadata().get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    let grace = SignedDuration::from_secs(grace.unwrap_or(0).clamp(0, 1 << 32));
    let terminating = pod.deleted_at().and_then(|at| at.checked_sub(grace).ok());
    let containers = pod.status().get("containerStatuses").and_then(Value::as_array);
    let finished = containers.into_iter().flatten().filter(|_| facts.is_finished);
    let finished = finished
        .filter_map(|status| timestamp(status.pointer("/state/terminated/finishedAt")))
        .max();
    bound.max(terminating).max(finished)
}

impl Owner {
    /// Whether its pods belong to their node, and do not come back elsewhere.
    fn stays(self) -> bool {
        matches!(self, Self::DaemonSet | Self::Node)
    }

    fn of(pod: &Object) -> Self {
        let mut kinds = pod.owners().map(|owner| match owner.kind {
            "DaemonSet" => Self::DaemonSet,
            "Node" => Self::Node,
            "StatefulSet" => Self::StatefulSet,
            _ => Self::Other,
        });
        let mirrored = || pod.annotation(CONFIG_MIRROR).map(|_| Self::Node);
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

#[cfg(test)]
mod tests {
    use convoy_testkit::{Builder, karpenter};
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_cost_more_the_dearer_and_the_more_important_they_are() {
        let dear = |cost: &str| plain().annotation(POD_DELETION_COST, cost);
        let important = |priority: i64| plain().with("/spec/priority", json!(priority));
        let (half, quarter) = (1_i64 << 26, 1_i64 << 23);
        let cases = [
            ("plain", plain(), 1.0),
            ("dear", dear(&half.to_string()), 1.5),
            ("cheap", dear(&(-half).to_string()), 0.5),
            ("important", important(quarter), 1.25),
            ("unimportant", important(-quarter), 0.75),
            ("both", important(quarter).annotation(POD_DELETION_COST, &half.to_string()), 1.75),
            ("as dear as can be", dear("2147483647"), 10.0),
            ("as important as can be", important(2_000_001_000), 10.0),
            ("as cheap as can be", important(-2_147_483_648), -10.0),
            ("unreadable", dear("much"), 1.0),
        ];
        for (case, pod, expected) in cases {
            let cost = PodFacts::read(&pod.build()).eviction_cost;
            assert!((cost - expected).abs() < 1e-6, "{case}: {cost}");
        }
    }

    fn plain() -> Builder {
        karpenter::pod("p", "n", "1")
    }
}
