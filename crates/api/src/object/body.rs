//! The JSON of an object, open to be read or packed away.
//!
//! Open, it is a tree with an index, which is quick to read and takes ten times the room of its
//! text. A cache holds thousands of objects of which few are looked at, so it packs them; whoever
//! looks at one finds it open again, and it stays so until it is packed once more.

use std::sync::OnceLock;

use serde_json::Value;
use smol_str::SmolStr;

use super::digest::Digest;
use super::facts::Facts;
use super::member::member;
use super::meta::OwnerReference;

/// Open, packed, or both. Never neither.
#[derive(Debug)]
pub(super) struct Body {
    /// In place: a plan looks at every object of a fleet, and each step on the way to its JSON is
    /// a wait for memory.
    open: OnceLock<Open>,
    packed: Option<Box<Packed>>,
}

/// The JSON, and what is found in it time and again.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) raw: Value,
    sections: Sections,
    pub(super) digest: Digest,
    pub(super) facts: Facts,
}

/// The JSON as text, and what is asked of an object that is not looked at.
#[derive(Debug)]
struct Packed {
    text: Box<str>,
    uid: Option<SmolStr>,
    version: Option<SmolStr>,
    controller: Option<Box<Controller>>,
}

/// Whom an object belongs to: that is asked of every object that changes.
#[derive(Debug)]
struct Controller {
    api_version: SmolStr,
    kind: SmolStr,
    name: SmolStr,
    uid: SmolStr,
}

/// Where the parts that everyone asks for stand among the members of the JSON, so that they
/// are found without comparing names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sections {
    metadata: usize,
    spec: usize,
    status: usize,
}

impl Body {
    pub(super) fn new(raw: Value) -> Self {
        Self { open: OnceLock::from(Open::new(raw)), packed: None }
    }

    #[inline]
    pub(super) fn open(&self) -> &Open {
        self.open.get_or_init(|| {
            let text = self.packed.as_ref().map_or("null", |packed| &*packed.text);
            let raw = serde_json::from_str(text).expect("it was written from JSON");
            Open::new(raw)
        })
    }

    /// Leaves the text only.
    pub(super) fn pack(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.packed.get_or_insert_with(|| {
            let text = |name| member(open.metadata(), name)?.as_str().map(SmolStr::new);
            let controller = OwnerReference::controlling(open.metadata());
            Box::new(Packed {
                uid: text("uid"),
                version: text("resourceVersion"),
                controller: controller.map(|owner| Box::new(Controller::of(owner))),
                text: open.raw.to_string().into_boxed_str(),
            })
        });
    }

    pub(super) fn uid(&self) -> Option<&str> {
        match (self.open.get(), &self.packed) {
            (None, Some(packed)) => packed.uid.as_deref(),
            _ => member(self.open().metadata(), "uid")?.as_str(),
        }
    }

    pub(super) fn resource_version(&self) -> Option<&str> {
        match (self.open.get(), &self.packed) {
            (None, Some(packed)) => packed.version.as_deref(),
            _ => member(self.open().metadata(), "resourceVersion")?.as_str(),
        }
    }

    pub(super) fn controller(&self) -> Option<OwnerReference<'_>> {
        match (self.open.get(), &self.packed) {
            (None, Some(packed)) => packed.controller.as_deref().map(Controller::reference),
            _ => OwnerReference::controlling(self.open().metadata()),
        }
    }

    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.open.get().is_some()
    }
}

impl Controller {
    fn of(owner: OwnerReference<'_>) -> Self {
        let OwnerReference { api_version, kind, name, uid, .. } = owner;
        let [api_version, kind, name, uid] = [api_version, kind, name, uid].map(SmolStr::new);
        Self { api_version, kind, name, uid }
    }

    fn reference(&self) -> OwnerReference<'_> {
        let Self { api_version, kind, name, uid } = self;
        OwnerReference { api_version, kind, name, uid, controller: true }
    }
}

impl Open {
    fn new(raw: Value) -> Self {
        let sections = Sections::of(&raw);
        let [metadata, spec, status] =
            [sections.metadata, sections.spec, sections.status].map(|at| section(&raw, at));
        let digest = Digest::of(metadata, spec, status);
        Self { digest, raw, sections, facts: Facts::default() }
    }

    pub(super) fn metadata(&self) -> &Value {
        section(&self.raw, self.sections.metadata)
    }

    pub(super) fn spec(&self) -> &Value {
        section(&self.raw, self.sections.spec)
    }

    pub(super) fn status(&self) -> &Value {
        section(&self.raw, self.sections.status)
    }
}

fn section(raw: &Value, at: usize) -> &Value {
    let members = raw.as_object();
    members.and_then(|members| members.values().nth(at)).unwrap_or(&Value::Null)
}

impl Sections {
    fn of(raw: &Value) -> Self {
        let members = raw.as_object();
        // What is not there stands behind the last.
        let at = |name: &str| {
            members.map_or(0, |members| {
                members.keys().position(|key| key == name).unwrap_or(members.len())
            })
        };
        Self { metadata: at("metadata"), spec: at("spec"), status: at("status") }
    }
}
