//! The CRDs of this dialect, derived from its types, in every version they are served in. All versions of a kind share one schema: an older
//! or newer one is `v1beta1` without the fields it lacks.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::{
    binding, cluster, cluster_profile, envelope, eviction, overrides, placement, snapshot, staged,
    work,
};

/// Fields that `v1` does not have, as the last part of their path.
const ONLY_V1BETA1: [&str; 5] =
    ["deleteStrategy", "reportBackStrategy", "backReportedStatus", "deleteOptions", "namespaces"];

pub(crate) fn crds() -> Vec<CustomResourceDefinition> {
    let all = &["v1", "v1beta1", "v1alpha1"][..];
    let stable = &["v1", "v1beta1"][..];
    let beta = &["v1beta1"][..];
    let trial = &["v1beta1", "v1alpha1"][..];
    vec![
        of::<placement::ClusterResourcePlacement>(stable),
        of::<placement::ResourcePlacement>(stable),
        placement_status(),
        of::<binding::ClusterResourceBinding>(stable),
        of::<binding::ResourceBinding>(beta),
        of::<snapshot::ClusterResourceSnapshot>(stable),
        of::<snapshot::ResourceSnapshot>(beta),
        of::<snapshot::ClusterSchedulingPolicySnapshot>(stable),
        of::<snapshot::SchedulingPolicySnapshot>(beta),
        of::<work::Work>(stable),
        of::<work::AppliedWork>(stable),
        of::<overrides::ClusterResourceOverride>(all),
        of::<overrides::ClusterResourceOverrideSnapshot>(all),
        of::<overrides::ResourceOverride>(all),
        of::<overrides::ResourceOverrideSnapshot>(all),
        envelope::<envelope::ClusterResourceEnvelope>("ClusterResourceEnvelope", "Cluster"),
        envelope::<envelope::ResourceEnvelope>("ResourceEnvelope", "Namespaced"),
        of::<eviction::ClusterResourcePlacementEviction>(trial),
        of::<eviction::ClusterResourcePlacementDisruptionBudget>(trial),
        named(of::<staged::ClusterStagedUpdateRun>(all)),
        named(of::<staged::StagedUpdateRun>(stable)),
        of::<staged::ClusterStagedUpdateStrategy>(all),
        of::<staged::StagedUpdateStrategy>(stable),
        of::<staged::ClusterApprovalRequest>(all),
        of::<staged::ApprovalRequest>(stable),
        named(of::<cluster::MemberCluster>(stable)),
        of::<cluster::InternalMemberCluster>(stable),
        of::<cluster_profile::ClusterProfile>(&["v1alpha1"]),
    ]
}

fn of<K: CustomResourceExt>(versions: &[&str]) -> CustomResourceDefinition {
    let crd = serde_json::to_value(K::crd()).expect("a CRD is JSON");
    served(crd, versions)
}

/// The same CRD with its one version given under several names.
fn served(mut crd: Value, names: &[&str]) -> CustomResourceDefinition {
    let mut template = crd["spec"]["versions"][0].take();
    strip_null(&mut template["schema"]["openAPIV3Schema"]);
    let version = |name: &&str| {
        let mut version = template.clone();
        version["name"] = json!(name);
        version["served"] = json!(true);
        version["storage"] = json!(*name == "v1beta1" || names.len() == 1);
        if *name == "v1" {
            drop_properties(&mut version["schema"]["openAPIV3Schema"]);
        }
        version
    };
    crd["spec"]["versions"] = names.iter().map(version).collect();
    serde_json::from_value(crd).expect("what was a CRD still is one")
}

/// Names of these kinds end up in labels, which take 63 characters.
fn named(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut crd = serde_json::to_value(crd).expect("a CRD is JSON");
    let versions = crd["spec"]["versions"].as_array_mut();
    for version in versions.into_iter().flatten() {
        version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = json!([{
            "rule": "size(self.metadata.name) < 64",
            "message": "metadata.name must have at most 63 characters",
        }]);
    }
    serde_json::from_value(crd).expect("what was a CRD still is one")
}

fn envelope<T: JsonSchema>(kind: &str, scope: &str) -> CustomResourceDefinition {
    served(bare::<T>(kind, &[], scope, &json!([])), &["v1beta1"])
}

fn placement_status() -> CustomResourceDefinition {
    let columns = json!([
        {"name": "Resource-Index", "type": "string",
            "jsonPath": ".sourceStatus.observedResourceIndex"},
        {"name": "Last-Updated", "type": "string", "jsonPath": ".lastUpdatedTime"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    let kind = "ClusterResourcePlacementStatus";
    let mut crd =
        bare::<envelope::ClusterResourcePlacementStatus>(kind, &["crps"], "Namespaced", &columns);
    crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    served(crd, &["v1", "v1beta1"])
}

/// The CRD of a kind without `spec`, in one version.
fn bare<T: JsonSchema>(kind: &str, short: &[&str], scope: &str, columns: &Value) -> Value {
    let settings = schemars::generate::SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let settings = settings.with_transform(kube::core::schema::StructuralSchemaRewriter);
    let mut schema = serde_json::to_value(settings.into_generator().into_root_schema_for::<T>())
        .expect("a schema is JSON");
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("title");
        fields.remove("$schema");
    }
    let singular = kind.to_lowercase();
    let plural = match singular.strip_suffix("status") {
        Some(_) => format!("{singular}es"),
        None => format!("{singular}s"),
    };
    let mut version = json!({"name": "v1beta1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}});
    // An empty list is dropped by the server: applied again, it would be a change.
    if columns.as_array().is_some_and(|columns| !columns.is_empty()) {
        version["additionalPrinterColumns"] = columns.clone();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.placement.kubernetes-fleet.io")},
        "spec": {
            "group": "placement.kubernetes-fleet.io",
            "names": {
                "kind": kind, "plural": plural, "singular": singular, "shortNames": short,
                "categories": ["fleet", "fleet-placement"],
            },
            "scope": scope,
            "versions": [version],
        },
    })
}

/// An absent field is absent here, never null.
fn strip_null(schema: &mut Value) {
    walk(schema, &mut |fields| {
        fields.remove("nullable");
    });
}

fn drop_properties(schema: &mut Value) {
    walk(schema, &mut |fields| {
        if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|name, _| !ONLY_V1BETA1.contains(&name.as_str()));
        }
        if let Some(Value::Array(words)) = fields.get_mut("enum")
            && words.contains(&json!("ResourceEnvelope"))
        {
            words.retain(|word| *word != json!("ConfigMap"));
            fields.remove("default");
        }
    });
}

/// Calls `change` on every schema object, from the outside in. Schemas are as deep as our
/// own types, so the recursion is bounded.
fn walk(schema: &mut Value, change: &mut impl FnMut(&mut serde_json::Map<String, Value>)) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    change(fields);
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(key) {
            walk(inner, change);
        }
    }
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    for inner in properties.into_iter().flat_map(|properties| properties.values_mut()) {
        walk(inner, change);
    }
}
