//! Alerts for what a person must act on. Each has a section in the guide.

use std::fmt::Write as _;

use serde_json::to_string;

/// The guide, and where in it an alert is: Grafana and Alertmanager show it beside the alert.
pub(super) const RUNBOOK: &str = "docs/guides/monitoring.md#";

pub(super) struct Alert {
    pub(super) name: &'static str,
    pub(super) expr: &'static str,
    /// How long it has to be so.
    pub(super) lasting: &'static str,
    pub(super) severity: Severity,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
}

#[derive(Clone, Copy)]
pub(super) enum Severity {
    /// Rollouts do not go on at all.
    Critical,
    /// Somebody has to act during working hours.
    Warning,
}

pub(super) const ALL: &[Alert] = &[
    Alert {
        name: "ConvoyNotActive",
        expr: "max by (namespace, job) (convoy_active) == 0 or absent(convoy_active)",
        lasting: "2m",
        severity: Severity::Critical,
        summary: "No process of Convoy makes decisions",
        description: "No replica holds the Lease, or Prometheus reads none. No rollout goes on.",
    },
    Alert {
        name: "ConvoyRolloutStopped",
        expr: "sum by (dialect) (convoy_rollouts{verdict=\"Stopped\"}) > 0",
        lasting: "5m",
        severity: Severity::Warning,
        summary: "{{ $value }} rollouts of {{ $labels.dialect }} have stopped",
        description: "Too much failed, or nothing can start. `convoy get -A` lists them, and \
                      `convoy why NAME` names the cause.",
    },
    Alert {
        name: "ConvoyRolloutStalled",
        expr: "sum by (dialect) (convoy_holds{reason=\"Stalled\"}) > 0",
        lasting: "5m",
        severity: Severity::Warning,
        summary: "{{ $value }} members of {{ $labels.dialect }} rollouts have stalled",
        description: "No progress within the deadline of the rollout, and nothing that Convoy waits for.",
    },
    Alert {
        name: "ConvoyBudgetSpent",
        expr: "min_over_time((sum by (dialect) (convoy_holds{reason=~\"BudgetSpent|BatchRunning|PodDisruptionBudget\"}))[1h:1m]) > 0 \
               and sum by (dialect) (changes(convoy_members{state=\"done\"}[1h])) == 0",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "Budgets of {{ $labels.dialect }} rollouts are spent, and no member has finished for an hour",
        description: "Members in flight hold all slots and do not come to an end; {{ $value }} others wait.",
    },
    Alert {
        name: "ConvoyQueueBehind",
        expr: "min_over_time(convoy_queue_depth[15m]) > 10",
        lasting: "5m",
        severity: Severity::Warning,
        summary: "The work queue has not been empty for 15 minutes",
        description: "{{ $value }} rollouts wait for a decision; they react late to what happens.",
    },
    Alert {
        name: "ConvoyWritesRefused",
        expr: "sum by (verb, code) (increase(convoy_writes_total{code=~\"4..\",code!~\"404|409|429\"}[15m])) > 0",
        lasting: "10m",
        severity: Severity::Warning,
        summary: "The API server refuses writes: {{ $labels.verb }} gives {{ $labels.code }}",
        description: "A permission is missing, an admission policy refuses, or an object is invalid.",
    },
    Alert {
        name: "ConvoyWritesFailing",
        expr: "sum(rate(convoy_writes_total{code=~\"0|429|5..\"}[10m])) / sum(rate(convoy_writes_total[10m])) > 0.1",
        lasting: "10m",
        severity: Severity::Critical,
        summary: "{{ $value | humanizePercentage }} of the writes get no usable response",
        description: "The API server, or a webhook that it calls, fails or is overloaded. Writes are retried.",
    },
    Alert {
        name: "ConvoyObjectsInvalid",
        expr: "sum by (dialect) (convoy_rollouts{verdict=\"Invalid\"}) > 0 \
               or sum by (dialect) (convoy_holds{reason=\"HangsOnRefused\"}) > 0",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "{{ $value }} rollouts of {{ $labels.dialect }} are invalid, or depend on an invalid object",
        description: "Their objects have a condition and an event that name the field. Nothing of them moves.",
    },
    Alert {
        name: "ConvoyClusterNotObserved",
        expr: "sum by (dialect) (convoy_holds{reason=\"NotObserved\"}) > 0",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "{{ $value }} rollouts of {{ $labels.dialect }} wait for a cluster or a kind that cannot be read",
        description: "A member cluster does not answer, or the account may not list a kind.",
    },
    Alert {
        name: "ConvoyApprovalWaiting",
        expr: "sum by (dialect) (convoy_holds{reason=\"Approval\"}) > 0",
        lasting: "1d",
        severity: Severity::Warning,
        summary: "{{ $value }} approvals of {{ $labels.dialect }} rollouts have been waiting for a day",
        description: "A stage starts, or ends, when somebody approves it.",
    },
    Alert {
        name: "ConvoyPlanFailed",
        expr: "sum by (dialect) (convoy_holds{reason=\"PlanFailed\"}) > 0",
        lasting: "1m",
        severity: Severity::Critical,
        summary: "Planning {{ $value }} rollouts of {{ $labels.dialect }} fails",
        description: "A defect in Convoy. The other rollouts go on; these are tried again every minute.",
    },
];

/// The file of rules, as Prometheus reads it and as the spec of a `PrometheusRule`.
pub(super) fn rules() -> String {
    let mut text =
        "# Written by `cargo xtask deploy`.\ngroups:\n- name: convoy\n  rules:\n".to_owned();
    for alert in ALL {
        let Alert { name, expr, lasting, severity, summary, description } = alert;
        let severity = match severity {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
        };
        let runbook = format!("{RUNBOOK}{}", name.to_lowercase());
        // Text in the quotes of JSON is text in YAML.
        let quoted = |text: &str| to_string(text).expect("text");
        let (expr, summary, description) = (quoted(expr), quoted(summary), quoted(description));
        let _ = write!(
            text,
            "  - alert: {name}\n    expr: {expr}\n    for: {lasting}\n    labels:\n      \
             severity: {severity}\n    annotations:\n      summary: {summary}\n      \
             description: {description}\n      runbook: {runbook}\n"
        );
    }
    text
}
