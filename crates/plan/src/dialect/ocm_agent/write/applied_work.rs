//! Writes to an `AppliedManifestWork`, and to the objects that leave it.

use convoy_api::Object;
use convoy_api::object::member::field;
use serde_json::{Map, Value, json};

use crate::dialect::ocm_agent::decide::applied_work::AppliedPhase;
use crate::dialect::ocm_agent::decide::manifest::{ApplyResult, Processed};
use crate::dialect::ocm_agent::decide::removal::{Fate, Removal};
use crate::dialect::ocm_agent::decide::work::Application;
use crate::dialect::ocm_agent::names::{APPLIED_MANIFESTS, APPLIED_WORK_FINALIZER};
use crate::dialect::ocm_agent::read::owner::references;
use crate::dialect::ocm_agent::read::record::Record;
use crate::finalizer;
use crate::merge_patch::{self, nested};
use crate::step::{Action, Propagation, Verb, Why};

/// Its finalizer, its spec, and the labels of its work; none if it reads so already.
pub(super) fn synced(applied_work: &Object, labels: &Value, spec: Value) -> Option<Action> {
    let mut patch = Map::new();
    let mut metadata = Map::new();
    if let Some(finalizers) = finalizer::with(applied_work, &[APPLIED_WORK_FINALIZER]) {
        metadata.insert("finalizers".into(), finalizers);
    }
    let present = field(applied_work.metadata(), "labels");
    let as_map = |labels: &Value| labels.as_object().cloned().unwrap_or_default();
    let (present, wanted) = (json!(as_map(present)), json!(as_map(labels)));
    metadata.extend(merge_patch::between(&present, &wanted).map(|it| ("labels".to_owned(), it)));
    if !metadata.is_empty() {
        patch.insert("metadata".into(), Value::Object(metadata));
    }
    if *applied_work.spec() != spec {
        patch.insert("spec".into(), spec);
    }
    let why = Why::new("WorkFound", "its labels and its spec are those of the work");
    (!patch.is_empty())
        .then(|| Action::patch(Verb::Record, applied_work, Value::Object(patch), why))
}

/// Which manifests are applied once the writes so far are made.
pub(super) struct Recorded {
    before: Record,
    after: Record,
}

/// Those of `processed` that are applied, or will be by writes that are not expected to fail.
pub(super) fn recorded(application: &Application<'_>, processed: &[&Processed<'_>]) -> Recorded {
    let mut recorded = Recorded { before: application.record.clone(), after: Record::default() };
    for processed in processed {
        recorded.add(processed);
    }
    recorded
}

impl Recorded {
    pub(super) fn add(&mut self, processed: &Processed<'_>) {
        let is_left = matches!(processed.result, ApplyResult::Failed { .. } | ApplyResult::Frozen);
        if let Some((hash, left)) = processed.entry.clone().filter(|_| !is_left) {
            self.after.set(hash, left);
        }
    }

    /// The write that makes it known; none if it is known already.
    pub(super) fn action(&mut self, applied_work: &Object) -> Option<Action> {
        if self.before == self.after {
            return None;
        }
        self.before = self.after.clone();
        let text = json!(self.after.text());
        let patch = nested(&["metadata", "annotations", APPLIED_MANIFESTS], text);
        let why = Why::new("ManifestsRecorded", "the manifests that were applied in full");
        Some(Action::patch(Verb::Record, applied_work, patch, why))
    }
}

/// The write by which an object leaves; none if there is nothing to write.
pub(super) fn removed(
    removal: &Removal<'_>,
    applied_work: &Object,
    because: &str,
) -> Option<Action> {
    let shown = |live: &Object| format!("{} {} {because}", live.kind().kind, live.name());
    match removal.fate {
        Fate::Deleted(live) => {
            let why = Why::new("ManifestRemoved", shown(live));
            Some(Action::delete(Verb::Delete, live, Propagation::Background, why))
        }
        Fate::Released(live) => {
            let others = references(live, applied_work, false);
            let patch = nested(&["metadata", "ownerReferences"], Value::Array(others));
            let why = Why::new("ManifestRemoved", format!("{}; another has it", shown(live)));
            Some(Action::patch(Verb::Release, live, patch, why))
        }
        Fate::Forgotten | Fate::Awaited => None,
    }
}

/// What an `AppliedManifestWork` itself asks for.
pub(crate) fn actions(applied_work: &Object, phase: &AppliedPhase<'_>) -> Vec<Action> {
    match phase {
        AppliedPhase::Managed | AppliedPhase::Unmanaged { .. } | AppliedPhase::Released => {
            Vec::new()
        }
        AppliedPhase::Evicted => {
            let why = Why::new("WorkMissing", "its work has been missing for the grace period");
            vec![Action::delete(Verb::Delete, applied_work, Propagation::Background, why)]
        }
        AppliedPhase::Removing(removals) => removals
            .iter()
            .filter_map(|it| removed(it, applied_work, "goes with its work"))
            .collect(),
        AppliedPhase::Removed => {
            let why = Why::new("WorkDeleted", "its objects are gone");
            finalizer::removed(applied_work, &[APPLIED_WORK_FINALIZER], why).into_iter().collect()
        }
    }
}
