//! One shape of a dialect: the same role under the same name in each, JSON paths only where
//! objects are read and written, and no way around the gate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::circles::graph;
use super::{read, root, sources};

/// What may stand in the folder of a dialect, as a file or as a folder with its file. Each uses only
/// those before it.
const ROLES: [&str; 10] = [
    "names",
    "read",
    "validate",
    "admission",
    "decide",
    "status",
    "write",
    "report",
    "watch",
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

/// Whether a line looks up a member of a JSON value under a name that it computes, as in
/// `entry.get(name)?.as_str()`: what is found is taken for text, a number, a list.
fn reads_value(line: &str) -> bool {
    let taken = ["str(", "i64(", "u64(", "f64(", "bool(", "array(", "object("];
    line.split(".get(").skip(1).any(|rest| {
        let found = rest.split_once(')').map_or("", |(_, after)| after);
        taken.iter().any(|form| {
            found.starts_with(&format!("?.as_{form}"))
                || found.starts_with(&format!(".and_then(Value::as_{}", form.trim_end_matches('(')))
        })
    })
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
fn a_role_uses_only_those_above_it() {
    let level = |role: &str| ROLES.iter().position(|known| *known == role);
    let (mut seen, mut upwards) = (0, Vec::new());
    for (module, others) in graph(&root().join("crates/plan/src")) {
        let [dialects, _, role] = &module[..] else { continue };
        let Some(from) = level(role).filter(|_| dialects == "dialect") else { continue };
        for other in others {
            seen += 1;
            if other.last().and_then(|role| level(role)) > Some(from) {
                upwards.push(format!("{} uses {}", module.join("::"), other.join("::")));
            }
        }
    }
    assert!(seen > 100, "only {seen} uses were found");
    assert!(upwards.is_empty(), "roles that are used from above:\n{}", upwards.join("\n"));
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
                    || reads_value(&line)
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

/// In all crates but `check`, which recomputes what the engine decides and shares no names with it.
#[test]
fn a_name_on_the_wire_stands_in_one_place() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in ["api", "plan", "store", "apiserver", "controllers", "sim", "cli"] {
        for file in sources(&root().join("crates").join(name).join("src"), "rs") {
            let is_test = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs";
            if file.iter().any(is_test) {
                continue;
            }
            for line in code(&file) {
                let literals = line.split('"').skip(1).step_by(2);
                // The path of a request has a group in it, and no key.
                for key in literals.filter(|text| is_key(text) && !text.starts_with('/')) {
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

/// Where something is deleted, or a pod is evicted, without a permit of its own, and why that needs
/// none. Every other `write` file takes the permit from what was decided.
const WITHOUT_PERMIT: [(&str, &str); 27] = [
    ("apps/write.rs", "old ReplicaSets without replicas"),
    ("endpoints/write.rs", "Endpoints whose Service is gone"),
    ("endpoints/write/slices.rs", "slices without endpoints"),
    ("fleet/write/cleanup.rs", "snapshots of a placement that is being deleted"),
    ("fleet/write/membership.rs", "the namespace of a member cluster that leaves"),
    ("fleet/write/override_snapshot.rs", "snapshots beyond the history"),
    ("fleet/write/policy_snapshot.rs", "snapshots beyond the history"),
    ("fleet/write/profile.rs", "the profile of a member cluster that leaves"),
    ("fleet/write/run.rs", "approval requests of a run that is being deleted"),
    ("fleet/write/snapshot.rs", "snapshots beyond the history"),
    ("fleet/write/work.rs", "Works of a binding, whose start or removal had the permit"),
    ("fleet_agent/write.rs", "objects on the member; the hub decided"),
    (
        "karpenter/write/drain.rs",
        "pods of a Node that somebody deleted, or whose claim had the permit",
    ),
    ("karpenter/write/terminate.rs", "Node and pods of a claim whose removal had the permit"),
    ("ocm/write/decision.rs", "decisions that list no cluster any more"),
    ("ocm/write/registration.rs", "rights of a cluster that is not accepted"),
    ("ocm_agent/write.rs", "objects on the member; the hub decided"),
    ("ocm_agent/write/applied_work.rs", "objects on the member; the hub decided"),
    ("skyhook/write.rs", "package pods that are done, and pods of a node that holds a slot"),
    ("skyhook/write/config_map.rs", "ConfigMaps that no package uses"),
    ("skyhook/write/intervention.rs", "failed package pods, as a person asked"),
    ("skyhook/write/node_metadata.rs", "ConfigMaps of nodes that are not selected"),
    ("skyhook/write/orphan.rs", "package pods that are done, of a Skyhook that is gone"),
    ("workloads/write/cron_job.rs", "Jobs that have ended, beyond the history"),
    ("workloads/write/job.rs", "a Job that has ended, after its time to live"),
    ("workloads/write/revisions.rs", "revisions beyond the history"),
    ("step/action.rs", "the verbs themselves"),
];

#[test]
fn what_is_deleted_without_a_permit_is_no_member() {
    let plan = root().join("crates/plan/src");
    let verbs =
        ["Verb::Delete,", "Verb::Delete)", "Verb::Drain", "Action::evict(", "Action::force("];
    let is_test = |file: &PathBuf| file.iter().any(|part| part == "tests" || part == "tests.rs");
    let files = sources(&plan, "rs").into_iter().filter(|file| !is_test(file));
    let found: BTreeSet<String> = files
        .filter(|file| code(file).iter().any(|line| verbs.iter().any(|verb| line.contains(verb))))
        .map(|file| {
            let path = file.strip_prefix(&plan).expect("found below it").display().to_string();
            path.trim_start_matches("dialect/").to_owned()
        })
        .collect();
    let listed: BTreeSet<String> = WITHOUT_PERMIT.iter().map(|(file, _)| (*file).into()).collect();
    assert_eq!(found, listed, "each file needs a permit, or a reason here");
}
