//! What everyone asks of an object, packed together when it is read: labels, annotations, the
//! texts of `spec` and `status`, conditions without their messages, taints and a few scalars.
//!
//! The JSON of a large fleet does not fit into any cache, and its members lie all over the
//! memory. A decision about 10,000 nodes looks at a handful of them on each, so fetching those
//! is most of what it costs; here they lie side by side.

use jiff::Timestamp;
use serde_json::Value;

use super::member::{field, list, member, text, timestamp};

/// Longer values are left where they are: there are few of them, and they would be kept twice.
const PACKED_MAX: usize = 512;

/// Longer names are nobody's, and leave the rest of the object to be read in the JSON.
const NAME_MAX: usize = 1024;

/// The sections of an object that are packed, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DigestSection {
    Labels,
    Annotations,
    /// The direct members of `spec`.
    Spec,
    /// The direct members of `status`.
    Status,
    /// Condition types and their status words.
    Conditions,
    /// The reasons of the conditions, in the same order, as names without values.
    Reasons,
    /// The keys of `spec.taints`, as names without values.
    Taints,
}

const SECTIONS: usize = 7;

#[derive(Clone, Debug, Default)]
pub(super) struct Digest {
    /// Section by section.
    slots: Box<[Slot]>,
    text: Box<str>,
    /// Where each section ends.
    ends: [u32; SECTIONS],
    /// The instants at which the conditions took their status.
    transitions: Box<[Option<Timestamp>]>,
    /// Something could not be packed, so that what is not found here may be there all the same.
    is_partial: bool,
    pub(super) generation: i64,
    pub(super) created: Option<Timestamp>,
    pub(super) deletion: Deletion,
}

/// Whether an object is on its way out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Deletion {
    #[default]
    Not,
    /// None where the instant cannot be read.
    Since(Option<Timestamp>),
}

/// Where a name stands, and how long it and the value right behind it are.
#[derive(Clone, Copy, Debug)]
struct Slot {
    at: u32,
    /// The name's last bytes, in which names with the same prefix differ: most others are
    /// passed over without looking at the text.
    tail: u32,
    name: u16,
    value: u16,
}

fn tail(name: &str) -> u32 {
    match name.as_bytes().last_chunk() {
        Some(last) => u32::from_be_bytes(*last),
        None => name.bytes().fold(0, |tail, byte| tail << 8 | u32::from(byte)),
    }
}

/// In place of a value's length: it is no text, or too long to be packed.
const NO_TEXT: u16 = u16::MAX;
const ELSEWHERE: u16 = u16::MAX - 1;

/// A value as far as the digest has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'d> {
    Text(&'d str),
    /// It has to be read in the JSON.
    Elsewhere,
    /// It is there, and no text.
    NoText,
    /// It is not there.
    Absent,
}

impl<'d> Found<'d> {
    /// The text, where it is here or there is none.
    pub(super) fn text(self) -> Option<&'d str> {
        match self {
            Self::Text(text) => Some(text),
            Self::NoText | Self::Absent => Some(""),
            Self::Elsewhere => None,
        }
    }
}

impl Digest {
    pub(super) fn of(metadata: &Value, spec: &Value, status: &Value) -> Self {
        let mut packer = Packer::default();
        let labels = packer.members(field(metadata, "labels"));
        let annotations = packer.members(field(metadata, "annotations"));
        let (in_spec, in_status) = (packer.members(spec), packer.members(status));
        let entries = list(status, "conditions");
        let conditions = packer.pairs(entries, |condition| {
            (text(condition, "type"), field(condition, "status").as_str())
        });
        let reasons = packer.pairs(entries, |condition| (text(condition, "reason"), None));
        let since = |condition| timestamp(member(condition, "lastTransitionTime"));
        let taints = packer.pairs(list(spec, "taints"), |taint| (text(taint, "key"), None));
        let deletion = match field(metadata, "deletionTimestamp") {
            Value::Null => Deletion::Not,
            at => Deletion::Since(timestamp(Some(at))),
        };
        Self {
            slots: packer.slots.into(),
            text: packer.text.into(),
            ends: [labels, annotations, in_spec, in_status, conditions, reasons, taints],
            transitions: entries.iter().map(since).collect(),
            is_partial: packer.is_partial,
            generation: field(metadata, "generation").as_i64().unwrap_or(0),
            created: timestamp(Some(field(metadata, "creationTimestamp"))),
            deletion,
        }
    }

    pub(super) fn find(&self, section: DigestSection, name: &str) -> Found<'_> {
        let tail = tail(name);
        let is_it = |slot: &&Slot| {
            slot.tail == tail && usize::from(slot.name) == name.len() && self.name(**slot) == name
        };
        match self.slots(section).iter().find(is_it) {
            Some(slot) => self.value(*slot),
            None if self.is_partial => Found::Elsewhere,
            None => Found::Absent,
        }
    }

    /// Names and values of a section, in the order in which they are written; none where not all
    /// of them are here.
    pub(super) fn pairs(
        &self,
        section: DigestSection,
    ) -> Option<impl Iterator<Item = (&str, Found<'_>)>> {
        let slots = self.slots(section).iter();
        (!self.is_partial).then(|| slots.map(|slot| (self.name(*slot), self.value(*slot))))
    }

    /// When the condition at a place took its status.
    pub(super) fn transition(&self, at: usize) -> Option<Timestamp> {
        self.transitions.get(at).copied().flatten()
    }

    fn slots(&self, section: DigestSection) -> &[Slot] {
        let at = section as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.slots[start as usize..self.ends[at] as usize]
    }

    fn name(&self, slot: Slot) -> &str {
        let at = slot.at as usize;
        &self.text[at..at + usize::from(slot.name)]
    }

    fn value(&self, slot: Slot) -> Found<'_> {
        let at = slot.at as usize + usize::from(slot.name);
        match slot.value {
            NO_TEXT => Found::NoText,
            ELSEWHERE => Found::Elsewhere,
            length => Found::Text(&self.text[at..at + usize::from(length)]),
        }
    }
}

#[derive(Default)]
struct Packer {
    slots: Vec<Slot>,
    text: String,
    is_partial: bool,
}

impl Packer {
    /// Packs the members of an object: where they end.
    fn members(&mut self, value: &Value) -> u32 {
        for (name, value) in value.as_object().into_iter().flatten() {
            self.pair(name, value.as_str());
        }
        self.end()
    }

    /// Packs what `pair` reads in each entry of a list: where they end.
    fn pairs<'v>(
        &mut self,
        entries: &'v [Value],
        pair: impl Fn(&'v Value) -> (&'v str, Option<&'v str>),
    ) -> u32 {
        for entry in entries {
            let (name, value) = pair(entry);
            self.pair(name, value);
        }
        self.end()
    }

    fn pair(&mut self, name: &str, value: Option<&str>) {
        let packed = value.filter(|value| value.len() <= PACKED_MAX);
        let (Ok(at), Ok(length), true) =
            (u32::try_from(self.text.len()), u16::try_from(name.len()), name.len() <= NAME_MAX)
        else {
            self.is_partial = true;
            return;
        };
        self.text.push_str(name);
        self.text.push_str(packed.unwrap_or_default());
        let value = match (value, packed) {
            (None, _) => NO_TEXT,
            (_, None) => ELSEWHERE,
            (_, Some(packed)) => u16::try_from(packed.len()).unwrap_or(ELSEWHERE),
        };
        self.slots.push(Slot { at, tail: tail(name), name: length, value });
    }

    fn end(&mut self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or_else(|_| {
            self.is_partial = true;
            u32::MAX
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_found_in_their_parts() {
        let long = "x".repeat(PACKED_MAX + 1);
        let metadata = json!({"labels": {"a": "1", "b": 2, "c": ""}, "generation": 4,
            "annotations": {"long": long, "short": "s"}, "deletionTimestamp": "soon"});
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"},
            "odd", {"type": "Ready", "status": "False"}, {"type": "Open"}]});
        let digest = Digest::of(&metadata, &json!({"nodeName": "n", "taints": []}), &status);
        let cases = [
            (DigestSection::Labels, "a", Found::Text("1")),
            (DigestSection::Labels, "b", Found::NoText),
            (DigestSection::Labels, "c", Found::Text("")),
            (DigestSection::Labels, "short", Found::Absent),
            (DigestSection::Annotations, "long", Found::Elsewhere),
            (DigestSection::Annotations, "short", Found::Text("s")),
            (DigestSection::Spec, "nodeName", Found::Text("n")),
            (DigestSection::Spec, "taints", Found::NoText),
            (DigestSection::Status, "phase", Found::Text("Running")),
            (DigestSection::Conditions, "Ready", Found::Text("True")),
            (DigestSection::Conditions, "Open", Found::NoText),
            (DigestSection::Conditions, "Closed", Found::Absent),
        ];
        for (section, name, want) in cases {
            assert_eq!(digest.find(section, name), want, "{section:?} {name}");
        }
        assert_eq!(digest.generation, 4);
        assert!(matches!(digest.deletion, Deletion::Since(None)));
        let kinds: Vec<&str> =
            digest.pairs(DigestSection::Conditions).unwrap().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["Ready", "", "Ready", "Open"]);
    }

    #[test]
    fn what_is_no_object_has_an_empty_digest() {
        let digest = Digest::of(&json!([1]), &json!("spec"), &Value::Null);
        assert_eq!(digest.find(DigestSection::Labels, "a"), Found::Absent);
        assert_eq!(digest.pairs(DigestSection::Conditions).unwrap().count(), 0);
        assert!(matches!(digest.deletion, Deletion::Not));
    }

    #[test]
    fn a_name_too_long_to_pack_leaves_the_rest_to_the_json() {
        let name = "k".repeat(NAME_MAX + 1);
        let digest =
            Digest::of(&json!({"labels": {name: "1", "a": "2"}}), &Value::Null, &Value::Null);
        assert_eq!(digest.find(DigestSection::Labels, "a"), Found::Text("2"));
        assert_eq!(digest.find(DigestSection::Labels, "b"), Found::Elsewhere);
        assert!(digest.pairs(DigestSection::Labels).is_none());
    }
}
