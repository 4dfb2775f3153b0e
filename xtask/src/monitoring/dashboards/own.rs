//! Panels that only one dialect has, mostly of the metrics that its upstream has too.

use super::quantiles;
use crate::monitoring::panel::{Panel, lines, stack};

pub(super) fn skyhook() -> Vec<Panel> {
    let of_compartments =
        |metric: &str| format!("max by (skyhook_name, compartment_name) ({metric})");
    let restarts = "sum by (skyhook_name, package_name) (skyhook_package_restarts_count)";
    let mut panels = vec![
        stack("Status", "short", &[("sum by (status) (skyhook_status)", "{{status}}")]),
        stack(
            "Nodes by status",
            "short",
            &[("sum by (status) (skyhook_node_status_count)", "{{status}}")],
        ),
        lines(
            "Complete nodes of a compartment",
            "percent",
            &[(
                &of_compartments("skyhook_rollout_progress_percent"),
                "{{skyhook_name}} {{compartment_name}}",
            )],
        ),
        lines(
            "Nodes in progress against ceiling",
            "short",
            &[
                (
                    &of_compartments("skyhook_rollout_in_progress"),
                    "{{skyhook_name}} {{compartment_name}} in progress",
                ),
                (
                    &of_compartments("skyhook_rollout_ceiling"),
                    "{{skyhook_name}} {{compartment_name}} ceiling",
                ),
            ],
        ),
        stack(
            "Packages by state",
            "short",
            &[("sum by (state) (skyhook_package_state_count)", "{{state}}")],
        ),
        lines("Restarts of packages", "short", &[(restarts, "{{skyhook_name}} {{package_name}}")]),
    ];
    panels.extend(batches());
    panels
}

fn batches() -> Vec<Panel> {
    let of_groups = |metric: &str| format!("max by (rollout, group) ({metric})");
    vec![
        lines(
            "Batches",
            "short",
            &[
                (&of_groups("convoy_batch_number"), "{{rollout}} {{group}} number"),
                (&of_groups("convoy_batch_size"), "{{rollout}} {{group}} size"),
            ],
        ),
        stack(
            "Members of batches by state",
            "short",
            &[("sum by (state) (convoy_batch_members)", "{{state}}")],
        ),
        lines(
            "Consecutive failed batches",
            "short",
            &[
                (&of_groups("convoy_batch_failures"), "{{rollout}} {{group}}"),
                (&of_groups("convoy_batch_stopped"), "{{rollout}} {{group}} stopped"),
            ],
        ),
    ]
}

pub(super) fn karpenter() -> Vec<Panel> {
    let down = "sum by (nodepool, reason) (karpenter_nodepools_nodes_consuming_budgets)";
    // Without those that have no limit.
    let allowed =
        "sum by (nodepool, reason) (karpenter_nodepools_allowed_disruptions < 2147483647)";
    let created = "sum by (nodepool, reason) (karpenter_nodeclaims_created_total)";
    let disrupted = "sum by (nodepool, reason) (karpenter_nodeclaims_disrupted_total)";
    let cpus = "sum by (nodepool) (karpenter_nodepools_usage{resource_type=\"cpu\"})";
    let drained = "sum by (reason) (karpenter_pods_drained_total)";
    vec![
        lines(
            "Disruptions against budgets",
            "short",
            &[(down, "{{nodepool}} {{reason}} down"), (allowed, "{{nodepool}} {{reason}} allowed")],
        ),
        lines(
            "NodeClaims created and deleted",
            "short",
            &[
                (created, "{{nodepool}} created {{reason}}"),
                (disrupted, "{{nodepool}} deleted {{reason}}"),
            ],
        )
        .about("Since the leader started."),
        lines("Processors of pools", "short", &[(cpus, "{{nodepool}}")]),
        lines("Pods evicted", "short", &[(drained, "{{reason}}")])
            .about("Since the leader started."),
        quantiles("End of a node", "karpenter_nodes_termination_duration_seconds_bucket")
            .about("From its deletion until it is gone: drained, and its machine given back."),
    ]
}

pub(super) fn fleet() -> Vec<Panel> {
    let placements = "count by (conditionType, status) \
                      (fleet_workload_placement_status_last_timestamp_seconds)";
    let unfinished = "time() - fleet_workload_placement_status_last_timestamp_seconds\
                      {conditionType!=\"Completed\"}";
    let runs = "count by (condition, status, failureType) \
                (fleet_workload_update_run_status_last_timestamp_seconds)";
    let evictions = "count by (isCompleted, isValid) (fleet_workload_eviction_complete)";
    let works = "sum by (apply_status, availability_status) \
                 (rate(fleet_work_processing_requests_total[$__rate_interval]))";
    let manifests = "sum by (apply_status) \
                     (rate(fleet_manifest_processing_requests_total[$__rate_interval]))";
    vec![
        stack("Placements by status", "short", &[(placements, "{{conditionType}} {{status}}")])
            .about("The first condition that is not true, or Completed."),
        lines(
            "Time in an unfinished status",
            "s",
            &[(unfinished, "{{namespace}} {{name}} {{conditionType}}")],
        ),
        stack(
            "Update runs by status",
            "short",
            &[(runs, "{{condition}} {{status}} {{failureType}}")],
        ),
        quantiles(
            "Wait for approval",
            "fleet_workload_update_run_approval_request_latency_seconds_bucket",
        ),
        quantiles(
            "Update of a stage",
            "fleet_workload_update_run_stage_cluster_updating_duration_seconds_bucket",
        ),
        stack("Evictions", "short", &[(evictions, "completed {{isCompleted}} valid {{isValid}}")]),
        stack(
            "Works of member agents",
            "ops",
            &[(works, "{{apply_status}} {{availability_status}}")],
        ),
        stack("Manifests of member agents", "ops", &[(manifests, "{{apply_status}}")]),
    ]
}
