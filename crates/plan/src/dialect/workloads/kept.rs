//! The pods of one owner: which are its own, and what they are worth.

use convoy_api::Object;
use convoy_api::apps::POD;
use convoy_api::object::member::{field, member};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::ownership::{self, Claim, claim};
use crate::selector::Selector;
use crate::snapshot::Snapshot;
use crate::step::Action;

/// The label of pods that says which revision they were made from.
pub(super) const HASH_LABEL: &str = "controller-revision-hash";

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
        let (released, adopted) = (self.released.iter(), self.adopted.iter());
        ownership::writes(owner, released.copied(), adopted.copied()).collect()
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

/// Puts a text into a map of the metadata of an object that is being made.
pub(super) fn note(object: &mut Value, map: &str, key: &str, text: &str) {
    let metadata = object["metadata"].as_object_mut().expect("it is made with metadata");
    let entry = metadata.entry(map).or_insert_with(|| json!({}));
    entry[key] = json!(text);
}
