//! Which type of the types' library describes which kind.

use k8s_openapi::Resource;
use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, authentication::v1 as authentication,
    authorization::v1 as authorization, autoscaling, batch::v1 as batch,
    certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
    discovery::v1 as discovery, events::v1 as events, flowcontrol::v1 as flowcontrol,
    networking::v1 as networking, node::v1 as node, policy::v1 as policy, rbac::v1 as rbac,
    resource::v1 as resource, scheduling::v1 as scheduling, storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use schemars::{JsonSchema, SchemaGenerator};

/// A kind and what adds its schema.
struct Known {
    api_version: &'static str,
    kind: &'static str,
    add: fn(&mut SchemaGenerator),
}

const fn known<T: Resource + JsonSchema>() -> Known {
    Known { api_version: T::API_VERSION, kind: T::KIND, add: add_type::<T> }
}

fn add_type<T: JsonSchema>(generator: &mut SchemaGenerator) {
    // The reference that comes back is of no use; the generator has the schema now.
    drop(generator.subschema_for::<T>());
}

/// Adds a kind and all that it consists of; nothing for kinds that are not known.
pub(super) fn add(generator: &mut SchemaGenerator, api_version: &str, kind: &str) {
    let mut kinds = KINDS.iter();
    if let Some(found) = kinds.find(|one| one.api_version == api_version && one.kind == kind) {
        (found.add)(generator);
    }
}

/// Adds what operations of every kind mention.
pub(super) fn add_common(generator: &mut SchemaGenerator) {
    add_type::<meta::ObjectMeta>(generator);
    add_type::<meta::ListMeta>(generator);
    add_type::<meta::Status>(generator);
    add_type::<meta::DeleteOptions>(generator);
    add_type::<meta::Patch>(generator);
}

const KINDS: &[Known] = &[
    known::<core::Binding>(),
    known::<core::ComponentStatus>(),
    known::<core::ConfigMap>(),
    known::<core::Endpoints>(),
    known::<core::Event>(),
    known::<core::LimitRange>(),
    known::<core::Namespace>(),
    known::<core::Node>(),
    known::<core::PersistentVolumeClaim>(),
    known::<core::PersistentVolume>(),
    known::<core::Pod>(),
    known::<core::PodTemplate>(),
    known::<core::ReplicationController>(),
    known::<core::ResourceQuota>(),
    known::<core::Secret>(),
    known::<core::ServiceAccount>(),
    known::<core::Service>(),
    known::<apiregistration::APIService>(),
    known::<apps::ControllerRevision>(),
    known::<apps::DaemonSet>(),
    known::<apps::Deployment>(),
    known::<apps::ReplicaSet>(),
    known::<apps::StatefulSet>(),
    known::<events::Event>(),
    known::<authentication::SelfSubjectReview>(),
    known::<authentication::TokenRequest>(),
    known::<authentication::TokenReview>(),
    known::<authorization::LocalSubjectAccessReview>(),
    known::<authorization::SelfSubjectAccessReview>(),
    known::<authorization::SelfSubjectRulesReview>(),
    known::<authorization::SubjectAccessReview>(),
    known::<autoscaling::v1::HorizontalPodAutoscaler>(),
    known::<autoscaling::v1::Scale>(),
    known::<autoscaling::v2::HorizontalPodAutoscaler>(),
    known::<batch::CronJob>(),
    known::<batch::Job>(),
    known::<certificates::CertificateSigningRequest>(),
    known::<certificates::ClusterTrustBundle>(),
    known::<certificates::PodCertificateRequest>(),
    known::<networking::IngressClass>(),
    known::<networking::Ingress>(),
    known::<networking::IPAddress>(),
    known::<networking::NetworkPolicy>(),
    known::<networking::ServiceCIDR>(),
    known::<policy::Eviction>(),
    known::<policy::PodDisruptionBudget>(),
    known::<rbac::ClusterRoleBinding>(),
    known::<rbac::ClusterRole>(),
    known::<rbac::RoleBinding>(),
    known::<rbac::Role>(),
    known::<storage::CSIDriver>(),
    known::<storage::CSINode>(),
    known::<storage::CSIStorageCapacity>(),
    known::<storage::StorageClass>(),
    known::<storage::VolumeAttachment>(),
    known::<storage::VolumeAttributesClass>(),
    known::<admission::MutatingAdmissionPolicy>(),
    known::<admission::MutatingAdmissionPolicyBinding>(),
    known::<admission::MutatingWebhookConfiguration>(),
    known::<admission::ValidatingAdmissionPolicy>(),
    known::<admission::ValidatingAdmissionPolicyBinding>(),
    known::<admission::ValidatingWebhookConfiguration>(),
    known::<apiextensions::CustomResourceDefinition>(),
    known::<scheduling::PriorityClass>(),
    known::<coordination::Lease>(),
    known::<node::RuntimeClass>(),
    known::<discovery::EndpointSlice>(),
    known::<flowcontrol::FlowSchema>(),
    known::<flowcontrol::PriorityLevelConfiguration>(),
    known::<resource::DeviceClass>(),
    known::<resource::ResourceClaim>(),
    known::<resource::ResourceClaimTemplate>(),
    known::<resource::ResourceSlice>(),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::builtin;

    #[test]
    fn every_built_in_kind_has_its_type() {
        for resource in builtin().iter() {
            let api_version = resource.api_version();
            let found =
                KINDS.iter().any(|one| one.api_version == api_version && one.kind == resource.kind);
            assert!(found, "{api_version} {}", resource.kind);
        }
    }
}
