//! Logical clusters: API servers of their own within this process, each made by a
//! `LogicalCluster` of the first one and gone with it.

use std::sync::Arc;

use serde_json::json;

use super::bootstrap::bootstrap;
use super::definitions;
use crate::encoding;
use crate::kinds::logical::resource;
use crate::object_meta::Entry;
use crate::own;
use crate::registry::{Registry, Resource};
use crate::server::Server;
use crate::status::ApiResult;

/// The phase of a cluster that has all it begins with.
const READY: &str = "Ready";

/// Serves every cluster that the store holds: at start, before any request.
pub(crate) fn load(server: &Server) {
    let first = server.cluster("").expect("the first cluster is always there");
    let mut registry = Registry::clone(&first.registry());
    registry.insert(resource());
    first.set_registry(registry);
    definitions::load(server, &first);
    let snapshot = server.store.snapshot();
    for entry in snapshot.list(&first.shelf(&resource())) {
        if !entry.meta.is_deleting() {
            let cluster = server.add_cluster(&entry.key.name);
            definitions::load(server, &cluster);
        }
    }
}

/// Makes a cluster live, with what every cluster has. Repeating it changes nothing.
pub(crate) async fn serve(server: &Arc<Server>, entry: &Arc<Entry>) -> ApiResult<()> {
    let name = &entry.key.name;
    let is_served = server.cluster(name).is_some();
    if is_served && encoding::read_entry(entry)["status"]["phase"] == READY {
        return Ok(());
    }
    let cluster = server.add_cluster(name);
    bootstrap(server, &cluster).await?;
    let status = json!({"phase": READY, "path": format!("/clusters/{name}")});
    own::amend_at(server, &resource(), entry, |object| object["status"] = status).await?;
    Ok(())
}

/// The row of logical clusters as requests know it.
pub(crate) fn row(server: &Server) -> Arc<Resource> {
    let first = server.cluster("").expect("the first cluster is always there");
    let registry = first.registry();
    let row = registry.get("convoy.dev", "v1", "logicalclusters");
    Arc::clone(row.expect("the first cluster has it from the beginning"))
}
