//! The signals that end a command.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Completes on the first SIGINT or SIGTERM.
pub(super) fn shutdown_signal() -> Result<impl Future<Output = ()>> {
    let mut signals = Signals::watch()?;
    Ok(async move { signals.next().await })
}

/// Completes on the second SIGINT or SIGTERM.
pub(super) fn second_signal() -> Result<impl Future<Output = ()>> {
    let mut signals = Signals::watch()?;
    Ok(async move {
        signals.next().await;
        signals.next().await;
    })
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn watch() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("could not watch for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("could not watch for SIGTERM")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
