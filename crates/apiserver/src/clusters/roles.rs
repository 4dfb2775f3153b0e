//! Cluster roles that are the sum of others, brought up to date at once with every change of a
//! cluster role, so that nobody ever sees them out of date.

use std::sync::Arc;

use convoy_store::Transaction;
use serde_json::json;

use crate::access::aggregate::changed_sums;
use crate::access::index::GROUP;
use crate::convert::stored_form;
use crate::encoding;
use crate::form;
use crate::server::{Cluster, Server};
use crate::status::ApiResult;

/// Writes the rules of all sums that changed.
pub(crate) async fn settle(server: &Arc<Server>, cluster: &Arc<Cluster>) -> ApiResult<()> {
    let registry = cluster.registry();
    let resource = registry.get(GROUP, "v1", "clusterroles").expect("a built-in resource");
    loop {
        let changed = server.guard(cluster).look_up(changed_sums);
        let mut lost_race = false;
        for (name, rules) in changed {
            let key = cluster.shelf(resource).key("", &name);
            let snapshot = server.store.snapshot();
            let Some(entry) = snapshot.get(&key) else { continue };
            let mut role = encoding::read_entry(entry);
            role["rules"] = json!(rules);
            crate::canonical::canonicalise(form::shape_of(resource), &mut role);
            let value = stored_form(resource, &role);
            let transaction = Transaction::update(key, entry.modified, value);
            lost_race |= server.commit(transaction).await?.is_none();
        }
        if !lost_race {
            return Ok(());
        }
    }
}
