//! Crashes: a process that writes is killed at a random moment, again and again; whatever it
//! acknowledged is there afterwards, watchers resume without a gap, and nothing is torn.
//!
//! `CONVOY_CRASHES` says how often; CI takes the default, a nightly run 200.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use convoy_store::backend::{Backend, BackendError, DiskBackend, Durability, Loaded, Record};
use convoy_store::{Change, Key, Revision, Settings, Shelf, Store, Transaction, WriteError};

const DIRECTORY: &str = "CONVOY_STORE_CRASH_DIRECTORY";
const WRITERS: usize = 4;

fn open(directory: &Path) -> Store<()> {
    let backend = DiskBackend::open(directory, Durability::Sync).expect("it opens after a crash");
    Store::open(backend, Settings::default()).expect("it loads after a crash")
}

/// The process that is killed: creates, updates and deletes, and says what was acknowledged.
/// Does nothing unless the test below started it.
#[test]
fn writer_process() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let store = open(Path::new(&directory));
    let round = store.revision();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                for number in 0.. {
                    let key = Shelf::new("", "pods")
                        .key("w", &format!("{round}-{writer}-{}", number / 3));
                    let standing = store.snapshot().get(&key).cloned();
                    let value = Bytes::from(format!("{round}-{writer}-{number}").into_bytes());
                    let transaction = match (number % 3, &standing) {
                        (0, _) | (_, None) => Transaction::create(key.clone(), value.clone()),
                        (1, Some(entry)) => {
                            Transaction::update(key.clone(), entry.modified, value.clone())
                        }
                        (_, Some(entry)) if number % 2 == 0 => {
                            Transaction::delete(key.clone(), entry.modified)
                        }
                        (_, Some(entry)) => {
                            Transaction::update(key.clone(), entry.modified, value.clone())
                        }
                    };
                    let Ok(written) = store.write(transaction) else { return };
                    let gone = number % 3 == 2 && number % 2 == 0;
                    let shown = if gone {
                        "gone".to_owned()
                    } else {
                        String::from_utf8_lossy(&value).into_owned()
                    };
                    let line = format!("ack {} {} {shown}\n", key.name, written.revision);
                    let mut out = std::io::stdout().lock();
                    if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// Starts the writer, kills it after `millis`, and gives back what it acknowledged last per name.
fn crash_after(directory: &Path, millis: u64) -> BTreeMap<String, (u64, String)> {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["writer_process", "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(millis));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    });
    let mut acknowledged = BTreeMap::new();
    for line in out.lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        let at = words.iter().position(|word| word.ends_with("ack"));
        if let Some([name, revision, value]) = at.and_then(|at| words.get(at + 1..at + 4)) {
            let revision = revision.parse().expect("a revision");
            acknowledged.insert((*name).to_owned(), (revision, (*value).to_owned()));
        }
    }
    killer.join().expect("no panic");
    acknowledged
}

#[test]
fn whatever_was_acknowledged_survives_kill_9() {
    let crashes =
        std::env::var("CONVOY_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let directory = tempfile::tempdir().expect("a directory");
    let (mut revision, mut total) = (Revision(0), 0);
    for round in 0..crashes {
        // Spread over the start-up, the first commits and steady load.
        let acknowledged = crash_after(directory.path(), 20 + (round * 37) % 260);
        total += acknowledged.len();
        let store = open(directory.path());
        assert!(store.revision() >= revision, "the revision never goes back");
        let shelf = Shelf::new("", "pods");
        let snapshot = store.snapshot();
        for (name, (at, value)) in &acknowledged {
            assert!(store.revision().0 >= *at, "acknowledged revision {at} is gone");
            let entry = snapshot.get(&shelf.key("w", name));
            // A later write of the same name may have happened without its answer being read.
            let newer = entry.is_some_and(|entry| entry.modified.0 > *at);
            let deleted_later = entry.is_none();
            match value.as_str() {
                "gone" => assert!(entry.is_none() || newer, "{name} came back"),
                _ if deleted_later => {
                    assert!(deleted_after(&store, &shelf, name, *at), "{name} is lost");
                }
                text => assert!(
                    newer || entry.is_some_and(|entry| entry.value == text.as_bytes()),
                    "{name}"
                ),
            }
        }
        whole(&store, &shelf, revision);
        revision = store.revision();
        store.shut_down().expect("it flushes");
    }
    assert!(total > 0, "the writer got to write");
}

#[test]
fn a_first_start_that_is_killed_can_be_repeated() {
    // A millisecond apart, over the time in which the engine makes its files.
    for millis in 1..40 {
        let directory = tempfile::tempdir().expect("a directory");
        crash_after(directory.path(), millis);
        open(directory.path()).shut_down().expect("it flushes");
        let left = std::fs::read_dir(directory.path()).expect("readable");
        let names = left.map(|entry| entry.expect("readable").file_name().into_string());
        let draft = names.flatten().find(|name| name.contains("new"));
        assert_eq!(draft, None, "killed after {millis} ms");
    }
}

/// Whether the history tells of the deletion of `name` after revision `at`.
fn deleted_after(store: &Store<()>, shelf: &Shelf, name: &str, at: u64) -> bool {
    let mut watch = store.watch(shelf, Revision(at));
    let events = watch.read().expect("kept").expect("open");
    let mut all = events;
    while let Ok(Some(more)) = watch.read() {
        if more.is_empty() {
            break;
        }
        all.extend(more);
    }
    all.iter().any(|event| event.entry.key.name == name && event.change == Change::Deleted)
}

/// History since `from` has no gap and leads to what is live: nothing is torn.
fn whole(store: &Store<()>, shelf: &Shelf, from: Revision) {
    let past = store.shelf_at(shelf, from).expect("kept");
    let mut state: BTreeMap<Key, Bytes> =
        past.list(shelf).map(|entry| (entry.key.clone(), entry.value.clone())).collect();
    let (mut watch, mut last) = (store.watch(shelf, from), from);
    loop {
        let events = watch.read().expect("kept").expect("open");
        if events.is_empty() {
            break;
        }
        for event in events {
            assert_eq!(event.revision.0, last.0 + 1, "a gap in the history");
            last = event.revision;
            match event.change {
                Change::Deleted => _ = state.remove(&event.entry.key),
                _ => _ = state.insert(event.entry.key.clone(), event.entry.value.clone()),
            }
        }
    }
    let live: BTreeMap<Key, Bytes> = store
        .snapshot()
        .list(shelf)
        .map(|entry| (entry.key.clone(), entry.value.clone()))
        .collect();
    assert_eq!(state, live);
}

/// A disk that fails.
#[derive(Debug)]
struct Faulty {
    below: DiskBackend,
    fault: Fault,
}

#[derive(Debug)]
enum Fault {
    /// It breaks after so many commits.
    After(u32),
    /// It is full while the flag says so. The worst case: it is written, and nobody is told.
    WhileFull(Arc<AtomicBool>),
}

impl Faulty {
    fn room(&self) -> Result<(), BackendError> {
        let Fault::WhileFull(is_full) = &self.fault else { return Ok(()) };
        if !is_full.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (attempt, path) = ("write to", "disk".to_owned());
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull).into();
        Err(BackendError::Unavailable { attempt, path, source })
    }
}

impl Backend for Faulty {
    fn write(&mut self, batch: &[Record]) -> Result<(), BackendError> {
        if let Fault::After(good_commits) = &mut self.fault {
            let Some(left) = good_commits.checked_sub(1) else {
                let source = std::io::Error::from(std::io::ErrorKind::StorageFull).into();
                return Err(BackendError::Io {
                    attempt: "commit",
                    path: "disk".to_owned(),
                    source,
                });
            };
            *good_commits = left;
        }
        self.below.write(batch)?;
        self.room()
    }

    fn sync(&mut self) -> Result<(), BackendError> {
        self.below.sync()
    }

    fn load(&mut self) -> Result<Loaded, BackendError> {
        self.below.load()
    }

    fn compact(&mut self, revision: Revision) -> Result<(), BackendError> {
        self.below.compact(revision)
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        self.below.flush()
    }

    fn recover(&mut self, published: Revision) -> Result<Vec<Record>, BackendError> {
        self.room()?;
        self.below.recover(published)
    }
}

#[test]
fn a_failed_commit_refuses_all_further_writes_and_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let shelf = Shelf::new("", "pods");
    let create = |name: &str| Transaction::create(shelf.key("", name), Bytes::from_static(b"{}"));
    {
        let below = DiskBackend::open(directory.path(), Durability::Sync).expect("it opens");
        let store: Store<()> =
            Store::open(Faulty { below, fault: Fault::After(2) }, Settings::default())
                .expect("loads");
        assert!(store.write(create("a")).is_ok());
        assert!(store.write(create("b")).is_ok());
        for name in ["c", "d"] {
            assert!(matches!(store.write(create(name)), Err(WriteError::Failed(_))), "{name}");
        }
        assert_eq!(store.snapshot().count(&shelf), 2, "nothing unsure is shown");
        assert!(store.failure().is_some());
    }
    let store = open(directory.path());
    let names: Vec<String> =
        store.snapshot().list(&shelf).map(|entry| entry.key.name.to_string()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_failure_that_passes_is_told_and_forgotten() {
    let directory = tempfile::tempdir().expect("a directory");
    let shelf = Shelf::new("", "pods");
    let create = |name: &str| Transaction::create(shelf.key("", name), Bytes::from_static(b"{}"));
    let is_full = Arc::new(AtomicBool::new(false));
    let below = DiskBackend::open(directory.path(), Durability::Sync).expect("it opens");
    let backend = Faulty { below, fault: Fault::WhileFull(Arc::clone(&is_full)) };
    let store: Store<()> =
        Store::open(backend, Settings { inline: true, ..Settings::default() }).expect("it loads");
    store.write(create("a")).expect("there is room");
    is_full.store(true, Ordering::Relaxed);
    for name in ["b", "c"] {
        let refused = store.write(create(name));
        assert!(matches!(refused, Err(WriteError::Failed(_))), "{name}: {refused:?}");
    }
    assert_eq!(store.snapshot().count(&shelf), 1, "nothing unsure is shown");
    assert!(store.failure().is_some_and(|failure| failure.is_transient()));
    is_full.store(false, Ordering::Relaxed);
    store.write(create("d")).expect("there is room again");
    assert!(store.failure().is_none());
    // The write of which nobody knew has happened, and watches tell of it.
    let mut watch = store.watch(&shelf, Revision(1));
    let events = watch.read().expect("kept").expect("open");
    let names: Vec<&str> = events.iter().map(|event| &*event.entry.key.name).collect();
    assert_eq!(names, ["b", "d"]);
    drop((watch, store));
    whole(&open(directory.path()), &shelf, Revision(0));
}

#[test]
fn compaction_survives_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let shelf = Shelf::new("", "pods");
    {
        let store = open(directory.path());
        for number in 0..20 {
            let key = shelf.key("", &format!("p{number}"));
            store.write(Transaction::create(key, Bytes::from_static(b"{}"))).expect("no conflict");
        }
        store.compact(Revision(12)).expect("it compacts");
        store.shut_down().expect("it flushes");
    }
    let store = open(directory.path());
    assert_eq!(store.snapshot().count(&shelf), 20);
    assert!(store.watch(&shelf, Revision(11)).read().is_err());
    assert_eq!(store.watch(&shelf, Revision(12)).read().expect("kept").expect("open").len(), 8);
}

#[test]
fn a_directory_in_use_of_a_newer_format_or_not_ours_is_refused_untouched() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = DiskBackend::open(directory.path(), Durability::Sync).expect("it opens");
    let second = DiskBackend::open(directory.path(), Durability::Sync);
    assert!(matches!(second, Err(BackendError::InUse { .. })), "{second:?}");
    drop(first);

    let newer = tempfile::tempdir().expect("a directory");
    std::fs::write(newer.path().join("FORMAT"), "99\n").expect("writable");
    let refused = DiskBackend::open(newer.path(), Durability::Sync);
    assert!(matches!(refused, Err(BackendError::NewerFormat { found: 99, .. })), "{refused:?}");
    assert_eq!(std::fs::read_dir(newer.path()).expect("readable").count(), 1);

    let foreign = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(foreign.path().join("objects")).expect("writable");
    let refused = DiskBackend::open(foreign.path(), Durability::Sync);
    assert!(matches!(refused, Err(BackendError::Foreign { .. })), "{refused:?}");

    let file = tempfile::NamedTempFile::new().expect("a file");
    assert!(matches!(
        DiskBackend::open(file.path(), Durability::Sync),
        Err(BackendError::Io { .. })
    ));
}
