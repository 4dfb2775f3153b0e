//! A log that lost its end, or in whose end a bit has turned: what is left is a whole number of
//! transactions, exactly as they were written, or the store refuses to open. Nothing torn and
//! nothing wrong is ever shown.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use convoy_store::backend::{BackendError, DiskBackend, Durability};
use convoy_store::{Expect, Settings, Shelf, Store, Transaction, Write};

/// Transactions that are written, of two objects each.
const COUNT: u64 = 8;

/// More than they take.
const WRITTEN_MAX: u64 = 64 << 10;

/// Places that are damaged, each in a store of its own.
const PLACES: usize = 32;

fn shelf() -> Shelf {
    Shelf::new("", "pods")
}

fn value(number: u64, which: &str) -> Bytes {
    Bytes::from(format!("{which}{number}").repeat(20))
}

/// A directory with everything in it, as a process leaves it that is killed.
fn filled() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let backend = DiskBackend::open(directory.path(), Durability::None).expect("it opens");
    let settings = Settings { inline: true, ..Settings::default() };
    let store: Store<()> = Store::open(backend, settings).expect("it loads");
    for number in 1..=COUNT {
        let writes = ["a", "b"].map(|which| {
            let key = shelf().key("", &format!("{which}{number}"));
            Write::put(key, Expect::Absent, value(number, which))
        });
        store.write(Transaction::new(writes.into())).expect("it is written");
    }
    directory
}

/// The log, and what was written into it: room is taken in advance.
fn log(directory: &Path) -> (PathBuf, Vec<u8>) {
    let engine = directory.join("objects");
    let files = fs::read_dir(engine).expect("the engine's directory").flatten();
    let is_log = |path: &PathBuf| path.extension() == Some("jnl".as_ref());
    let path = files.map(|file| file.path()).find(is_log).expect("a log");
    let mut bytes = Vec::new();
    let file = fs::File::open(&path).expect("the log opens");
    file.take(WRITTEN_MAX).read_to_end(&mut bytes).expect("it can be read");
    let last = bytes.iter().rposition(|byte| *byte != 0).expect("something was written");
    bytes.truncate(last + 1);
    (path, bytes)
}

/// How many transactions are there, all of them whole and as they were written; none: refused.
fn whole(directory: &Path) -> Option<u64> {
    let settings = Settings { inline: true, ..Settings::default() };
    let opened = DiskBackend::open(directory, Durability::None)
        .and_then(|backend| Store::<()>::open(backend, settings));
    let store = match opened {
        Ok(store) => store,
        Err(BackendError::Damaged { .. }) => return None,
        Err(other) => panic!("it is damaged, and the error is another one: {other}"),
    };
    let revision = store.revision().0;
    assert_eq!(revision % 2, 0, "a transaction is there by halves");
    let snapshot = store.snapshot();
    let shelf = shelf();
    for number in 1..=revision / 2 {
        for which in ["a", "b"] {
            let entry = snapshot.get(&shelf.key("", &format!("{which}{number}")));
            let entry = entry.unwrap_or_else(|| panic!("{which}{number} of {revision}"));
            assert_eq!(entry.value, value(number, which));
        }
    }
    assert_eq!(snapshot.count(&shelf) as u64, revision, "nothing beyond its end");
    let key = shelf.key("", "later");
    let written = store.write(Transaction::create(key, Bytes::from_static(b"x")));
    assert_eq!(written.expect("it goes on").revision.0, revision + 1);
    Some(revision / 2)
}

#[test]
fn a_log_that_lost_its_end_has_lost_whole_transactions() {
    let written = log(filled().path()).1.len();
    let mut last = COUNT;
    for cut in (0..written / 2).step_by(written / PLACES) {
        let directory = filled();
        let (path, bytes) = log(directory.path());
        fs::write(&path, &bytes[..bytes.len() - cut]).expect("it is cut");
        let left = whole(directory.path()).expect("a missing end is no damage: power was lost");
        assert!(left <= last, "{left} are left of {last} though more was cut");
        last = left;
    }
    assert!(last < COUNT - 2, "enough was cut");
}

#[test]
fn a_bit_that_turned_shows_nothing_wrong() {
    let written = log(filled().path()).1.len();
    let (mut refused, mut shortened) = (0, 0);
    for back in (1..written).step_by(written / PLACES) {
        let directory = filled();
        let (path, mut bytes) = log(directory.path());
        let at = bytes.len() - back;
        bytes[at] ^= 1 << (back % 8);
        fs::write(&path, bytes).expect("the log is written");
        match whole(directory.path()) {
            None => refused += 1,
            Some(left) if left < COUNT => shortened += 1,
            Some(_) => {}
        }
    }
    assert!(refused + shortened > PLACES / 2, "{refused} refused, {shortened} shortened");
}
