//! The registry of kinds: routes, lists, patches and tables are driven by it, so a kind is a row
//! and never a special case.

mod builtin;

use std::collections::BTreeMap;
use std::sync::Arc;

use smol_str::{SmolStr, format_smolstr};

use crate::custom::Custom;
use crate::status::Named;

pub use builtin::builtin;

/// One served version of one resource.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of upstream's table, each on its own")]
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
    /// An immediate deletion responds with the object.
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
///
/// What every cluster has is shared, so that a hundred of them cost no more than what their
/// definitions add.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    shared: Option<&'static Registry>,
    /// A group and version that stands here hides the shared one, whose resources it contains.
    own: BTreeMap<(SmolStr, SmolStr), Arc<Plurals>>,
}

/// The resources of one group and version, by plural.
pub type Plurals = BTreeMap<SmolStr, Arc<Resource>>;

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

    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|subresource| subresource.name == name)
    }

    /// Whether the status is a part of its own, with a sub-resource to change it by.
    pub fn has_status(&self) -> bool {
        self.has_subresource("status")
    }

    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }
}

impl Named for Resource {
    fn group(&self) -> &str {
        &self.group
    }

    fn plural(&self) -> &str {
        &self.plural
    }

    fn kind(&self) -> &str {
        &self.kind
    }
}

impl Registry {
    /// The built-in kinds, to which definitions add.
    pub fn over_builtin() -> Self {
        Self { shared: Some(builtin()), own: BTreeMap::new() }
    }

    pub fn insert(&mut self, resource: Resource) {
        let place = (resource.group.clone(), resource.version.clone());
        let shared = self.shared.and_then(|shared| shared.own.get(&place));
        let plurals = self.own.entry(place).or_insert_with(|| shared.cloned().unwrap_or_default());
        Arc::make_mut(plurals).insert(resource.plural.clone(), Arc::new(resource));
    }

    /// Takes away what a definition has brought.
    pub fn remove_definition(&mut self, definition: &str) {
        let is_its = |resource: &Resource| {
            resource.custom.as_ref().is_some_and(|custom| custom.definition == definition)
        };
        self.own.retain(|place, plurals| {
            if plurals.values().any(|resource| is_its(resource)) {
                Arc::make_mut(plurals).retain(|_, resource| !is_its(resource));
            }
            let shared = self.shared.and_then(|shared| shared.own.get(place));
            plurals.len() > shared.map_or(0, |shared| shared.len())
        });
    }

    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.group_version(group, version)?.get(plural)
    }

    /// The resources of one group and version, by plural.
    pub fn group_version(&self, group: &str, version: &str) -> Option<&Plurals> {
        let place = (SmolStr::new(group), SmolStr::new(version));
        let own = self.own.get(&place);
        own.or_else(|| self.shared?.own.get(&place)).map(|plurals| &**plurals)
    }

    /// The resource that serves a kind.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = split_api_version(api_version);
        let mut resources = self.group_version(group, version)?.values();
        resources.find(|resource| resource.kind == kind)
    }

    /// The resource that keeps objects on a shelf, in one of its served versions.
    pub fn of_shelf(&self, shelf: &str) -> Option<&Arc<Resource>> {
        self.own_of_shelf(shelf).or_else(|| self.shared?.own_of_shelf(shelf))
    }

    fn own_of_shelf(&self, shelf: &str) -> Option<&Arc<Resource>> {
        let (group, plural) = split_api_version(shelf);
        let places = self.own.range((SmolStr::new(group), SmolStr::default())..);
        places
            .take_while(|((of, _), _)| of == group)
            .find_map(|(_, plurals)| plurals.get(plural).filter(|resource| resource.shelf == shelf))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.places().flat_map(|(_, plurals)| plurals.values())
    }

    /// What definitions have added.
    pub fn customs(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let own = self.own.values().flat_map(|plurals| plurals.values());
        own.filter(|resource| resource.custom.is_some())
    }

    /// Each stored resource once, whatever number of versions serves it.
    pub fn stored(&self) -> Vec<&Arc<Resource>> {
        let mut stored: BTreeMap<&SmolStr, &Arc<Resource>> = BTreeMap::new();
        for resource in self.iter().filter(|resource| resource.has_verb("list")) {
            let known = stored.entry(&resource.shelf).or_insert(resource);
            // In the version that needs no converting, if it is served.
            if resource.custom.as_ref().is_some_and(|it| it.storage_version == resource.version) {
                *known = resource;
            }
        }
        stored.into_values().collect()
    }

    /// Groups with their versions, the preferred one first. The core group is named "".
    pub fn groups(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for ((group, version), _) in self.places() {
            groups.entry(group).or_default().push(version);
        }
        for versions in groups.values_mut() {
            versions.sort_by(|a, b| version_order(b).cmp(&version_order(a)));
        }
        groups
    }

    /// The other rows that serve the same objects: versions of the kind, the most preferred ones
    /// first, and events, which two groups have.
    pub fn other_versions(&self, resource: &Resource) -> Vec<&Arc<Resource>> {
        let groups: &[&str] =
            if resource.shelf == "events" { &["", "events.k8s.io"] } else { &[&resource.group] };
        let rows = groups.iter().flat_map(|group| {
            let versions = self.versions(group).into_iter();
            versions.filter_map(|version| self.get(group, version, &resource.plural))
        });
        let is_other = |row: &&Arc<Resource>| {
            row.shelf == resource.shelf
                && (&row.group, &row.version) != (&resource.group, &resource.version)
        };
        rows.filter(is_other).collect()
    }

    /// The versions of one group, the preferred one first.
    pub fn versions(&self, group: &str) -> Vec<&str> {
        let mut versions: Vec<&str> = self.own_versions(group).collect();
        if let Some(shared) = self.shared {
            versions.extend(shared.own_versions(group));
        }
        versions.sort_by(|a, b| version_order(b).cmp(&version_order(a)));
        versions.dedup();
        versions
    }

    fn own_versions<'r>(&'r self, group: &str) -> impl Iterator<Item = &'r str> + use<'r> {
        let group = SmolStr::new(group);
        let places = self.own.range((group.clone(), SmolStr::default())..);
        places
            .take_while(move |((of, _), _)| *of == group)
            .map(|((_, version), _)| version.as_str())
    }

    /// Everything that is served, in order of group and version.
    fn places(&self) -> impl Iterator<Item = (&(SmolStr, SmolStr), &Arc<Plurals>)> {
        let shared = self.shared.into_iter().flat_map(|shared| &shared.own);
        let mut places: Vec<_> =
            shared.filter(|(place, _)| !self.own.contains_key(*place)).chain(&self.own).collect();
        places.sort_by_key(|(place, _)| *place);
        places.into_iter()
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
        let mut above = Registry::over_builtin();
        let hidden = registry.get("autoscaling", "v2", "horizontalpodautoscalers").unwrap();
        above.insert(Resource { plural: "others".into(), ..Resource::clone(hidden) });
        above.insert(Resource { version: "v3alpha1".into(), ..Resource::clone(hidden) });
        assert_eq!(above.versions("autoscaling"), ["v2", "v1", "v3alpha1"]);
        assert_eq!(above.versions("nobody.example.com"), [""; 0]);
        assert_eq!(registry.of_kind("apps/v1", "Deployment").unwrap().plural, "deployments");
    }
}
