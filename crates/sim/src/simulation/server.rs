//! The interface of the simulated API servers: requests in, responses and writes out.

use std::collections::BTreeSet;
use std::fmt;

use convoy_api::{GroupKind, Object};
use convoy_controllers::response::Response;
use convoy_store::Change;
use jiff::Timestamp;

use crate::fleet::send::HttpParts;
use crate::shared_object::SharedObject;

/// The path of a request to a cluster; the home cluster's name is empty.
pub fn path_in(cluster: &str, path: &str) -> String {
    if cluster.is_empty() { path.to_owned() } else { format!("/clusters/{cluster}{path}") }
}

/// A simulated API server.
pub(super) trait Server: fmt::Debug {
    fn send(&mut self, parts: &HttpParts<'_>, now: Timestamp) -> ServerResponse;

    /// The namespaced kinds of a cluster.
    fn namespaced_kinds(&mut self, cluster: &str) -> BTreeSet<GroupKind>;

    /// Collects garbage.
    fn collect_garbage(&mut self, now: Timestamp);

    /// The writes since the last call, in order.
    fn written(&mut self) -> Vec<Written>;
}

/// A write as a server reports it.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) revision: u64,
    pub(super) change: Change,
    pub(super) object: Object,
}

/// The response of a simulated server; the body is shared, not copied.
#[derive(Debug)]
pub(crate) struct ServerResponse {
    pub(crate) code: u16,
    pub(crate) body: SharedObject,
}

impl From<ServerResponse> for Response {
    fn from(ServerResponse { code, body }: ServerResponse) -> Self {
        Self { code, retry_after: None, body: body.into() }
    }
}
