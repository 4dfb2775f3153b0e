//! Calls to webhooks: over TLS only, within their time, answers bounded.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;

use crate::ask::Ask;
use crate::status::chain;

/// What an answer may be long.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// How a webhook is reached: made once per configuration, so that its connections serve again.
#[derive(Debug)]
pub(crate) struct Client {
    place: Place,
    http: Result<Http, String>,
}

type Http = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Where a webhook is.
#[derive(Debug)]
enum Place {
    Url(String),
    Service { namespace: String, name: String, path: String, port: u64 },
}

impl Client {
    /// Reads a `clientConfig`. What is wrong with it shows when the webhook is called.
    pub(crate) fn new(config: &Value) -> Self {
        let place = Place::read(config);
        let http = http(config, &place);
        Self { place, http }
    }

    /// Posts a review to the webhook; its answer, or why there is none.
    pub(crate) async fn call(
        &self,
        ask: &Ask,
        review: &Value,
        timeout: Duration,
    ) -> Result<Value, String> {
        let http = self.http.as_ref().map_err(Clone::clone)?;
        let url = with_timeout(&self.place.url(ask)?, timeout)?;
        let request = Request::post(&url)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::ACCEPT, "application/json")
            .body(Full::new(Bytes::from(review.to_string())))
            .map_err(|error| error.to_string())?;
        let posted = async {
            let response = http.request(request).await.map_err(|error| chain(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
        };
        let timed_out = |_| Err("context deadline exceeded".to_owned());
        let posted = tokio::time::timeout(timeout, posted).await.unwrap_or_else(timed_out);
        let (status, body) = posted.map_err(|why| format!("Post \"{url}\": {why}"))?;
        if !status.is_success() {
            return Err(format!(
                "an error on the server ({status}) has prevented the request from succeeding"
            ));
        }
        serde_json::from_slice(&body).map_err(|error| error.to_string())
    }
}

fn http(config: &Value, place: &Place) -> Result<Http, String> {
    let builder =
        hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls(config)?).https_only();
    let connector = match place {
        Place::Url(_) => builder.enable_http1().build(),
        Place::Service { namespace, name, .. } => {
            let name = ServerName::try_from(format!("{name}.{namespace}.svc"));
            let name = name.map_err(|error| error.to_string())?;
            let resolver = hyper_rustls::FixedServerNameResolver::new(name);
            builder.with_server_name_resolver(resolver).enable_http1().build()
        }
    };
    Ok(legacy::Client::builder(TokioExecutor::new()).build(connector))
}

fn with_timeout(url: &str, timeout: Duration) -> Result<Uri, String> {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}timeout={}s", timeout.as_secs())
        .parse()
        .map_err(|error: http::uri::InvalidUri| error.to_string())
}

/// The webhook's own authority is all that is trusted.
fn tls(client: &Value) -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    if let Some(bundle) = client["caBundle"].as_str() {
        let pem = STANDARD.decode(bundle).map_err(|error| format!("caBundle: {error}"))?;
        for certificate in CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok) {
            roots.add(certificate).map_err(|error| format!("caBundle: {error}"))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

impl Place {
    fn read(config: &Value) -> Self {
        if let Some(url) = config["url"].as_str() {
            return Self::Url(url.to_owned());
        }
        let service = &config["service"];
        let text = |field: &str| service[field].as_str().unwrap_or_default().to_owned();
        let port = service["port"].as_u64().unwrap_or(443);
        Self::Service { namespace: text("namespace"), name: text("name"), path: text("path"), port }
    }

    fn url(&self, ask: &Ask) -> Result<String, String> {
        let (namespace, name, path, port) = match self {
            Self::Url(url) => return Ok(url.clone()),
            Self::Service { namespace, name, path, port } => (namespace, name, path, *port),
        };
        let (host, port) = endpoint(ask, namespace, name, port)
            .ok_or_else(|| format!("no endpoints available for service {name:?}"))?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        Ok(format!("https://{host}:{port}/{}", path.trim_start_matches('/')))
    }
}

/// There is no cluster network here: a service is wherever its endpoints are.
fn endpoint(ask: &Ask, namespace: &str, name: &str, port: u64) -> Option<(String, u64)> {
    let read = |group: &str, plural: &str| {
        let resource = ask.registry.get(group, "v1", plural)?;
        let key = ask.cluster.shelf(resource).key(namespace, name);
        ask.server.store.snapshot().get(&key).map(|entry| crate::encoding::read_entry(entry))
    };
    let service = read("", "services")?;
    let mut ports = service["spec"]["ports"].as_array()?.iter();
    let port_name = ports.find(|one| one["port"].as_u64() == Some(port))?["name"].clone();
    let endpoints = read("", "endpoints")?;
    let mut subsets = endpoints["subsets"].as_array()?.iter();
    subsets.find_map(|subset| {
        let mut ports = subset["ports"].as_array()?.iter();
        let port = ports.find(|one| one["name"] == port_name)?["port"].as_u64()?;
        let address = subset["addresses"].as_array()?.first()?["ip"].as_str()?;
        Some((address.to_owned(), port))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_told_to_the_webhook() {
        let seconds = Duration::from_secs(7);
        assert_eq!(with_timeout("https://a/b", seconds).unwrap(), "https://a/b?timeout=7s");
        assert_eq!(with_timeout("https://a/b?c=d", seconds).unwrap(), "https://a/b?c=d&timeout=7s");
    }
}
