//! The watch phase: many watchers of one kind, and writers that create objects.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use memchr::memmem;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::connection::Connection;
use crate::objects::{self, Kind};
use crate::target::Target;

#[derive(Debug, clap::Args)]
pub(crate) struct Watch {
    #[arg(long, default_value = "default")]
    namespace: String,
    #[arg(long, default_value_t = 100)]
    watchers: usize,
    #[arg(long, default_value_t = 16)]
    writers: usize,
    /// Number of objects to create; every watcher should see each
    #[arg(long, default_value_t = 10_000)]
    count: usize,
    /// Timeout in seconds
    #[arg(long, default_value_t = 30)]
    seconds: u64,
}

/// Shared counters of watchers and writers, which run on one thread.
#[derive(Debug, Default)]
struct Tally {
    written: Cell<usize>,
    delivered: Cell<usize>,
    bytes: Cell<usize>,
    /// Watches that the server closed early.
    ended: Cell<usize>,
}

/// The first bytes of an ADDED event. No object contains these bytes, and both servers start a chunk
/// with an event, so that no chunk boundary splits them.
const EVENT: &[u8] = b"{\"type\":\"ADDED\"";

pub(crate) async fn watch(target: &Target, watch: Watch) -> Result<Value> {
    let Watch { namespace, watchers, writers, count, seconds } = watch;
    let tally = Rc::new(Tally::default());
    let local = LocalSet::new();
    let request = watch_request(&namespace);
    for _ in 0..watchers {
        let mut connection = Connection::open(target).await?;
        let code = connection.follow(&request).await?;
        ensure!(code == 200, "a watch request failed with status {code}");
        local.spawn_local(follow(connection, Rc::clone(&tally)));
    }
    let mut connections = Vec::new();
    for _ in 0..writers {
        connections.push(Connection::open(target).await?);
    }
    let next = Rc::new(Cell::new(0));
    let begun = Instant::now();
    let until = begun + Duration::from_secs(seconds);
    for connection in connections {
        let (namespace, next, tally) = (namespace.clone(), Rc::clone(&next), Rc::clone(&tally));
        local.spawn_local(async move {
            if let Err(error) = write(connection, &namespace, (count, until), &next, &tally).await {
                eprintln!("a writer failed: {error:#}");
            }
        });
    }
    local.run_until(wait_for_all(&tally, count * watchers, until)).await;
    Ok(json!({
        "count": tally.delivered.get(), "seconds": begun.elapsed().as_secs_f64(),
        "bytes": tally.bytes.get(), "written": tally.written.get(),
        "missing": (tally.written.get() * watchers).saturating_sub(tally.delivered.get()),
        "ended": tally.ended.get(),
    }))
}

/// Starts at the newest revision, without events for existing objects.
fn watch_request(namespace: &str) -> Vec<u8> {
    let path = objects::path(Kind::ConfigMap, namespace, None);
    let newest = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    objects::get(&format!("{path}?watch=true&{newest}&timeoutSeconds=120"))
}

async fn wait_for_all(tally: &Tally, wanted: usize, until: Instant) {
    while tally.delivered.get() < wanted && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn follow(mut connection: Connection, tally: Rc<Tally>) {
    let mut bytes = Vec::new();
    while let Ok(Some(())) = connection.next_bytes(&mut bytes).await {
        tally.delivered.set(tally.delivered.get() + memmem::find_iter(&bytes, EVENT).count());
        tally.bytes.set(tally.bytes.get() + bytes.len());
        keep_tail(&mut bytes);
    }
    tally.ended.set(tally.ended.get() + 1);
}

/// Drops counted bytes, and keeps those that could be the start of an event.
fn keep_tail(bytes: &mut Vec<u8>) {
    let longest = (1..EVENT.len()).rev().find(|length| bytes.ends_with(&EVENT[..*length]));
    bytes.drain(..bytes.len() - longest.unwrap_or(0));
}

async fn write(
    mut connection: Connection,
    namespace: &str,
    (count, until): (usize, Instant),
    next: &Cell<usize>,
    tally: &Tally,
) -> Result<()> {
    loop {
        let number = next.replace(next.get() + 1);
        if number >= count || Instant::now() >= until {
            return Ok(());
        }
        let request = objects::create(Kind::ConfigMap, namespace, number);
        let response = connection.exchange(&request).await?;
        if response.code != 201 {
            bail!("unexpected status {}", response.code);
        }
        tally.written.set(tally.written.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_in_two_pieces_is_counted_once() {
        for cut in 0..=EVENT.len() {
            let (head, rest) = EVENT.split_at(cut);
            let mut bytes = [b"x{\"type", head].concat();
            let mut found = memmem::find_iter(&bytes, EVENT).count();
            keep_tail(&mut bytes);
            bytes.extend_from_slice(rest);
            bytes.extend_from_slice(b",\"object\":{}}\n");
            found += memmem::find_iter(&bytes, EVENT).count();
            assert_eq!(found, 1, "{cut}");
        }
    }
}
