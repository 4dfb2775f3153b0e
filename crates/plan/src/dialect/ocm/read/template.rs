//! What a replica set hands out, and whether a work holds it.

use convoy_api::object::member::{field, member, same};
use convoy_api::ocm::names::MANIFEST_WORK_REPLICA_SET;
use convoy_api::{Object, schema};
use serde_json::{Value, json};

/// What a replica set hands out. It is compared and copied as the JSON that it is: it may be
/// large, and a field that nobody here knows must reach the clusters.
#[derive(Clone, Debug)]
pub(crate) struct Template<'o> {
    pub(crate) spec: &'o Value,
    /// The same with the defaults that an API server fills in.
    defaulted: Value,
}

impl<'o> Template<'o> {
    pub(crate) fn read(replica_set: &'o Object) -> Self {
        let spec = field(replica_set.spec(), "manifestWorkTemplate");
        let mut defaulted = Value::Null;
        if let Some(schema) = schema::of(&MANIFEST_WORK_REPLICA_SET, "v1alpha1") {
            let mut whole = json!({"spec": {"manifestWorkTemplate": spec}});
            schema.default(&mut whole);
            defaulted = whole["spec"]["manifestWorkTemplate"].take();
        }
        Self { spec, defaulted }
    }

    pub(crate) fn is_held_by(&self, work: &Object) -> bool {
        holds(work, self.spec) || !self.defaulted.is_null() && holds(work, &self.defaulted)
    }
}

/// Whether a work's spec says the same as `spec`.
fn holds(work: &Object, spec: &Value) -> bool {
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
