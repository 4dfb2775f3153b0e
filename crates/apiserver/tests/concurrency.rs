//! Many clients at once: compare-and-swap through the whole server is linearizable, and watches
//! see every write once and in order, while history is compacted under them.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use convoy_apiserver::object_meta::Store;
use convoy_apiserver::server::{Limits, Server};
use convoy_apiserver::surroundings::System;
use convoy_apiserver::transport::Transport;
use convoy_store::{MemoryBackend, Revision, Settings};
use convoy_testkit::history::{Operation, check_linearizable};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

const WRITERS: u64 = 32;
const INCREMENTS: u64 = 8;

async fn server() -> (Arc<Server>, Api<ConfigMap>) {
    let store = Store::open(MemoryBackend, Settings::default()).unwrap();
    let server = Arc::new(Server::new(store, Arc::<System>::default(), Limits::default()));
    let client = Client::new(Transport::trusted(&server, ""), "default");
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    (server, Api::default_namespaced(client))
}

fn map(name: &str, value: u64) -> ConfigMap {
    serde_json::from_value(
        json!({"metadata": {"name": name}, "data": {"value": value.to_string()}}),
    )
    .unwrap()
}

fn value(map: &ConfigMap) -> u64 {
    map.data.as_ref().unwrap()["value"].parse().unwrap()
}

fn revision(map: &ConfigMap) -> u64 {
    map.resource_version().unwrap().parse().unwrap()
}

/// What all clients tell the time by: it only ever grows.
fn tick() -> u64 {
    static CLOCK: AtomicU64 = AtomicU64::new(0);
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// Adds one to the counter as clients do: get, change, put, and again after a conflict.
async fn increment(maps: &Api<ConfigMap>, history: &mut Vec<Operation>) {
    loop {
        let begun = tick();
        let mut counter = maps.get("counter").await.unwrap();
        let (ended, found) = (tick(), value(&counter));
        let at = revision(&counter);
        history.push(Operation { is_write: false, begun, ended, revision: at, value: found });
        counter.data = map("counter", found + 1).data;
        let begun = tick();
        match maps.replace("counter", &PostParams::default(), &counter).await {
            Ok(written) => {
                let (ended, at, value) = (tick(), revision(&written), value(&written));
                history.push(Operation { is_write: true, begun, ended, revision: at, value });
                return;
            }
            Err(kube::Error::Api(status)) => assert_eq!(status.code, 409, "{status:?}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn compare_and_swap_is_linearizable_under_32_clients() {
    let (_server, maps) = server().await;
    let begun = tick();
    let first = maps.create(&PostParams::default(), &map("counter", 0)).await.unwrap();
    let (ended, at) = (tick(), revision(&first));
    let mut history = vec![Operation { is_write: true, begun, ended, revision: at, value: 0 }];
    let clients: Vec<_> = (0..WRITERS)
        .map(|_| {
            let maps = maps.clone();
            tokio::spawn(async move {
                let mut history = Vec::new();
                for _ in 0..INCREMENTS {
                    increment(&maps, &mut history).await;
                }
                history
            })
        })
        .collect();
    for client in clients {
        history.extend(client.await.unwrap());
    }
    assert_eq!(check_linearizable(&history), Ok(()));
    assert_eq!(value(&maps.get("counter").await.unwrap()), WRITERS * INCREMENTS);
}

/// Creates, changes and deletes objects of one's own.
async fn write_some(maps: Api<ConfigMap>, writer: u64) {
    for number in 0..60 {
        let name = format!("m{writer}-{}", number % 7);
        match maps.get_opt(&name).await.unwrap() {
            None => {
                maps.create(&PostParams::default(), &map(&name, number)).await.unwrap();
            }
            Some(_) if number % 5 == 0 => {
                maps.delete(&name, &DeleteParams::default()).await.unwrap();
            }
            Some(mut found) => {
                found.data = map(&name, number).data;
                maps.replace(&name, &PostParams::default(), &found).await.unwrap();
            }
        }
    }
}

/// What a client knows that lists, watches, and lists again when it has fallen behind. Nothing
/// else is written meanwhile, so the revisions it sees have no gap.
async fn follow(maps: Api<ConfigMap>, until: &str) -> BTreeMap<String, u64> {
    'list: loop {
        let list = maps.list(&ListParams::default()).await.unwrap();
        let mut last: u64 = list.metadata.resource_version.unwrap().parse().unwrap();
        let mut known: BTreeMap<String, u64> =
            list.items.iter().map(|map| (map.name_any(), value(map))).collect();
        if known.contains_key(until) {
            return known;
        }
        let events = maps.watch(&WatchParams::default(), &last.to_string()).await.unwrap();
        let mut events = events.boxed();
        while let Some(event) = events.try_next().await.unwrap() {
            let (map, is_gone) = match event {
                WatchEvent::Added(map) | WatchEvent::Modified(map) => (map, false),
                WatchEvent::Deleted(map) => (map, true),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => {
                    assert_eq!(status.code, 410, "{status:?}");
                    continue 'list;
                }
            };
            assert_eq!(revision(&map), last + 1, "one kind, so no gap and nothing twice");
            last = revision(&map);
            if is_gone {
                assert!(known.remove(&map.name_any()).is_some(), "it was known");
            } else {
                known.insert(map.name_any(), value(&map));
            }
            if known.contains_key(until) {
                return known;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watches_see_every_write_in_order_while_history_is_compacted() {
    let (server, maps) = server().await;
    let watchers: Vec<_> = (0..6)
        .map(|_| {
            let maps = maps.clone();
            tokio::spawn(async move { follow(maps, "done").await })
        })
        .collect();
    let store = server.store.clone();
    let compactor = tokio::spawn(async move {
        loop {
            // Close behind the newest: who is slow has to list again.
            store.compact(Revision(store.revision().0.saturating_sub(20))).unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let writers: Vec<_> =
        (0..4).map(|writer| tokio::spawn(write_some(maps.clone(), writer))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    maps.create(&PostParams::default(), &map("done", 0)).await.unwrap();
    compactor.abort();
    let list = maps.list(&ListParams::default()).await.unwrap();
    let there: BTreeMap<String, u64> =
        list.items.iter().map(|map| (map.name_any(), value(map))).collect();
    for watcher in watchers {
        let known = tokio::time::timeout(Duration::from_secs(30), watcher).await.unwrap().unwrap();
        assert_eq!(known, there);
    }
}
