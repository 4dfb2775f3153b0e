//! The durable form of objects and events: lengths before parts, numbers in big-endian order so
//! that keys sort by revision.

use bytes::Bytes;

use super::{Live, Record};
use crate::entry::{Change, Revision};
use crate::key::Key;

/// created, modified, value.
pub(super) fn encode_live(created: Revision, modified: Revision, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + value.len());
    out.extend(created.0.to_be_bytes());
    out.extend(modified.0.to_be_bytes());
    out.extend(value);
    out
}

pub(super) fn decode_live(key: &[u8], bytes: &[u8]) -> Option<Live> {
    let (created, rest) = number(bytes)?;
    let (modified, value) = number(rest)?;
    let key = Key::decode(key)?;
    Some(Live {
        key,
        created: Revision(created),
        modified: Revision(modified),
        value: Bytes::copy_from_slice(value),
    })
}

/// change, created, key, previous (its revision, 0 for none, and value), value.
pub(super) fn encode_record(record: &Record, key: &[u8]) -> Vec<u8> {
    let previous = record.previous.as_ref();
    let old = previous.map_or(&[][..], |(_, value)| value);
    let mut out = Vec::with_capacity(41 + key.len() + old.len() + record.value.len());
    out.push(match record.change {
        Change::Created => 0,
        Change::Modified => 1,
        Change::Deleted => 2,
    });
    out.extend(record.created.0.to_be_bytes());
    part(&mut out, key);
    out.extend(previous.map_or(0, |(revision, _)| revision.0).to_be_bytes());
    part(&mut out, old);
    out.extend(&record.value[..]);
    out
}

pub(super) fn decode_record(revision: &[u8], bytes: &[u8]) -> Option<Record> {
    let (revision, _) = number(revision)?;
    let (change, rest) = bytes.split_first()?;
    let change = match change {
        0 => Change::Created,
        1 => Change::Modified,
        2 => Change::Deleted,
        _ => return None,
    };
    let (created, rest) = number(rest)?;
    let (key, rest) = take_part(rest)?;
    let (old_revision, rest) = number(rest)?;
    let (old, value) = take_part(rest)?;
    let previous =
        (old_revision > 0).then(|| (Revision(old_revision), Bytes::copy_from_slice(old)));
    Some(Record {
        revision: Revision(revision),
        change,
        key: Key::decode(key)?,
        created: Revision(created),
        value: Bytes::copy_from_slice(value),
        previous,
    })
}

pub(super) fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (meta, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*meta), rest))
}

fn part(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_be_bytes());
    out.extend(bytes);
}

fn take_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use convoy_testkit::property;
    use proptest::prelude::*;

    use super::*;
    use crate::key::Shelf;

    proptest! {
        #![proptest_config(property::config(256))]

        #[test]
        fn records_read_back(
            revision in 1u64.., created in 0u64.., value in any::<Vec<u8>>(),
            old in prop::option::of((1u64.., any::<Vec<u8>>())), change in 0usize..3,
        ) {
            let change = [Change::Created, Change::Modified, Change::Deleted][change];
            let key = Shelf::new("edge", "pods").key("shop", "web");
            let previous = old.map(|(at, bytes)| (Revision(at), Bytes::from(bytes)));
            let record = Record { revision: Revision(revision), change, key, created: Revision(created),
                value: Bytes::from(value), previous };
            let encoded = encode_record(&record, &record.key.encode().unwrap());
            prop_assert_eq!(decode_record(&revision.to_be_bytes(), &encoded), Some(record));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>()) {
            _ = decode_record(&bytes, &bytes);
            _ = decode_live(&bytes, &bytes);
        }
    }
}
