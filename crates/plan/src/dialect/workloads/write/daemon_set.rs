//! Actions of a DaemonSet, and the bodies of its pods.

use convoy_api::Object;
use convoy_api::object::member::list;
use serde_json::{Value, json};

use super::{note, of_revisions};
use crate::dialect::workloads::decide::daemon_set::DaemonSetDecision;
use crate::dialect::workloads::names::{REVISION_HASH, TEMPLATE_GENERATION};
use crate::dialect::workloads::read::daemon_set::{DaemonNode, DaemonSet, default_tolerations};
use crate::dialect::workloads::read::template;
use crate::gate::Permit;
use crate::pods::writes::Writes;
use crate::pods::{Names, pod};
use crate::snapshot::Snapshot;
use crate::step::{EventType, Why};

pub(crate) fn writes<'o>(
    set: &DaemonSet<'o>,
    decision: &DaemonSetDecision<'_>,
    expired: &[&Object],
    snapshot: &Snapshot<'_>,
) -> Writes<'o> {
    of_revisions(set.owner, &set.revisions, &set.pods, expired, |writes| {
        if let Some(permit) = decision.start_permit {
            start(writes, set, decision, permit, snapshot);
        }
        for (at, pods) in &decision.removals {
            for (pod, permit) in pods {
                let why = removal(writes, &set.nodes[*at], pod);
                writes.remove(*permit, pod, why);
            }
        }
    })
}

fn start(
    writes: &mut Writes<'_>,
    set: &DaemonSet<'_>,
    decision: &DaemonSetDecision<'_>,
    permit: Permit,
    snapshot: &Snapshot<'_>,
) {
    let mut names = Names::new(snapshot);
    for node in decision.starts.iter().map(|at| &set.nodes[*at]) {
        let key = names.next(set.owner.name(), node.name);
        let mut pod = pod(set.owner, template(set.owner), &key);
        note(&mut pod, "labels", REVISION_HASH, &set.revisions.hash);
        note(&mut pod, "labels", TEMPLATE_GENERATION, &set.owner.generation().to_string());
        pin(&mut pod["spec"], node.name);
        let message = format!("node {} has no pod of {}", node.name, set.revisions.name);
        writes.start(permit, key, pod, Why::new("NodeWithout", message));
    }
}

fn removal(writes: &mut Writes<'_>, node: &DaemonNode<'_>, pod: &Object) -> Why {
    let phase = pod.status_text("phase");
    let (kind, reason) = match phase {
        "Failed" => (EventType::Warning, "FailedDaemonPod"),
        "Succeeded" => (EventType::Normal, "SucceededDaemonPod"),
        _ if !node.fit.may_stay() => {
            return Why::new("NodeUnfit", format!("node {} does not suit the pod", node.name));
        }
        _ => return Why::new("Outdated", "a pod of the present template replaces it"),
    };
    let message = format!(
        "Found {} daemon pod {}/{} on node {}, will try to kill it",
        phase.to_lowercase(),
        pod.namespace(),
        pod.name(),
        node.name
    );
    writes.tell(kind, reason, message);
    Why::new("PodOver", format!("its phase is {phase}"))
}

/// Ties a new pod to its node, and lets it tolerate what daemons tolerate.
fn pin(spec: &mut Value, node: &str) {
    let terms = json!([{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": [node]}]}]);
    let added: Vec<Value> = default_tolerations(spec)
        .map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect}))
        .filter(|toleration| !list(spec, "tolerations").contains(toleration))
        .collect();
    if !spec["affinity"].is_object() {
        spec["affinity"] = json!({});
    }
    if !spec["affinity"]["nodeAffinity"].is_object() {
        spec["affinity"]["nodeAffinity"] = json!({});
    }
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": terms});
    if !spec["tolerations"].is_array() {
        spec["tolerations"] = json!([]);
    }
    spec["tolerations"].as_array_mut().expect("just made").extend(added);
}
