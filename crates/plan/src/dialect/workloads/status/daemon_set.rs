//! The status of a DaemonSet.

use serde_json::{Map, Value, json};

use crate::dialect::workloads::read::Health;
use crate::dialect::workloads::read::daemon_set::{DaemonNode, DaemonPod, DaemonSet};

pub(crate) fn status(set: &DaemonSet<'_>) -> Map<String, Value> {
    let wanted = || set.nodes.iter().filter(|node| node.fit.should_run());
    let count = |test: &dyn Fn(&DaemonPod<'_>) -> bool| {
        wanted().filter_map(DaemonNode::current).filter(|pod| test(pod)).count()
    };
    let (desired, available) = (wanted().count(), count(&|pod| pod.health == Health::Available));
    let misplaced = set.nodes.iter().filter(|node| !node.fit.should_run() && !node.pods.is_empty());
    let mut status = Map::new();
    let mut put = |name: &str, count: usize| status.insert(name.to_owned(), json!(count));
    put("currentNumberScheduled", count(&|_| true));
    put("numberMisscheduled", misplaced.count());
    put("desiredNumberScheduled", desired);
    put("numberReady", count(&|pod| pod.health.is_ready()));
    put("updatedNumberScheduled", count(&|pod| pod.is_updated));
    put("numberAvailable", available);
    put("numberUnavailable", desired.saturating_sub(available));
    status.insert("observedGeneration".to_owned(), json!(set.owner.generation()));
    if let Some(collisions) = set.revisions.collisions {
        status.insert("collisionCount".to_owned(), json!(collisions));
    }
    status
}
