//! Kinds: which are known, which was meant, and what the definition of a custom kind says about its
//! objects.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::kinds::CUSTOM_RESOURCE_DEFINITION;
use convoy_api::object::member::{field, list, text};
use convoy_api::schema::{self, Schema};
use convoy_api::text::similar;
use convoy_api::{GroupKind, Object};
use convoy_plan::{Diagnostic, World, validation};
use serde_json::Value;

/// What is wrong with the kinds of objects, and with objects of kinds that are defined among them.
pub(crate) fn check(world: &World) -> Vec<Diagnostic> {
    let catalog = KindCatalog::of(world);
    let placements = world.iter().filter(|object| super::carries_any_kind(object.kind()));
    let selected = placements.flat_map(|placement| catalog.selected(placement));
    world.iter().flat_map(|object| catalog.check(object)).chain(selected).collect()
}

/// The kind that somebody meant who wrote one that does not exist: another kind of its group, or
/// this kind of another group.
pub(crate) fn meant(kind: &GroupKind) -> Option<GroupKind> {
    if built_in().contains_key(kind) || schema::served_versions(kind).is_some() {
        return None;
    }
    KindCatalog::of(&World::new()).meant(kind)
}

struct KindCatalog {
    /// The versions of each kind.
    versions: BTreeMap<GroupKind, BTreeSet<String>>,
    /// The schemas of kinds that are defined in the input, by version.
    defined: BTreeMap<(GroupKind, String), Schema>,
}

impl KindCatalog {
    fn of(world: &World) -> Self {
        let mut catalog = Self { versions: built_in(), defined: BTreeMap::new() };
        for kind in schema::kinds() {
            let served = schema::served_versions(kind).into_iter().flatten().map(str::to_owned);
            catalog.versions.entry(kind.clone()).or_default().extend(served);
        }
        for definition in world.of(&CUSTOM_RESOURCE_DEFINITION) {
            catalog.define(definition);
        }
        catalog
    }

    fn define(&mut self, definition: &Object) {
        let spec = definition.spec();
        let kind = GroupKind {
            group: text(spec, "group").into(),
            kind: text(field(spec, "names"), "kind").into(),
        };
        let versions = self.versions.entry(kind.clone()).or_default();
        for version in list(spec, "versions") {
            let name = text(version, "name").to_owned();
            versions.insert(name.clone());
            let is_ours = schema::of(&kind, &name).is_some();
            let schema = version.pointer("/schema/openAPIV3Schema").filter(|_| !is_ours);
            if let Some(schema) = schema {
                self.defined.insert((kind.clone(), name), Schema::from_json(schema));
            }
        }
    }

    fn check(&self, object: &Object) -> Vec<Diagnostic> {
        let place = (object.kind().clone(), object.version().to_owned());
        if let Some(schema) = self.defined.get(&place) {
            return validation::against(object, schema);
        }
        match self.versions.get(object.kind()) {
            Some(versions) if versions.contains(object.version()) => Vec::new(),
            // Dialects tell this about the kinds that they validate.
            Some(_) if schema::served_versions(object.kind()).is_some() => Vec::new(),
            Some(versions) => {
                let served: Vec<&str> = versions.iter().map(String::as_str).collect();
                let message = format!(
                    "version {:?} of {} is not served; versions that are: {}",
                    object.version(),
                    object.kind(),
                    served.join(", ")
                );
                vec![Diagnostic::error(object, "apiVersion", message)]
            }
            None => vec![self.unknown(object)],
        }
    }

    /// An API server refuses objects of a kind that it does not know. A custom kind may be defined
    /// there and not here.
    fn unknown(&self, object: &Object) -> Diagnostic {
        let kind = object.kind();
        let api_version = object.api_version();
        let unknown = format!("unknown kind {:?} of {api_version:?}", kind.kind.as_str());
        let Some(meant) = self.meant(kind) else {
            let message = format!(
                "{unknown}: not checked; add its CustomResourceDefinition to the input to check it"
            );
            return Diagnostic::warning(object, "kind", message);
        };
        let versions = self.versions.get(&meant).into_iter().flatten();
        let version = versions.max().map_or("", String::as_str);
        let slash = if meant.group.is_empty() { "" } else { "/" };
        let right = format!("{}{slash}{version}", meant.group);
        let message = if meant.group == kind.group {
            format!("{unknown}; did you mean {:?}?", meant.kind.as_str())
        } else {
            format!("{unknown}; did you mean {:?} of {right:?}?", meant.kind.as_str())
        };
        let field = if meant.kind == kind.kind { "apiVersion" } else { "kind" };
        Diagnostic::error(object, field, message)
    }

    /// Kinds that a placement selects and that are near to one that exists. Of groups of which no
    /// kind is known, a cluster may have any kind.
    fn selected(&self, placement: &Object) -> Vec<Diagnostic> {
        let warning = |(index, selector): (usize, &Value)| {
            let kind = GroupKind {
                group: text(selector, "group").into(),
                kind: text(selector, "kind").into(),
            };
            let is_known = self.versions.keys().any(|known| known.group == kind.group);
            if !is_known || self.versions.contains_key(&kind) {
                return None;
            }
            let meant = self.meant(&kind)?;
            let unknown =
                format!("unknown kind {:?} in group {:?}", kind.kind.as_str(), kind.group.as_str());
            let (field, meant) = if meant.group == kind.group {
                ("kind", format!("{:?}", meant.kind.as_str()))
            } else {
                ("group", format!("group {:?}", meant.group.as_str()))
            };
            let field = format!("spec.resourceSelectors[{index}].{field}");
            let message = format!("{unknown}; did you mean {meant}?");
            Some(Diagnostic::warning(placement, field, message))
        };
        let selectors = list(placement.spec(), "resourceSelectors").iter().enumerate();
        selectors.filter_map(warning).collect()
    }

    fn meant(&self, kind: &GroupKind) -> Option<GroupKind> {
        let kinds = || self.versions.keys();
        let of_group = kinds().filter(|known| known.group == kind.group);
        if let Some(name) = similar::nearest(&kind.kind, of_group.map(|known| known.kind.as_str()))
        {
            return Some(GroupKind { kind: name.into(), ..kind.clone() });
        }
        let of_name = kinds().filter(|known| known.kind == kind.kind);
        let near = similar::nearest(&kind.group, of_name.clone().map(|known| known.group.as_str()));
        // Groups without a dot are Kubernetes' own, so that nobody else has defined the kind.
        let only = || of_name.clone().next().filter(|_| !kind.group.contains('.'));
        let group = near.map(Into::into).or_else(|| only().map(|known| known.group.clone()))?;
        Some(GroupKind { group, ..kind.clone() })
    }
}

/// Kubernetes' own kinds, with their versions.
#[cfg(feature = "server")]
fn built_in() -> BTreeMap<GroupKind, BTreeSet<String>> {
    let mut kinds: BTreeMap<GroupKind, BTreeSet<String>> = BTreeMap::new();
    for known in convoy_apiserver::review::built_in_kinds() {
        let kind = GroupKind { group: known.group.into(), kind: known.kind.into() };
        kinds.entry(kind).or_default().insert(known.version);
    }
    kinds
}

/// Without the server, those that can be named.
#[cfg(not(feature = "server"))]
fn built_in() -> BTreeMap<GroupKind, BTreeSet<String>> {
    BTreeMap::new()
}
