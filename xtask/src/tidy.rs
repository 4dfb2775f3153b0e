//! Tidy tests: rules of the code base that no lint can check.

mod circles;
mod dialects;
mod layers;
mod security;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates that a crate may depend on. Dependencies point one way.
const ARROWS: [(&str, &[&str]); 13] = [
    ("derive", &[]),
    ("api", &["derive"]),
    ("plan", &["api"]),
    ("check", &["api", "plan"]),
    ("store", &["api"]),
    ("testkit", &["api"]),
    ("apiserver", &["api", "plan", "store"]),
    ("controllers", &["api", "plan"]),
    ("kubernetes", &[]),
    ("load", &[]),
    ("sim", &["api", "plan", "check", "store", "apiserver", "controllers"]),
    ("cli", &["api", "plan", "check", "store", "apiserver", "controllers", "sim"]),
    ("xtask", &["kubernetes"]),
];

/// Crates without a runtime, an HTTP library or a client.
const PURE: [&str; 4] = ["api", "plan", "check", "store"];
const NOT_PURE: [&str; 6] = ["tokio", "hyper", "axum", "reqwest", "futures", "kube-client"];

/// Longer files are split.
const LONGEST_FILE: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

fn crates() -> BTreeMap<String, PathBuf> {
    let members = fs::read_dir(root().join("crates")).expect("crates/ is there");
    let paths = members.map(|entry| entry.expect("readable").path()).chain([root().join("xtask")]);
    let named = |path: PathBuf| {
        let name = path.file_name().expect("a directory").to_string_lossy().into_owned();
        (name, path)
    };
    paths.filter(|path| path.join("Cargo.toml").exists()).map(named).collect()
}

fn sources(below: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![below.to_owned()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for path in entries.map(|entry| entry.expect("readable").path()) {
            match path.is_dir() {
                true if path.ends_with("target") => {}
                true => open.push(path),
                false if path.extension().is_some_and(|found| found == ending) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names in one section of a manifest.
fn dependencies(manifest: &str, section: &str) -> Vec<String> {
    let header = format!("[{section}]");
    let body = manifest.lines().skip_while(|line| *line != header).skip(1);
    let lines = body.take_while(|line| !line.starts_with('['));
    let named = lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    named.map(|line| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn crates_depend_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    for (name, path) in crates() {
        let arrows =
            allowed.get(name.as_str()).unwrap_or_else(|| panic!("{name} has no arrows yet"));
        let manifest = read(&path.join("Cargo.toml"));
        for dependency in dependencies(&manifest, "dependencies") {
            let Some(ours) = dependency.strip_prefix("convoy-") else { continue };
            assert!(arrows.contains(&ours), "{name} may not depend on {ours}");
        }
    }
}

#[test]
fn what_decides_has_no_runtime_and_no_client() {
    for (name, path) in crates().into_iter().filter(|(name, _)| PURE.contains(&name.as_str())) {
        let manifest = read(&path.join("Cargo.toml"));
        for dependency in dependencies(&manifest, "dependencies") {
            assert!(!NOT_PURE.contains(&dependency.as_str()), "{name} depends on {dependency}");
        }
    }
}

#[test]
fn dependencies_are_declared_once_in_the_workspace() {
    for (name, path) in crates() {
        let manifest = read(&path.join("Cargo.toml"));
        for section in ["dependencies", "dev-dependencies"] {
            let header = format!("[{section}]");
            let body = manifest.lines().skip_while(|line| *line != header).skip(1);
            for line in
                body.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty())
            {
                let shared = line.contains("workspace = true");
                assert!(shared, "{name}: {line:?} is not taken from the workspace");
            }
        }
    }
}

#[test]
fn every_file_says_what_it_is_for_and_stays_short() {
    for path in sources(&root().join("crates"), "rs")
        .into_iter()
        .chain(sources(&root().join("xtask"), "rs"))
    {
        let text = read(&path);
        let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        assert!(text.starts_with("//!"), "{shown} has no module comment");
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{shown} has {lines} lines, {LONGEST_FILE} are the most");
    }
}

#[test]
fn property_tests_draw_the_same_cases_every_time() {
    for path in sources(&root().join("crates"), "rs") {
        let text = read(&path);
        let blocks = text.lines().filter(|line| line.trim() == "proptest! {").count();
        let fixed = text.matches("property::config(").count();
        assert!(fixed >= blocks, "{} has a property test without a fixed seed", path.display());
    }
}

#[test]
fn no_module_hides_in_a_mod_file() {
    let hidden =
        sources(&root().join("crates"), "rs").into_iter().find(|path| path.ends_with("mod.rs"));
    assert_eq!(hidden, None);
}

#[test]
fn every_hold_reason_and_verb_is_documented() {
    let page = read(&root().join("docs/reference/plan.md"));
    let body = |file: &str, begin: &str| -> String {
        let source = read(&root().join("crates/plan/src").join(file));
        let body = source.split(begin).nth(1).unwrap_or_default();
        body.split("\n}").next().unwrap_or_default().to_owned()
    };
    let reasons = body("hold.rs", "pub enum HoldReason {");
    let reasons = reasons.lines().filter_map(|line| {
        let word = line.trim_start().split([' ', ',', '{', '(']).next()?;
        word.starts_with(|letter: char| letter.is_ascii_uppercase()).then_some(word)
    });
    // Two verbs may have one word: what is shown is what is explained.
    let verbs = body("step/action.rs", "impl From<Verb> for &'static str {");
    let verbs = verbs.lines().filter_map(|line| line.split('"').nth(1));
    for words in [reasons.collect::<Vec<_>>(), verbs.collect()] {
        assert!(words.len() > 10, "{words:?}");
        for word in words {
            assert!(page.contains(&format!("`{word}`")), "plan.md does not explain {word}");
        }
    }
}
