//! Volumes, claims and classes of storage in tables.

use convoy_api::well_known::annotation::{IS_DEFAULT_CLASS, STORAGE_CLASS};
use serde_json::{Value, json};

use crate::column::Cell::{Count, Flag, Made, Text, Words};
use crate::column::{AGE, Column, NAME, Row, boolean, integer, name, plain, string, wide};

pub(super) const VOLUME: &[Column] = &[
    NAME,
    string("Capacity", Text("/spec/capacity/storage", "0")),
    string("Access Modes", Made(volume_modes)),
    string("Reclaim Policy", Text("/spec/persistentVolumeReclaimPolicy", "")),
    string("Status", Made(phase)),
    string("Claim", Made(volume_claim)),
    string("StorageClass", Made(storage_class)),
    string("VolumeAttributesClass", Text("/spec/volumeAttributesClassName", "<unset>")),
    string("Reason", Text("/status/reason", "")),
    AGE,
    wide("VolumeMode", Text("/spec/volumeMode", "<unset>")),
];

pub(super) const CLAIM: &[Column] = &[
    NAME,
    string("Status", Made(phase)),
    string("Volume", Text("/spec/volumeName", "")),
    string("Capacity", Made(claim_capacity)),
    string("Access Modes", Made(claim_modes)),
    string("StorageClass", Made(storage_class)),
    string("VolumeAttributesClass", Text("/spec/volumeAttributesClassName", "<unset>")),
    AGE,
    wide("VolumeMode", Text("/spec/volumeMode", "<unset>")),
];

pub(super) const CLASS: &[Column] = &[
    name(Made(class_name)),
    string("Provisioner", Text("/provisioner", "")),
    string("ReclaimPolicy", Text("/reclaimPolicy", "Delete")),
    string("VolumeBindingMode", Text("/volumeBindingMode", "Immediate")),
    string("AllowVolumeExpansion", Flag("/allowVolumeExpansion", false)),
    AGE,
];

pub(super) const ATTRIBUTES_CLASS: &[Column] =
    &[NAME, string("DriverName", Text("/driverName", "")), AGE];

pub(super) const ATTACHMENT: &[Column] = &[
    NAME,
    Column { name: "Attacher", ..name(Text("/spec/attacher", "")) },
    string("PV", Text("/spec/source/persistentVolumeName", "")),
    string("Node", Text("/spec/nodeName", "")),
    boolean("Attached", "/status/attached", false),
    AGE,
];

pub(super) const DRIVER: &[Column] = &[
    NAME,
    boolean("AttachRequired", "/spec/attachRequired", true),
    boolean("PodInfoOnMount", "/spec/podInfoOnMount", false),
    boolean("StorageCapacity", "/spec/storageCapacity", false),
    string("TokenRequests", Made(token_audiences)),
    boolean("RequiresRepublish", "/spec/requiresRepublish", false),
    string("Modes", Words("/spec/volumeLifecycleModes", "<none>")),
    AGE,
];

pub(super) const NODE: &[Column] = &[NAME, integer("Drivers", Count(&["/spec/drivers"])), AGE];

fn volume_modes(row: &Row<'_>) -> Value {
    access_modes(row, "/spec/accessModes")
}

/// A claim has what it asked for only once it has a volume.
fn claim_modes(row: &Row<'_>) -> Value {
    match row.text("/spec/volumeName") {
        "" => json!(""),
        _ => access_modes(row, "/status/accessModes"),
    }
}

fn claim_capacity(row: &Row<'_>) -> Value {
    json!(match row.text("/spec/volumeName") {
        "" => String::new(),
        _ => row.text_or("/status/capacity/storage", "0"),
    })
}

fn access_modes(row: &Row<'_>, pointer: &str) -> Value {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short = known.iter().filter(|(mode, _)| row.items(pointer).any(|one| one == mode));
    json!(short.map(|(_, short)| *short).collect::<Vec<_>>().join(","))
}

fn phase(row: &Row<'_>) -> Value {
    json!(if row.is_deleting() { "Terminating" } else { row.text("/status/phase") })
}

fn volume_claim(row: &Row<'_>) -> Value {
    let claim = &row.object["spec"]["claimRef"];
    if !claim.is_object() {
        return json!("");
    }
    json!(format!("{}/{}", plain(&claim["namespace"]), plain(&claim["name"])))
}

/// An annotation of old counts before the field.
fn storage_class(row: &Row<'_>) -> Value {
    let annotated = &row.object["metadata"]["annotations"][STORAGE_CLASS];
    json!(annotated.as_str().unwrap_or_else(|| row.text("/spec/storageClassName")))
}

/// Several classes may say that they are the default; the youngest is, and of equals the first
/// by name.
fn class_name(row: &Row<'_>) -> Value {
    let annotation = |object: &Value, key: &str| object["metadata"]["annotations"][key] == "true";
    let says_so = |object: &&Value| {
        annotation(object, IS_DEFAULT_CLASS)
            || annotation(object, "storageclass.beta.kubernetes.io/is-default-class")
    };
    let name = |object: &Value| plain(&object["metadata"]["name"]);
    let created = |object: &Value| plain(&object["metadata"]["creationTimestamp"]);
    let default = row
        .siblings
        .iter()
        .filter(says_so)
        .max_by(|a, b| created(a).cmp(&created(b)).then_with(|| name(b).cmp(&name(a))));
    let is_default = default.is_some_and(|one| name(one) == name(row.object));
    json!(format!("{}{}", name(row.object), if is_default { " (default)" } else { "" }))
}

fn token_audiences(row: &Row<'_>) -> Value {
    let Some(Value::Array(requests)) = row.object.pointer("/spec/tokenRequests") else {
        return json!("<unset>");
    };
    let audiences: Vec<String> = requests.iter().map(|one| plain(&one["audience"])).collect();
    json!(audiences.join(","))
}
