//! The Works that a binding should have: their names, labels and manifests. Objects are changed by
//! the binding's overrides, and envelopes are unpacked into Works of their own.

use std::fmt::Write as _;

use convoy_api::Object;
use convoy_api::size::{SizeBudget, TooLarge};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use smol_str::SmolStr;

use super::override_patch::{OverrideError, overridden};
use crate::dialect::fleet::decide::works::Sources;
use crate::dialect::fleet::names::{
    ENVELOPE_NAME, ENVELOPE_NAMESPACE, ENVELOPE_WORK, PARENT, PARENT_BINDING,
    PARENT_CLUSTER_OVERRIDES_HASH, PARENT_NAMESPACE, PARENT_OVERRIDES_HASH, PARENT_SNAPSHOT_INDEX,
    PARENT_SNAPSHOT_NAME, RESOURCE_INDEX,
};
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::overrides::{Applicable, identity, is_envelope};
use crate::dialect::fleet::read::placement::{field, report_back, text};
use crate::dialect::fleet::read::snapshot::{resources, sub_index};
use crate::hash::content as hash;

/// A Work leaves the member room for its status: etcd takes requests of up to 1.5 MiB.
const WORK_BYTES_MAX: usize = 1_415_578;

/// A Work as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DesiredWork {
    pub(crate) name: SmolStr,
    pub(crate) labels: Map<String, Value>,
    pub(crate) annotations: Map<String, Value>,
    pub(crate) spec: Value,
}

/// Why the Works of a binding cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum SyncError {
    #[error(transparent)]
    Override(#[from] OverrideError),
    #[error("{name} does not exist")]
    MissingOverride { name: String },
    #[error("resource snapshot {name} does not exist")]
    MissingSnapshot { name: String },
    #[error("resource snapshot {name} has {found} of {expected} parts")]
    IncompleteSnapshot { name: String, found: usize, expected: usize },
    #[error(
        "{envelope} wraps {object} under key {key:?}, but takes only objects {takes}; \
         move it to another envelope"
    )]
    Misplaced { envelope: String, key: String, object: String, takes: String },
    #[error("{envelope} holds no Kubernetes object under key {key:?}")]
    NotAnObject { envelope: String, key: String },
    #[error(
        "Work {name} would be too large: {source}; select fewer objects, \
         or split the envelope"
    )]
    TooLarge { name: SmolStr, source: TooLarge },
    #[error("Work {name} belongs to binding {binding}, which has to release it first")]
    Taken { name: SmolStr, binding: String },
}

impl SyncError {
    /// Whether an override is at fault.
    pub(crate) fn is_of_override(&self) -> bool {
        matches!(self, Self::Override(_) | Self::MissingOverride { .. })
    }
}

/// The Works of a binding, by name. None: the resource snapshot is gone, but its Works are there.
pub(crate) fn desired(
    binding: &Binding<'_>,
    sources: &Sources<'_>,
    works: &[&Object],
) -> Result<Option<Vec<DesiredWork>>, SyncError> {
    let name = binding.resource_snapshot();
    let Some(group) = &sources.resources else {
        let recorded = |work: &&Object| work.annotation(PARENT_SNAPSHOT_NAME) == Some(name);
        return match works {
            [_, ..] if works.iter().all(recorded) => Ok(None),
            _ => Err(SyncError::MissingSnapshot { name: name.to_owned() }),
        };
    };
    if !group.is_complete() {
        let (found, expected) = (group.parts.len(), group.expected);
        return Err(SyncError::IncompleteSnapshot { name: name.to_owned(), found, expected });
    }
    if let Some(name) = &sources.missing_override {
        return Err(SyncError::MissingOverride { name: name.clone() });
    }
    let mut desired = Vec::new();
    for part in &group.parts {
        of_part(&Draft::of(binding, sources, part), part, &mut desired)?;
    }
    desired.sort_by(|one: &DesiredWork, other| one.name.cmp(&other.name));
    for work in &desired {
        let (name, found) = (work.name.clone(), taken(sources, &work.name));
        if let Some(binding) = found {
            return Err(SyncError::Taken { name, binding });
        }
        SizeBudget::beside(WORK_BYTES_MAX, &work.spec)
            .map_err(|source| SyncError::TooLarge { name, source })?;
    }
    Ok(Some(desired))
}

/// The binding that has a Work of this name already.
fn taken(sources: &Sources<'_>, name: &str) -> Option<String> {
    let other = sources.others.iter().find(|work| work.name() == name)?;
    Some(other.label(PARENT_BINDING).unwrap_or("unknown").to_owned())
}

/// What the Works of one part of a snapshot have in common.
struct Draft<'d, 'w> {
    sources: &'d Sources<'w>,
    strategy: &'w Value,
    prefix: String,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
}

impl<'d, 'w> Draft<'d, 'w> {
    fn of(binding: &Binding<'w>, sources: &'d Sources<'w>, part: &Object) -> Self {
        let object = binding.object;
        let parent = object.label(PARENT).unwrap_or_default();
        let mut labels = Map::new();
        labels.insert(PARENT_BINDING.into(), json!(object.name()));
        labels.insert(PARENT.into(), json!(parent));
        let index = part.label(RESOURCE_INDEX).unwrap_or_default();
        labels.insert(PARENT_SNAPSHOT_INDEX.into(), json!(index));
        let mut base = parent.to_owned();
        if !object.namespace().is_empty() {
            labels.insert(PARENT_NAMESPACE.into(), json!(object.namespace()));
            base = format!("{}.{parent}", object.namespace());
        }
        let prefix = match sub_index(part) {
            None => format!("{base}-work"),
            Some(sub) => format!("{base}-{sub}"),
        };
        let annotations = annotations(binding);
        let strategy = field(object.spec(), "applyStrategy");
        Self { sources, strategy, prefix, labels, annotations }
    }

    fn work(&self, name: &str, labels: Map<String, Value>, manifests: Vec<Value>) -> DesiredWork {
        let mut spec = Map::new();
        spec.insert("workload".into(), json!({"manifests": manifests}));
        if !self.strategy.is_null() {
            spec.insert("applyStrategy".into(), self.strategy.clone());
        }
        let report_back = self.sources.placement.map_or(&Value::Null, report_back);
        if !report_back.is_null() {
            spec.insert("reportBackStrategy".into(), report_back.clone());
        }
        let (name, annotations) = (SmolStr::new(name), self.annotations.clone());
        DesiredWork { name, labels, annotations, spec: Value::Object(spec) }
    }
}

/// The snapshots that a Work was made from.
fn annotations(binding: &Binding<'_>) -> Map<String, Value> {
    let applicable = Applicable::of_binding(binding.object);
    // In Go's order of fields.
    let namespaced = applicable.namespaced_json();
    let namespaced = hash::ordered(&namespaced, &["name", "namespace"], &[]);
    let mut annotations = Map::new();
    let mut put = |key: &str, value: Value| annotations.insert(key.to_owned(), value);
    put(PARENT_SNAPSHOT_NAME, json!(binding.resource_snapshot()));
    put(PARENT_OVERRIDES_HASH, json!(hash::hex(&namespaced)));
    put(PARENT_CLUSTER_OVERRIDES_HASH, json!(hash::hex(&applicable.cluster_json())));
    annotations
}

/// One Work for the plain objects, even if there is none, and one for each envelope.
fn of_part(
    draft: &Draft<'_, '_>,
    part: &Object,
    into: &mut Vec<DesiredWork>,
) -> Result<(), SyncError> {
    let Sources { overrides, member, .. } = draft.sources;
    let mut plain = Vec::new();
    for resource in resources(part) {
        if is_envelope(resource) {
            into.push(of_envelope(draft, resource)?);
        } else {
            plain.extend(overridden(resource.clone(), overrides, member)?);
        }
    }
    into.push(draft.work(&draft.prefix, draft.labels.clone(), plain));
    Ok(())
}

fn of_envelope(draft: &Draft<'_, '_>, envelope: &Value) -> Result<DesiredWork, SyncError> {
    let (_, _, kind, namespace, name) = identity(envelope);
    let shown = || match namespace {
        "" => format!("{kind} {name}"),
        _ => format!("{kind} {namespace}/{name}"),
    };
    let Sources { overrides, member, .. } = draft.sources;
    let mut manifests = Vec::new();
    for (key, object) in field(envelope, "data").as_object().into_iter().flatten() {
        let (_, _, of_kind, its_namespace, its_name) = identity(object);
        if of_kind.is_empty() || text(object, "apiVersion").is_empty() {
            return Err(SyncError::NotAnObject { envelope: shown(), key: key.clone() });
        }
        if its_namespace != namespace {
            let takes = match namespace {
                "" => "of cluster scope".to_owned(),
                _ => format!("of namespace {namespace}"),
            };
            let object = format!("{of_kind} {its_namespace}/{its_name}");
            return Err(SyncError::Misplaced {
                envelope: shown(),
                key: key.clone(),
                object,
                takes,
            });
        }
        manifests.push(object.clone());
    }
    // Keys carry no order; the text of the objects gives one that stays.
    manifests.sort_by_cached_key(|manifest| std::cmp::Reverse(hash::sorted(manifest).to_string()));
    let mut changed = Vec::new();
    for manifest in manifests {
        changed.extend(overridden(manifest, overrides, member)?);
    }
    let mut labels = draft.labels.clone();
    labels.insert(ENVELOPE_WORK.into(), json!(kind));
    labels.insert(ENVELOPE_NAME.into(), json!(name));
    if !namespace.is_empty() {
        labels.insert(ENVELOPE_NAMESPACE.into(), json!(namespace));
    }
    let digest = Sha256::digest(format!("{kind}/{namespace}/{name}").as_bytes());
    let mut work = format!("{}-envelope-", draft.prefix);
    for byte in &digest[..8] {
        write!(work, "{byte:02x}").expect("a String takes whatever is written");
    }
    Ok(draft.work(&work, labels, changed))
}

#[cfg(test)]
mod tests;
