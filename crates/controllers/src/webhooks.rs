//! The admission and conversion webhooks of dialects: serves them over TLS, and keeps them registered at the API
//! server. `convoy-plan` decides what a webhook answers.
//!
//! Every replica serves and registers, leader or not: all of them write the same objects, and
//! each write is fenced by the version that was read.

mod certificate;
mod registration;
mod server;

use std::sync::Arc;
use std::time::Duration;

use convoy_plan::Dialect;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

use self::certificate::Certificate;
use self::registration::DEFINITIONS;
use self::server::Server;
use crate::fence::Fence;
use crate::request::Request;
use crate::transport::{self, Writer};

pub use self::certificate::CertificateError;
pub use self::registration::WebhookAddress;

/// The most attempts at a write that conflicts.
const ATTEMPTS: u32 = 5;
/// How long an API server may take to trust a new certificate authority.
const SETTLING: Duration = Duration::from_secs(10);
/// The delay after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// The longest sleep: the clock may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_hours(1);

/// How webhooks are served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of the secret.
    pub namespace: String,
    /// The secret that holds the certificate.
    pub secret: String,
    pub address: WebhookAddress,
}

/// Why webhooks are not registered.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("could not read or write {path} for the webhooks: {why}")]
    Object { path: String, why: String },
}

/// Serves the webhooks of `dialects` on `listener`, and registers them. Returns once they are
/// registered; a task goes on serving and registering them.
pub fn start(
    client: Client,
    dialects: Vec<&'static dyn Dialect>,
    listener: TcpListener,
    settings: Settings,
) -> BoxFuture<'static, Result<(), WebhookError>> {
    Box::pin(async move {
        let mut registrar = Registrar { client, dialects, settings, serving: None };
        let certificate = registrar.certificate().await?;
        registrar.serve(&certificate, Some(listener))?;
        registrar.register(&certificate).await?;
        tokio::spawn(registrar.run(certificate));
        Ok(())
    })
}

struct Registrar {
    client: Client,
    dialects: Vec<&'static dyn Dialect>,
    settings: Settings,
    serving: Option<watch::Sender<Arc<rustls::ServerConfig>>>,
}

impl Registrar {
    /// Checks the certificate, the configurations and the definitions whenever one of them changes,
    /// and when the certificate is due for renewal.
    async fn run(mut self, mut current: Certificate) {
        let mut changes = self.changes();
        let mut delay = Duration::ZERO;
        loop {
            tokio::select! {
                Some(()) = changes.next() => {}
                () = tokio::time::sleep(delay) => {}
            }
            match self.round(&current).await {
                Ok(newest) => {
                    let left = newest.renew_at().duration_since(Timestamp::now());
                    delay = Duration::try_from(left).unwrap_or(RETRY).min(SLEEP_MAX);
                    current = newest;
                }
                Err(error) => {
                    tracing::warn!(
                        why = transport::chain(&error),
                        "could not register the webhooks; retrying"
                    );
                    tokio::time::sleep(RETRY).await;
                    delay = Duration::ZERO;
                }
            }
        }
    }

    async fn round(&mut self, current: &Certificate) -> Result<Certificate, WebhookError> {
        let newest = self.certificate().await?;
        self.register(&newest).await?;
        if newest != *current {
            tracing::info!(expires = %newest.expires, "the webhooks have a new certificate");
            // The previous one is still trusted, the new one only once the server has read it.
            tokio::time::sleep(SETTLING).await;
            self.serve(&newest, None)?;
        }
        Ok(newest)
    }

    /// The certificate of the secret, renewed if it is no longer valid.
    async fn certificate(&self) -> Result<Certificate, WebhookError> {
        let Settings { namespace, secret: name, address } = &self.settings;
        let (names, now) = (address.names(), Timestamp::now());
        let collection = format!("/api/v1/namespaces/{namespace}/secrets");
        let secret = self.reconcile(&collection, name, |stored| {
            let known = stored.and_then(Certificate::read);
            if known.as_ref().is_some_and(|known| known.is_good(&names, now)) {
                return Ok(None);
            }
            let made = Certificate::make(&names, known.as_ref(), now)?;
            Ok(Some(made.secret(namespace, name, stored)))
        });
        let secret = secret.await?;
        Certificate::read(&secret).ok_or_else(|| WebhookError::Object {
            path: format!("{collection}/{name}"),
            why: "the stored secret is not the one that was written".to_owned(),
        })
    }

    /// Has the API server ask here, and trust the certificate.
    async fn register(&self, certificate: &Certificate) -> Result<(), WebhookError> {
        let place = &self.settings.address;
        for wanted in registration::wanted(&self.dialects, place, &certificate.bundle()) {
            let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
            let collection = registration::collection(&wanted);
            let settled = self.reconcile(&collection, name, |stored| {
                Ok(match stored {
                    None => Some(wanted.clone()),
                    Some(stored) => registration::corrected(stored, &wanted),
                })
            });
            settled.await?;
        }
        for conversion in registration::conversions(&self.dialects) {
            // A definition that is not there yet is one of the changes that are waited for.
            let settled = self.reconcile(DEFINITIONS, conversion.definition, |stored| {
                let bundle = certificate.bundle();
                Ok(stored.and_then(|it| registration::converting(it, conversion, place, &bundle)))
            });
            settled.await?;
        }
        Ok(())
    }

    /// Writes the object that `correct` makes of the stored one, and returns it; `correct` returns
    /// `None` if the stored one needs no change.
    async fn reconcile(
        &self,
        collection: &str,
        name: &str,
        correct: impl Fn(Option<&Value>) -> Result<Option<Value>, CertificateError>,
    ) -> Result<Value, WebhookError> {
        let path = format!("{collection}/{name}");
        let failed = |why: String| WebhookError::Object { path: path.clone(), why };
        // Every replica serves the webhooks, not just the leader, and all write the same.
        let writer = Writer::new(self.client.clone(), Fence::none());
        let mut attempt = 1;
        loop {
            let response = transport::read(&self.client, path.as_str()).await;
            let response = response.map_err(|error| failed(transport::chain(&error)))?;
            let stored = match response.code {
                404 => None,
                _ if response.is_success() => Some(response.body),
                _ => return Err(failed(response.message())),
            };
            let request = match (correct(stored.as_ref())?, stored) {
                (None, stored) => return Ok(stored.unwrap_or_default()),
                (Some(object), None) => Request::create(collection, object),
                (Some(object), Some(_)) => Request::replace(&path, object),
            };
            let response = writer.write(request).await;
            let response = response.map_err(|error| failed(transport::chain(&error)))?;
            if response.is_success() {
                tracing::info!(path, "wrote an object for the webhooks");
                return Ok(response.body);
            }
            if response.code != 409 || attempt == ATTEMPTS {
                return Err(failed(response.message()));
            }
            attempt += 1; // a conflict: read it again
        }
    }

    /// Uses a certificate for new connections; starts the server with the first one.
    fn serve(
        &mut self,
        certificate: &Certificate,
        listener: Option<TcpListener>,
    ) -> Result<(), CertificateError> {
        let config = certificate.server_config()?;
        if let Some(serving) = &self.serving {
            serving.send_replace(config);
        } else if let Some(listener) = listener {
            let (sender, receiver) = watch::channel(config);
            let server = Server::new(self.client.clone(), &self.dialects);
            tokio::spawn(server.run(listener, receiver));
            self.serving = Some(sender);
        }
        Ok(())
    }

    /// Yields whenever the secret, a configuration or a definition may have changed.
    fn changes(&self) -> BoxStream<'static, ()> {
        let Settings { namespace, secret, .. } = &self.settings;
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            plural: "secrets".to_owned(),
        };
        let secrets = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let mut all = vec![changes_of(secrets, secret)];
        for wanted in registration::wanted(&self.dialects, &self.settings.address, "") {
            let (kind, name) = (&wanted["kind"], &wanted["metadata"]["name"]);
            let kind = kind.as_str().unwrap_or_default();
            let api = self.objects("admissionregistration.k8s.io", kind);
            all.push(changes_of(api, name.as_str().unwrap_or_default()));
        }
        for conversion in registration::conversions(&self.dialects) {
            let api = self.objects("apiextensions.k8s.io", "CustomResourceDefinition");
            all.push(changes_of(api, conversion.definition));
        }
        stream::select_all(all).boxed()
    }

    /// The objects of a kind that has no namespaces.
    fn objects(&self, group: &str, kind: &str) -> Api<PartialObjectMeta<DynamicObject>> {
        let resource = ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: format!("{group}/v1"),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
        };
        Api::all_with(self.client.clone(), &resource)
    }
}

fn changes_of(api: Api<PartialObjectMeta<DynamicObject>>, name: &str) -> BoxStream<'static, ()> {
    let config = Config::default().fields(&format!("metadata.name={name}"));
    // If it cannot be watched, it is still checked at intervals.
    watcher(api, config).default_backoff().map(drop).boxed()
}
