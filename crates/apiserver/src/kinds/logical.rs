//! `LogicalClusters`: API servers of their own within this process.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::definition;
use super::kind::{Consequence, Kind};
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;

/// Holds a logical cluster until everything in it is gone.
pub(crate) const CLEANUP: &str = "convoy.dev/cluster-content";

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

pub(super) struct LogicalCluster;

impl Kind for LogicalCluster {
    fn prepare_create(&self, _request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        prepare_create(object);
        Ok(())
    }

    fn mark_deleting(&self, object: &mut Value) {
        object["status"]["phase"] = json!("Terminating");
    }

    fn consequence(&self) -> Option<Consequence> {
        Some(Consequence::ServeCluster)
    }
}
