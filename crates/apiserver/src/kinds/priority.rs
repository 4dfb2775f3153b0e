//! What the server decides for pods and claims from other objects: how important a pod is, whom
//! it acts as, how long it bears a failing node, and which storage a claim gets.

use convoy_api::well_known::annotation::IS_DEFAULT_CLASS;
use convoy_api::well_known::taint::{NOT_READY, UNREACHABLE};
use serde_json::{Value, json};

use super::at::Errors;
use super::fill;
use super::kind::{Change, Kind};
use super::policy::priority_class;
use super::policy::system_priority;
use crate::column::Cell::Text;
use crate::column::{AGE, Column, NAME, boolean, number, string};
use crate::encoding::read_entry;
use crate::metadata;
use crate::object_meta::Entry;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

const PREEMPTS: &str = "PreemptLowerPriority";

/// The default toleration, in seconds, of not-ready and unreachable nodes.
const TOLERATION_SECONDS: i64 = 300;

/// An update neither takes tolerations away that the server gave, nor changes how important
/// the pod is.
pub(super) fn admit_pod_update(pod: &mut Value, current: &Value) {
    let Some(spec) = fill::spec(pod) else { return };
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = current["spec"].get(field) {
            fill::absent(spec, field, || value.clone());
        }
    }
    tolerate(spec);
}

pub(super) fn admit_pod(request: &ResourceRequest, pod: &mut Value) -> ApiResult<()> {
    set_priority(request, pod)?;
    let Some(spec) = fill::spec(pod) else { return Ok(()) };
    if fill::given(spec, "serviceAccountName").is_empty() {
        for field in ["serviceAccountName", "serviceAccount"] {
            spec.insert(field.to_owned(), json!("default"));
        }
    }
    tolerate(spec);
    Ok(())
}

fn tolerate(spec: &mut fill::Fields) {
    let has = |spec: &fill::Fields, key: &str| {
        let given = spec.get("tolerations").and_then(Value::as_array).into_iter().flatten();
        given.into_iter().any(|toleration| {
            let own = toleration["key"].as_str().unwrap_or_default();
            let effect = toleration["effect"].as_str().unwrap_or_default();
            (own == key || own.is_empty()) && matches!(effect, "" | "NoExecute")
        })
    };
    for key in [NOT_READY, UNREACHABLE] {
        if has(spec, key) {
            continue;
        }
        fill::absent(spec, "tolerations", || json!([]));
        if let Some(Value::Array(list)) = spec.get_mut("tolerations") {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS}));
        }
    }
}

/// A pod's priority is that of its class, whatever else it says.
fn set_priority(request: &ResourceRequest, pod: &mut Value) -> ApiResult<()> {
    let name = metadata::text(pod, "name").to_owned();
    let refuse = |why: String| Err(Status::forbidden(&request.resource, &name, &why));
    let wanted = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let class =
        if wanted.is_empty() { default_class(request) } else { class_named(request, &wanted) };
    if class.is_none() && !wanted.is_empty() && system_priority(&wanted).is_none() {
        return refuse(format!("no PriorityClass with name {wanted} was found"));
    }
    let (value, policy) = match &class {
        Some(class) => (
            class["value"].as_i64().unwrap_or(0),
            class["preemptionPolicy"].as_str().unwrap_or(PREEMPTS).to_owned(),
        ),
        None => (system_priority(&wanted).unwrap_or(0), PREEMPTS.to_owned()),
    };
    let Some(spec) = fill::spec(pod) else { return Ok(()) };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != value
    {
        return refuse(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        ));
    }
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str)
        && given != policy
    {
        return refuse(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    if let Some(class) = class.filter(|_| wanted.is_empty()) {
        let class_name = metadata::text(&class, "name");
        spec.insert("priorityClassName".to_owned(), json!(class_name));
    }
    spec.insert("priority".to_owned(), json!(value));
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    Ok(())
}

fn class_named(request: &ResourceRequest, name: &str) -> Option<Value> {
    let resource = request.registry.get("scheduling.k8s.io", "v1", "priorityclasses")?;
    let key = request.cluster.shelf(resource).key("", name);
    request.server.store.snapshot().get(&key).map(|entry| read_entry(entry))
}

fn default_class(request: &ResourceRequest) -> Option<Value> {
    let classes = all(request, "scheduling.k8s.io", "priorityclasses");
    let defaults = classes.into_iter().filter(|class| class["globalDefault"] == Value::Bool(true));
    // There should be one; if there are more, the least important wins.
    defaults.min_by_key(|class| class["value"].as_i64())
}

/// Every object of a kind that is there always.
pub(super) fn all(request: &ResourceRequest, group: &str, plural: &str) -> Vec<Value> {
    let Some(resource) = request.registry.get(group, "v1", plural) else { return Vec::new() };
    let shelf = request.cluster.shelf(resource);
    let snapshot = request.server.store.snapshot();
    snapshot.list(&shelf).map(|entry: &std::sync::Arc<Entry>| read_entry(entry)).collect()
}

/// There is one default at most.
pub(super) fn check_default(request: &ResourceRequest, class: &Value) -> ApiResult<()> {
    if class["globalDefault"] != Value::Bool(true) {
        return Ok(());
    }
    let name = metadata::text(class, "name");
    let other = all(request, "scheduling.k8s.io", "priorityclasses").into_iter().find(|other| {
        other["globalDefault"] == Value::Bool(true) && metadata::text(other, "name") != name
    });
    let Some(other) = other else { return Ok(()) };
    let why = format!(
        "PriorityClass {} has already been marked as default. Only one default can exist",
        metadata::text(&other, "name")
    );
    Err(Status::forbidden(&request.resource, name, &why))
}

/// A claim that names no class gets the default one, the youngest if there are several.
pub(super) fn choose_storage_class(request: &ResourceRequest, claim: &mut Value) {
    if !claim["spec"]["storageClassName"].is_null() {
        return;
    }
    let classes = all(request, "storage.k8s.io", "storageclasses");
    let defaults = classes.into_iter().filter(|class| {
        let annotations = &class["metadata"]["annotations"];
        annotations[IS_DEFAULT_CLASS] == "true"
    });
    let chosen = defaults.max_by(|a, b| {
        let age = |class: &Value| metadata::text(class, "creationTimestamp").to_owned();
        age(a).cmp(&age(b)).then_with(|| metadata::text(b, "name").cmp(metadata::text(a, "name")))
    });
    if let (Some(class), Some(spec)) = (chosen, fill::spec(claim)) {
        spec.insert("storageClassName".to_owned(), json!(metadata::text(&class, "name")));
    }
}

pub(super) struct PriorityClass;

impl Kind for PriorityClass {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        fill::with(object, |class| {
            fill::absent(class, "preemptionPolicy", || json!("PreemptLowerPriority"));
        });
    }

    fn prepare_create(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        check_default(request, object)
    }

    fn prepare_update(
        &self,
        request: &ResourceRequest,
        object: &mut Value,
        _current: &Value,
    ) -> ApiResult<()> {
        check_default(request, object)
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        priority_class(change.object, change.old)
    }

    fn counts_changes(&self) -> bool {
        // Priorities are counted once and never again.
        false
    }

    fn columns(&self) -> &'static [Column] {
        const {
            &[
                NAME,
                number("Value", "/value"),
                boolean("Global-Default", "/globalDefault", false),
                AGE,
                string("PreemptionPolicy", Text("/preemptionPolicy", "")),
            ]
        }
    }
}
