//! One ReplicaSet of a Deployment: what it is, and what this step makes of it.

use std::cmp::Ordering;

use convoy_api::Object;
use convoy_api::apps::spec::ReplicaSetSpec;
use convoy_api::apps::{UNLIMITED, annotation};
use convoy_api::object::member::member;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use crate::gate::Permit;

/// A ReplicaSet that the Deployment owns, or takes over in this step.
#[derive(Debug)]
pub(crate) struct OwnedSet<'o> {
    pub(crate) object: &'o Object,
    pub(crate) created_at: Option<Timestamp>,
    /// `spec.replicas` as observed.
    pub(crate) had: i64,
    /// `spec.replicas` as this step leaves it.
    pub(crate) wants: i64,
    /// `minReadySeconds` as observed.
    pub(crate) stored_min_ready_secs: i64,
    pub(crate) counts: Counts,
    /// The gate's leave to change the size.
    pub(crate) permit: Option<Permit>,
    /// Becomes ours in this step.
    pub(crate) adopted: bool,
    /// Annotations that this step writes.
    pub(crate) notes: Map<String, Value>,
    /// `minReadySeconds` where this step writes it.
    pub(crate) min_ready_secs: Option<i64>,
    /// Deleted by this step.
    pub(crate) trimmed: bool,
}

/// What a ReplicaSet reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) replicas: i64,
    pub(crate) ready: i64,
    pub(crate) available: i64,
    /// Absent where it is not known.
    pub(crate) terminating: Option<i64>,
    pub(crate) observed_generation: i64,
}

impl<'o> OwnedSet<'o> {
    pub(crate) fn new(object: &'o Object, adopted: bool) -> Self {
        // A set that validation would refuse has the defaults.
        let spec: ReplicaSetSpec = object.spec_view().unwrap_or_default();
        let had = spec.replicas.unwrap_or(1).max(0);
        Self {
            object,
            created_at: object.created_at(),
            had,
            wants: had,
            stored_min_ready_secs: spec.min_ready_seconds.unwrap_or(0),
            counts: Counts::of(object.status()),
            permit: None,
            adopted,
            notes: Map::new(),
            min_ready_secs: None,
            trimmed: false,
        }
    }

    pub(crate) fn name(&self) -> &'o SmolStr {
        self.object.name()
    }

    /// Annotation as this step leaves it.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        let written = self.notes.get(key).and_then(Value::as_str);
        written.or_else(|| self.object.annotation(key))
    }

    /// Writes an annotation, unless it reads so already. Whether it had to be written.
    pub(crate) fn set_note(&mut self, key: &str, text: &str) -> bool {
        if self.note(key) == Some(text) {
            return false;
        }
        self.notes.insert(key.to_owned(), json!(text));
        true
    }

    /// The number in its revision annotation; 0 without one, none if it is not a number.
    pub(crate) fn revision(&self) -> Option<i64> {
        match self.note(annotation::REVISION) {
            None | Some("") => Some(0),
            Some(text) => text.parse().ok(),
        }
    }

    /// An annotation that holds a size.
    pub(crate) fn size_note(&self, key: &str) -> Option<i64> {
        let number = self.note(key)?.parse().ok()?;
        (0..=UNLIMITED).contains(&number).then_some(number)
    }

    pub(crate) fn is_active(&self) -> bool {
        self.had > 0
    }

    /// Changes the size, by the gate's leave.
    pub(crate) fn resize(&mut self, wants: i64, permit: Permit) {
        self.wants = wants;
        self.permit = (wants != self.had).then_some(permit);
    }

    /// Records the size of the Deployment that it is sized for.
    pub(crate) fn record_size(&mut self, desired: i64, most: i64) {
        self.set_note(annotation::DESIRED_REPLICAS, &desired.to_string());
        self.set_note(annotation::MAX_REPLICAS, &most.to_string());
    }

    /// Whether it was last sized for a Deployment of just this size.
    pub(crate) fn is_sized_for(&self, desired: i64, most: i64) -> bool {
        self.size_note(annotation::DESIRED_REPLICAS) == Some(desired)
            && self.size_note(annotation::MAX_REPLICAS) == Some(most)
    }

    pub(crate) fn is_written(&self) -> bool {
        self.wants != self.had
            || self.adopted
            || !self.notes.is_empty()
            || self.min_ready_secs.is_some()
    }

    /// How many pods it may have: its size, or more if it was scaled down and still has them.
    /// None until its controller has observed the present size: pods may still be made for an
    /// earlier one.
    pub(crate) fn may_have(&self) -> Option<i64> {
        let (seen, generation) = (self.counts.observed_generation, self.object.generation());
        let is_as_made = seen == 0 && generation <= 1;
        (seen >= generation || is_as_made)
            .then(|| self.had.max(self.wants).max(self.counts.replicas))
    }

    /// Available replicas that it still wants: those beyond are on their way out.
    pub(crate) fn wanted_available(&self) -> i64 {
        self.counts.available.min(self.wants)
    }
}

/// By age, the oldest first; of equals by name.
pub(crate) fn by_age(left: &OwnedSet<'_>, right: &OwnedSet<'_>) -> Ordering {
    left.created_at.cmp(&right.created_at).then_with(|| left.name().cmp(right.name()))
}

impl Counts {
    fn of(status: &Value) -> Self {
        let number = |field: &str| member(status, field).and_then(Value::as_i64);
        let observed_generation = number("observedGeneration").unwrap_or(0);
        // A set that nobody has looked after yet has nothing to terminate.
        let unseen = (observed_generation == 0).then_some(0);
        Self {
            replicas: number("replicas").unwrap_or(0),
            ready: number("readyReplicas").unwrap_or(0),
            available: number("availableReplicas").unwrap_or(0),
            terminating: number("terminatingReplicas").or(unseen),
            observed_generation,
        }
    }
}
