//! Writes that a server denies, and what people are told about them.

use convoy_api::{Object, ObjectKey};
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
