//! What earlier rounds have written down: manifests in the status of a work, and objects in the
//! status of its `AppliedManifestWork`.

use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::timestamp;
use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::kinds::Kinds;
use super::manifest::Item;
use crate::dialect::ocm_agent::names::{APPLIED, APPLY_FAILED, COMPLETE, FAILED_PREFIX};

/// An object that belongs, or belonged, to a work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AppliedResource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// The objects that an `AppliedManifestWork` lists.
pub(crate) fn applied_resources(applied_work: &Object) -> Vec<AppliedResource> {
    let entries = list(applied_work.status(), "appliedResources").iter();
    let read = entries.map(|entry| {
        let word = |name: &str| text(entry, name).to_owned();
        AppliedResource {
            group: word("group"),
            version: word("version"),
            resource: word("resource"),
            namespace: word("namespace"),
            name: word("name"),
            uid: word("uid"),
        }
    });
    read.collect()
}

impl AppliedResource {
    pub(crate) fn of(item: &Item<'_>, live: &Object) -> Self {
        let identifier = &item.identifier;
        Self {
            group: identifier.kind.group.to_string(),
            version: identifier.version.to_string(),
            resource: item.resource.clone(),
            namespace: identifier.namespace.to_string(),
            name: identifier.name.to_string(),
            uid: live.uid().unwrap_or_default().to_owned(),
        }
    }

    /// The object; none where nobody knows its kind.
    pub(crate) fn key(&self, kinds: &Kinds<'_>, member: &str) -> Option<ObjectKey> {
        let kind = kinds.kind(&self.group, &self.resource)?;
        Some(ObjectKey { cluster: member.into(), ..kind.key(&self.namespace, &self.name) })
    }

    /// Whether a manifest is about this object, in whatever version.
    pub(crate) fn is_of(&self, item: &Item<'_>) -> bool {
        let identifier = &item.identifier;
        self.group == identifier.kind.group
            && self.resource == item.resource
            && self.namespace == identifier.namespace
            && self.name == identifier.name
    }

    pub(crate) fn to_value(&self) -> Value {
        let words = [
            ("group", &self.group),
            ("version", &self.version),
            ("resource", &self.resource),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("uid", &self.uid),
        ];
        let present = words.into_iter().filter(|(_, word)| !word.is_empty());
        let entry: Map<String, Value> =
            present.map(|(name, word)| (name.to_owned(), json!(word))).collect();
        Value::Object(entry)
    }
}

/// The entry of a manifest in the status of its work, even if it was written while the member did
/// not serve its kind; null if there is none.
pub(crate) fn entry_of<'w>(work: &'w Object, item: &Item<'_>) -> &'w Value {
    let known = entry(work, item);
    if !known.is_null() {
        return known;
    }
    let mut unknown = item.clone();
    unknown.resource.clear();
    entry(work, &unknown)
}

/// One of the same object with another ordinal counts, unless there are several.
fn entry<'w>(work: &'w Object, item: &Item<'_>) -> &'w Value {
    let entries = list(field(work.status(), "resourceStatus"), "manifests");
    let names = ["group", "version", "kind", "resource", "name", "namespace"];
    let wanted = item.meta();
    let is_same = |entry: &&Value| {
        let meta = field(entry, "resourceMeta");
        names.iter().all(|name| text(meta, name) == text(&wanted, name))
    };
    let ordinal = u64::try_from(item.identifier.ordinal).ok();
    let is_it = |entry: &&Value| {
        field(field(entry, "resourceMeta"), "ordinal").as_u64() == ordinal && is_same(entry)
    };
    if let Some(entry) = entries.iter().find(is_it) {
        return entry;
    }
    let mut alike = entries.iter().filter(is_same);
    match (alike.next(), alike.next()) {
        (Some(entry), None) if !item.identifier.name.is_empty() => entry,
        _ => &Value::Null,
    }
}

/// Why the manifest could not be applied, in this generation of its work.
pub(crate) fn denial<'w>(work: &Object, entry: &'w Value) -> Option<&'w str> {
    let told = condition(entry, APPLIED)?;
    let is_current = field(told, "observedGeneration").as_i64() == Some(work.generation());
    let is_denied = text(told, "status") == "False" && text(told, "reason") == APPLY_FAILED;
    let message = text(told, "message");
    (is_current && is_denied).then(|| message.strip_prefix(FAILED_PREFIX).unwrap_or(message))
}

/// Whether a manifest is through, and not written any more.
pub(crate) fn is_complete(entry: &Value) -> bool {
    condition(entry, COMPLETE).is_some_and(|it| text(it, "status") == "True")
}

fn condition<'v>(entry: &'v Value, kind: &str) -> Option<&'v Value> {
    list(entry, "conditions").iter().find(|it| text(it, "type") == kind)
}

/// Since when the work of an `AppliedManifestWork` is missing.
pub(crate) fn eviction_start(applied_work: &Object) -> Option<Timestamp> {
    timestamp(applied_work.status_member("evictionStartTime"))
}

/// Whose an `AppliedManifestWork` is.
pub(crate) fn agent_id(applied_work: &Object) -> &str {
    applied_work.spec_text("agentID")
}

/// The work that an `AppliedManifestWork` stands for.
pub(crate) fn work_name(applied_work: &Object) -> &str {
    applied_work.spec_text("manifestWorkName")
}
