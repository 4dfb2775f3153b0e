//! The JSON of an object, open to be read or packed away.
//!
//! Open, it is a tree with an index, which is quick to read and takes ten times the room of its
//! text. A cache holds thousands of objects of which few are looked at, so it packs them, in a
//! quarter of the room of their text; whoever looks at one finds it open again, and it stays so
//! until it is packed once more.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::compress;
use super::digest::Digest;
use super::facts::Facts;
use super::member::member;
use super::meta::OwnerReference;

/// The JSON of an object, shared by its clones.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Never packed. It is one step away: a plan looks at every object of a fleet, and each step
    /// on the way to its JSON is a wait for memory.
    Open(Arc<Open>),
    Packed(Arc<Packed>),
}

/// The JSON, and what is found in it time and again.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) raw: Value,
    sections: Sections,
    pub(super) digest: Digest,
    pub(super) facts: Facts,
}

/// The JSON as compressed text, and before it what is asked of an object that is not looked at.
#[derive(Debug)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
    /// How many of the bytes are not compressed.
    head: u32,
    /// How long the text is that the others make.
    json: u32,
    uid: Option<Span>,
    version: Option<Span>,
    /// Whom the object belongs to: that is asked of every object that changes.
    controller: Option<Controller>,
    /// Apart: few are open at a time, and open they take several times the room.
    open: OnceLock<Box<Open>>,
}

/// A piece of the head.
#[derive(Clone, Copy, Debug)]
struct Span {
    at: u32,
    length: u32,
}

#[derive(Debug)]
struct Controller {
    api_version: Span,
    kind: Span,
    name: Span,
    uid: Span,
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
        Self::Open(Arc::new(Open::new(raw)))
    }

    #[inline]
    pub(super) fn open(&self) -> &Open {
        match self {
            Self::Open(open) => open,
            Self::Packed(packed) => packed.open(),
        }
    }

    /// Leaves the text only, unless someone else has a clone.
    pub(super) fn pack(&mut self) {
        match self {
            Self::Open(open) => {
                let packed = Arc::get_mut(open).and_then(|open| Packed::new(open));
                if let Some(packed) = packed {
                    *self = Self::Packed(Arc::new(packed));
                }
            }
            Self::Packed(packed) => {
                if let Some(packed) = Arc::get_mut(packed) {
                    packed.open.take();
                }
            }
        }
    }

    pub(super) fn uid(&self) -> Option<&str> {
        match self {
            Self::Open(open) => member(open.metadata(), "uid")?.as_str(),
            Self::Packed(packed) => packed.uid.map(|span| packed.piece(span)),
        }
    }

    pub(super) fn resource_version(&self) -> Option<&str> {
        match self {
            Self::Open(open) => member(open.metadata(), "resourceVersion")?.as_str(),
            Self::Packed(packed) => packed.version.map(|span| packed.piece(span)),
        }
    }

    pub(super) fn controller(&self) -> Option<OwnerReference<'_>> {
        match self {
            Self::Open(open) => OwnerReference::controlling(open.metadata()),
            Self::Packed(packed) => packed.controller(),
        }
    }

    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Open(_) => true,
            Self::Packed(packed) => packed.open.get().is_some(),
        }
    }
}

impl Packed {
    /// None for a text of more than 4 GiB, which stays as it is.
    fn new(open: &Open) -> Option<Self> {
        let text = open.raw.to_string();
        let json = u32::try_from(text.len()).ok()?;
        let (mut head, metadata) = (String::new(), open.metadata());
        let mut noted = |name| Some(note(&mut head, member(metadata, name)?.as_str()?));
        let (uid, version) = (noted("uid"), noted("resourceVersion"));
        let owner = OwnerReference::controlling(metadata);
        let controller = owner.map(|owner| Controller::note(&mut head, owner));
        let bytes = compress::compress(&head, &text).into_boxed_slice();
        let head = u32::try_from(head.len()).ok()?;
        Some(Self { bytes, head, json, uid, version, controller, open: OnceLock::new() })
    }

    #[inline]
    fn open(&self) -> &Open {
        self.open.get_or_init(|| {
            let (head, rest) = self.bytes.split_at(self.head as usize);
            let text = compress::restore(head, rest, self.json as usize);
            Box::new(Open::new(serde_json::from_slice(&text).expect("it was written from JSON")))
        })
    }

    fn piece(&self, Span { at, length }: Span) -> &str {
        let piece = &self.bytes[at as usize..][..length as usize];
        str::from_utf8(piece).expect("it was taken from a text")
    }

    fn controller(&self) -> Option<OwnerReference<'_>> {
        let Controller { api_version, kind, name, uid } = self.controller.as_ref()?;
        let [api_version, kind, name, uid] =
            [api_version, kind, name, uid].map(|span| self.piece(*span));
        Some(OwnerReference { api_version, kind, name, uid, controller: true })
    }
}

impl Controller {
    fn note(head: &mut String, owner: OwnerReference<'_>) -> Self {
        let OwnerReference { api_version, kind, name, uid, .. } = owner;
        let [api_version, kind, name, uid] =
            [api_version, kind, name, uid].map(|value| note(head, value));
        Self { api_version, kind, name, uid }
    }
}

/// Adds `value` to a head of up to 4 GiB.
fn note(head: &mut String, value: &str) -> Span {
    let [at, length] = [head.len(), value.len()].map(|part| part.try_into().unwrap_or(u32::MAX));
    head.push_str(value);
    Span { at, length }
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
