//! The two that are asked: a kube-apiserver at an address, and a server of ours in this process.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use convoy_apiserver::access::{Access, Authorization, Peer, Signer, TokenFile};
use convoy_apiserver::bootstrap::bootstrap;
use convoy_apiserver::object_meta::Store;
use convoy_apiserver::server::{Limits, Server};
use convoy_apiserver::surroundings::System;
use convoy_apiserver::{chores, handler};
use convoy_store::MemoryBackend;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt;

/// Users that scripts name, as a token file lists them.
const USERS: &str = include_str!("users.csv");

pub(crate) enum Target {
    Ours,
    Real { address: String, tokens: BTreeMap<String, String> },
}

/// A server that is asked, for the time of one script.
pub(crate) enum Connection {
    Ours(Arc<Server>),
    Real { client: Box<Plain>, address: String },
}

/// A client that sends a request once, whatever the answer.
type Plain = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// An answer, read to its end.
pub(crate) struct Answered {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Target {
    /// The real server, if there is one.
    pub(crate) fn real() -> Option<Self> {
        let address = std::env::var("CONVOY_KUBERNETES").ok()?;
        let file = std::env::var("CONVOY_KUBERNETES_TOKENS").expect("set together");
        let tokens = tokens(&std::fs::read_to_string(file).unwrap());
        Some(Self::Real { address, tokens })
    }

    pub(crate) fn token(&self, user: &str) -> Option<String> {
        match self {
            Self::Ours => tokens(USERS).remove(user),
            Self::Real { tokens, .. } => tokens.get(user).cloned(),
        }
    }

    pub(crate) async fn connect(&self) -> Connection {
        match self {
            Self::Ours => Connection::Ours(ours().await),
            Self::Real { address, .. } => {
                let mut config = kube::Config::new(address.parse().unwrap());
                // Its certificate is one that it has made for itself a moment ago, on loopback.
                config.accept_invalid_certs = true;
                let connector = config.rustls_https_connector().unwrap();
                let client = Client::builder(TokioExecutor::new()).build(connector);
                Connection::Real { client: Box::new(client), address: address.clone() }
            }
        }
    }
}

impl Connection {
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Answered {
        match self {
            Self::Ours(server) => {
                let request = request.map(Full::new);
                let answer = handler::handle(server, request, &Peer::default()).await;
                let (meta, body) = answer.into_parts();
                let bytes = body.collect().await.expect("bodies do not fail").to_bytes();
                Answered { code: meta.status.as_u16(), headers: meta.headers, bytes }
            }
            Self::Real { client, address } => {
                let mut request = request.map(Full::new);
                *request.uri_mut() = format!("{address}{}", request.uri()).parse().unwrap();
                let answer = client.request(request).await.unwrap();
                let (meta, body) = answer.into_parts();
                let bytes = body.collect().await.unwrap().to_bytes();
                Answered { code: meta.status.as_u16(), headers: meta.headers, bytes }
            }
        }
    }

    /// Lets a server do what it does of itself.
    pub(crate) async fn wait(&self) {
        match self {
            Self::Ours(server) => chores::settle(server).await,
            Self::Real { .. } => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}

async fn ours() -> Arc<Server> {
    let settings = convoy_store::Settings { inline: true, ..convoy_store::Settings::default() };
    let store = Store::open(MemoryBackend, settings).unwrap();
    let signer = Signer::generate().unwrap();
    let access = Access::new(Authorization::Rbac, TokenFile::parse(USERS).unwrap(), signer);
    let server =
        Server::new(store, Arc::<System>::default(), Limits::default()).with_access(access);
    let server = Arc::new(server);
    bootstrap(&server, &server.cluster("").expect("the first one")).await.expect("a beginning");
    server
}

/// Tokens by user.
fn tokens(file: &str) -> BTreeMap<String, String> {
    let fields = file.lines().map(|line| line.split(',').collect::<Vec<_>>());
    fields.map(|fields| (fields[1].to_owned(), fields[0].to_owned())).collect()
}
