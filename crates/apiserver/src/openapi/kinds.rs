//! Generates `library.txt`: the schemas of the Rust types of k8s-openapi that describe each
//! built-in kind, and of all types that they refer to.

use std::collections::BTreeMap;
use std::fs;

use k8s_openapi::Resource;
use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, authentication::v1 as authentication,
    authorization::v1 as authorization, autoscaling, batch::v1 as batch,
    certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
    discovery::v1 as discovery, events::v1 as events, flowcontrol::v1 as flowcontrol,
    networking::v1 as networking, node::v1 as node, policy::v1 as policy, rbac::v1 as rbac,
    resource::v1 as resource, scheduling::v1 as scheduling, storage::v1 as storage,
    storagemigration::v1 as storagemigration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use crate::registry::builtin;

const REFRESH: &str = "EXPECTORATE=overwrite cargo test -p convoy-apiserver --lib openapi::kinds";

/// A kind and the function that adds its schema.
struct KindSchema {
    api_version: &'static str,
    kind: &'static str,
    add: fn(&mut SchemaGenerator),
}

const fn schema_of<T: Resource + JsonSchema>() -> KindSchema {
    KindSchema { api_version: T::API_VERSION, kind: T::KIND, add: add_type::<T> }
}

fn add_type<T: JsonSchema>(generator: &mut SchemaGenerator) {
    // The reference that comes back is of no use; the generator has the schema now.
    drop(generator.subschema_for::<T>());
}

/// Adds what operations of every kind mention.
fn add_common(generator: &mut SchemaGenerator) {
    add_type::<meta::ObjectMeta>(generator);
    add_type::<meta::ListMeta>(generator);
    add_type::<meta::Status>(generator);
    add_type::<meta::DeleteOptions>(generator);
    add_type::<meta::Patch>(generator);
}

const KINDS: &[KindSchema] = &[
    schema_of::<core::Binding>(),
    schema_of::<core::ComponentStatus>(),
    schema_of::<core::ConfigMap>(),
    schema_of::<core::Endpoints>(),
    schema_of::<core::Event>(),
    schema_of::<core::LimitRange>(),
    schema_of::<core::Namespace>(),
    schema_of::<core::Node>(),
    schema_of::<core::PersistentVolumeClaim>(),
    schema_of::<core::PersistentVolume>(),
    schema_of::<core::Pod>(),
    schema_of::<core::PodTemplate>(),
    schema_of::<core::ReplicationController>(),
    schema_of::<core::ResourceQuota>(),
    schema_of::<core::Secret>(),
    schema_of::<core::ServiceAccount>(),
    schema_of::<core::Service>(),
    schema_of::<apiregistration::APIService>(),
    schema_of::<apps::ControllerRevision>(),
    schema_of::<apps::DaemonSet>(),
    schema_of::<apps::Deployment>(),
    schema_of::<apps::ReplicaSet>(),
    schema_of::<apps::StatefulSet>(),
    schema_of::<events::Event>(),
    schema_of::<authentication::SelfSubjectReview>(),
    schema_of::<authentication::TokenRequest>(),
    schema_of::<authentication::TokenReview>(),
    schema_of::<authorization::LocalSubjectAccessReview>(),
    schema_of::<authorization::SelfSubjectAccessReview>(),
    schema_of::<authorization::SelfSubjectRulesReview>(),
    schema_of::<authorization::SubjectAccessReview>(),
    schema_of::<autoscaling::v1::HorizontalPodAutoscaler>(),
    schema_of::<autoscaling::v1::Scale>(),
    schema_of::<autoscaling::v2::HorizontalPodAutoscaler>(),
    schema_of::<batch::CronJob>(),
    schema_of::<batch::Job>(),
    schema_of::<certificates::CertificateSigningRequest>(),
    schema_of::<certificates::ClusterTrustBundle>(),
    schema_of::<certificates::PodCertificateRequest>(),
    schema_of::<networking::IngressClass>(),
    schema_of::<networking::Ingress>(),
    schema_of::<networking::IPAddress>(),
    schema_of::<networking::NetworkPolicy>(),
    schema_of::<networking::ServiceCIDR>(),
    schema_of::<policy::Eviction>(),
    schema_of::<policy::PodDisruptionBudget>(),
    schema_of::<rbac::ClusterRoleBinding>(),
    schema_of::<rbac::ClusterRole>(),
    schema_of::<rbac::RoleBinding>(),
    schema_of::<rbac::Role>(),
    schema_of::<storage::CSIDriver>(),
    schema_of::<storage::CSINode>(),
    schema_of::<storage::CSIStorageCapacity>(),
    schema_of::<storage::StorageClass>(),
    schema_of::<storage::VolumeAttachment>(),
    schema_of::<storage::VolumeAttributesClass>(),
    schema_of::<admission::MutatingAdmissionPolicy>(),
    schema_of::<admission::MutatingAdmissionPolicyBinding>(),
    schema_of::<admission::MutatingWebhookConfiguration>(),
    schema_of::<admission::ValidatingAdmissionPolicy>(),
    schema_of::<admission::ValidatingAdmissionPolicyBinding>(),
    schema_of::<admission::ValidatingWebhookConfiguration>(),
    schema_of::<apiextensions::CustomResourceDefinition>(),
    schema_of::<scheduling::PriorityClass>(),
    schema_of::<coordination::Lease>(),
    schema_of::<node::RuntimeClass>(),
    schema_of::<discovery::EndpointSlice>(),
    schema_of::<flowcontrol::FlowSchema>(),
    schema_of::<flowcontrol::PriorityLevelConfiguration>(),
    schema_of::<resource::DeviceClass>(),
    schema_of::<resource::DeviceTaintRule>(),
    schema_of::<resource::ResourceClaim>(),
    schema_of::<resource::ResourceClaimTemplate>(),
    schema_of::<resource::ResourceSlice>(),
    schema_of::<storagemigration::StorageVersionMigration>(),
];

fn library() -> String {
    let mut settings = SchemaSettings::draft07();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    add_common(&mut generator);
    for kind in KINDS {
        (kind.add)(&mut generator);
    }
    let types: BTreeMap<String, Value> = generator.take_definitions(false).into_iter().collect();
    let lines: Vec<String> =
        types.iter().map(|(name, schema)| format!("{name} {schema}\n")).collect();
    lines.concat()
}

#[test]
fn the_file_is_what_the_library_says() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/openapi/library.txt");
    let wanted = library();
    if std::env::var("EXPECTORATE").is_ok_and(|mode| mode == "overwrite") {
        fs::write(file, &wanted).unwrap();
    }
    let found = fs::read_to_string(file).unwrap();
    if found != wanted {
        let stale = wanted.lines().find(|line| !found.contains(line));
        let name = stale.and_then(|line| line.split(' ').next()).unwrap_or("a type that is gone");
        panic!("{file}: {name} is out of date; to refresh it: {REFRESH}");
    }
}

#[test]
fn every_built_in_kind_has_its_type() {
    for resource in builtin().iter() {
        let api_version = resource.api_version();
        let found =
            KINDS.iter().any(|one| one.api_version == api_version && one.kind == resource.kind);
        assert!(found, "{api_version} {}", resource.kind);
    }
}
