//! A request for a resource, with everything that the handler of its verb needs.

use std::sync::Arc;

use bytes::Bytes;
use convoy_store::Key;
use serde_json::Value;
use smol_str::SmolStr;

use crate::accept::Accept;
use crate::access::Guard;
use crate::caller::Caller;
use crate::convert;
use crate::custom::Custom;
use crate::encoding::{self, View};
use crate::findings::Findings;
use crate::object_meta::Entry;
use crate::query::Query;
use crate::registry::{Registry, Resource};
use crate::request_info::{Target, Verb};
use crate::server::{Cluster, Server};
use crate::status::{ApiResult, Status};

/// An authorized request for a resource that exists. It does not change once it is made.
#[derive(Debug)]
pub struct ResourceRequest {
    pub server: Arc<Server>,
    pub cluster: Arc<Cluster>,
    /// The kinds that were served when the request arrived.
    pub registry: Arc<Registry>,
    pub resource: Arc<Resource>,
    pub verb: Verb,
    pub target: Target,
    pub query: Query,
    pub accept: Accept,
    pub caller: Caller,
    pub user_agent: String,
    pub content_type: String,
    pub body: Bytes,
    /// What is found out about it while it is carried out.
    pub(crate) findings: Findings,
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
            verb: Verb::default(),
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
            findings: Findings::default(),
        }
    }

    /// The same request with a verb, for which options and rules differ.
    pub(crate) fn with_verb(self, verb: Verb) -> Self {
        Self { verb, ..self }
    }

    /// The same request on a part of the object.
    pub(crate) fn on_part(self, subresource: &str) -> Self {
        let target = Target { subresource: SmolStr::new(subresource), ..self.target };
        Self { target, ..self }
    }

    /// The same request in the name of the caller of another one.
    pub(crate) fn on_behalf_of(self, other: &Self) -> Self {
        Self { caller: other.caller.clone(), user_agent: other.user_agent.clone(), ..self }
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
        self.findings.default_read(self.object_bytes_max(), custom, object)
    }

    fn converted(&self, entry: &Entry) -> Option<Value> {
        let custom = self.resource.custom.as_ref()?;
        custom.conversion.as_ref()?;
        self.findings.converted(entry)
    }

    pub fn warn(&self, text: impl Into<String>) {
        self.findings.warn(text.into());
    }

    /// Adds an annotation to the audit event.
    pub(crate) fn annotate(&self, key: &str, value: String) {
        self.findings.annotate(key, value);
    }

    /// Rejects verbs that the resource or subresource does not support.
    pub fn check_verb(&self) -> ApiResult<()> {
        let is_named = !self.target.name.is_empty();
        let is_misplaced = match self.verb {
            Verb::Create => is_named,
            Verb::Update | Verb::Patch => !is_named,
            _ => false,
        };
        match self.target.subresource.as_str() {
            "" if is_misplaced || !self.resource.has_verb(self.verb.as_str()) => {
                Err(Status::method_not_allowed())
            }
            "" => Ok(()),
            name if self.resource.has_subresource(name) => Ok(()),
            _ => Err(Status::no_such_route()),
        }
    }
}
