//! `convoy crds`, as golden files: what users install, reviewed like code.

use std::path::Path;

use crate::binary;

fn golden(dialect: &str) {
    let run = binary::run_in(Path::new("."), &["crds", "--dialect", dialect]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let file = format!("{}/tests/golden/crds/{dialect}.yaml", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(file, &run.stdout);
}

#[test]
fn crds_of_skyhook() {
    golden("skyhook");
}

#[test]
fn crds_of_fleet() {
    golden("fleet");
}

#[test]
fn crds_of_karpenter() {
    golden("karpenter");
}

#[test]
fn crds_of_ocm() {
    golden("ocm");
}

#[test]
fn all_crds_are_those_of_the_dialects_in_turn() {
    let print = |arguments: &[&str]| binary::run_in(Path::new("."), arguments).stdout;
    let dialects = ["skyhook", "fleet", "apps", "karpenter", "ocm"];
    let each: String = dialects.map(|dialect| print(&["crds", "--dialect", dialect])).concat();
    assert_eq!(print(&["crds"]), each);
}
