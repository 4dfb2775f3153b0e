//! Initial objects of every logical cluster: namespaces, roles and bindings, the Service of the
//! server. Bootstrapping again at each start adds missing objects and leaves the others alone.

mod objects;
mod roles;
mod template;

use std::sync::Arc;

use convoy_store::Transaction;

use super::{roles as sums, services};
use crate::object_meta::ObjectMeta;
use crate::server::{Cluster, Server};
use crate::status::ApiResult;
use template::{Stamp, Template};

/// Brings a logical cluster to what it begins with, in one transaction.
pub async fn bootstrap(server: &Arc<Server>, cluster: &Arc<Cluster>) -> ApiResult<()> {
    let own = objects::of_cluster(server.access.endpoint, &server.access.authority);
    let own: Vec<Template> = own.iter().map(Template::of).collect();
    let is_new = !server.store.snapshot().shelves().any(|shelf| shelf.cluster == cluster.name);
    settle(server, cluster, &[roles::templates(), &own], || services::changes(server, cluster))
        .await?;
    if is_new {
        return Ok(());
    }
    // A crash may have come between a role and the sums that it is a part of.
    sums::settle(server, cluster).await
}

/// Gives a namespace what every namespace has: an account for its pods, and the certificates
/// that they trust this server by.
pub async fn furnish(
    server: &Arc<Server>,
    cluster: &Arc<Cluster>,
    namespace: &str,
) -> ApiResult<()> {
    let own = objects::of_namespace(namespace, &server.access.authority);
    let own: Vec<Template> = own.iter().map(Template::of).collect();
    settle(server, cluster, &[&own], Vec::new).await
}

/// Writes what is missing and what else belongs to it, in one transaction, and again if somebody
/// else wrote meanwhile.
async fn settle(
    server: &Arc<Server>,
    cluster: &Arc<Cluster>,
    templates: &[&[Template]],
    others: impl Fn() -> Vec<convoy_store::Write<ObjectMeta>>,
) -> ApiResult<()> {
    loop {
        let snapshot = server.store.snapshot();
        let stamp = Stamp { surroundings: &*server.surroundings, now: server.now() };
        let writes = templates.iter().copied().flatten().filter_map(|template| {
            let key = template.key(&cluster.name);
            template.write(snapshot.get(&key).map(|entry| &**entry), key, &stamp)
        });
        let writes: Vec<convoy_store::Write<ObjectMeta>> = writes.chain(others()).collect();
        if writes.is_empty() || server.commit(Transaction::new(writes)).await?.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
