//! Many writers and watchers at once: compare-and-swap loses nothing, and watchers see every
//! write once and in order, while history is compacted under them.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use convoy_store::{
    Conflict, Entry, MemoryBackend, Revision, Settings, Shelf, Store, Transaction, WriteError,
};

const WRITERS: u64 = 32;
const INCREMENTS: u64 = 200;

fn store() -> Store<()> {
    Store::open(MemoryBackend, Settings::default()).expect("memory opens")
}

fn number(entry: &Entry<()>) -> u64 {
    u64::from_be_bytes(entry.value[..].try_into().expect("eight bytes"))
}

/// Adds one to a counter by compare-and-swap; gives back the revision of the write and the sum.
fn increment(store: &Store<()>, shelf: &Shelf) -> (Revision, u64) {
    let key = shelf.key("", "counter");
    let mut current = store.snapshot().get(&key).cloned();
    loop {
        let (transaction, sum) = match &current {
            None => (Transaction::create(key.clone(), Bytes::from(1u64.to_be_bytes().to_vec())), 1),
            Some(entry) => {
                let sum = number(entry) + 1;
                let value = Bytes::from(sum.to_be_bytes().to_vec());
                (Transaction::update(key.clone(), entry.modified, value), sum)
            }
        };
        match store.write(transaction) {
            Ok(written) => return (written.entries[0].modified, sum),
            Err(WriteError::Conflict(conflict)) => {
                let Conflict { current: found, .. } = *conflict;
                current = found;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn compare_and_swap_is_linearizable_under_32_writers() {
    let store = store();
    let shelf = Shelf::new("", "counters");
    let mut history: Vec<(Revision, u64)> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    (0..INCREMENTS).map(|_| increment(&store, &shelf)).collect::<Vec<_>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("no panic")).collect()
    });
    // Every sum was written once, and in the order of revisions: one sequential history.
    history.sort();
    let sums: Vec<u64> = history.iter().map(|(_, sum)| *sum).collect();
    assert_eq!(sums, (1..=WRITERS * INCREMENTS).collect::<Vec<_>>());
}

#[test]
fn watchers_see_every_write_once_and_in_order_while_history_is_compacted() {
    const OBJECTS: u64 = 5_000;
    let store = store();
    let shelf = Shelf::new("", "pods");
    thread::scope(|scope| {
        let watchers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| follow(&store, &shelf, OBJECTS))).collect();
        let compactor = scope.spawn(|| {
            while store.revision().0 < OBJECTS {
                // Behind the slowest that a fair scheduler leaves behind.
                store
                    .compact(Revision(store.revision().0.saturating_sub(4_000)))
                    .expect("memory compacts");
                thread::sleep(Duration::from_millis(1));
            }
        });
        for writer in 0..4 {
            let (store, shelf) = (&store, &shelf);
            scope.spawn(move || {
                for number in (writer..OBJECTS).step_by(4) {
                    let key = shelf.key("", &format!("p{number:05}"));
                    store
                        .write(Transaction::create(key, Bytes::from_static(b"{}")))
                        .expect("no conflict");
                }
            });
        }
        compactor.join().expect("no panic");
        for watcher in watchers {
            assert_eq!(watcher.join().expect("no panic"), OBJECTS);
        }
    });
}

/// Lists and watches as a client does, and lists again when it is too late; counts what it knows.
fn follow(store: &Store<()>, shelf: &Shelf, until: u64) -> u64 {
    'list: loop {
        let snapshot = store.snapshot();
        let mut known = snapshot.list(shelf).count() as u64;
        let mut last = snapshot.revision();
        let mut watch = store.watch(shelf, last);
        while known < until {
            let Ok(events) = watch.wait(Duration::from_secs(5)) else { continue 'list };
            for event in events.expect("the store is open") {
                assert_eq!(event.revision, Revision(last.0 + 1), "one shelf, so no gap");
                last = event.revision;
                known += 1;
            }
        }
        return known;
    }
}

#[test]
fn shutting_down_ends_watches_and_refuses_writes() {
    let store = store();
    let shelf = Shelf::new("", "pods");
    let mut watch = store.watch(&shelf, Revision(0));
    let waiting = thread::spawn(move || watch.wait(Duration::from_secs(30)));
    store.shut_down().expect("memory flushes");
    assert!(waiting.join().expect("no panic").expect("not compacted").is_none());
    let late = store.write(Transaction::create(shelf.key("", "late"), Bytes::new()));
    assert!(matches!(late, Err(WriteError::Closed)));
}

#[test]
fn a_slow_commit_leaves_reads_alone_and_a_full_queue_says_busy() {
    let settings = Settings { queue_max: 2, ..Settings::default() };
    let gate = Arc::new(parking_lot::Mutex::new(()));
    let held = gate.lock();
    let store: Store<()> = Store::open(Slow(Arc::clone(&gate)), settings).expect("it opens");
    let shelf = Shelf::new("", "pods");
    let create = |name: &str| Transaction::create(shelf.key("", name), Bytes::new());
    let first = store.submit(create("first"));
    thread::sleep(Duration::from_millis(50)); // the writer took it and waits at the gate
    let tickets: Vec<_> =
        ["a", "b", "c"].map(|name| store.submit(create(name))).into_iter().collect();
    assert_eq!(store.snapshot().revision(), Revision(0));
    drop(held);
    assert!(first.wait().is_ok());
    let answers: Vec<bool> = tickets.into_iter().map(|ticket| ticket.wait().is_ok()).collect();
    assert_eq!(answers, [true, true, false]);
}

/// Commits only while nobody holds the gate.
#[derive(Debug)]
struct Slow(Arc<parking_lot::Mutex<()>>);

impl convoy_store::Backend for Slow {
    fn commit(
        &mut self,
        _: &[convoy_store::backend::Record],
    ) -> Result<(), convoy_store::BackendError> {
        drop(self.0.lock());
        Ok(())
    }

    fn load(&mut self) -> Result<convoy_store::backend::Loaded, convoy_store::BackendError> {
        Ok(convoy_store::backend::Loaded::default())
    }

    fn compact(&mut self, _: Revision) -> Result<(), convoy_store::BackendError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), convoy_store::BackendError> {
        Ok(())
    }
}
