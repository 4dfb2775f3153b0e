//! The server on the network: TLS, HTTP/1.1 and HTTP/2, an orderly end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::access::{self, Peer};
use crate::backlog;
use crate::body::Body;
use crate::connections::{ClientConnection, Connections, Shares};
use crate::drain::Drain;
use crate::handler;
use crate::server::Server;

/// Connections that are open besides those that count: they have just come, or are being closed.
const PASSING_MAX: usize = 16;

/// How long a connection of HTTP/1 may stay open without the whole head of a next request. Clients
/// keep connections for a while, and one that is closed on them costs a failed request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Requests that one connection may have on their way at a time.
const STREAMS_MAX: u32 = 100;

/// What a connection of HTTP/1, or a request of HTTP/2, keeps of a response that its client does
/// not read. It is also the most that the head of a request of HTTP/1 may have.
const BUFFER_MAX: usize = 64 << 10;

/// How many connections may wait to be accepted. A client whose connection finds no place there
/// tries again after a second: with the usual 128, a flood of connections delays everybody.
const BACKLOG: u32 = 4_096;

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
    pub fn bind(address: SocketAddr, tls: Arc<rustls::ServerConfig>) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A restarted server takes its port back while old connections still end.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Self { socket: socket.listen(BACKLOG)?, tls: TlsAcceptor::from(tls) })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `shutdown` is done, then ends what is still open: watches at once, other
    /// requests when they are answered, or when they take too long, or when `hurry` is done.
    pub async fn serve(
        self,
        server: Arc<Server>,
        mut shutdown: BoxFuture<'static, ()>,
        hurry: BoxFuture<'static, ()>,
    ) {
        let drain = Drain::default();
        let connections = GracefulShutdown::new();
        let shares = Shares::of_process(server.limits.connections_max);
        tracing::debug!(?shares, "connections that may be open");
        let open = Connections::new(shares);
        let room = Arc::new(Semaphore::new(shares.total + PASSING_MAX));
        let mut sweep = tokio::time::interval(backlog::SWEEP_EVERY);
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.socket, &room) => accepted,
                _ = sweep.tick() => {
                    server.backlogs.sweep();
                    continue;
                }
                () = &mut shutdown => break,
            };
            let Some((stream, address, permit)) = accepted else { continue };
            let (server, tls, drain) = (Arc::clone(&server), self.tls.clone(), drain.clone());
            let watcher = connections.watcher();
            let connection = open.enter(address.ip());
            tokio::spawn(async move {
                tokio::select! {
                    () = attend(&server, &tls, stream, &connection, &drain, watcher, address) => {}
                    () = connection.over() => {
                        tracing::debug!(%address, "closed a connection: too slow, or one too many");
                    }
                }
                drop((connection, permit));
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

/// Serves one connection from its handshake to its end.
async fn attend(
    server: &Arc<Server>,
    tls: &TlsAcceptor,
    stream: TcpStream,
    connection: &Arc<ClientConnection>,
    drain: &Drain,
    watcher: Watcher,
    address: SocketAddr,
) {
    let stream = match tls.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(%error, "TLS handshake failed");
            return;
        }
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let certificate = certificate.and_then(|der| access::caller_of_certificate(der));
    // If there is no room for the client, its first request is told so.
    if let Some(caller) = &certificate {
        drop(connection.identify(caller));
    }
    let peer = Peer {
        certificate,
        address: address.ip().to_string(),
        is_local: false,
        connection: Some(Arc::clone(connection)),
    };
    converse(server, stream, Arc::new(peer), connection, drain, watcher).await;
}

async fn converse(
    server: &Arc<Server>,
    stream: TlsStream<TcpStream>,
    peer: Arc<Peer>,
    connection: &Arc<ClientConnection>,
    drain: &Drain,
    watcher: Watcher,
) {
    let service = hyper::service::service_fn(|request| {
        let (server, peer, guard) = (Arc::clone(server), Arc::clone(&peer), drain.enter());
        let busy = connection.begin();
        async move {
            let response = handler::handle(&server, request, &peer).await;
            if let (Body::Watch(follow), Some(connection)) = (response.body(), &peer.connection) {
                follow.attach(connection);
            }
            Ok::<_, std::convert::Infallible>(guard.attach_to(response, busy))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_buf_size(BUFFER_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_send_buf_size(BUFFER_MAX)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(1 << 20)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_secs(20));
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection.into_owned()).await {
        tracing::debug!(%error, address = peer.address, "connection closed with an error");
    }
}
