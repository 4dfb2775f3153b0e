//! Pruning: fields that the schema does not know are not stored.

use serde_json::Value;

use super::UnknownField;
use super::node::{Additional, Node};
use crate::text::similar;

/// Known to every resource, whatever its schema says.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops what is unknown in a whole resource, and returns the paths of it.
pub(super) fn prune(root: &Node, value: &mut Value) -> Vec<String> {
    let unknown = pruned(root, value, false);
    unknown.into_iter().map(|unknown| unknown.field).collect()
}

/// The same, with the fields that were probably meant.
pub(super) fn prune_and_suggest(root: &Node, value: &mut Value) -> Vec<UnknownField> {
    pruned(root, value, true)
}

fn pruned(root: &Node, value: &mut Value, suggest: bool) -> Vec<UnknownField> {
    let mut walk = Walk { unknown: Vec::new(), suggest };
    walk.object(root, value, "", true, root.preserve_unknown);
    walk.unknown.sort();
    walk.unknown
}

struct Walk {
    unknown: Vec<UnknownField>,
    /// Whether to look for what was meant, which takes time.
    suggest: bool,
}

impl Walk {
    fn value(&mut self, node: &Node, value: &mut Value, path: &str) {
        self.below(node, value, path, node.preserve_unknown);
    }

    /// In a list that preserves, what the elements' schema leaves unsaid is preserved too.
    fn below(&mut self, node: &Node, value: &mut Value, path: &str, preserve: bool) {
        match value {
            Value::Object(_) => self.object(node, value, path, node.embedded, preserve),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let path = format!("{path}[{index}]");
                    match &node.items {
                        Some(schema) => {
                            self.below(schema, item, &path, preserve || schema.preserve_unknown);
                        }
                        None if preserve => {}
                        None => self.value(&Node::default(), item, &path),
                    }
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        node: &Node,
        value: &mut Value,
        path: &str,
        resource: bool,
        preserve: bool,
    ) {
        let Value::Object(fields) = value else {
            return self.below(node, value, path, preserve);
        };
        fields.retain(|name, value| {
            if resource && META.contains(&name.as_str()) {
                return true;
            }
            let base = path;
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match (node.properties.get(name), &node.additional) {
                (Some(schema), _) => self.value(schema, value, &path),
                (None, Additional::Like(schema)) => self.value(schema, value, &path),
                (None, Additional::Any) => self.value(&Node::default(), value, &path),
                (None, _) if preserve => {}
                (None, _) => {
                    let known = node.properties.keys().map(String::as_str);
                    let known = known.chain(META.into_iter().filter(|_| resource));
                    let meant = if self.suggest { similar::nearest(name, known) } else { None };
                    self.unknown.push(UnknownField::new(base, path, meant));
                    return false;
                }
            }
            true
        });
    }
}
