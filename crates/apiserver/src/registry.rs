//! The one table of kinds: every route, list, patch and table asks it, so a kind is a row and
//! never a special case.

mod builtin;

use std::collections::BTreeMap;
use std::sync::Arc;

use smol_str::{SmolStr, format_smolstr};

use crate::custom::Custom;

pub use builtin::builtin;

/// One served version of one resource.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Empty for the core group.
    pub group: SmolStr,
    pub version: SmolStr,
    pub plural: SmolStr,
    pub singular: SmolStr,
    pub kind: SmolStr,
    pub list_kind: SmolStr,
    pub namespaced: bool,
    pub short_names: Vec<SmolStr>,
    pub categories: Vec<SmolStr>,
    /// Sorted, in Kubernetes' spelling.
    pub verbs: Vec<SmolStr>,
    pub subresources: Vec<Subresource>,
    /// `metadata.generation` counts changes of the wanted state.
    pub has_generation: bool,
    /// PUT on an absent name creates it.
    pub put_creates: bool,
    /// PUT without a resourceVersion is refused.
    pub put_needs_version: bool,
    /// A deletion that is done at once answers with the object.
    pub delete_returns_object: bool,
    /// The shelf of the store, shared by all versions and spellings of one resource.
    pub shelf: SmolStr,
    /// What the resource's definition says, if it is a custom one.
    pub custom: Option<Arc<Custom>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    pub name: SmolStr,
    /// The kind that it takes and gives, if it is another than the resource's own.
    pub kind: Option<SmolStr>,
}

/// The kinds of one logical cluster, by group, version and plural. Replaced as a whole when a
/// definition changes.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    resources: BTreeMap<(SmolStr, SmolStr), BTreeMap<SmolStr, Arc<Resource>>>,
}

impl Resource {
    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> SmolStr {
        api_version(&self.group, &self.version)
    }

    /// `deployments.apps`; the plural alone in the core group.
    pub fn qualified(&self) -> SmolStr {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format_smolstr!("{}.{}", self.plural, self.group)
        }
    }

    /// `Deployment.apps`: how messages of refusal begin.
    pub fn qualified_kind(&self) -> SmolStr {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format_smolstr!("{}.{}", self.kind, self.group)
        }
    }

    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|subresource| subresource.name == name)
    }

    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }
}

impl Registry {
    pub fn insert(&mut self, resource: Resource) {
        let place = (resource.group.clone(), resource.version.clone());
        self.resources
            .entry(place)
            .or_default()
            .insert(resource.plural.clone(), Arc::new(resource));
    }

    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.group_version(group, version)?.get(plural)
    }

    /// The resources of one group and version, by plural.
    pub fn group_version(
        &self,
        group: &str,
        version: &str,
    ) -> Option<&BTreeMap<SmolStr, Arc<Resource>>> {
        self.resources.get(&(SmolStr::new(group), SmolStr::new(version)))
    }

    /// The resource that serves a kind.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = split_api_version(api_version);
        let mut resources = self.group_version(group, version)?.values();
        resources.find(|resource| resource.kind == kind)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values().flat_map(BTreeMap::values)
    }

    /// Each stored resource once, whatever number of versions serves it.
    pub fn stored(&self) -> Vec<&Arc<Resource>> {
        let mut stored: BTreeMap<&SmolStr, &Arc<Resource>> = BTreeMap::new();
        for resource in self.iter().filter(|resource| resource.has_verb("list")) {
            stored.entry(&resource.shelf).or_insert(resource);
        }
        stored.into_values().collect()
    }

    /// Groups with their versions, the preferred one first. The core group is named "".
    pub fn groups(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (group, version) in self.resources.keys() {
            groups.entry(group).or_default().push(version);
        }
        for versions in groups.values_mut() {
            versions.sort_by(|a, b| version_order(b).cmp(&version_order(a)));
        }
        groups
    }
}

pub fn api_version(group: &str, version: &str) -> SmolStr {
    if group.is_empty() { SmolStr::new(version) } else { format_smolstr!("{group}/{version}") }
}

/// Group and version of an `apiVersion`.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.rsplit_once('/').unwrap_or(("", api_version))
}

/// Sorts versions as Kubernetes does: stable over beta over alpha, then by number; names of
/// other forms come last, in alphabetical order.
pub fn version_order(version: &str) -> (u8, u64, u64, std::cmp::Reverse<&str>) {
    let parsed = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: u64 = rest[..digits].parse().ok()?;
        let stage = &rest[digits..];
        if stage.is_empty() {
            return Some((3, major, 0));
        }
        let (rank, minor) = match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
            (Some(minor), _) => (2, minor),
            (_, Some(minor)) => (1, minor),
            _ => return None,
        };
        Some((rank, major, minor.parse().ok()?))
    };
    match parsed() {
        Some((rank, major, minor)) => (rank, major, minor, std::cmp::Reverse("")),
        None => (0, 0, 0, std::cmp::Reverse(version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_does() {
        let mut versions = [
            "v1beta1",
            "foo10",
            "v2",
            "v1",
            "v11alpha2",
            "v10beta3",
            "foo1",
            "v3beta1",
            "v12alpha1",
        ];
        versions.sort_by(|a, b| version_order(b).cmp(&version_order(a)));
        let expected = [
            "v2",
            "v1",
            "v10beta3",
            "v3beta1",
            "v1beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
        ];
        assert_eq!(versions, expected);
    }

    #[test]
    fn the_preferred_version_is_first() {
        let registry = builtin();
        assert_eq!(registry.groups()["autoscaling"], ["v2", "v1"]);
        assert_eq!(registry.of_kind("apps/v1", "Deployment").unwrap().plural, "deployments");
    }
}
