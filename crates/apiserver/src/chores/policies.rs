//! The status of validating admission policies: what their expressions get wrong about the kinds
//! that they are about.

use std::sync::Arc;

use convoy_store::{Change, Key};
use serde_json::json;

use crate::encoding;
use crate::kinds::policy_warnings;
use crate::metrics::Work;
use crate::own;
use crate::server::Server;
use crate::status::ApiResult;

use super::Event;
use super::queue::Queue;

const SHELF: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";

#[derive(Debug)]
pub(super) struct Policies {
    pub(super) queue: Queue<Key>,
}

impl Policies {
    pub(super) fn new(counts: Work) -> Self {
        Self { queue: Queue::new(counts) }
    }

    pub(super) fn observe(&mut self, event: &Event) {
        let key = &event.entry.key;
        if key.shelf.resource == SHELF && event.change != Change::Deleted {
            self.queue.add(key.clone());
        }
    }

    pub(super) async fn step(&mut self, server: &Arc<Server>) -> bool {
        self.queue.work(server.now(), |policy| check(server, policy)).await
    }
}

/// Checks a policy that was not checked since its rules changed. One that changed meanwhile comes
/// again.
async fn check(server: &Arc<Server>, key: Key) -> ApiResult<bool> {
    let Some(cluster) = server.cluster(&key.shelf.cluster) else { return Ok(false) };
    let snapshot = server.store.snapshot();
    let Some(entry) = snapshot.get(&key) else { return Ok(false) };
    let policy = encoding::read_entry(entry);
    let generation = &policy["metadata"]["generation"];
    if policy["status"]["observedGeneration"] == *generation {
        return Ok(false);
    }
    let registry = cluster.registry();
    let Some(resource) = registry.of_shelf(SHELF) else { return Ok(false) };
    let warnings = policy_warnings(&policy, &registry);
    let checked =
        if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
    own::amend_at(server, resource, entry, |policy| {
        if !policy["status"].is_object() {
            policy["status"] = json!({});
        }
        policy["status"]["observedGeneration"] = generation.clone();
        policy["status"]["typeChecking"] = checked;
    })
    .await?;
    Ok(false)
}
