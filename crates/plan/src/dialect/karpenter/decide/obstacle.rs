//! Which nodes may be disrupted at all, and in which words the others are refused.

use std::collections::BTreeSet;

use jiff::Timestamp;
use smol_str::SmolStr;

use crate::dialect::karpenter::names::{annotation, label};
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::pod::{Pod, Protection};
use crate::hold::HoldReason;
use crate::pod_budget::PodBlock;

/// Why a node is no candidate. The texts are upstream's, which users search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    InFlight,
    NotManaged,
    NoNode,
    NotInitialized,
    Leaving,
    Nominated,
    NodeProtected,
    NoPoolLabel,
    NoPool { name: String },
    PodProtected { pod: String, until: Option<Timestamp> },
    PodBudget { pod: String, block: PodBlock },
}

impl Obstacle {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::InFlight => "candidate is already being disrupted".to_owned(),
            Self::NotManaged => "node isn't managed by karpenter".to_owned(),
            Self::NoNode => "nodeclaim does not have an associated node".to_owned(),
            Self::NotInitialized => "node isn't initialized".to_owned(),
            Self::Leaving => "node is deleting or marked for deletion".to_owned(),
            Self::Nominated => "node is nominated for a pending pod".to_owned(),
            Self::NodeProtected => {
                format!(
                    "disruption is blocked through the {:?} annotation",
                    annotation::DO_NOT_DISRUPT
                )
            }
            Self::NoPoolLabel => {
                format!("node doesn't have required label (label={})", label::NODE_POOL)
            }
            Self::NoPool { name } => format!("nodepool not found (NodePool={name})"),
            Self::PodProtected { pod, .. } => {
                format!("pod has {:?} annotation (Pod={pod})", annotation::DO_NOT_DISRUPT)
            }
            Self::PodBudget { block: PodBlock::Spent { budget }, .. } => {
                format!("pdb prevents pod evictions (PodDisruptionBudget=[{budget}])")
            }
            Self::PodBudget { block: PodBlock::Several { budgets }, .. } => {
                let budgets = budgets.join(" ");
                format!(
                    "eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{budgets}])"
                )
            }
        }
    }

    /// The text as events have it: with a capital.
    pub(crate) fn sentence(&self) -> String {
        if let Self::NoPool { name } = self {
            return format!("NodePool not found (NodePool={name})");
        }
        capitalized(&self.text())
    }

    /// Whether it is pods that are in the way; a deadline of the claim overrides these.
    pub(crate) fn is_by_pods(&self) -> bool {
        matches!(self, Self::PodProtected { .. } | Self::PodBudget { .. })
    }

    pub(crate) fn until(&self) -> Option<Timestamp> {
        match self {
            Self::PodProtected { until, .. } => *until,
            _ => None,
        }
    }

    /// The same as a hold, with a type of its own where there is one.
    pub(crate) fn hold(&self) -> HoldReason {
        match self {
            Self::NodeProtected => HoldReason::Ignored {
                by: format!("node annotation {}", annotation::DO_NOT_DISRUPT),
            },
            Self::PodProtected { pod, .. } => HoldReason::PodProtected { pod: pod.clone() },
            Self::PodBudget { pod, block: PodBlock::Spent { budget } } => {
                let (budget, pod) = (budget.clone(), pod.clone());
                HoldReason::PodDisruptionBudget { budget, pod, allowed: 0 }
            }
            other => HoldReason::NotDisruptable { detail: other.text() },
        }
    }
}

/// A text as events have it: with a capital.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Why `member` may not be disrupted, in the order in which the checks are made. `nominated` are
/// the nodes that pending pods will go to.
pub(crate) fn of(
    cluster: &Cluster<'_>,
    member: &Member<'_>,
    nominated: &BTreeSet<SmolStr>,
) -> Option<Obstacle> {
    if member.is_in_flight() {
        return Some(Obstacle::InFlight);
    }
    let Some(node) = member.node else { return Some(Obstacle::NoNode) };
    if !node.facts.is_initialized {
        return Some(Obstacle::NotInitialized);
    }
    if member.is_leaving() || node.facts.is_deleting {
        return Some(Obstacle::Leaving);
    }
    if nominated.contains(node.object.name()) {
        return Some(Obstacle::Nominated);
    }
    if node.facts.is_protected {
        return Some(Obstacle::NodeProtected);
    }
    let Some(name) = member.pool_name else { return Some(Obstacle::NoPoolLabel) };
    if member.pool.is_none() {
        return Some(Obstacle::NoPool { name: name.to_owned() });
    }
    by_pods(cluster, cluster.pods_of(member))
}

fn by_pods(cluster: &Cluster<'_>, pods: &[Pod<'_>]) -> Option<Obstacle> {
    let protected = pods.iter().filter(|pod| pod.is_active() && pod.is_protected(cluster.now));
    // Of several, the one that takes longest says when the node is free.
    let longest = protected.max_by_key(|pod| match pod.facts.protection {
        Protection::Until(end) => (false, Some(end)),
        _ => (true, None),
    });
    if let Some(pod) = longest {
        return Some(Obstacle::PodProtected { pod: pod.path(), until: pod.protected_until() });
    }
    let evictable = pods.iter().filter(|pod| pod.is_evictable(cluster.now));
    evictable.into_iter().find_map(|pod| {
        let block = cluster.pod_budgets.block(pod.object)?;
        Some(Obstacle::PodBudget { pod: pod.path(), block })
    })
}
