//! A load generator for API servers on loopback. It shares the machine with the server, so it does
//! as little as possible: requests are prepared bytes over HTTP/1.1 and TLS, responses are counted
//! and not parsed. `cargo xtask bench apiserver` runs it against Convoy and kube-apiserver.

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

/// Put load on an API server on loopback, and print the result as one line of JSON
#[derive(Debug, Parser)]
struct Arguments {
    /// Address of the server; loopback only
    #[arg(long)]
    server: SocketAddr,
    /// Client certificate (PEM)
    #[arg(long, requires = "key")]
    certificate: Option<PathBuf>,
    /// Client key (PEM)
    #[arg(long)]
    key: Option<PathBuf>,
    #[command(subcommand)]
    phase: Phase,
}

#[derive(Debug, Subcommand)]
enum Phase {
    /// Wait until the server is ready
    Ready {
        /// Timeout in seconds
        #[arg(long, default_value_t = 120)]
        seconds: u64,
    },
    /// Create objects
    Create(phases::Create),
    /// Get objects by name, in random order
    Get(phases::Get),
    /// List the config maps of a namespace
    List(phases::List),
    /// Count the events that watchers receive while writers create objects
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
    // One thread, so that the server has the other cores.
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
