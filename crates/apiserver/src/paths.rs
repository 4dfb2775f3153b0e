//! Paths that name no resource: health, version, discovery.

use std::sync::Arc;

use http::{HeaderMap, Response};
use serde_json::json;

use crate::accept::Accept;
use crate::body::Body;
use crate::query::Query;
use crate::reply::{bytes, encoded};
use crate::request::Attributes;
use crate::server::{Cluster, Server};
use crate::status::{Answer, Status};

/// The release of Kubernetes whose API this is.
pub const MINOR: &str = "37";

pub(crate) fn answer(
    server: &Arc<Server>,
    _cluster: &Arc<Cluster>,
    attributes: &Attributes,
    query: &Query,
    _accept: &str,
    _headers: &HeaderMap,
) -> Answer<Response<Body>> {
    if !matches!(attributes.verb.as_str(), "get" | "head") {
        return Err(Status::method_not_allowed());
    }
    match attributes.path.trim_end_matches('/') {
        "/version" => Ok(encoded(200, &version(), Accept { pretty: true, ..Accept::default() })),
        path @ ("/healthz" | "/livez" | "/readyz") => Ok(health(server, path, query)),
        _ => Err(Status::no_such_route()),
    }
}

pub fn version() -> serde_json::Value {
    json!({
        "major": "1", "minor": MINOR,
        "emulationMajor": "1", "emulationMinor": MINOR,
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "36",
        "gitVersion": format!("v1.{MINOR}.0+convoy-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "rust", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

fn health(server: &Server, path: &str, query: &Query) -> Response<Body> {
    let failure = server.store.failure();
    let (code, mark) =
        if failure.is_some() { (500, "[-]store failed") } else { (200, "[+]store ok") };
    let text = match (query.get("verbose").is_some(), failure.is_some()) {
        (false, false) => "ok".to_owned(),
        _ => {
            let verdict = if failure.is_some() { "failed" } else { "passed" };
            format!("[+]ping ok\n{mark}\n{} check {verdict}\n", path.trim_start_matches('/'))
        }
    };
    bytes(code, "text/plain; charset=utf-8", text.into())
}
