//! The metrics endpoint of the controllers.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use convoy_controllers::metrics::Metrics;
use convoy_controllers::serve::Endpoint;

/// Starts serving `/metrics`, `/healthz` and `/readyz` on `address`, and prints the address.
pub(crate) async fn serve(address: SocketAddr, metrics: Arc<Metrics>) -> Result<()> {
    let failed = || format!("could not serve metrics on {address}");
    let endpoint = Endpoint::bind(address).await.with_context(failed)?;
    eprintln!("serving metrics on http://{}/metrics", endpoint.address().with_context(failed)?);
    tokio::spawn(endpoint.run(metrics));
    Ok(())
}
