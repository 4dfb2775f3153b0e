//! The JSON of an object, with the index that makes reading it cheap.

use serde_json::Value;

use super::digest::Digest;

/// The JSON, where its sections stand, and the fields that every decision reads.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) raw: Value,
    sections: Sections,
    pub(super) digest: Digest,
}

/// Positions of the top-level sections among the members of the JSON, so that an accessor
/// does not compare names. A section that is absent has the position after the last member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sections {
    metadata: usize,
    spec: usize,
    status: usize,
}

impl Body {
    pub(super) fn new(raw: Value) -> Self {
        let sections = Sections::of(&raw);
        let [metadata, spec, status] =
            [sections.metadata, sections.spec, sections.status].map(|at| section(&raw, at));
        let digest = Digest::of(metadata, spec, status);
        Self { raw, sections, digest }
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
        let at = |name: &str| {
            members.map_or(0, |members| {
                members.keys().position(|key| key == name).unwrap_or(members.len())
            })
        };
        Self { metadata: at("metadata"), spec: at("spec"), status: at("status") }
    }
}
