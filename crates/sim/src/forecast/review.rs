//! What an API server makes of manifests: defaults, identities, and refusals in its own words.

use convoy_api::kinds::CUSTOM_RESOURCE_DEFINITION;
use convoy_api::schema::crds;
use convoy_api::{Object, ObjectKey};
use convoy_controllers::request::Request;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::ForecastError;
use crate::seed::Seed;
use crate::simulation::cluster::{Author, Cluster, ServerKind};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// An API server that sees one manifest after the other. Started when the first one comes.
#[derive(Debug)]
pub(super) struct Review {
    server: Option<Cluster>,
    start: Timestamp,
}

impl Review {
    pub(super) fn new(start: Timestamp) -> Self {
        Self { server: None, start }
    }

    /// Takes in the definition of a kind, so that objects of it are known.
    pub(super) fn define(&mut self, definition: &Object) {
        let mut manifest = definition.raw().clone();
        manifest["metadata"] = json!({"name": definition.name()});
        let server = self.server();
        server.send(&Request::create(DEFINITIONS, manifest), Author::Person);
        server.collect_garbage();
    }

    fn server(&mut self) -> &mut Cluster {
        let start = self.start;
        self.server.get_or_insert_with(|| Cluster::new(ServerKind::Real, Seed::new(0), start))
    }

    /// The manifest as the server stores it.
    pub(super) fn of(&mut self, object: &Object, key: &ObjectKey) -> Result<Value, ForecastError> {
        let refused = |message: String| ForecastError::Refused { object: key.to_string(), message };
        let server = self.server();
        let namespace = &key.namespace;
        if !namespace.is_empty() {
            let body = json!({"metadata": {"name": namespace}});
            server.send(&Request::create("/api/v1/namespaces", body), Author::Person);
        }
        let collection = object.key().collection();
        if server.resource(&collection).is_none() {
            install(server, &object.kind().group);
        }
        let Some(mut resource) = server.resource(&collection) else {
            return Err(refused("its kind is not defined; give its definition too".to_owned()));
        };
        if *object.kind() == CUSTOM_RESOURCE_DEFINITION {
            let stored = server.get(&format!("{DEFINITIONS}/{}", key.name));
            if !stored.is_null() {
                return Ok(stored);
            }
        }
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

/// Defines the kinds of the dialect that has this group, if one has.
fn install(server: &mut Cluster, group: &str) {
    for dialect in ["skyhook", "karpenter", "fleet", "ocm"] {
        let definitions = crds(dialect).unwrap_or_default();
        if definitions.iter().any(|definition| definition.spec.group == group) {
            for definition in definitions {
                server.send(&Request::create(DEFINITIONS, json!(definition)), Author::Person);
            }
            server.collect_garbage();
        }
    }
}
