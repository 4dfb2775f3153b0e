//! Discovery: version, plural and scope of the kinds that dialects name. A kind that is served is
//! looked up once; one that is not is looked up again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use convoy_api::GroupKind;
use serde_json::Value;
use smol_str::SmolStr;

use crate::clusters::Cluster;
use crate::request::Resource;
use crate::transport::{self, TransportError};

/// The resources of one cluster found so far.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    known: BTreeMap<GroupKind, Resource>,
    /// The version that a watch asks for.
    preferred: BTreeMap<GroupKind, SmolStr>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoveryError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error("the server refused discovery: {message}")]
    Refused { message: String },
}

impl Discovery {
    /// The resource of `kind`; `None` if the server does not serve it.
    pub(crate) async fn find(
        &self,
        cluster: &Cluster,
        kind: &GroupKind,
    ) -> Result<Option<Resource>, DiscoveryError> {
        let (known, preferred) = {
            let state = self.state();
            (state.known.get(kind).cloned(), state.preferred.get(kind).cloned())
        };
        if known.is_some() {
            return Ok(known);
        }
        let found = discover(cluster, kind, preferred.as_deref()).await?;
        if let Some(found) = &found {
            self.state().known.insert(kind.clone(), found.clone());
        }
        Ok(found)
    }

    /// Objects of `kind` are read and written in this version, if the server has it. Empty: in
    /// the one that the server prefers.
    pub(crate) fn prefer(&self, kind: &GroupKind, version: &SmolStr) {
        let mut state = self.state();
        let known = state.preferred.get(kind).cloned().unwrap_or_default();
        if known != *version {
            state.preferred.insert(kind.clone(), version.clone());
            state.known.remove(kind);
        }
    }

    /// Looks the kind up again next time: its resource is gone.
    pub(crate) fn forget(&self, kind: &GroupKind) {
        self.state().known.remove(kind);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn discover(
    cluster: &Cluster,
    kind: &GroupKind,
    preferred: Option<&str>,
) -> Result<Option<Resource>, DiscoveryError> {
    if kind.group.is_empty() {
        let Some(list) = get(cluster, "/api/v1".to_owned()).await? else { return Ok(None) };
        return Ok(find_resource(&list, kind, "v1"));
    }
    let Some(group) = get(cluster, format!("/apis/{}", kind.group)).await? else {
        return Ok(None);
    };
    let mut versions = versions(&group);
    // The sort is stable: the others keep the server's order.
    versions.sort_by_key(|version| Some(version.as_str()) != preferred);
    for version in versions {
        let path = format!("/apis/{}/{version}", kind.group);
        let Some(list) = get(cluster, path).await? else { continue };
        if let Some(found) = find_resource(&list, kind, &version) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The namespaced kinds that a cluster serves and that can be watched, by group. The kinds of a
/// group that does not answer are those that were `known` of it: an extension that is away for a
/// while must not look like objects that are gone.
pub(crate) async fn namespaced_kinds(
    cluster: &Cluster,
    known: &BTreeMap<String, BTreeSet<GroupKind>>,
) -> Result<BTreeMap<String, BTreeSet<GroupKind>>, DiscoveryError> {
    let mut kinds = BTreeMap::new();
    let core = get(cluster, "/api/v1".to_owned()).await?.unwrap_or_default();
    kinds.insert(String::new(), watchable(&core, ""));
    let groups = get(cluster, "/apis".to_owned()).await?.unwrap_or_default();
    for group in groups["groups"].as_array().into_iter().flatten() {
        let name = group["name"].as_str().unwrap_or_default();
        match kinds_of_group(cluster, name, group).await {
            Ok(found) => _ = kinds.insert(name.to_owned(), found),
            Err(error) => {
                let why = transport::chain(&error);
                tracing::warn!(group = name, why, "an API group does not answer");
                kinds.extend(known.get(name).map(|kinds| (name.to_owned(), kinds.clone())));
            }
        }
    }
    Ok(kinds)
}

async fn kinds_of_group(
    cluster: &Cluster,
    name: &str,
    group: &Value,
) -> Result<BTreeSet<GroupKind>, DiscoveryError> {
    let mut kinds = BTreeSet::new();
    for version in versions(group) {
        let list = get(cluster, format!("/apis/{name}/{version}")).await?;
        kinds.extend(watchable(&list.unwrap_or_default(), name));
    }
    Ok(kinds)
}

/// The namespaced kinds in the resource list of a version that can be listed and watched.
pub fn watchable(list: &Value, group: &str) -> BTreeSet<GroupKind> {
    let resources = list["resources"].as_array().into_iter().flatten();
    let can = |resource: &Value, verb: &str| {
        resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|other| other == verb))
    };
    resources
        .filter(|resource| resource["namespaced"].as_bool() == Some(true))
        .filter(|resource| !resource["name"].as_str().unwrap_or("/").contains('/'))
        .filter(|resource| can(resource, "list") && can(resource, "watch"))
        .filter_map(|resource| resource["kind"].as_str())
        .map(|kind| GroupKind { group: SmolStr::new(group), kind: SmolStr::new(kind) })
        .collect()
}

async fn get(cluster: &Cluster, path: String) -> Result<Option<Value>, DiscoveryError> {
    let fetched = transport::fetch_within(&cluster.client, path, cluster.request_limit);
    let response = fetched.await?.read();
    match response.code {
        200 => Ok(Some(response.body)),
        404 => Ok(None),
        _ => Err(DiscoveryError::Refused { message: response.message() }),
    }
}

/// The versions of a group, the preferred one first.
pub fn versions(group: &Value) -> Vec<String> {
    let word = |value: &Value| value["version"].as_str().map(str::to_owned);
    let mut versions: Vec<String> = word(&group["preferredVersion"]).into_iter().collect();
    for version in group["versions"].as_array().into_iter().flatten().filter_map(word) {
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    versions
}

/// The resource of a kind in the resource list of a version.
pub fn find_resource(list: &Value, kind: &GroupKind, version: &str) -> Option<Resource> {
    let resources = list["resources"].as_array()?;
    let name = |resource: &Value| resource["name"].as_str().unwrap_or_default().to_owned();
    let found = resources.iter().find(|resource| {
        resource["kind"].as_str() == Some(&kind.kind) && !name(resource).contains('/')
    })?;
    let plural = name(found);
    let status = format!("{plural}/status");
    Some(Resource {
        group: kind.group.to_string(),
        version: version.to_owned(),
        has_status: resources.iter().any(|resource| name(resource) == status),
        namespaced: found["namespaced"].as_bool().unwrap_or(false),
        plural,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_preferred_version_goes_first() {
        let group = json!({"preferredVersion": {"version": "v1"},
            "versions": [{"version": "v1beta1"}, {"version": "v1"}]});
        assert_eq!(versions(&group), ["v1", "v1beta1"]);
    }

    #[test]
    fn a_kind_is_found_by_its_name_and_not_by_a_subresource() {
        let list = json!({"resources": [
            {"name": "deployments/scale", "kind": "Scale", "namespaced": true},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": true},
            {"name": "deployments", "kind": "Deployment", "namespaced": true},
        ]});
        let kind = GroupKind::new("apps", "Deployment");
        let found = find_resource(&list, &kind, "v1").unwrap();
        assert_eq!((found.plural.as_str(), found.namespaced), ("deployments", true));
        assert!(found.has_status);
        assert_eq!(find_resource(&list, &GroupKind::new("apps", "ReplicaSet"), "v1"), None);
    }

    #[test]
    fn kinds_that_can_be_watched_are_found_in_a_list() {
        let verbs = json!(["get", "list", "watch"]);
        let list = json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": verbs},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": true, "verbs": verbs},
            {"name": "nodes", "kind": "Node", "namespaced": false, "verbs": verbs},
            {"name": "reviews", "kind": "Review", "namespaced": true, "verbs": ["create"]},
        ]});
        let found: Vec<String> =
            watchable(&list, "apps").iter().map(|kind| kind.kind.to_string()).collect();
        assert_eq!(found, ["Deployment"]);
    }
}
