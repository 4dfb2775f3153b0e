//! Which fields upstream's documents call required, where the types' library says otherwise.
//!
//! The library makes a field required wherever its own structs always have it, and `explain`
//! would repeat that.

use serde_json::{Map, Value, json};

/// Schemas, by their last three words, with what they require.
const REQUIRED: &[(&str, &[&str])] = &[
    ("apps.v1.ControllerRevision", &["revision"]),
    ("apps.v1.DaemonSet", &[]),
    ("apps.v1.DaemonSetCondition", &["type", "status"]),
    ("apps.v1.Deployment", &[]),
    ("apps.v1.DeploymentCondition", &["type", "status"]),
    ("apps.v1.ReplicaSet", &[]),
    ("apps.v1.ReplicaSetCondition", &["type", "status"]),
    ("apps.v1.StatefulSet", &[]),
    ("apps.v1.StatefulSetCondition", &["type", "status"]),
    ("core.v1.ConfigMapEnvSource", &[]),
    ("core.v1.ConfigMapKeySelector", &["key"]),
    ("core.v1.ConfigMapProjection", &[]),
    ("core.v1.ConfigMapVolumeSource", &[]),
    ("core.v1.Event", &["metadata", "involvedObject"]),
    ("core.v1.LocalObjectReference", &[]),
    ("core.v1.SecretEnvSource", &[]),
    ("core.v1.SecretKeySelector", &["key"]),
    ("core.v1.SecretProjection", &[]),
    ("events.v1.Event", &["eventTime"]),
    ("flowcontrol.v1.FlowSchema", &[]),
    ("flowcontrol.v1.FlowSchemaCondition", &[]),
    ("flowcontrol.v1.LimitedPriorityLevelConfiguration", &[]),
    ("flowcontrol.v1.PriorityLevelConfiguration", &[]),
    ("flowcontrol.v1.PriorityLevelConfigurationCondition", &[]),
    ("resource.v1.DeviceClass", &["spec"]),
    ("resource.v1.ResourceClaim", &["spec"]),
    ("resource.v1.ResourceClaimTemplate", &["spec"]),
    ("resource.v1.ResourceClaimTemplateSpec", &["spec"]),
];

/// Corrects what a schema requires. No other kind requires metadata: clients may leave them out
/// where a name is generated or given in the path.
pub(super) fn settle(name: &str, schema: &mut Map<String, Value>) {
    let fields: Vec<Value> = match REQUIRED.iter().find(|(known, _)| *known == name) {
        Some((_, fields)) => fields.iter().map(|field| json!(field)).collect(),
        None => match schema.get("required") {
            Some(Value::Array(fields)) => {
                fields.iter().filter(|field| *field != "metadata").cloned().collect()
            }
            _ => return,
        },
    };
    if fields.is_empty() {
        schema.shift_remove("required");
    } else {
        schema.insert("required".into(), Value::Array(fields));
    }
}
