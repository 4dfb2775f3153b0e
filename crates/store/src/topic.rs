//! The part of a shelf that a watch follows. Events are indexed by topic when they are published,
//! so thousands of watchers of one node each do not look at the pods of all other nodes.

use smol_str::SmolStr;

use crate::entry::{Event, Metadata};

/// A part of a shelf that can be followed by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    Namespace(SmolStr),
    Name(SmolStr),
    /// What [`Metadata::mark`] says of an object.
    Mark(SmolStr),
}

impl Topic {
    /// What an event is about. An object that moves from one mark to another concerns both.
    pub(crate) fn all_of<M: Metadata>(event: &Event<M>) -> impl Iterator<Item = Self> {
        let key = &event.entry.key;
        let mark = event.entry.meta.mark();
        let before = event.previous.as_ref().and_then(|previous| previous.meta.mark());
        let before = before.filter(|before| Some(*before) != mark);
        [Self::Namespace(key.namespace.clone()), Self::Name(key.name.clone())]
            .into_iter()
            .chain(mark.into_iter().chain(before).map(|mark| Self::Mark(SmolStr::new(mark))))
    }

    pub(crate) fn concerns<M: Metadata>(&self, event: &Event<M>) -> bool {
        Self::all_of(event).any(|topic| topic == *self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use bytes::Bytes;

    use super::*;
    use crate::commit::Transaction;
    use crate::entry::Revision;
    use crate::key::{Key, Shelf};
    use crate::memory::MemoryBackend;
    use crate::settings::Settings;
    use crate::store::Store;
    use crate::watch::Watch;

    /// An object whose bytes are its mark.
    #[derive(Debug)]
    struct Marked(SmolStr);

    impl Metadata for Marked {
        fn read(_key: &Key, value: &Bytes) -> Self {
            Self(SmolStr::new(String::from_utf8_lossy(value)))
        }

        fn mark(&self) -> Option<&str> {
            Some(&self.0)
        }
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn pods() -> (Store<Marked>, Shelf) {
        let settings = Settings { inline: true, ..Settings::default() };
        (Store::open(MemoryBackend, settings).unwrap(), Shelf::new("", "pods"))
    }

    fn mark(text: &str) -> Topic {
        Topic::Mark(SmolStr::new(text))
    }

    fn seen(watch: &mut Watch<Marked>) -> Vec<u64> {
        let events = watch.read().unwrap().unwrap();
        events.iter().map(|event| event.revision.0).collect()
    }

    #[test]
    fn only_those_are_woken_whom_an_event_concerns() {
        let (store, shelf) = pods();
        let mut watches: Vec<(Watch<Marked>, Arc<Count>)> = (0..100)
            .map(|node| {
                let topic = Some(mark(&format!("n{node}")));
                (store.watch_part(&shelf, topic, Revision(0)), Arc::default())
            })
            .collect();
        let mut sleep = || -> Vec<Vec<u64>> {
            let polled = watches.iter_mut().map(|(watch, count)| {
                let waker = Waker::from(Arc::clone(count));
                let read = seen(watch);
                assert!(watch.poll_read(&mut Context::from_waker(&waker)).is_pending());
                read
            });
            polled.collect()
        };
        sleep();
        let key = shelf.key("a", "p");
        let put = |at, node: &'static str| {
            let bytes = Bytes::from_static(node.as_bytes());
            match at {
                0 => store.write(Transaction::create(key.clone(), bytes)).unwrap(),
                at => store.write(Transaction::update(key.clone(), Revision(at), bytes)).unwrap(),
            }
        };
        put(0, "n3");
        put(1, "n4"); // both are told: it left one, and came to the other
        let read = sleep();
        let of = |node: usize| read[node].as_slice();
        assert_eq!((of(3), of(4), of(5)), (&[1, 2][..], &[2][..], &[][..]));
        let woken: Vec<usize> =
            watches.iter().map(|(_, count)| count.0.load(Ordering::Relaxed)).collect();
        assert_eq!(woken.iter().sum::<usize>(), 2, "{woken:?}");
        assert_eq!((woken[3], woken[4]), (1, 1));
    }

    #[test]
    fn what_was_before_is_read_first_and_quiet_parts_are_never_cut_off() {
        let (store, shelf) = pods();
        let create = |name: &str, node: &'static str| {
            let bytes = Bytes::from_static(node.as_bytes());
            store.write(Transaction::create(shelf.key("a", name), bytes)).unwrap();
        };
        create("p1", "n1");
        create("p2", "n2");
        let mut late = store.watch_part(&shelf, Some(mark("n2")), Revision(0));
        create("p3", "n2");
        assert_eq!(seen(&mut late), [2, 3]);
        let mut named =
            store.watch_part(&shelf, Some(Topic::Name(SmolStr::new("p9"))), Revision(3));
        let mut placed =
            store.watch_part(&shelf, Some(Topic::Namespace(SmolStr::new("a"))), Revision(3));
        create("p4", "n1");
        store.compact(store.revision()).unwrap();
        assert!(placed.read().is_err(), "it missed one");
        assert_eq!(seen(&mut named), [0_u64; 0], "nothing of it is gone");
        create("p9", "n1");
        assert_eq!(seen(&mut named), [5]);
        assert_eq!(late.position(), Revision(3));
        assert_eq!((seen(&mut late), late.position()), (vec![], Revision(5)));
    }
}
