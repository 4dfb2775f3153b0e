//! A PodDisruptionBudget with its pods, and the scale of the controllers that own them.

use std::collections::BTreeMap;

use convoy_api::apps::spec::PodDisruptionBudgetSpec;
use convoy_api::kinds::{
    CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET,
};
use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::{OwnerReference, timestamp};
use convoy_api::{GroupKind, Object};
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::budget::IntOrPercent;
use crate::selector::Selector;
use crate::snapshot::Snapshot;

/// A budget and the pods it selects.
#[derive(Clone, Debug)]
pub(crate) struct Budget<'w> {
    pub(crate) object: &'w Object,
    pub(crate) demand: Demand,
    pub(crate) pods: Vec<&'w Object>,
    /// When pods were evicted that may not have begun to terminate yet, by name.
    pub(crate) disrupted: BTreeMap<&'w str, Timestamp>,
}

/// What a budget asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    MaxUnavailable(IntOrPercent),
    MinAvailable(IntOrPercent),
    Nothing,
}

impl<'w> Budget<'w> {
    /// Reads a budget; an error is why it cannot be computed.
    pub(crate) fn read(snapshot: &Snapshot<'w>) -> Result<Self, String> {
        let object = snapshot.rollout();
        let spec = spec(object)?;
        let selector = selector_of(&spec)?;
        let pods = snapshot.of(&convoy_api::kinds::POD).iter().copied();
        let pods = match &selector {
            Some(selector) => pods.filter(|pod| selector.matches(pod)).collect(),
            None => Vec::new(),
        };
        let disrupted = object.status().get("disruptedPods").and_then(Value::as_object);
        let disrupted = disrupted.into_iter().flatten();
        Ok(Self {
            object,
            demand: Demand::read(&spec)?,
            pods,
            disrupted: disrupted
                .filter_map(|(name, at)| Some((name.as_str(), timestamp(Some(at))?)))
                .collect(),
        })
    }
}

/// The pods that a budget protects: unlike elsewhere an absent selector selects none.
pub(crate) fn selector(object: &Object) -> Result<Option<Selector>, String> {
    selector_of(&spec(object)?)
}

fn spec(object: &Object) -> Result<PodDisruptionBudgetSpec, String> {
    object.spec_view().map_err(|error| error.to_string())
}

fn selector_of(spec: &PodDisruptionBudgetSpec) -> Result<Option<Selector>, String> {
    let Some(given) = &spec.selector else { return Ok(None) };
    let selector = Selector::from_view(Some(given));
    selector.map(Some).map_err(|error| format!("spec.selector.{}: {}", error.field, error.message))
}

impl Demand {
    fn read(spec: &PodDisruptionBudgetSpec) -> Result<Self, String> {
        type Named = fn(IntOrPercent) -> Demand;
        let demands = [
            ("maxUnavailable", &spec.max_unavailable, Self::MaxUnavailable as Named),
            ("minAvailable", &spec.min_available, Self::MinAvailable as Named),
        ];
        let given = demands.into_iter().find_map(|(name, amount, of)| {
            let amount = amount.as_ref()?;
            let read = IntOrPercent::from_view(amount).map(of);
            Some(read.map_err(|error| format!("spec.{name} {}: {error}", json!(amount))))
        });
        given.unwrap_or(Ok(Self::Nothing))
    }
}

/// The scale of a pod's controller, under the uid of the object whose scale it is: a Deployment
/// for pods of its ReplicaSets. None: it is not there. An error: it has no scale.
pub(crate) fn scale<'w>(
    snapshot: &Snapshot<'w>,
    reference: &OwnerReference<'w>,
) -> Result<Option<(&'w str, i64)>, String> {
    let group = group_of(reference.api_version);
    let kind = match (group, reference.kind) {
        ("apps" | "extensions", "ReplicaSet") => REPLICA_SET,
        ("apps", "StatefulSet") => STATEFUL_SET,
        ("", "ReplicationController") => REPLICATION_CONTROLLER,
        _ => return custom_scale(snapshot, group, reference),
    };
    let Some(owner) = named(snapshot, &kind, reference) else { return Ok(None) };
    let above = owner.controller().filter(|above| above.kind == DEPLOYMENT.kind);
    let scaled = match above {
        Some(above) if kind == REPLICA_SET => named(snapshot, &DEPLOYMENT, &above).unwrap_or(owner),
        _ => owner,
    };
    let replicas = |owner: &Object| owner.spec().get("replicas").and_then(Value::as_i64);
    Ok(Some((scaled.uid().unwrap_or_default(), replicas(scaled).unwrap_or(1))))
}

/// The object that a reference means, if it is still that one.
fn named<'w>(
    snapshot: &Snapshot<'w>,
    kind: &GroupKind,
    reference: &OwnerReference<'_>,
) -> Option<&'w Object> {
    let found = snapshot.find(kind, snapshot.rollout().namespace(), reference.name)?;
    (found.uid() == Some(reference.uid)).then_some(found)
}

/// The scale of a controller of a kind that a definition serves.
fn custom_scale<'w>(
    snapshot: &Snapshot<'w>,
    group: &str,
    reference: &OwnerReference<'w>,
) -> Result<Option<(&'w str, i64)>, String> {
    let built_in = [("apps", "DaemonSet", "daemonsets"), ("batch", "Job", "jobs")];
    if let Some((_, _, plural)) =
        built_in.iter().find(|(of, kind, _)| (*of, *kind) == (group, reference.kind))
    {
        return Err(format!("{plural}.{group} does not implement the scale subresource"));
    }
    let (kind, version) = (reference.kind, reference.api_version);
    let mut definitions = snapshot.of(&CUSTOM_RESOURCE_DEFINITION).iter();
    let definition = definitions.find(|definition| defines(definition, group, kind));
    let Some(definition) = definition else {
        return Err(format!("no matches for kind {kind:?} in version {version:?}"));
    };
    let Some(path) = replicas_path(definition, version_of(version)) else {
        let plural = text(field(definition.spec(), "names"), "plural");
        return Err(format!("{plural}.{group} does not implement the scale subresource"));
    };
    let key = snapshot.rollout().key();
    let custom = custom_kind(group, kind);
    let owner = snapshot.get(&key.sibling(&custom, &key.namespace, reference.name));
    let owner = owner.filter(|owner| owner.uid() == Some(reference.uid));
    let pointer = path.replace('.', "/");
    Ok(owner.map(|owner| {
        let replicas = owner.raw().pointer(&pointer).and_then(Value::as_i64);
        (owner.uid().unwrap_or_default(), replicas.unwrap_or(0))
    }))
}

/// A kind that is known by name only.
pub(crate) fn custom_kind(group: &str, kind: &str) -> GroupKind {
    GroupKind { group: SmolStr::new(group), kind: SmolStr::new(kind) }
}

/// What budgets look at in a controller: its scale, and its own controller.
pub(crate) fn standing(controller: &Object) -> impl PartialEq + use<> {
    let owner = controller.controller().map(|owner| owner.uid.to_owned());
    (controller.spec().get("replicas").cloned(), owner)
}

/// What budgets look at in a pod.
pub(crate) fn health(pod: &Object) -> impl PartialEq + use<> {
    let owner = pod.controller().map(|owner| owner.uid.to_owned());
    let labels = pod.metadata().get("labels").cloned();
    (pod.condition_status("Ready").map(str::to_owned), pod.is_deleting(), owner, labels)
}

/// Whether a `CustomResourceDefinition` is the one of a kind.
pub(crate) fn defines(definition: &Object, group: &str, kind: &str) -> bool {
    let spec = definition.spec();
    text(spec, "group") == group && text(field(spec, "names"), "kind") == kind
}

/// `specReplicasPath` of a version, if it has a scale.
pub(crate) fn replicas_path<'o>(definition: &'o Object, version: &str) -> Option<&'o str> {
    let mut versions = list(definition.spec(), "versions").iter();
    let version = versions.find(|entry| text(entry, "name") == version)?;
    let scale = field(field(version, "subresources"), "scale");
    scale.get("specReplicasPath")?.as_str()
}

pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

pub(crate) fn version_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or(api_version, |(_, version)| version)
}
