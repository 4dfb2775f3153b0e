//! The dashboards: one over all dialects, and one for each of them.

mod own;

use super::panel::{Dashboard, Panel, Row, alarm, lines, number, stack};

const HOLDS: &str = "Members that do not move, and why. docs/reference/plan.md has the reasons.";
const CEILINGS: &str = "Groups with a ceiling, of rollouts that are not done.";
const STOPPED: &str = "Somebody has to act: too much failed, or it cannot go on.";
const TIME_TO_DONE: &str =
    "Of the last day, without rollouts that were under way when the process started.";

/// All dashboards.
pub(crate) fn all() -> Vec<Dashboard> {
    vec![
        overview(),
        of_dialect("apps", "Deployments", Vec::new()),
        of_dialect("skyhook", "Skyhooks", own::skyhook()),
        of_dialect("fleet", "KubeFleet placements", own::fleet()),
        of_dialect("karpenter", "NodePools", own::karpenter()),
        of_dialect("ocm", "Open Cluster Management", Vec::new()),
    ]
}

fn overview() -> Dashboard {
    let now = vec![
        number("Under way", "sum(convoy_rollouts{verdict!=\"Done\"})"),
        alarm("Stopped", "sum(convoy_rollouts{verdict=\"Stopped\"}) or vector(0)").about(STOPPED),
        alarm("Invalid", "sum(convoy_rollouts{verdict=\"Invalid\"}) or vector(0)")
            .about("Objects with fields that are refused."),
        number("Active processes", "sum(convoy_active)")
            .about("One for each release; the others wait for its Lease."),
    ];
    Dashboard {
        name: "overview",
        title: "Convoy".to_owned(),
        rows: vec![
            Row { title: "Now", panels: now },
            Row { title: "Rollouts", panels: of_all() },
            Row { title: "Control loop", panels: control_loop() },
        ],
    }
}

/// The rollouts of all dialects.
fn of_all() -> Vec<Panel> {
    let under_way = "sum by (dialect, verdict) (convoy_rollouts{verdict!=\"Done\"})";
    let finished = "sum by (dialect) (increase(convoy_rollout_seconds_count[1h]))";
    let stopped = "sum by (dialect, rollout) (convoy_batch_stopped)";
    let took = "histogram_quantile(0.5, \
                sum by (dialect, le) (rate(convoy_rollout_seconds_bucket[1d])))";
    let batches = "max by (dialect, rollout, group) (convoy_batch_number)";
    vec![
        stack("Rollouts by verdict", "short", &[(under_way, "{{dialect}} {{verdict}}")]),
        lines(
            "In flight against ceiling",
            "short",
            &[
                ("sum by (dialect) (convoy_in_flight)", "{{dialect}} in flight"),
                ("sum by (dialect) (convoy_ceiling)", "{{dialect}} ceiling"),
            ],
        )
        .about(CEILINGS),
        stack(
            "Holds by reason",
            "short",
            &[("sum by (dialect, reason) (convoy_holds) > 0", "{{dialect}} {{reason}}")],
        )
        .about(HOLDS),
        lines(
            "Failed members",
            "short",
            &[("sum by (dialect) (convoy_members{state=\"failed\"})", "{{dialect}}")],
        ),
        lines("Median time to done", "s", &[(took, "{{dialect}}")]).about(TIME_TO_DONE),
        lines("Rollouts finished in an hour", "short", &[(finished, "{{dialect}}")]),
        lines("Batches", "short", &[(batches, "{{dialect}} {{rollout}} {{group}}")])
            .about("The batch that each group is at."),
        lines("Groups stopped by failures", "short", &[(stopped, "{{dialect}} {{rollout}}")]),
    ]
}

/// Health of the process: does it keep up, and are its writes accepted?
fn control_loop() -> Vec<Panel> {
    let decisions = "sum by (dialect) (rate(convoy_passes_total[$__rate_interval]))";
    let writes = "sum by (verb, code) (rate(convoy_writes_total[$__rate_interval]))";
    let conflicts = "sum(rate(convoy_conflicts_total[$__rate_interval]))";
    let refused = "sum(rate(convoy_writes_total{code=~\"4..\",code!~\"404|409|429\"}\
                   [$__rate_interval])) or vector(0)";
    vec![
        lines("Work queue", "short", &[("sum(convoy_queue_depth)", "waiting")])
            .about("Falls to 0 between changes."),
        lines("Decisions", "ops", &[(decisions, "{{dialect}}")]),
        quantiles("Duration of a decision", "rate(convoy_plan_seconds_bucket[$__rate_interval])"),
        stack("Writes by response", "ops", &[(writes, "{{verb}} {{code}}")])
            .about("Code 0: no response. 409: the object had changed, and is planned again."),
        lines("Conflicts", "ops", &[(conflicts, "conflicts")]),
        lines("Writes refused", "ops", &[(refused, "refused")])
            .about("Permissions, admission policies and invalid objects."),
    ]
}

/// The dashboard of one dialect: what all have, and what is its own.
fn of_dialect(dialect: &'static str, title: &str, own: Vec<Panel>) -> Dashboard {
    let rollouts =
        |more: &str| format!("sum(convoy_rollouts{{dialect=\"{dialect}\"{more}}}) or vector(0)");
    let failed = format!("sum(convoy_members{{dialect=\"{dialect}\",state=\"failed\"}})");
    let now = vec![
        number("Rollouts", &rollouts("")),
        number("Under way", &rollouts(",verdict!=\"Done\"")),
        alarm("Stopped", &rollouts(",verdict=\"Stopped\"")).about(STOPPED),
        alarm("Failed members", &failed),
    ];
    let mut rows = vec![Row { title: "Now", panels: now }];
    if !own.is_empty() {
        rows.push(Row { title: "Progress", panels: own });
    }
    rows.push(Row { title: "Rollouts", panels: common(dialect) });
    Dashboard { name: dialect, title: format!("Convoy: {title}"), rows }
}

/// What the dashboards of all dialects have.
fn common(dialect: &str) -> Vec<Panel> {
    let of = |metric: &str| format!("{metric}{{dialect=\"{dialect}\"}}");
    let by = |label: &str, metric: &str| format!("sum by ({label}) ({})", of(metric));
    let in_flight = format!("sum({})", of("convoy_in_flight"));
    let ceiling = format!("sum({})", of("convoy_ceiling"));
    let holds = format!("{} > 0", by("reason", "convoy_holds"));
    let finished = format!("sum(increase({}[1h]))", of("convoy_rollout_seconds_count"));
    let decisions =
        format!("sum by (verdict) (rate({}[$__rate_interval]))", of("convoy_passes_total"));
    let took = format!("rate({}[1d])", of("convoy_rollout_seconds_bucket"));
    let planned = format!("rate({}[$__rate_interval])", of("convoy_plan_seconds_bucket"));
    vec![
        stack(
            "Rollouts by verdict",
            "short",
            &[(&by("verdict", "convoy_rollouts"), "{{verdict}}")],
        ),
        lines(
            "In flight against ceiling",
            "short",
            &[(&in_flight, "in flight"), (&ceiling, "ceiling")],
        )
        .about(CEILINGS),
        stack("Members by state", "short", &[(&by("state", "convoy_members"), "{{state}}")]),
        stack("Holds by reason", "short", &[(&holds, "{{reason}}")]).about(HOLDS),
        quantiles("Time to done", &took).about(TIME_TO_DONE),
        lines("Rollouts finished in an hour", "short", &[(&finished, "finished")]),
        lines("Decisions", "ops", &[(&decisions, "{{verdict}}")]),
        quantiles("Duration of a decision", &planned),
    ]
}

/// The median and the slow end of a histogram, from the rates or numbers of its buckets.
fn quantiles(title: &'static str, buckets: &str) -> Panel {
    let [median, slow] = ["0.5", "0.99"]
        .map(|share| format!("histogram_quantile({share}, sum by (le) ({buckets}))"));
    lines(title, "s", &[(&median, "median"), (&slow, "99%")])
}
