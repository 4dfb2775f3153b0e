//! The manifests of a binding that failed, drifted or differ, as its status lists them.

use convoy_api::Object;
use serde_json::{Map, Value, json};

use crate::condition::Condition;
use crate::dialect::fleet::names::{
    APPLIED, AVAILABLE, DIFF_REPORTED, ENVELOPE_NAME, ENVELOPE_NAMESPACE, ENVELOPE_WORK,
};
use crate::dialect::fleet::read::placement::{field, list, text};

/// No list is longer, whatever the fleet carries.
const MOST: usize = 100;

/// What a binding's status says beyond its conditions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Exceptions {
    /// `failedPlacements`.
    pub(crate) failed: Vec<Value>,
    /// `driftedPlacements`.
    pub(crate) drifted: Vec<Value>,
    /// `diffedPlacements`.
    pub(crate) diffed: Vec<Value>,
}

impl Exceptions {
    /// Copied from the Works, in their order, each list cut. `told` are the binding's conditions:
    /// while Works have yet to report, what they said about something else is left out.
    pub(crate) fn of(works: &[&Object], told: &[Condition<'_>]) -> Self {
        let told = |kind: &str| told.iter().find(|condition| condition.kind == kind);
        let is = |kind: &str, status: &str| told(kind).is_some_and(|it| it.status == status);
        let in_progress = told(APPLIED).is_some_and(|it| it.reason == "ApplyInProgress");
        let mut found = Self::default();
        if told(APPLIED).is_none() && !is(DIFF_REPORTED, "True") || in_progress {
            return found;
        }
        for work in works {
            for manifest in list(work.status(), "manifestConditions") {
                found.note(work, manifest);
            }
        }
        // Nothing fails or differs where everything is applied and available, whatever is left
        // from before; in report mode nothing is applied that could fail or drift.
        if is(DIFF_REPORTED, "True") {
            (found.failed, found.drifted) = (Vec::new(), Vec::new());
        } else if is(APPLIED, "True") {
            found.diffed.clear();
            if !is(AVAILABLE, "False") {
                found.failed.clear();
            }
        }
        for entries in [&mut found.failed, &mut found.drifted, &mut found.diffed] {
            entries.truncate(MOST);
        }
        found
    }

    fn note(&mut self, work: &Object, manifest: &Value) {
        let conditions = list(manifest, "conditions");
        let failed = [APPLIED, AVAILABLE].into_iter().find_map(|kind| {
            let of_kind = |entry: &&Value| text(entry, "type") == kind;
            conditions.iter().find(of_kind).filter(|entry| text(entry, "status") == "False")
        });
        if let Some(condition) = failed {
            let mut entry = identifier(work, manifest);
            entry.insert("condition".into(), condition.clone());
            self.failed.push(Value::Object(entry));
        }
        let details = [
            ("driftDetails", "firstDriftedObservedTime", "observedDrifts", &mut self.drifted),
            ("diffDetails", "firstDiffedObservedTime", "observedDiffs", &mut self.diffed),
        ];
        for (name, first_seen, observed, entries) in details {
            let details = field(manifest, name);
            if !details.is_object() {
                continue;
            }
            let mut entry = identifier(work, manifest);
            let generation = field(details, "observedInMemberClusterGeneration");
            let mut copy = |name: &str, value: &Value| {
                if !value.is_null() {
                    entry.insert(name.to_owned(), value.clone());
                }
            };
            copy("observationTime", field(details, "observationTime"));
            copy("targetClusterObservedGeneration", generation);
            copy(first_seen, field(details, first_seen));
            copy(observed, field(details, observed));
            entries.push(Value::Object(entry));
        }
    }
}

/// Which object is meant, and the envelope it came in.
fn identifier(work: &Object, manifest: &Value) -> Map<String, Value> {
    let identifier = field(manifest, "identifier");
    let mut entry = Map::new();
    for name in ["group", "version", "kind", "name", "namespace"] {
        let word = text(identifier, name);
        // The schema asks for a name, which an object with generateName does not have.
        if !word.is_empty() || name == "name" {
            entry.insert(name.to_owned(), json!(word));
        }
    }
    if let Some(kind) = work.label(ENVELOPE_WORK) {
        let mut envelope = json!({"name": work.label(ENVELOPE_NAME).unwrap_or_default()});
        if let Some(namespace) = work.label(ENVELOPE_NAMESPACE).filter(|it| !it.is_empty()) {
            envelope["namespace"] = json!(namespace);
        }
        envelope["type"] = json!(kind);
        entry.insert("envelope".into(), envelope);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_copied_and_cut() {
        let manifest = json!({
            "identifier": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment",
                "resource": "deployments", "namespace": "shop", "name": "front"},
            "conditions": [{"type": "Applied", "status": "True"},
                {"type": "Available", "status": "False", "reason": "ManifestNotAvailableYet"}],
            "driftDetails": {"observationTime": "t", "observedInMemberClusterGeneration": 4,
                "firstDriftedObservedTime": "s", "observedDrifts": [{"path": "/spec"}]}});
        let manifests: Vec<Value> = std::iter::repeat_n(manifest, 150).collect();
        let work =
            Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "Work", "metadata": {"name": "web-work", "namespace": "fleet-member-c1"},
            "status": {"manifestConditions": manifests}}))
            .unwrap();
        let told = [
            Condition::new(APPLIED, "True", "AllWorkHaveBeenApplied", ""),
            Condition::new(AVAILABLE, "False", "NotAllWorkAreAvailable", ""),
        ];
        let found = Exceptions::of(&[&work], &told);
        assert_eq!((found.failed.len(), found.drifted.len(), found.diffed.len()), (100, 100, 0));
        assert_eq!(found.failed[0]["condition"]["type"], "Available");
        assert_eq!(found.failed[0].get("resource"), None);
        assert_eq!(found.drifted[0]["targetClusterObservedGeneration"], 4);
    }

    #[test]
    fn an_object_without_a_name_has_an_empty_one() {
        let work =
            Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "Work", "metadata": {"name": "web-work"}, "status": {"manifestConditions": [
                {"identifier": {"ordinal": 0, "version": "v1", "kind": "ConfigMap"}, "conditions":
                    [{"type": "Applied", "status": "False", "reason": "FoundGenerateName"}]}]}}))
            .unwrap();
        let told = [Condition::new(APPLIED, "False", "NotAllWorkHaveBeenApplied", "")];
        let found = Exceptions::of(&[&work], &told);
        assert_eq!(found.failed[0]["name"], "");
        assert_eq!(found.failed[0].get("group"), None);
    }
}
