//! What the server itself writes into objects it serves, past admission and validation: states
//! that nobody else may know better.

use std::sync::Arc;

use convoy_store::Transaction;
use serde_json::Value;

use crate::convert::stored_form;
use crate::encoding;
use crate::object_meta::Entry;
use crate::registry::Resource;
use crate::server::Server;
use crate::status::ApiResult;

/// Changes the version of an object that `entry` is; whether that was still the newest.
pub(crate) async fn amend_at(
    server: &Server,
    resource: &Resource,
    entry: &Arc<Entry>,
    change: impl FnOnce(&mut Value),
) -> ApiResult<bool> {
    let before = encoding::read_entry(entry);
    let mut object = before.clone();
    change(&mut object);
    crate::canonical::canonicalise(crate::form::shape_of(resource), &mut object);
    if object == before {
        return Ok(false);
    }
    let value = stored_form(resource, &object);
    let transaction = Transaction::update(entry.key.clone(), entry.modified, value);
    Ok(server.commit(transaction).await?.is_some())
}
