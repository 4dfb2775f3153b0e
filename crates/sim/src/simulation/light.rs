//! A small API server for simulations of a thousand worlds: versions, conflicts, generations,
//! sub-resources, graceful deletion and background garbage collection, and no defaults, no rules
//! and no owners of fields. What it does, it does as the real one, which every trial also runs on.

mod eviction;
mod garbage;
mod kinds;
mod load;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::kinds::{DEPLOYMENT, NAMESPACE};
use convoy_api::object::member::same;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_store::Change;
use http::Method;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::garbage::Garbage;
use self::kinds::{Kinds, Served};
use super::server::{Server, ServerResponse, Written};
use crate::component::hash_of;
use crate::fleet::send::HttpParts;
use crate::kubelet::stamp;
use crate::shared_object::SharedObject;

#[derive(Debug)]
pub(super) struct Light {
    kinds: Kinds,
    /// In no order that means anything, but one that is found without reading long names.
    objects: BTreeMap<(u64, ObjectKey), Object>,
    /// The PodDisruptionBudgets that were ever written.
    budgets: BTreeSet<ObjectKey>,
    garbage: Garbage,
    revision: u64,
    written: Vec<Written>,
    now: Timestamp,
}

/// What a path names.
struct Target<'p> {
    /// Empty for the home cluster.
    cluster: &'p str,
    served: Served,
    namespace: &'p str,
    name: &'p str,
    below: &'p str,
}

/// A refusal.
type Refused = (u16, &'static str);

impl Light {
    pub(super) fn new() -> Self {
        Self {
            kinds: Kinds::new(),
            objects: BTreeMap::new(),
            budgets: BTreeSet::new(),
            garbage: Garbage::default(),
            revision: 0,
            written: Vec::new(),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    fn answer(&mut self, parts: &HttpParts<'_>) -> Result<(u16, SharedObject), Refused> {
        let path = parts.uri.split('?').next().unwrap_or_default();
        let (cluster, path) = split_cluster(path);
        if let Some(document) = self.discovery(cluster, path) {
            return Ok((200, document.into()));
        }
        let target = self.target(cluster, path).ok_or((404, "NotFound"))?;
        let key = target.key(&target.served.kind, target.name);
        if self.is_denied(&key) && parts.method != Method::GET && target.below.is_empty() {
            return Err((403, "Forbidden"));
        }
        match parts.method {
            Method::GET if target.name.is_empty() => {
                Ok((200, self.list(cluster, &target.served.kind).into()))
            }
            Method::GET => self.objects.get(&place(&key)).map(shown).ok_or((404, "NotFound")),
            Method::POST if target.below == "binding" => self.bind(&key, parts.body),
            Method::POST if target.below == "eviction" => self.evict(&key, parts.body),
            Method::POST => self.create(&target, parts.body),
            Method::PATCH => self.patch(&key, target.below == "status", parts),
            Method::PUT => self.replace(&key, parts.body),
            Method::DELETE => self.delete(&key, parts.body),
            _ => Err((405, "MethodNotAllowed")),
        }
    }

    fn discovery(&self, cluster: &str, path: &str) -> Option<Value> {
        let mut parts = path.trim_matches('/').split('/');
        let (group, version) = match (parts.next()?, parts.next()?, parts.next(), parts.next()) {
            ("api", version, None, None) => ("", Some(version)),
            ("apis", group, version, None) => (group, version),
            _ => return None,
        };
        let of_group = self.kinds.of(cluster).filter(|served| served.kind.group == group);
        let Some(version) = version else {
            let mut names: Vec<&str> = of_group.map(|served| &*served.version).collect();
            names.dedup();
            let entry = |name| json!({"groupVersion": format!("{group}/{name}"), "version": name});
            let versions: Vec<Value> = names.into_iter().map(entry).collect();
            return Some(json!({"preferredVersion": versions.first()?, "versions": versions}));
        };
        let of_version = of_group.filter(|served| served.version == version);
        let resources = of_version.flat_map(|served| {
            let entry = |name: String| {
                json!({"name": name, "kind": served.kind.kind, "namespaced": served.namespaced})
            };
            [entry(served.plural.to_string()), entry(format!("{}/status", served.plural))]
        });
        Some(json!({"resources": resources.collect::<Vec<_>>()}))
    }

    fn target<'p>(&self, cluster: &'p str, path: &'p str) -> Option<Target<'p>> {
        let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let group = match *parts.first()? {
            "api" => "",
            _ => parts.get(1).copied()?,
        };
        let root = if group.is_empty() { 2 } else { 3 };
        if parts.len() < root {
            return None;
        }
        parts.drain(..root);
        let namespace = match parts.as_slice() {
            ["namespaces", namespace, _, ..] => *namespace,
            _ => "",
        };
        if !namespace.is_empty() {
            parts.drain(..2);
        }
        let plural = *parts.first()?;
        let found = |served: &&Served| served.kind.group == group && served.plural == plural;
        let served = self.kinds.of(cluster).find(found)?.clone();
        let part = |at: usize| parts.get(at).copied().unwrap_or_default();
        Some(Target { cluster, served, namespace, name: part(1), below: part(2) })
    }

    fn list(&self, cluster: &str, kind: &GroupKind) -> Value {
        let is_listed = |object: &&Object| object.kind() == kind && object.key().cluster == cluster;
        let items = self.objects.values().filter(is_listed);
        let mut items: Vec<&Object> = items.collect();
        items.sort_by_key(|object| object.key());
        let items: Vec<Value> = items.into_iter().map(|object| object.raw().clone()).collect();
        json!({"metadata": {"resourceVersion": self.revision.to_string()}, "items": items})
    }

    fn create(
        &mut self,
        target: &Target<'_>,
        body: &Value,
    ) -> Result<(u16, SharedObject), Refused> {
        let Served { kind, version, .. } = &target.served;
        let mut raw = body.clone();
        let fields = raw.as_object_mut().ok_or((400, "BadRequest"))?;
        let group = &kind.group;
        let api_version =
            if group.is_empty() { version.to_string() } else { format!("{group}/{version}") };
        fields.insert("apiVersion".to_owned(), json!(api_version));
        fields.insert("kind".to_owned(), json!(kind.kind));
        match kind.kind.as_str() {
            "Node" => {}
            "Pod" => _ = fields.insert("status".to_owned(), json!({"phase": "Pending"})),
            "CustomResourceDefinition" => {
                fields.insert("status".to_owned(), accepted(self.now));
            }
            // Rules that look into the status of a new workload find an empty one.
            _ if ["apps", "batch"].contains(&kind.group.as_str()) => {
                fields.insert("status".to_owned(), json!({}));
            }
            _ => _ = fields.shift_remove("status"),
        }
        let revision = self.revision + 1;
        let version = revision.to_string();
        let metadata = &mut raw["metadata"];
        if target.served.namespaced {
            metadata["namespace"] = json!(target.namespace);
        }
        metadata["uid"] = json!(format!("00000000-0000-4000-8000-{revision:012x}"));
        metadata["creationTimestamp"] = json!(stamp(self.now));
        metadata["generation"] = json!(1);
        metadata["resourceVersion"] = json!(version);
        let object = Object::from_value(raw).map_err(|_| (400, "BadRequest"))?;
        let object = object.in_cluster(target.cluster);
        if target.served.namespaced {
            self.is_open(&target.key(&NAMESPACE, target.namespace))?;
        }
        if self.objects.contains_key(&place(object.key())) {
            return Err((409, "AlreadyExists"));
        }
        Ok((201, self.store(object, Change::Created)))
    }

    fn patch(
        &mut self,
        key: &ObjectKey,
        is_status: bool,
        parts: &HttpParts<'_>,
    ) -> Result<(u16, SharedObject), Refused> {
        let before = self.objects.get(&place(key)).ok_or((404, "NotFound"))?.clone();
        let raw = before.raw();
        let is_json_patch = parts.content_type == "application/json-patch+json";
        let mut after = if is_json_patch {
            let patch: json_patch::Patch =
                serde_json::from_value(parts.body.clone()).map_err(|_| (400, "BadRequest"))?;
            let mut after = raw.clone();
            json_patch::patch(&mut after, &patch).map_err(|_| (422, "Invalid"))?;
            after
        } else {
            is_as_observed(&before, &parts.body["metadata"])?;
            merged(raw, parts.body)
        };
        let touches = |field: &str| is_json_patch || parts.body.get(field).is_some();
        let kept = if is_status { "spec" } else { "status" };
        if touches(kept) {
            match raw.get(kept) {
                Some(value) => after[kept] = value.clone(),
                None => _ = after.as_object_mut().map(|fields| fields.shift_remove(kept)),
            }
        }
        let annotations = "/metadata/annotations";
        let is_new = !is_status
            && (touches("spec") && raw.get("spec") != after.get("spec")
                || key.kind.kind == "Deployment"
                    && raw.pointer(annotations) != after.pointer(annotations));
        after["metadata"]["generation"] = json!(before.generation() + i64::from(is_new));
        after["metadata"]["resourceVersion"] = raw["metadata"]["resourceVersion"].clone();
        if same(&after, raw) {
            return Ok(shown(&before));
        }
        Ok((200, self.restore(&before, after)))
    }

    /// Replaces an object that has no status and no generation.
    fn replace(&mut self, key: &ObjectKey, body: &Value) -> Result<(u16, SharedObject), Refused> {
        let before = self.objects.get(&place(key)).ok_or((404, "NotFound"))?.clone();
        is_as_observed(&before, &body["metadata"])?;
        Ok((200, self.restore(&before, body.clone())))
    }

    fn bind(&mut self, key: &ObjectKey, binding: &Value) -> Result<(u16, SharedObject), Refused> {
        let pod = self.objects.get(&place(key)).ok_or((404, "NotFound"))?.clone();
        if pod.is_deleting() || pod.spec().get("nodeName").is_some() {
            return Err((409, "Conflict"));
        }
        let mut raw = pod.raw().clone();
        raw["spec"]["nodeName"] = binding["target"]["name"].clone();
        let scheduled = json!({"type": "PodScheduled", "status": "True",
            "lastTransitionTime": stamp(self.now)});
        raw["status"]["conditions"] = json!([scheduled]);
        self.restore(&pod, raw);
        Ok((201, json!({"kind": "Status", "status": "Success"}).into()))
    }

    /// The next version of an object.
    fn next_version(&self, object: &Object, mut raw: Value) -> Object {
        raw["metadata"]["resourceVersion"] = json!((self.revision + 1).to_string());
        object.with_raw(raw)
    }

    fn restore(&mut self, object: &Object, raw: Value) -> SharedObject {
        let object = self.next_version(object, raw);
        let shown = self.store(object.clone(), Change::Modified);
        self.remove_unheld(&object);
        shown
    }

    /// Writes one version of an object; gives it back.
    fn store(&mut self, object: Object, change: Change) -> SharedObject {
        self.revision += 1;
        let key = object.key();
        let before = if change == Change::Deleted {
            self.objects.remove(&place(key))
        } else {
            self.objects.insert(place(key), object.clone())
        };
        self.note_budget(&object);
        self.kinds.follow(&object, change == Change::Deleted);
        self.note_owners(before.as_ref(), (change != Change::Deleted).then_some(&object));
        let revision = self.revision;
        self.written.push(Written { revision, change, object: object.clone() });
        SharedObject::Object(object)
    }
}

impl Server for Light {
    fn send(&mut self, parts: &HttpParts<'_>, now: Timestamp) -> ServerResponse {
        self.now = now;
        let (code, body) = self.answer(parts).unwrap_or_else(|(code, reason)| {
            let status =
                json!({"kind": "Status", "code": code, "reason": reason, "message": reason});
            (code, status.into())
        });
        ServerResponse { code, body }
    }

    fn namespaced_kinds(&mut self, cluster: &str) -> BTreeSet<GroupKind> {
        let namespaced = self.kinds.of(cluster).filter(|served| served.namespaced);
        namespaced.map(|served| served.kind.clone()).collect()
    }

    fn collect_garbage(&mut self, now: Timestamp) {
        self.now = now;
        self.collect();
    }

    fn written(&mut self) -> Vec<Written> {
        std::mem::take(&mut self.written)
    }
}

/// The cluster that a path is about, and the path within it.
fn split_cluster(path: &str) -> (&str, &str) {
    let Some(rest) = path.strip_prefix("/clusters/") else { return ("", path) };
    rest.find('/').map_or((rest, "/"), |at| rest.split_at(at))
}

/// While a cluster has a namespace of this name, it denies its clients every write to Deployments.
pub(super) const DENIAL: &str = "deny-deployments";

impl Light {
    fn is_denied(&self, key: &ObjectKey) -> bool {
        let marker = ObjectKey { cluster: key.cluster.clone(), ..NAMESPACE.key("", DENIAL) };
        key.kind == DEPLOYMENT && self.objects.contains_key(&place(&marker))
    }
}

impl Target<'_> {
    fn key(&self, kind: &GroupKind, name: &str) -> ObjectKey {
        let namespace = if *kind == NAMESPACE { "" } else { self.namespace };
        ObjectKey { cluster: self.cluster.into(), ..kind.key(namespace, name) }
    }
}

fn place(key: &ObjectKey) -> (u64, ObjectKey) {
    (hash_of(key), key.clone())
}

/// The status of a definition whose kind is served: here each is so at once.
fn accepted(now: Timestamp) -> Value {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "the kind is served",
            "lastTransitionTime": stamp(now)})
    };
    json!({"conditions": [condition("NamesAccepted"), condition("Established")]})
}

fn shown(object: &Object) -> (u16, SharedObject) {
    (200, SharedObject::Object(object.clone()))
}

/// What a merge patch makes of `old`. Nothing is copied that it replaces.
fn merged(old: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let none = Map::new();
    let old = old.as_object().unwrap_or(&none);
    let mut after = Map::with_capacity(old.len() + changes.len());
    for (name, value) in old {
        match changes.get(name) {
            None => _ = after.insert(name.clone(), value.clone()),
            Some(Value::Null) => {}
            Some(change) => _ = after.insert(name.clone(), merged(value, change)),
        }
    }
    for (name, change) in changes {
        if !change.is_null() && !old.contains_key(name) {
            after.insert(name.clone(), merged(&Value::Null, change));
        }
    }
    Value::Object(after)
}

/// Whether an object is the one, at the version, that a write names.
fn is_as_observed(object: &Object, fence: &Value) -> Result<(), Refused> {
    let holds = |field: &str, is: Option<&str>| {
        fence.get(field).and_then(Value::as_str).is_none_or(|wanted| is == Some(wanted))
    };
    if holds("uid", object.uid()) && holds("resourceVersion", object.resource_version()) {
        return Ok(());
    }
    Err((409, "Conflict"))
}
