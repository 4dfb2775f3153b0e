//! The tests and modules that `docs/security.md` names are there: its promises are held by them.

use std::path::{Path, PathBuf};

use super::{read, root, sources};

const PAGE: &str = "docs/security.md";

/// A name that begins so is in the module of the name before it.
const SAME_MODULE: &str = "…::";

/// The paths of modules and tests in a text, with what [`SAME_MODULE`] stands for.
fn named(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in text.split('`').skip(1).step_by(2).filter(|name| name.contains("::")) {
        let module = found.last().and_then(|last| last.rsplit_once("::"));
        let name = match (name.strip_prefix(SAME_MODULE), module) {
            (Some(name), Some((module, _))) => format!("{module}::{name}"),
            _ => name.to_owned(),
        };
        let is_name = |part: &str| {
            !part.is_empty() && part.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        };
        if name.split("::").all(is_name) {
            found.push(name);
        }
    }
    found
}

/// Whether one of `files` is what a path leads to, or the module in which it is: the end of the
/// path is a module `tests` in the file, a function, or both.
fn exists(path: &str, files: &[PathBuf]) -> bool {
    let path = path.strip_prefix("convoy_").unwrap_or(path);
    let parts: Vec<&str> = path.split("::").collect();
    (1..=parts.len()).rev().any(|length| {
        let (module, rest) = parts.split_at(length);
        let end = module.join("/") + ".rs";
        files.iter().filter(|file| is_at(file, &end)).any(|file| {
            let text = read(file);
            let has = |name: &str| match name {
                "tests" => text.contains("mod tests {"),
                name => text.contains(&format!("fn {name}(")),
            };
            rest.iter().all(|name| has(name))
        })
    })
}

/// Whether a file has this path, which leaves out `src` and what is above it.
fn is_at(file: &Path, end: &str) -> bool {
    let shown = file.to_string_lossy().replace("/src/", "/");
    Path::new(&shown).ends_with(end)
}

#[test]
fn the_security_page_names_tests_that_exist() {
    let mut files = Vec::new();
    for folder in ["crates/api", "crates/plan", "crates/apiserver", "crates/cli/tests/up"] {
        files.extend(sources(&root().join(folder), "rs"));
    }
    let names = named(&read(&root().join(PAGE)));
    assert!(names.len() > 30, "only {} names were found", names.len());
    let missing: Vec<&String> = names.iter().filter(|name| !exists(name, &files)).collect();
    assert!(missing.is_empty(), "{PAGE} names what does not exist: {missing:#?}");
}

#[test]
fn a_name_may_be_in_the_module_of_the_one_before() {
    let text = "| `access::tests::one`, `…::two` | `fe80::/10` | `other::tests` |";
    assert_eq!(named(text), ["access::tests::one", "access::tests::two", "other::tests"]);
}
