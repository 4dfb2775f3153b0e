//! Counters with upstream's names: how Works and manifests were processed, by the reasons of their
//! conditions.

use serde_json::Value;

use crate::dialect::fleet_agent::names::{APPLIED, AVAILABLE, DIFF_REPORTED};
use crate::dialect::fleet_agent::read::reported::ReportedStatus;
use crate::metric::{Increment, Metric};

// The text format adds `_total` to the names of counters.
const WORKS: Metric = Metric::new(
    "fleet_work_processing_requests",
    "Total number of processing requests of work objects, including retries and periodic checks",
);
const MANIFESTS: Metric = Metric::new(
    "fleet_manifest_processing_requests",
    "Total number of processing requests of manifest objects, including retries and periodic checks",
);

/// What is counted when the status of a Work was decided.
pub(crate) fn of_status(status: &Value) -> Vec<Increment> {
    let status = ReportedStatus(status);
    let mut counts = vec![Increment::new(&WORKS, &reasons(status))];
    for manifest in status.manifests() {
        let found = |has: bool| if has { "Found" } else { "NotFound" };
        let mut labels = reasons(manifest).to_vec();
        labels.push(("drift_detection_status", found(manifest.has_drifts())));
        labels.push(("diff_detection_status", found(manifest.has_diffs())));
        counts.push(Increment::new(&MANIFESTS, &labels));
    }
    counts
}

/// The reasons of a status' conditions; a condition that it has not was skipped.
fn reasons(of: ReportedStatus<'_>) -> [(&'static str, &str); 3] {
    let reason = |kind: &str| of.reason(kind).unwrap_or("Skipped");
    [
        ("apply_status", reason(APPLIED)),
        ("availability_status", reason(AVAILABLE)),
        ("diff_reporting_status", reason(DIFF_REPORTED)),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn works_and_manifests_are_counted_by_their_reasons() {
        let applied = json!([{"type": "Applied", "reason": "FoundDrifts"}]);
        let status = json!({
            "conditions": [{"type": "Applied", "reason": "SomeManifestsAreNotApplied"}],
            "manifestConditions": [{"conditions": applied, "driftDetails": {}}],
        });
        let told: Vec<String> = of_status(&status)
            .iter()
            .map(|count| {
                let labels: Vec<&str> = count.labels.iter().map(|(_, value)| &**value).collect();
                format!("{} {}", count.metric.name, labels.join(" "))
            })
            .collect();
        assert_eq!(
            told,
            [
                "fleet_work_processing_requests SomeManifestsAreNotApplied Skipped Skipped",
                "fleet_manifest_processing_requests FoundDrifts Skipped Skipped Found NotFound",
            ]
        );
    }
}
