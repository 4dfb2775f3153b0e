//! A small JSON client for a running `convoy up`, configured by a kubeconfig.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Kubeconfig files in order; an entry in an earlier file wins over one in a later file.
#[derive(Clone, Debug)]
pub(crate) struct Kubeconfig {
    files: Vec<(PathBuf, Value)>,
}

/// A connection to a server with the credentials of one user.
#[derive(Debug)]
pub(crate) struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Address of the first logical cluster.
    pub(crate) url: String,
    token: Option<String>,
}

impl Kubeconfig {
    /// Reads a list of files in the format of `KUBECONFIG`; skips files that do not exist.
    pub(crate) fn read(list: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for path in std::env::split_paths(list).filter(|path| path.exists()) {
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("could not read {}", path.display()))?;
            let config = serde_saphyr::from_str(&text)
                .with_context(|| format!("invalid kubeconfig {}", path.display()))?;
            files.push((path, config));
        }
        let shown = list.display();
        ensure!(!files.is_empty(), "no kubeconfig found at {shown}; is `convoy up` running?");
        Ok(Self { files })
    }

    /// Whether the kubeconfig has a context of this name.
    pub(crate) fn has_context(&self, name: &str) -> bool {
        self.entry("contexts", name).is_some()
    }

    fn current_context(&self) -> Option<&str> {
        let mut names = self.files.iter().filter_map(|(_, file)| file["current-context"].as_str());
        names.find(|name| !name.is_empty())
    }

    /// A named entry and the file that contains it.
    fn entry(&self, list: &str, name: &str) -> Option<(&Path, &Value)> {
        self.files.iter().find_map(|(path, file)| {
            let mut entries = file[list].as_array()?.iter();
            Some((path.as_path(), entries.find(|entry| entry["name"] == name)?))
        })
    }
}

impl Client {
    /// The client that `context` describes, by default the current context.
    pub(crate) fn new(config: &Kubeconfig, context: Option<&str>) -> Result<Self> {
        let name = context.or(config.current_context());
        let name = name.context("the kubeconfig has no current context; pass --context")?;
        let (_, context) = config
            .entry("contexts", name)
            .with_context(|| format!("the kubeconfig has no context {name:?}"))?;
        let text = |field: &str| context["context"][field].as_str().unwrap_or_default();
        let (file, cluster) = config
            .entry("clusters", text("cluster"))
            .with_context(|| format!("context {name:?} refers to a cluster that does not exist"))?;
        let cluster = &cluster["cluster"];
        let url = cluster["server"].as_str().unwrap_or_default().trim_end_matches('/');
        // LogicalCluster objects live in the first logical cluster, whichever the context selects.
        let url = url.split_once("/clusters/").map_or(url, |(first, _)| first).to_owned();
        ensure!(url.starts_with("https://"), "the server address {url:?} must start with https://");
        let mut roots = rustls::RootCertStore::empty();
        let authority = pem(file, cluster, "certificate-authority")?.unwrap_or_default();
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            roots.add(
                certificate.context("could not read the certificate authority of the cluster")?,
            )?;
        }
        let (tls, token) = identity(config, text("user"), roots)?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only();
        let http =
            legacy::Client::builder(TokioExecutor::new()).build(connector.enable_http1().build());
        Ok(Self { http, url, token })
    }

    /// Sends a request and returns the status code and the JSON body.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value)> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("convoy/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(body)))?;
        let failed = || format!("could not reach {}", self.url);
        let answered = async {
            let response = self.http.request(request).await.with_context(failed)?;
            let code = response.status().as_u16();
            let bytes = response.into_body().collect().await.with_context(failed)?.to_bytes();
            Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
        };
        tokio::time::timeout(TIMEOUT, answered).await.with_context(failed)?
    }
}

type Identity = (rustls::ClientConfig, Option<String>);

fn identity(config: &Kubeconfig, user: &str, roots: rustls::RootCertStore) -> Result<Identity> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let Some((file, user)) = config.entry("users", user) else {
        return Ok((tls.with_no_client_auth(), None));
    };
    let user = &user["user"];
    let certificate = pem(file, user, "client-certificate")?;
    let (Some(certificate), Some(key)) = (certificate, pem(file, user, "client-key")?) else {
        let Some(token) = user["token"].as_str() else {
            bail!("the user in the kubeconfig has neither a client certificate nor a token");
        };
        return Ok((tls.with_no_client_auth(), Some(token.to_owned())));
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let chain = chain.context("could not read the client certificate")?;
    let key = PrivateKeyDer::from_pem_slice(&key).context("could not read the client key")?;
    Ok((tls.with_client_auth_cert(chain, key)?, None))
}

/// The PEM data of a field: inline in the kubeconfig, or in a file that it refers to.
fn pem(file: &Path, entry: &Value, field: &str) -> Result<Option<Vec<u8>>> {
    if let Some(data) = entry[format!("{field}-data")].as_str() {
        let bytes = STANDARD.decode(data).with_context(|| format!("{field}-data is not base64"))?;
        return Ok(Some(bytes));
    }
    let Some(named) = entry[field].as_str() else { return Ok(None) };
    let path = file.parent().unwrap_or(Path::new("")).join(named);
    let bytes = std::fs::read(&path);
    Ok(Some(bytes.with_context(|| format!("could not read {}", path.display()))?))
}
