//! The words of the field: names that say nothing, or that the field has another word for, name
//! no type.

use super::{read, root, sources};

/// A forbidden name, and what to say instead.
const FORBIDDEN: [(&str, &str); 25] = [
    ("Answer", "a response, or the result of what was called"),
    ("Answers", "responses, or the results of what was called"),
    ("Ask", "a request"),
    ("Brain", "a reconciler"),
    ("Car", "what it carries"),
    ("Deed", "a verb or an action"),
    ("Draw", "a value of a seed"),
    ("Draws", "a seed"),
    ("Errand", "an item of a work queue"),
    ("Farewell", "a drain or an eviction"),
    ("Follower", "a reflector or an informer"),
    ("Head", "the part of a request that it is"),
    ("Known", "the index, cache or catalog that it is"),
    ("News", "events of a watch"),
    ("Outcome", "the result of what was done, such as a write"),
    ("Outcomes", "the results of what was done, such as writes"),
    ("Part", "the part of what it is"),
    ("Parts", "the parts of what they are"),
    ("Place", "a location, a position or a scope, and of what"),
    ("Places", "paths, positions, locations"),
    ("Tend", "what is done, such as a drain"),
    ("Tended", "what was done, such as a drain"),
    ("Turn", "a reconciliation, or the item whose turn it is"),
    ("Turns", "reconciliations, or a lock"),
    ("Default", "what it is the default of: the name hides the prelude's"),
];

/// The name that a line gives to a type.
fn defined_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    let kinds = ["struct ", "enum ", "union ", "trait ", "type "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some(&rest[..end.unwrap_or(rest.len())])
}

#[test]
fn types_have_the_words_of_the_field() {
    let mut found = Vec::new();
    let files = sources(&root().join("crates"), "rs").into_iter();
    for file in files.chain(sources(&root().join("xtask"), "rs")) {
        let shown = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        let text = read(&file);
        let types: Vec<&str> = text.lines().filter_map(defined_type).collect();
        for (name, instead) in FORBIDDEN {
            if types.contains(&name) {
                found.push(format!("{shown}: {name}; say {instead}"));
            }
        }
    }
    assert!(found.is_empty(), "words that the field does not use:\n{}", found.join("\n"));
}

#[test]
fn the_name_of_a_type_is_found() {
    assert_eq!(defined_type("pub(crate) struct Place<'p> {"), Some("Place"));
    assert_eq!(defined_type("    enum Place {"), Some("Place"));
    assert_eq!(defined_type("type Place = u8;"), Some("Place"));
    assert_eq!(defined_type("let place = Place::new();"), None);
}
