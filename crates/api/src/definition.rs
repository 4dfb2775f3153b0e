//! CRDs as they are embedded: files in `crds/`, one CRD per line, generated from the types.
//!
//! A test keeps the files current. After a change of types or their schemas run
//! `EXPECTORATE=overwrite cargo test -p convoy-api --lib definition`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// The CRDs of a generated file, in its order.
pub(crate) fn read(file: &str) -> Vec<CustomResourceDefinition> {
    let read = |line| {
        // By way of a value, as CRDs are read everywhere else: a second parser of this large
        // type would be a fifth of a megabyte of code.
        let value: Value = serde_json::from_str(line).expect("a generated line is JSON");
        serde_json::from_value(value).expect("a generated line is a CRD")
    };
    file.lines().map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{fleet, karpenter, ocm, skyhook};

    const REFRESH: &str = "EXPECTORATE=overwrite cargo test -p convoy-api --lib definition";

    fn is_current(dialect: &str, derived: Vec<CustomResourceDefinition>) {
        let line = |crd: &CustomResourceDefinition| serde_json::to_string(crd).unwrap();
        let wanted: Vec<String> = derived.iter().map(line).collect();
        let file = format!("{}/crds/{dialect}.jsonl", env!("CARGO_MANIFEST_DIR"));
        if std::env::var("EXPECTORATE").is_ok_and(|mode| mode == "overwrite") {
            fs::write(&file, wanted.join("\n") + "\n").unwrap();
        }
        let found = fs::read_to_string(&file).unwrap();
        let found: Vec<&str> = found.lines().collect();
        assert_eq!(found.len(), wanted.len(), "CRDs in {file}; to refresh it: {REFRESH}");
        for ((crd, wanted), found) in derived.iter().zip(&wanted).zip(found) {
            let kind = &crd.spec.names.kind;
            assert!(found == wanted, "{file}: {kind} is out of date; to refresh it: {REFRESH}");
        }
    }

    #[test]
    fn the_files_are_what_the_types_say() {
        is_current("skyhook", skyhook::definition::crds());
        is_current("fleet", fleet::definition::crds());
        is_current("karpenter", karpenter::definition::crds());
        is_current("ocm", ocm::definition::crds());
    }

    #[test]
    fn reading_loses_nothing() {
        for (read, derived) in [
            (skyhook::crds(), skyhook::definition::crds()),
            (fleet::crds(), fleet::definition::crds()),
            (karpenter::crds(), karpenter::definition::crds()),
            (ocm::crds(), ocm::definition::crds()),
        ] {
            assert_eq!(read, derived);
        }
    }
}
