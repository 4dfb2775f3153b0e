//! What single kinds do differently: defaults, initial states, rules. Everything else about a
//! kind is its row in the registry and its form.

mod access;
mod account;
mod admission_policy;
pub(crate) mod api_service;
mod at;
mod autoscaler;
mod batch;
mod certificate;
mod config;
mod count;
pub(crate) mod definition;
mod device_claim;
mod escalation;
mod event;
mod expression;
mod fill;
mod flow;
mod kind;
mod limits;
pub(crate) mod logical;
mod migration;
mod namespace;
mod networking;
mod node;
mod pod;
mod policy;
mod priority;
mod quota;
#[cfg(test)]
mod recorded;
mod review;
mod runtime_class;
#[cfg(test)]
mod sample;
mod selector;
mod service;
mod storage;
mod taint;
mod warnings;
mod webhook;
mod workload;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use convoy_api::schema::FieldError;
use serde_json::Value;

use self::review::Review;
use crate::growth;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

pub(crate) use admission_policy::warnings as policy_warnings;
pub(crate) use at::At;
pub(crate) use kind::{Change, Consequence, Dependents, Kind, NewObject, Question};
pub(crate) use selector::matches as selects;

/// A kind that does something of its own, by group and plural.
type Row = (&'static str, &'static str, &'static dyn Kind);

/// One row per kind that does something of its own.
static KINDS: &[Row] = &[
    ("", "bindings", &review::Binding),
    ("", "componentstatuses", &review::ComponentStatus),
    ("", "configmaps", &config::ConfigMap),
    ("", "endpoints", &networking::Endpoints),
    ("", "events", &event::CoreEvent),
    ("", "limitranges", &limits::LimitRange),
    ("", "namespaces", &namespace::Namespace),
    ("", "nodes", &node::Node),
    ("", "persistentvolumeclaims", &storage::Claim),
    ("", "persistentvolumes", &storage::Volume),
    ("", "pods", &pod::Pod),
    ("", "podtemplates", &workload::PodTemplate),
    ("", "replicationcontrollers", &workload::ReplicationController),
    ("", "resourcequotas", &quota::Quota),
    ("", "secrets", &config::Secret),
    ("", "serviceaccounts", &account::ServiceAccount),
    ("", "services", &service::Service),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
        &admission_policy::MutatingPolicy,
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings",
        &admission_policy::MutatingBinding,
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", &webhook::Mutating),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", &admission_policy::Policy),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        &admission_policy::Binding,
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", &webhook::Validating),
    ("apiextensions.k8s.io", "customresourcedefinitions", &definition::Definition),
    ("apiregistration.k8s.io", "apiservices", &api_service::ApiService),
    ("apps", "controllerrevisions", &workload::ControllerRevision),
    ("apps", "daemonsets", &workload::DaemonSet),
    ("apps", "deployments", &workload::Deployment),
    ("apps", "replicasets", &workload::ReplicaSet),
    ("apps", "statefulsets", &workload::StatefulSet),
    ("authentication.k8s.io", "selfsubjectreviews", &Review(Question::OwnName)),
    ("authentication.k8s.io", "tokenreviews", &Review(Question::Token)),
    ("authorization.k8s.io", "localsubjectaccessreviews", &Review(Question::LocalAccess)),
    ("authorization.k8s.io", "selfsubjectaccessreviews", &Review(Question::OwnAccess)),
    ("authorization.k8s.io", "selfsubjectrulesreviews", &Review(Question::OwnRules)),
    ("authorization.k8s.io", "subjectaccessreviews", &Review(Question::Access)),
    ("autoscaling", "horizontalpodautoscalers", &autoscaler::Autoscaler),
    ("batch", "cronjobs", &batch::CronJob),
    ("batch", "jobs", &batch::Job),
    ("certificates.k8s.io", "certificatesigningrequests", &certificate::SigningRequest),
    ("certificates.k8s.io", "clustertrustbundles", &certificate::TrustBundle),
    ("certificates.k8s.io", "podcertificaterequests", &certificate::PodRequest),
    ("convoy.dev", "logicalclusters", &logical::LogicalCluster),
    ("coordination.k8s.io", "leases", &policy::Lease),
    ("discovery.k8s.io", "endpointslices", &networking::EndpointSlice),
    ("events.k8s.io", "events", &event::Event),
    #[cfg(test)]
    ("example.com", "samples", &sample::Sample),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", &flow::FlowSchema),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", &flow::PriorityLevel),
    ("networking.k8s.io", "ingressclasses", &networking::IngressClass),
    ("networking.k8s.io", "ingresses", &networking::Ingress),
    ("networking.k8s.io", "ipaddresses", &networking::Address),
    ("networking.k8s.io", "networkpolicies", &networking::NetworkPolicy),
    ("networking.k8s.io", "servicecidrs", &networking::ServiceRange),
    ("node.k8s.io", "runtimeclasses", &runtime_class::RuntimeClass),
    ("policy", "poddisruptionbudgets", &policy::DisruptionBudget),
    ("rbac.authorization.k8s.io", "clusterrolebindings", &access::Binding { namespaced: false }),
    ("rbac.authorization.k8s.io", "clusterroles", &access::Role { namespaced: false }),
    ("rbac.authorization.k8s.io", "rolebindings", &access::Binding { namespaced: true }),
    ("rbac.authorization.k8s.io", "roles", &access::Role { namespaced: true }),
    ("resource.k8s.io", "deviceclasses", &device_claim::DeviceClass),
    ("resource.k8s.io", "devicetaintrules", &taint::TaintRule),
    ("resource.k8s.io", "resourceclaims", &device_claim::DeviceClaim),
    ("resource.k8s.io", "resourceclaimtemplates", &device_claim::DeviceClaimTemplate),
    ("resource.k8s.io", "resourceslices", &device_claim::DeviceSlice),
    ("scheduling.k8s.io", "priorityclasses", &priority::PriorityClass),
    ("storage.k8s.io", "csidrivers", &storage::Driver),
    ("storage.k8s.io", "csinodes", &storage::Node),
    ("storage.k8s.io", "storageclasses", &storage::Class),
    ("storage.k8s.io", "volumeattachments", &storage::Attachment),
    ("storage.k8s.io", "volumeattributesclasses", &storage::AttributesClass),
    ("storagemigration.k8s.io", "storageversionmigrations", &migration::Migration),
];

/// What all kinds are that have no row.
struct Plain;

impl Kind for Plain {}

/// What the kind of a resource does.
pub(crate) fn of(resource: &Resource) -> &'static dyn Kind {
    type Table = BTreeMap<(&'static str, &'static str), &'static dyn Kind>;
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        KINDS.iter().map(|(group, plural, kind)| ((*group, *plural), *kind)).collect()
    });
    let name = (resource.group.as_str(), resource.plural.as_str());
    TABLE.get(&name).copied().unwrap_or(&Plain)
}

/// Fills in what a kind, built in or custom, leaves to the server, of an object that may have
/// `most` bytes.
pub(crate) fn default_within(
    most: usize,
    resource: &Resource,
    object: &mut Value,
) -> ApiResult<()> {
    if let Some(custom) = &resource.custom {
        return growth::default(most, custom, object);
    }
    growth::check_before_defaults(most, resource, object)?;
    of(resource).default(resource, object);
    growth::check(most, object)
}

/// Gives a new object its initial state. Nothing is created of a kind that is on its way out.
pub(crate) fn prepare_create(request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
    let resource = &request.resource;
    of(resource).prepare_create(request, object)?;
    if resource.custom.as_ref().is_some_and(|custom| custom.terminating) {
        let name = crate::metadata::text(object, "name");
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(resource, name, why));
    }
    Ok(())
}

/// Everything about an object of a built-in kind that breaks a rule.
pub(crate) fn validate(change: &Change<'_>) -> Vec<FieldError> {
    let kind = of(change.resource);
    match change.subresource {
        "status" => kind.validate_status(change),
        _ => kind.validate(change),
    }
}

/// Adds warnings about the fields of an object.
pub(crate) fn warn(request: &ResourceRequest, object: &Value) {
    for warning in warnings_of(&request.resource, object) {
        request.warn(warning);
    }
}

/// The warnings about the fields of an object.
pub(crate) fn warnings_of(resource: &Resource, object: &Value) -> Vec<String> {
    of(resource).pod(object).map_or(Vec::new(), |pod| warnings::of_pod(&pod))
}

/// Takes over what of the metadata a status update may change besides: all that clients may set
/// for most built-in kinds, nothing but ownership of fields for custom ones.
pub(crate) fn take_status_metadata(resource: &Resource, object: &mut Value, offered: &Value) {
    let taken = match resource.custom {
        Some(_) => kind::OWNERSHIP_ALONE,
        None => of(resource).status_metadata(),
    };
    let metadata = crate::metadata::of(object);
    for field in taken {
        match offered.get(field) {
            Some(value) => metadata.insert((*field).to_owned(), value.clone()),
            None if *field == "managedFields" => None,
            None => metadata.shift_remove(*field),
        };
    }
}

/// Whether two versions of an object want different things of the world.
pub(crate) fn wants_differ(resource: &Resource, object: &Value, current: &Value) -> bool {
    if !of(resource).counts_changes() {
        return false;
    }
    let counts = |key: &str| match key {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => resource.custom.is_some() && !resource.has_status(),
        _ => true,
    };
    let wants = |these: &Value, those: &Value| {
        let fields = these.as_object().into_iter().flatten();
        fields.filter(|(key, _)| counts(key)).any(|(key, value)| those.get(key) != Some(value))
    };
    wants(object, current) || wants(current, object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::builtin;

    #[test]
    fn every_row_is_about_a_kind_that_is_served() {
        let own = [logical::resource(), sample::resource()];
        let served = builtin().iter().map(|resource| &**resource).chain(&own);
        let served: Vec<(&str, &str)> =
            served.map(|resource| (&*resource.group, &*resource.plural)).collect();
        for (group, plural, _) in KINDS {
            assert!(served.contains(&(*group, *plural)), "{plural}.{group}");
        }
        assert!(KINDS.is_sorted_by_key(|(group, plural, _)| (*group, *plural)));
    }
}
