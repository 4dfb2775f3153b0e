//! What single kinds do differently: defaults, initial states, rules. Everything else about a
//! kind is its row in the registry and its form.

mod access;
mod account;
mod admission_policy;
mod at;
mod autoscaler;
mod batch;
mod certificate;
mod config;
mod defaults;
mod event;
mod expression;
mod fill;
mod limits;
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
mod runtime_class;
mod selector;
mod service;
mod storage;
mod taint;
mod warnings;
mod webhook;
mod workload;

use std::sync::Arc;

use convoy_api::schema::FieldError;
use convoy_store::Write;
use serde_json::{Value, json};

use crate::access::{aggregate, escalation};
use crate::definition;
use crate::discovery::services;
use crate::logical;
use crate::object_meta::{Entry, ObjectMeta};
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::surroundings::seconds;

pub(crate) use at::{At, Errors};
pub(crate) use selector::matches as selects;

const RBAC: &str = "rbac.authorization.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";

/// Kinds whose status sub-resource takes no metadata at all.
const STATUS_ALONE: [(&str, &str); 8] = [
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("apiregistration.k8s.io", "apiservices"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("resource.k8s.io", "devicetaintrules"),
    ("storage.k8s.io", "volumeattachments"),
    ("storagemigration.k8s.io", "storageversionmigrations"),
];

/// Fills in what the kind leaves to the server.
pub(crate) fn default(resource: &Resource, object: &mut Value) {
    if definition::is_definition(resource) {
        definition::default(object);
    }
    defaults::fill(resource, object);
}

/// What the server decides for a new object before users' webhooks see it.
pub(crate) fn admit(request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
    match names(&request.resource) {
        ("", "pods") if request.target.subresource.is_empty() => {
            limits::fill_in(request, object);
            priority::admit_pod(request, object)?;
            account::admit_pod(request, object);
            runtime_class::admit_pod(request, object)
        }
        ("", "persistentvolumeclaims") => {
            priority::choose_storage_class(request, object);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What the server refuses of an object after users' webhooks changed it; `old` is the object that
/// an update changes.
pub(crate) fn refuse(
    request: &ResourceRequest,
    object: &Value,
    old: Option<&Value>,
) -> ApiResult<()> {
    match names(&request.resource) {
        ("", "pods") if old.is_none() && request.target.subresource.is_empty() => {
            limits::check(request, object)?;
            runtime_class::check(request, object)
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            certificate::refuse(request, object, old)
        }
        _ => Ok(()),
    }
}

/// Gives a new object its initial state.
pub(crate) fn prepare_create(request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
    match names(&request.resource) {
        ("", "namespaces") => namespace::prepare_create(object),
        (RBAC, _) => escalation::check(request, object, None)?,
        ("", "pods") => pod::prepare_create(object, &seconds(request.server.now())),
        ("", "services") => service::prepare_create(request, object)?,
        ("", "persistentvolumes") => {
            let now = seconds(request.server.now());
            object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        }
        ("", "persistentvolumeclaims") => storage::prepare_claim(object),
        ("apps", "daemonsets") => workload::count_template(object, None),
        ("batch", "jobs") => batch::prepare_create(object, request.query.get("dryRun").is_none()),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            certificate::prepare_create(request, object);
        }
        ("scheduling.k8s.io", "priorityclasses") => priority::check_default(request, object)?,
        ("resource.k8s.io", "devicetaintrules") => {
            taint::prepare(object, None, &seconds(request.server.now()));
        }
        ("apiregistration.k8s.io", "apiservices") => services::settle(object, request.server.now()),
        (EXTENSIONS, "customresourcedefinitions") => definition::prepare_create(object),
        ("convoy.dev", "logicalclusters") => logical::prepare_create(object),
        _ => {}
    }
    custom_may_be_created(request, object)
}

/// Gives a new object, which is never stored, what rules about it look for.
pub(crate) fn complete_new(resource: &Resource, object: &mut Value) {
    match names(resource) {
        ("batch", "jobs") => batch::prepare_create(object, false),
        (EXTENSIONS, "customresourcedefinitions") => definition::prepare_create(object),
        _ => {}
    }
}

/// Keeps what an update of the kind may not change, and carries out what it implies.
pub(crate) fn prepare_update(
    request: &ResourceRequest,
    object: &mut Value,
    current: &Value,
) -> ApiResult<()> {
    match names(&request.resource) {
        ("", "namespaces") => {
            namespace::prepare_update(&request.target.subresource, object, current);
        }
        (RBAC, _) => escalation::check(request, object, Some(current))?,
        ("", "pods") => pod::prepare_update(request, object, current),
        ("", "services") => service::prepare_update(request, object, current)?,
        ("apps", "daemonsets") => workload::count_template(object, Some(current)),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            certificate::prepare_update(request, object, current);
        }
        ("scheduling.k8s.io", "priorityclasses") => priority::check_default(request, object)?,
        ("resource.k8s.io", "devicetaintrules") => {
            taint::prepare(object, Some(current), &seconds(request.server.now()));
        }
        ("apiregistration.k8s.io", "apiservices") => services::settle(object, request.server.now()),
        (EXTENSIONS, "customresourcedefinitions") => {
            definition::prepare_update(object, &request.target.subresource);
        }
        _ => {}
    }
    Ok(())
}

/// Adds warnings about the fields of an object.
pub(crate) fn warn(request: &ResourceRequest, object: &Value) {
    for warning in warnings_of(&request.resource, object) {
        request.warn(warning);
    }
}

/// The warnings about the fields of an object.
pub(crate) fn warnings_of(resource: &Resource, object: &Value) -> Vec<String> {
    warnings::of(resource, object)
}

/// Whether something is written in one transaction with objects of the kind.
pub(crate) fn has_companions(resource: &Resource) -> bool {
    names(resource) == ("", "services")
}

/// What is written in one transaction with an object: with `object` as it shall be, none when
/// it goes, and `current` as it is, none when it comes.
pub(crate) fn companions(
    request: &ResourceRequest,
    object: Option<&Value>,
    current: Option<&Entry>,
) -> Vec<Write<ObjectMeta>> {
    match names(&request.resource) {
        ("", "services") => service::companions(request, object, current),
        _ => Vec::new(),
    }
}

/// Everything about the object that breaks a rule of its kind.
pub(crate) fn validate(
    resource: &Resource,
    subresource: &str,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    match names(resource) {
        ("", "pods") => pod::validate(subresource, object, old),
        ("autoscaling", "horizontalpodautoscalers") if subresource == "status" => {
            autoscaler::status(object)
        }
        _ if subresource == "status" => Errors::new(),
        ("", plural) => validate_core(plural, object, old),
        ("apps", "deployments") => workload::deployment(object, old),
        ("apps", "replicasets") => workload::replica_set(object, old),
        ("apps", "daemonsets") => workload::daemon_set(object, old),
        ("apps", "statefulsets") => workload::stateful_set(object, old),
        ("apps", "controllerrevisions") => workload::controller_revision(object, old),
        ("batch", "jobs") => batch::job(object, old),
        ("batch", "cronjobs") => batch::cron_job(object, old),
        ("policy", "poddisruptionbudgets") => policy::disruption_budget(object),
        ("coordination.k8s.io", "leases") => policy::lease(object),
        ("scheduling.k8s.io", "priorityclasses") => policy::priority_class(object, old),
        ("autoscaling", "horizontalpodautoscalers") if resource.version == "v1" => {
            let newest = |object: &Value| {
                let mut newest = object.clone();
                crate::convert::to_stored(resource, &mut newest);
                newest
            };
            autoscaler::validate(&newest(object), old.map(newest).as_ref())
        }
        ("autoscaling", "horizontalpodautoscalers") => autoscaler::validate(object, old),
        ("events.k8s.io", "events") => event::validate("events.k8s.io", object, old),
        (RBAC, "roles") => access::role(object, true),
        (RBAC, "clusterroles") => access::role(object, false),
        (RBAC, "rolebindings") => access::binding(object, old, true),
        (RBAC, "clusterrolebindings") => access::binding(object, old, false),
        ("admissionregistration.k8s.io", plural) if plural.ends_with("webhookconfigurations") => {
            new_errors(webhook::configuration, object, old)
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => {
            new_errors(admission_policy::policy, object, old)
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => {
            admission_policy::binding(object)
        }
        (EXTENSIONS, "customresourcedefinitions") => definition::validate(object, old),
        ("networking.k8s.io", "networkpolicies") => networking::policy(object),
        ("networking.k8s.io", "ingresses") => networking::ingress(object),
        ("discovery.k8s.io", "endpointslices") => networking::endpoint_slice(object, old),
        ("storage.k8s.io", "storageclasses") => storage::class(object, old),
        ("storagemigration.k8s.io", "storageversionmigrations") => migration::validate(object, old),
        ("resource.k8s.io", "devicetaintrules") => taint::rule(object, old),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            certificate::validate(subresource, object, old)
        }
        _ => Errors::new(),
    }
}

/// What is wrong with an object that was not wrong before: what is checked has grown, and what is
/// stored stays as good as it was.
fn new_errors(check: fn(&Value) -> Errors, object: &Value, old: Option<&Value>) -> Errors {
    let mut errors = check(object);
    if let Some(old) = old.filter(|_| !errors.is_empty()) {
        let before = check(old);
        errors.retain(|error| !before.contains(error));
    }
    errors
}

fn validate_core(plural: &str, object: &Value, old: Option<&Value>) -> Errors {
    match plural {
        "namespaces" => namespace::validate(object),
        "services" => service::validate(object, old),
        "configmaps" => config::config_map(object, old),
        "secrets" => config::secret(object, old),
        "nodes" => node::validate(object, old),
        "events" => event::validate("", object, old),
        "resourcequotas" => quota::validate(object, old),
        "persistentvolumes" => storage::volume(object, old),
        "persistentvolumeclaims" => storage::claim(object, old),
        "replicationcontrollers" => workload::replication_controller(object),
        "podtemplates" => {
            let mut errors = Errors::new();
            workload::pod_template(&At::root(object).get("template"), &mut errors);
            errors
        }
        _ => Errors::new(),
    }
}

/// What of the metadata a status update may change besides: all that clients may set for most
/// built-in kinds, nothing but ownership of fields for custom ones.
pub(crate) fn take_status_metadata(resource: &Resource, object: &mut Value, offered: &Value) {
    let taken: &[&str] = match names(resource) {
        _ if resource.custom.is_some() => &["managedFields"],
        pair if STATUS_ALONE.contains(&pair) => &["managedFields"],
        ("apps", "deployments") => {
            &["annotations", "finalizers", "ownerReferences", "managedFields"]
        }
        ("", "pods") => &["labels", "annotations", "finalizers", "managedFields"],
        _ => &["labels", "annotations", "finalizers", "ownerReferences", "managedFields"],
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
    // Priorities are counted once and never again.
    if resource.is("scheduling.k8s.io", "priorityclasses") {
        return false;
    }
    let counts = |key: &str| match key {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => resource.custom.is_some() && !crate::write::has_status(resource),
        _ => true,
    };
    let wants = |these: &Value, those: &Value| {
        let fields = these.as_object().into_iter().flatten();
        fields.filter(|(key, _)| counts(key)).any(|(key, value)| those.get(key) != Some(value))
    };
    wants(object, current) || wants(current, object)
}

/// How long a deletion waits for the object's processes to end.
pub(crate) fn grace_seconds(resource: &Resource, object: &Value, asked: Option<i64>) -> i64 {
    if !resource.is("", "pods") {
        return 0;
    }
    let is_bound = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let has_ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !is_bound || has_ended {
        return 0;
    }
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    match asked.unwrap_or(own) {
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// Whether nothing else than finalizers keeps the object.
pub(crate) fn may_vanish(resource: &Resource, object: &Value) -> bool {
    let is_namespace = resource.is("", "namespaces");
    !is_namespace || object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}

/// What a deletion changes besides the metadata.
pub(crate) fn mark_deleting(resource: &Resource, object: &mut Value) {
    if resource.is("", "namespaces") || logical::is_logical_cluster(resource) {
        object["status"]["phase"] = Value::String("Terminating".to_owned());
    } else if definition::is_definition(resource) {
        definition::mark_deleting(object);
    }
}

/// A finalizer that the kind's deletion begins with.
pub(crate) fn deletion_finalizer(resource: &Resource) -> Option<&'static str> {
    definition::is_definition(resource).then_some(definition::CLEANUP)
}

/// Rejects deletions of protected objects.
pub(crate) fn check_delete(request: &ResourceRequest, object: &Value) -> ApiResult<()> {
    let name = crate::metadata::text(object, "name");
    if request.resource.is("", "namespaces")
        && ["default", "kube-system", "kube-public"].contains(&name)
    {
        return Err(Status::forbidden(
            &request.resource,
            name,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

/// Carries out what follows from a write at once.
pub(crate) async fn after_write(request: &ResourceRequest, entry: &Arc<Entry>) -> ApiResult<()> {
    match names(&request.resource) {
        (RBAC, "clusterroles") => aggregate::settle(&request.server, &request.cluster).await,
        (EXTENSIONS, "customresourcedefinitions") => {
            definition::refresh(&request.server, &request.cluster, &entry.key.name).await
        }
        ("convoy.dev", "logicalclusters") if !entry.meta.is_deleting() => {
            logical::serve(&request.server, entry).await
        }
        _ => Ok(()),
    }
}

/// Carries out what follows from a removal at once.
pub(crate) async fn after_delete(request: &ResourceRequest, entry: &Entry) -> ApiResult<()> {
    match names(&request.resource) {
        (RBAC, "clusterroles") => aggregate::settle(&request.server, &request.cluster).await,
        (EXTENSIONS, "customresourcedefinitions") => {
            definition::refresh(&request.server, &request.cluster, &entry.key.name).await
        }
        _ => Ok(()),
    }
}

/// Nothing is created of a kind that is on its way out.
fn custom_may_be_created(request: &ResourceRequest, object: &Value) -> ApiResult<()> {
    if request.resource.custom.as_ref().is_some_and(|custom| custom.terminating) {
        let name = crate::metadata::text(object, "name");
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&request.resource, name, why));
    }
    Ok(())
}

fn names(resource: &Resource) -> (&str, &str) {
    (&resource.group, &resource.plural)
}
