//! What `convoy validate` says about mistakes, as golden files: one for each kind of mistake.

mod manifests;

use std::fs;

use tempfile::TempDir;

use self::manifests::{
    ADMISSION, FIELDS, KINDS, METADATA, ONCE, REFERENCES, SCHEDULES, SOUND, VALUES,
};
use crate::binary::{Run, run_in};

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

fn validate(files: &[(&str, &str)], arguments: &[&str]) -> Run {
    let files = directory(files);
    let arguments: Vec<&str> =
        std::iter::once("validate").chain(arguments.iter().copied()).collect();
    run_in(files.path(), &arguments)
}

/// Validates one file, and compares what is said with a golden file.
fn golden(name: &str, text: &str, arguments: &[&str], code: i32) {
    let file = format!("{name}.yaml");
    let arguments = [&["-f", file.as_str()], arguments].concat();
    let run = validate(&[(&file, text)], &arguments);
    assert_eq!((run.code, run.stderr.as_str()), (Some(code), ""), "{}", run.stdout);
    let strict = if arguments.contains(&"--strict") { "-strict" } else { "" };
    let golden = format!("{}/tests/golden/validate/{name}{strict}.txt", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(golden, &run.stdout);
}

#[test]
fn unknown_fields_and_values_are_told_with_what_was_meant() {
    golden("fields", FIELDS, &[], 1);
}

#[test]
fn unknown_kinds_are_told_with_what_was_meant() {
    golden("kinds", KINDS, &[], 1);
}

/// In groups of Kubernetes and of definitions in the input; nothing is known of other groups.
#[test]
fn kinds_that_a_placement_selects_are_told_with_what_was_meant() {
    let text = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors:
  - {group: \"\", version: v1, kind: Namespac, name: shop}
  - {group: example.com, version: v1, kind: Wigdet, name: a}
  - {group: elsewhere.example, version: v1, kind: Wigdet, name: a}
  - {group: example.com, version: v1, kind: Widget, name: a}
";
    let run = validate(&[("placement.yaml", text)], &["-f", "placement.yaml"]);
    let core = "unknown kind \"Namespac\" in group \"\"; did you mean \"Namespace\"?";
    let custom = "unknown kind \"Wigdet\" in group \"example.com\"; did you mean \"Widget\"?";
    assert!(run.stdout.contains(core) && run.stdout.contains(custom), "{}", run.stdout);
    assert_eq!(run.stdout.matches("unknown kind").count(), 2, "{}", run.stdout);
}

#[test]
fn schedules_are_told_with_what_was_meant() {
    golden("schedules", SCHEDULES, &[], 1);
}

#[test]
fn values_are_shown_as_they_are_written_and_one_hides_no_other() {
    golden("values", VALUES, &[], 1);
}

#[test]
fn names_and_selectors_that_lead_nowhere_are_warnings() {
    golden("references", REFERENCES, &[], 0);
}

#[test]
fn strictly_every_warning_is_an_error_and_everything_has_to_be_there() {
    golden("references", REFERENCES, &["--strict"], 1);
}

#[test]
fn what_admission_refuses_is_refused() {
    golden("admission", ADMISSION, &[], 1);
}

#[test]
fn sound_objects_pass_strictly() {
    let run = validate(&[("sound.yaml", SOUND)], &["-f", "sound.yaml", "--strict"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "4 objects read: no problems found\n"));
}

#[test]
fn an_empty_directory_is_an_error() {
    let run = validate(&[("empty/notes.txt", "")], &["-f", "empty"]);
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.stdout,
        "error: empty: the directory has no *.yaml, *.yml or *.json files\n\
         0 objects read: 1 error\n"
    );
    let run = validate(&[("values/values.yaml", "replicas: 3\n")], &["-f", "values"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stdout.contains("error: values: no Kubernetes object was found\n"), "{run:?}");
}

/// As an empty directory is: a command before the pipe failed, or a name was mistyped.
#[test]
fn input_without_any_object_is_an_error() {
    let files = [("empty.yaml", ""), ("comment.yaml", "# nothing\n---\n")];
    for command in ["validate", "plan"] {
        for file in ["empty.yaml", "comment.yaml"] {
            let files = directory(&files);
            let run = run_in(files.path(), &[command, "-f", file]);
            assert_eq!(run.code, Some(2), "{command} {file}: {}", run.stdout);
            let message = format!("error: {file}: no Kubernetes object was found");
            let text = format!("{}{}", run.stdout, run.stderr);
            assert!(text.contains(&message), "{command} {file}: {text}");
        }
    }
    let node = "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n";
    let both = [("empty.yaml", ""), ("node.yaml", node)];
    let run = validate(&both, &["-f", "empty.yaml", "-f", "node.yaml"]);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
}

#[test]
fn a_wrong_type_in_metadata_hides_nothing_else() {
    golden("metadata", METADATA, &[], 2);
}

#[test]
fn a_mistake_is_told_once() {
    golden("once", ONCE, &[], 1);
}

#[test]
fn files_that_are_no_manifests_are_skipped_in_directories() {
    let files = [
        ("app/kustomization.yaml", "resources: [service.yaml]\n"),
        (
            "app/service-account.yaml",
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}",
        ),
        ("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("chart/values.yaml", "replicas: 3\n"),
        ("chart/templates/web.yaml", "kind: {{ .Values.kind }}\n"),
    ];
    let run = validate(&files, &["-f", ".", "--strict"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let golden = format!("{}/tests/golden/validate/directory.txt", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(golden, &run.stdout);
    // Named, such a file is expected to hold objects.
    let run = validate(&files, &["-f", "app/kustomization.yaml"]);
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[test]
fn objects_may_be_given_twice_with_equal_content() {
    let node = |label: &str| {
        format!("apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  labels: {{zone: {label}}}\n")
    };
    let (east, west) = (node("east"), node("west"));
    let run = validate(&[("a.yaml", &east), ("b.yaml", &east)], &["-f", "."]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "1 object read: no problems found\n"));
    let run = validate(&[("a.yaml", &east), ("b.yaml", &west)], &["-f", "."]);
    assert_eq!(run.code, Some(2));
    assert!(run.stdout.contains("first defined at ./a.yaml:1 with another metadata.labels.zone"));
}
