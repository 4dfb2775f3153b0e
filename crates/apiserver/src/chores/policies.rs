//! The status of validating admission policies: what their expressions get wrong about the kinds
//! that they are about.

use std::sync::Arc;

use convoy_store::Key;
use serde_json::json;

use crate::encoding;
use crate::kinds::policy_warnings;
use crate::own;
use crate::server::Server;
use crate::status::ApiResult;

pub(super) const SHELF: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";

/// Checks a policy that was not checked since its rules changed. One that changed meanwhile comes
/// again.
pub(super) async fn check(server: &Arc<Server>, key: Key) -> ApiResult<bool> {
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
