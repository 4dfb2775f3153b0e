//! New replicas of a Deployment that are ready and do not count as available yet.

use convoy_api::Object;

use crate::dialect::apps::decide::DeploymentDecision;
use crate::hold::{Hold, HoldReason};
use crate::ownership::is_controlled_by;
use crate::pods::{available_at, ready_since};

/// By pod where the pods are known.
pub(super) fn settling(decision: &DeploymentDecision<'_>) -> Vec<Hold> {
    let Some(set) = decision.new_set() else { return Vec::new() };
    let for_secs = decision.deployment.min_ready_secs;
    if for_secs == 0 || set.counts.ready <= set.counts.available {
        return Vec::new();
    }
    let has_uid = set.object.uid().is_some();
    let ours = |pod: &&&Object| has_uid && is_controlled_by(pod, set.object);
    let pods = decision.pods.iter().filter(ours).filter_map(|pod| {
        let until = available_at(ready_since(pod)?, for_secs)?;
        (until > decision.now).then(|| {
            Hold::of_member(pod.name().clone(), HoldReason::Settling { for_secs })
                .in_group(set.name().clone())
                .until(Some(until))
        })
    });
    let holds: Vec<Hold> = pods.collect();
    if holds.is_empty() {
        let hold = Hold::of_rollout(HoldReason::Settling { for_secs });
        return vec![hold.in_group(set.name().clone())];
    }
    holds
}
