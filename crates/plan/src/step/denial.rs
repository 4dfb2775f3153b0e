//! Writes that a server denies, and what people are told about them.

use convoy_api::{GroupKind, Object, ObjectKey};
use serde_json::Value;

use super::action::{Event, EventType};

/// A write of a step that the server will not carry out as long as nothing else changes. The
/// writes after it were not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub target: ObjectKey,
    /// `create`, `patch`, `apply`, `delete` or `evict`.
    pub verb: &'static str,
    /// The server's own words.
    pub message: String,
}

/// How servers and clients say that they do not serve a kind.
const UNKNOWN_KIND: [&str; 2] = ["no matches for kind", "could not find the requested resource"];

impl Denial {
    /// What is said about a write that cannot be sent, because no resource of its kind is known.
    pub fn of_unknown_kind(kind: &GroupKind) -> String {
        format!("no matches for kind {:?} in group {:?}", kind.kind.as_str(), kind.group.as_str())
    }

    /// Whether the server does not have the kind of the object.
    pub(crate) fn is_of_unknown_kind(&self) -> bool {
        UNKNOWN_KIND.iter().any(|words| self.message.contains(words))
    }
}

/// What is told about a denial.
#[derive(Clone, Debug, PartialEq)]
pub struct Complaint {
    /// `status` of the rollout object as it should read now; absent if it stays.
    pub status: Option<Value>,
    pub event: Event,
}

impl Complaint {
    /// What any rollout can say: an event in the server's words.
    pub fn about(rollout: &Object, denial: &Denial) -> Self {
        let reason = match denial.verb {
            "create" => "FailedCreate",
            "delete" => "FailedDelete",
            "evict" => "FailedEviction",
            _ => "FailedUpdate",
        };
        Self::saying(rollout, reason, denial.message.clone())
    }

    pub(crate) fn saying(rollout: &Object, reason: &str, message: String) -> Self {
        let event = Event::new(rollout.key(), EventType::Warning, reason, message);
        Self { status: None, event }
    }
}
