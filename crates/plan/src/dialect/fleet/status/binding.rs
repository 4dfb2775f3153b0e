//! What a binding reports about its Works: the objects that carry its resources to the member.

pub(crate) mod exception;

use std::borrow::Cow;

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::Value;

use crate::condition::{self, Condition};
use crate::dialect::fleet::names::{
    APPLIED, AVAILABLE, DIFF_REPORTED, OVERRIDDEN, WORK_SYNCHRONIZED,
};
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::work::{WorkReport, report, reports_differences, worst};

use exception::Exceptions;

/// What became of bringing the Works in line with the binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Synced {
    /// An override does not fit; its author has to change it.
    OverrideFailed { detail: String },
    /// Some other part did not work out.
    Failed { detail: String },
    /// A Work was just written, so what Works report is about something else.
    Written,
    /// The Works are as they should be.
    Unchanged,
}

/// The types that are told here; `RolloutStarted` is the rollout's.
const KINDS: [&str; 5] = [OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE, DIFF_REPORTED];

/// The status of a binding after its Works were looked at. None: it reads so already.
pub(crate) fn status(
    binding: &Binding<'_>,
    synced: &Synced,
    works: &[&Object],
    now: Timestamp,
) -> Option<Value> {
    let wanted = conditions(binding, synced, works);
    let mut entries = binding.conditions().to_vec();
    for kind in KINDS.iter().filter(|kind| !wanted.iter().any(|it| it.kind == **kind)) {
        condition::remove(&mut entries, kind);
    }
    for condition in &wanted {
        condition::set(&mut entries, condition, now);
    }
    let before = binding.object.status();
    let mut status = before.as_object().cloned().unwrap_or_default();
    status.insert("conditions".into(), Value::Array(entries));
    let found = Exceptions::of(works, &wanted);
    let lists = [
        ("failedPlacements", found.failed),
        ("driftedPlacements", found.drifted),
        ("diffedPlacements", found.diffed),
    ];
    for (name, entries) in lists {
        if entries.is_empty() {
            status.shift_remove(name);
        } else {
            status.insert(name.to_owned(), Value::Array(entries));
        }
    }
    let status = Value::Object(status);
    (status != *before).then_some(status)
}

/// The conditions, in their order.
fn conditions<'s>(
    binding: &Binding<'_>,
    synced: &'s Synced,
    works: &[&Object],
) -> Vec<Condition<'s>> {
    let draft = Draft { generation: binding.generation() };
    let overridden = match synced {
        Synced::OverrideFailed { detail } => {
            return vec![draft.condition(OVERRIDDEN, "False", "OverriddenFailed", detail)];
        }
        _ if Applicable::of_binding(binding.object) == Applicable::default() => draft.condition(
            OVERRIDDEN,
            "True",
            "NoOverrideSpecified",
            "no override is for the cluster",
        ),
        _ => {
            draft.condition(OVERRIDDEN, "True", "OverriddenSucceeded", "the overrides are applied")
        }
    };
    if let Synced::Failed { detail } = synced {
        return vec![
            overridden,
            draft.condition(WORK_SYNCHRONIZED, "False", "SyncWorkFailed", detail),
        ];
    }
    let synchronized =
        draft.condition(WORK_SYNCHRONIZED, "True", "AllWorkSynced", "the Works are up to date");
    let mut conditions = vec![overridden, synchronized];
    if reports_differences(binding.object.spec()) {
        conditions.push(draft.diff_reported(synced, works));
        return conditions;
    }
    let applied = draft.applied(synced, works);
    let available = (applied.status == "True").then(|| draft.available(works));
    conditions.push(applied);
    conditions.extend(available);
    conditions
}

struct Draft {
    generation: i64,
}

impl Draft {
    fn applied(&self, synced: &Synced, works: &[&Object]) -> Condition<'static> {
        match (synced, worst(works, APPLIED)) {
            (Synced::Written, _) | (_, WorkReport::Nothing) => self.condition(
                APPLIED,
                "False",
                "ApplyInProgress",
                "the member has not reported yet",
            ),
            (_, WorkReport::No) => self.condition(
                APPLIED,
                "False",
                "NotAllWorkHaveBeenApplied",
                unready(works, APPLIED),
            ),
            (_, WorkReport::Yes | WorkReport::YesUntracked) => {
                self.condition(APPLIED, "True", "AllWorkHaveBeenApplied", "everything is applied")
            }
        }
    }

    fn available(&self, works: &[&Object]) -> Condition<'static> {
        match worst(works, AVAILABLE) {
            WorkReport::Nothing | WorkReport::No => self.condition(
                AVAILABLE,
                "False",
                "NotAllWorkAreAvailable",
                unready(works, AVAILABLE),
            ),
            WorkReport::YesUntracked => {
                let reason = "NotAllWorkAreAvailabilityTrackable";
                self.condition(AVAILABLE, "True", reason, "available as far as can be told")
            }
            WorkReport::Yes => {
                self.condition(AVAILABLE, "True", "AllWorkAreAvailable", "everything is available")
            }
        }
    }

    fn diff_reported(&self, synced: &Synced, works: &[&Object]) -> Condition<'static> {
        match (synced, worst(works, DIFF_REPORTED)) {
            (Synced::Written, _) | (_, WorkReport::Nothing) => self.condition(
                DIFF_REPORTED,
                "False",
                "DiffReportInProgress",
                "the member has not reported yet",
            ),
            (_, WorkReport::No) => {
                let message = unready(works, DIFF_REPORTED);
                self.condition(DIFF_REPORTED, "False", "NotAllWorkHaveDiffReported", message)
            }
            (_, WorkReport::Yes | WorkReport::YesUntracked) => self.condition(
                DIFF_REPORTED,
                "True",
                "AllWorkHaveDiffReported",
                "all differences are reported",
            ),
        }
    }

    fn condition<'t>(
        &self,
        kind: &'static str,
        status: &'static str,
        reason: &'static str,
        message: impl Into<Cow<'t, str>>,
    ) -> Condition<'t> {
        Condition::new(kind, status, reason, message).of_generation(self.generation)
    }
}

/// Which Work stands in the way.
fn unready(works: &[&Object], kind: &str) -> String {
    let bad = |work: &&&Object| matches!(report(work, kind), WorkReport::No | WorkReport::Nothing);
    let bad: Vec<&&Object> = works.iter().filter(bad).collect();
    let first = bad.first().map_or("", |work| work.name().as_str());
    format!("{} of {} Works are not ready, the first is {first}", bad.len(), works.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn work(name: &str, observed: i64, conditions: &[(&str, &str, &str)]) -> Object {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, status, reason)| {
                json!({"type": kind, "status": status, "reason": reason,
                    "observedGeneration": observed})
            })
            .collect();
        Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "Work", "metadata": {"name": name, "namespace": "fleet-member-c1",
                "generation": 2}, "status": {"conditions": conditions}}))
        .unwrap()
    }

    fn binding(kind: &str) -> Object {
        Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourceBinding", "metadata": {"name": "b", "generation": 3},
            "spec": {"state": "Bound", "applyStrategy": {"type": kind}}}))
        .unwrap()
    }

    fn reported(kind: &str, synced: &Synced, works: &[Object]) -> Vec<String> {
        let object = binding(kind);
        let works: Vec<&Object> = works.iter().collect();
        let found = conditions(&Binding::read(&object).unwrap(), synced, &works);
        found.iter().map(|it| format!("{}={}/{}", it.kind, it.status, it.reason)).collect()
    }

    const GOOD: [(&str, &str, &str); 2] = [
        ("Applied", "True", "AllManifestsApplied"),
        ("Available", "True", "AllManifestsAvailable"),
    ];

    #[test]
    fn a_binding_reports_the_worst_of_its_works() {
        let applied = [("Applied", "True", "AllManifestsApplied")];
        let untracked = [applied[0], ("Available", "True", "WorkNotTrackable")];
        let unavailable = [applied[0], ("Available", "False", "SomeManifestsAreNotAvailable")];
        let refused = [("Applied", "False", "SomeManifestsAreNotApplied")];
        let cases: [(&str, &[Object], &str); 6] = [
            ("all good", &[work("a", 2, &GOOD)], "Available=True/AllWorkAreAvailable"),
            (
                "untracked",
                &[work("a", 2, &GOOD), work("b", 2, &untracked)],
                "Available=True/NotAllWorkAreAvailabilityTrackable",
            ),
            (
                "one is not available",
                &[work("a", 2, &unavailable), work("b", 2, &untracked)],
                "Available=False/NotAllWorkAreAvailable",
            ),
            (
                "one is not applied, one is silent",
                &[work("a", 2, &refused), work("b", 1, &GOOD)],
                "Applied=False/NotAllWorkHaveBeenApplied",
            ),
            ("of an older generation", &[work("a", 1, &GOOD)], "Applied=False/ApplyInProgress"),
            ("nothing to carry", &[], "Available=True/AllWorkAreAvailable"),
        ];
        for (name, works, last) in cases {
            let found = reported("ClientSideApply", &Synced::Unchanged, works);
            assert_eq!(found.last().map(String::as_str), Some(last), "{name}");
            assert_eq!(found[0], "Overridden=True/NoOverrideSpecified", "{name}");
        }
    }

    #[test]
    fn what_comes_before_ends_the_list() {
        let works = [work("a", 2, &GOOD)];
        let detail = "no".to_owned();
        let failed = Synced::OverrideFailed { detail: detail.clone() };
        assert_eq!(reported("x", &failed, &works), ["Overridden=False/OverriddenFailed"]);
        let failed = Synced::Failed { detail };
        let last = reported("x", &failed, &works).pop();
        assert_eq!(last.as_deref(), Some("WorkSynchronized=False/SyncWorkFailed"));
        let last = reported("x", &Synced::Written, &works).pop();
        assert_eq!(last.as_deref(), Some("Applied=False/ApplyInProgress"));
        let last = reported("ReportDiff", &Synced::Written, &works).pop();
        assert_eq!(last.as_deref(), Some("DiffReported=False/DiffReportInProgress"));
    }
}
