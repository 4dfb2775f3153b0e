//! Paths that name no resource: health, version, discovery, OpenAPI.

use std::sync::Arc;

use http::{HeaderMap, Response};
use serde_json::{Value, json};

use crate::accept::{Accept, Encoding, wants_pretty};
use crate::body::Body;
use crate::query::Query;
use crate::registry::Registry;
use crate::request_info::RequestInfo;
use crate::response::{bytes, encoded};
use crate::server::{Cluster, Server};
use crate::status::{ApiResult, Status};
use crate::version::{MINOR, git_version};
use crate::{discovery, health, openapi};

pub(crate) fn serve(
    server: &Arc<Server>,
    cluster: &Arc<Cluster>,
    info: &RequestInfo,
    query: &Query,
    accept: &str,
    headers: &HeaderMap,
) -> ApiResult<Response<Body>> {
    if !info.verb.reads() {
        return Err(Status::method_not_allowed());
    }
    let segments: Vec<&str> = info.path.split('/').filter(|segment| !segment.is_empty()).collect();
    let pretty = wants_pretty(query, headers);
    let shown = |value: Value| {
        let encoding = Accept::read(accept, false).map_or(Encoding::Json, |accept| accept.encoding);
        Ok(encoded(200, &value, Accept { encoding, pretty, ..Accept::default() }))
    };
    match segments[..] {
        [] => shown(json!({"paths": paths(&cluster.registry())})),
        // Always in lines: people look at it, and upstream never writes it in any other way.
        ["version"] => Ok(encoded(200, &version(), Accept { pretty: true, ..Accept::default() })),
        [endpoint @ ("healthz" | "livez" | "readyz"), ref check @ ..] => {
            health::serve(server, endpoint, &check.join("/"), query)
        }
        ["api" | "apis", ..] => {
            discovery::serve(&cluster.published(), &segments, accept, headers, pretty)
        }
        ["openapi", ref document @ ..] => {
            openapi::serve(&cluster.published(), document, query, accept, headers, server.now())
        }
        [".well-known", "openid-configuration"] => {
            shown(server.access.openid_configuration(&cluster.name))
        }
        ["openid", "v1", "jwks"] => {
            let text = server.access.key_set().to_string();
            Ok(bytes(200, "application/jwk-set+json", text.into()))
        }
        ["metrics", "slis"] => Ok(bytes(200, METRICS, health::indicators(server).into())),
        ["metrics"] => {
            let audit = server.access.audit.as_ref().map(|audit| audit.counts());
            let text = server.metrics.text(&server.store, audit.unwrap_or_default());
            Ok(bytes(200, METRICS, text.into()))
        }
        _ => Err(Status::no_such_route()),
    }
}

/// The media type of metrics.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The paths that `/` lists.
fn paths(registry: &Registry) -> Vec<String> {
    let mut paths = discovery::paths(registry);
    paths.extend(health::paths());
    let others = [
        "/.well-known/openid-configuration",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/openid/v1/jwks",
        "/version",
    ];
    paths.extend(others.map(str::to_owned));
    paths.sort();
    paths
}

pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR,
        "emulationMajor": "1", "emulationMinor": MINOR,
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "36",
        "gitVersion": git_version(),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "rust", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
