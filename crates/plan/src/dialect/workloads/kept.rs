//! The pods of one owner: which are its own, what they are worth, and how new ones are made.

use std::collections::BTreeSet;

use convoy_api::apps::POD;
use convoy_api::object::member::{field, member};
use convoy_api::object::meta::timestamp;
use convoy_api::{Object, ObjectKey};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::dialect::apps::claim::{self, Claim, claim};
use crate::selector::Selector;
use crate::snapshot::Snapshot;
use crate::step::{Action, Verb, Why};

/// The label of pods that says which revision they were made from.
pub(super) const HASH_LABEL: &str = "controller-revision-hash";

/// Letters of generated names.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_CHARS: usize = 5;
const NAME_CHARS_MAX: usize = 63;

/// What an owner makes of the pods beside it.
#[derive(Debug, Default)]
pub(super) struct Kept<'o> {
    /// Its own, adopted ones and those on their way out included; by name.
    pub(super) pods: Vec<&'o Object>,
    adopted: Vec<&'o Object>,
    released: Vec<&'o Object>,
}

/// The selector of an owner; none if it selects everything or cannot be read.
pub(super) fn selector(owner: &Object) -> Option<Selector> {
    let selector = Selector::from_value(field(owner.spec(), "selector")).ok()?;
    (!selector.is_empty()).then_some(selector)
}

impl<'o> Kept<'o> {
    pub(super) fn new(snapshot: &Snapshot<'o>, selector: &Selector) -> Self {
        let owner = snapshot.rollout();
        let mut kept = Self::default();
        for pod in snapshot.of(&POD) {
            match claim(owner, selector, pod) {
                Claim::Ignore => {}
                Claim::Release => kept.released.push(pod),
                Claim::Adopt => {
                    kept.adopted.push(pod);
                    kept.pods.push(pod);
                }
                Claim::Keep => kept.pods.push(pod),
            }
        }
        kept
    }

    /// What is written to take pods over, and to let them go.
    pub(super) fn claims(&self, owner: &Object) -> Vec<Action> {
        let released = self.released.iter().map(|pod| {
            let message = format!("its labels left the selector of {}", owner.name());
            let patch = claim::patch(claim::released(owner, pod));
            Action::patch(Verb::Release, pod, patch, Why::new("LabelsLeft", message))
        });
        let adopted = self.adopted.iter().map(|pod| {
            let patch = claim::patch(claim::adopted(owner, pod));
            let why = Why::new("LabelsMatch", "has no controller and matches");
            Action::patch(Verb::Adopt, pod, patch, why)
        });
        released.chain(adopted).collect()
    }
}

/// How far a pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// Its phase is final.
    Over,
    /// On its way out.
    Leaving,
    NotReady,
    /// Ready, and available from then on; none if it is not known since when it is ready.
    Settling(Option<Timestamp>),
    Available,
}

pub(super) fn health(pod: &Object, min_ready_secs: i64, now: Timestamp) -> Health {
    if pod.is_deleting() {
        return Health::Leaving;
    }
    if is_over(pod) {
        return Health::Over;
    }
    let ready = pod.condition("Ready").filter(|_| pod.condition_status("Ready") == Some("True"));
    let Some(ready) = ready else { return Health::NotReady };
    if min_ready_secs <= 0 {
        return Health::Available;
    }
    let since = timestamp(member(ready, "lastTransitionTime"));
    let until =
        since.and_then(|since| since.checked_add(SignedDuration::from_secs(min_ready_secs)).ok());
    if until.is_some_and(|until| until <= now) {
        Health::Available
    } else {
        Health::Settling(until)
    }
}

impl Health {
    pub(super) fn is_ready(self) -> bool {
        matches!(self, Self::Settling(_) | Self::Available)
    }
}

/// Whether the phase of a pod is final.
pub(super) fn is_over(pod: &Object) -> bool {
    matches!(pod.status_text("phase"), "Succeeded" | "Failed")
}

pub(super) fn number(object: &Value, name: &str) -> Option<i64> {
    member(object, name).and_then(Value::as_i64)
}

/// What pods of an owner are made from.
pub(super) fn template(owner: &Object) -> &Value {
    field(owner.spec(), "template")
}

/// A pod from a template, controlled by `owner`. The template's own metadata stays as it is.
pub(super) fn pod(owner: &Object, template: &Value, key: &ObjectKey) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(key.name));
    metadata.insert("namespace".to_owned(), json!(key.namespace));
    for part in ["labels", "annotations", "finalizers"] {
        if let Some(given) = member(field(template, "metadata"), part).filter(|it| !it.is_null()) {
            metadata.insert(part.to_owned(), given.clone());
        }
    }
    metadata.insert("ownerReferences".to_owned(), json!([claim::reference(owner)]));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": field(template, "spec")})
}

/// Puts a text into a map of the metadata of an object that is being made.
pub(super) fn note(object: &mut Value, map: &str, key: &str, text: &str) {
    let metadata = object["metadata"].as_object_mut().expect("it is made with metadata");
    let entry = metadata.entry(map).or_insert_with(|| json!({}));
    entry[key] = json!(text);
}

/// Names for new pods, each free. They follow from the owner and `about` alone, so that a create
/// that is repeated is recognised.
#[derive(Debug)]
pub(super) struct Names<'s, 'w> {
    snapshot: &'s Snapshot<'w>,
    taken: BTreeSet<ObjectKey>,
}

impl<'s, 'w> Names<'s, 'w> {
    pub(super) fn new(snapshot: &'s Snapshot<'w>) -> Self {
        Self { snapshot, taken: BTreeSet::new() }
    }

    pub(super) fn next(&mut self, base: &str, about: &str) -> ObjectKey {
        let owner = self.snapshot.rollout();
        let end = base.floor_char_boundary(NAME_CHARS_MAX - SUFFIX_CHARS - 1);
        let names =
            (0u64..).map(|attempt| format!("{}-{}", &base[..end], suffix(owner, about, attempt)));
        let mut keys = names.map(|name| owner.key().sibling(&POD, owner.namespace(), &name));
        let free = |key: &ObjectKey| self.snapshot.get(key).is_none() && !self.taken.contains(key);
        let key = keys.find(free).expect("there is no end of names");
        self.taken.insert(key.clone());
        key
    }
}

fn suffix(owner: &Object, about: &str, attempt: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(owner.uid().unwrap_or_default());
    hash.update(about);
    hash.update(attempt.to_le_bytes());
    let digest = hash.finalize();
    let letters = digest.iter().take(SUFFIX_CHARS);
    letters.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}
