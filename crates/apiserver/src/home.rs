//! The embedded home: store, authority, server and listener in one process.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use convoy_api::clock::Clock;
use convoy_plan::Dialect;
use convoy_store::backend::{DiskBackend, Durability, OnLoss};
use convoy_store::{BackendError, MemoryBackend};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use crate::access::ServiceEndpoint;
use crate::access::{AccessError, AccessSettings, Signer, SignerError};
use crate::authority::{Authority, AuthorityError, server_names};
use crate::chores;
use crate::clusters::bootstrap::bootstrap;
use crate::kubeconfig::{ContextNames, kubeconfig, merged};
use crate::listener::Listener;
use crate::metrics::{Metered, Metrics};
use crate::object_meta::Store;
use crate::private::{make_directory, take_over, write_private};
use crate::server::{Limits, Server};
use crate::surroundings::System;

/// What a home is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where everything is kept; none: in memory, gone with the process.
    pub data_directory: Option<PathBuf>,
    pub durability: Durability,
    /// What happens when objects are lost.
    pub on_loss: OnLoss,
    pub listen: SocketAddr,
    /// Where the kubeconfig goes; by default into the data directory.
    pub kubeconfig: PathBuf,
    /// How its contexts are called.
    pub contexts: ContextNames,
    pub limits: Limits,
    /// What objects and tokens are dated by; certificates always have the machine's time.
    pub clock: Clock,
    pub access: AccessSettings,
    /// The dialects whose rules about their own kinds are built in.
    pub own_webhooks: OwnWebhooks,
}

/// Dialects whose rules about their own kinds a server has built in.
#[derive(Clone, Default)]
pub struct OwnWebhooks(pub Vec<&'static dyn Dialect>);

impl fmt::Debug for OwnWebhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|dialect| dialect.name())).finish()
    }
}

impl Settings {
    /// A server in memory, on a free port of the loopback interface.
    pub fn in_memory(kubeconfig: PathBuf) -> Self {
        Self {
            data_directory: None,
            durability: Durability::None,
            on_loss: OnLoss::Refuse,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            kubeconfig,
            contexts: ContextNames::default(),
            limits: Limits::default(),
            clock: Clock::default(),
            access: AccessSettings::default(),
            own_webhooks: OwnWebhooks::default(),
        }
    }
}

/// A home that serves.
#[derive(Debug)]
pub struct Home {
    pub server: Arc<Server>,
    pub address: SocketAddr,
    pub kubeconfig: PathBuf,
    contexts: ContextNames,
    authority: Arc<Authority>,
    listener: Listener,
    durability: Durability,
}

#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error(transparent)]
    Store(BackendError),
    #[error(
        "{0}; restore the data directory from a backup, or start with --accept-loss to continue without the lost data"
    )]
    Lost(BackendError),
    #[error("could not prepare the data directory {path}")]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(
        "could not listen on {address}; is another server there? --listen chooses another address, and port 0 takes a free one"
    )]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Signer(#[from] SignerError),
    #[error("could not write the signing key {path}")]
    SignerFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("could not write the initial objects of a cluster: {0}")]
    Bootstrap(String),
    #[error("could not write the kubeconfig {path}")]
    Kubeconfig {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} exists and is not a kubeconfig: {why}; it was left unchanged")]
    NoKubeconfig { path: PathBuf, why: String },
}

impl From<BackendError> for HomeError {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Damaged { .. } => Self::Lost(error),
            _ => Self::Store(error),
        }
    }
}

impl Home {
    /// Opens the store, the certificates and the listener. Boxed, as [`Home::run_until`], so that
    /// the server is compiled in this crate alone.
    pub fn start(settings: Settings) -> BoxFuture<'static, Result<Self, HomeError>> {
        Box::pin(Self::open(settings))
    }

    async fn open(settings: Settings) -> Result<Self, HomeError> {
        if let Some(directory) = &settings.data_directory {
            own(directory, &settings)?;
        }
        let metrics = Metrics::default();
        let store = open_store(&settings, &metrics)?;
        let now = Timestamp::now();
        let names = server_names(settings.listen.ip());
        let authority = match &settings.data_directory {
            Some(directory) => Authority::open(&directory.join("pki"), &names, now)?,
            None => Authority::ephemeral(&names, now)?,
        };
        let address = settings.listen;
        let failed = |source| HomeError::Listen { address, source };
        let listener = Listener::bind(address, authority.server_config()?).map_err(failed)?;
        let address = listener.address().map_err(failed)?;
        let mut access = settings.access.open(signer(settings.data_directory.as_deref())?)?;
        access.authority = authority.certificate.clone();
        access.endpoint = ServiceEndpoint {
            address: address.ip(),
            port: address.port(),
            ..ServiceEndpoint::default()
        };
        let server =
            Server::new(store, Arc::new(System { clock: settings.clock }), settings.limits)
                .with_access(access)
                .with_metrics(metrics);
        let server = server.with_own_webhooks(&settings.own_webhooks.0);
        server.sign_with(authority.signer()?);
        let server = Arc::new(server);
        for cluster in server.clusters() {
            let done = bootstrap(&server, &cluster).await;
            done.map_err(|status| HomeError::Bootstrap(status.message))?;
        }
        let Settings { kubeconfig, contexts, durability, .. } = settings;
        let authority = Arc::new(authority);
        let home = Self { server, address, kubeconfig, contexts, authority, listener, durability };
        home.write_kubeconfig()?;
        Ok(home)
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Writes how to reach the server, for its owner alone.
    fn write_kubeconfig(&self) -> Result<(), HomeError> {
        let address = (self.url(), self.contexts.clone());
        write_kubeconfig(&self.kubeconfig, &self.server, &self.authority, &address)
    }

    /// Serves until `shutdown` is done, then leaves everything durable.
    pub async fn run(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), HomeError> {
        self.run_until(Box::pin(shutdown), Box::pin(std::future::pending())).await
    }

    /// The same; once `hurry` is done, it no longer waits for requests in flight.
    pub fn run_until(
        self,
        shutdown: BoxFuture<'static, ()>,
        hurry: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, Result<(), HomeError>> {
        Box::pin(self.serve(shutdown, hurry))
    }

    async fn serve(
        self,
        shutdown: BoxFuture<'static, ()>,
        hurry: BoxFuture<'static, ()>,
    ) -> Result<(), HomeError> {
        let url = self.url();
        let Self { server, kubeconfig, contexts, authority, listener, durability, .. } = self;
        let flushing = match durability {
            Durability::Interval(pause) => {
                Some(tokio::spawn(flush_often(Arc::clone(&server), pause)))
            }
            Durability::Sync | Durability::None => None,
        };
        // Subscribed before anything runs that makes clusters, so that none is missed.
        let comings = server.comings();
        let refreshing = refresh_kubeconfig(
            Arc::clone(&server),
            comings,
            kubeconfig,
            authority,
            (url, contexts),
        );
        let refreshing = tokio::spawn(refreshing);
        let chores = chores::start(Arc::clone(&server), server.ending());
        listener.serve(Arc::clone(&server), shutdown, hurry).await;
        // A defect in there was logged when it happened; there is nothing more to do for it.
        drop(chores.await);
        refreshing.abort();
        if let Some(flushing) = flushing {
            flushing.abort();
        }
        if let Some(audit) = &server.access.audit {
            audit.flush();
        }
        server.store.shut_down()?;
        Ok(())
    }
}

const REFRESH_PAUSE: Duration = Duration::from_millis(20);

/// Keeps the contexts of the kubeconfig those of the clusters that are served.
async fn refresh_kubeconfig(
    server: Arc<Server>,
    mut comings: watch::Receiver<u64>,
    path: PathBuf,
    authority: Arc<Authority>,
    address: (String, ContextNames),
) {
    while comings.changed().await.is_ok() {
        // Those that come together are written together.
        tokio::time::sleep(REFRESH_PAUSE).await;
        comings.mark_unchanged();
        let write = {
            let (server, authority) = (Arc::clone(&server), Arc::clone(&authority));
            let (path, address) = (path.clone(), address.clone());
            move || write_kubeconfig(&path, &server, &authority, &address)
        };
        // A panic in there was reported where it happened.
        if let Ok(Err(error)) = tokio::task::spawn_blocking(write).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "could not update the kubeconfig");
        }
    }
}

fn write_kubeconfig(
    path: &Path,
    server: &Server,
    authority: &Authority,
    (url, contexts): &(String, ContextNames),
) -> Result<(), HomeError> {
    let failed = |source| HomeError::Kubeconfig { path: path.to_owned(), source };
    let existing = match std::fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Value::Null,
        Ok(text) => serde_saphyr::from_str(&text).map_err(|error| HomeError::NoKubeconfig {
            path: path.to_owned(),
            why: error.to_string(),
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Value::Null,
        Err(source) => return Err(failed(source)),
    };
    let clusters = server.clusters();
    let names: Vec<&str> = clusters.iter().map(|cluster| &*cluster.name).collect();
    let config = merged(&existing, kubeconfig(authority, url, &names, contexts));
    let text = serde_saphyr::to_string(&config).unwrap_or_else(|_| config.to_string());
    let write = || {
        if let Some(parent) = path.parent().filter(|parent| *parent != Path::new("")) {
            make_directory(parent)?;
        }
        write_private(path, text.as_bytes())
    };
    write().map_err(failed)
}

/// Makes durable what a relaxed durability left open, again and again.
async fn flush_often(server: Arc<Server>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let store = server.store.clone();
        // A failure stays with the store, which refuses writes from then on.
        drop(tokio::task::spawn_blocking(move || store.flush()).await);
    }
}

/// Makes the data directory its owner's alone, with everything that belongs to it.
fn own(directory: &Path, settings: &Settings) -> Result<(), HomeError> {
    let (store, pki) = (directory.join("store"), directory.join("pki"));
    let mut ours = vec![&*store, &*pki, &*settings.kubeconfig];
    ours.extend(settings.access.audit_log.as_deref());
    let failed = |source| HomeError::Directory { path: directory.to_owned(), source };
    take_over(directory, &ours).map_err(failed)
}

/// The key that signs tokens of service accounts: kept, or made anew with every start.
fn signer(directory: Option<&Path>) -> Result<Signer, HomeError> {
    let Some(directory) = directory else { return Ok(Signer::generate()?) };
    let path = directory.join("pki").join("service-account.key");
    match std::fs::read_to_string(&path) {
        Ok(pem) => return Ok(Signer::from_pem(&pem)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(HomeError::SignerFile { path, source }),
    }
    let signer = Signer::generate()?;
    let written = write_private(&path, signer.to_pem().as_bytes());
    written.map_err(|source| HomeError::SignerFile { path, source })?;
    Ok(signer)
}

fn open_store(settings: &Settings, metrics: &Metrics) -> Result<Store, BackendError> {
    let store_settings = convoy_store::Settings::default();
    let counted = metrics.store.clone();
    match &settings.data_directory {
        None => Store::open(Metered::new(MemoryBackend, counted), store_settings),
        Some(directory) => {
            let Settings { durability, on_loss, .. } = *settings;
            let backend = DiskBackend::open_with(&directory.join("store"), durability, on_loss)?;
            Store::open(Metered::new(backend, counted), store_settings)
        }
    }
}
