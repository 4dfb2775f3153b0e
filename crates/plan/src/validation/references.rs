//! Objects that others name or select: a name that leads nowhere and a selector that matches nothing
//! are accepted by every API server, and are hardly ever meant.
//!
//! The rows of [`rows`] say where objects name and select others; here they are followed.

mod hint;
mod rows;

use std::collections::BTreeMap;

use convoy_api::kinds::POD;
use convoy_api::object::member::{field, text};
use convoy_api::text::similar;
use convoy_api::{GroupKind, Object};
use serde_json::Value;
use smol_str::SmolStr;

use crate::diagnostic::Diagnostic;
use crate::selector::Selector;
use crate::world::World;
use rows::{ReferenceScope, Target, rows_of};

/// How much of a cluster the objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Some of its objects: only kinds of which there are objects are known.
    Part,
    /// All objects that matter.
    Whole,
}

/// Warnings about names and selectors of the objects in `world`. Objects that belong to a controller
/// say what their owner says, and are left out.
pub fn check(world: &World, extent: Extent) -> Vec<Diagnostic> {
    let index = ReferenceIndex::of(world, extent);
    let own = world.iter().filter(|object| object.controller().is_none());
    own.flat_map(|object| index.references_of(object)).collect()
}

/// The objects of a world by kind, and by namespace where they have one.
struct ReferenceIndex<'w> {
    objects: BTreeMap<(GroupKind, SmolStr), Vec<&'w Object>>,
    /// The labels of pods, and of the pods that templates make, by namespace.
    pods: BTreeMap<SmolStr, Vec<&'w Value>>,
    extent: Extent,
}

impl<'w> ReferenceIndex<'w> {
    fn of(world: &'w World, extent: Extent) -> Self {
        let mut index = Self { objects: BTreeMap::new(), pods: BTreeMap::new(), extent };
        for object in world.iter() {
            let group = (object.kind().clone(), namespace_of(object));
            index.objects.entry(group).or_default().push(object);
            let template = rows::pod_template(object.kind());
            let labels = template.and_then(|path| object.raw().pointer(path));
            index.pods.entry(namespace_of(object)).or_default().extend(labels);
        }
        index
    }

    fn references_of(&self, object: &'w Object) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for row in rows_of(object.kind()) {
            for (path, value) in expanded(object.raw(), &row.path) {
                let target = match row.target {
                    Target::Selected(ref kind) => self.unselected(kind, value),
                    Target::SelectedPods => self.without_pods(object, value),
                    Target::Named(ref kind, scope) => self.unnamed(object, kind, scope, value),
                    Target::NamedByReference => self.unreferenced(object, value),
                    Target::NamedOrSelected => self.unplaced(value),
                };
                let message = target.filter(|_| !is_optional(object.raw(), &path));
                found.extend(message.map(|message| Diagnostic::warning(object, path, message)));
            }
        }
        found
    }

    /// The objects of a kind, or none if nothing can be said about it.
    fn all(&self, kind: &GroupKind, namespace: &SmolStr) -> Option<&[&'w Object]> {
        let objects = self.objects.get(&(kind.clone(), namespace.clone())).map(Vec::as_slice);
        objects.or((self.extent == Extent::Whole).then_some(&[] as &[&Object]))
    }

    fn unnamed(
        &self,
        object: &Object,
        kind: &GroupKind,
        scope: ReferenceScope,
        value: &Value,
    ) -> Option<String> {
        let name = value.as_str().filter(|name| !name.is_empty() && !is_given(kind, name))?;
        let namespace = match scope {
            ReferenceScope::Cluster => SmolStr::default(),
            ReferenceScope::Namespace => namespace_of(object),
        };
        let all = self.all(kind, &namespace)?;
        if all.iter().any(|known| known.name() == name) {
            return None;
        }
        let names = all.iter().map(|known| known.name().as_str());
        Some(format!("{} {name:?} not found{}", kind.kind, similar::question(name, names)))
    }

    /// A reference that tells the kind of the object, such as `scaleTargetRef`.
    fn unreferenced(&self, object: &Object, value: &Value) -> Option<String> {
        let api_version = text(value, "apiVersion");
        let group = match (text(value, "group"), text(value, "apiGroup")) {
            ("", "") => api_version.split_once('/').map_or("", |(group, _)| group),
            ("", group) | (group, _) => group,
        };
        let kind = GroupKind { group: group.into(), kind: text(value, "kind").into() };
        let is_cluster = self.objects.contains_key(&(kind.clone(), SmolStr::default()));
        let scope = if is_cluster { ReferenceScope::Cluster } else { ReferenceScope::Namespace };
        self.unnamed(object, &kind, scope, field(value, "name"))
    }

    fn unselected(&self, kind: &GroupKind, value: &Value) -> Option<String> {
        let selector = selector_of(value)?;
        let all = self.all(kind, &SmolStr::default())?;
        if all.iter().any(|known| selector.matches(known)) {
            return None;
        }
        let labels: Vec<&Value> =
            all.iter().map(|known| field(known.metadata(), "labels")).collect();
        Some(hint::no_match(&kind.kind, &labels, value))
    }

    fn without_pods(&self, object: &Object, value: &Value) -> Option<String> {
        let selector = selector_of(value)?;
        let pods = self.pods.get(&namespace_of(object)).map_or(&[] as &[&Value], Vec::as_slice);
        if pods.is_empty() && self.extent == Extent::Part {
            return None;
        }
        let is_match =
            |labels: &&Value| selector.matches_with(|key| labels.get(key).and_then(Value::as_str));
        (!pods.iter().any(is_match)).then(|| hint::no_match(&POD.kind, pods, value))
    }

    /// An entry of a placement's `resourceSelectors`.
    fn unplaced(&self, value: &Value) -> Option<String> {
        let kind =
            GroupKind { group: text(value, "group").into(), kind: text(value, "kind").into() };
        let objects = self.objects.iter().filter(|((known, _), _)| *known == kind);
        let all: Vec<&Object> = objects.flat_map(|(_, objects)| objects.iter().copied()).collect();
        if all.is_empty() && self.extent == Extent::Part {
            return None;
        }
        match text(value, "name") {
            "" => {
                let labels = field(value, "labelSelector");
                let selector = selector_of(labels)?;
                let known: Vec<&Value> =
                    all.iter().map(|object| field(object.metadata(), "labels")).collect();
                let is_match = all.iter().any(|object| selector.matches(object));
                (!is_match).then(|| hint::no_match(&kind.kind, &known, labels))
            }
            name if all.iter().any(|object| object.name() == name) => None,
            name => {
                let names = all.iter().map(|object| object.name().as_str());
                Some(format!("{} {name:?} not found{}", kind.kind, similar::question(name, names)))
            }
        }
    }
}

/// An object without a namespace goes to the default one, if its kind has namespaces at all.
fn namespace_of(object: &Object) -> SmolStr {
    match object.namespace().as_str() {
        "" if rows::is_namespaced(object.kind()) => SmolStr::new_static("default"),
        namespace => SmolStr::new(namespace),
    }
}

/// A selector that asks for something: a label selector, or plain labels. What is wrong with it is
/// told elsewhere.
fn selector_of(value: &Value) -> Option<Selector> {
    let is_selector = value.get("matchLabels").is_some() || value.get("matchExpressions").is_some();
    let read = if is_selector {
        Selector::from_value(value)
    } else {
        Selector::from_value(&serde_json::json!({"matchLabels": value}))
    };
    read.ok().filter(|selector| !selector.is_empty())
}

/// Objects that every cluster has.
fn is_given(kind: &GroupKind, name: &str) -> bool {
    match kind.kind.as_str() {
        "ServiceAccount" => name == "default",
        "PriorityClass" => name.starts_with("system-"),
        "ConfigMap" => name == "kube-root-ca.crt",
        "ClusterRole" => {
            name.starts_with("system:")
                || ["admin", "cluster-admin", "edit", "view"].contains(&name)
        }
        "ManagedClusterSet" | "ManagedClusterSetBinding" => name == "default" || name == "global",
        _ => false,
    }
}

/// Whether what is named at a path may be missing: `optional: true` stands beside the name.
fn is_optional(raw: &Value, path: &str) -> bool {
    let Some((around, _)) = path.rsplit_once('.') else { return false };
    let around = convoy_api::object::field_path::get(raw, around);
    around.and_then(|around| around.get("optional")).and_then(Value::as_bool).unwrap_or(false)
}

/// The values at a path, in which `[]` stands for every entry of a list; with their own paths.
fn expanded<'v>(root: &'v Value, path: &str) -> Vec<(String, &'v Value)> {
    let mut found = vec![(String::new(), root)];
    for part in path.split('.') {
        let (name, is_list) = part.strip_suffix("[]").map_or((part, false), |name| (name, true));
        let below = found.into_iter().filter_map(|(path, value)| {
            let dot = if path.is_empty() { "" } else { "." };
            Some((format!("{path}{dot}{name}"), value.get(name).filter(|it| !it.is_null())?))
        });
        found = if is_list {
            let items = below.flat_map(|(path, value)| {
                let items = value.as_array().into_iter().flatten().enumerate();
                items.map(move |(index, item)| (format!("{path}[{index}]"), item))
            });
            items.collect()
        } else {
            below.collect()
        };
    }
    found
}

#[cfg(test)]
mod tests;
