//! Lost data: a log that was deleted, overwritten with zeros or has a hole before its end. The
//! store says so and changes nothing; told to accept the loss, it goes on with what is left, at a
//! revision that nobody has seen.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use convoy_store::backend::{BackendError, DiskBackend, Durability, OnLoss};
use convoy_store::{Revision, Settings, Shelf, Store, Transaction};

/// Objects that are written, each by a transaction of its own.
const COUNT: u64 = 8;

fn shelf() -> Shelf {
    Shelf::new("", "pods")
}

fn inline() -> Settings {
    Settings { inline: true, ..Settings::default() }
}

fn open(directory: &Path) -> Result<Store<()>, BackendError> {
    Store::open(DiskBackend::open(directory, Durability::Sync)?, inline())
}

/// A directory with all objects; closed properly, or left as a killed process leaves it.
fn filled(is_closed: bool) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path()).expect("it opens");
    for number in 1..=COUNT {
        let key = shelf().key("", &format!("p{number}"));
        let value = Bytes::from(format!("value {number} ").repeat(20));
        store.write(Transaction::create(key, value)).expect("it is written");
    }
    if is_closed {
        store.shut_down().expect("it closes");
    }
    directory
}

fn log_path(directory: &Path) -> PathBuf {
    let files = fs::read_dir(directory.join("objects")).expect("the engine's directory").flatten();
    let is_log = |path: &PathBuf| path.extension() == Some("jnl".as_ref());
    files.map(|file| file.path()).find(is_log).expect("a log")
}

/// The log as far as it is written: room is taken in advance.
fn log_bytes(directory: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = fs::File::open(log_path(directory)).expect("the log opens");
    file.take(64 << 10).read_to_end(&mut bytes).expect("it can be read");
    let last = bytes.iter().rposition(|byte| *byte != 0).expect("something was written");
    bytes.truncate(last + 1);
    bytes
}

/// Where the value of an object stands in the log for the last time.
fn place_of(bytes: &[u8], number: u64) -> usize {
    let wanted = format!("value {number} ").into_bytes();
    bytes.windows(wanted.len()).rposition(|part| part == wanted).expect("it was written")
}

/// What the refusal says; what can be read of the log is as it was.
fn refusal(directory: &Path) -> String {
    let written = || fs::read(directory.join("objects/0.jnl")).unwrap_or_default();
    let is_zero = |byte: &u8| *byte == 0;
    let before = written();
    let refused = open(directory).err().map(|error| error.to_string());
    let after = written();
    assert!(before.starts_with(&after), "the log was changed");
    assert!(before[after.len()..].iter().all(is_zero), "the log was cut");
    refused.expect("what is lost is told")
}

#[test]
fn a_deleted_log_is_told() {
    let directory = filled(true);
    fs::remove_file(log_path(directory.path())).expect("it is deleted");
    let refused = refusal(directory.path());
    assert!(refused.contains("0.jnl is missing"), "{refused}");
}

#[test]
fn a_zeroed_log_is_told() {
    for length in [0, 4 << 10] {
        let directory = filled(true);
        fs::write(log_path(directory.path()), vec![0; length]).expect("it is zeroed");
        let refused = refusal(directory.path());
        assert!(refused.contains("revision 8") && refused.contains("8 objects"), "{refused}");
    }
}

#[test]
fn a_log_that_was_cut_below_what_was_sealed_is_told() {
    let directory = filled(true);
    let bytes = log_bytes(directory.path());
    let cut = &bytes[..place_of(&bytes, 6)];
    fs::write(log_path(directory.path()), cut).expect("it is cut");
    let refused = refusal(directory.path());
    assert!(refused.contains("revision 8"), "{refused}");
}

#[test]
fn a_hole_before_data_is_told_even_after_a_kill() {
    let directory = filled(false);
    let mut bytes = log_bytes(directory.path());
    let at = place_of(&bytes, 3);
    let until = place_of(&bytes, 5);
    bytes[at..until].fill(0);
    fs::write(log_path(directory.path()), &bytes).expect("it has a hole");
    let refused = refusal(directory.path());
    assert!(refused.contains("revision 2") && refused.contains("revision 7"), "{refused}");
}

#[test]
fn an_unfinished_last_write_is_no_loss() {
    let directory = filled(false);
    let mut bytes = log_bytes(directory.path());
    let at = place_of(&bytes, COUNT);
    bytes[at..at + 30].fill(0);
    let half = bytes.len() - 40;
    fs::write(log_path(directory.path()), &bytes[..half]).expect("it is torn");
    let store = open(directory.path()).expect("it was not acknowledged");
    assert_eq!(store.revision().0, COUNT - 1);
}

#[test]
fn missing_files_are_told() {
    for name in ["objects", "objects/keyspaces/1", "objects/keyspaces/3/current", "MANIFEST"] {
        let directory = filled(true);
        let path = directory.path().join(name);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(path) };
        removed.unwrap_or_else(|error| panic!("{name}: {error}"));
        let refused = open(directory.path()).err().map(|error| error.to_string());
        let refused = refused.unwrap_or_else(|| panic!("{name} is missed by nobody"));
        assert!(refused.contains("is missing"), "{name}: {refused}");
    }
}

/// The names that are left after the loss was accepted; the store goes on, and starts again.
fn accepted(directory: &Path) -> Vec<String> {
    let backend = DiskBackend::open_with(directory, Durability::Sync, OnLoss::Accept);
    let store: Store<()> = Store::open(backend.expect("it opens"), inline()).expect("it loads");
    let names = |store: &Store<()>| -> Vec<String> {
        store.snapshot().list(&shelf()).map(|entry| entry.key.name.to_string()).collect()
    };
    let left = names(&store);
    assert!(store.revision().0 > COUNT, "the revision went back to {}", store.revision());
    assert!(store.watch(&shelf(), Revision(COUNT)).read().is_err(), "watches list again");
    let key = shelf().key("", "later");
    store.write(Transaction::create(key, Bytes::from_static(b"x"))).expect("it goes on");
    let revision = store.revision();
    drop(store);
    let again = open(directory).expect("the next start needs nothing accepted");
    assert_eq!(again.revision(), revision);
    assert_eq!(again.snapshot().count(&shelf()), left.len() + 1);
    left
}

#[test]
fn an_accepted_loss_leaves_the_rest_at_a_new_revision() {
    let directory = filled(true);
    fs::remove_file(log_path(directory.path())).expect("it is deleted");
    assert_eq!(accepted(directory.path()), [""; 0]);

    let directory = filled(false);
    let mut bytes = log_bytes(directory.path());
    let (at, until) = (place_of(&bytes, 3), place_of(&bytes, 5));
    bytes[at..until].fill(0);
    fs::write(log_path(directory.path()), &bytes).expect("it has a hole");
    assert_eq!(accepted(directory.path()), ["p1", "p2"]);
    let kept = fs::read(directory.path().join("damaged-1/0.jnl")).expect("a copy is kept");
    assert!(kept == bytes, "the copy is as the log was");

    for name in ["objects", "objects/keyspaces/1", "objects/keyspaces/3/current", "MANIFEST"] {
        let directory = filled(true);
        let path = directory.path().join(name);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(path) };
        removed.unwrap_or_else(|error| panic!("{name}: {error}"));
        let left = accepted(directory.path()).len();
        assert_eq!(left, if name == "MANIFEST" { 8 } else { 0 }, "{name}");
    }
}

#[test]
fn data_of_the_older_format_is_taken_over() {
    let directory = filled(true);
    fs::remove_file(directory.path().join("MANIFEST")).expect("it is removed");
    fs::write(directory.path().join("FORMAT"), "1\n").expect("it is written");
    let store = open(directory.path()).expect("it is taken over");
    assert_eq!(store.revision().0, COUNT);
    drop(store);
    assert_eq!(fs::read_to_string(directory.path().join("FORMAT")).expect("readable"), "2\n");
    fs::remove_file(directory.path().join("MANIFEST")).expect("it is there");
    assert!(refusal(directory.path()).contains("MANIFEST is missing"));
}
