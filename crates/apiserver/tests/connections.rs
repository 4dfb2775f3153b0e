//! Connections of the network: many that do nothing, and those who need the server meanwhile.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

use std::net::SocketAddr;
use std::time::Duration;

use convoy_apiserver::access::AccessSettings;
use convoy_apiserver::home::{Home, Settings};
use convoy_apiserver::server::Limits;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::ConfigExt;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// A server with 32 connections: 4 for whom it does not know, 2 in reserve for administrators.
struct Crowded {
    address: SocketAddr,
    config: kube::Config,
    end: tokio::sync::oneshot::Sender<()>,
    running: tokio::task::JoinHandle<()>,
    _directory: tempfile::TempDir,
}

async fn crowded() -> Crowded {
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens");
    std::fs::write(&tokens, "bob-token,bob,1\n").unwrap();
    let settings = Settings {
        limits: Limits { connections_max: 32, ..Limits::default() },
        access: AccessSettings { token_file: Some(tokens), ..AccessSettings::default() },
        ..Settings::in_memory(directory.path().join("kubeconfig"))
    };
    let home = Home::start(settings).await.unwrap();
    let text = std::fs::read_to_string(directory.path().join("kubeconfig")).unwrap();
    let address = home.address;
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move { home.run(async { drop(ended.await) }).await.unwrap() });
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    Crowded { address, config, end, running, _directory: directory }
}

impl Crowded {
    /// The administrator of the kubeconfig, on a connection of their own.
    async fn administrator_is_served(&self) {
        let client = kube::Client::try_from(self.config.clone()).unwrap();
        let version = client.apiserver_version();
        tokio::time::timeout(Duration::from_secs(10), version).await.unwrap().unwrap();
    }

    /// A connection of somebody with a token, open and idle after one request; none if refused.
    async fn idle_client(&self) -> Option<hyper::client::conn::http1::SendRequest<String>> {
        let mut config = self.config.clone();
        config.auth_info = kube::config::AuthInfo::default();
        let tls = tokio_rustls::TlsConnector::from(std::sync::Arc::new(
            config.rustls_client_config().unwrap(),
        ));
        let stream = TcpStream::connect(self.address).await.ok()?;
        let name = rustls::pki_types::ServerName::from(self.address.ip());
        let stream = TokioIo::new(tls.connect(name, stream).await.ok()?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.ok()?;
        hyper::rt::Executor::execute(&TokioExecutor::new(), async { drop(connection.await) });
        let request = http::Request::get("/api")
            .header("host", "server")
            .header("authorization", "Bearer bob-token")
            .body(String::new());
        let response = sender.send_request(request.unwrap()).await.ok()?;
        assert_eq!(response.status(), 200);
        Some(sender)
    }

    async fn end(self) {
        self.end.send(()).unwrap();
        self.running.await.unwrap();
    }
}

#[tokio::test]
async fn connections_without_a_handshake_lock_nobody_out() {
    let server = crowded().await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    server.administrator_is_served().await;
    // The first of them had to go.
    let mut byte = [0];
    let closed = tokio::time::timeout(Duration::from_secs(10), silent[0].read(&mut byte));
    assert!(matches!(closed.await.unwrap(), Ok(0) | Err(_)));
    assert!(server.idle_client().await.is_some());
    server.end().await;
}

#[tokio::test]
async fn idle_clients_give_way() {
    let server = crowded().await;
    let mut clients = Vec::new();
    for _ in 0..40 {
        clients.push(server.idle_client().await.unwrap());
    }
    server.administrator_is_served().await;
    let open = clients.iter().filter(|sender| !sender.is_closed()).count();
    assert!(open <= 28, "{open} are open, 26 of clients are allowed");
    assert!(open >= 20, "{open} are open: no more than needed had to go");
    server.end().await;
}
