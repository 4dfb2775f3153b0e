//! Objects as the controllers see them: which pods are whose, how far each has come, and the spec
//! with its defaults. Beside `write` and `status` this is the only role that knows JSON paths.

pub(crate) mod budget;
pub(crate) mod cron_job;
pub(crate) mod daemon_set;
pub(crate) mod index_failures;
pub(crate) mod job;
pub(crate) mod orphan;
pub(crate) mod pod_failure;
pub(crate) mod revisions;
pub(crate) mod stateful_set;
pub(crate) mod success_policy;
pub(crate) mod tally;

use convoy_api::Object;
use convoy_api::kinds::POD;
use convoy_api::object::ViewError;
use convoy_api::object::member::{field, member};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::ownership::{self, Claim, claim};
use crate::pods::{available_at, is_finished, is_ready, ready_since};
use crate::selector::Selector;
use crate::snapshot::Snapshot;

/// A field of the rollout object that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) field: String,
}

impl Unreadable {
    pub(crate) fn new(field: &str) -> Self {
        Self { field: field.to_owned() }
    }
}

impl From<ViewError> for Unreadable {
    fn from(error: ViewError) -> Self {
        Self { field: error.field }
    }
}

/// The pods of one owner.
#[derive(Debug, Default)]
pub(crate) struct OwnedPods<'o> {
    /// Its own, adopted and terminating ones included; by name.
    pub(crate) all: Vec<&'o Object>,
    pub(crate) adopted: Vec<&'o Object>,
    pub(crate) released: Vec<&'o Object>,
}

impl<'o> OwnedPods<'o> {
    pub(crate) fn read(snapshot: &Snapshot<'o>) -> Result<Self, Unreadable> {
        let owner = snapshot.rollout();
        let selector =
            ownership::selector(owner).ok_or_else(|| Unreadable::new("spec.selector"))?;
        let mut pods = Self::default();
        for pod in snapshot.of(&POD) {
            pods.take_in(owner, &selector, pod);
        }
        Ok(pods)
    }

    fn take_in(&mut self, owner: &Object, selector: &Selector, pod: &'o Object) {
        match claim(owner, selector, pod) {
            Claim::Ignore => {}
            Claim::Release => self.released.push(pod),
            Claim::Adopt => {
                self.adopted.push(pod);
                self.all.push(pod);
            }
            Claim::Keep => self.all.push(pod),
        }
    }
}

/// How far a pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// Its phase is final.
    Finished,
    /// It has a deletion timestamp.
    Terminating,
    NotReady,
    /// Ready, and surely available from `until` on; none if it is not known since when it is ready.
    Settling {
        until: Option<Timestamp>,
        /// Whether it is available by the seconds that its condition tells, as others count.
        by_seconds: bool,
    },
    Available,
}

pub(crate) fn health(pod: &Object, min_ready_secs: i64, now: Timestamp) -> Health {
    if pod.is_deleting() {
        return Health::Terminating;
    }
    if is_finished(pod) {
        return Health::Finished;
    }
    if !is_ready(pod) {
        return Health::NotReady;
    }
    if min_ready_secs <= 0 {
        return Health::Available;
    }
    let since = ready_since(pod);
    let until = since.and_then(|since| available_at(since, min_ready_secs));
    if until.is_some_and(|until| until <= now) {
        return Health::Available;
    }
    let told =
        since.and_then(|since| since.checked_add(SignedDuration::from_secs(min_ready_secs)).ok());
    Health::Settling { until, by_seconds: told.is_some_and(|told| told <= now) }
}

impl Health {
    pub(crate) fn is_ready(self) -> bool {
        matches!(self, Self::Settling { .. } | Self::Available)
    }

    /// Whether it may be available: to take it away, or to treat it as lost, costs what an available
    /// one costs.
    pub(crate) fn may_be_available(self) -> bool {
        matches!(self, Self::Available | Self::Settling { by_seconds: true, .. })
    }

    /// Whether the pod runs, or will.
    pub(crate) fn is_active(self) -> bool {
        !matches!(self, Self::Finished | Self::Terminating)
    }
}

fn number(object: &Value, name: &str) -> Option<i64> {
    member(object, name).and_then(Value::as_i64)
}

/// The pod template, as raw JSON: it is compared, hashed and copied as it stands.
pub(crate) fn template(owner: &Object) -> &Value {
    field(owner.spec(), "template")
}
