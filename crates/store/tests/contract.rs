//! The store against a model: whatever is written, every read, past and present, and every
//! watch tells the same story.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use convoy_store::{
    Change, Event, Key, MemoryBackend, Revision, Settings, Shelf, Store, Transaction, WriteError,
};
use convoy_testkit::property;
use proptest::prelude::*;

fn store() -> Store<()> {
    let settings = Settings { inline: true, ..Settings::default() };
    Store::open(MemoryBackend, settings).expect("memory opens")
}

fn key(name: u8) -> Key {
    Shelf::new("", if name.is_multiple_of(2) { "pods" } else { "nodes" })
        .key("", &format!("k{name}"))
}

#[derive(Clone, Debug)]
enum Step {
    Put { name: u8, value: u8, stale: bool },
    Delete { name: u8, stale: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let put = (0u8..12, 0u8..4, prop::bool::weighted(0.2));
    let put = put.prop_map(|(name, value, stale)| Step::Put { name, value, stale });
    let delete = (0u8..12, prop::bool::weighted(0.2));
    let delete = delete.prop_map(|(name, stale)| Step::Delete { name, stale });
    prop::collection::vec(prop_oneof![3 => put, 1 => delete], 0..120)
}

type Model = BTreeMap<Key, (Revision, u8)>;

/// Carries one step out on both, and asks for the same outcome.
fn take(store: &Store<()>, model: &mut Model, step: &Step) {
    let before = store.revision();
    let (name, stale) = match step {
        Step::Put { name, stale, .. } | Step::Delete { name, stale } => (*name, *stale),
    };
    let standing = model.get(&key(name)).copied();
    let at = standing.map(|(at, _)| if stale { Revision(at.0 + 1_000) } else { at });
    let transaction = match (step, at) {
        (Step::Put { value, .. }, Some(at)) => {
            Transaction::update(key(name), at, Bytes::from(vec![*value]))
        }
        (Step::Put { value, .. }, None) => {
            Transaction::create(key(name), Bytes::from(vec![*value]))
        }
        (Step::Delete { .. }, at) => Transaction::delete(key(name), at.unwrap_or(Revision(1))),
    };
    let expected = match (step, standing) {
        (Step::Put { .. }, None) => true,
        (_, Some(_)) => !stale,
        (Step::Delete { .. }, None) => false,
    };
    match store.write(transaction) {
        Ok(written) => {
            assert!(expected, "{step:?} should conflict");
            match step {
                Step::Put { value, .. } if standing.is_some_and(|(_, old)| old == *value) => {
                    assert_eq!(written.revision, before, "an equal write takes no revision");
                }
                Step::Put { value, .. } => _ = model.insert(key(name), (written.revision, *value)),
                Step::Delete { .. } => _ = model.remove(&key(name)),
            }
        }
        Err(WriteError::Conflict(conflict)) => {
            assert!(!expected, "{step:?} should succeed");
            assert_eq!(
                conflict.current.as_ref().map(|entry| entry.modified),
                standing.map(|(at, _)| at)
            );
        }
        Err(other) => panic!("{other}"),
    }
}

fn state(snapshot: &convoy_store::Snapshot<()>, shelf: &Shelf) -> Model {
    snapshot
        .list(shelf)
        .map(|entry| (entry.key.clone(), (entry.modified, entry.value[0])))
        .collect()
}

proptest! {
    #![proptest_config(property::config(256))]

    #[test]
    fn reads_of_every_revision_and_watches_from_every_revision_agree(steps in steps()) {
        let (store, mut model) = (store(), Model::new());
        let mut states = vec![(Revision(0), Model::new())];
        for step in &steps {
            take(&store, &mut model, step);
            states.push((store.revision(), model.clone()));
        }
        for shelf in [Shelf::new("", "pods"), Shelf::new("", "nodes")] {
            let of_shelf = |model: &Model| -> Model {
                model.iter().filter(|(key, _)| key.shelf == shelf).map(|(key, value)| (key.clone(), *value)).collect()
            };
            prop_assert_eq!(state(&store.snapshot(), &shelf), of_shelf(&model));
            for (revision, then) in &states {
                let past = store.shelf_at(&shelf, *revision).unwrap();
                prop_assert_eq!(state(&past, &shelf), of_shelf(then), "at {}", revision);
                let mut replayed = of_shelf(then);
                let mut watch = store.watch(&shelf, *revision);
                loop {
                    let events = watch.read().unwrap().unwrap();
                    if events.is_empty() { break; }
                    for event in events { replay(&mut replayed, &event); }
                }
                prop_assert_eq!(replayed, of_shelf(&model), "watched from {}", revision);
                prop_assert_eq!(watch.position(), store.revision());
            }
        }
    }
}

fn replay(model: &mut Model, event: &Arc<Event<()>>) {
    let standing = model.get(&event.entry.key).map(|(at, _)| *at);
    assert_eq!(standing, event.previous.as_ref().map(|entry| entry.modified), "no gap");
    match event.change {
        Change::Deleted => _ = model.remove(&event.entry.key),
        Change::Created | Change::Modified => {
            model.insert(event.entry.key.clone(), (event.revision, event.entry.value[0]));
        }
    }
}

#[test]
fn a_compacted_revision_is_gone_for_lists_and_watches_that_would_miss_something() {
    let store = store();
    let shelf = Shelf::new("", "pods");
    for number in 0..10u8 {
        let value = Bytes::from(vec![number]);
        store.write(Transaction::create(shelf.key("a", &format!("p{number}")), value)).unwrap();
    }
    store.compact(Revision(5)).unwrap();
    assert!(store.shelf_at(&shelf, Revision(4)).is_err());
    assert!(store.watch(&shelf, Revision(4)).read().is_err());
    assert_eq!(store.watch(&shelf, Revision(5)).read().unwrap().unwrap().len(), 5);
    let idle = Shelf::new("", "secrets");
    assert!(store.watch(&idle, Revision(1)).read().is_ok(), "nothing of it was forgotten");
}

#[test]
fn a_transaction_happens_whole_or_not_at_all() {
    use convoy_store::{Expect, Write};
    let store = store();
    let shelf = Shelf::new("", "pods");
    let put =
        |name: &str, expect| Write::put(shelf.key("a", name), expect, Bytes::from_static(b"x"));
    let refused = store.write(Transaction::new(vec![
        put("new", Expect::Absent),
        put("missing", Expect::At(Revision(7))),
    ]));
    assert!(matches!(refused, Err(WriteError::Conflict(_))));
    assert_eq!(store.revision(), Revision(0));
    assert_eq!(store.snapshot().count(&shelf), 0);
}

#[test]
fn history_stays_within_its_budget() {
    let settings = Settings { inline: true, history_bytes_max: 10_000, ..Settings::default() };
    let store: Store<()> = Store::open(MemoryBackend, settings).unwrap();
    let shelf = Shelf::new("", "pods");
    for number in 0..100 {
        let value = Bytes::from(vec![0u8; 1_000]);
        store.write(Transaction::create(shelf.key("a", &format!("p{number}")), value)).unwrap();
    }
    assert!(store.watch(&shelf, Revision(1)).read().is_err());
    assert!(store.watch(&shelf, Revision(95)).read().is_ok());
}
