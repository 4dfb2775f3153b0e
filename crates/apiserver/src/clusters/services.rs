//! `APIService` objects: one for each group and version, as some clients learn by them what is
//! served.
//!
//! They are stored like any other object, so that lists and watches of them need nothing of
//! their own; [`keep`] brings them in line with the registry.

use std::collections::BTreeMap;

use convoy_store::{Expect, Transaction, Write};
use serde_json::{Value, json};

use crate::discovery::order::priority;
use crate::encoding::stored;
use crate::kinds::api_service::AVAILABLE;
use crate::registry::Registry;
use crate::server::{Cluster, Server};
use crate::status::ApiResult;
use crate::surroundings::{new_uid, seconds};

/// Says who keeps an object: we do, unless it is absent.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// Writes the objects that are missing and removes those of versions no longer served.
pub(crate) async fn keep(server: &Server, cluster: &Cluster) -> ApiResult<()> {
    loop {
        let writes = changes(server, cluster);
        if writes.is_empty() || server.commit(Transaction::new(writes)).await?.is_some() {
            return Ok(());
        }
        // Somebody changed one of them meanwhile: look again.
    }
}

/// What to write for that.
pub(crate) fn changes(
    server: &Server,
    cluster: &Cluster,
) -> Vec<Write<crate::object_meta::ObjectMeta>> {
    let registry = cluster.registry();
    let resource = registry.get("apiregistration.k8s.io", "v1", "apiservices");
    let shelf = cluster.shelf(resource.expect("a built-in resource"));
    let snapshot = server.store.snapshot();
    let mut wanted = wanted(&registry);
    let mut writes = Vec::new();
    for entry in snapshot.list(&shelf) {
        let is_ours = entry.meta.label(AUTOMANAGED).is_some();
        if wanted.remove(entry.key.name.as_str()).is_none() && is_ours {
            writes.push(Write::delete(entry.key.clone(), entry.modified));
        }
    }
    let now = seconds(server.now());
    for (name, (label, spec)) in wanted {
        let uid = new_uid(&*server.surroundings);
        let object = json!({
            "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
            "metadata": {
                "name": name, "uid": uid, "creationTimestamp": now, "labels": {AUTOMANAGED: label},
            },
            "spec": spec,
            "status": {"conditions": [{
                "type": AVAILABLE, "status": "True", "lastTransitionTime": now,
                "reason": "Local", "message": "Local APIServices are always available",
            }]},
        });
        writes.push(Write::put(shelf.key("", &name), Expect::Absent, stored(&object)));
    }
    writes
}

/// What there shall be, by name: the label's value and the spec.
fn wanted(registry: &Registry) -> BTreeMap<String, (&'static str, Value)> {
    let mut wanted = BTreeMap::new();
    for (group, versions) in registry.groups() {
        // Upstream does not list the group that these objects themselves are in.
        for version in versions.into_iter().filter(|_| group != "apiregistration.k8s.io") {
            let resources = registry.group_version(group, version);
            let is_custom =
                resources.is_some_and(|all| all.values().any(|resource| resource.custom.is_some()));
            let label = if is_custom { "true" } else { "onstart" };
            let mut spec = json!({
                "group": group, "version": version, "groupPriorityMinimum": priority(group),
                "versionPriority": if is_custom { 100 } else { version_priority(group, version) },
            });
            if let (true, Value::Object(fields)) = (group.is_empty(), &mut spec) {
                fields.shift_remove("group");
            }
            wanted.insert(format!("{version}.{group}"), (label, spec));
        }
    }
    wanted
}

fn version_priority(group: &str, version: &str) -> u32 {
    match (group, version) {
        ("", _) => 1,
        ("autoscaling", "v2") => 30,
        ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", _) => 21,
        _ => 15,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::builtin;

    #[test]
    fn each_group_and_version_has_one() {
        let wanted = wanted(builtin());
        let (label, core) = &wanted["v1."];
        assert_eq!(*label, "onstart");
        let expected =
            json!({"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1});
        assert_eq!(*core, expected);
        assert_eq!(wanted["v2.autoscaling"].1["versionPriority"], 30);
        assert!(!wanted.contains_key("v1.apiregistration.k8s.io"));
    }
}
