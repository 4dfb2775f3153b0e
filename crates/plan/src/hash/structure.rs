//! Hashes of Go structs as the `hashstructure` library computes them: FNV over the names and values
//! of the fields, in whatever order they stand.

use serde_json::Value;

/// A short name for a text, the same whenever it is asked for.
pub(crate) fn fingerprint(content: &str) -> String {
    format!("{:016x}", finished(text(content)))
}

/// A struct's hash while its fields are added. A struct without fields is zero, and left out.
#[derive(Debug)]
pub(crate) struct Structure {
    pub(crate) hash: u64,
    is_zero: bool,
}

pub(crate) fn structure(name: &str) -> Structure {
    Structure { hash: text(name), is_zero: true }
}

impl Structure {
    pub(crate) fn field(self, name: &str, value: Option<u64>) -> Self {
        let Some(value) = value else { return self };
        Self { hash: finished(self.hash ^ ordered(text(name), value)), is_zero: false }
    }

    pub(crate) fn value(self) -> Option<u64> {
        (!self.is_zero).then_some(self.hash)
    }
}

pub(crate) fn map(entries: Option<&Value>) -> Option<u64> {
    let entries = entries?.as_object()?.iter();
    let entries =
        entries.filter_map(|(key, value)| Some(ordered(text(key), text(value.as_str()?))));
    Some(finished(entries.fold(0, |all, entry| all ^ entry)))
}

pub(crate) fn string(value: Option<&Value>) -> Option<u64> {
    Some(text(value?.as_str().filter(|text| !text.is_empty())?))
}

fn text(text: &str) -> u64 {
    fnv(text.as_bytes())
}

pub(crate) fn number(number: i64) -> u64 {
    fnv(&number.to_le_bytes())
}

fn ordered(first: u64, second: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    fnv(&bytes)
}

fn finished(hash: u64) -> u64 {
    fnv(&hash.to_le_bytes())
}

/// FNV-1, 64 bits: multiply, then mix in. (FNV-1a does it the other way round.)
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte)
    })
}
