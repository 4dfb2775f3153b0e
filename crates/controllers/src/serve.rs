//! Metrics and health endpoints over HTTP.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// The level at which a process logs, read and changed over HTTP.
pub trait LogLevel: std::fmt::Debug + Send + Sync {
    fn get(&self) -> String;
    /// An error says which levels there are.
    fn set(&self, word: &str) -> Result<(), String>;
}

/// A profile in the format of pprof, compressed or not, or why there is none.
pub type Profile = Result<Vec<u8>, String>;

/// Profiles of where a process spends its time, and of what its memory holds.
pub trait Profiles: std::fmt::Debug + Send + Sync {
    /// Samples all threads for so long.
    fn cpu(&self, time: Duration) -> BoxFuture<'static, Profile>;
    /// What is allocated now, by the stacks that allocated it.
    fn heap(&self) -> BoxFuture<'static, Profile>;
}

/// A listener that serves metrics and health.
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
}

/// What an endpoint tells and changes.
#[derive(Clone, Debug)]
pub struct Process {
    pub metrics: Arc<Metrics>,
    pub log_level: &'static dyn LogLevel,
    /// None in a binary that was built without them.
    pub profiles: Option<&'static dyn Profiles>,
}

/// Where the log level is.
const LOG_LEVEL: &str = "/debug/log-level";

/// Where profiles are, as programs in Go have them.
const PROFILES: &str = "/debug/pprof/";
/// How long a profile takes unless the request says, and the most.
const PROFILE_SECS: u64 = 30;
const PROFILE_SECS_MAX: u64 = 300;

/// The longest body that is read: the name of a level.
const BODY_MAX: usize = 64;

type BoxError = Box<dyn Error + Send + Sync>;

impl Endpoint {
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await? })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is dropped.
    pub fn run(self, process: Process) -> BoxFuture<'static, ()> {
        Box::pin(self.accept(process))
    }

    async fn accept(self, process: Process) {
        loop {
            let Ok((stream, peer)) = self.listener.accept().await else {
                // Out of file descriptors; retry once some are closed.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            let process = process.clone();
            let is_local = peer.ip().is_loopback();
            tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| {
                    let process = &process;
                    async move { Ok::<_, Infallible>(answer(process, request, is_local).await) }
                });
                let mut server = http1::Builder::new();
                let connection =
                    server.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
                if let Err(error) = connection.await {
                    tracing::trace!(%error, "a connection failed");
                }
            });
        }
    }
}

/// Only from the machine itself, or through `kubectl port-forward`, can something be changed or a
/// profile be taken: the port asks nobody who they are.
async fn answer(
    process: &Process,
    request: Request<impl Body<Error: Into<BoxError>>>,
    is_local: bool,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let profile = parts.uri.path().strip_prefix(PROFILES);
    if parts.method != Method::PUT && profile.is_none() {
        return respond(process, &parts.method, parts.uri.path(), "");
    }
    if !is_local {
        let refusal = "only from the machine itself; use kubectl port-forward\n";
        return text(StatusCode::FORBIDDEN, refusal.to_owned());
    }
    if let Some(name) = profile {
        return take_profile(process.profiles, name, parts.uri.query().unwrap_or_default()).await;
    }
    // A body that is too long is not read to its end.
    let body = Limited::new(body, BODY_MAX).collect().await;
    let body = body.map(Collected::to_bytes).unwrap_or_default();
    respond(process, &parts.method, parts.uri.path(), &String::from_utf8_lossy(&body))
}

async fn take_profile(
    profiles: Option<&'static dyn Profiles>,
    name: &str,
    query: &str,
) -> Response<Full<Bytes>> {
    let taking = match (name, profiles, seconds(query)) {
        ("profile", Some(profiles), Ok(secs)) => profiles.cpu(Duration::from_secs(secs)),
        ("profile", Some(_), Err(why)) => return text(StatusCode::BAD_REQUEST, why),
        ("heap", Some(profiles), _) => profiles.heap(),
        ("profile" | "heap", None, _) => {
            let why =
                "this binary was built without the feature profiles; released binaries have it\n";
            return text(StatusCode::NOT_IMPLEMENTED, why.to_owned());
        }
        _ => {
            return text(
                StatusCode::NOT_FOUND,
                format!("only {PROFILES}profile and {PROFILES}heap\n"),
            );
        }
    };
    match taking.await {
        Ok(profile) => {
            let mut response = Response::new(Full::new(Bytes::from(profile)));
            let kind = http::HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
            response
        }
        Err(why) => text(StatusCode::CONFLICT, format!("{why}\n")),
    }
}

/// The duration that a query asks for.
fn seconds(query: &str) -> Result<u64, String> {
    let given = query.split('&').find_map(|pair| pair.strip_prefix("seconds="));
    let given = given.map_or(Ok(PROFILE_SECS), str::parse);
    let fits = |secs: &u64| (1..=PROFILE_SECS_MAX).contains(secs);
    given.ok().filter(fits).ok_or(format!("seconds: a number from 1 to {PROFILE_SECS_MAX}\n"))
}

fn text(code: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    response
}

fn respond(process: &Process, method: &Method, path: &str, body: &str) -> Response<Full<Bytes>> {
    let Process { metrics, log_level, .. } = process;
    let (code, answer) = match path {
        LOG_LEVEL if *method == Method::PUT => match log_level.set(body.trim()) {
            Ok(()) => (StatusCode::OK, format!("logging at {}\n", log_level.get())),
            Err(expected) => (StatusCode::BAD_REQUEST, format!("{expected}\n")),
        },
        _ if *method == Method::PUT => {
            (StatusCode::METHOD_NOT_ALLOWED, format!("only {LOG_LEVEL} can be changed\n"))
        }
        LOG_LEVEL => (StatusCode::OK, format!("{}\n", log_level.get())),
        "/metrics" => (StatusCode::OK, metrics.text()),
        "/healthz" | "/livez" => (StatusCode::OK, "ok".to_owned()),
        "/readyz" if metrics.is_ready() => (StatusCode::OK, "ok".to_owned()),
        "/readyz" if metrics.is_ending() => {
            (StatusCode::SERVICE_UNAVAILABLE, "the process is about to end".to_owned())
        }
        "/readyz" => (StatusCode::SERVICE_UNAVAILABLE, "not all kinds are listed yet".to_owned()),
        _ => (
            StatusCode::NOT_FOUND,
            format!(
                "not found; available: /metrics, /healthz, /livez, /readyz, {LOG_LEVEL}, \
                 {PROFILES}profile, {PROFILES}heap"
            ),
        ),
    };
    let mut response = text(code, answer);
    let kind = match path {
        "/metrics" => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug)]
    struct Level(Mutex<String>);

    impl LogLevel for Level {
        fn get(&self) -> String {
            self.0.lock().unwrap().clone()
        }

        fn set(&self, word: &str) -> Result<(), String> {
            if word != "debug" {
                return Err(format!("{word:?} is no log level"));
            }
            word.clone_into(&mut self.0.lock().unwrap());
            Ok(())
        }
    }

    static LEVEL: Level = Level(Mutex::new(String::new()));

    fn process() -> Process {
        Process { metrics: Arc::default(), log_level: &LEVEL, profiles: None }
    }

    fn code(process: &Process, method: &Method, path: &str, body: &str) -> u16 {
        respond(process, method, path, body).status().as_u16()
    }

    #[test]
    fn readiness_follows_the_first_lists() {
        let process = process();
        assert_eq!(code(&process, &Method::GET, "/readyz", ""), 503);
        process.metrics.set_ready(true);
        assert_eq!(code(&process, &Method::GET, "/readyz", ""), 200);
        assert_eq!(code(&process, &Method::GET, "/metrics", ""), 200);
        assert_eq!(code(&process, &Method::GET, "/", ""), 404);
        process.metrics.end();
        // The last lists may come in after the signal.
        process.metrics.set_ready(true);
        assert_eq!(code(&process, &Method::GET, "/readyz", ""), 503);
        assert_eq!(code(&process, &Method::GET, "/livez", ""), 200);
    }

    #[tokio::test]
    async fn only_the_machine_itself_may_take_profiles_and_change_the_log_level() {
        static LEVEL: Level = Level(Mutex::new(String::new()));
        let process =
            Process { metrics: Arc::default(), log_level: &LEVEL, profiles: Some(&Sampler) };
        for (method, path, from_elsewhere) in [
            (Method::PUT, LOG_LEVEL, 403),
            (Method::GET, "/debug/pprof/profile?seconds=1", 403),
            (Method::GET, "/debug/pprof/heap", 403),
            (Method::POST, "/debug/pprof/heap", 403),
            (Method::GET, LOG_LEVEL, 200),
            (Method::GET, "/metrics", 200),
            (Method::GET, "/livez", 200),
        ] {
            for (is_local, expected) in [(false, from_elsewhere), (true, 200)] {
                let request = Request::builder().method(&method).uri(path);
                let request = request.body(Full::new(Bytes::from("debug"))).unwrap();
                let code = answer(&process, request, is_local).await.status().as_u16();
                assert_eq!(code, expected, "{method} {path}, local: {is_local}");
                let changed = if is_local && method == Method::PUT { "debug" } else { "" };
                assert_eq!(std::mem::take(&mut *LEVEL.0.lock().unwrap()), changed, "{path}");
            }
        }
    }

    #[derive(Debug)]
    struct Sampler;

    impl Profiles for Sampler {
        fn cpu(&self, time: Duration) -> BoxFuture<'static, Profile> {
            Box::pin(async move {
                if time > Duration::from_secs(30) { Err("busy".to_owned()) } else { Ok(vec![1]) }
            })
        }

        fn heap(&self) -> BoxFuture<'static, Profile> {
            Box::pin(async { Ok(vec![2]) })
        }
    }

    #[tokio::test]
    async fn a_profile_takes_as_long_as_it_is_asked_for() {
        for (name, query, expected) in [
            ("profile", "", 200),
            ("profile", "debug=0&seconds=5", 200),
            ("profile", "seconds=31", 409),
            ("profile", "seconds=301", 400),
            ("profile", "seconds=now", 400),
            ("heap", "", 200),
            ("goroutine", "", 404),
        ] {
            let code = take_profile(Some(&Sampler), name, query).await.status().as_u16();
            assert_eq!(code, expected, "{name}?{query}");
        }
        for name in ["profile", "heap"] {
            assert_eq!(take_profile(None, name, "").await.status().as_u16(), 501, "{name}");
        }
    }

    #[test]
    fn the_log_level_is_changed_by_its_name() {
        let process = process();
        let cases = [(LOG_LEVEL, "loud", 400), (LOG_LEVEL, "debug\n", 200), ("/metrics", "", 405)];
        for (path, body, expected) in cases {
            assert_eq!(code(&process, &Method::PUT, path, body), expected, "{path} {body:?}");
        }
        assert_eq!(LEVEL.get(), "debug");
    }
}
