//! Rules of the controllers of pods: what they select, what they make, how they replace it.

pub(super) mod columns;
pub(super) mod defaults;
mod strategy;

use convoy_api::apps::defaults as apps;
use convoy_api::text::Name;
use serde_json::{Value, json};

use super::at::{At, Errors, same};
use super::fill;
use super::kind::{Change, Dependents, Kind};
use super::pod::defaults::template_in;
use super::pod::{SpecParent, validate_spec};
use super::selector;
use crate::column::Column;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;

pub(super) fn deployment(object: &Value, old: Option<&Value>) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    spec.get("replicas").not_negative(&mut errors);
    required_selector(&spec, "deployment", &mut errors);
    matching_template(&spec, "ReplicaSet", &mut errors);
    strategy::deployment(&spec.get("strategy"), &mut errors);
    spec.get("minReadySeconds").not_negative(&mut errors);
    spec.get("revisionHistoryLimit").not_negative(&mut errors);
    let deadline = spec.get("progressDeadlineSeconds");
    deadline.not_negative(&mut errors);
    let ready = spec.get("minReadySeconds").integer().unwrap_or(0);
    if deadline.integer().is_some_and(|seconds| seconds <= ready) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
    if let Some(old) = old {
        immutable(&spec, &At::root(old).get("spec"), &["selector"], &mut errors);
    }
    errors
}

pub(super) fn replica_set(object: &Value, old: Option<&Value>) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    spec.get("replicas").not_negative(&mut errors);
    spec.get("minReadySeconds").not_negative(&mut errors);
    required_selector(&spec, "deployment", &mut errors);
    matching_template(&spec, "ReplicaSet", &mut errors);
    if let Some(old) = old {
        immutable(&spec, &At::root(old).get("spec"), &["selector"], &mut errors);
    }
    errors
}

/// The oldest of them: its selector is a plain map.
pub(super) fn replication_controller(object: &Value) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    spec.get("minReadySeconds").not_negative(&mut errors);
    let wanted = spec.get("selector");
    if wanted.is_empty() {
        errors.push(wanted.required(""));
    }
    spec.get("replicas").not_negative(&mut errors);
    let template = spec.get("template");
    if template.is_absent() {
        errors.push(template.required(""));
        return errors;
    }
    let labels = template.get("metadata.labels");
    let chosen =
        wanted.entries().iter().all(|(key, value)| labels.value.get(*key) == Some(value.value));
    if !wanted.is_empty() && !chosen {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
    pod_template(&template, &mut errors);
    always(&template, "ReplicationController", &mut errors);
    errors
}

pub(super) fn daemon_set(object: &Value, old: Option<&Value>) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    selector::validate(&spec.get("selector"), &mut errors);
    let is_readable = errors.is_empty();
    let labels = spec.get("template.metadata.labels");
    if is_readable
        && (spec.get("selector").is_absent()
            || !selector::matches(spec.get("selector").value, labels.value))
    {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
    if !spec.get("selector").is_absent() && selector::is_empty(spec.get("selector").value) {
        errors.push(spec.get("selector").invalid("empty selector is invalid for daemonset"));
    }
    pod_template(&spec.get("template"), &mut errors);
    always(&spec.get("template"), "DaemonSet", &mut errors);
    spec.get("minReadySeconds").not_negative(&mut errors);
    strategy::daemon(&spec.get("updateStrategy"), &mut errors);
    spec.get("revisionHistoryLimit").not_negative(&mut errors);
    if let Some(old) = old {
        immutable(&spec, &At::root(old).get("spec"), &["selector"], &mut errors);
    }
    errors
}

pub(super) fn stateful_set(object: &Value, old: Option<&Value>) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    let policy = spec.get("podManagementPolicy");
    if !matches!(policy.text(), "OrderedReady" | "Parallel") {
        errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    strategy::stateful(&spec.get("updateStrategy"), &mut errors);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        retention.get(field).one_of_if_given(&["Retain", "Delete"], &mut errors);
    }
    spec.get("replicas").not_negative(&mut errors);
    spec.get("minReadySeconds").not_negative(&mut errors);
    spec.get("ordinals.start").not_negative(&mut errors);
    if old.is_none() {
        for claim in spec.get("volumeClaimTemplates").items() {
            super::storage::claim_spec(&claim.get("spec"), &mut errors);
        }
        spec.get("serviceName").name(Name::Dns1123Label, &mut errors);
    }
    required_selector(&spec, "statefulset", &mut errors);
    let with_claims = template_with_claims(&spec);
    let template = At { path: "spec.template".to_owned(), value: &with_claims };
    does_select(&spec, &template, &mut errors);
    pod_template(&template, &mut errors);
    always(&template, "StatefulSet", &mut errors);
    if let Some(old) = old {
        stateful_update(&spec, &old["spec"], &mut errors);
    }
    errors
}

fn stateful_update(spec: &At<'_>, old: &Value, errors: &mut Errors) {
    let mut kept = spec.value.clone();
    let Value::Object(fields) = &mut kept else { return };
    for field in [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ] {
        match old.get(field) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.shift_remove(field),
        };
    }
    if !same(&kept, old) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.push(spec.forbidden(detail));
    }
}

/// Claims become volumes of the pods, and pods may mount them.
fn template_with_claims(spec: &At<'_>) -> Value {
    let mut template = spec.get("template").value.clone();
    let claims = spec.get("volumeClaimTemplates").items();
    let mut names: Vec<&str> =
        claims.iter().map(|claim| claim.get("metadata.name").text()).collect();
    names.sort_unstable();
    names.dedup();
    if let Value::Object(pod) = &mut template["spec"] {
        for field in ["hostname", "subdomain"] {
            pod.shift_remove(field);
        }
        if !names.is_empty() {
            let own = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
            let claimed = names
                .iter()
                .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
            let others = own
                .into_iter()
                .filter(|volume| !names.contains(&volume["name"].as_str().unwrap_or_default()));
            let all: Vec<Value> = claimed.chain(others).collect();
            pod.insert("volumes".to_owned(), Value::Array(all));
        }
    }
    template
}

pub(super) fn immutable(new: &At<'_>, old: &At<'_>, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        new.get(field).immutable(&old.get(field), errors);
    }
}

fn required_selector(spec: &At<'_>, kind: &str, errors: &mut Errors) {
    let wanted = spec.get("selector");
    if wanted.is_absent() {
        errors.push(wanted.required(""));
        return;
    }
    selector::validate(&wanted, errors);
    if selector::is_empty(wanted.value) {
        errors.push(wanted.invalid(&format!("empty selector is invalid for {kind}")));
    }
}

fn matching_template(spec: &At<'_>, kind: &str, errors: &mut Errors) {
    let template = spec.get("template");
    let mut unreadable = Errors::new();
    selector::validate(&spec.get("selector"), &mut unreadable);
    if !unreadable.is_empty() {
        errors.push(spec.get("selector").invalid("invalid label selector"));
        return;
    }
    does_select(spec, &template, errors);
    pod_template(&template, errors);
    always(&template, kind, errors);
}

fn does_select(spec: &At<'_>, template: &At<'_>, errors: &mut Errors) {
    let wanted = spec.get("selector");
    let labels = template.get("metadata.labels");
    // A selector that is not there takes nothing, an empty one everything.
    let takes = !wanted.is_absent()
        && (selector::is_empty(wanted.value) || selector::matches(wanted.value, labels.value));
    if !takes {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
}

/// The template of pods, wherever it stands.
pub(super) fn pod_template(template: &At<'_>, errors: &mut Errors) {
    template.get("metadata.labels").labels_at(&format!("{}.labels", template.path), errors);
    validate_spec(&template.get("spec"), SpecParent::Template, errors);
    if !template.get("spec.ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(template.get("spec.ephemeralContainers").forbidden(detail));
    }
}

/// Pods that somebody watches over never end by themselves.
fn always(template: &At<'_>, kind: &str, errors: &mut Errors) {
    let policy = template.get("spec.restartPolicy");
    if policy.text() != "Always" {
        errors.push(policy.unsupported(&["Always"]));
    }
    let deadline = template.get("spec.activeDeadlineSeconds");
    if !deadline.is_absent() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(deadline.forbidden(&detail));
    }
}

/// Daemon sets count their templates in an annotation, for clients that remember it.
pub(super) fn count_template(object: &mut Value, current: Option<&Value>) {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    let count = match current {
        None => 1,
        Some(current) => {
            let before = current["metadata"]["annotations"][COUNT].as_str();
            let before = before.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
            let changed = !same(&object["spec"]["template"], &current["spec"]["template"]);
            before + i64::from(changed)
        }
    };
    let metadata = crate::metadata::of(object);
    if let Some(annotations) = fill::make(metadata, "annotations") {
        annotations.insert(COUNT.to_owned(), json!(count.to_string()));
    }
}

/// A stored revision never changes.
pub(super) fn controller_revision(object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let mut errors = Errors::new();
    if object["revision"].as_i64().is_some_and(|revision| revision < 0) {
        errors.push(root.get("revision").invalid("must be greater than or equal to 0"));
    }
    if old.is_none() && root.get("data").is_absent() {
        errors.push(root.get("data").required("data is mandatory"));
    }
    if let Some(old) = old {
        root.get("data").immutable(&At::root(old).get("data"), &mut errors);
    }
    errors
}

pub(super) struct Deployment;

impl Kind for Deployment {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::make_template(object);
        *object = apps::deployment(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        deployment(change.object, change.old)
    }

    fn pod<'o>(&self, object: &'o Value) -> Option<At<'o>> {
        Some(At::root(object).get("spec.template"))
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        &["annotations", "finalizers", "ownerReferences", "managedFields"]
    }

    fn columns(&self) -> &'static [Column] {
        columns::DEPLOYMENT
    }
}

pub(super) struct ReplicaSet;

impl Kind for ReplicaSet {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::make_template(object);
        *object = apps::replica_set(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        replica_set(change.object, change.old)
    }

    fn pod<'o>(&self, object: &'o Value) -> Option<At<'o>> {
        Some(At::root(object).get("spec.template"))
    }

    fn columns(&self) -> &'static [Column] {
        columns::REPLICA_SET
    }
}

pub(super) struct DaemonSet;

impl Kind for DaemonSet {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::daemon_set(object);
    }

    fn prepare_create(&self, _request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        count_template(object, None);
        Ok(())
    }

    fn prepare_update(
        &self,
        _request: &ResourceRequest,
        object: &mut Value,
        current: &Value,
    ) -> ApiResult<()> {
        count_template(object, Some(current));
        Ok(())
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        daemon_set(change.object, change.old)
    }

    fn pod<'o>(&self, object: &'o Value) -> Option<At<'o>> {
        Some(At::root(object).get("spec.template"))
    }

    fn columns(&self) -> &'static [Column] {
        columns::DAEMON_SET
    }
}

pub(super) struct StatefulSet;

impl Kind for StatefulSet {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::stateful_set(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        stateful_set(change.object, change.old)
    }

    fn pod<'o>(&self, object: &'o Value) -> Option<At<'o>> {
        Some(At::root(object).get("spec.template"))
    }

    fn columns(&self) -> &'static [Column] {
        columns::STATEFUL_SET
    }
}

pub(super) struct ControllerRevision;

impl Kind for ControllerRevision {
    fn validate(&self, change: &Change<'_>) -> Errors {
        controller_revision(change.object, change.old)
    }

    fn columns(&self) -> &'static [Column] {
        columns::CONTROLLER_REVISION
    }
}

pub(super) struct ReplicationController;

impl Kind for ReplicationController {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::replication_controller(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        replication_controller(change.object)
    }

    fn pod<'o>(&self, object: &'o Value) -> Option<At<'o>> {
        Some(At::root(object).get("spec.template"))
    }

    fn dependents(&self) -> Dependents {
        Dependents::Orphaned
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["status.replicas"]
    }

    fn columns(&self) -> &'static [Column] {
        columns::REPLICATION_CONTROLLER
    }
}

pub(super) struct PodTemplate;

impl Kind for PodTemplate {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        fill::with(object, template_in);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        let mut errors = Errors::new();
        pod_template(&At::root(change.object).get("template"), &mut errors);
        errors
    }

    fn pod<'o>(&self, object: &'o Value) -> Option<At<'o>> {
        Some(At::root(object).get("template"))
    }

    fn columns(&self) -> &'static [Column] {
        columns::POD_TEMPLATE
    }
}
