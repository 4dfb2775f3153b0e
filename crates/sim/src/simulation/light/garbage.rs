//! Deletion in the small server: finalizers hold an object, dependents go with their last owner,
//! and a namespace goes once everything in it is gone.

use std::collections::BTreeSet;

use convoy_api::object::member::{list, text};
use convoy_api::{Object, ObjectKey};
use convoy_store::Change;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Light, Refused, is_as_observed, place, shown};
use crate::kubelet::stamp;
use crate::shared_object::SharedObject;

/// Holds an owner until the dependents that block it are gone.
const FOREGROUND: &str = "foregroundDeletion";

/// What the collector has to look at.
#[derive(Debug, Default)]
pub(super) struct Garbage {
    /// Objects whose owner may be gone.
    suspects: BTreeSet<ObjectKey>,
    /// Owners that wait for their dependents, and namespaces for their content.
    waiting: BTreeSet<ObjectKey>,
    /// The objects that each uid owns.
    owned: std::collections::BTreeMap<String, BTreeSet<ObjectKey>>,
    /// The uids of the objects that exist.
    uids: BTreeSet<String>,
    /// Namespaces that were there once.
    closed: BTreeSet<ObjectKey>,
}

impl Light {
    pub(super) fn delete(
        &mut self,
        key: &ObjectKey,
        options: &Value,
    ) -> Result<(u16, SharedObject), Refused> {
        let object = self.objects.get(&place(key)).ok_or((404, "NotFound"))?.clone();
        is_as_observed(&object, options.get("preconditions").unwrap_or(&Value::Null))?;
        if key.kind.kind == "Pod" {
            return Ok(self.delete_pod(&object, options));
        }
        match text(options, "propagationPolicy") {
            "Orphan" => self.release_dependents(&object),
            "Foreground" => return Ok((200, self.hold(&object, Some(FOREGROUND)))),
            _ => {}
        }
        let is_held = !list(object.metadata(), "finalizers").is_empty();
        if is_held || key.kind.kind == "Namespace" {
            return Ok((200, self.hold(&object, None)));
        }
        Ok((200, self.remove(&object)))
    }

    fn delete_pod(&mut self, pod: &Object, options: &Value) -> (u16, SharedObject) {
        let secs = grace(pod, options);
        if secs == 0 {
            return (200, self.remove(pod));
        }
        let due = pod.metadata().get("deletionGracePeriodSeconds").and_then(Value::as_i64);
        if due.is_some_and(|due| due <= secs) {
            return shown(pod);
        }
        let mut raw = pod.raw().clone();
        let at = self.now.checked_add(SignedDuration::from_secs(secs)).unwrap_or(self.now);
        raw["metadata"]["deletionTimestamp"] = json!(stamp(at));
        raw["metadata"]["deletionGracePeriodSeconds"] = json!(secs);
        (200, self.restore(pod, raw))
    }

    fn remove(&mut self, object: &Object) -> SharedObject {
        let last = self.next_version(object, object.raw().clone());
        self.store(last, Change::Deleted)
    }

    /// Marks an object as being deleted, which makes a new generation of it.
    fn hold(&mut self, object: &Object, finalizer: Option<&str>) -> SharedObject {
        self.garbage.waiting.insert(object.key().clone());
        let mut raw = object.raw().clone();
        let metadata = &mut raw["metadata"];
        if !object.is_deleting() {
            metadata["deletionTimestamp"] = json!(stamp(self.now));
            metadata["generation"] = json!(object.generation() + 1);
        }
        let is_new = finalizer.is_some_and(|name| !object.has_finalizer(name));
        if let Some(name) = finalizer.filter(|_| is_new) {
            let mut finalizers = list(metadata, "finalizers").to_vec();
            finalizers.push(json!(name));
            metadata["finalizers"] = Value::Array(finalizers);
        } else if object.is_deleting() {
            return SharedObject::Object(object.clone());
        }
        self.restore(object, raw)
    }

    /// Removes an object that is being deleted and that nothing holds any more.
    pub(super) fn remove_unheld(&mut self, object: &Object) {
        let is_held = !list(object.metadata(), "finalizers").is_empty();
        let waits = ["Pod", "Namespace"].contains(&object.kind().kind.as_str());
        if object.is_deleting() && !is_held && !waits {
            self.remove(object);
        }
    }

    fn release_dependents(&mut self, owner: &Object) {
        let uid = owner.uid().unwrap_or_default();
        let owned = self.garbage.owned.get(uid).cloned().unwrap_or_default();
        for dependent in owned
            .iter()
            .filter_map(|key| self.objects.get(&place(key)).cloned())
            .collect::<Vec<_>>()
        {
            self.drop_owners(&dependent, |it| it == uid);
        }
    }

    /// Takes the owners with these uids from an object.
    fn drop_owners(&mut self, object: &Object, goes: impl Fn(&str) -> bool) {
        let mut raw = object.raw().clone();
        if let Some(owners) = raw["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|reference| !goes(text(reference, "uid")));
        }
        self.restore(object, raw);
    }

    /// Owners that nobody gave exist all the same: what they own stays.
    pub(super) fn presume(&mut self, uid: &str) {
        self.garbage.uids.insert(uid.to_owned());
    }

    pub(super) fn note_owners(&mut self, before: Option<&Object>, after: Option<&Object>) {
        let owners = |object: Option<&Object>| -> BTreeSet<String> {
            object.into_iter().flat_map(Object::owners).map(|it| it.uid.to_owned()).collect()
        };
        let garbage = &mut self.garbage;
        match (before, after) {
            (None, Some(new)) => _ = garbage.uids.insert(new.uid().unwrap_or_default().to_owned()),
            (Some(last), None) => {
                let uid = last.uid().unwrap_or_default();
                garbage.uids.remove(uid);
                garbage.suspects.extend(garbage.owned.get(uid).into_iter().flatten().cloned());
            }
            _ => {}
        }
        let (former, current) = (owners(before), owners(after));
        for uid in former.difference(&current) {
            let Some(object) = before else { continue };
            if let Some(keys) = garbage.owned.get_mut(uid) {
                keys.remove(object.key());
                if keys.is_empty() {
                    garbage.owned.remove(uid);
                }
            }
        }
        for uid in current.difference(&former) {
            let Some(object) = after else { continue };
            garbage.owned.entry(uid.clone()).or_default().insert(object.key().clone());
            if !garbage.uids.contains(uid) {
                garbage.suspects.insert(object.key().clone());
            }
        }
    }

    /// One round of the collector after another, until it finds nothing to do.
    pub(super) fn collect(&mut self) {
        loop {
            while let Some(key) = self.garbage.suspects.pop_first() {
                self.collect_one(&key);
            }
            let waiting: Vec<ObjectKey> = self.garbage.waiting.iter().cloned().collect();
            let is_done = |light: &mut Self, key: &ObjectKey| {
                let Some(object) = light.objects.get(&place(key)).cloned() else { return true };
                light.advance_deletion(&object)
            };
            let done: Vec<ObjectKey> =
                waiting.into_iter().filter(|key| is_done(self, key)).collect();
            for key in &done {
                self.garbage.waiting.remove(key);
            }
            if done.is_empty() && self.garbage.suspects.is_empty() {
                return;
            }
        }
    }

    /// Deletes an object of which no owner is left. One that another owns loses the references to
    /// owners that are gone.
    fn collect_one(&mut self, key: &ObjectKey) {
        let Some(object) = self.objects.get(&place(key)).cloned() else { return };
        let uids = &self.garbage.uids;
        let absent: BTreeSet<String> = object
            .owners()
            .filter(|owner| !uids.contains(owner.uid))
            .map(|owner| owner.uid.to_owned())
            .collect();
        if absent.is_empty() {
            return;
        }
        if absent.len() == object.owners().count() {
            // One that is not there any more needs no collector.
            drop(self.delete(key, &Value::Null));
        } else {
            self.drop_owners(&object, |uid| absent.contains(uid));
        }
    }

    /// Goes on with a deletion that waits; whether the collector is done with it.
    fn advance_deletion(&mut self, object: &Object) -> bool {
        let key = object.key();
        if key.kind.kind == "Namespace" {
            let inside =
                |it: &&Object| *it.namespace() == key.name && it.key().cluster == key.cluster;
            let content: Vec<Object> = self.objects.values().filter(inside).cloned().collect();
            for object in content.iter().filter(|object| !object.is_deleting()) {
                drop(self.delete(object.key(), &Value::Null));
            }
            let is_empty = !self.objects.values().any(|it| inside(&it));
            if is_empty {
                self.garbage.closed.insert(key.clone());
                self.remove(object);
            }
            return is_empty;
        }
        if !object.has_finalizer(FOREGROUND) {
            return true;
        }
        let owned = self.garbage.owned.get(object.uid().unwrap_or_default());
        let dependents: Vec<ObjectKey> = owned.into_iter().flatten().cloned().collect();
        for key in &dependents {
            let is_deleting =
                |light: &Self| light.objects.get(&place(key)).is_none_or(Object::is_deleting);
            if !is_deleting(self) {
                drop(self.delete(key, &Value::Null));
            }
        }
        let is_left = dependents.iter().any(|key| self.objects.contains_key(&place(key)));
        if !is_left && let Some(object) = self.objects.get(&place(key)).cloned() {
            let mut raw = object.raw().clone();
            let mut finalizers = list(object.metadata(), "finalizers").to_vec();
            finalizers.retain(|name| name != FOREGROUND);
            raw["metadata"]["finalizers"] = Value::Array(finalizers);
            self.restore(&object, raw);
        }
        !is_left
    }

    /// Whether objects can be created in a namespace: members have only what was placed there. Trials
    /// of the home cluster need not create theirs, but what is gone is gone.
    pub(super) fn is_open(&self, namespace: &ObjectKey) -> Result<(), Refused> {
        match self.objects.get(&place(namespace)) {
            Some(found) if found.is_deleting() => Err((403, "Forbidden")),
            None if !namespace.cluster.is_empty() || self.garbage.closed.contains(namespace) => {
                Err((404, "NotFound"))
            }
            _ => Ok(()),
        }
    }
}

/// How long a pod may take to end.
fn grace(pod: &Object, options: &Value) -> i64 {
    let phase = pod.status().get("phase").and_then(Value::as_str).unwrap_or_default();
    if pod.spec().get("nodeName").is_none() || ["Failed", "Succeeded"].contains(&phase) {
        return 0;
    }
    let asked = options.get("gracePeriodSeconds").and_then(Value::as_i64);
    let given = || pod.spec().get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    asked.or_else(given).unwrap_or(30).max(0)
}

#[cfg(test)]
mod tests {
    use convoy_controllers::request::Request;
    use http::Method;

    use super::*;
    use crate::seed::Seed;
    use crate::simulation::cluster::{Author, Cluster, ServerKind};

    const PATH: &str = "/api/v1/namespaces/default/configmaps";

    fn owner(cluster: &mut Cluster, name: &str) -> Value {
        let body = json!({"metadata": {"name": name}});
        cluster.send(&Request::create(PATH, body), Author::Person);
        let uid = &cluster.get(&format!("{PATH}/{name}"))["metadata"]["uid"];
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid})
    }

    fn delete(cluster: &mut Cluster, name: &str) {
        let (path, body) = (format!("{PATH}/{name}"), json!({}));
        let request =
            Request { method: Method::DELETE, path, content_type: "application/json", body };
        cluster.send(&request, Author::Person);
        cluster.collect_garbage();
    }

    /// The collector takes references to owners that are gone from an object that another owns.
    /// An object that several works share would otherwise outlive them all: the last of them would
    /// leave it to an owner that does not exist.
    #[test]
    fn an_object_of_two_owners_is_left_to_the_one_that_stays() {
        for server in [ServerKind::Light, ServerKind::Real] {
            let start = jiff::Timestamp::UNIX_EPOCH;
            let mut cluster = Cluster::new(server, Seed::new(1), start);
            let owners = ["one", "other"].map(|name| owner(&mut cluster, name));
            let body = json!({"metadata": {"name": "shared", "ownerReferences": owners}});
            cluster.send(&Request::create(PATH, body), Author::Person);
            delete(&mut cluster, "one");
            let shared = cluster.get(&format!("{PATH}/shared"));
            assert_eq!(shared["metadata"]["ownerReferences"], json!([owners[1]]), "{server:?}");
            delete(&mut cluster, "other");
            assert_eq!(cluster.get(&format!("{PATH}/shared")), Value::Null, "{server:?}");
        }
    }
}
