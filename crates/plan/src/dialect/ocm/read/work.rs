//! The works of a replica set: which hold the current template, and the writes that hand it
//! out or take it away.

use std::collections::BTreeMap;

use convoy_api::object::member::{member, same};
use convoy_api::ocm::names::{
    HANDED_OUT_AT, MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET, PLACEMENT_NAME_LABEL,
    REPLICA_SET_LABEL,
};
use convoy_api::{Object, schema};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::instant;
use crate::dialect::ocm::{digest, list};
use crate::gate::Permit;
use crate::merge_patch;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

/// What a replica set hands out.
#[derive(Clone, Debug)]
pub(crate) struct Template<'o> {
    replica_set: &'o Object,
    spec: &'o Value,
    /// The same with the defaults that an API server fills in.
    defaulted: Value,
}

/// The works of one replica set, by placement and cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Works<'w> {
    pub(crate) all: Vec<&'w Object>,
    by_pair: BTreeMap<(&'w str, &'w str), Vec<&'w Object>>,
}

/// The work of one cluster for one placement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pair<'w> {
    /// The one that counts.
    pub(crate) work: Option<&'w Object>,
    /// Whether it holds the current template.
    pub(crate) current: bool,
    /// More than one is one too many.
    pub(crate) surplus: Vec<&'w Object>,
}

/// `namespace.name`, as the works' label says it.
pub(crate) fn owner_value(replica_set: &Object) -> String {
    format!("{}.{}", replica_set.namespace(), replica_set.name())
}

impl<'w> Works<'w> {
    pub(crate) fn read(snapshot: &Snapshot<'w>) -> Self {
        let owner = owner_value(snapshot.rollout());
        let mut works = Self::default();
        for work in snapshot.of(&MANIFEST_WORK) {
            if work.label(REPLICA_SET_LABEL) == Some(&owner) {
                let placement = work.label(PLACEMENT_NAME_LABEL).unwrap_or_default();
                works.all.push(work);
                works.by_pair.entry((placement, work.namespace())).or_default().push(work);
            }
        }
        works
    }

    /// The works made for one placement, by cluster.
    pub(crate) fn of_placement<'s>(
        &'s self,
        placement: &'s str,
    ) -> impl Iterator<Item = &'w Object> + 's {
        let from = self.by_pair.range((placement, "")..);
        let own = from.take_while(move |((found, _), _)| *found == placement);
        own.flat_map(|(_, works)| works.iter().copied())
    }

    /// The work that counts for a cluster: one that stays before one that goes, one that holds
    /// the template before one that does not, then by name.
    pub(crate) fn pair(&self, placement: &str, cluster: &str, template: &Template<'_>) -> Pair<'w> {
        let Some(works) = self.by_pair.get(&(placement, cluster)) else { return Pair::default() };
        let rank = |work: &&&'w Object| (work.is_deleting(), !template.is_held_by(work));
        let Some(work) = works.iter().min_by_key(rank).copied() else { return Pair::default() };
        let surplus = works.iter().copied().filter(|other| other.key() != work.key());
        let surplus = surplus.filter(|other| !other.is_deleting()).collect();
        Pair { work: Some(work), current: template.is_held_by(work), surplus }
    }
}

impl<'o> Template<'o> {
    pub(crate) fn read(replica_set: &'o Object) -> Self {
        let spec = replica_set.spec().get("manifestWorkTemplate").unwrap_or(&Value::Null);
        let mut defaulted = Value::Null;
        if let Some(schema) = schema::of(&MANIFEST_WORK_REPLICA_SET, "v1alpha1") {
            let mut whole = json!({"spec": {"manifestWorkTemplate": spec}});
            schema.default(&mut whole);
            defaulted = whole["spec"]["manifestWorkTemplate"].take();
        }
        Self { replica_set, spec, defaulted }
    }

    pub(crate) fn is_held_by(&self, work: &Object) -> bool {
        same(work.spec(), self.spec)
            || same_spec(work.spec(), self.spec)
            || !self.defaulted.is_null() && same_spec(work.spec(), &self.defaulted)
    }

    /// Gives the template to a cluster: a new work, or the old one brought up to date.
    pub(crate) fn hand_out(
        &self,
        cluster: &str,
        placement: &str,
        work: Option<&Object>,
        now: Timestamp,
    ) -> Action {
        let set = self.replica_set.name();
        let why = |what: &str| {
            Why::new("TemplateHandedOut", format!("{what} of {set} for placement {placement}"))
        };
        let Some(work) = work else {
            let target = self.target(cluster, placement);
            let object = self.new_work(cluster, placement, &target.name, now);
            return Action::create(
                Verb::Start(Permit::unchecked()),
                target,
                object,
                why("the first work"),
            );
        };
        let mut wanted = self.metadata_patch(placement, work);
        wanted["metadata"]["annotations"] = json!({HANDED_OUT_AT: instant(now)});
        if let Some(spec) = merge_patch::between(work.spec(), self.spec) {
            wanted["spec"] = spec;
        }
        Action::patch(Verb::Update(Permit::unchecked()), work, wanted, why("the current template"))
    }

    /// Whether a work carries exactly the labels it should.
    pub(crate) fn is_labelled(&self, placement: &str, work: &Object) -> bool {
        let labels = Value::Object(self.labels(placement));
        work.metadata().get("labels").is_some_and(|found| *found == labels)
    }

    /// Brings the labels of a work that waits for its agent up to date.
    pub(crate) fn relabel(&self, placement: &str, work: &Object) -> Action {
        let why = Why::new("Labels", format!("the labels of {}", self.replica_set.name()));
        Action::patch(Verb::Record, work, self.metadata_patch(placement, work), why)
    }

    fn metadata_patch(&self, placement: &str, work: &Object) -> Value {
        let labels = Value::Object(self.labels(placement));
        let found = work.metadata().get("labels").unwrap_or(&Value::Null);
        let patch = merge_patch::between(found, &labels).unwrap_or_else(|| json!({}));
        json!({"metadata": {"labels": patch}})
    }

    fn labels(&self, placement: &str) -> Map<String, Value> {
        let own = self.replica_set.labels().map(|(key, value)| (key.to_owned(), json!(value)));
        let ours = [
            (REPLICA_SET_LABEL.to_owned(), json!(owner_value(self.replica_set))),
            (PLACEMENT_NAME_LABEL.to_owned(), json!(placement)),
        ];
        own.chain(ours).collect()
    }

    /// The name is computed, so that a repeated create is recognised as the same one.
    fn target(&self, cluster: &str, placement: &str) -> convoy_api::ObjectKey {
        let (namespace, name) = (self.replica_set.namespace(), self.replica_set.name());
        let suffix = digest(&[namespace, name, placement, cluster]);
        let name = format!("{name}{}", &suffix[..10]);
        self.replica_set.key().sibling(&MANIFEST_WORK, cluster, &name)
    }

    fn new_work(&self, cluster: &str, placement: &str, name: &str, now: Timestamp) -> Value {
        json!({
            "apiVersion": format!("{}/v1", MANIFEST_WORK.group),
            "kind": "ManifestWork",
            "metadata": {
                "name": name,
                "generateName": self.replica_set.name(),
                "namespace": cluster,
                "labels": self.labels(placement),
                "annotations": {HANDED_OUT_AT: instant(now)},
            },
            "spec": self.spec,
        })
    }
}

/// Takes a work away.
pub(crate) fn delete(work: &Object, reason: &'static str, message: String) -> Action {
    let why = Why::new(reason, message);
    Action::delete(Verb::Remove(Permit::unchecked()), work, Propagation::Background, why)
}

/// Whether two work specs say the same: manifests as JSON, without the creation timestamps
/// that Go writes as null.
fn same_spec(a: &Value, b: &Value) -> bool {
    same_fields(a, b, &|key, a, b| match key {
        "workload" => same_fields(a, b, &|key, a, b| match key {
            "manifests" => {
                let (a, b) = (list(Some(a)), list(Some(b)));
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
