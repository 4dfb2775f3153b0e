//! Whether what was loaded can have been written: the engine's own checks leave out the order of
//! its batches, and a bit that turned there would bring back what was overwritten.

use std::collections::BTreeSet;

use super::Loaded;
use crate::entry::Change;
use crate::key::Key;

/// Why what was loaded is damaged, if it is.
///
/// Every revision since the last compaction has one event, and the newest event of an object says
/// what stands there.
pub(super) fn flaw(loaded: &Loaded) -> Option<String> {
    let first = loaded.compacted.0 + 1;
    let mut revisions = loaded.history.iter().zip(first..);
    if let Some((record, wanted)) = revisions.find(|(record, at)| record.revision.0 != *at) {
        return Some(format!("event {} stands where {wanted} should", record.revision));
    }
    let last = loaded.compacted.0 + loaded.history.len() as u64;
    if last != loaded.revision.0.max(loaded.compacted.0) {
        return Some(format!("events end at {last}, revisions at {}", loaded.revision));
    }
    if let Some(live) = loaded.live.iter().find(|live| live.modified > loaded.revision) {
        return Some(format!("{} is of {}, after the end", live.key, live.modified));
    }
    let mut seen: BTreeSet<&Key> = BTreeSet::new();
    for record in loaded.history.iter().rev().filter(|record| seen.insert(&record.key)) {
        let place = loaded.live.binary_search_by(|live| live.key.cmp(&record.key));
        let standing = place.ok().map(|place| loaded.live[place].modified);
        let wanted = (record.change != Change::Deleted).then_some(record.revision);
        if standing != wanted {
            return Some(format!("{} is not as event {} left it", record.key, record.revision));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::{Live, Record};
    use super::*;
    use crate::entry::Revision;
    use crate::key::Shelf;

    fn key(name: &str) -> Key {
        Shelf::new("", "pods").key("", name)
    }

    fn loaded(compacted: u64, events: &[(&str, Change)]) -> Loaded {
        let mut loaded = Loaded { compacted: Revision(compacted), ..Loaded::default() };
        for (at, (name, change)) in (compacted + 1..).zip(events) {
            let (key, revision) = (key(name), Revision(at));
            loaded.live.retain(|live| live.key != key);
            if *change != Change::Deleted {
                let (created, modified, value) = (revision, revision, Bytes::new());
                loaded.live.push(Live { key: key.clone(), created, modified, value });
            }
            let (value, previous, created) = (Bytes::new(), None, revision);
            let record = Record { revision, change: *change, key, created, value, previous };
            loaded.history.push(record);
            loaded.revision = revision;
        }
        loaded.live.sort_by(|a, b| a.key.cmp(&b.key));
        loaded
    }

    #[test]
    fn what_cannot_have_been_written_is_found() {
        let events = [
            ("a", Change::Created),
            ("b", Change::Created),
            ("a", Change::Modified),
            ("b", Change::Deleted),
        ];
        let sound = || loaded(5, &events);
        assert_eq!(flaw(&sound()), None);
        assert_eq!(flaw(&loaded(0, &[])), None);
        let all_forgotten =
            Loaded { revision: Revision(7), compacted: Revision(7), ..Loaded::default() };
        assert_eq!(flaw(&all_forgotten), None);
        let damaged = |damage: fn(&mut Loaded)| {
            let mut loaded = sound();
            damage(&mut loaded);
            flaw(&loaded).unwrap_or_default()
        };
        assert!(damaged(|loaded| drop(loaded.history.remove(1))).contains("should"));
        assert!(damaged(|loaded| loaded.revision = Revision(7)).contains("events end at 9"));
        assert!(damaged(|loaded| loaded.live[0].modified = Revision(6)).contains("event 8"));
        assert!(damaged(|loaded| loaded.live.clear()).contains("event 8"));
        assert!(damaged(|loaded| loaded.live[0].modified = Revision(10)).contains("after the end"));
    }
}
