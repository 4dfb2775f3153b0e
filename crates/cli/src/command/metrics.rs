//! The metrics endpoint of the controllers.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use convoy_controllers::metrics::Metrics;
use convoy_controllers::serve::{Endpoint, Process, Profiles};

use crate::logging;

/// Starts serving metrics, health and what helps to find faults on `address`, and prints the address.
pub(crate) async fn serve(address: SocketAddr, metrics: Arc<Metrics>) -> Result<()> {
    let failed = || format!("could not serve metrics on {address}");
    let endpoint = Endpoint::bind(address).await.with_context(failed)?;
    let served = endpoint.address().with_context(failed)?;
    logging::announce(&format!("serving metrics on http://{served}/metrics"));
    let process = Process { metrics, log_level: &logging::CURRENT, profiles: PROFILES };
    tokio::spawn(endpoint.run(process));
    Ok(())
}

#[cfg(feature = "profiles")]
const PROFILES: Option<&'static dyn Profiles> = Some(&super::profile::Sampler);

#[cfg(not(feature = "profiles"))]
const PROFILES: Option<&'static dyn Profiles> = None;
