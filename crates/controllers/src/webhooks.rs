//! The admission webhooks of dialects on an API server: served over TLS, registered there, and
//! kept so. What they answer is decided in `convoy-plan`; here it is carried.
//!
//! Every replica serves and keeps, whoever leads: all of them come to the same objects, and
//! each write is fenced by the version that was read.

mod certificate;
mod registration;
mod server;

use std::sync::Arc;
use std::time::Duration;

use convoy_plan::Dialect;
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
use self::server::Server;
use crate::api;
use crate::request::Request;

pub use self::certificate::CertificateError;
pub use self::registration::Place;

/// How often something is tried again that somebody else was faster with.
const ATTEMPTS: u32 = 5;
/// How long an API server may take to trust a new authority.
const SETTLING: Duration = Duration::from_secs(10);
/// The pause after something failed.
const RETRY: Duration = Duration::from_secs(5);
/// How long nobody looks, at most: clocks may be set.
const SLEEP_MAX: Duration = Duration::from_hours(1);

/// How webhooks are served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the secret is.
    pub namespace: String,
    /// What the certificate is kept in.
    pub secret: String,
    pub place: Place,
}

/// Why webhooks are not registered.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("could not read or write {path} for the webhooks: {why}")]
    Object { path: String, why: String },
}

/// Serves the webhooks of `dialects` on `listener`, and registers them. Returns once the API
/// server was told; everything goes on for as long as the process.
pub async fn start(
    client: Client,
    dialects: Vec<&'static dyn Dialect>,
    listener: TcpListener,
    settings: Settings,
) -> Result<(), WebhookError> {
    let mut keeper = Keeper { client, dialects, settings, serving: None };
    let certificate = keeper.certificate().await?;
    keeper.serve(&certificate, Some(listener))?;
    keeper.register(&certificate).await?;
    tokio::spawn(keeper.run(certificate));
    Ok(())
}

struct Keeper {
    client: Client,
    dialects: Vec<&'static dyn Dialect>,
    settings: Settings,
    serving: Option<watch::Sender<Arc<rustls::ServerConfig>>>,
}

impl Keeper {
    /// Looks after the certificate and the configurations whenever one of them changes, and in
    /// time for the next certificate.
    async fn run(mut self, mut current: Certificate) {
        let mut changes = self.changes();
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                Some(()) = changes.next() => {}
                () = tokio::time::sleep(pause) => {}
            }
            match self.round(&current).await {
                Ok(newest) => {
                    let left = newest.renew_at().duration_since(Timestamp::now());
                    pause = Duration::try_from(left).unwrap_or(RETRY).min(SLEEP_MAX);
                    current = newest;
                }
                Err(error) => {
                    tracing::warn!(why = api::chain(&error), "webhooks are not as they should be");
                    tokio::time::sleep(RETRY).await;
                    pause = Duration::ZERO;
                }
            }
        }
    }

    async fn round(&mut self, current: &Certificate) -> Result<Certificate, WebhookError> {
        let newest = self.certificate().await?;
        self.register(&newest).await?;
        if newest != *current {
            tracing::info!(expires = %newest.expires, "webhooks change their certificate");
            // The one before is trusted still, this one only once the server has seen it.
            tokio::time::sleep(SETTLING).await;
            self.serve(&newest, None)?;
        }
        Ok(newest)
    }

    /// The certificate of the secret, made anew where it is not good any more.
    async fn certificate(&self) -> Result<Certificate, WebhookError> {
        let Settings { namespace, secret: name, place } = &self.settings;
        let (names, now) = (place.names(), Timestamp::now());
        let collection = format!("/api/v1/namespaces/{namespace}/secrets");
        let secret = self.settle(&collection, name, |stored| {
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
            why: "the server keeps something else than was written".to_owned(),
        })
    }

    /// Has the API server ask here, and trust the certificate.
    async fn register(&self, certificate: &Certificate) -> Result<(), WebhookError> {
        let place = &self.settings.place;
        for wanted in registration::wanted(&self.dialects, place, &certificate.bundle()) {
            let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
            let collection = registration::collection(&wanted);
            let settled = self.settle(&collection, name, |stored| {
                Ok(match stored {
                    None => Some(wanted.clone()),
                    Some(stored) => registration::corrected(stored, &wanted),
                })
            });
            settled.await?;
        }
        Ok(())
    }

    /// Brings an object to what it should be, as `correct` says of what is there; the object.
    async fn settle(
        &self,
        collection: &str,
        name: &str,
        correct: impl Fn(Option<&Value>) -> Result<Option<Value>, CertificateError>,
    ) -> Result<Value, WebhookError> {
        let path = format!("{collection}/{name}");
        let failed = |why: String| WebhookError::Object { path: path.clone(), why };
        let mut attempt = 1;
        loop {
            let answer = api::send(&self.client, Request::get(path.as_str())).await;
            let answer = answer.map_err(|error| failed(api::chain(&error)))?;
            let stored = match answer.code {
                404 => None,
                _ if answer.is_success() => Some(answer.body),
                _ => return Err(failed(answer.message())),
            };
            let request = match (correct(stored.as_ref())?, stored) {
                (None, stored) => return Ok(stored.unwrap_or_default()),
                (Some(object), None) => Request::create(collection, object),
                (Some(object), Some(_)) => Request::replace(&path, object),
            };
            let answer = api::send(&self.client, request).await;
            let answer = answer.map_err(|error| failed(api::chain(&error)))?;
            if answer.is_success() {
                tracing::info!(path, "written for the webhooks");
                return Ok(answer.body);
            }
            if answer.code != 409 || attempt == ATTEMPTS {
                return Err(failed(answer.message()));
            }
            attempt += 1; // somebody else was faster: look again
        }
    }

    /// Serves connections to come with a certificate; begins with the first.
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

    /// Comes by whenever the secret or a configuration may have changed.
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
        for wanted in registration::wanted(&self.dialects, &self.settings.place, "") {
            let (kind, name) = (&wanted["kind"], &wanted["metadata"]["name"]);
            let kind = kind.as_str().unwrap_or_default();
            let group = "admissionregistration.k8s.io";
            let resource = ApiResource {
                group: group.to_owned(),
                version: "v1".to_owned(),
                api_version: format!("{group}/v1"),
                kind: kind.to_owned(),
                plural: format!("{}s", kind.to_lowercase()),
            };
            let api = Api::all_with(self.client.clone(), &resource);
            all.push(changes_of(api, name.as_str().unwrap_or_default()));
        }
        stream::select_all(all).boxed()
    }
}

fn changes_of(api: Api<PartialObjectMeta<DynamicObject>>, name: &str) -> BoxStream<'static, ()> {
    let config = Config::default().fields(&format!("metadata.name={name}"));
    // What cannot be watched is looked at every so often all the same.
    watcher(api, config).default_backoff().map(drop).boxed()
}
