//! Actions, and the events that Kubernetes records about them.

pub(crate) mod cron_job;
pub(crate) mod daemon_set;
pub(crate) mod job;
mod retention;
mod revisions;
pub(crate) mod stateful_set;

use convoy_api::Object;
use serde_json::{Value, json};

use super::read::OwnedPods;
use super::read::revisions::Revisions;
use crate::pods::writes::Writes;

/// The writes of an owner that keeps revisions: present revision first, then pods are adopted and
/// released, then `pods` decides, then expired revisions go. One that is being deleted writes
/// nothing.
fn of_revisions<'o>(
    owner: &'o Object,
    revisions: &Revisions<'_>,
    owned: &OwnedPods<'_>,
    expired: &[&Object],
    pods: impl FnOnce(&mut Writes<'o>),
) -> Writes<'o> {
    let mut writes = Writes::new(owner);
    if owner.is_deleting() {
        return writes;
    }
    writes.renew(revisions);
    claim(&mut writes, owned);
    pods(&mut writes);
    writes.trim(revisions, expired);
    writes
}

/// Adopts and releases pods.
fn claim(writes: &mut Writes<'_>, pods: &OwnedPods<'_>) {
    writes.claim(pods.released.iter().copied(), pods.adopted.iter().copied());
}

/// Puts a text into a map of the metadata of an object that is being made.
fn note(object: &mut Value, map: &str, key: &str, text: &str) {
    let metadata = object["metadata"].as_object_mut().expect("it is made with metadata");
    let entry = metadata.entry(map).or_insert_with(|| json!({}));
    entry[key] = json!(text);
}
