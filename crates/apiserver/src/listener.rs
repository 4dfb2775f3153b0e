//! The server on the network: TLS, HTTP/1.1 and HTTP/2, an orderly end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::access::{self, Peer};
use crate::drain::Drain;
use crate::handler;
use crate::server::Server;

/// Connections that may be open at a time.
const CONNECTIONS_MAX: usize = 4_096;

/// How long a client may take to agree on keys.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection of HTTP/1 may stay open without the whole head of a next request. Clients
/// keep connections for a while, and one that is closed on them costs a failed request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Requests that one connection may have on their way at a time.
const STREAMS_MAX: u32 = 100;

/// How long idle connections may stay open during a shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A socket that accepts requests.
pub struct Listener {
    socket: TcpListener,
    tls: TlsAcceptor,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Listener {
    pub async fn bind(address: SocketAddr, tls: Arc<rustls::ServerConfig>) -> io::Result<Self> {
        Ok(Self { socket: TcpListener::bind(address).await?, tls: TlsAcceptor::from(tls) })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `shutdown` is done, then ends what is still open: watches at once, other
    /// requests when they are answered, or when they take too long, or when `hurry` is done.
    pub async fn serve(
        self,
        server: Arc<Server>,
        shutdown: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) {
        let drain = Drain::default();
        let connections = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.socket, &room) => accepted,
                () = &mut shutdown => break,
            };
            let Some((stream, address, permit)) = accepted else { continue };
            let (server, tls, drain) = (Arc::clone(&server), self.tls.clone(), drain.clone());
            let watcher = connections.watcher();
            tokio::spawn(async move {
                if let Some(stream) = agree(&tls, stream).await {
                    converse(&server, stream, address, &drain, watcher).await;
                }
                drop(permit);
            });
        }
        drop(self.socket);
        server.end_watches();
        let patience = async {
            let answered = tokio::time::timeout(server.limits.shutdown_timeout, drain.idle());
            if answered.await.is_err() {
                tracing::warn!("shut down with requests still in flight");
            }
            // What is open now is idle, or its client does not read.
            tokio::time::sleep(CLOSE_TIMEOUT).await;
        };
        tokio::select! {
            () = connections.shutdown() => {}
            () = patience => tracing::debug!("shut down with connections still open"),
            () = hurry => tracing::warn!("shut down without waiting for requests in flight"),
        }
    }
}

type Permit = tokio::sync::OwnedSemaphorePermit;

async fn accept(
    socket: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, Permit)> {
    let permit = Arc::clone(room).acquire_owned().await.expect("the semaphore is never closed");
    match socket.accept().await {
        Ok((stream, address)) => {
            // Answers are small and wanted at once.
            drop(stream.set_nodelay(true));
            Some((stream, address, permit))
        }
        Err(error) => {
            // Out of file descriptors, most likely: some will be given back.
            tracing::warn!(%error, "could not accept a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

async fn agree(tls: &TlsAcceptor, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

async fn converse(
    server: &Arc<Server>,
    stream: TlsStream<TcpStream>,
    address: SocketAddr,
    drain: &Drain,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let certificate = certificate.and_then(|der| access::caller_of_certificate(der));
    let peer = Arc::new(Peer { certificate, address: address.ip().to_string(), is_local: false });
    let service = hyper::service::service_fn(|request| {
        let (server, peer, guard) = (Arc::clone(server), Arc::clone(&peer), drain.enter());
        async move {
            let response = handler::handle(&server, request, &peer).await;
            Ok::<_, std::convert::Infallible>(guard.attach_to(response))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(1 << 20)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_secs(20));
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection.into_owned()).await {
        tracing::debug!(%error, %address, "connection closed with an error");
    }
}
