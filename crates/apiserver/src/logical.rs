//! Logical clusters: API servers of their own within this process, each made by a
//! `LogicalCluster` of the first one and gone with it.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::bootstrap::bootstrap;
use crate::definition;
use crate::encoding;
use crate::object_meta::Entry;
use crate::own;
use crate::registry::Resource;
use crate::server::Server;
use crate::status::ApiResult;

/// Holds a logical cluster until everything in it is gone.
pub(crate) const CLEANUP: &str = "convoy.dev/cluster-content";

/// The phase of a cluster that has all it begins with.
const READY: &str = "Ready";

/// Where logical clusters are kept.
pub(crate) const SHELF: &str = "convoy.dev/logicalclusters";

/// The row of logical clusters, in the first cluster only.
pub(crate) fn resource() -> Resource {
    static ROW: LazyLock<Resource> = LazyLock::new(|| {
        let definition: Value = serde_json::from_str(include_str!("logical/definition.json"))
            .expect("the file is JSON of our own");
        definition::storage_resource(&definition).expect("it names its storage version")
    });
    ROW.clone()
}

pub(crate) fn is_logical_cluster(resource: &Resource) -> bool {
    resource.is("convoy.dev", "logicalclusters")
}

/// A new cluster is held until its content can go with it.
pub(crate) fn prepare_create(object: &mut Value) {
    let metadata = crate::metadata::of(object);
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|known| known == CLEANUP)
    {
        finalizers.push(json!(CLEANUP));
    }
}

/// Serves every cluster that the store holds: at start, before any request.
pub(crate) fn load(server: &Server) {
    let first = server.cluster("").expect("the first cluster is always there");
    definition::load(server, &first);
    let snapshot = server.store.snapshot();
    for entry in snapshot.list(&first.shelf(&resource())) {
        if !entry.meta.is_deleting() {
            let cluster = server.add_cluster(&entry.key.name);
            definition::load(server, &cluster);
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
