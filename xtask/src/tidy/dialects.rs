//! One shape of a dialect: the same role under the same name in each, JSON paths only where
//! objects are read and written, and no way around the gate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{read, root, sources};

/// What may stand in the folder of a dialect, as a file or as a folder with its file.
const ROLES: [&str; 10] = [
    "names",
    "watch",
    "read",
    "validate",
    "admission",
    "decide",
    "write",
    "status",
    "report",
    "tests",
];

/// Roles that know JSON paths. The others work on what these have read. `validate` and `admission`
/// look at objects that could not be read, or not yet, and name the field of every problem: a path
/// is what they are about.
const KNOW_PATHS: [&str; 6] = ["read", "validate", "admission", "write", "status", "tests"];

/// How a JSON path looks in code, beside an index by a text and a call of [`HELPERS`].
const PATHS: [&str; 8] = [
    ".get(\"",
    ".get_mut(\"",
    ".pointer(",
    "object::member",
    ".spec_text(",
    ".spec_member(",
    ".status_text(",
    ".status_member(",
];

/// Functions that look up a member of a JSON value, under whatever path they are imported.
const HELPERS: [&str; 4] = ["field", "list", "member", "text"];

/// How the key of a label, an annotation or a taint looks.
const KEYS: [&str; 3] = [".io/", ".com/", ".sh/"];

fn dialects() -> Vec<PathBuf> {
    let folder = root().join("crates/plan/src/dialect");
    let entries = std::fs::read_dir(folder).expect("the dialects are there");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    found.retain(|path| path.is_dir());
    found.sort();
    found
}

/// The role that a file below a dialect's folder belongs to.
fn role(dialect: &Path, file: &Path) -> String {
    let path = file.strip_prefix(dialect).expect("found below it").with_extension("");
    path.iter().next().expect("a file has a name").to_string_lossy().into_owned()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The lines of a file that are neither comments nor tests.
fn code(path: &Path) -> Vec<String> {
    let text = read(path);
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(str::to_owned).collect()
}

/// Whether a text is the key of a label or the like, and no version of an API.
fn is_key(text: &str) -> bool {
    let is_version = text.rsplit('/').next().is_some_and(|name| {
        name.strip_prefix('v').is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
    });
    let is_plain = !text.contains(' ') && !text.contains("://");
    is_plain && !is_version && KEYS.iter().any(|part| text.contains(part))
}

/// Whether something is indexed by a text, as in `value["name"]`.
fn is_indexed(line: &str) -> bool {
    let before = line.match_indices("[\"").filter_map(|(at, _)| line[..at].chars().last());
    before.into_iter().any(|letter| letter.is_alphanumeric() || "_)]".contains(letter))
}

/// Whether a line calls one of [`HELPERS`] with a value and a name. Methods of these names, which
/// have their value before the dot, and their definitions are something else.
fn calls_helper(line: &str) -> bool {
    HELPERS.iter().any(|name| {
        line.match_indices(&format!("{name}(")).any(|(at, found)| {
            let before = line[..at].chars().last();
            let is_whole = before.is_none_or(|it| !it.is_alphanumeric() && !"_.".contains(it));
            let is_defined = line[..at].ends_with("fn ");
            is_whole && !is_defined && line[at + found.len()..].contains(", ")
        })
    })
}

#[test]
fn every_dialect_has_the_same_shape() {
    assert_eq!(dialects().len(), 10, "five dialects, other workloads, endpoints and three agents");
    for dialect in dialects() {
        let roles: BTreeSet<String> =
            sources(&dialect, "rs").iter().map(|file| role(&dialect, file)).collect();
        for role in &roles {
            assert!(ROLES.contains(&role.as_str()), "{}: {role} is no role", shown(&dialect));
            let file = dialect.join(format!("{role}.rs"));
            assert!(file.exists(), "{} is missing", shown(&file));
        }
        for needed in ["watch", "read", "decide", "write", "report"] {
            assert!(roles.contains(needed), "{} has no {needed}.rs", shown(&dialect));
        }
    }
}

#[test]
fn json_paths_stand_where_objects_are_read_and_written() {
    for dialect in dialects() {
        for file in sources(&dialect, "rs") {
            if KNOW_PATHS.contains(&role(&dialect, &file).as_str()) || file.ends_with("tests.rs") {
                continue;
            }
            for line in code(&file) {
                let knows = PATHS.iter().any(|path| line.contains(path))
                    || is_indexed(&line)
                    || calls_helper(&line);
                assert!(!knows, "{} knows a JSON path: {}", shown(&file), line.trim());
            }
        }
    }
}

#[test]
fn names_on_the_wire_stand_in_one_file_of_each_dialect() {
    for dialect in dialects() {
        for file in sources(&dialect, "rs") {
            if ["names", "tests"].contains(&role(&dialect, &file).as_str())
                || file.ends_with("tests.rs")
            {
                continue;
            }
            for line in code(&file) {
                let mut literals = line.split('"').skip(1).step_by(2);
                let key = literals.find(|text| is_key(text));
                assert_eq!(key, None, "{}: {} belongs in names", shown(&file), line.trim());
            }
        }
    }
}

#[test]
fn a_name_on_the_wire_stands_in_one_place() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in ["crates/plan/src", "crates/api/src"] {
        for file in sources(&root().join(folder), "rs") {
            let is_test = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs";
            if file.iter().any(is_test) {
                continue;
            }
            for line in code(&file) {
                let literals = line.split('"').skip(1).step_by(2);
                for key in literals.filter(|text| is_key(text)) {
                    places.entry(key.to_owned()).or_default().push(shown(&file));
                }
            }
        }
    }
    places.retain(|_, files| files.len() > 1);
    assert!(places.is_empty(), "keys to name once, as in api's well_known: {places:#?}");
}

#[test]
fn a_member_is_disturbed_only_with_a_permit_of_the_gate() {
    let action = read(&root().join("crates/plan/src/step/action.rs"));
    let verbs =
        ["Start", "Retry", "Update", "Remove", "Scale", "CreateWithMembers", "DeleteMember"];
    for verb in verbs {
        let carries = action.contains(&format!("    {verb}(Permit),\n"));
        assert!(carries, "Verb::{verb} does not ask for a permit");
    }
    for file in sources(&root().join("crates"), "rs") {
        if file.ends_with("plan/src/gate.rs") || file.ends_with("plan/src/gate/tests.rs") {
            continue;
        }
        let made = code(&file).into_iter().find(|line| {
            line.contains("Permit(") && !line.contains("(Permit)") || line.contains("Permit::")
        });
        assert_eq!(made, None, "{} makes a permit", shown(&file));
    }
}

#[test]
fn only_decide_asks_the_gate() {
    for dialect in dialects() {
        for file in sources(&dialect, "rs") {
            if ["decide", "tests"].contains(&role(&dialect, &file).as_str()) {
                continue;
            }
            // What was decided carries its permits: nobody else has anything to ask.
            let mut lines = code(&file).into_iter();
            let asks =
                lines.find(|line| line.contains("gate::") && line != "use crate::gate::Permit;");
            assert_eq!(asks, None, "{} asks the gate", shown(&file));
        }
    }
}

#[test]
fn a_grant_cannot_be_written_down_outside_the_gate() {
    let gate = read(&root().join("crates/plan/src/gate.rs"));
    for answer in ["struct Grant {", "struct Admission<'a> {"] {
        let fields = gate.split(answer).nth(1).and_then(|rest| rest.split('}').next());
        let is_sealed = fields.is_some_and(|fields| fields.contains("\n    permit: "));
        assert!(is_sealed, "{answer} a literal of it would be a permit that nobody asked for");
    }
}
