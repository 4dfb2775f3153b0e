//! Writes, each complete: whoever carries them out needs to know objects, patches and
//! preconditions, and nothing of rollouts.

use convoy_api::{Object, ObjectKey};
use serde::Serialize;
use serde_json::Value;

use crate::gate::Permit;

/// One write, with what it means and why it is made now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    pub verb: Verb,
    /// The object written; for an eviction, the pod.
    pub target: ObjectKey,
    pub why: Why,
    pub write: Write,
    /// Whether it may be sent beside its neighbours: the order of such writes means nothing.
    #[serde(skip)]
    pub concurrent: bool,
}

/// What an action means to a person. The write says what it is to the API server.
///
/// Verbs that start, change or remove a member carry the gate's [`Permit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
pub enum Verb {
    /// A member begins.
    Start(Permit),
    /// A failed member is tried again.
    Retry(Permit),
    /// A member takes the new revision.
    Update(Permit),
    /// A member is given up: unbound, disrupted, evicted.
    Remove(Permit),
    /// The number of replicas changes.
    Scale(Permit),
    /// An object is made together with members: a ReplicaSet that starts with replicas.
    CreateWithMembers(Permit),
    /// A member that never started, or whose owner goes, is deleted.
    DeleteMember(Permit),
    /// A member that holds a slot goes on to its next stage.
    Advance,
    /// An object that is no member is made.
    Create,
    /// An object that is no member goes.
    Delete,
    Adopt,
    Release,
    Cordon,
    Uncordon,
    Drain,
    Taint,
    Untaint,
    /// A cluster is chosen for a placement.
    Schedule,
    /// The template goes back to an earlier revision.
    RollBack,
    /// Bookkeeping on an object: annotations, conditions, history.
    Record,
}

impl From<Verb> for &'static str {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Start(_) => "Start",
            Verb::Retry(_) => "Retry",
            Verb::Update(_) => "Update",
            Verb::Remove(_) => "Remove",
            Verb::Scale(_) => "Scale",
            Verb::Advance => "Advance",
            Verb::Create | Verb::CreateWithMembers(_) => "Create",
            Verb::Delete | Verb::DeleteMember(_) => "Delete",
            Verb::Adopt => "Adopt",
            Verb::Release => "Release",
            Verb::Cordon => "Cordon",
            Verb::Uncordon => "Uncordon",
            Verb::Drain => "Drain",
            Verb::Taint => "Taint",
            Verb::Untaint => "Untaint",
            Verb::Schedule => "Schedule",
            Verb::RollBack => "RollBack",
            Verb::Record => "Record",
        }
    }
}

/// Why a write is made, for a program (`reason`) and for a person (`message`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Why {
    /// One `CamelCase` word.
    pub reason: &'static str,
    /// A sentence with the numbers.
    pub message: String,
}

/// What is sent to the API server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum Write {
    Create {
        object: Value,
    },
    /// A JSON merge patch (RFC 7386); lists are given whole, so it is always fenced.
    Patch {
        patch: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        subresource: Option<Subresource>,
        precondition: Precondition,
    },
    /// A server-side apply: the fields that `object` has become those of the dialect's field
    /// manager, and fields that it applied before and are not in `object` go. Creates the object
    /// where there is none and the precondition has no uid.
    Apply {
        object: Value,
        /// Whether fields of other managers are taken from them. Fields that the same manager set
        /// by other writes are no conflict either way.
        force: bool,
        /// Another field manager than the dialect's.
        #[serde(rename = "fieldManager", skip_serializing_if = "Option::is_none")]
        manager: Option<String>,
        precondition: Precondition,
    },
    Delete {
        /// For a pod: how long it may take to end; none: what its spec says.
        #[serde(rename = "graceSecs", skip_serializing_if = "Option::is_none")]
        grace_secs: Option<i64>,
        precondition: Precondition,
        propagation: Propagation,
    },
    /// The `policy/v1` Eviction of the target pod.
    Evict {
        #[serde(rename = "graceSecs", skip_serializing_if = "Option::is_none")]
        grace_secs: Option<i64>,
        precondition: Precondition,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subresource {
    Status,
    Scale,
}

/// What must still be true of the target when the write arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Precondition {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Propagation {
    Foreground,
    Background,
    Orphan,
}

/// A Kubernetes Event to be recorded about an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Event {
    pub regarding: ObjectKey,
    #[serde(rename = "type")]
    pub kind: EventType,
    pub reason: String,
    pub message: String,
    /// The object whose write it reports, where that is another than the one it regards: a
    /// step that stops halfway tells what it has done.
    #[serde(skip)]
    pub reports: Option<ObjectKey>,
    /// It tells of a state, and every decision has it until the state ends: it is recorded once.
    #[serde(skip)]
    pub lasts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum EventType {
    Normal,
    Warning,
}

impl Event {
    pub fn new(
        regarding: &ObjectKey,
        kind: EventType,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        let (regarding, reason) = (regarding.clone(), reason.to_owned());
        Self { regarding, kind, reason, message: message.into(), reports: None, lasts: false }
    }

    /// The same as long as a state lasts.
    #[must_use]
    pub fn lasting(self) -> Self {
        Self { lasts: true, ..self }
    }

    /// The same, where it reports a write to another object.
    #[must_use]
    pub fn reporting(self, written: &ObjectKey) -> Self {
        Self { reports: Some(written.clone()), ..self }
    }
}

impl Why {
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

impl Precondition {
    /// The target is still the object that was looked at, unchanged.
    pub fn observed(object: &Object) -> Self {
        Self {
            uid: object.uid().map(str::to_owned),
            resource_version: object.resource_version().map(str::to_owned),
        }
    }

    /// The target is still the same object, though it may have changed.
    pub fn same(object: &Object) -> Self {
        Self { resource_version: None, ..Self::observed(object) }
    }
}

impl Action {
    /// A merge patch of the object that was observed, fenced by its version.
    pub fn patch(verb: Verb, object: &Object, patch: Value, why: Why) -> Self {
        let precondition = Precondition::observed(object);
        let write = Write::Patch { patch, subresource: None, precondition };
        Self { verb, target: object.key().clone(), why, write, concurrent: false }
    }

    /// A merge patch of the observed object's status. `patch` is the whole `{"status": ...}`.
    pub fn patch_status(verb: Verb, object: &Object, patch: Value, why: Why) -> Self {
        let precondition = Precondition::observed(object);
        let write = Write::Patch { patch, subresource: Some(Subresource::Status), precondition };
        Self { verb, target: object.key().clone(), why, write, concurrent: false }
    }

    /// Creates `object` under `target`.
    pub fn create(verb: Verb, target: ObjectKey, object: Value, why: Why) -> Self {
        Self { verb, target, why, write: Write::Create { object }, concurrent: true }
    }

    /// Applies `object` on the server to the object that was observed.
    pub fn apply(verb: Verb, observed: &Object, object: Value, force: bool, why: Why) -> Self {
        let precondition = Precondition::observed(observed);
        let write = Write::Apply { object, force, manager: None, precondition };
        Self { verb, target: observed.key().clone(), why, write, concurrent: false }
    }

    /// Creates `object` under `target` by a server-side apply.
    pub fn apply_new(verb: Verb, target: ObjectKey, object: Value, force: bool, why: Why) -> Self {
        let precondition = Precondition::default();
        let write = Write::Apply { object, force, manager: None, precondition };
        Self { verb, target, why, write, concurrent: false }
    }

    /// The same as an apply of another field manager than the dialect's.
    #[must_use]
    pub fn managed_by(mut self, name: &str) -> Self {
        if let Write::Apply { manager, .. } = &mut self.write {
            *manager = Some(name.to_owned());
        }
        self
    }

    /// Deletes the object that was observed.
    pub fn delete(verb: Verb, object: &Object, propagation: Propagation, why: Why) -> Self {
        let precondition = Precondition::observed(object);
        let write = Write::Delete { grace_secs: None, precondition, propagation };
        Self { verb, target: object.key().clone(), why, write, concurrent: true }
    }

    /// Deletes the pod that was observed; its containers may take so long to end, whatever its spec
    /// says.
    pub fn force(pod: &Object, grace_secs: i64, why: Why) -> Self {
        let (grace_secs, precondition) = (Some(grace_secs), Precondition::same(pod));
        let write =
            Write::Delete { grace_secs, precondition, propagation: Propagation::Background };
        Self { verb: Verb::Drain, target: pod.key().clone(), why, write, concurrent: true }
    }

    /// Evicts the pod that was observed.
    pub fn evict(pod: &Object, grace_secs: Option<i64>, why: Why) -> Self {
        let write = Write::Evict { grace_secs, precondition: Precondition::same(pod) };
        Self { verb: Verb::Drain, target: pod.key().clone(), why, write, concurrent: false }
    }

    /// The same, sent beside its neighbours of the same verb and kind: what it writes stands for
    /// itself, as nodes and pods do, and waits for none of them.
    #[must_use]
    pub fn concurrently(mut self) -> Self {
        self.concurrent = true;
        self
    }
}
