//! Writes of a replica set: works that get the template, works that go, and its finalizer.

use convoy_api::object::member::field;
use convoy_api::ocm::names::{HANDED_OUT_AT, MANIFEST_WORK, REPLICA_SET_FINALIZER};
use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition::instant;
use crate::dialect::ocm::decide::replica_set::{
    Decision, PlacementRollout, Reference, Removals, Rolling, Start,
};
use crate::dialect::ocm::read::digest;
use crate::dialect::ocm::read::work::placement_of;
use crate::finalizer;
use crate::merge_patch;
use crate::step::{Action, Propagation, Verb, Why};

/// The writes that carry out a decision about a replica set.
pub(crate) fn actions(
    replica_set: &Object,
    decision: &Decision<'_>,
    now: Timestamp,
) -> Vec<Action> {
    match decision {
        Decision::NameTooLong => Vec::new(),
        Decision::Deleting { removals, release, .. } => {
            let message = format!("ManifestWorkReplicaSet {} is being deleted", replica_set.name());
            let mut actions = deletes(removals, "ReplicaSetDeleted", |_| message.clone());
            if *release {
                let message = "all ManifestWorks are deleted or being deleted";
                let why = Why::new("WorksDeleted", message);
                actions.extend(finalizer::removed(replica_set, &[REPLICA_SET_FINALIZER], why));
            }
            actions
        }
        Decision::Rolling(rolling) => Writer { replica_set, rolling, now }.actions(),
    }
}

fn deletes(
    removals: &Removals<'_>,
    reason: &'static str,
    message: impl Fn(&Object) -> String,
) -> Vec<Action> {
    let delete = |(work, permit): &(&Object, _)| {
        let why = Why::new(reason, message(work));
        Action::delete(Verb::Remove(*permit), work, Propagation::Background, why)
    };
    removals.now.iter().map(delete).collect()
}

struct Writer<'a, 'w> {
    replica_set: &'a Object,
    rolling: &'a Rolling<'w>,
    now: Timestamp,
}

impl Writer<'_, '_> {
    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        if !self.rolling.is_protected {
            let message = "the finalizer keeps the object until its ManifestWorks are deleted";
            let why = Why::new("FinalizerMissing", message);
            actions.extend(finalizer::added(self.replica_set, &[REPLICA_SET_FINALIZER], why));
        }
        let message = |work: &Object| {
            let (name, placement) = (self.replica_set.name(), placement_of(work));
            format!("ManifestWorkReplicaSet {name} does not refer to placement {placement:?}")
        };
        actions.extend(deletes(&self.rolling.unreferenced, "PlacementNotReferenced", message));
        for reference in &self.rolling.references {
            if let Reference::Rollout(rollout) = reference {
                self.roll_out(rollout, &mut actions);
            }
        }
        actions
    }

    fn roll_out(&self, rollout: &PlacementRollout<'_>, actions: &mut Vec<Action>) {
        let placement = &rollout.placement;
        actions.extend(rollout.starts.iter().map(|start| self.apply_template(rollout, start)));
        actions.extend(rollout.mislabelled.iter().map(|work| self.relabel(rollout, work)));
        actions.extend(deletes(&rollout.removals, "NotSelected", |work| {
            format!("placement {placement} no longer selects cluster {}", work.namespace())
        }));
        actions.extend(deletes(&rollout.surplus, "Surplus", |work| {
            let cluster = work.namespace();
            format!("cluster {cluster} has another ManifestWork for placement {placement}")
        }));
    }

    /// Gives the template to a cluster: a new work, or the former one brought up to date.
    fn apply_template(&self, rollout: &PlacementRollout<'_>, start: &Start<'_>) -> Action {
        let Start { cluster, work, permit } = start;
        let (set, placement) = (self.replica_set.name(), &rollout.placement);
        let why = |what: &str| {
            let message =
                format!("{what} of ManifestWorkReplicaSet {set} for placement {placement}");
            Why::new("TemplateHandedOut", message)
        };
        let template = self.rolling.template.spec;
        let Some(work) = work else {
            let target = self.target(cluster, placement);
            let object = self.new_work(rollout, &target);
            return Action::create(Verb::Start(*permit), target, object, why("first ManifestWork"));
        };
        let mut patch = metadata_patch(rollout, work);
        patch["metadata"]["annotations"] = json!({HANDED_OUT_AT: instant(self.now)});
        if let Some(spec) = merge_patch::between(work.spec(), template) {
            patch["spec"] = spec;
        }
        Action::patch(Verb::Update(*permit), work, patch, why("new template"))
    }

    /// Brings the labels of a work that waits for its agent up to date.
    fn relabel(&self, rollout: &PlacementRollout<'_>, work: &Object) -> Action {
        let name = self.replica_set.name();
        let message = format!("copy the labels of ManifestWorkReplicaSet {name}");
        Action::patch(
            Verb::Record,
            work,
            metadata_patch(rollout, work),
            Why::new("Labels", message),
        )
    }

    /// The name is computed, so that a repeated create is recognised as the same one.
    fn target(&self, cluster: &str, placement: &str) -> ObjectKey {
        let (namespace, name) = (self.replica_set.namespace(), self.replica_set.name());
        let suffix = digest(&[namespace, name, placement, cluster]);
        let name = format!("{name}{}", &suffix[..10]);
        self.replica_set.key().sibling(&MANIFEST_WORK, cluster, &name)
    }

    fn new_work(&self, rollout: &PlacementRollout<'_>, target: &ObjectKey) -> Value {
        json!({
            "apiVersion": format!("{}/v1", MANIFEST_WORK.group),
            "kind": MANIFEST_WORK.kind,
            "metadata": {
                "name": target.name,
                "generateName": self.replica_set.name(),
                "namespace": target.namespace,
                "labels": rollout.labels,
                "annotations": {HANDED_OUT_AT: instant(self.now)},
            },
            "spec": self.rolling.template.spec,
        })
    }
}

fn metadata_patch(rollout: &PlacementRollout<'_>, work: &Object) -> Value {
    let found = field(work.metadata(), "labels");
    let patch = merge_patch::between(found, &rollout.labels).unwrap_or_else(|| json!({}));
    json!({"metadata": {"labels": patch}})
}
