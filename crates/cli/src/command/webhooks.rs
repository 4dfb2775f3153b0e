//! The webhook flags of `convoy run`.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use convoy_controllers::connect::Connection;
use convoy_controllers::webhooks::{Settings, WebhookAddress, start};
use convoy_plan::Dialect;
use tokio::net::TcpListener;

/// How to serve and register the admission and conversion webhooks of the dialects.
#[derive(Debug, clap::Args)]
pub(crate) struct Webhooks {
    /// Serve the admission and conversion webhooks here, over TLS, and register them; port 0 picks a
    /// free port
    #[arg(long = "webhook-listen", value_name = "ADDRESS", conflicts_with = "observe")]
    listen: Option<SocketAddr>,
    /// Service through which the API server calls the webhooks, on port 443
    #[arg(long = "webhook-service", value_name = "NAME", default_value = "convoy-webhook")]
    service: String,
    /// Namespace of the webhook Service and Secret
    #[arg(long = "webhook-namespace", value_name = "NAMESPACE", default_value = "convoy-system")]
    namespace: String,
    /// Secret that holds the webhook certificate
    #[arg(long = "webhook-secret", value_name = "NAME", default_value = "webhook-cert")]
    secret: String,
    /// Host name or IP address at which the API server reaches this process, instead of the
    /// Service; for running outside the cluster
    #[arg(long = "webhook-host", value_name = "HOST", requires = "listen")]
    host: Option<String>,
}

impl Webhooks {
    /// Serves and registers the webhooks, if `--webhook-listen` is set; whether it is.
    pub(crate) async fn start(
        self,
        connection: &Connection,
        dialects: &[&'static dyn Dialect],
    ) -> Result<bool> {
        let Self { listen, service, namespace, secret, host } = self;
        let Some(address) = listen else { return Ok(false) };
        let mut all = dialects.iter();
        if all.all(|it| it.webhooks().is_empty() && it.conversions().is_empty()) {
            bail!(
                "no selected dialect has webhooks; remove --webhook-listen, or add skyhook, fleet, \
                 ocm or karpenter"
            );
        }
        let failed = || format!("could not serve webhooks on {address}");
        let listener = TcpListener::bind(address).await.with_context(failed)?;
        let port = listener.local_addr().with_context(failed)?.port();
        let address = match host {
            Some(host) => WebhookAddress::Host { host, port },
            None => WebhookAddress::Service { namespace: namespace.clone(), name: service },
        };
        let settings = Settings { namespace, secret, address };
        start(connection.client.clone(), dialects.to_vec(), listener, settings).await?;
        Ok(true)
    }
}
