//! Ownership: which objects a controller keeps, adopts, releases or leaves alone. The same
//! rules hold between a Deployment and ReplicaSets, and between any controller of pods and pods.

use convoy_api::kinds::REPLICATION_CONTROLLER;
use convoy_api::object::member::member;
use convoy_api::{GroupKind, Object, ObjectKey};
use serde_json::{Map, Value, json};

use crate::selector::Selector;
use crate::step::{Action, Verb, Why};
use crate::world::World;

/// What a controller does about an object of the kind it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Ours, and stays so.
    Keep,
    /// Has no controller, and matches: becomes ours.
    Adopt,
    /// Ours, and no longer matches: its owner reference goes.
    Release,
    /// Controlled by another, or it does not match.
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

/// The write before adoptions. It changes nothing, and is refused unless the owner is as it was
/// observed.
///
/// `kubectl delete --cascade=orphan` marks the owner as deleted, and then takes the references to
/// it off its objects. These two events come from different watches: without this write, an owner
/// that is not yet known to be deleted would adopt the objects again, and they would be deleted
/// with it.
pub(crate) fn confirmed(owner: &Object) -> Action {
    let why = Why::new("BeforeAdoption", "adopts objects only while it is not being deleted");
    Action::patch_status(Verb::Record, owner, json!({}), why)
}

/// The patches that release objects, and adopt others.
pub(crate) fn writes<'c>(
    owner: &'c Object,
    released: impl IntoIterator<Item = &'c Object>,
    adopted: impl IntoIterator<Item = &'c Object>,
) -> impl Iterator<Item = Action> {
    let released = released.into_iter().map(move |object| {
        let message = format!("its labels no longer match the selector of {}", owner.name());
        let patch = patch(self::released(owner, object));
        let why = Why::new("LabelsLeft", message);
        Action::patch(Verb::Release, object, patch, why).concurrently()
    });
    let mut adopted = adopted.into_iter().peekable();
    let confirmed = adopted.peek().map(|_| confirmed(owner));
    let adopted = adopted.map(move |object| {
        let patch = patch(self::adopted(owner, object));
        let why = Why::new("LabelsMatch", "it has no controller and its labels match the selector");
        Action::patch(Verb::Adopt, object, patch, why).concurrently()
    });
    released.chain(confirmed).chain(adopted)
}

/// A merge patch of `ownerReferences` alone.
pub(crate) fn patch(references: Value) -> Value {
    let metadata: Map<String, Value> =
        [("ownerReferences".to_owned(), references)].into_iter().collect();
    json!({"metadata": metadata})
}

/// The objects of a kind that a controller has to look at: its own, those without a controller,
/// and those under a name that it may want to use, each once unless it is an orphan of such a name.
pub(crate) fn in_reach<'w>(
    world: &'w World,
    kind: &GroupKind,
    controller: &'w Object,
) -> impl Iterator<Item = &'w Object> + use<'w> {
    let namespace = controller.namespace();
    let own = || world.controlled(kind, namespace, controller.uid().unwrap_or_default());
    let orphans = world.controlled(kind, namespace, "");
    // Most of the latter are its own, and both are in the order of their names.
    let mut known = own().peekable();
    let named = world.named(kind, namespace, &format!("{}-", controller.name()));
    let others = named.filter(move |object| {
        while known.next_if(|own| own.name() < object.name()).is_some() {}
        known.next_if(|own| own.name() == object.name()).is_none()
    });
    own().chain(orphans).chain(others)
}

/// The objects of a kind that control `object`, or may adopt it if it has no controller.
pub(crate) fn controllers_of(world: &World, kind: &GroupKind, object: &Object) -> Vec<ObjectKey> {
    if object.controller().is_some() {
        let owner = controller(world, kind, object);
        return owner.map(|owner| owner.key().clone()).into_iter().collect();
    }
    let peers = world.in_namespace(kind, object.namespace());
    peers.filter(|peer| selects(peer, object)).map(|peer| peer.key().clone()).collect()
}

/// The controller of `object`, if it is of this kind and still the one that is meant.
pub(crate) fn controller<'w>(
    world: &'w World,
    kind: &GroupKind,
    object: &Object,
) -> Option<&'w Object> {
    let reference = object.controller()?;
    let owner = world.find(kind, object.namespace(), reference.name)?;
    (owner.uid() == Some(reference.uid)).then_some(owner)
}

/// Whether the selector of `owner` matches `object`. An empty selector matches nothing here.
pub(crate) fn selects(owner: &Object, object: &Object) -> bool {
    selector(owner).is_some_and(|selector| selector.matches(object))
}

/// The selector of a controller; none if it is empty or cannot be parsed. That of a
/// ReplicationController is a map of labels: without one, the labels of its template.
pub(crate) fn selector(owner: &Object) -> Option<Selector> {
    let given = member(owner.spec(), "selector");
    let selector = if *owner.kind() == REPLICATION_CONTROLLER {
        let labels = given.or_else(|| owner.spec().pointer("/template/metadata/labels"));
        Selector::from_value(&json!({"matchLabels": labels}))
    } else {
        Selector::from_value(given.unwrap_or(&Value::Null))
    };
    selector.ok().filter(|selector| !selector.is_empty())
}

/// Whether `owner` controls `object`.
pub(crate) fn is_controlled_by(object: &Object, owner: &Object) -> bool {
    object.controller().is_some_and(|reference| Some(reference.uid) == owner.uid())
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;

    use super::*;
    use crate::step::{Precondition, Subresource, Write};

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
    fn the_owner_is_confirmed_before_adoptions() {
        let owner = object("apps/v1", "ReplicaSet", "web").build();
        let pod = |name| object("v1", "Pod", name).build();
        let (left, orphans) = ([pod("a")], [pod("b"), pod("c")]);
        let targets = |adopted: &[Object]| {
            let actions = writes(&owner, &left, adopted);
            actions.map(|action| action.target.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(targets(&[]), ["a"]);
        assert_eq!(targets(&orphans), ["a", "web", "b", "c"]);
        let Write::Patch { patch, subresource, precondition } = confirmed(&owner).write else {
            panic!("not a patch");
        };
        assert_eq!((patch, subresource), (json!({}), Some(Subresource::Status)));
        assert_eq!(precondition, Precondition::observed(&owner));
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
