//! A stand-in for an API server that applies a plan's writes to a world: merge patches, versions,
//! generations, the status sub-resource, finalizers and owner references. No clock, no I/O.

mod garbage;
mod server_side;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use convoy_api::apps::DEPLOYMENT;
use convoy_api::{Object, ObjectKey};
use convoy_plan::step::{Precondition, Propagation, Subresource};
use convoy_plan::{Action, Step, World, Write};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::server_side::ManagedFields;

/// A world that accepts writes.
#[derive(Clone, Debug)]
pub struct Applier {
    world: World,
    now: Timestamp,
    version: u64,
    managed: ManagedFields,
    /// The objects whose writes are denied, and in which words.
    denied: BTreeMap<ObjectKey, String>,
}

/// Why a write was refused. The engine then plans again from fresh state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("{0} exists already")]
    Exists(Box<ObjectKey>),
    #[error("{0} does not exist")]
    NotFound(Box<ObjectKey>),
    #[error("{0} changed since it was observed")]
    Stale(Box<ObjectKey>),
    #[error("{0} would not be an object any more: {1}")]
    Broken(Box<ObjectKey>, String),
    /// The same write is denied for as long as nothing else changes. The words are the server's.
    #[error("{0}: {1}")]
    Denied(Box<ObjectKey>, String),
}

impl Applier {
    pub fn new(world: World, now: Timestamp) -> Self {
        Self {
            world,
            now,
            version: 1_000_000, // above any version a test gives by hand
            managed: ManagedFields::default(),
            denied: BTreeMap::new(),
        }
    }

    /// Denies every write of a step to an object, as authorization or validation would.
    pub fn deny(&mut self, key: &ObjectKey, message: &str) {
        self.denied.insert(key.clone(), message.to_owned());
    }

    /// Writes to the object are accepted again.
    pub fn allow(&mut self, key: &ObjectKey) {
        self.denied.remove(key);
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn advance_to(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Changes one object on behalf of another client: a kubelet, an agent, a user.
    pub fn edit(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Value)) {
        let Some(object) = self.world.get(key) else { return };
        let mut raw = object.raw().clone();
        change(&mut raw);
        let before = object.clone();
        self.managed.note_edit(&before, &raw);
        self.store(&before, raw);
    }

    /// Inserts or replaces an object as it is.
    pub fn insert(&mut self, object: Object) {
        self.world.insert(object);
    }

    pub fn remove(&mut self, key: &ObjectKey) {
        self.world.remove(key);
    }

    /// Applies a step: its actions in order, then its status. Stops at the first refusal.
    pub fn apply(&mut self, step: &Step) -> Result<(), ApplyError> {
        let before = self.version;
        for action in &step.actions {
            self.act(action, before)?;
        }
        if let Some(status) = &step.status {
            self.set_status(&step.rollout, status)?;
        }
        Ok(())
    }

    /// Applies one action. Versions above `before` are our own writes of this step.
    fn act(&mut self, action: &Action, before: u64) -> Result<(), ApplyError> {
        let target = &action.target;
        if let Some(message) = self.denied.get(target) {
            return Err(ApplyError::Denied(Box::new(target.clone()), message.clone()));
        }
        match &action.write {
            Write::Create { object } => self.create(target, object),
            Write::Patch { patch, subresource, precondition } => {
                let found = self.observed(target, precondition, before)?;
                self.patch(&found, patch, *subresource)
            }
            Write::Apply { object, force, precondition, .. } => {
                if self.world.get(target).is_none() && precondition.uid.is_none() {
                    self.managed.note_applied(target, object);
                    return self.create(target, object);
                }
                let found = self.observed(target, precondition, before)?;
                self.apply_on_server(&found, object, *force)
            }
            Write::Delete { precondition, propagation, .. } => {
                let found = self.observed(target, precondition, before)?;
                self.delete(&found, *propagation);
                Ok(())
            }
            Write::Evict { precondition, .. } => {
                let found = self.observed(target, precondition, before)?;
                self.delete(&found, Propagation::Background);
                Ok(())
            }
        }
    }

    fn create(&mut self, target: &ObjectKey, body: &Value) -> Result<(), ApplyError> {
        if self.world.get(target).is_some() {
            return Err(ApplyError::Exists(Box::new(target.clone())));
        }
        self.version += 1;
        let mut raw = body.clone();
        let broken = |message: String| ApplyError::Broken(Box::new(target.clone()), message);
        let fields = raw.as_object_mut().ok_or_else(|| broken("not a JSON object".to_owned()))?;
        if has_status_subresource(target) {
            fields.shift_remove("status");
        }
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        metadata["uid"] = json!(format!("uid-{}", self.version));
        metadata["resourceVersion"] = json!(self.version.to_string());
        metadata["generation"] = json!(1);
        metadata["creationTimestamp"] = convoy_plan::condition::instant(self.now);
        let object = Object::from_value(raw).map_err(|error| broken(error.to_string()))?;
        let object = object.in_cluster(&target.cluster);
        if object.key() != target {
            return Err(broken(format!("its body says {}", object.key())));
        }
        self.world.insert(object);
        Ok(())
    }

    fn patch(
        &mut self,
        object: &Object,
        patch: &Value,
        subresource: Option<Subresource>,
    ) -> Result<(), ApplyError> {
        let mut raw = object.raw().clone();
        let mut patch = patch.clone();
        let split = has_status_subresource(object.key());
        match (subresource, patch.as_object_mut()) {
            // A Deployment's annotations may be written through its status: revisions are.
            (Some(Subresource::Status), Some(fields)) => fields.retain(|key, _| {
                key == "status" || key == "metadata" && *object.kind() == DEPLOYMENT
            }),
            (None, Some(fields)) if split => _ = fields.shift_remove("status"),
            _ => {}
        }
        json_patch::merge(&mut raw, &patch);
        let same = Object::from_value(raw.clone())
            .is_ok_and(|patched| patched.in_cluster(&object.key().cluster).key() == object.key());
        if !same {
            let message = "the patch changes its identity".to_owned();
            return Err(ApplyError::Broken(Box::new(object.key().clone()), message));
        }
        self.store(object, raw);
        self.finalize(object.key());
        Ok(())
    }

    fn set_status(&mut self, rollout: &ObjectKey, status: &Value) -> Result<(), ApplyError> {
        let Some(object) = self.world.get(rollout).cloned() else {
            return Err(ApplyError::NotFound(Box::new(rollout.clone())));
        };
        let mut raw = object.raw().clone();
        raw["status"] = status.clone();
        self.store(&object, raw);
        Ok(())
    }

    /// Writes `raw` in place of `before`; a changed spec is a new generation.
    fn store(&mut self, before: &Object, mut raw: Value) {
        if raw == *before.raw() {
            return;
        }
        self.version += 1;
        let generation =
            before.generation() + i64::from(raw.get("spec") != before.raw().get("spec"));
        raw["metadata"]["generation"] = json!(generation);
        raw["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.world.insert(before.with_raw(raw));
    }

    fn observed(
        &self,
        target: &ObjectKey,
        precondition: &Precondition,
        before: u64,
    ) -> Result<Object, ApplyError> {
        let object =
            self.world.get(target).ok_or_else(|| ApplyError::NotFound(Box::new(target.clone())))?;
        let version = object.resource_version();
        let ours = version.and_then(|text| text.parse().ok()).is_some_and(|at: u64| at > before);
        let fresh =
            ours || precondition.resource_version.as_deref().is_none_or(|at| version == Some(at));
        let same = precondition.uid.as_deref().is_none_or(|uid| object.uid() == Some(uid));
        if fresh && same {
            Ok(object.clone())
        } else {
            Err(ApplyError::Stale(Box::new(target.clone())))
        }
    }
}

/// Our own kinds whose `status` is an ordinary field, as their CRDs say.
static PLAIN_STATUS: LazyLock<BTreeSet<(String, String)>> = LazyLock::new(|| {
    let dialects = [
        convoy_api::skyhook::crds(),
        convoy_api::fleet::crds(),
        convoy_api::karpenter::crds(),
        convoy_api::ocm::crds(),
    ];
    let plain = dialects.into_iter().flatten().filter(|crd| {
        let mut subresources =
            crd.spec.versions.iter().filter_map(|version| version.subresources.as_ref());
        !subresources.any(|subresources| subresources.status.is_some())
    });
    plain.map(|crd| (crd.spec.group, crd.spec.names.kind)).collect()
});

/// Whether `status` of this kind is written apart from the rest. True of every built-in kind
/// that has a status.
fn has_status_subresource(key: &ObjectKey) -> bool {
    !PLAIN_STATUS.contains(&(key.kind.group.to_string(), key.kind.kind.to_string()))
}

/// A JSON object at `key` of `parent`, made if it is missing.
fn child<'v>(parent: &'v mut Value, key: &str) -> &'v mut Map<String, Value> {
    if !parent[key].is_object() {
        parent[key] = json!({});
    }
    parent[key].as_object_mut().expect("made an object above")
}

#[cfg(test)]
mod tests;
