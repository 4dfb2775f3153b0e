//! Discovery: version, plural and scope of the kinds that dialects name. A kind that is served is
//! looked up once; one that is not is looked up again.

use std::collections::BTreeMap;
use std::sync::Mutex;

use convoy_api::GroupKind;
use kube::Client;
use serde_json::Value;

use crate::request::Resource;
use crate::transport::{self, TransportError};

/// The resources found so far.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    known: Mutex<BTreeMap<GroupKind, Resource>>,
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
        client: &Client,
        kind: &GroupKind,
    ) -> Result<Option<Resource>, DiscoveryError> {
        let known = self.known.lock().expect("nothing panics while it is held").get(kind).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let found = discover(client, kind).await?;
        if let Some(found) = &found {
            let mut known = self.known.lock().expect("nothing panics while it is held");
            known.insert(kind.clone(), found.clone());
        }
        Ok(found)
    }

    /// Looks the kind up again next time: its resource is gone.
    pub(crate) fn forget(&self, kind: &GroupKind) {
        self.known.lock().expect("nothing panics while it is held").remove(kind);
    }
}

async fn discover(client: &Client, kind: &GroupKind) -> Result<Option<Resource>, DiscoveryError> {
    if kind.group.is_empty() {
        let Some(list) = get(client, "/api/v1".to_owned()).await? else { return Ok(None) };
        return Ok(find_resource(&list, kind, "v1"));
    }
    let Some(group) = get(client, format!("/apis/{}", kind.group)).await? else { return Ok(None) };
    for version in versions(&group) {
        let path = format!("/apis/{}/{version}", kind.group);
        let Some(list) = get(client, path).await? else { continue };
        if let Some(found) = find_resource(&list, kind, &version) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

async fn get(client: &Client, path: String) -> Result<Option<Value>, DiscoveryError> {
    let response = transport::read(client, path).await?;
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
}
