//! Ordinary objects that lie in the bag beside the fleet's own: each is judged by itself.

use convoy_api::{GroupKind, Object};
use serde_json::json;

use crate::availability::{self, Availability};
use crate::dialect::fleet::names::{self, DIALECT};
use crate::hold::{Hold, HoldReason};
use crate::step::{Step, Verdict};
use crate::world::World;

const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");
const NODE_POOL: GroupKind = GroupKind::new("karpenter.sh", "NodePool");

/// The objects that are judged, in key order: those of no dialect's API group that are not
/// members of another rollout.
pub fn judged(world: &World) -> impl Iterator<Item = &Object> {
    let nodes_roll = [SKYHOOK, NODE_POOL].iter().any(|kind| world.of(kind).next().is_some());
    let kinds = world.kinds().filter(move |kind| is_judged(kind, nodes_roll));
    kinds.flat_map(|kind| world.of(kind))
}

/// Whether objects of a kind are judged, where `nodes_roll` says that nodes are members.
fn is_judged(kind: &GroupKind, nodes_roll: bool) -> bool {
    let group = kind.group.as_str();
    let ours = [names::PLACEMENT_GROUP, names::CLUSTER_GROUP, "skyhook.nvidia.com"];
    let spoken = ours.contains(&group)
        || group.starts_with("karpenter.")
        || group.ends_with("open-cluster-management.io");
    let member = match (group, kind.kind.as_str()) {
        ("", "Pod") | ("apps", "ReplicaSet") => true,
        ("", "Node" | "ConfigMap" | "Namespace" | "PersistentVolume" | "PersistentVolumeClaim")
        | ("apps", "DaemonSet" | "StatefulSet")
        | ("policy", "PodDisruptionBudget")
        | ("storage.k8s.io", _) => nodes_roll,
        _ => false,
    };
    !spoken && !member
}

/// Whether an object may be one that is judged, whatever lies beside it.
pub fn may_be_judged(kind: &GroupKind) -> bool {
    is_judged(kind, false)
}

/// What is known of one object. Nothing is ever written.
pub fn step(object: &Object) -> Step {
    let judged = availability::judge(object);
    let name = format!("{}/{}", object.kind().kind, object.name());
    let (verdict, reason) = match &judged {
        Availability::Available | Availability::NotTrackable { .. } => (Verdict::Done, None),
        Availability::NotYetAvailable { detail } => {
            (Verdict::Held, Some(HoldReason::NotAvailable { detail: detail.clone() }))
        }
        Availability::Failed { detail } => {
            (Verdict::Stopped, Some(HoldReason::Failed { detail: detail.clone() }))
        }
    };
    let mut step = Step::new(DIALECT, object, verdict);
    step.decision = json!({"available": {name: judged.word()}});
    step.holds.extend(reason.map(Hold::of_rollout));
    step
}
