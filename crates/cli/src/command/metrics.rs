//! The metrics endpoint of the controllers.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use convoy_controllers::metrics::Metrics;
use convoy_controllers::serve::{Endpoint, Process};

use crate::logging;

/// Starts serving `/metrics`, `/healthz`, `/readyz` and `/debug/log-level` on `address`, and prints the address.
pub(crate) async fn serve(address: SocketAddr, metrics: Arc<Metrics>) -> Result<()> {
    let failed = || format!("could not serve metrics on {address}");
    let endpoint = Endpoint::bind(address).await.with_context(failed)?;
    let served = endpoint.address().with_context(failed)?;
    logging::announce(&format!("serving metrics on http://{served}/metrics"));
    tokio::spawn(endpoint.run(Process { metrics, log_level: &logging::CURRENT }));
    Ok(())
}
