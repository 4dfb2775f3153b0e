//! What an API server makes of manifests: defaults, identities, and refusals in its own words.

use std::collections::BTreeSet;

use convoy_api::schema::crds;
use convoy_api::{Object, ObjectKey};
use convoy_controllers::request::Request;
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::ForecastError;
use crate::seed::Seed;
use crate::simulation::cluster::{Author, Cluster, ServerKind};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// An API server that sees one manifest after the other. Started when the first one comes.
#[derive(Debug)]
pub(super) struct Review {
    server: Option<Cluster>,
    namespaces: BTreeSet<SmolStr>,
    start: Timestamp,
}

impl Review {
    pub(super) fn new(start: Timestamp) -> Self {
        Self { server: None, namespaces: BTreeSet::from(["default".into()]), start }
    }

    /// The manifest as the server stores it.
    pub(super) fn of(&mut self, object: &Object, key: &ObjectKey) -> Result<Value, ForecastError> {
        let refused = |message: String| ForecastError::Refused { object: key.to_string(), message };
        let server = self.server.get_or_insert_with(|| server(self.start));
        let namespace = &key.namespace;
        if !namespace.is_empty() && self.namespaces.insert(namespace.clone()) {
            let body = json!({"metadata": {"name": namespace}});
            server.send(&Request::create("/api/v1/namespaces", body), Author::Person);
        }
        let Some(mut resource) = server.resource(&object.key().collection()) else {
            return Err(refused("the kind is not served".to_owned()));
        };
        object.version().clone_into(&mut resource.version);
        let mut manifest = object.raw().clone();
        if let Some(metadata) = manifest["metadata"].as_object_mut() {
            for field in ["uid", "resourceVersion", "deletionTimestamp", "ownerReferences"] {
                metadata.shift_remove(field);
            }
        }
        // Nothing is stored: the same object may come again, with other content.
        let mut request = Request::create(&resource.collection(namespace), manifest);
        request.path.push_str("&dryRun=All");
        let response = server.send(&request, Author::Person);
        if !response.is_success() {
            return Err(refused(response.message()));
        }
        Ok(response.body)
    }
}

/// A server with the definitions of the dialects.
fn server(start: Timestamp) -> Cluster {
    let mut server = Cluster::new(ServerKind::Real, Seed::new(0), start);
    for definition in ["skyhook", "karpenter"].into_iter().filter_map(crds).flatten() {
        server.send(&Request::create(DEFINITIONS, json!(definition)), Author::Person);
    }
    server.collect_garbage();
    server
}
