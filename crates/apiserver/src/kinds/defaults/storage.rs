//! Volumes, claims, classes of storage, secrets, limits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::kinds::fill::{self, Fields};

pub(in crate::kinds) fn volume(object: &mut Value) {
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

pub(in crate::kinds) fn class(object: &mut Value) {
    let Value::Object(class) = object else { return };
    fill::absent(class, "reclaimPolicy", || json!("Delete"));
    fill::absent(class, "volumeBindingMode", || json!("Immediate"));
}

pub(in crate::kinds) fn driver(object: &mut Value) {
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

/// Texts become data, and are not kept beside it.
pub(in crate::kinds) fn secret(secret: &mut Fields) {
    fill::text(secret, "type", "Opaque");
    let Some(Value::Object(texts)) = secret.shift_remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    if let Some(data) = fill::make(secret, "data") {
        for (key, text) in texts {
            let text = text.as_str().unwrap_or_default();
            data.insert(key, json!(STANDARD.encode(text)));
        }
    }
}

/// Limits of containers say what a container gets that asks for nothing.
pub(in crate::kinds) fn limit(limit: &mut Fields) {
    if fill::given(limit, "type") != "Container" {
        return;
    }
    for (into, from) in
        [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")]
    {
        let Some(Value::Object(amounts)) = limit.get(from) else { continue };
        let amounts = amounts.clone();
        if let Some(target) = fill::make(limit, into) {
            for (name, amount) in amounts {
                fill::absent(target, &name, || amount);
            }
        }
    }
}
