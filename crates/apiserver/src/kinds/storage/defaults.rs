//! Defaults of volumes, claims, classes of storage, drivers.

use serde_json::{Value, json};

use crate::kinds::fill::{self, Fields};

pub(super) fn volume(object: &mut Value) {
    let Value::Object(volume) = object else { return };
    if let Some(status) = fill::make(volume, "status") {
        fill::text(status, "phase", "Pending");
    }
    let Some(spec) = fill::make(volume, "spec") else { return };
    fill::text(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill::absent(spec, "volumeMode", || json!("Filesystem"));
    if let Some(path) = fill::fields(spec.get_mut("hostPath")) {
        fill::absent(path, "type", || json!(""));
    }
    for (source, defaults) in [
        ("iscsi", &[("iscsiInterface", "default")][..]),
        ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
        ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
    ] {
        if let Some(source) = fill::fields(spec.get_mut(source)) {
            for (key, text) in defaults {
                fill::text(source, key, text);
            }
        }
    }
    if let Some(disk) = fill::fields(spec.get_mut("azureDisk")) {
        fill::absent(disk, "cachingMode", || json!("ReadWrite"));
        fill::absent(disk, "fsType", || json!("ext4"));
        fill::absent(disk, "readOnly", || json!(false));
        fill::absent(disk, "kind", || json!("Shared"));
    }
}

pub(in crate::kinds) fn claim(claim: &mut Fields) {
    if let Some(status) = fill::make(claim, "status") {
        fill::text(status, "phase", "Pending");
    }
    if let Some(spec) = fill::make(claim, "spec") {
        fill::absent(spec, "volumeMode", || json!("Filesystem"));
    }
}

pub(super) fn class(object: &mut Value) {
    let Value::Object(class) = object else { return };
    fill::absent(class, "reclaimPolicy", || json!("Delete"));
    fill::absent(class, "volumeBindingMode", || json!("Immediate"));
}

pub(super) fn driver(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    fill::absent(spec, "attachRequired", || json!(true));
    fill::absent(spec, "podInfoOnMount", || json!(false));
    fill::absent(spec, "storageCapacity", || json!(false));
    fill::absent(spec, "fsGroupPolicy", || json!("ReadWriteOnceWithFSType"));
    fill::absent(spec, "requiresRepublish", || json!(false));
    fill::absent(spec, "seLinuxMount", || json!(false));
    if fill::is_empty_list(spec, "volumeLifecycleModes") {
        spec.insert("volumeLifecycleModes".into(), json!(["Persistent"]));
    }
}
