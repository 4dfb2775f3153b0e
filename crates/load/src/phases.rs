//! The create, get and list phases. Every client has its own connection and one request in
//! progress.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::connection::{Connection, ResponseSummary};
use crate::objects::{self, Kind};
use crate::pace::Pace;
use crate::target::Target;

#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    #[arg(long, value_enum, default_value_t = Kind::ConfigMap)]
    kind: Kind,
    #[arg(long, default_value = "default")]
    namespace: String,
    #[arg(long, default_value_t = 64)]
    clients: usize,
    #[arg(long)]
    count: usize,
    /// Timeout in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    #[arg(long, default_value = "default")]
    namespace: String,
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Number of objects to choose from
    #[arg(long)]
    count: usize,
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[arg(long, default_value = "default")]
    namespace: String,
    #[arg(long, default_value_t = 4)]
    clients: usize,
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

/// Polls at a short interval, because the time of the first response is the result.
pub(crate) async fn ready(target: &Target, seconds: u64) -> Result<Value> {
    let begun = Instant::now();
    let request = objects::get("/readyz");
    while begun.elapsed() < Duration::from_secs(seconds) {
        let asked = async { Connection::open(target).await?.exchange(&request).await };
        if let Ok(ResponseSummary { code: 200, .. }) = asked.await {
            return Ok(json!({"seconds": begun.elapsed().as_secs_f64()}));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    bail!("not ready after {seconds} s")
}

pub(crate) async fn create(target: &Target, create: Create) -> Result<Value> {
    let Create { kind, namespace, clients, count, seconds } = create;
    let next = Cell::new(0);
    let make = move || {
        let number = next.replace(next.get() + 1);
        (number < count).then(|| objects::create(kind, &namespace, number))
    };
    everyone(target, clients, seconds, 201, make).await
}

pub(crate) async fn get(target: &Target, get: Get) -> Result<Value> {
    let Get { namespace, clients, count, seconds } = get;
    ensure!(count > 0, "--count must be positive");
    let state = Cell::new(0x9e37_79b9_7f4a_7c15_u64);
    let make = move || {
        let number = random(&state) % count as u64;
        Some(objects::get(&objects::path(
            Kind::ConfigMap,
            &namespace,
            usize::try_from(number).ok(),
        )))
    };
    everyone(target, clients, seconds, 200, make).await
}

pub(crate) async fn list(target: &Target, list: List) -> Result<Value> {
    let List { namespace, clients, seconds } = list;
    let request = objects::get(&objects::path(Kind::ConfigMap, &namespace, None));
    everyone(target, clients, seconds, 200, move || Some(request.clone())).await
}

/// Every client sends requests one after the other, until none is left or the time is up. Every
/// response must have the status `code`.
async fn everyone(
    target: &Target,
    clients: usize,
    seconds: u64,
    code: u16,
    make: impl Fn() -> Option<Vec<u8>> + 'static,
) -> Result<Value> {
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(Connection::open(target).await?);
    }
    let make = Rc::new(make);
    let local = LocalSet::new();
    let begun = Instant::now();
    let until = begun + Duration::from_secs(seconds);
    let clients: Vec<_> = connections
        .into_iter()
        .map(|connection| local.spawn_local(client(connection, until, code, Rc::clone(&make))))
        .collect();
    local
        .run_until(async {
            let mut paces = Vec::new();
            for client in clients {
                paces.push(client.await??);
            }
            Ok(Pace::report(paces, begun))
        })
        .await
}

async fn client(
    mut connection: Connection,
    until: Instant,
    code: u16,
    make: Rc<impl Fn() -> Option<Vec<u8>>>,
) -> Result<Pace> {
    let mut pace = Pace::default();
    loop {
        let sent = Instant::now();
        if sent >= until {
            return Ok(pace);
        }
        let Some(request) = make() else { return Ok(pace) };
        let response = connection.exchange(&request).await?;
        if response.code != code {
            bail!("unexpected status {}: {}", response.code, String::from_utf8_lossy(&request));
        }
        pace.add(sent.elapsed(), response.bytes);
    }
}

/// Marsaglia's xorshift; random enough to spread gets over objects.
fn random(state: &Cell<u64>) -> u64 {
    let mut x = state.get();
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state.set(x);
    x
}
