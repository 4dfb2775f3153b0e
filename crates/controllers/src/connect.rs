//! Connects to an API server, by a kubeconfig or by the service account of a pod.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::connection;
use crate::rotation::{self, Rebuild};
use crate::tenure::LeaseTiming;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(
        "no cluster: {looked}; pass --kubeconfig, read objects from files with -f, or start a \
         cluster with `convoy up`"
    )]
    NoKubeconfig {
        looked: String,
        /// The file that was asked for, if one was.
        path: Option<PathBuf>,
    },
    #[error("could not use the kubeconfig")]
    Kubeconfig(#[source] KubeconfigError),
    #[error("found neither a kubeconfig nor the service account of a pod")]
    Infer(#[source] InferConfigError),
    #[error("the kubeconfig has no user {name:?}")]
    User { name: String },
    #[error("could not read the address {server:?} of a server")]
    Server { server: String, source: http::uri::InvalidUri },
    #[error("could not prepare the connection")]
    Client(#[source] kube::Error),
}

/// A client and the URL of its server.
#[derive(Clone)]
pub struct Connection {
    pub client: Client,
    pub url: String,
    /// The address of the server as its kubeconfig writes it; without one, the URL.
    pub server: String,
    /// The certificates, in PEM, by which the server is known; empty if the configuration has none.
    pub certificate_authority: String,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A client for `kubeconfig` and `context`. Without either, the kubeconfig is found as kubectl
/// finds it, or, in a pod, the service account is used.
pub fn connect<'a>(
    kubeconfig: Option<&'a Path>,
    context: Option<&'a str>,
) -> BoxFuture<'a, Result<Connection, ConnectError>> {
    Box::pin(connected(kubeconfig, context, Client::try_from))
}

/// On whose behalf requests are sent, if not that of the user in the kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct Impersonation {
    pub user: Option<String>,
    pub groups: Vec<String>,
    pub uid: Option<String>,
}

/// What flags say instead of the kubeconfig, as those of kubectl.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The entries of the kubeconfig to use, instead of those of the context.
    pub cluster: Option<String>,
    pub user: Option<String>,
    /// The address of the server.
    pub server: Option<String>,
    pub token: Option<String>,
    pub skips_verification: bool,
    pub timeout: Option<Duration>,
    pub impersonation: Impersonation,
}

impl Overrides {
    fn apply(self, config: &mut Config) -> Result<(), ConnectError> {
        if let Some(server) = self.server {
            config.cluster_url =
                server.parse().map_err(|source| ConnectError::Server { server, source })?;
        }
        if let Some(token) = self.token {
            config.auth_info.token = Some(token.into());
        }
        config.accept_invalid_certs |= self.skips_verification;
        config.read_timeout = self.timeout.or(config.read_timeout);
        let Impersonation { user, groups, uid } = self.impersonation;
        if user.is_some() {
            config.auth_info.impersonate_uid = uid;
            config.auth_info.impersonate = user;
            config.auth_info.impersonate_groups = (!groups.is_empty()).then_some(groups);
        }
        Ok(())
    }
}

/// The same, with what flags say.
pub fn connect_with<'a>(
    kubeconfig: Option<&'a Path>,
    context: Option<&'a str>,
    overrides: Overrides,
) -> BoxFuture<'a, Result<Connection, ConnectError>> {
    Box::pin(async move {
        let options = KubeConfigOptions {
            context: context.map(str::to_owned),
            cluster: overrides.cluster.clone(),
            user: overrides.user.clone(),
        };
        let (mut config, server) = chosen(kubeconfig, &options).await?;
        let server = overrides.server.clone().unwrap_or(server);
        overrides.apply(&mut config)?;
        let (url, certificate_authority) = (config.cluster_url.to_string(), authority(&config));
        let client = Client::try_from(config).map_err(ConnectError::Client)?;
        Ok(Connection { client, url, server, certificate_authority })
    })
}

/// The same for a process with leader election: its writes are not sent once its tenure is over,
/// wherever they wait.
pub fn connect_to_lead<'a>(
    kubeconfig: Option<&'a Path>,
    context: Option<&'a str>,
    timing: LeaseTiming,
) -> BoxFuture<'a, Result<Connection, ConnectError>> {
    let margin = timing.margin();
    Box::pin(connected(kubeconfig, context, move |config| connection::client(config, margin)))
}

/// Connects with what `build` makes of the configuration, now and whenever its files change.
async fn connected(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    build: impl Fn(Config) -> Result<Client, kube::Error> + Clone + Send + Sync + 'static,
) -> Result<Connection, ConnectError> {
    let (config, server) = configuration(kubeconfig, context).await?;
    let (url, certificate_authority) = (config.cluster_url.to_string(), authority(&config));
    let client = build(config).map_err(ConnectError::Client)?;
    let files = rotation::files(kubeconfig);
    let (kubeconfig, context) = (kubeconfig.map(Path::to_owned), context.map(str::to_owned));
    let rebuild: Rebuild = Box::new(move || {
        let (kubeconfig, context) = (kubeconfig.clone(), context.clone());
        let build = build.clone();
        Box::pin(async move {
            let (config, _) = configuration(kubeconfig.as_deref(), context.as_deref()).await?;
            Ok(build(config)?)
        })
    });
    let client = rotation::rotating(client, files, rebuild);
    Ok(Connection { client, url, server, certificate_authority })
}

/// The certificates of a configuration, in PEM.
fn authority(config: &Config) -> String {
    config.root_cert.iter().flatten().map(|certificate| pem(certificate)).collect()
}

/// A certificate as text, in lines of 64 characters.
fn pem(certificate: &[u8]) -> String {
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    // 48 bytes are 64 characters, and only the last part is padded.
    for part in certificate.chunks(48) {
        text.push_str(&STANDARD.encode(part));
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

/// The configuration, and the address of the server as it is written.
async fn configuration(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<(Config, String), ConnectError> {
    let options =
        KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    chosen(kubeconfig, &options).await
}

/// The same, for entries of a kubeconfig.
async fn chosen(
    kubeconfig: Option<&Path>,
    options: &KubeConfigOptions,
) -> Result<(Config, String), ConnectError> {
    let KubeConfigOptions { context, cluster, user } = options;
    let is_chosen = context.is_some() || cluster.is_some() || user.is_some();
    if let Some(looked) = missing_kubeconfig(kubeconfig) {
        let path = kubeconfig.map(Path::to_owned);
        return Err(ConnectError::NoKubeconfig { looked, path });
    }
    let read = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path).map_err(ConnectError::Kubeconfig)?,
        None if is_chosen => Kubeconfig::read().map_err(ConnectError::Kubeconfig)?,
        None => {
            let config = Config::infer().await.map_err(ConnectError::Infer)?;
            let server = config.cluster_url.to_string();
            return Ok((identified(config), server));
        }
    };
    // Without this the requests would be anonymous.
    if let Some(user) = user
        && !read.auth_infos.iter().any(|known| known.name == *user)
    {
        return Err(ConnectError::User { name: user.clone() });
    }
    let server = written_server(&read, context.as_deref());
    let config = Config::from_custom_kubeconfig(read, options).await;
    let config = config.map_err(ConnectError::Kubeconfig)?;
    let server = server.unwrap_or_else(|| config.cluster_url.to_string());
    Ok((identified(config), server))
}

/// Where a kubeconfig was looked for, if there is none and this is no pod.
pub fn missing_kubeconfig(kubeconfig: Option<&Path>) -> Option<String> {
    if let Some(path) = kubeconfig {
        return (!path.exists()).then(|| format!("{} does not exist", path.display()));
    }
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        return None;
    }
    if let Some(list) = std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        let any = std::env::split_paths(&list).any(|path| path.exists());
        return (!any).then(|| format!("KUBECONFIG is {}, which does not exist", list.display()));
    }
    let path = std::env::home_dir()?.join(".kube/config");
    (!path.exists())
        .then(|| format!("KUBECONFIG is not set, and {} does not exist", path.display()))
}

/// The configuration with the name under which logs of API servers have its requests.
pub fn identified(mut config: Config) -> Config {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let name = format!("convoy/{} ({os}/{arch})", env!("CARGO_PKG_VERSION"));
    let name = HeaderValue::from_str(&name).expect("a name and a version are visible characters");
    config.headers.push((USER_AGENT, name));
    config
}

/// The server of a context, or of the current one.
fn written_server(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let context = context.or(kubeconfig.current_context.as_deref())?;
    let mut contexts = kubeconfig.contexts.iter().filter(|it| it.name == context);
    let cluster = &contexts.next()?.context.as_ref()?.cluster;
    let mut clusters = kubeconfig.clusters.iter().filter(|it| it.name == *cluster);
    clusters.next()?.cluster.as_ref()?.server.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_written_in_lines() {
        let lines = pem(&[0; 50]);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert_eq!((lines[1].len(), lines[2]), (64, "AAA="));
        assert_eq!(lines[3], "-----END CERTIFICATE-----");
    }
}
