//! The kinds that every Kubernetes has, read from `builtin.txt`.
//!
//! One line per resource: `apiVersion | plural | kind | scope | short names | categories |
//! verbs | sub-resources | flags`. `*` stands for all eight verbs, `-verb` takes one away; a
//! sub-resource of another kind names it after a colon. Flags: G counts generations, P creates
//! on PUT, V wants a resourceVersion on PUT, D answers a deletion with the object.

use std::sync::LazyLock;

use smol_str::{SmolStr, format_smolstr};

use super::{Registry, Resource, Subresource, split_api_version};

const TEXT: &str = include_str!("builtin.txt");

const ALL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The built-in kinds.
pub fn builtin() -> &'static Registry {
    static BUILTIN: LazyLock<Registry> = LazyLock::new(|| {
        let mut registry = Registry::default();
        for line in TEXT.lines() {
            registry.insert(read(line).expect("the table has nine columns in every line"));
        }
        registry
    });
    &BUILTIN
}

fn read(line: &str) -> Option<Resource> {
    let columns: Vec<&str> = line.split('|').map(str::trim).collect();
    let [api_version, plural, kind, scope, short, categories, verbs, subresources, flags] =
        columns[..]
    else {
        return None;
    };
    let (group, version) = split_api_version(api_version);
    let words = |text: &str| text.split_whitespace().map(SmolStr::new).collect::<Vec<_>>();
    let flag = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    Some(Resource {
        group: SmolStr::new(group),
        version: SmolStr::new(version),
        plural: SmolStr::new(plural),
        singular: SmolStr::new(kind.to_lowercase()),
        kind: SmolStr::new(kind),
        list_kind: format_smolstr!("{kind}List"),
        namespaced: scope == "ns",
        short_names: words(short),
        categories: words(categories),
        verbs: read_verbs(verbs),
        subresources: subresources.split_whitespace().map(read_subresource).collect(),
        has_generation: flag("G"),
        put_creates: flag("P"),
        put_needs_version: flag("V"),
        delete_returns_object: flag("D"),
        shelf: shelf(group, plural),
        custom: None,
    })
}

fn read_verbs(text: &str) -> Vec<SmolStr> {
    let mut verbs = Vec::new();
    for word in text.split_whitespace() {
        match word.strip_prefix('-') {
            Some(without) => verbs.retain(|verb| verb != without),
            None if word == "*" => verbs.extend(ALL_VERBS.map(SmolStr::new)),
            None => verbs.push(SmolStr::new(word)),
        }
    }
    verbs
}

fn read_subresource(word: &str) -> Subresource {
    let (name, kind) = match word.split_once(':') {
        Some((name, kind)) => (name, Some(SmolStr::new(kind))),
        None => (word, None),
    };
    Subresource { name: SmolStr::new(name), kind }
}

/// Both spellings of events are one resource.
fn shelf(group: &str, plural: &str) -> SmolStr {
    if let ("" | "events.k8s.io", _) = (group, plural) {
        SmolStr::new(plural)
    } else {
        format_smolstr!("{group}/{plural}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_what_a_resource_can_do() {
        let namespaces = builtin().get("", "v1", "namespaces").unwrap();
        assert!(!namespaces.has_verb("deletecollection") && namespaces.has_verb("watch"));
        assert!(namespaces.delete_returns_object && !namespaces.namespaced);
        let pods = builtin().get("", "v1", "pods").unwrap();
        let eviction = pods.subresources.iter().find(|one| one.name == "eviction").unwrap();
        assert_eq!(eviction.kind.as_deref(), Some("Eviction"));
        let events = builtin().get("events.k8s.io", "v1", "events").unwrap();
        assert_eq!(events.shelf, builtin().get("", "v1", "events").unwrap().shelf);
    }
}
