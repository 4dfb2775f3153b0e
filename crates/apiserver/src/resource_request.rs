//! A request for a resource, with everything that the handler of its verb needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use convoy_api::size::SizeBudget;
use convoy_store::{Key, Revision};
use parking_lot::Mutex;
use serde_json::Value;
use smol_str::SmolStr;

use crate::accept::Accept;
use crate::access::Guard;
use crate::caller::Caller;
use crate::convert;
use crate::custom::Custom;
use crate::encoding::{self, View};
use crate::growth;
use crate::object_meta::Entry;
use crate::query::Query;
use crate::registry::{Registry, Resource};
use crate::request_info::Target;
use crate::server::{Cluster, Server};
use crate::status::{ApiResult, Status};

/// An authorized request for a resource that exists.
#[derive(Debug)]
pub struct ResourceRequest {
    pub server: Arc<Server>,
    pub cluster: Arc<Cluster>,
    /// The kinds that were served when the request arrived.
    pub registry: Arc<Registry>,
    pub resource: Arc<Resource>,
    pub verb: SmolStr,
    pub target: Target,
    pub query: Query,
    pub accept: Accept,
    pub caller: Caller,
    pub user_agent: String,
    pub content_type: String,
    pub body: Bytes,
    pub(crate) warnings: Mutex<Vec<String>>,
    /// Annotations of the audit event, by key.
    pub(crate) annotations: Mutex<Vec<(String, String)>>,
    /// Objects that a webhook has converted for this request, by key and revision.
    pub(crate) converted: Mutex<BTreeMap<(Key, Revision), Value>>,
    /// What the objects that it reads may still grow by.
    pub(crate) growth: Mutex<SizeBudget>,
}

impl ResourceRequest {
    /// A request of one of the server's own controllers.
    pub(crate) fn internal(
        server: &Arc<Server>,
        cluster: &Arc<Cluster>,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
    ) -> Self {
        Self {
            server: Arc::clone(server),
            cluster: Arc::clone(cluster),
            registry: cluster.registry(),
            resource: Arc::clone(resource),
            verb: SmolStr::default(),
            target: Target {
                group: resource.group.clone(),
                version: resource.version.clone(),
                namespace: SmolStr::new(namespace),
                resource: resource.plural.clone(),
                name: SmolStr::new(name),
                ..Target::default()
            },
            query: Query::default(),
            accept: Accept::default(),
            caller: Caller::server(),
            user_agent: "convoy".to_owned(),
            content_type: String::new(),
            body: Bytes::new(),
            warnings: Mutex::default(),
            annotations: Mutex::default(),
            converted: Mutex::default(),
            growth: Mutex::new(growth::of_reads()),
        }
    }

    /// Access to the logical cluster of the request.
    pub(crate) fn guard(&self) -> Guard<'_> {
        self.server.guard(&self.cluster)
    }

    pub fn namespace(&self) -> &str {
        if self.resource.namespaced { &self.target.namespace } else { "" }
    }

    /// The key of the named object, whether or not it exists.
    pub fn key(&self, name: &str) -> Key {
        self.cluster.shelf(&self.resource).key(self.namespace(), name)
    }

    /// How this request sees stored bytes: in the version that it names.
    pub fn view(&self) -> View<'_> {
        let custom = self.resource.custom.as_deref();
        View { api_version: custom.map(|custom| &*custom.api_version), bare: false }
    }

    /// Whether the stored bytes can be served to this request unchanged.
    pub fn shows_as_stored(&self, entry: &Entry) -> bool {
        match &self.resource.custom {
            Some(custom) => {
                custom.has_defaults_at(entry.modified)
                    && custom.is_in_version(entry)
                    && !convert::differs_from_stored(&self.resource)
            }
            None => !convert::differs_from_stored(&self.resource),
        }
    }

    /// An object as this request sees it: in its version, with defaults that came later.
    pub fn read(&self, entry: &Entry) -> Value {
        if let Some(converted) = self.converted(entry) {
            return converted;
        }
        let mut object = encoding::read_entry(entry);
        convert::from_stored(&self.resource, &mut object);
        if let Some(custom) = &self.resource.custom
            && !custom.has_defaults_at(entry.modified)
            && !self.default_read(custom, &mut object)
        {
            self.warn(
                "some objects are too large for the defaults that their schema got later: these \
                 are shown without them",
            );
            object = encoding::read_entry(entry);
            convert::from_stored(&self.resource, &mut object);
        }
        object
    }

    /// The most bytes of one object.
    pub(crate) fn object_bytes_max(&self) -> usize {
        self.server.limits.body_bytes_max
    }

    /// Fills in defaults of an object that was read; false if some are missing, since it would
    /// be too large with them.
    pub(crate) fn default_read(&self, custom: &Custom, object: &mut Value) -> bool {
        growth::default_read(self.object_bytes_max(), &mut self.growth.lock(), custom, object)
    }

    fn converted(&self, entry: &Entry) -> Option<Value> {
        let custom = self.resource.custom.as_ref()?;
        custom.conversion.as_ref()?;
        self.converted.lock().get(&(entry.key.clone(), entry.modified)).cloned()
    }

    pub(crate) fn has_converted(&self, entry: &Entry) -> bool {
        self.converted.lock().contains_key(&(entry.key.clone(), entry.modified))
    }

    pub(crate) fn keep_converted(&self, entry: &Entry, object: Value) {
        self.converted.lock().insert((entry.key.clone(), entry.modified), object);
    }

    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.warnings.lock();
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// Adds an annotation to the audit event.
    pub(crate) fn annotate(&self, key: &str, value: String) {
        self.annotations.lock().push((key.to_owned(), value));
    }

    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock())
    }

    /// Rejects verbs that the resource or subresource does not support.
    pub fn check_verb(&self) -> ApiResult<()> {
        let is_named = !self.target.name.is_empty();
        let is_misplaced = match self.verb.as_str() {
            "create" => is_named,
            "update" | "patch" => !is_named,
            _ => false,
        };
        match self.target.subresource.as_str() {
            "" if is_misplaced || !self.resource.has_verb(&self.verb) => {
                Err(Status::method_not_allowed())
            }
            "" => Ok(()),
            name if self.resource.has_subresource(name) => Ok(()),
            _ => Err(Status::no_such_route()),
        }
    }
}
