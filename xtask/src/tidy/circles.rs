//! Circles between the modules of a crate, computed from the paths they name. A circle means
//! that none of its modules can be read, tested or moved without the others.
//!
//! Siblings are compared, on every level: a module and those inside it are one unit, as the
//! language has it. A name that a module only passes on counts for where it is defined.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{read, root, sources};

/// The crates whose modules form no circle.
const ROUND: [&str; 7] = ["plan", "controllers", "store", "api", "apiserver", "sim", "cli"];

/// Circles that stay, each for a reason.
const ADMITTED: [(&[&str], &str); 0] = [];

/// A module by the names that lead to it from the crate's root, which is empty.
pub(super) type Module = Vec<String>;
pub(super) type Graph = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn modules_form_no_circles() {
    let mut found = Vec::new();
    for name in ROUND {
        for circle in circles(&graph(&root().join("crates").join(name).join("src"))) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            let admitted = ADMITTED.iter().any(|(known, _)| **known == names);
            if !admitted {
                found.push(format!("{name}: {}", names.join(", ")));
            }
        }
    }
    assert!(found.is_empty(), "modules that use each other:\n{}", found.join("\n"));
}

/// The modules of a crate: their code, and the paths by which they import names.
struct Crate {
    texts: BTreeMap<Module, String>,
    imports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
    /// Declared for tests alone.
    tests: BTreeSet<Module>,
}

/// Which siblings each module names, itself or through a module inside it.
pub(super) fn graph(source: &Path) -> Graph {
    let files = sources(source, "rs").into_iter().filter(|path| !path.ends_with("main.rs"));
    let all = Crate::new(files.map(|path| (module(source, &path), code(&read(&path)))));
    let is_test = |module: &Module| all.is_test(module);
    let mut edges = Graph::new();
    for (module, text) in all.texts.iter().filter(|(module, _)| !is_test(module)) {
        let named = paths(text).into_iter().filter_map(|path| all.definer(module, &path));
        for other in named.filter(|other| !is_test(other)) {
            let shared = module.iter().zip(&other).take_while(|(one, two)| one == two).count();
            if shared < module.len() && shared < other.len() {
                let sibling = other[..=shared].to_vec();
                edges.entry(module[..=shared].to_vec()).or_default().insert(sibling);
            }
        }
    }
    edges
}

impl Crate {
    fn new(modules: impl Iterator<Item = (Module, String)>) -> Self {
        let texts: BTreeMap<Module, String> = modules.collect();
        let imported = |text: &String| {
            let statements = text.split("use ").skip(1).filter_map(|rest| rest.split(';').next());
            let paths = statements.flat_map(paths).map(without_self).filter(|path| path.len() > 1);
            paths.filter_map(|path| Some((path.last()?.clone(), path))).collect()
        };
        let imports = texts.iter().map(|(module, text)| (module.clone(), imported(text))).collect();
        let tests = texts.iter().flat_map(|(module, text)| {
            let declared = text.split("#[cfg(test)]").skip(1).filter_map(|rest| {
                rest.split(';').next()?.trim().rsplit_once("mod ").map(|(_, name)| name.to_owned())
            });
            declared.map(|name| module.iter().cloned().chain([name]).collect())
        });
        let tests = tests.collect();
        Self { texts, imports, tests }
    }

    /// Whether a module, or one that it is inside of, exists for tests alone.
    fn is_test(&self, module: &Module) -> bool {
        (1..=module.len()).any(|length| {
            module[length - 1].ends_with("tests") || self.tests.contains(&module[..length])
        })
    }

    /// The module that defines what a path names, followed through imports.
    fn definer(&self, from: &Module, path: &[String]) -> Option<Module> {
        let (mut at, mut name) = self.resolve(from, path)?;
        for _ in 0..8 {
            let Some(import) = name.and_then(|name| self.imports.get(&at)?.get(&name)) else {
                break;
            };
            let Some((next, rest)) = self.resolve(&at, import) else { break };
            (at, name) = (next, rest);
        }
        Some(at)
    }

    /// The module that a path leads to, and the first name behind it that is no module.
    fn resolve(&self, from: &Module, path: &[String]) -> Option<(Module, Option<String>)> {
        let path = without_self(path.to_vec());
        let (mut at, rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.clone(), &path[1..]),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                (from[..from.len().checked_sub(ups)?].to_vec(), &path[ups..])
            }
            first => {
                let child: Module = from.iter().cloned().chain([first.to_owned()]).collect();
                let is_child = path.len() > 1 && self.texts.contains_key(&child);
                is_child.then_some((from.clone(), &path[..]))?
            }
        };
        for name in rest {
            at.push(name.clone());
            if !self.texts.contains_key(&at) {
                at.pop();
                return Some((at, Some(name.clone())));
            }
        }
        Some((at, None))
    }
}

/// `a::{self}` names `a`.
fn without_self(mut path: Vec<String>) -> Vec<String> {
    if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
        path.pop();
    }
    path
}

fn module(source: &Path, file: &Path) -> Module {
    let path = file.strip_prefix(source).expect("found below it").with_extension("");
    let names = path.iter().map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name != "lib").collect()
}

/// The text without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let tests = ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\npub(crate) mod tests {"];
    let end = tests.iter().filter_map(|begin| text.find(begin)).min();
    let text = &text[..end.unwrap_or(text.len())];
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Every path of names joined by `::`, groups in braces taken apart; new names given by `as`
/// are left out.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut is_alias = false;
    while let Some(at) = rest.find(|letter: char| letter.is_alphabetic() || letter == '_') {
        rest = &rest[at..];
        let (path, after) = path(rest);
        rest = after;
        let is_as = path == [["as"]];
        if !is_as && !is_alias {
            found.extend(path);
        }
        is_alias = is_as;
    }
    found
}

/// The paths that begin here (several if they end in a group), and what follows them.
fn path(text: &str) -> (Vec<Vec<String>>, &str) {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let Some(inner) = rest.strip_prefix("::") else { return (vec![vec![name.to_owned()]], rest) };
    let begin = |mut path: Vec<String>| {
        path.insert(0, name.to_owned());
        path
    };
    if let Some(group) = inner.strip_prefix('{') {
        let (inside, after) = group.split_at(closing(group));
        let all = paths(inside).into_iter().map(begin).collect();
        return (all, after);
    }
    if inner.starts_with(|letter: char| letter.is_alphabetic() || letter == '_') {
        let (tails, after) = path(inner);
        return (tails.into_iter().map(begin).collect(), after);
    }
    (vec![vec![name.to_owned()]], inner)
}

/// Where the brace closes that was opened just before `text`.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The sets of modules in which each reaches every other one.
fn circles(graph: &Graph) -> Vec<Vec<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (module, reachable(graph, module))).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for module in graph.keys() {
        let is_mutual = |other: &&&Module| reach.get(**other).is_some_and(|it| it.contains(module));
        let circle: Vec<Module> =
            reach[module].iter().filter(is_mutual).map(|other| (*other).clone()).collect();
        if circle.len() > 1 && seen.insert(circle.clone()) {
            found.push(circle);
        }
    }
    found
}

fn reachable<'g>(graph: &'g Graph, from: &Module) -> BTreeSet<&'g Module> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Module> = graph.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(graph.get(module).into_iter().flatten());
        }
    }
    reached
}

#[test]
fn a_circle_is_found() {
    let names = |module: &str| -> Module { module.split("::").map(str::to_owned).collect() };
    let modules = [
        ("a", "use super::b::{X, c::{Y, Z}};\nfn f() { crate::d::g(); e::h() }"),
        ("a::e", ""),
        ("b", "pub use c::Y as Other;\npub use c::Y;"),
        ("b::c", "pub struct Y;"),
        ("d", "use crate::b::Y;"),
    ];
    let all = Crate::new(modules.into_iter().map(|(name, text)| (names(name), text.to_owned())));
    let from_a = paths(&all.texts[&names("a")]);
    let found: BTreeSet<Module> =
        from_a.iter().filter_map(|path| all.definer(&names("a"), path)).collect();
    assert_eq!(found, ["b", "b::c", "d", "a::e"].map(names).into_iter().collect());
    let path = ["crate", "b", "Y"].map(str::to_owned);
    assert_eq!(all.definer(&names("d"), &path), Some(names("b::c")), "where it is defined");
    let edge = |from: &str, to: &str| (names(from), BTreeSet::from([names(to)]));
    let round: Graph = [edge("a", "b"), edge("b", "d"), edge("d", "a"), edge("e", "a")].into();
    assert_eq!(circles(&round), [["a", "b", "d"].map(names).to_vec()]);
}
