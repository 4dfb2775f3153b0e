//! The mark that every commit leaves in its batch: where it stands in the one order of commits,
//! and a checksum over everything that is live after it.
//!
//! A commit is synced before the next one is written. A mark therefore proves that everything up
//! to its `previous` was durable.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::record::number;
use super::{Live, Record};
use crate::entry::{Change, Revision};

/// The key of the newest mark.
pub(super) const MARK: &[u8] = b"commit";

/// Four numbers and the checksum over them.
pub(super) const MARK_BYTES: usize = 40;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The revision of the commit before.
    pub(super) previous: Revision,
    pub(super) revision: Revision,
    pub(super) sum: Sum,
}

/// How many objects are live, and a checksum over them that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) objects: u64,
    hash: u64,
}

impl Mark {
    pub(super) fn encode(&self) -> Vec<u8> {
        let Self { previous, revision, sum } = self;
        let numbers = [previous.0, revision.0, sum.objects, sum.hash];
        let mut out: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        out.extend(xxh3_64(&out).to_be_bytes());
        out
    }

    /// Reads a mark; none where it is not one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (previous, rest) = number(bytes)?;
        let (revision, rest) = number(rest)?;
        let (objects, rest) = number(rest)?;
        let (hash, rest) = number(rest)?;
        let (check, rest) = number(rest)?;
        let is_whole = rest.is_empty() && check == xxh3_64(&bytes[..MARK_BYTES - 8]);
        is_whole.then_some(Self {
            previous: Revision(previous),
            revision: Revision(revision),
            sum: Sum { objects, hash },
        })
    }
}

impl Sum {
    pub(super) fn of(live: &[Live]) -> Self {
        let mut sum = Self::default();
        for Live { key, created, modified, value } in live {
            let key = key.encode().expect("it was decoded from this form");
            sum.add(&key, *created, *modified, value);
        }
        sum
    }

    /// The sum after an event, whose key is given in its durable form.
    pub(super) fn follow(&mut self, record: &Record, key: &[u8]) {
        if let Some((modified, value)) = &record.previous {
            self.objects = self.objects.wrapping_sub(1);
            let old = entry_hash(key, record.created, *modified, value);
            self.hash = self.hash.wrapping_sub(old);
        }
        if record.change != Change::Deleted {
            self.add(key, record.created, record.revision, &record.value);
        }
    }

    fn add(&mut self, key: &[u8], created: Revision, modified: Revision, value: &[u8]) {
        self.objects = self.objects.wrapping_add(1);
        self.hash = self.hash.wrapping_add(entry_hash(key, created, modified, value));
    }
}

fn entry_hash(key: &[u8], created: Revision, modified: Revision, value: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    for number in [created.0, modified.0, key.len() as u64] {
        hasher.update(&number.to_be_bytes());
    }
    hasher.update(key);
    hasher.update(value);
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::key::Shelf;

    #[test]
    fn a_mark_reads_back_and_a_turned_bit_is_found() {
        let sum = Sum { objects: 3, hash: u64::MAX };
        let mark = Mark { previous: Revision(6), revision: Revision(7), sum };
        let bytes = mark.encode();
        assert_eq!(bytes.len(), MARK_BYTES);
        assert_eq!(Mark::decode(&bytes), Some(mark));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Mark::decode(&damaged), None, "byte {at}");
        }
        assert_eq!(Mark::decode(&bytes[1..]), None);
    }

    #[test]
    fn the_sum_follows_events_to_what_is_live() {
        let key = Shelf::new("", "pods").key("", "a");
        let encoded = key.encode().expect("no NUL");
        let value = |text: &'static str| Bytes::from_static(text.as_bytes());
        let record = |revision, change, text, previous| Record {
            revision: Revision(revision),
            change,
            key: key.clone(),
            created: Revision(1),
            value: value(text),
            previous,
        };
        let mut sum = Sum::default();
        sum.follow(&record(1, Change::Created, "one", None), &encoded);
        let before = Some((Revision(1), value("one")));
        sum.follow(&record(2, Change::Modified, "two", before), &encoded);
        let live = Live {
            key: key.clone(),
            created: Revision(1),
            modified: Revision(2),
            value: value("two"),
        };
        assert_eq!(sum, Sum::of(&[live]));
        let before = Some((Revision(2), value("two")));
        sum.follow(&record(3, Change::Deleted, "", before), &encoded);
        assert_eq!(sum, Sum::default());
    }
}
