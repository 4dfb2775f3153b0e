//! What a pod asks of its node, and how well a node meets it.

use convoy_api::object::member::{field, list};
use convoy_plan::node_selector::{CORDONED, NodeSelector, holds, intolerable};
use convoy_plan::taint::{Taint, Toleration};
use serde_json::Value;
use smol_str::SmolStr;

use super::room::{Amounts, Room};

/// The part of a pod that scheduling reads, prepared for many nodes.
pub(super) struct Wants<'p> {
    takes: Amounts,
    selector: NodeSelector<'p>,
    preferred: &'p [Value],
    tolerations: Vec<Toleration<'p>>,
}

/// The weights Kubernetes gives to its scores.
const AFFINITY_WEIGHT: i64 = 2;
const TAINT_WEIGHT: i64 = 3;

impl<'p> Wants<'p> {
    pub(super) fn of(pod: &'p Value) -> Self {
        let spec = field(pod, "spec");
        let affinity = field(field(spec, "affinity"), "nodeAffinity");
        Self {
            takes: Amounts::of_pod(spec),
            selector: NodeSelector::of(spec),
            preferred: list(affinity, "preferredDuringSchedulingIgnoredDuringExecution"),
            tolerations: list(spec, "tolerations").iter().map(Toleration::from_value).collect(),
        }
    }

    pub(super) fn takes(&self) -> &Amounts {
        &self.takes
    }

    /// Whether it prefers some nodes to others.
    pub(super) fn has_preferences(&self) -> bool {
        !self.preferred.is_empty()
    }

    /// Whether a node would rather not have it.
    pub(super) fn is_disliked_by(&self, room: &Room) -> bool {
        self.dislikes(room) > 0
    }

    /// How many taints of a node speak against it without keeping it away.
    fn dislikes(&self, room: &Room) -> i64 {
        let taints = list(field(&room.node, "spec"), "taints").iter().map(Taint::from_value);
        let soft = taints.filter(|taint| taint.effect == "PreferNoSchedule");
        i64::try_from(soft.filter(|taint| !self.tolerates(taint)).count()).unwrap_or(i64::MAX)
    }

    /// Why a node will not do, in the words of Kubernetes; nothing if it will.
    pub(super) fn refusals(&self, name: &str, room: &Room) -> Vec<String> {
        let hard = ["NoSchedule", "NoExecute"];
        match intolerable(field(&room.node, "spec"), &self.tolerations, &hard) {
            Some(CORDONED) => return vec!["node(s) were unschedulable".to_owned()],
            Some(Taint { key, value, .. }) => {
                return vec![format!("node(s) had untolerated taint {{{key}: {value}}}")];
            }
            None => {}
        }
        if !self.may_be_on(name, room) {
            return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
        }
        room.lacks(&self.takes)
    }

    /// Whether a node has enough of everything.
    pub(super) fn has_room(&self, room: &Room) -> bool {
        room.lacking(&self.takes).next().is_none()
    }

    /// Whether a node is one that the pod selects.
    pub(super) fn may_be_on(&self, name: &str, room: &Room) -> bool {
        self.selector.matches(name, label_of(&room.node))
    }

    /// The node with the highest score; of equals the one with the fewest pods, then the first
    /// by name.
    pub(super) fn best<'n>(&self, fitting: &[(&'n SmolStr, &Room)]) -> Option<&'n SmolStr> {
        let prefers = |name: &str, room: &Room| -> i64 {
            let label = label_of(&room.node);
            let kept =
                self.preferred.iter().filter(|p| holds(field(p, "preference"), name, &label));
            kept.filter_map(|preference| field(preference, "weight").as_i64()).sum()
        };
        let facts: Vec<(i64, i64)> =
            fitting.iter().map(|(name, room)| (prefers(name, room), self.dislikes(room))).collect();
        let most_preferred = facts.iter().map(|(prefers, _)| *prefers).max().unwrap_or(0).max(1);
        let most_disliked = facts.iter().map(|(_, disliked)| *disliked).max().unwrap_or(0).max(1);
        let scored = fitting.iter().zip(&facts).map(|((name, room), (prefers, disliked))| {
            let score = room.least_allocated(&self.takes)
                + AFFINITY_WEIGHT * (100 * prefers / most_preferred)
                + TAINT_WEIGHT * (100 - 100 * disliked / most_disliked);
            (score, std::cmp::Reverse(room.used.pods), std::cmp::Reverse(*name))
        });
        scored.max().map(|(_, _, name)| name.0)
    }

    fn tolerates(&self, taint: &Taint<'_>) -> bool {
        self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    }
}

/// Looks labels of a node up.
fn label_of<'n>(node: &'n Value) -> impl Fn(&str) -> Option<&'n str> {
    let labels = field(field(node, "metadata"), "labels");
    move |key| labels.get(key).and_then(Value::as_str)
}
