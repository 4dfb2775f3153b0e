//! What a binding reports about its Works: the objects that carry its resources to the member.
//!
//! Making the Works themselves is a live system's part; it tells here what became of that
//! ([`Synced`]), and gets the binding's status back.

pub mod exception;

use std::borrow::Cow;

use convoy_api::Object;
use serde_json::Value;

use crate::condition::Condition;
use crate::dialect::fleet::names::{
    APPLIED, AVAILABLE, DIFF_REPORTED, OVERRIDDEN, WORK_SYNCHRONIZED,
};
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::placement::{field, text};

pub use exception::Exceptions;

/// What became of bringing the Works in line with the binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synced {
    /// An override does not fit; its author has to change it.
    OverrideFailed { detail: String },
    /// Some other part did not work out.
    Failed { detail: String },
    /// A Work was just written, so what Works report is about something else.
    Written,
    /// The Works are as they should be.
    Unchanged,
}

/// What one Work says about one matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// Nothing yet, for its current generation.
    Nothing,
    Yes,
    /// Yes, as far as can be told.
    YesUntracked,
    No,
}

/// Reasons of a Work that is available only because nothing more can be told.
const UNTRACKED: [&str; 2] = ["WorkNotTrackable", "SomeManifestsAreNotAvailabilityTrackable"];

/// The conditions of a binding after its Works were looked at, in their order. Those not in
/// here are taken away, but for `RolloutStarted`, which is the rollout's.
pub fn conditions<'s>(
    binding: &Binding<'_>,
    synced: &'s Synced,
    works: &[&Object],
) -> Vec<Condition<'s>> {
    let draft = Draft { generation: binding.object.generation() };
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
    let strategy = field(binding.object.spec(), "applyStrategy");
    if text(strategy, "type") == "ReportDiff" {
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
            (Synced::Written, _) | (_, Said::Nothing) => self.condition(
                APPLIED,
                "False",
                "ApplyInProgress",
                "the member has not reported yet",
            ),
            (_, Said::No) => self.condition(
                APPLIED,
                "False",
                "NotAllWorkHaveBeenApplied",
                unready(works, APPLIED),
            ),
            (_, Said::Yes | Said::YesUntracked) => {
                self.condition(APPLIED, "True", "AllWorkHaveBeenApplied", "everything is applied")
            }
        }
    }

    fn available(&self, works: &[&Object]) -> Condition<'static> {
        match worst(works, AVAILABLE) {
            Said::Nothing | Said::No => self.condition(
                AVAILABLE,
                "False",
                "NotAllWorkAreAvailable",
                unready(works, AVAILABLE),
            ),
            Said::YesUntracked => {
                let reason = "NotAllWorkAreAvailabilityTrackable";
                self.condition(AVAILABLE, "True", reason, "available as far as can be told")
            }
            Said::Yes => {
                self.condition(AVAILABLE, "True", "AllWorkAreAvailable", "everything is available")
            }
        }
    }

    fn diff_reported(&self, synced: &Synced, works: &[&Object]) -> Condition<'static> {
        match (synced, worst(works, DIFF_REPORTED)) {
            (Synced::Written, _) | (_, Said::Nothing) => self.condition(
                DIFF_REPORTED,
                "False",
                "DiffReportInProgress",
                "the member has not reported yet",
            ),
            (_, Said::No) => {
                let message = unready(works, DIFF_REPORTED);
                self.condition(DIFF_REPORTED, "False", "NotAllWorkHaveDiffReported", message)
            }
            (_, Said::Yes | Said::YesUntracked) => self.condition(
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
        Condition {
            kind: kind.into(),
            status,
            reason: reason.into(),
            message: message.into(),
            observed_generation: Some(self.generation),
        }
    }
}

/// A refusal outranks silence, and silence any good news. No Works at all is good news.
fn worst(works: &[&Object], kind: &str) -> Said {
    let said = works.iter().map(|work| said(work, kind));
    said.max_by_key(|said| match said {
        Said::Yes => 0,
        Said::YesUntracked => 1,
        Said::Nothing => 2,
        Said::No => 3,
    })
    .unwrap_or(Said::Yes)
}

fn said(work: &Object, kind: &str) -> Said {
    let Some(condition) = work.condition(kind) else { return Said::Nothing };
    let observed = condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
    match text(condition, "status") {
        _ if observed != work.generation() => Said::Nothing,
        "True" if UNTRACKED.contains(&text(condition, "reason")) => Said::YesUntracked,
        "True" => Said::Yes,
        "False" => Said::No,
        _ => Said::Nothing,
    }
}

/// Which Work stands in the way.
fn unready(works: &[&Object], kind: &str) -> String {
    let bad = works.iter().filter(|work| matches!(said(work, kind), Said::No | Said::Nothing));
    let first = bad.clone().next().map_or("", |work| work.name().as_str());
    format!("{} of {} Works are not ready, the first is {first}", bad.count(), works.len())
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
