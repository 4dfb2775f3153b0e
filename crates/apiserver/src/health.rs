//! Health endpoints: `/healthz`, `/livez`, `/readyz` and their single checks.

use http::Response;

use crate::body::Body;
use crate::query::Query;
use crate::response::bytes;
use crate::server::Server;
use crate::status::{ApiResult, Status};

/// What is looked at before the server counts as alive, and what only before it is asked for
/// work.
const ALIVE: [&str; 3] = ["ping", "log", "store"];
const READY: [&str; 5] = ["ping", "log", "store", "informer-sync", "shutdown"];

const ENDPOINTS: [&str; 3] = ["healthz", "livez", "readyz"];

/// Answers `/healthz`, `/livez`, `/readyz`, and each check under its own path.
pub(crate) fn serve(
    server: &Server,
    endpoint: &str,
    check: &str,
    query: &Query,
) -> ApiResult<Response<Body>> {
    let known = checks(endpoint);
    if !check.is_empty() {
        if !known.contains(&check) {
            return Err(Status::no_such_route());
        }
        let (code, text) = if passes(server, endpoint, check) {
            (200, "ok".to_owned())
        } else {
            (500, format!("internal server error: {check} failed\n"))
        };
        return Ok(text_answer(code, text));
    }
    let mut lines = Vec::new();
    let mut failed = false;
    for check in known {
        if query.all("exclude").any(|excluded| excluded == *check) {
            lines.push(format!("[+]{check} excluded: ok\n"));
        } else if passes(server, endpoint, check) {
            lines.push(format!("[+]{check} ok\n"));
        } else {
            failed = true;
            // The endpoint is public, so the cause goes to the log only.
            lines.push(format!("[-]{check} failed: reason withheld\n"));
        }
    }
    let lines = lines.concat();
    Ok(match (failed, query.get("verbose").is_some()) {
        (true, _) => text_answer(500, format!("{lines}{endpoint} check failed\n")),
        (false, true) => text_answer(200, format!("{lines}{endpoint} check passed\n")),
        (false, false) => text_answer(200, "ok".to_owned()),
    })
}

/// What `/metrics/slis` tells: how every check stands now, and how often each was found well.
pub(crate) fn indicators(server: &Server) -> String {
    for endpoint in ENDPOINTS {
        for check in checks(endpoint) {
            server.metrics.checks.state(endpoint, check, is_well(server, check));
        }
    }
    server.metrics.checks.text()
}

/// Makes a check for somebody who asked at `endpoint`.
fn passes(server: &Server, endpoint: &str, check: &str) -> bool {
    let passed = is_well(server, check);
    server.metrics.checks.made(endpoint, check, passed);
    passed
}

/// The paths of all checks.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    ENDPOINTS.into_iter().flat_map(|endpoint| {
        let single = checks(endpoint).iter().map(move |check| format!("/{endpoint}/{check}"));
        std::iter::once(format!("/{endpoint}")).chain(single)
    })
}

fn checks(endpoint: &str) -> &'static [&'static str] {
    if endpoint == "readyz" { &READY } else { &ALIVE }
}

fn is_well(server: &Server, check: &str) -> bool {
    match check {
        "store" => server.store.failure().is_none(),
        // What the server knows of its own store is read before the first request is taken; from
        // then on it is wrong only if nobody follows the store any more.
        "informer-sync" => !server.has_stopped_chores(),
        "shutdown" => !server.is_ending(),
        // The others can only fail by not answering.
        _ => true,
    }
}

fn text_answer(code: u16, text: String) -> Response<Body> {
    bytes(code, "text/plain; charset=utf-8", text.into())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::chores;
    use crate::testing::TestServer;

    #[test]
    fn a_server_that_ends_is_alive_and_not_ready() {
        let test = TestServer::new();
        let code = |path: &str| test.call("GET", path, &Value::Null).0;
        assert_eq!([code("/readyz"), code("/readyz/shutdown"), code("/livez")], [200; 3]);
        test.server.end_watches();
        assert_eq!([code("/readyz"), code("/readyz/shutdown"), code("/livez")], [500, 500, 200]);
    }

    #[test]
    fn checks_are_told_as_indicators() {
        let test = TestServer::new();
        test.server.end_watches();
        assert_eq!(test.call("GET", "/readyz", &Value::Null).0, 500);
        let shown = test.send("GET", "/metrics/slis", &[], "").bytes;
        let shown = String::from_utf8(shown.to_vec()).unwrap();
        for line in [
            r#"kubernetes_healthcheck{name="shutdown",type="readyz"} 0"#,
            r#"kubernetes_healthcheck{name="store",type="livez"} 1"#,
            r#"kubernetes_healthchecks_total{name="shutdown",type="readyz",status="error"} 1"#,
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line} in {shown}");
        }
    }

    #[test]
    fn a_server_that_lost_its_chores_is_not_ready() {
        let test = TestServer::new();
        let code = |path: &str| test.call("GET", path, &Value::Null).0;
        let mut started = None;
        test.run(async {
            started = Some(chores::start(test.server.clone(), std::future::pending()));
        });
        let chores = started.unwrap();
        assert_eq!(code("/readyz/informer-sync"), 200);
        chores.abort();
        assert!(test.run(chores).is_err());
        assert_eq!([code("/readyz/informer-sync"), code("/readyz")], [500; 2]);
    }
}
