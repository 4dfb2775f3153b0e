//! What the parts of a simulated fleet have in common: they hear of changes, and ask for
//! writes.

use std::hash::{DefaultHasher, Hash, Hasher};

use convoy_api::object::member::{field, text};
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::known::Known;

/// A kubelet, a scheduler, a node controller: pure, driven from outside.
pub trait Part: Send {
    /// An object is now so, or is gone.
    fn changed(&mut self, key: &Key, object: Option<&Known>, now: Timestamp);

    /// Whether an object of this name is there, as far as this part keeps it.
    fn knows(&self, _key: &Key) -> bool {
        false
    }

    /// A request of this part was answered. Objects in answers are told by `changed` first.
    fn answered(&mut self, request: &Request, answer: &Answer, now: Timestamp);

    /// What is to be written by now.
    fn due(&mut self, now: Timestamp) -> Vec<Request>;

    /// When to ask again, should nothing change before.
    fn next(&self) -> Option<Timestamp>;

    /// Whether everything it had to make at the start is there.
    fn is_settled(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Pod,
    Node,
    Lease,
}

/// Which object.
///
/// Keys are in no order that means anything, but always in the same: names of pods are long,
/// alike and somewhere else in memory, so the order is one that is found without reading them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    order: u64,
    pub kind: Kind,
    pub namespace: SmolStr,
    pub name: SmolStr,
}

/// Where nodes renew their leases.
pub const LEASES: &str = "kube-node-lease";

impl Key {
    fn new(kind: Kind, namespace: SmolStr, name: SmolStr) -> Self {
        let order = hash_of(&(kind, &namespace, &name));
        Self { order, kind, namespace, name }
    }

    pub fn pod(namespace: &str, name: &str) -> Self {
        Self::new(Kind::Pod, namespace.into(), name.into())
    }

    pub fn node(name: &str) -> Self {
        Self::new(Kind::Node, SmolStr::default(), name.into())
    }

    pub fn lease(name: &str) -> Self {
        Self::new(Kind::Lease, SmolStr::new_static(LEASES), name.into())
    }

    pub fn of(kind: Kind, object: &Value) -> Self {
        let metadata = field(object, "metadata");
        let [namespace, name] = ["namespace", "name"].map(|part| text(metadata, part).into());
        Self::new(kind, namespace, name)
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub key: Key,
    pub write: Write,
    /// May wait behind everything else.
    pub is_background: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    Create(Value),
    /// A merge patch of the object.
    Merge(Value),
    /// A merge patch of its status.
    MergeStatus(Value),
    /// A Binding for a pod.
    Bind(Value),
    /// With `DeleteOptions`.
    Delete(Value),
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Done(Option<Known>),
    /// The object changed meanwhile; news of it are on their way.
    Conflict,
    /// A create of what is there already.
    Exists,
    Missing,
    Failed(String),
}

impl Request {
    pub fn new(key: Key, write: Write) -> Self {
        Self { key, write, is_background: false }
    }

    /// Patches the status, fenced by the version that was looked at.
    pub fn status(key: Key, object: &Value, status: Value) -> Self {
        let patch = assembled([("metadata", fence(object)), ("status", status)]);
        Self::new(key, Write::MergeStatus(patch))
    }

    /// Deletes exactly this object.
    pub fn delete(key: Key, object: &Value, grace_seconds: Option<i64>) -> Self {
        let mut options = json!({"preconditions": {"uid": text(field(object, "metadata"), "uid")}});
        if let Some(seconds) = grace_seconds {
            options["gracePeriodSeconds"] = json!(seconds);
        }
        Self::new(key, Write::Delete(options))
    }
}

/// An object of these fields. Thousands are made in a second, so that they are put together
/// without the copies that a macro makes.
pub(crate) fn assembled<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The same number for the same thing, in every run.
pub(crate) fn hash_of(thing: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

/// What a patch carries so that it only applies to what was looked at.
pub(crate) fn fence(object: &Value) -> Value {
    let metadata = field(object, "metadata");
    json!({"uid": text(metadata, "uid"), "resourceVersion": text(metadata, "resourceVersion")})
}

/// Tells all parts what the answer to a request shows. Of an object that nobody knows, a watch
/// has told the end before the answer arrived; only one that was just made is news.
pub(crate) fn tell_answer(
    parts: &mut [Box<dyn Part>],
    request: &Request,
    answer: &Answer,
    now: Timestamp,
) {
    let Answer::Done(Some(object)) = answer else { return };
    let is_made = matches!(request.write, Write::Create(_));
    let is_there = || parts.iter().any(|part| part.knows(&request.key));
    if request.key.kind == Kind::Lease || !is_made && !is_there() {
        return;
    }
    for part in parts {
        part.changed(&request.key, Some(object), now);
    }
}
