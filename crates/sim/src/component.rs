//! The interface of the components of a simulated fleet: watch events in, writes out.

use std::hash::{DefaultHasher, Hash, Hasher};

use convoy_api::object::member::{field, text};
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::shared_object::SharedObject;

/// A kubelet, a scheduler, a node controller: pure, driven from outside.
pub trait Component: Send {
    /// An object is now so, or is gone.
    fn changed(&mut self, key: &Key, object: Option<&SharedObject>, now: Timestamp);

    /// Whether this component has an object of this name in its cache.
    fn knows(&self, _key: &Key) -> bool {
        false
    }

    /// The response to a write of this component. `changed` is called first for objects in it.
    fn handle_response(&mut self, request: &WriteRequest, response: &WriteResponse, now: Timestamp);

    /// The writes that are due.
    fn due(&mut self, now: Timestamp) -> Vec<WriteRequest>;

    /// The next instant at which something is due.
    fn next(&self) -> Option<Timestamp>;

    /// Whether everything that it creates at the start exists.
    fn is_settled(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Pod,
    Node,
    Lease,
    Event,
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

    pub fn event(namespace: &str, name: &str) -> Self {
        Self::new(Kind::Event, namespace.into(), name.into())
    }

    pub fn of(kind: Kind, object: &Value) -> Self {
        let metadata = field(object, "metadata");
        let [namespace, name] =
            ["namespace", "name"].map(|component| text(metadata, component).into());
        Self::new(kind, namespace, name)
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteRequest {
    pub key: Key,
    pub write: WriteVerb,
    /// May wait behind everything else.
    pub is_background: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WriteVerb {
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

/// The response to a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteResponse {
    Done(Option<SharedObject>),
    /// The object changed meanwhile; newer of it are on their way.
    Conflict,
    /// The object to create exists already.
    Exists,
    Missing,
    Failed(String),
}

impl WriteRequest {
    pub fn new(key: Key, write: WriteVerb) -> Self {
        Self { key, write, is_background: false }
    }

    /// Patches the status, fenced by the version that was looked at.
    pub fn status(key: Key, object: &Value, status: Value) -> Self {
        let patch = assembled([("metadata", fence(object)), ("status", status)]);
        Self::new(key, WriteVerb::MergeStatus(patch))
    }

    /// Deletes exactly this object.
    pub fn delete(key: Key, object: &Value, grace_seconds: Option<i64>) -> Self {
        let mut options = json!({"preconditions": {"uid": text(field(object, "metadata"), "uid")}});
        if let Some(seconds) = grace_seconds {
            options["gracePeriodSeconds"] = json!(seconds);
        }
        Self::new(key, WriteVerb::Delete(options))
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

/// The precondition of a patch: uid and version of the observed object.
pub(crate) fn fence(object: &Value) -> Value {
    let metadata = field(object, "metadata");
    json!({"uid": text(metadata, "uid"), "resourceVersion": text(metadata, "resourceVersion")})
}

/// Tells all components what the response to a request shows. Of an object that nobody knows, a watch
/// has told the end before the response arrived; only one that was just made is newer.
pub(crate) fn apply_response(
    components: &mut [Box<dyn Component>],
    request: &WriteRequest,
    response: &WriteResponse,
    now: Timestamp,
) {
    let WriteResponse::Done(Some(object)) = response else { return };
    let is_made = matches!(request.write, WriteVerb::Create(_));
    let is_there = || components.iter().any(|component| component.knows(&request.key));
    if matches!(request.key.kind, Kind::Lease | Kind::Event) || !is_made && !is_there() {
        return;
    }
    for component in components {
        component.changed(&request.key, Some(object), now);
    }
}
