//! Volumes of a pod, and the sources that every cluster has.

use convoy_api::text::Name;
use serde_json::Value;

use crate::kinds::at::{At, Errors};

/// Checks the volumes; the names that containers may mount.
pub(super) fn validate<'v>(volumes: &At<'v>, errors: &mut Errors) -> Vec<(&'v str, &'v Value)> {
    let mut known: Vec<(&str, &Value)> = Vec::new();
    for volume in volumes.items() {
        let before = errors.len();
        source(&volume, errors);
        let name = volume.get("name");
        name.required_name(Name::Dns1123Label, errors);
        if known.iter().any(|(other, _)| *other == name.text()) {
            errors.push(name.duplicate());
        }
        if errors.len() == before {
            known.push((name.text(), volume.value));
        }
    }
    known
}

fn source(volume: &At<'_>, errors: &mut Errors) {
    let sources: Vec<&str> =
        volume.entries().into_iter().map(|(key, _)| key).filter(|key| *key != "name").collect();
    for extra in sources.iter().skip(1) {
        errors.push(volume.get(extra).forbidden("may not specify more than 1 volume type"));
    }
    let Some(kind) = sources.first() else {
        errors.push(volume.required("must specify a volume type"));
        return;
    };
    let source = volume.get(kind);
    let require = |field: &str, errors: &mut Errors| {
        if source.get(field).is_empty() {
            errors.push(source.get(field).required(""));
        }
    };
    match *kind {
        "hostPath" => {
            require("path", errors);
            back_steps(&source.get("path"), errors);
            let kinds = [
                "",
                "DirectoryOrCreate",
                "Directory",
                "FileOrCreate",
                "File",
                "Socket",
                "CharDevice",
                "BlockDevice",
            ];
            source.get("type").one_of_if_given(&kinds, errors);
        }
        "secret" => {
            require("secretName", errors);
            mode(&source.get("defaultMode"), errors);
            items(&source, errors);
        }
        "configMap" => {
            require("name", errors);
            mode(&source.get("defaultMode"), errors);
            items(&source, errors);
        }
        "persistentVolumeClaim" => require("claimName", errors),
        "downwardAPI" | "projected" => mode(&source.get("defaultMode"), errors),
        "nfs" => {
            require("server", errors);
            require("path", errors);
        }
        "csi" => require("driver", errors),
        _ => {}
    }
}

fn mode(mode: &At<'_>, errors: &mut Errors) {
    if mode.integer().is_some_and(|bits| !(0..=0o777).contains(&bits)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(mode.invalid(detail));
    }
}

fn items(source: &At<'_>, errors: &mut Errors) {
    for item in source.get("items").items() {
        for field in ["key", "path"] {
            if item.get(field).is_empty() {
                errors.push(item.get(field).required(""));
            }
        }
        local_path(&item.get("path"), errors);
        mode(&item.get("mode"), errors);
    }
}

fn back_steps(path: &At<'_>, errors: &mut Errors) {
    if path.text().split('/').any(|part| part == "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
}

/// A path that stays below where it begins.
pub(super) fn local_path(path: &At<'_>, errors: &mut Errors) {
    if path.text().starts_with('/') {
        errors.push(path.invalid("must be a relative path"));
    }
    back_steps(path, errors);
}
