//! The pods of a Deployment that are not ready, for people who ask: the decision counts them by
//! ReplicaSet and need not look at them.

use convoy_api::Object;
use convoy_api::apps::{DEPLOYMENT, POD, REPLICA_SET};

use crate::dialect::apps::read::pod::trouble;
use crate::hold::{Hold, HoldReason};
use crate::ownership::is_controlled_by;
use crate::pods::{is_finished, is_ready};
use crate::world::World;

/// One hold per pod that is not ready.
pub(crate) fn not_ready(world: &World, rollout: &Object) -> Vec<Hold> {
    let sets: Vec<&Object> = if *rollout.kind() == DEPLOYMENT {
        let all = world.in_namespace(&REPLICA_SET, rollout.namespace());
        all.filter(|set| is_controlled_by(set, rollout)).collect()
    } else {
        vec![rollout]
    };
    let mut holds = Vec::new();
    for set in sets {
        let uid = set.uid().unwrap_or_default();
        let own = world.controlled(&POD, set.namespace(), uid).filter(|_| !uid.is_empty());
        let waiting = own.filter(|pod| !is_ready(pod) && !is_finished(pod) && !pod.is_deleting());
        holds.extend(waiting.map(|pod| {
            let reason = HoldReason::NotAvailable { detail: trouble(pod) };
            Hold::of_member(pod.name().clone(), reason).in_group(set.name().clone())
        }));
    }
    holds
}
