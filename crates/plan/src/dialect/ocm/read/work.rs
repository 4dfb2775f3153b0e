//! The works of a replica set, and whether one of them holds a template.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::object::member::{member, same};
use convoy_api::ocm::names::{MANIFEST_WORK, PLACEMENT_NAME_LABEL, REPLICA_SET_LABEL};
use serde_json::Value;

use super::replica_set::{Template, owner_value};
use crate::snapshot::Snapshot;

/// The works of one replica set, by placement and cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Works<'w> {
    pub(crate) all: Vec<&'w Object>,
    by_cluster: BTreeMap<(&'w str, &'w str), Vec<&'w Object>>,
}

/// The work of one cluster for one placement.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterWork<'w> {
    /// The one that counts.
    pub(crate) work: Option<&'w Object>,
    /// Whether it holds the current template.
    pub(crate) is_current: bool,
    /// More than one is one too many.
    pub(crate) surplus: Vec<&'w Object>,
}

impl<'w> Works<'w> {
    pub(crate) fn read(snapshot: &Snapshot<'w>) -> Self {
        let owner = owner_value(snapshot.rollout());
        let mut works = Self::default();
        for work in snapshot.of(&MANIFEST_WORK) {
            if work.label(REPLICA_SET_LABEL) == Some(&owner) {
                works.all.push(work);
                works
                    .by_cluster
                    .entry((placement_of(work), work.namespace()))
                    .or_default()
                    .push(work);
            }
        }
        works
    }

    /// The works made for one placement, by cluster.
    pub(crate) fn of_placement<'s>(
        &'s self,
        placement: &'s str,
    ) -> impl Iterator<Item = &'w Object> + 's {
        let from = self.by_cluster.range((placement, "")..);
        let own = from.take_while(move |((found, _), _)| *found == placement);
        own.flat_map(|(_, works)| works.iter().copied())
    }

    /// The work that counts for a cluster: one that stays before one that goes, one that holds
    /// the template before one that does not, then by name.
    pub(crate) fn of_cluster(
        &self,
        placement: &str,
        cluster: &str,
        template: &Template<'_>,
    ) -> ClusterWork<'w> {
        let works = self.by_cluster.get(&(placement, cluster)).into_iter().flatten().copied();
        let ranked = works.clone().map(|work| (work, template.is_held_by(work)));
        let best = ranked.min_by_key(|(work, is_current)| (work.is_deleting(), !is_current));
        let Some((work, is_current)) = best else { return ClusterWork::default() };
        let surplus = works.filter(|other| other.key() != work.key() && !other.is_deleting());
        ClusterWork { work: Some(work), is_current, surplus: surplus.collect() }
    }
}

/// The placement that a work was made for; empty where it does not say.
pub(crate) fn placement_of(work: &Object) -> &str {
    work.label(PLACEMENT_NAME_LABEL).unwrap_or_default()
}

/// Whether a work carries exactly these labels.
pub(crate) fn is_labelled(work: &Object, labels: &Value) -> bool {
    work.metadata().get("labels") == Some(labels)
}

/// Whether a work's spec says the same as `spec`.
pub(super) fn holds(work: &Object, spec: &Value) -> bool {
    same(work.spec(), spec) || same_spec(work.spec(), spec)
}

/// Whether two work specs say the same: manifests as JSON, without the creation timestamps
/// that Go writes as null.
fn same_spec(a: &Value, b: &Value) -> bool {
    same_fields(a, b, &|key, a, b| match key {
        "workload" => same_fields(a, b, &|key, a, b| match key {
            "manifests" => {
                let (a, b) = (entries(a), entries(b));
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_manifest(a, b))
            }
            _ => a == b,
        }),
        _ => a == b,
    })
}

fn same_manifest(a: &Value, b: &Value) -> bool {
    same(a, b)
        || same_fields(a, b, &|key, a, b| match key {
            "metadata" => same_metadata(a, b),
            "spec" => same_fields(a, b, &|key, a, b| match key {
                "template" => same_fields(a, b, &|key, a, b| match key {
                    "metadata" => same_metadata(a, b),
                    _ => a == b,
                }),
                _ => a == b,
            }),
            _ => a == b,
        })
}

fn same_metadata(a: &Value, b: &Value) -> bool {
    same_fields(a, b, &|key, a, b| key == "creationTimestamp" || a == b)
}

fn entries(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Whether all fields of two objects are `alike`; a null one and an absent one are.
fn same_fields(a: &Value, b: &Value, alike: &dyn Fn(&str, &Value, &Value) -> bool) -> bool {
    let is_map = |value: &Value| value.is_object() || value.is_null();
    if !is_map(a) || !is_map(b) {
        return a == b;
    }
    let null = Value::Null;
    let of = |from: &Value, to: &Value, only_new: bool| {
        let fields = from.as_object().into_iter().flatten();
        fields.filter(|(key, _)| !only_new || member(to, key).is_none()).all(|(key, value)| {
            let other = member(to, key).unwrap_or(&null);
            if only_new { alike(key, other, value) } else { alike(key, value, other) }
        })
    };
    of(a, b, false) && of(b, a, true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn specs_are_compared_without_creation_timestamps() {
        let spec = |metadata: Value| {
            json!({"workload": {"manifests": [{"kind": "Deployment", "metadata": metadata,
                "spec": {"replicas": 2, "template": {"metadata": {}}}}]}})
        };
        let plain = spec(json!({"name": "web"}));
        let mut stamped = spec(json!({"name": "web", "creationTimestamp": null}));
        stamped["workload"]["manifests"][0]["spec"]["template"]["metadata"] =
            json!({"creationTimestamp": null});
        stamped["deleteOption"] = Value::Null;
        assert!(same_spec(&plain, &stamped));
        assert!(!same_spec(&plain, &spec(json!({"name": "web", "labels": {"a": "b"}}))));
        let mut scaled = plain.clone();
        scaled["workload"]["manifests"][0]["spec"]["replicas"] = json!(3);
        assert!(!same_spec(&plain, &scaled));
        assert!(!same_spec(&plain, &json!({"workload": {"manifests": []}})));
        assert!(!same_spec(&plain, &json!(7)));
    }
}
