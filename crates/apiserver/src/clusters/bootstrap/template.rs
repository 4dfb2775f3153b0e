//! An object to begin with, encoded once and stamped for every logical cluster.

use bytes::Bytes;
use convoy_store::{Expect, Key, Metadata as _, Shelf, Write};
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::access::Rule;
use crate::encoding;
use crate::form;
use crate::metadata;
use crate::object_meta::{Entry, ObjectMeta, shelf_name};
use crate::registry::{builtin, split_api_version};
use crate::surroundings::{Surroundings, new_uid, seconds};

/// What happens to an object that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// It is left alone.
    Create,
    /// Rules and subjects that it lacks are added, unless it says not to.
    Complete,
    /// All but its metadata is made as it should be.
    Replace,
}

/// An object, and how to care for it.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub object: Value,
    pub care: Care,
}

/// A new object's identity and birth.
pub(super) struct Stamp<'s> {
    pub surroundings: &'s dyn Surroundings,
    pub now: Timestamp,
}

#[derive(Debug)]
pub(super) struct Template {
    care: Care,
    resource: SmolStr,
    namespace: SmolStr,
    name: SmolStr,
    object: Value,
    /// As it is stored, with a uid and a time to be written over.
    bytes: Bytes,
    /// What is kept parsed beside it. Its texts are shared by all that are made of it.
    meta: ObjectMeta,
    uid_at: usize,
    times_at: Vec<usize>,
    /// How an object ends that is, but for its metadata, as it should be.
    tail: String,
}

const UID: &str = "00000000-0000-0000-0000-000000000000";
/// Stands for the time of creation, wherever it occurs.
pub(super) const NOW: &str = "1970-01-01T00:00:00Z";
pub(super) const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

impl Template {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut object = plan.object.clone();
        let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let resource = builtin().of_kind(&api_version, &kind).expect("a built-in kind");
        let metadata = metadata::of(&mut object);
        metadata.insert("uid".into(), json!(UID));
        metadata.insert("creationTimestamp".into(), json!(NOW));
        if resource.has_generation {
            metadata.insert("generation".into(), json!(1));
        }
        crate::canonical::canonicalise(form::shape_of(resource), &mut object);
        let bytes = encoding::stored(&object);
        let uid_at = memchr::memmem::find(&bytes, UID.as_bytes());
        let shelf = shelf_name(split_api_version(&api_version).0, &resource.plural);
        let namespace = SmolStr::new(metadata::text(&object, "namespace"));
        let name = SmolStr::new(metadata::text(&object, "name"));
        let key = Shelf::new("", &shelf).key(&namespace, &name);
        Self {
            care: plan.care,
            meta: ObjectMeta::read(&key, &bytes),
            resource: shelf,
            namespace,
            name,
            uid_at: uid_at.expect("the metadata hold what was put into them"),
            times_at: memchr::memmem::find_iter(&bytes, NOW).collect(),
            tail: tail(&object),
            bytes,
            object,
        }
    }

    pub(super) fn key(&self, cluster: &str) -> Key {
        Shelf::new(cluster, &self.resource).key(&self.namespace, &self.name)
    }

    /// What to write, given what stands there.
    pub(super) fn write(
        &self,
        standing: Option<&Entry>,
        key: Key,
        stamp: &Stamp<'_>,
    ) -> Option<Write<ObjectMeta>> {
        let Some(entry) = standing else {
            return Some(Write { key, expect: Expect::Absent, value: Some(self.stamped(stamp)) });
        };
        if self.care == Care::Create || entry.value.ends_with(self.tail.as_bytes()) {
            return None;
        }
        let current: Value = serde_json::from_slice(&entry.value).ok()?;
        let next = match self.care {
            Care::Create => return None,
            Care::Complete => completed(&current, &self.object)?,
            Care::Replace => replaced(&current, &self.object),
        };
        let value = encoding::stored(&next);
        (value != entry.value).then(|| Write::put(key, Expect::At(entry.modified), value))
    }

    fn stamped(&self, stamp: &Stamp<'_>) -> (Bytes, ObjectMeta) {
        let mut bytes = self.bytes.to_vec();
        let mut put =
            |at: usize, text: &str| bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
        let uid = new_uid(stamp.surroundings);
        put(self.uid_at, &uid);
        let now = seconds(stamp.now);
        for at in &self.times_at {
            put(*at, &now);
        }
        (Bytes::from(bytes), ObjectMeta { uid: SmolStr::new(uid), ..self.meta.clone() })
    }
}

/// The end of an object's text, from the first field behind its metadata on.
fn tail(object: &Value) -> String {
    let body = object.as_object().into_iter().flatten();
    let body = body.filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion" | "metadata"));
    let text = Value::Object(body.map(|(key, value)| (key.clone(), value.clone())).collect());
    text.to_string().split_off(1)
}

fn replaced(current: &Value, wanted: &Value) -> Value {
    let mut next = wanted.clone();
    next["metadata"] = current["metadata"].clone();
    next
}

/// A role or binding with what it lacks; none if it wants to be left alone.
fn completed(current: &Value, wanted: &Value) -> Option<Value> {
    if current["metadata"]["annotations"][AUTO_UPDATE] == "false" {
        return None;
    }
    // What a binding binds cannot change, so one that binds something else is made anew.
    if current["roleRef"] != wanted["roleRef"] {
        return Some(replaced(current, wanted));
    }
    let mut next = current.clone();
    if wanted["aggregationRule"].is_null() {
        add_rules(&mut next, wanted);
    } else {
        // Its rules are the sum of others; the sum is settled elsewhere.
        add(&mut next, wanted, &["aggregationRule", "clusterRoleSelectors"]);
    }
    add(&mut next, wanted, &["subjects"]);
    Some(next)
}

fn add_rules(next: &mut Value, wanted: &Value) {
    let read = |value: &Value| -> Vec<Rule> {
        serde_json::from_value(value["rules"].clone()).unwrap_or_default()
    };
    let mut held = read(next);
    let before = held.len();
    for rule in read(wanted) {
        if !crate::access::includes(&held, std::slice::from_ref(&rule)) {
            held.push(rule);
        }
    }
    if held.len() > before {
        next["rules"] = json!(held);
    }
}

/// Adds the items of a list that another object has and this one lacks.
fn add(next: &mut Value, wanted: &Value, path: &[&str]) {
    let wanted = path.iter().fold(wanted, |value, key| &value[key]);
    let Value::Array(wanted) = wanted else { return };
    let list = path.iter().fold(next, |value, key| &mut value[key]);
    if list.is_null() {
        *list = json!([]);
    }
    let Value::Array(list) = list else { return };
    let lacking: Vec<Value> = wanted.iter().filter(|item| !list.contains(item)).cloned().collect();
    list.extend(lacking);
}
