//! Pods of a controller: names and bodies of new ones, and how far an existing one has come.

pub(crate) mod active;
pub(crate) mod rank;
pub(crate) mod writes;

use std::collections::BTreeSet;

use convoy_api::apps::POD;
use convoy_api::object::member::{field, member};
use convoy_api::object::meta::timestamp;
use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::elapsed;
use crate::ownership;
use crate::snapshot::Snapshot;

/// Letters of generated names.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_CHARS: usize = 5;
const NAME_CHARS_MAX: usize = 63;

/// Names for new pods, each free.
///
/// A create that is repeated has to be recognised, so a name follows from the objects that were
/// decided from. A pod that replaces another needs a name of its own all the same: clients wait
/// for the old name to be gone. The pods that are there cannot tell: a daemon pod is replaced when
/// it is gone, and the pods around it are then as they were before the replacement, each time. The
/// owner can: since the old pod was created, its status counted it or the loss of it. So the
/// version of the owner is part of the name.
///
/// A step writes the status last, when all its creates are answered. Until then a repeated create
/// finds the version that it was decided from, unless somebody else writes the owner; at worst
/// that makes a pod too many, which the next step removes. The first pods replace nothing: their
/// names depend on no version, and stay the same whoever writes a new owner, as a Deployment does.
#[derive(Debug)]
pub(crate) struct Names<'s, 'w> {
    snapshot: &'s Snapshot<'w>,
    taken: BTreeSet<ObjectKey>,
}

impl<'s, 'w> Names<'s, 'w> {
    pub(crate) fn new(snapshot: &'s Snapshot<'w>) -> Self {
        Self { snapshot, taken: BTreeSet::new() }
    }

    /// The name of the pod that is about something, e.g. a node.
    pub(crate) fn next(&mut self, base: &str, about: &str) -> ObjectKey {
        self.several(base, about, 1).remove(0)
    }

    /// Names of `count` pods that nothing tells apart.
    pub(crate) fn several(&mut self, base: &str, about: &str, count: usize) -> Vec<ObjectKey> {
        let owner = self.snapshot.rollout();
        let prefix = prefix(base);
        let names = (0u64..).map(|attempt| format!("{prefix}{}", suffix(owner, about, attempt)));
        let keys = names.map(|name| owner.key().sibling(&POD, owner.namespace(), &name));
        let free = keys.filter(|key| self.snapshot.get(key).is_none());
        // Two attempts may give one name.
        free.filter(|key| self.taken.insert(key.clone())).take(count).collect()
    }
}

/// A name that an owner gives an object that is not a pod, and that nothing has yet.
pub(crate) fn generated_name(
    owner: &Object,
    about: &str,
    is_taken: impl Fn(&str) -> bool,
) -> String {
    let prefix = prefix(owner.name());
    let names = (0u64..).map(|attempt| format!("{prefix}{}", suffix(owner, about, attempt)));
    names.into_iter().find(|name| !is_taken(name)).expect("attempts do not end")
}

/// What names begin with, cut as the API server cuts `generateName`.
pub(crate) fn prefix(base: &str) -> String {
    let mut prefix = format!("{base}-");
    prefix.truncate(prefix.floor_char_boundary(NAME_CHARS_MAX - SUFFIX_CHARS));
    prefix
}

fn suffix(owner: &Object, about: &str, attempt: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(owner.uid().unwrap_or_default());
    hash.update(version_beyond_first(owner));
    hash.update(about);
    hash.update(attempt.to_le_bytes());
    let digest = hash.finalize();
    let letters = digest.iter().take(SUFFIX_CHARS);
    letters.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

/// The version of an owner; empty until its status says that its pods were looked at, which is
/// when it gets the first of these fields.
fn version_beyond_first(owner: &Object) -> &str {
    let is_told = |name: &&str| owner.status_member(name).is_some_and(|told| !told.is_null());
    let is_known = ["observedGeneration", "uncountedTerminatedPods"].iter().any(is_told);
    owner.resource_version().filter(|_| is_known).unwrap_or_default()
}

/// A pod from a template, controlled by `owner`. The template's own metadata stays as it is.
pub(crate) fn pod(owner: &Object, template: &Value, key: &ObjectKey) -> Value {
    from_template(owner, "v1", template, key)
}

/// An object that `owner` makes from a template.
pub(crate) fn from_template(
    owner: &Object,
    api_version: &str,
    template: &Value,
    key: &ObjectKey,
) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(key.name));
    if !key.namespace.is_empty() {
        metadata.insert("namespace".to_owned(), json!(key.namespace));
    }
    for part in ["labels", "annotations", "finalizers"] {
        if let Some(given) = member(field(template, "metadata"), part).filter(|it| !it.is_null()) {
            metadata.insert(part.to_owned(), given.clone());
        }
    }
    metadata.insert("ownerReferences".to_owned(), json!([ownership::reference(owner)]));
    json!({"apiVersion": api_version, "kind": key.kind.kind, "metadata": metadata,
        "spec": field(template, "spec")})
}

/// The node that a pod is bound to.
pub(crate) fn node_of(pod: &Object) -> Option<&str> {
    Some(pod.spec_text("nodeName")).filter(|name| !name.is_empty())
}

/// Whether the phase of a pod is final. A pod without a phase counts as running.
pub(crate) fn is_finished(pod: &Object) -> bool {
    matches!(pod.status_text("phase"), "Succeeded" | "Failed")
}

/// Since when a pod is ready, if it is and its condition says since when.
pub(crate) fn ready_since(pod: &Object) -> Option<Timestamp> {
    let ready = pod.condition("Ready").filter(|_| is_ready(pod))?;
    timestamp(member(ready, "lastTransitionTime"))
}

/// When a pod that says it is ready since `since` counts as available, under a `minReadySeconds`
/// that is not 0. Every count and every timer uses this instant.
pub(crate) fn available_at(since: Timestamp, min_ready_secs: i64) -> Option<Timestamp> {
    elapsed::passed_at(since, min_ready_secs)
}

pub(crate) fn is_ready(pod: &Object) -> bool {
    pod.condition_status("Ready") == Some("True")
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;

    use super::*;

    #[test]
    fn names_are_free_and_the_same_each_time() {
        let owner = object("apps/v1", "ReplicaSet", "web").namespace("shop").build();
        let named = |pods: &[Object]| {
            let snapshot = Snapshot::new(&owner, pods);
            Names::new(&snapshot).several("web", "", 3)
        };
        let first = named(&[]);
        assert_eq!(named(&[]), first);
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 3);
        let taken = object("v1", "Pod", &first[0].name).namespace("shop").build();
        let then = named(&[taken]);
        assert_eq!(then[..2], first[1..]);
        assert!(!then.contains(&first[0]));
    }

    #[test]
    fn names_are_new_once_the_owner_has_counted_its_pods() {
        let owner = |version: &str, status: serde_json::Value| {
            let set = object("apps/v1", "ReplicaSet", "web").namespace("shop");
            let owner = set.with("/metadata/resourceVersion", json!(version)).status(status);
            let owner = owner.build();
            Names::new(&Snapshot::new(&owner, [])).next("web", "")
        };
        let counted = || json!({"replicas": 1, "observedGeneration": 1});
        let first = owner("1", json!({"replicas": 0}));
        assert_eq!(owner("2", json!({"replicas": 0})), first, "somebody wrote a new owner");
        let second = owner("3", counted());
        assert_eq!(owner("3", counted()), second, "the same decision");
        let third = owner("4", counted());
        assert_eq!([&first, &second, &third].into_iter().collect::<BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn long_names_are_cut_to_leave_room() {
        assert_eq!(prefix("web"), "web-");
        assert_eq!(prefix(&"a".repeat(57)), format!("{}-", "a".repeat(57)));
        assert_eq!(prefix(&"a".repeat(80)), "a".repeat(58));
    }
}
