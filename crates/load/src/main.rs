//! Load for an API server on loopback, made as cheaply as it can be: it shares the machine with
//! the server that it measures. Requests are prepared bytes over HTTP/1.1, kept alive, inside
//! TLS; answers are counted, not parsed. `cargo xtask bench apiserver` runs it against ours and
//! against Kubernetes' own, with the same arguments.

mod connection;
mod objects;
mod pace;
mod phases;
mod target;
mod watchers;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use target::Target;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Puts an API server on loopback under load, and prints one line of JSON with what it bore
#[derive(Debug, Parser)]
struct Arguments {
    /// Where the server listens; loopback only
    #[arg(long)]
    server: SocketAddr,
    /// The client's certificate, in PEM
    #[arg(long, requires = "key")]
    certificate: Option<PathBuf>,
    /// The client's key, in PEM
    #[arg(long)]
    key: Option<PathBuf>,
    #[command(subcommand)]
    phase: Phase,
}

#[derive(Debug, Subcommand)]
enum Phase {
    /// Waits until the server says that it is ready
    Ready {
        /// For so many seconds at most
        #[arg(long, default_value_t = 120)]
        seconds: u64,
    },
    /// Creates objects, until there are `count` or the time is over
    Create(phases::Create),
    /// Gets objects by name, in random order
    Get(phases::Get),
    /// Lists a namespace's config maps
    List(phases::List),
    /// Counts the events that watchers are sent while writers write
    Watch(watchers::Watch),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<()> {
    let Arguments { server, certificate, key, phase } = arguments;
    let target = Target::new(server, certificate.as_deref().zip(key.as_deref()))?;
    // One thread: the other core, and what is left of this one, are the server's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("could not start the runtime")?;
    let report = runtime.block_on(async {
        match phase {
            Phase::Ready { seconds } => phases::ready(&target, seconds).await,
            Phase::Create(create) => phases::create(&target, create).await,
            Phase::Get(get) => phases::get(&target, get).await,
            Phase::List(list) => phases::list(&target, list).await,
            Phase::Watch(watch) => watchers::watch(&target, watch).await,
        }
    })?;
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}
