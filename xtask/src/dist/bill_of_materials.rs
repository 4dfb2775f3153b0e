//! The bill of materials of a binary, in `CycloneDX`'s JSON: the crates that are linked into it
//! on its target, with versions, licences and the checksums of what was downloaded.
//!
//! The tree is `cargo tree`'s, because `cargo metadata` knows one set of features for the whole
//! workspace, and would list crates that only tests bring along. Build scripts and procedural
//! macros run at compile time and are left out. A crate is listed if the linker is given it, even if it
//! keeps nothing of it: mimalloc, for which released binaries have jemalloc. There is no serial number, which would have to be
//! random; the time is that of the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::binary;
use super::source::Source;
use crate::cargo_command;
use crate::kubernetes::root;

/// A crate in a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
}

impl Package {
    /// How other parts of the document refer to it.
    fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// What is known of a crate in the tree.
#[derive(Debug, Default)]
struct Linked {
    licence: String,
    dependencies: BTreeSet<Package>,
}

pub(super) fn of_target(triple: &str, source: &Source) -> Result<Vec<u8>> {
    let arguments = [
        "tree",
        "--package=convoy",
        binary::FEATURES,
        "--locked",
        "--target",
        triple,
        "--edges=normal,no-proc-macro",
        "--prefix=depth",
        "--format=\t{p}\t{l}",
    ];
    let mut command = cargo_command();
    command.args(arguments).current_dir(root()).stderr(Stdio::inherit());
    let output = command.output().context("could not run cargo")?;
    ensure!(output.status.success(), "cargo tree failed");
    let tree = tree(&String::from_utf8(output.stdout)?)?;
    let lock = std::fs::read_to_string(root().join("Cargo.lock"))?;
    let bill = document(&tree, &checksums(&lock), source)?;
    Ok((serde_json::to_string_pretty(&bill)? + "\n").into_bytes())
}

/// Reads lines of `DEPTH\tNAME vVERSION (PATH)\tLICENCE (*)`; the mark says that the dependencies
/// of the crate are listed elsewhere.
fn tree(text: &str) -> Result<BTreeMap<Package, Linked>> {
    let mut found: BTreeMap<Package, Linked> = BTreeMap::new();
    let mut ancestors: Vec<Package> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut fields = line.split('\t');
        let [Some(depth), Some(crate_), Some(licence)] = [(); 3].map(|()| fields.next()) else {
            anyhow::bail!("a line of cargo tree has three fields: {line}");
        };
        let mut words = crate_.split(' ');
        let name = words.next().unwrap_or_default();
        let version = words.next().and_then(|word| word.strip_prefix('v'));
        let version = version.with_context(|| format!("a crate has a version: {line}"))?;
        let package = Package { name: name.to_owned(), version: version.to_owned() };
        ancestors.truncate(depth.parse().with_context(|| format!("no depth: {line}"))?);
        if let Some(parent) = ancestors.last() {
            found.entry(parent.clone()).or_default().dependencies.insert(package.clone());
        }
        let licence = licence.trim_end_matches(" (*)").replace('/', " OR ");
        found.entry(package.clone()).or_default().licence = licence;
        ancestors.push(package);
    }
    Ok(found)
}

/// The checksums in `Cargo.lock`. Crates of this workspace have none.
fn checksums(lock: &str) -> BTreeMap<Package, String> {
    let mut found = BTreeMap::new();
    for block in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let start = format!("{name} = \"");
            let value = block.lines().find_map(|line| line.strip_prefix(&start));
            value.map(|value| value.trim_end_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert(Package { name, version }, sum);
        }
    }
    found
}

fn document(
    tree: &BTreeMap<Package, Linked>,
    checksums: &BTreeMap<Package, String>,
    source: &Source,
) -> Result<Value> {
    let main = Package { name: "convoy".to_owned(), version: source.version.clone() };
    ensure!(tree.contains_key(&main), "cargo tree does not list {}", main.reference());
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for (package, linked) in tree {
        if *package != main {
            components.push(component(package, linked, checksums.get(package)));
        }
        let references: Vec<String> = linked.dependencies.iter().map(Package::reference).collect();
        dependencies.push(json!({ "ref": package.reference(), "dependsOn": references }));
    }
    let mut application = component(&main, &tree[&main], None);
    application["type"] = json!("application");
    application["properties"] = json!([{ "name": "commit", "value": source.commit }]);
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "timestamp": source.timestamp()?, "component": application },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Package, linked: &Linked, checksum: Option<&String>) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": package.reference(),
        "name": package.name,
        "version": package.version,
        "licenses": [{ "expression": linked.licence }],
    });
    // Crates of this workspace are in no registry: a package URL would name somebody else's.
    if let Some(checksum) = checksum {
        component["purl"] = json!(format!("pkg:cargo/{}@{}", package.name, package.version));
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::super::source::example;
    use super::*;

    const TREE: &str = "0\tconvoy v1.2.3 (/home/someone/crates/cli)\tApache-2.0\n\
                        1\tconvoy-api v1.2.3 (/home/someone/crates/api)\tApache-2.0\n\
                        2\tserde v1.0.0\tMIT OR Apache-2.0\n\
                        3\tserde_core v1.0.0\tMIT/Apache-2.0\n\
                        1\tserde v1.0.0\tMIT OR Apache-2.0 (*)\n\
                        1\ttar v0.4.0\tMIT\n";
    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\n\
                        source = \"registry\"\nchecksum = \"aa\"\n\n[[package]]\nname = \"tar\"\n\
                        version = \"0.4.0\"\nchecksum = \"bb\"\ndependencies = [\n \"serde\",\n]\n\n\
                        [[package]]\nname = \"convoy-api\"\nversion = \"1.2.3\"\n";

    fn bill() -> Value {
        document(&tree(TREE).unwrap(), &checksums(LOCK), &example()).unwrap()
    }

    fn component_of(bill: &Value, reference: &str) -> Value {
        let components = bill["components"].as_array().unwrap();
        components.iter().find(|it| it["bom-ref"] == reference).unwrap().clone()
    }

    #[test]
    fn every_crate_is_listed_once_with_licence_and_checksum() {
        let bill = bill();
        let components = bill["components"].as_array().unwrap();
        let names: Vec<&Value> = components.iter().map(|it| &it["bom-ref"]).collect();
        assert_eq!(names, ["convoy-api@1.2.3", "serde@1.0.0", "serde_core@1.0.0", "tar@0.4.0"]);
        let serde = component_of(&bill, "serde@1.0.0");
        assert_eq!(serde["purl"], "pkg:cargo/serde@1.0.0");
        assert_eq!(serde["hashes"], json!([{ "alg": "SHA-256", "content": "aa" }]));
        let core = component_of(&bill, "serde_core@1.0.0");
        assert_eq!(core["licenses"], json!([{ "expression": "MIT OR Apache-2.0" }]));
        let ours = component_of(&bill, "convoy-api@1.2.3");
        assert!(ours.get("purl").is_none(), "no registry has it");
    }

    #[test]
    fn dependencies_are_those_of_the_tree() {
        let bill = bill();
        let of = |reference: &str| {
            let all = bill["dependencies"].as_array().unwrap();
            let found: Vec<&Value> = all.iter().filter(|it| it["ref"] == reference).collect();
            assert_eq!(found.len(), 1, "{reference}");
            found[0]["dependsOn"].clone()
        };
        assert_eq!(of("convoy@1.2.3"), json!(["convoy-api@1.2.3", "serde@1.0.0", "tar@0.4.0"]));
        assert_eq!(of("serde@1.0.0"), json!(["serde_core@1.0.0"]));
        assert_eq!(of("tar@0.4.0"), json!([]));
    }

    #[test]
    fn the_document_is_the_same_every_time() {
        let bill = bill();
        assert_eq!(bill["metadata"]["timestamp"], "2026-01-01T00:00:00Z");
        assert_eq!(bill["metadata"]["component"]["type"], "application");
        assert!(bill.get("serialNumber").is_none(), "it would be random");
        assert_eq!(bill, self::bill());
        assert!(!bill.to_string().contains("/home/someone"));
    }
}

/// Reads the real tree: its format is cargo's to change.
#[test]
fn the_bill_of_the_real_workspace_is_complete() {
    let host = if cfg!(target_arch = "aarch64") { "aarch64" } else { "x86_64" };
    let source =
        Source { version: env!("CARGO_PKG_VERSION").to_owned(), ..super::source::example() };
    let bill = of_target(&format!("{host}-unknown-linux-gnu"), &source).unwrap();
    let bill: Value = serde_json::from_slice(&bill).unwrap();
    let components = bill["components"].as_array().unwrap();
    let names: BTreeSet<&str> = components.iter().filter_map(|it| it["name"].as_str()).collect();
    for linked in ["convoy-plan", "tokio", "rustls", "tikv-jemallocator", "tikv-jemalloc-sys"] {
        assert!(names.contains(linked), "{linked} is linked into the binary");
    }
    for not_linked in ["proptest", "criterion", "syn", "xtask", "tar"] {
        assert!(!names.contains(not_linked), "{not_linked} is not in the binary");
    }
    for component in components {
        let name = component["name"].as_str().unwrap();
        assert!(component["licenses"][0]["expression"] != "", "{name} has no licence");
        assert_eq!(component.get("hashes").is_some(), !name.starts_with("convoy-"), "{name}");
    }
}
