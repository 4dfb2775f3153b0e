//! Watch events in forms that are expensive to make, made once for all watchers.
//!
//! Watchers receive an event at about the same time, so only a few lines are cached. A watcher
//! that is further behind makes its own.

use std::collections::BTreeMap;

use bytes::Bytes;
use parking_lot::Mutex;

/// Lines that are kept, the newest ones.
const KEPT_MAX: usize = 512;

/// An event: its revision, that of the version shown, and what it says of it.
pub(crate) type Key = (u64, u64, &'static str);

#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<BTreeMap<Key, Bytes>>);

impl Lines {
    /// The line of an event, as it was made before or is made now.
    pub(crate) fn of(&self, key: Key, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        if let Some(line) = self.0.lock().get(&key) {
            return line.clone();
        }
        // Not under the lock: two may make the same, and neither waits.
        let line = Bytes::from(make());
        let mut kept = self.0.lock();
        kept.insert(key, line.clone());
        if kept.len() > KEPT_MAX {
            kept.pop_first();
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_made_once_and_the_newest_are_kept() {
        let lines = Lines::default();
        let mut made = 0;
        let mut request = |revision| {
            lines.of((revision, revision, "ADDED"), || {
                made += 1;
                revision.to_string().into_bytes()
            })
        };
        for revision in 0..1_000 {
            assert_eq!(request(revision), revision.to_string());
            request(revision);
        }
        request(999);
        request(0); // gone, and not worth keeping
        request(0);
        assert_eq!(made, 1_002);
        assert_eq!(lines.0.lock().len(), KEPT_MAX);
    }
}
