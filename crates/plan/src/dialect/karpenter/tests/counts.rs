//! What steps add to upstream's counters, and the numbers about pools.

use convoy_testkit::karpenter;
use serde_json::json;

use super::{drifted, drifting, leaving, node, step, step_without_class};
use crate::Step;

/// The counters of a step, each with its labels and the object whose write it counts.
fn counted(step: &Step) -> Vec<String> {
    let line = |it: &crate::series::Increment| {
        let labels: Vec<String> =
            it.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let written = it.written.as_ref().map_or("", |key| &key.name);
        format!("{} {} of {written} by {}", it.metric.name, labels.join(","), it.by)
    };
    step.counts.iter().map(line).collect()
}

#[test]
fn a_disruption_is_counted_once_its_writes_are_applied() {
    let step = step([drifting(), drifted("n").build(), node("n").build()]);
    assert_eq!(
        counted(&step),
        [
            "karpenter_voluntary_disruption_decisions \
             decision=delete,reason=drifted,consolidation_type= of n by 1",
            "karpenter_voluntary_disruption_decisions_by_nodepool \
             nodepool=default,decision=delete,reason=drifted,consolidation_type= of n by 1",
            "karpenter_nodeclaims_disrupted reason=drifted,nodepool=default,\
             capacity_type=on-demand,consolidation_policy=,termination_mode=graceful of n by 1",
        ]
    );
}

#[test]
fn a_replacement_and_the_pods_that_need_it_are_counted() {
    let pod = karpenter::pod("p", "n", "3").build();
    let step = step([drifting(), drifted("n").build(), node("n").build(), pod]);
    let found = counted(&step);
    let decision = "decision=replace,reason=drifted";
    assert!(found.iter().any(|line| line.contains(decision)), "{found:#?}");
    let created = "karpenter_nodeclaims_created \
                   reason=drifted,nodepool=default,min_values_relaxed=false of default-";
    assert!(found.iter().any(|line| line.starts_with(created)), "{found:#?}");
    let deleted = "karpenter_nodeclaims_disrupted";
    assert!(!found.iter().any(|line| line.starts_with(deleted)), "it waits: {found:#?}");
}

#[test]
fn what_leaves_a_node_is_counted() {
    let pods = vec![karpenter::pod("p", "n", "100m").build()];
    let step = leaving(karpenter::claim("default", "n"), pods);
    assert_eq!(
        counted(&step),
        [
            "karpenter_pods_drained reason=Forceful Termination of p by 1",
            "karpenter_pods_eviction_requests code=200 of p by 1",
        ]
    );
    let empty = leaving(karpenter::claim("default", "n"), Vec::new());
    assert!(counted(&empty).is_empty(), "it counts as draining for a while");
}

#[test]
fn how_long_a_node_and_its_claim_took_to_leave_is_counted() {
    let past = json!("2025-12-31T23:58:20Z"); // 100 s before now
    let told = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": past});
    let claim = karpenter::claim("default", "n")
        .with("/metadata/deletionTimestamp", past.clone())
        .with("/status/conditions", json!([told("Drained"), told("InstanceTerminating")]));
    let node = node("n")
        .with("/metadata/creationTimestamp", json!("2025-12-31T00:00:00Z"))
        .with("/metadata/deletionTimestamp", past.clone());
    let first = step([drifting(), claim.clone().build(), node.build()]);
    assert_eq!(
        counted(&first),
        [
            "karpenter_nodes_terminated nodepool=default,zone=test-zone-a of n by 1",
            "karpenter_nodes_termination_duration_seconds nodepool=default of n by 100",
            "karpenter_nodes_lifetime_duration_seconds nodepool=default of n by 86400",
        ]
    );
    let then = step([drifting(), claim.build()]);
    assert_eq!(
        counted(&then),
        [
            "karpenter_nodeclaims_terminated \
             nodepool=default,capacity_type=on-demand,zone=test-zone-a of n by 1",
            "karpenter_nodeclaims_instance_termination_duration_seconds \
             nodepool=default of n by 100",
            "karpenter_nodeclaims_termination_duration_seconds nodepool=default of n by 100",
        ]
    );
}

#[test]
fn limits_usage_and_candidates_are_numbers_too() {
    let pool = super::unlimited().with("/spec/limits", json!({"cpu": "100500m"})).build();
    let step = step([pool, drifted("n").build(), node("n").build()]);
    let value = |metric: &str, label: (&'static str, &str)| {
        let label = (label.0, label.1.to_owned());
        let found =
            step.series.iter().find(|it| it.metric.name == metric && it.labels.contains(&label));
        found.map(|it| it.value)
    };
    assert_eq!(value("karpenter_nodepools_limit", ("resource_type", "cpu")), Some(100_500));
    assert_eq!(value("karpenter_nodepools_usage", ("resource_type", "nodes")), Some(1_000));
    let eligible = "karpenter_voluntary_disruption_eligible_nodes";
    assert_eq!(value(eligible, ("reason", "drifted")), Some(1));
    assert_eq!(value(eligible, ("reason", "empty")), Some(0));
}

#[test]
fn a_pool_without_its_node_class_is_held() {
    let step = step_without_class([super::unlimited().build()]);
    assert_eq!(step.verdict, crate::Verdict::Held);
    let told: Vec<String> = step.holds.iter().map(|hold| hold.reason.to_string()).collect();
    assert_eq!(told, ["KWOKNodeClass \"default\" not found"]);
    let not_ready = json!({"conditions": [{"type": "Ready", "status": "False",
        "reason": "NoImage", "message": "no image found"}]});
    let step = step_without_class([
        super::unlimited().build(),
        karpenter::node_class().status(not_ready).build(),
    ]);
    let told: Vec<String> = step.holds.iter().map(|hold| hold.reason.to_string()).collect();
    assert_eq!(told, ["waits for KWOKNodeClass default to be Ready: no image found"]);
}
