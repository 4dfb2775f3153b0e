//! Many writers and watchers at once: compare-and-swap loses nothing, and watchers see every
//! write once and in order, while history is compacted under them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use convoy_store::{
    Entry, MemoryBackend, Revision, Settings, Shelf, Store, Transaction, WriteError,
};
use convoy_testkit::history::{Operation, check_linearizable};

const WRITERS: u64 = 32;
const INCREMENTS: u64 = 200;

fn store() -> Store<()> {
    Store::open(MemoryBackend, Settings::default()).expect("memory opens")
}

fn number(entry: &Entry<()>) -> u64 {
    u64::from_be_bytes(entry.value[..].try_into().expect("eight bytes"))
}

/// What all threads tell the time by: it only ever grows.
static CLOCK: AtomicU64 = AtomicU64::new(0);

fn tick() -> u64 {
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// Adds one to a counter by compare-and-swap; what was read on the way is part of the history.
fn increment(store: &Store<()>, shelf: &Shelf, history: &mut Vec<Operation>) {
    let key = shelf.key("", "counter");
    loop {
        let begun = tick();
        let current = store.snapshot().get(&key).cloned();
        let (transaction, value) = match &current {
            None => (Transaction::create(key.clone(), Bytes::from(1u64.to_be_bytes().to_vec())), 1),
            Some(entry) => {
                let (revision, value) = (entry.modified.0, number(entry));
                let ended = tick();
                history.push(Operation { is_write: false, begun, ended, revision, value });
                let next = Bytes::from((value + 1).to_be_bytes().to_vec());
                (Transaction::update(key.clone(), entry.modified, next), value + 1)
            }
        };
        let begun = tick();
        match store.write(transaction) {
            Ok(written) => {
                let (revision, ended) = (written.entries[0].modified.0, tick());
                history.push(Operation { is_write: true, begun, ended, revision, value });
                return;
            }
            Err(WriteError::Conflict(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn compare_and_swap_is_linearizable_under_32_writers() {
    let store = store();
    let shelf = Shelf::new("", "counters");
    let history: Vec<Operation> = thread::scope(|scope| {
        let write = || {
            let mut history = Vec::new();
            (0..INCREMENTS).for_each(|_| increment(&store, &shelf, &mut history));
            history
        };
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("no panic")).collect()
    });
    assert_eq!(check_linearizable(&history), Ok(()));
    let last = history.iter().filter(|one| one.is_write).map(|write| write.value).max();
    assert_eq!(last, Some(WRITERS * INCREMENTS));
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
                // Whoever hears of an object finds it.
                assert!(store.revision() >= event.revision, "told before it is there");
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
    fn write(
        &mut self,
        _: &[convoy_store::backend::Record],
    ) -> Result<(), convoy_store::BackendError> {
        drop(self.0.lock());
        Ok(())
    }

    fn sync(&mut self) -> Result<(), convoy_store::BackendError> {
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

    fn recover(
        &mut self,
        _: Revision,
    ) -> Result<Vec<convoy_store::backend::Record>, convoy_store::BackendError> {
        Ok(Vec::new())
    }
}
