//! Ownership: which objects a controller takes, keeps, lets go or leaves alone. The same
//! rules hold between a Deployment and ReplicaSets and between a ReplicaSet and pods.

use convoy_api::Object;
use serde_json::{Map, Value, json};

use crate::selector::Selector;
use crate::step::{Action, Verb, Why};

/// What a controller makes of an object of the kind it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Ours, and stays so.
    Keep,
    /// Nobody's, and matches: becomes ours.
    Adopt,
    /// Ours, and no longer matches: is let go.
    Release,
    /// None of our business.
    Ignore,
}

pub(crate) fn claim(owner: &Object, selector: &Selector, object: &Object) -> Claim {
    match object.controller() {
        Some(reference) if reference.uid != owner.uid().unwrap_or_default() => Claim::Ignore,
        Some(reference) if reference.uid.is_empty() && reference.name != owner.name() => {
            Claim::Ignore
        }
        Some(_) if selector.matches(object) => Claim::Keep,
        Some(_) if owner.is_deleting() => Claim::Ignore,
        Some(_) => Claim::Release,
        None if owner.is_deleting() || object.is_deleting() => Claim::Ignore,
        None if selector.matches(object) => Claim::Adopt,
        None => Claim::Ignore,
    }
}

/// The reference that says "`owner` controls me".
pub(crate) fn reference(owner: &Object) -> Value {
    json!({
        "apiVersion": owner.api_version(),
        "kind": owner.kind().kind,
        "name": owner.name(),
        "uid": owner.uid().unwrap_or_default(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// `ownerReferences` of `object` after adoption; other owners stay.
pub(crate) fn adopted(owner: &Object, object: &Object) -> Value {
    let mut references = others(owner, object);
    references.push(reference(owner));
    Value::Array(references)
}

/// `ownerReferences` of `object` after release; null takes an empty list away.
pub(crate) fn released(owner: &Object, object: &Object) -> Value {
    let references = others(owner, object);
    if references.is_empty() { Value::Null } else { Value::Array(references) }
}

fn others(owner: &Object, object: &Object) -> Vec<Value> {
    let references = object.metadata().get("ownerReferences").and_then(Value::as_array);
    let ours = |entry: &&Value| {
        entry.get("uid").and_then(Value::as_str) == Some(owner.uid().unwrap_or_default())
    };
    references.into_iter().flatten().filter(|entry| !ours(entry)).cloned().collect()
}

/// What is written to let objects go, and to take others over.
pub(crate) fn writes<'c>(
    owner: &'c Object,
    released: impl IntoIterator<Item = &'c Object>,
    adopted: impl IntoIterator<Item = &'c Object>,
) -> impl Iterator<Item = Action> {
    let released = released.into_iter().map(move |object| {
        let message = format!("its labels left the selector of {}", owner.name());
        let patch = patch(self::released(owner, object));
        let why = Why::new("LabelsLeft", message);
        Action::patch(Verb::Release, object, patch, why).concurrently()
    });
    let adopted = adopted.into_iter().map(move |object| {
        let patch = patch(self::adopted(owner, object));
        let why = Why::new("LabelsMatch", "has no controller and matches");
        Action::patch(Verb::Adopt, object, patch, why).concurrently()
    });
    released.chain(adopted)
}

/// A merge patch of `ownerReferences` alone.
pub(crate) fn patch(references: Value) -> Value {
    let metadata: Map<String, Value> =
        [("ownerReferences".to_owned(), references)].into_iter().collect();
    json!({"metadata": metadata})
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;

    use super::*;

    fn owned(uid: &str, label: &str) -> Object {
        object("apps/v1", "ReplicaSet", "rs")
            .label("app", label)
            .with("/metadata/ownerReferences", json!([{"uid": uid, "controller": true}]))
            .build()
    }

    #[test]
    fn labels_and_controller_decide() {
        let selector = Selector::from_value(&json!({"matchLabels": {"app": "web"}})).unwrap();
        let owner = object("apps/v1", "Deployment", "web").build();
        let leaving = object("apps/v1", "Deployment", "web")
            .with("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))
            .build();
        let ours = owner.uid().unwrap();
        let orphan = object("apps/v1", "ReplicaSet", "rs").label("app", "web");
        let dying =
            orphan.clone().with("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        let cases = [
            ("ours, matching", &owner, owned(ours, "web"), Claim::Keep),
            ("ours, not matching", &owner, owned(ours, "api"), Claim::Release),
            ("another's", &owner, owned("other", "web"), Claim::Ignore),
            ("orphan, matching", &owner, orphan.clone().build(), Claim::Adopt),
            ("orphan under deletion", &owner, dying.build(), Claim::Ignore),
            ("we are under deletion, ours", &leaving, owned(ours, "web"), Claim::Keep),
            ("we are under deletion, not matching", &leaving, owned(ours, "api"), Claim::Ignore),
            ("we are under deletion, orphan", &leaving, orphan.build(), Claim::Ignore),
        ];
        for (name, owner, object, expected) in cases {
            assert_eq!(claim(owner, &selector, &object), expected, "{name}");
        }
    }

    #[test]
    fn other_owners_are_kept() {
        let owner = object("apps/v1", "Deployment", "web").build();
        let set = object("apps/v1", "ReplicaSet", "rs")
            .with("/metadata/ownerReferences", json!([{"uid": "other", "kind": "Audit"}]))
            .build();
        assert_eq!(adopted(&owner, &set).as_array().unwrap().len(), 2);
        assert_eq!(released(&owner, &set), json!([{"uid": "other", "kind": "Audit"}]));
    }
}
