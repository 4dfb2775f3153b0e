//! The flags of `convoy run` about admission webhooks.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use convoy_controllers::connect::Connection;
use convoy_controllers::webhooks::{Place, Settings, start};
use convoy_plan::Dialect;
use tokio::net::TcpListener;

/// How the webhooks of the dialects are served.
#[derive(Debug, clap::Args)]
pub(crate) struct Webhooks {
    /// Serve the admission webhooks of the dialects here, over TLS, and register them; port 0
    /// takes a free one
    #[arg(long = "webhook-listen", value_name = "ADDRESS", conflicts_with = "observe")]
    listen: Option<SocketAddr>,
    /// The service by which the API server reaches the webhooks, at port 443
    #[arg(long = "webhook-service", value_name = "NAME", default_value = "convoy-webhook")]
    service: String,
    /// The namespace of that service, and of the secret
    #[arg(long = "webhook-namespace", value_name = "NAMESPACE", default_value = "convoy-system")]
    namespace: String,
    /// The secret that the certificate of the webhooks is kept in
    #[arg(long = "webhook-secret", value_name = "NAME", default_value = "webhook-cert")]
    secret: String,
    /// Outside the cluster: the name or address by which the API server reaches this process,
    /// in place of a service
    #[arg(long = "webhook-host", value_name = "HOST", requires = "listen")]
    host: Option<String>,
}

impl Webhooks {
    /// Serves and registers what was asked for.
    pub(crate) async fn start(
        self,
        connection: &Connection,
        dialects: &[&'static dyn Dialect],
    ) -> Result<()> {
        let Self { listen, service, namespace, secret, host } = self;
        let Some(address) = listen else { return Ok(()) };
        if dialects.iter().all(|dialect| dialect.webhooks().is_empty()) {
            bail!("none of the dialects has webhooks: leave out --webhook-listen, or add skyhook");
        }
        let failed = || format!("could not serve webhooks on {address}");
        let listener = TcpListener::bind(address).await.with_context(failed)?;
        let port = listener.local_addr().with_context(failed)?.port();
        let place = match host {
            Some(host) => Place::Host { host, port },
            None => Place::Service { namespace: namespace.clone(), name: service },
        };
        let settings = Settings { namespace, secret, place };
        start(connection.client.clone(), dialects.to_vec(), listener, settings).await?;
        Ok(())
    }
}
