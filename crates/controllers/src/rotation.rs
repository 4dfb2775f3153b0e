//! Credentials that are replaced while the process runs. `kube` reads the token file and the
//! certificates of a pod's service account again; this does the same for everything that a kubeconfig
//! names: client certificates, keys, authorities, tokens, and the kubeconfig itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use kube::config::Kubeconfig;
use tower::BoxError;
use tower_service::Service;

use crate::transport;

/// How often the files are looked at, while there are requests.
const INTERVAL: Duration = Duration::from_secs(5);

/// Makes a client from the files as they are now.
pub(crate) type Rebuild =
    Box<dyn Fn() -> BoxFuture<'static, Result<Client, BoxError>> + Send + Sync>;

/// A client that is made anew when one of `files` changes. Requests and watches in progress stay on
/// the connections that they have.
pub(crate) fn rotating(client: Client, files: Vec<PathBuf>, rebuild: Rebuild) -> Client {
    if files.is_empty() {
        return client;
    }
    let namespace = client.default_namespace().to_owned();
    let versions = versions(&files);
    let state = Mutex::new(State { client, versions, looked_at: Instant::now() });
    Client::new(Rotating(Arc::new(Shared { files, rebuild, state })), namespace)
}

/// The kubeconfig and the files that it names; none if there is no kubeconfig.
pub(crate) fn files(kubeconfig: Option<&Path>) -> Vec<PathBuf> {
    let read = kubeconfig.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    let Ok(read) = read else { return Vec::new() };
    let clusters = read.clusters.into_iter().filter_map(|named| named.cluster);
    let users = read.auth_infos.into_iter().filter_map(|named| named.auth_info);
    let named = clusters.filter_map(|cluster| cluster.certificate_authority).chain(users.flat_map(
        |user| [user.client_certificate, user.client_key, user.token_file].into_iter().flatten(),
    ));
    let own = kubeconfig.map(Path::to_owned).into_iter();
    own.chain(named.map(PathBuf::from)).collect()
}

/// When a file was changed last, and its length; none if it cannot be read.
type Version = Option<(SystemTime, u64)>;

fn versions(files: &[PathBuf]) -> Vec<Version> {
    let version = |file: &PathBuf| {
        let found = fs::metadata(file).ok()?;
        Some((found.modified().ok()?, found.len()))
    };
    files.iter().map(version).collect()
}

#[derive(Clone)]
struct Rotating(Arc<Shared>);

struct Shared {
    files: Vec<PathBuf>,
    rebuild: Rebuild,
    state: Mutex<State>,
}

struct State {
    client: Client,
    versions: Vec<Version>,
    looked_at: Instant,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client for the next request.
    async fn client(&self) -> Client {
        let (client, known) = {
            let mut state = self.lock();
            if state.looked_at.elapsed() < INTERVAL {
                return state.client.clone();
            }
            state.looked_at = Instant::now();
            (state.client.clone(), state.versions.clone())
        };
        let versions = versions(&self.files);
        if versions == known {
            return client;
        }
        match (self.rebuild)().await {
            Ok(client) => {
                tracing::info!("the kubeconfig or a file that it names has changed; using it");
                let mut state = self.lock();
                state.client = client.clone();
                state.versions = versions;
                client
            }
            // Half written, perhaps: the next look finds it changed again.
            Err(error) => {
                let why = transport::chain(&*error);
                tracing::warn!(why, "could not use the changed kubeconfig; keeping the former");
                client
            }
        }
    }
}

impl Service<Request<Body>> for Rotating {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let client = shared.client().await;
            #[expect(clippy::disallowed_methods, reason = "writes have passed their fence")]
            client.send(request).await
        })
    }
}
