//! The dashboards: one over all dialects, and one for each of them.

use super::panel::Shape::{Alarm, Lines, Number, Stack};
use super::panel::{Dashboard, Panel, Query, Row, query};

/// All dashboards.
pub(crate) fn all() -> Vec<Dashboard> {
    vec![
        overview(),
        of_dialect("apps", "Deployments", Vec::new()),
        of_dialect("skyhook", "Skyhooks", skyhook()),
        of_dialect("fleet", "KubeFleet placements", fleet()),
        of_dialect("karpenter", "NodePools", karpenter()),
        of_dialect("ocm", "Open Cluster Management", Vec::new()),
    ]
}

fn overview() -> Dashboard {
    let now = vec![
        count("Under way", "sum(convoy_rollouts{verdict!=\"Done\"})"),
        alarm("Stopped", "sum(convoy_rollouts{verdict=\"Stopped\"}) or vector(0)")
            .about("Somebody has to act: too much failed, or it cannot go on."),
        alarm("Invalid", "sum(convoy_rollouts{verdict=\"Invalid\"}) or vector(0)")
            .about("Objects with fields that are refused."),
        count("Active processes", "sum(convoy_active)")
            .about("One for each release; the others wait for its Lease."),
    ];
    let rollouts = vec![
        Panel::new(
            "Rollouts by verdict",
            Stack,
            "short",
            vec![query(
                "sum by (dialect, verdict) (convoy_rollouts{verdict!=\"Done\"})",
                "{{dialect}} {{verdict}}",
            )],
        ),
        Panel::new(
            "In flight against ceiling",
            Lines,
            "short",
            vec![
                query("sum by (dialect) (convoy_in_flight)", "{{dialect}} in flight"),
                query("sum by (dialect) (convoy_ceiling)", "{{dialect}} ceiling"),
            ],
        )
        .about("Groups with a ceiling, of rollouts that are not done."),
        Panel::new(
            "Holds by reason",
            Stack,
            "short",
            vec![query("sum by (dialect, reason) (convoy_holds) > 0", "{{dialect}} {{reason}}")],
        )
        .about("Members that do not move, and why. docs/reference/plan.md has the reasons."),
        Panel::new(
            "Failed members",
            Lines,
            "short",
            vec![query("sum by (dialect) (convoy_members{state=\"failed\"})", "{{dialect}}")],
        ),
        finished("sum by (dialect) (increase(convoy_rollout_seconds_count[1h]))", "{{dialect}}"),
        Panel::new(
            "Groups stopped by failures",
            Lines,
            "short",
            vec![query(
                "sum by (dialect, rollout) (convoy_batch_stopped)",
                "{{dialect}} {{rollout}}",
            )],
        ),
    ];
    Dashboard {
        name: "overview",
        title: "Convoy".to_owned(),
        rows: vec![
            Row { title: "Now", panels: now },
            Row { title: "Rollouts", panels: rollouts },
            Row { title: "Control loop", panels: control_loop() },
        ],
    }
}

/// Health of the process: does it keep up, and are its writes accepted?
fn control_loop() -> Vec<Panel> {
    vec![
        Panel::new("Work queue", Lines, "short", vec![query("sum(convoy_queue_depth)", "waiting")])
            .about("Falls to 0 between changes."),
        Panel::new(
            "Decisions",
            Lines,
            "ops",
            vec![query(
                "sum by (dialect) (rate(convoy_passes_total[$__rate_interval]))",
                "{{dialect}}",
            )],
        ),
        Panel::new(
            "Duration of a decision",
            Lines,
            "s",
            quantiles("convoy_plan_seconds_bucket[$__rate_interval]", ""),
        ),
        Panel::new(
            "Writes by response",
            Stack,
            "ops",
            vec![query(
                "sum by (verb, code) (rate(convoy_writes_total[$__rate_interval]))",
                "{{verb}} {{code}}",
            )],
        )
        .about("Code 0: no response. 409: the object had changed, and is planned again."),
        Panel::new(
            "Conflicts",
            Lines,
            "ops",
            vec![query("sum(rate(convoy_conflicts_total[$__rate_interval]))", "conflicts")],
        ),
        Panel::new(
            "Writes refused",
            Lines,
            "ops",
            vec![query(
                "sum(rate(convoy_writes_total{code=~\"4..\",code!~\"404|409|429\"}[$__rate_interval])) \
                 or vector(0)",
                "refused",
            )],
        )
        .about("Permissions, admission policies and invalid objects."),
    ]
}

/// The dashboard of one dialect: what all have, and what is its own.
fn of_dialect(dialect: &'static str, title: &str, own: Vec<Panel>) -> Dashboard {
    let of = |metric: &str, more: &str| format!("{metric}{{dialect=\"{dialect}\"{more}}}");
    let now = vec![
        count("Rollouts", &format!("sum({})", of("convoy_rollouts", ""))),
        count("Under way", &format!("sum({})", of("convoy_rollouts", ",verdict!=\"Done\""))),
        alarm(
            "Stopped",
            &format!("sum({}) or vector(0)", of("convoy_rollouts", ",verdict=\"Stopped\"")),
        )
        .about("Somebody has to act: too much failed, or it cannot go on."),
        alarm("Failed members", &format!("sum({})", of("convoy_members", ",state=\"failed\""))),
    ];
    let common = vec![
        by("Rollouts by verdict", &of("convoy_rollouts", ""), "verdict", "{{verdict}}"),
        Panel::new(
            "In flight against ceiling",
            Lines,
            "short",
            vec![
                query(format!("sum({})", of("convoy_in_flight", "")), "in flight"),
                query(format!("sum({})", of("convoy_ceiling", "")), "ceiling"),
            ],
        )
        .about("Groups with a ceiling, of rollouts that are not done."),
        by("Members by state", &of("convoy_members", ""), "state", "{{state}}"),
        Panel::new(
            "Holds by reason",
            Stack,
            "short",
            vec![query(format!("sum by (reason) ({}) > 0", of("convoy_holds", "")), "{{reason}}")],
        )
        .about("Members that do not move, and why. docs/reference/plan.md has the reasons."),
        Panel::new(
            "Time to done",
            Lines,
            "s",
            quantiles("convoy_rollout_seconds_bucket", &format!("{{dialect=\"{dialect}\"}}[1d]")),
        )
        .about("Of the last day, without rollouts that were under way when the process started."),
        finished(
            &format!("sum(increase({}[1h]))", of("convoy_rollout_seconds_count", "")),
            "finished",
        ),
        Panel::new(
            "Decisions",
            Lines,
            "ops",
            vec![query(
                format!(
                    "sum by (verdict) (rate({}[$__rate_interval]))",
                    of("convoy_passes_total", "")
                ),
                "{{verdict}}",
            )],
        ),
        Panel::new(
            "Duration of a decision",
            Lines,
            "s",
            quantiles(
                "convoy_plan_seconds_bucket",
                &format!("{{dialect=\"{dialect}\"}}[$__rate_interval]"),
            ),
        ),
    ];
    let mut rows =
        vec![Row { title: "Now", panels: now }, Row { title: "Rollouts", panels: common }];
    if !own.is_empty() {
        rows.insert(1, Row { title: "Progress", panels: own });
    }
    Dashboard { name: dialect, title: format!("Convoy: {title}"), rows }
}

fn skyhook() -> Vec<Panel> {
    const COMPARTMENT: &str = "{{skyhook_name}} {{compartment_name}}";
    vec![
        by("Status", "skyhook_status", "status", "{{status}}"),
        by("Nodes by status", "skyhook_node_status_count", "status", "{{status}}"),
        compartment(
            "Complete nodes of a compartment",
            "percent",
            "skyhook_rollout_progress_percent",
            COMPARTMENT,
        ),
        Panel::new(
            "Nodes in progress against ceiling",
            Lines,
            "short",
            vec![
                query(
                    "sum by (skyhook_name, compartment_name) (skyhook_rollout_in_progress)",
                    "{{skyhook_name}} {{compartment_name}} in progress",
                ),
                query(
                    "sum by (skyhook_name, compartment_name) (skyhook_rollout_ceiling)",
                    "{{skyhook_name}} {{compartment_name}} ceiling",
                ),
            ],
        ),
        Panel::new(
            "Batches",
            Lines,
            "short",
            vec![
                query(
                    "max by (rollout, group) (convoy_batch_number)",
                    "{{rollout}} {{group}} number",
                ),
                query("max by (rollout, group) (convoy_batch_size)", "{{rollout}} {{group}} size"),
            ],
        ),
        Panel::new(
            "Members of batches by state",
            Stack,
            "short",
            vec![query("sum by (state) (convoy_batch_members)", "{{state}}")],
        ),
        Panel::new(
            "Consecutive failed batches",
            Lines,
            "short",
            vec![
                query("max by (rollout, group) (convoy_batch_failures)", "{{rollout}} {{group}}"),
                query(
                    "max by (rollout, group) (convoy_batch_stopped)",
                    "{{rollout}} {{group}} stopped",
                ),
            ],
        ),
        by("Packages by state", "skyhook_package_state_count", "state", "{{state}}"),
        Panel::new(
            "Restarts of packages",
            Lines,
            "short",
            vec![query(
                "sum by (skyhook_name, package_name) (skyhook_package_restarts_count)",
                "{{skyhook_name}} {{package_name}}",
            )],
        ),
    ]
}

fn compartment(
    title: &'static str,
    unit: &'static str,
    metric: &str,
    legend: &'static str,
) -> Panel {
    let expr = format!("max by (skyhook_name, compartment_name) ({metric})");
    Panel::new(title, Lines, unit, vec![query(expr, legend)])
}

fn karpenter() -> Vec<Panel> {
    vec![Panel::new(
        "Disruptions against budgets",
        Lines,
        "short",
        vec![
            query(
                "sum by (nodepool, reason) (karpenter_nodepools_nodes_consuming_budgets)",
                "{{nodepool}} {{reason}} down",
            ),
            // Without those that have no limit.
            query(
                "sum by (nodepool, reason) (karpenter_nodepools_allowed_disruptions < 2147483647)",
                "{{nodepool}} {{reason}} allowed",
            ),
        ],
    )]
}

fn fleet() -> Vec<Panel> {
    vec![
        Panel::new(
            "Placements by status",
            Stack,
            "short",
            vec![query(
                "count by (conditionType, status) (fleet_workload_placement_status_last_timestamp_seconds)",
                "{{conditionType}} {{status}}",
            )],
        )
        .about("The first condition that is not true, or Completed."),
        Panel::new(
            "Time in an unfinished status",
            Lines,
            "s",
            vec![query(
                "time() - fleet_workload_placement_status_last_timestamp_seconds{conditionType!=\"Completed\"}",
                "{{namespace}} {{name}} {{conditionType}}",
            )],
        ),
        Panel::new(
            "Update runs by status",
            Stack,
            "short",
            vec![query(
                "count by (condition, status, failureType) \
                 (fleet_workload_update_run_status_last_timestamp_seconds)",
                "{{condition}} {{status}} {{failureType}}",
            )],
        ),
        Panel::new(
            "Wait for approval",
            Lines,
            "s",
            quantiles_of("fleet_workload_update_run_approval_request_latency_seconds_bucket"),
        ),
        Panel::new(
            "Update of a stage",
            Lines,
            "s",
            quantiles_of("fleet_workload_update_run_stage_cluster_updating_duration_seconds_bucket"),
        ),
        Panel::new(
            "Evictions",
            Stack,
            "short",
            vec![query(
                "count by (isCompleted, isValid) (fleet_workload_eviction_complete)",
                "completed {{isCompleted}} valid {{isValid}}",
            )],
        ),
        Panel::new(
            "Works of member agents",
            Stack,
            "ops",
            vec![query(
                "sum by (apply_status, availability_status) \
                 (rate(fleet_work_processing_requests_total[$__rate_interval]))",
                "{{apply_status}} {{availability_status}}",
            )],
        ),
        Panel::new(
            "Manifests of member agents",
            Stack,
            "ops",
            vec![query(
                "sum by (apply_status) \
                 (rate(fleet_manifest_processing_requests_total[$__rate_interval]))",
                "{{apply_status}}",
            )],
        ),
    ]
}

fn count(title: &'static str, expr: &str) -> Panel {
    Panel::new(title, Number, "short", vec![query(expr, "")])
}

fn alarm(title: &'static str, expr: &str) -> Panel {
    Panel::new(title, Alarm, "short", vec![query(expr, "")])
}

fn by(title: &'static str, selector: &str, label: &str, legend: &'static str) -> Panel {
    let expr = format!("sum by ({label}) ({selector})");
    Panel::new(title, Stack, "short", vec![query(expr, legend)])
}

fn finished(expr: &str, legend: &'static str) -> Panel {
    Panel::new("Rollouts finished in an hour", Lines, "short", vec![query(expr, legend)])
}

/// The median and the slow end of a histogram that grows.
fn quantiles(buckets: &str, selector: &str) -> Vec<Query> {
    let quantile = |share: &str| {
        format!("histogram_quantile({share}, sum by (le) (rate({buckets}{selector})))")
    };
    vec![query(quantile("0.5"), "median"), query(quantile("0.99"), "99%")]
}

/// The same of a histogram that counts what the status of objects records.
fn quantiles_of(buckets: &str) -> Vec<Query> {
    let quantile = |share: &str| format!("histogram_quantile({share}, sum by (le) ({buckets}))");
    vec![query(quantile("0.5"), "median"), query(quantile("0.99"), "99%")]
}
