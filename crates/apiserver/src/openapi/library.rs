//! What the library of Rust types, k8s-openapi, says about each type of Kubernetes: descriptions,
//! properties, and what they consist of.
//!
//! `library.txt` has a line for each type: its name, and its schema as JSON. A test generates it
//! from the library (`kinds.rs`) and keeps it current, because deriving the schemas in every build
//! takes long. Only lines that are asked for are parsed.

use std::sync::LazyLock;

use serde_json::Value;

const FILE: &str = include_str!("library.txt");

/// Names and schemas, by name.
static LINES: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| FILE.lines().filter_map(|line| line.split_once(' ')).collect());

/// The schema of a type; None for types that no built-in kind consists of.
pub(super) fn schema(name: &str) -> Option<Value> {
    let index = LINES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(serde_json::from_str(LINES[index].1).expect("a generated line is JSON"))
}
