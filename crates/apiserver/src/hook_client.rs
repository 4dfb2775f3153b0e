//! Calls to remote webhooks: over TLS, with a timeout, with responses of limited size, and without
//! following redirects.

mod address;

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

use crate::status::chain;
use address::Resolver;

/// The most bytes of a response.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Where services are reached.
pub(crate) trait Services: Sync {
    /// The address and port behind a port of a service.
    fn endpoint(&self, namespace: &str, name: &str, port: u64) -> Option<(String, u64)>;
}

/// How a webhook is reached: made once per configuration, so that its connections serve again.
#[derive(Debug)]
pub(crate) struct Client {
    address: WebhookAddress,
    http: Result<Http, String>,
}

type Http = legacy::Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// The address of a webhook, from its `clientConfig`.
#[derive(Debug)]
enum WebhookAddress {
    Url(String),
    Service { namespace: String, name: String, path: String, port: u64 },
}

impl Client {
    /// Reads a `clientConfig`. Errors in it are reported when the webhook is called.
    pub(crate) fn new(config: &Value) -> Self {
        let address = WebhookAddress::read(config);
        let http = http(config, &address);
        Self { address, http }
    }

    /// Posts a review to the webhook and returns its response, or the reason of the failure.
    pub(crate) async fn call(
        &self,
        services: &dyn Services,
        review: &Value,
        timeout: Duration,
    ) -> Result<Value, String> {
        let http = self.http.as_ref().map_err(Clone::clone)?;
        let url = with_timeout(&self.address.url(services)?, timeout)?;
        address::check(&url).map_err(|why| format!("Post \"{url}\": {why}"))?;
        let http_request = Request::post(&url)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::ACCEPT, "application/json")
            .body(Full::new(Bytes::from(review.to_string())))
            .map_err(|error| error.to_string())?;
        let posted = async {
            let response = http.request(http_request).await.map_err(|error| chain(&error))?;
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

fn http(config: &Value, address: &WebhookAddress) -> Result<Http, String> {
    let builder =
        hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls(config)?).https_only();
    let mut tcp = HttpConnector::new_with_resolver(Resolver::new());
    tcp.enforce_http(false);
    let connector = match address {
        WebhookAddress::Url(_) => builder.enable_http1().wrap_connector(tcp),
        WebhookAddress::Service { namespace, name, .. } => {
            let name = ServerName::try_from(format!("{name}.{namespace}.svc"));
            let name = name.map_err(|error| error.to_string())?;
            let resolver = hyper_rustls::FixedServerNameResolver::new(name);
            builder.with_server_name_resolver(resolver).enable_http1().wrap_connector(tcp)
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

impl WebhookAddress {
    fn read(config: &Value) -> Self {
        if let Some(url) = config["url"].as_str() {
            return Self::Url(url.to_owned());
        }
        let service = &config["service"];
        let text = |field: &str| service[field].as_str().unwrap_or_default().to_owned();
        let port = service["port"].as_u64().unwrap_or(443);
        Self::Service { namespace: text("namespace"), name: text("name"), path: text("path"), port }
    }

    fn url(&self, services: &dyn Services) -> Result<String, String> {
        let (namespace, name, path, port) = match self {
            Self::Url(url) => return Ok(url.clone()),
            Self::Service { namespace, name, path, port } => (namespace, name, path, *port),
        };
        let (host, port) = services
            .endpoint(namespace, name, port)
            .ok_or_else(|| format!("no endpoints available for service {name:?}"))?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        Ok(format!("https://{host}:{port}/{}", path.trim_start_matches('/')))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resource_request::ResourceRequest;
    use crate::testing::TestServer;

    /// A webhook that sends everybody to another address, and its authority.
    async fn redirecting(to: std::net::SocketAddr) -> (std::net::SocketAddr, String) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let pem = STANDARD.encode(key.cert.pem());
        let private = rustls::pki_types::PrivateKeyDer::try_from(key.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], private.unwrap())
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            assert!(stream.read(&mut [0; 4_096]).await.unwrap() > 0);
            let answer = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://{to}/\r\nContent-Length: 0\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
        });
        (address, pem)
    }

    #[test]
    fn a_redirect_is_a_failure_and_not_followed() {
        let test = TestServer::new();
        let cluster = test.server.cluster("").unwrap();
        let registry = cluster.registry();
        let resource = registry.get("", "v1", "services").unwrap();
        let request = ResourceRequest::internal(&test.server, &cluster, resource, "a", "hook");
        test.run(async {
            let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (address, authority) = redirecting(other.local_addr().unwrap()).await;
            let config = json!({"url": format!("https://{address}/"), "caBundle": authority});
            let client = Client::new(&config);
            let why = client.call(&request, &json!({}), Duration::from_secs(10)).await.unwrap_err();
            assert!(why.contains("307"), "{why}");
            assert!(futures_util::poll!(std::pin::pin!(other.accept())).is_pending());
            let config = json!({"url": "https://169.254.169.254/", "caBundle": authority});
            let client = Client::new(&config);
            let why = client.call(&request, &json!({}), Duration::from_secs(10)).await.unwrap_err();
            assert!(why.contains("webhooks are not called at 169.254.169.254"), "{why}");
        });
    }

    #[test]
    fn the_time_is_told_to_the_webhook() {
        let seconds = Duration::from_secs(7);
        assert_eq!(with_timeout("https://a/b", seconds).unwrap(), "https://a/b?timeout=7s");
        assert_eq!(with_timeout("https://a/b?c=d", seconds).unwrap(), "https://a/b?c=d&timeout=7s");
    }
}
