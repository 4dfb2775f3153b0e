//! The logical clusters of a server: what each begins with, and what is kept up to date in it with
//! every write.

pub mod bootstrap;
pub(crate) mod definitions;
pub(crate) mod logical;
mod roles;
pub(crate) mod services;

use std::sync::Arc;

use crate::kinds::{self, Consequence};
use crate::limits::Limits;
use crate::object_meta::{Entry, Store};
use crate::resource_request::ResourceRequest;
use crate::server::Server;
use crate::status::ApiResult;
use crate::surroundings::Surroundings;

impl Server {
    /// Serves the clusters that the store holds.
    pub fn new(store: Store, surroundings: Arc<dyn Surroundings>, limits: Limits) -> Self {
        let server = Self::without_clusters(store, surroundings, limits);
        logical::load(&server);
        server
    }
}

/// Carries out what follows from a write at once.
pub(crate) async fn after_write(request: &ResourceRequest, entry: &Arc<Entry>) -> ApiResult<()> {
    match kinds::of(&request.resource).consequence() {
        Some(Consequence::ServeCluster) if entry.meta.is_deleting() => Ok(()),
        Some(Consequence::ServeCluster) => logical::serve(&request.server, entry).await,
        Some(other) => carry_out(request, other, entry).await,
        None => Ok(()),
    }
}

/// Carries out what follows from a removal at once.
pub(crate) async fn after_delete(request: &ResourceRequest, entry: &Entry) -> ApiResult<()> {
    match kinds::of(&request.resource).consequence() {
        Some(consequence) => carry_out(request, consequence, entry).await,
        None => Ok(()),
    }
}

async fn carry_out(
    request: &ResourceRequest,
    consequence: Consequence,
    entry: &Entry,
) -> ApiResult<()> {
    let (server, cluster) = (&request.server, &request.cluster);
    match consequence {
        Consequence::SumRoles => roles::settle(server, cluster).await,
        Consequence::ServeKinds => definitions::refresh(server, cluster, &entry.key.name).await,
        // One that goes is taken down when nothing is left in it.
        Consequence::ServeCluster => Ok(()),
    }
}
