//! What an agent with a property provider reports about its member, beside nodes and resources.

use std::collections::BTreeMap;

use convoy_api::Object;
use smol_str::SmolStr;

use crate::dialect::fleet_agent::names::{
    APPLIED_WORK, CERTIFICATE_AUTHORITY, ENTRY_POINT, KUBERNETES_VERSION, PLACEMENT_API,
};

/// The most namespaces of a member that are reported.
const NAMESPACES_MAX: usize = 200;

/// What the agent found out about its member when it started, and what it collects there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertyProvider {
    /// Version of the API server; empty if it is not known.
    pub kubernetes_version: SmolStr,
    /// Address of the API server; empty if it is not known.
    pub server: SmolStr,
    /// Certificates, in PEM, by which clients know the API server; may be empty.
    pub certificate_authority: String,
    /// Whether the namespaces of the member are reported too.
    pub collects_namespaces: bool,
}

impl PropertyProvider {
    /// The properties that are known, with their values.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            (KUBERNETES_VERSION, self.kubernetes_version.as_str()),
            (ENTRY_POINT, self.server.as_str()),
            (CERTIFICATE_AUTHORITY, self.certificate_authority.as_str()),
        ];
        all.into_iter().filter(|(_, value)| !value.is_empty())
    }
}

/// The namespaces of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Namespaces {
    /// By name: the Work that made each, or nothing.
    pub(crate) works: BTreeMap<SmolStr, SmolStr>,
    /// Whether there are more than are reported.
    pub(crate) is_cut: bool,
}

/// The namespaces of a member that do not go, the oldest first as far as there is room.
pub(crate) fn namespaces<'w>(all: impl Iterator<Item = &'w Object>) -> Namespaces {
    let mut all: Vec<&Object> = all.filter(|namespace| !namespace.is_deleting()).collect();
    all.sort_by_key(|namespace| (namespace.created_at(), namespace.name()));
    let is_cut = all.len() > NAMESPACES_MAX;
    let kept = all.into_iter().take(NAMESPACES_MAX);
    Namespaces { works: kept.map(|it| (it.name().clone(), work_of(it))).collect(), is_cut }
}

/// The Work that an object belongs to; empty if it is nobody's.
fn work_of(object: &Object) -> SmolStr {
    let mut works = object.owners().filter(|owner| {
        owner.kind == APPLIED_WORK.kind.as_str() && owner.api_version == PLACEMENT_API
    });
    works.next().map(|owner| SmolStr::new(owner.name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn namespace(name: &str, created: &str, owner: &str) -> Object {
        let owners = json!([{"apiVersion": PLACEMENT_API, "kind": owner, "name": "web-work",
            "uid": "1"}]);
        Object::from_value(json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "creationTimestamp": created, "ownerReferences": owners}}))
        .unwrap()
    }

    #[test]
    fn a_namespace_is_reported_with_its_work_until_it_goes() {
        let mut going = namespace("going", "2026-01-01T00:00:00Z", "AppliedWork").raw().clone();
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
        let all = [
            namespace("shop", "2026-01-01T00:00:00Z", "AppliedWork"),
            namespace("kube-system", "2026-01-01T00:00:00Z", "Other"),
            Object::from_value(going).unwrap(),
        ];
        let found = namespaces(all.iter());
        let expected = [("kube-system".into(), "".into()), ("shop".into(), "web-work".into())];
        assert_eq!(found, Namespaces { works: expected.into(), is_cut: false });
    }

    #[test]
    fn the_oldest_are_kept_when_there_are_too_many() {
        let old = |number: usize| namespace(&format!("old-{number}"), "2025-01-01T00:00:00Z", "");
        let young = namespace("a-young-one", "2026-01-01T00:00:00Z", "");
        let mut all: Vec<Object> = (0..NAMESPACES_MAX - 1).map(old).collect();
        all.push(young);
        assert!(!namespaces(all.iter()).is_cut);
        all.push(old(NAMESPACES_MAX));
        let found = namespaces(all.iter());
        assert!(found.is_cut && found.works.len() == NAMESPACES_MAX);
        assert!(!found.works.contains_key("a-young-one"));
    }
}
