//! Writes that are charged to the resource quotas of their namespace.
//!
//! What a quota has left and the write that takes it are one transaction, so that writes side by
//! side never exceed it together. What is given back is counted by the server's chores.

use std::sync::Arc;

use convoy_plan::quota::{self, QuotaRequest};
use convoy_store::{Expect, Write};
use serde_json::Value;

use crate::convert::stored_form;
use crate::encoding;
use crate::metadata;
use crate::object_meta::{Entry, ObjectMeta, Snapshot};
use crate::registry::{Resource, builtin};
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

use super::together;

/// Refuses an object that quotas have no room for, without charging them.
pub(crate) fn check(
    request: &ResourceRequest,
    object: &Value,
    current: Option<&Value>,
) -> ApiResult<()> {
    let snapshot = request.server.store.snapshot();
    charges(request, &snapshot, object, current).map(|_| ())
}

/// Commits the write of `object` together with what it is charged. A lost race comes back as
/// `None`, if it is not over a quota.
pub(crate) async fn commit(
    request: &ResourceRequest,
    write: Write<ObjectMeta>,
    companions: Vec<Write<ObjectMeta>>,
    object: &Value,
    current: Option<&Arc<Entry>>,
) -> ApiResult<Option<Vec<Arc<Entry>>>> {
    let server = &request.server;
    if quotas(request, &server.store.snapshot()).is_empty() {
        return server.commit(together(write, companions)).await;
    }
    let current = current.map(|entry| request.read(entry));
    let _lock = server.quota_locks.lock(request.namespace()).await;
    loop {
        let snapshot = server.store.snapshot();
        let charges = charges(request, &snapshot, object, current.as_ref())?;
        let versions = versions(&charges);
        let writes = companions.iter().cloned().chain(charges).collect();
        let written = server.commit(together(write.clone(), writes)).await?;
        let newest = server.store.snapshot();
        let is_current = |(key, version): &(convoy_store::Key, Expect)| {
            newest.get(key).is_some_and(|entry| Expect::At(entry.modified) == *version)
        };
        if written.is_some() || versions.iter().all(is_current) {
            return Ok(written);
        }
    }
}

fn versions(charges: &[Write<ObjectMeta>]) -> Vec<(convoy_store::Key, Expect)> {
    charges.iter().map(|write| (write.key.clone(), write.expect)).collect()
}

/// The writes that charge the quotas of the namespace.
fn charges(
    request: &ResourceRequest,
    snapshot: &Snapshot,
    object: &Value,
    current: Option<&Value>,
) -> ApiResult<Vec<Write<ObjectMeta>>> {
    let entries = quotas(request, snapshot);
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let mut known: Vec<Value> = entries.iter().map(|entry| encoding::read_entry(entry)).collect();
    let asked = QuotaRequest {
        resource: &request.resource.qualified(),
        subresource: &request.target.subresource,
        object,
        old: current,
    };
    let charged = quota::charge(&known, &asked, request.server.now()).map_err(|why| {
        Status::forbidden(&request.resource, metadata::text(object, "name"), &why)
    })?;
    let writes = charged.into_iter().map(|(index, used)| {
        let quota = &mut known[index];
        quota["status"]["used"] = used;
        let entry = entries[index];
        let value = stored_form(resource(), quota);
        Write::put(entry.key.clone(), Expect::At(entry.modified), value)
    });
    Ok(writes.collect())
}

/// The quotas of the request's namespace.
fn quotas<'s>(request: &ResourceRequest, snapshot: &'s Snapshot) -> Vec<&'s Arc<Entry>> {
    if request.namespace().is_empty() {
        return Vec::new();
    }
    let shelf = request.cluster.shelf(resource());
    snapshot.list_namespace(&shelf, request.namespace()).collect()
}

pub(crate) fn resource() -> &'static Arc<Resource> {
    builtin().get("", "v1", "resourcequotas").expect("a built-in resource")
}
