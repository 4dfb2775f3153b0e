//! The status of a pool: what it has, whether it is sound, what its budgets allow.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::decide::Disruptions;
use super::decide::budgets::Applicable;
use super::decide::registrations::{FAILED, Registrations};
use super::names::condition;
use super::read::Cluster;
use super::read::claim::Member;
use super::read::class::NodeClassState;
use super::read::node::NodeFacts;
use super::validate;
use crate::object_patch::ObjectPatch;
use crate::resources::Amounts;

/// The generation of the node class that the status is about.
const OBSERVED_CLASS: &str = "nodeClassObservedGeneration";

/// The status as it should read; absent if it reads so already.
pub(crate) fn status(
    cluster: &Cluster<'_>,
    node_class: NodeClassState<'_>,
    capacity: &(Amounts, u32),
    disruptions: &Disruptions<'_, '_>,
    registrations: &Registrations,
) -> Option<Value> {
    let object = cluster.pool().object;
    let mut patch = ObjectPatch::new(object, cluster.now);
    patch.status("resources", resources(capacity));
    patch.status("nodes", json!(capacity.1));
    match validate::at_run_time(cluster.pool()) {
        None => {
            patch.set(condition::VALIDATION_SUCCEEDED, "True", condition::VALIDATION_SUCCEEDED, "");
        }
        Some(text) => {
            patch.set(condition::VALIDATION_SUCCEEDED, "False", "NodePoolValidationFailed", &text);
        }
    }
    class(node_class, &mut patch);
    registration(registrations, &mut patch);
    budgets(cluster, disruptions, &mut patch);
    root(&mut patch, &[condition::VALIDATION_SUCCEEDED, condition::NODE_CLASS_READY]);
    let (_, changed) = patch.parts();
    if changed.is_empty() {
        return None;
    }
    let mut status = object.status().as_object().cloned().unwrap_or_default();
    status.extend(changed);
    Some(Value::Object(status))
}

/// What the pool's nodes have in all, and how many there are.
fn resources((sum, count): &(Amounts, u32)) -> Value {
    let mut resources = Map::new();
    let mut put = |name: &str, text: String| resources.insert(name.to_owned(), json!(text));
    put("cpu", thousandths(sum.cpu));
    put("ephemeral-storage", bytes(sum.storage));
    put("memory", bytes(sum.memory));
    put("nodes", count.to_string());
    put("pods", sum.pods.to_string());
    Value::Object(resources)
}

/// What some members have in all, and how many they are. Those that are leaving, or have no machine
/// yet, are left out. Until a Node is initialized, its claim says what the Node does not.
pub(crate) fn capacity<'m, 'w: 'm>(
    members: impl Iterator<Item = &'m Member<'w>>,
) -> (Amounts, u32) {
    let (mut sum, mut count) = (Amounts::default(), 0);
    for member in members.filter(|it| !it.is_leaving() && !it.facts.provider_id.is_empty()) {
        let of_claim = &member.facts.capacity;
        match member.node.map(|node| node.facts) {
            None => sum.add(of_claim),
            Some(NodeFacts { is_initialized: true, capacity, .. }) => {
                if let Some(capacity) = capacity {
                    sum.add(capacity);
                }
            }
            Some(NodeFacts { capacity, .. }) => {
                let mut filled = capacity.clone().unwrap_or_default();
                filled.fill(of_claim);
                sum.add(&filled);
            }
        }
        count += 1;
    }
    (sum, count)
}

fn thousandths(amount: i64) -> String {
    if amount % 1_000 == 0 { (amount / 1_000).to_string() } else { format!("{amount}m") }
}

/// With the largest suffix that loses nothing.
fn bytes(amount: i64) -> String {
    let suffixes = [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];
    let exact = suffixes.iter().find(|(shift, _)| amount != 0 && amount % (1 << shift) == 0);
    exact.map_or_else(
        || amount.to_string(),
        |(shift, suffix)| format!("{}{suffix}", amount >> shift),
    )
}

/// Whether the node class is there and ready. Classes of other providers are theirs to judge.
fn class(state: NodeClassState<'_>, patch: &mut ObjectPatch<'_>) {
    let kind = condition::NODE_CLASS_READY;
    match state {
        NodeClassState::Foreign if patch.current(kind).is_some() => {}
        NodeClassState::Foreign => patch.set(kind, "True", kind, ""),
        NodeClassState::NotFound => {
            patch.set(kind, "False", "NodeClassNotFound", "NodeClass not found on cluster");
        }
        NodeClassState::Terminating => {
            patch.set(kind, "False", "NodeClassTerminating", "NodeClass is Terminating");
        }
        NodeClassState::Unknown { generation } => {
            patch.status(OBSERVED_CLASS, json!(generation));
            patch.set(kind, "False", "NodeClassReadinessUnknown", "Node Class Readiness Unknown");
        }
        NodeClassState::NotReady { generation, reason, message } => {
            patch.status(OBSERVED_CLASS, json!(generation));
            patch.set(kind, "False", reason, message);
        }
        NodeClassState::Ready { generation } => {
            patch.status(OBSERVED_CLASS, json!(generation));
            patch.set(kind, "True", kind, "");
        }
    }
}

/// Whether the machines of the pool become nodes.
fn registration(registrations: &Registrations, patch: &mut ObjectPatch<'_>) {
    let kind = condition::NODE_REGISTRATION_HEALTHY;
    match registrations.are_healthy() {
        Some(true) => patch.set(kind, "True", kind, ""),
        Some(false) => {
            let is_said = patch.current(kind).is_some_and(|entry| entry["status"] == "False");
            let failure = registrations.failure.clone();
            let unknown = || (FAILED.into(), "Failed to register node".to_owned());
            let (reason, message) = match failure {
                None if is_said => return,
                failure => failure.unwrap_or_else(unknown),
            };
            patch.set(kind, "False", &reason, &message);
        }
        None if registrations.is_reset || patch.current(kind).is_none() => {
            let text = "object is awaiting reconciliation";
            patch.set(kind, "Unknown", "AwaitingReconciliation", text);
        }
        None => {}
    }
}

/// Whether every budget can be evaluated, and what they allow.
fn budgets(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>, patch: &mut ObjectPatch<'_>) {
    let budgets = disruptions.own_budgets();
    let errors: Vec<String> =
        budgets.errors().map(|(at, error)| format!("budget {at}: {error}")).collect();
    if !errors.is_empty() {
        let text = errors.join("; ");
        return patch.set(condition::DISRUPTION_BUDGETS_VALID, "False", "InvalidBudget", &text);
    }
    let down = cluster.count_of_own().down;
    let mut text = String::new();
    for reason in cluster.pool().reasons() {
        let separator = if text.is_empty() { "" } else { "; " };
        let allowed = disruptions.allowed(reason);
        let _ = write!(text, "{separator}{}: {allowed} more", reason.word());
        match budgets.smallest(reason) {
            Some(Applicable { index, ceiling, .. }) => {
                _ = write!(text, " ({down} of {ceiling} by budget {index} in use)");
            }
            None => text.push_str(" (no budget applies)"),
        }
    }
    patch.set(
        condition::DISRUPTION_BUDGETS_VALID,
        "True",
        condition::DISRUPTION_BUDGETS_VALID,
        &text,
    );
}

/// Ready: these conditions together.
pub(crate) fn root(patch: &mut ObjectPatch<'_>, parts: &[&str]) {
    let read = |kind: &&str| {
        let status =
            patch.current(kind).and_then(|entry| entry.get("status")).and_then(Value::as_str);
        (kind.to_string(), status.unwrap_or("Unknown").to_owned())
    };
    let parts: Vec<(String, String)> = parts.iter().map(read).collect();
    let is = |word: &str| parts.iter().filter(|(_, status)| status == word).count();
    let text = |but: &str| {
        let list = parts.iter().filter(|(_, status)| status != but);
        list.map(|(kind, status)| format!("{kind}={status}")).collect::<Vec<_>>().join(", ")
    };
    if is("True") == parts.len() {
        patch.set(condition::READY, "True", condition::READY, "");
    } else if is("False") > 0 {
        patch.set(condition::READY, "False", "UnhealthyDependents", &text("True"));
    } else {
        patch.set(condition::READY, "Unknown", "ReconcilingDependents", &text("True"));
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::karpenter;
    use serde_json::json;

    use super::*;
    use crate::dialect::karpenter::read::claim::ClaimFacts;
    use crate::dialect::karpenter::read::node::Node;

    #[test]
    fn a_node_counts_from_its_launch_until_it_leaves() {
        let capacity = |amounts: Value| json!({"capacity": amounts, "providerID": "kwok://n"});
        let claim = || {
            let amounts = json!({"cpu": "4", "memory": "8Gi"});
            karpenter::claim("default", "n").status(capacity(amounts))
        };
        let node = |is_initialized: &str| {
            let label = "karpenter.sh/initialized";
            karpenter::node_of("default", "n").label(label, is_initialized).status(json!(
                {"capacity": {"cpu": "3"}}
            ))
        };
        let leaving = claim().with("/metadata/deletionTimestamp", json!(convoy_testkit::NOW));
        let launching = karpenter::claim("default", "n").status(json!({}));
        let cases = [
            ("without a Node", claim(), None, (4_000, 8 << 30, 1)),
            ("not initialized", claim(), Some(node("false")), (3_000, 8 << 30, 1)),
            ("initialized", claim(), Some(node("true")), (3_000, 0, 1)),
            ("leaving", leaving, Some(node("true")), (0, 0, 0)),
            ("without a machine", launching, None, (0, 0, 0)),
        ];
        for (case, claim, node, expected) in cases {
            let (claim, node) = (claim.build(), node.map(convoy_testkit::Builder::build));
            let facts = ClaimFacts::read(&claim);
            let node_facts = node.as_ref().map(NodeFacts::read);
            let node = node.as_ref().zip(node_facts.as_ref());
            let node = node.map(|(object, facts)| Node { object, facts });
            let member = Member {
                claim: &claim,
                node,
                shared: None,
                pool: Some(0),
                pool_name: None,
                facts: &facts,
            };
            let (sum, count) = super::capacity(std::iter::once(&member));
            assert_eq!((sum.cpu, sum.memory, count), expected, "{case}");
        }
    }

    #[test]
    fn amounts_are_written_with_the_suffix_that_loses_nothing() {
        assert_eq!([thousandths(4_000), thousandths(3_900)], ["4", "3900m"]);
        assert_eq!(
            [bytes(0), bytes(1 << 30), bytes(16_374 << 20), bytes(1_000)],
            ["0", "1Gi", "16374Mi", "1000"]
        );
    }
}
