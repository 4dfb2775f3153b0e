//! The metadata fields that every part of Convoy reads. All are lenient: what is absent or
//! of the wrong type reads as absent; saying so is the validator's part.

use jiff::Timestamp;
use serde_json::Value;

use super::Object;
use super::digest::{Deletion, DigestSection, Found};
pub use super::member::timestamp;
use super::member::{list, member, text};

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerReference<'o> {
    pub api_version: &'o str,
    pub kind: &'o str,
    pub name: &'o str,
    pub uid: &'o str,
    pub controller: bool,
}

/// An entry of `status.conditions` without its message. What is absent or of another type is
/// empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionSummary<'o> {
    pub kind: &'o str,
    pub status: &'o str,
    pub reason: &'o str,
    pub since: Option<Timestamp>,
}

impl<'o> ConditionSummary<'o> {
    fn read(entry: &'o Value) -> Self {
        Self {
            kind: text(entry, "type"),
            status: text(entry, "status"),
            reason: text(entry, "reason"),
            since: timestamp(member(entry, "lastTransitionTime")),
        }
    }
}

impl<'o> OwnerReference<'o> {
    fn read(owner: &'o Value) -> Self {
        Self {
            api_version: text(owner, "apiVersion"),
            kind: text(owner, "kind"),
            name: text(owner, "name"),
            uid: text(owner, "uid"),
            controller: is_controller(owner),
        }
    }
}

impl Object {
    pub fn uid(&self) -> Option<&str> {
        member(self.metadata(), "uid")?.as_str()
    }

    pub fn resource_version(&self) -> Option<&str> {
        member(self.metadata(), "resourceVersion")?.as_str()
    }

    /// 0 where the server has not set it, as in Go.
    pub fn generation(&self) -> i64 {
        self.body.digest.generation
    }

    pub fn created_at(&self) -> Option<Timestamp> {
        self.body.digest.created
    }

    pub fn deleted_at(&self) -> Option<Timestamp> {
        match self.body.digest.deletion {
            Deletion::Not => None,
            Deletion::Since(at) => at,
        }
    }

    /// Whether deletion has begun. True also where the timestamp cannot be read.
    pub fn is_deleting(&self) -> bool {
        matches!(self.body.digest.deletion, Deletion::Since(_))
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.packed(DigestSection::Labels, key)
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.packed(DigestSection::Annotations, key)
    }

    /// A direct member of `spec` that is a text.
    pub fn spec_str(&self, name: &str) -> Option<&str> {
        self.packed(DigestSection::Spec, name)
    }

    /// A direct member of `spec` that is a text; empty where there is none.
    pub fn spec_text(&self, name: &str) -> &str {
        self.spec_str(name).unwrap_or_default()
    }

    /// A direct member of `spec`.
    pub fn spec_member(&self, name: &str) -> Option<&Value> {
        let found = self.body.digest.find(DigestSection::Spec, name);
        (found != Found::Absent).then(|| member(self.spec(), name))?
    }

    /// A direct member of `status` that is a text; empty where there is none.
    pub fn status_text(&self, name: &str) -> &str {
        self.packed(DigestSection::Status, name).unwrap_or_default()
    }

    /// A direct member of `status`.
    pub fn status_member(&self, name: &str) -> Option<&Value> {
        let found = self.body.digest.find(DigestSection::Status, name);
        (found != Found::Absent).then(|| member(self.status(), name))?
    }

    /// `(key, value)` pairs of `metadata.labels`, in the order they were written.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs(DigestSection::Labels)
    }

    pub fn annotations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs(DigestSection::Annotations)
    }

    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        list(self.metadata(), "finalizers").iter().any(|item| item.as_str() == Some(finalizer))
    }

    pub fn owners(&self) -> impl Iterator<Item = OwnerReference<'_>> {
        list(self.metadata(), "ownerReferences").iter().map(OwnerReference::read)
    }

    /// The owner that manages this object, of which there is at most one.
    pub fn controller(&self) -> Option<OwnerReference<'_>> {
        let mut owners = list(self.metadata(), "ownerReferences").iter();
        owners.find(|owner| is_controller(owner)).map(OwnerReference::read)
    }

    /// The entry of `status.conditions` with this type.
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        let at = match self.body.digest.pairs(DigestSection::Conditions) {
            Some(mut pairs) => pairs.position(|(found, _)| found == kind)?,
            None => self.conditions().iter().position(|entry| text(entry, "type") == kind)?,
        };
        self.condition_at(at)
    }

    /// The status word of a condition: `True`, `False`, `Unknown`.
    pub fn condition_status(&self, kind: &str) -> Option<&str> {
        match self.body.digest.find(DigestSection::Conditions, kind) {
            Found::Text(word) => Some(word),
            Found::Absent | Found::NoText => None,
            Found::Elsewhere => member(self.condition(kind)?, "status")?.as_str(),
        }
    }

    /// The entries of `status.conditions` without their messages, in order.
    pub fn condition_summaries(&self) -> impl Iterator<Item = ConditionSummary<'_>> {
        let digest = &self.body.digest;
        let packed =
            digest.pairs(DigestSection::Conditions).zip(digest.pairs(DigestSection::Reasons));
        let rest = if packed.is_some() { &[] } else { self.conditions() };
        let word = |at| self.condition_at(at).map_or("", |entry| text(entry, "status"));
        let packed = packed.into_iter().flat_map(|(words, reasons)| words.zip(reasons)).enumerate();
        let packed = packed.map(move |(at, ((kind, status), (reason, _)))| ConditionSummary {
            kind,
            status: status.text().unwrap_or_else(|| word(at)),
            reason,
            since: digest.transition(at),
        });
        packed.chain(rest.iter().map(ConditionSummary::read))
    }

    /// Whether `spec.taints` has one with this key.
    pub fn has_taint(&self, key: &str) -> bool {
        match self.body.digest.find(DigestSection::Taints, key) {
            Found::Text(_) | Found::NoText => true,
            Found::Absent => false,
            Found::Elsewhere => {
                list(self.spec(), "taints").iter().any(|taint| text(taint, "key") == key)
            }
        }
    }

    /// The entry of `status.conditions` at a place.
    pub fn condition_at(&self, at: usize) -> Option<&Value> {
        self.conditions().get(at)
    }

    fn conditions(&self) -> &[Value] {
        list(self.status(), "conditions")
    }

    /// A text of a section, wherever it is kept.
    fn packed(&self, section: DigestSection, name: &str) -> Option<&str> {
        match self.body.digest.find(section, name) {
            Found::Text(text) => Some(text),
            Found::Absent | Found::NoText => None,
            Found::Elsewhere => member(self.section(section)?, name)?.as_str(),
        }
    }

    /// The texts of a section and their names, in the order in which they are written.
    fn pairs(&self, section: DigestSection) -> impl Iterator<Item = (&str, &str)> {
        let packed = self.body.digest.pairs(section);
        let rest =
            if packed.is_some() { None } else { self.section(section).and_then(Value::as_object) };
        let packed = packed.into_iter().flatten().filter_map(move |(name, found)| match found {
            Found::Text(text) => Some((name, text)),
            Found::Absent | Found::NoText => None,
            Found::Elsewhere => Some((name, member(self.section(section)?, name)?.as_str()?)),
        });
        let rest = rest.into_iter().flatten();
        packed.chain(rest.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))))
    }

    /// A section in the JSON.
    fn section(&self, section: DigestSection) -> Option<&Value> {
        match section {
            DigestSection::Labels => member(self.metadata(), "labels"),
            DigestSection::Annotations => member(self.metadata(), "annotations"),
            DigestSection::Spec => Some(self.spec()),
            DigestSection::Status => Some(self.status()),
            DigestSection::Conditions | DigestSection::Reasons => self.status_member("conditions"),
            DigestSection::Taints => self.spec_member("taints"),
        }
    }
}

fn is_controller(owner: &Value) -> bool {
    member(owner, "controller").and_then(Value::as_bool).unwrap_or(false)
}
