//! Without file descriptors the engine cannot write its tables, and its threads give up. Writes
//! are refused with the reason while that lasts, and taken again afterwards.

use std::fs::File;
use std::process::Command;

use bytes::Bytes;
use convoy_store::backend::{DiskBackend, Durability};
use convoy_store::{Settings, Shelf, Store, Transaction, WriteError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const DIRECTORY: &str = "CONVOY_STORE_DESCRIPTORS_DIRECTORY";

/// Enough to fill several tables of the engine.
const VALUE_BYTES: usize = 1 << 20;
const WRITES_MAX: usize = 64;

/// The process whose limit is lowered. Does nothing unless the test below started it.
#[test]
fn writer_process() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum }).expect("it is lowered");
    let backend = DiskBackend::open(directory.as_ref(), Durability::Sync).expect("it opens");
    let store: Store<()> = Store::open(backend, Settings::default()).expect("it loads");
    let shelf = Shelf::new("", "pods");
    let value = Bytes::from(vec![b'x'; VALUE_BYTES]);
    let create = |name: &str, number: usize| {
        let key = shelf.key("", &format!("{name}{number}"));
        store.write(Transaction::create(key, value.clone()))
    };
    let taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(taken.len() > 8, "{} were free", taken.len());
    let refused = (0..WRITES_MAX).find_map(|number| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        create("during", number).err()
    });
    let Some(WriteError::Failed(failure)) = refused else {
        panic!("the engine needs files: {refused:?}");
    };
    let cause = std::error::Error::source(&*failure).map(ToString::to_string);
    assert!(cause.as_ref().is_some_and(|cause| cause.contains("Too many open files")), "{cause:?}");
    let before = store.snapshot().count(&shelf);
    assert!(before > 0, "reads go on");
    drop(taken);
    create("after", 0).expect("there are files again");
    assert!(store.failure().is_none());
    let (count, revision) = (store.snapshot().count(&shelf), store.revision());
    assert!(count > before);
    store.shut_down().expect("it closes");
    drop(store);
    let backend = DiskBackend::open(directory.as_ref(), Durability::Sync).expect("it opens");
    let again: Store<()> = Store::open(backend, Settings::default()).expect("it loads");
    assert_eq!((again.snapshot().count(&shelf), again.revision()), (count, revision));
}

#[test]
fn a_lack_of_file_descriptors_passes() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args(["writer_process", "--exact", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
}
