//! The audit log of a real API server: who asked it for what, and when. In the whole suite, no
//! request of an account that `deploy/` or the chart makes may be forbidden, and none of an agent on its
//! hub.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use convoy_kubernetes::{ControlPlane, Programs};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::home::MANAGED;
use crate::placements::site::REAL;

/// Every request is logged without its body, and once it is answered or, for a watch, accepted.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

/// Names of the accounts that `deploy/` and the chart make, and of those that agents have on their hub,
/// which are called after their clusters.
const ACCOUNTS: [&str; 5] = ["convoy", "convoy-agent", MANAGED, REAL[0], REAL[1]];

/// The group of roles and their bindings.
const ROLES: &str = "rbac.authorization.k8s.io";

/// How long a new role may take to be known to its API server.
const ROLE_DELAY: Duration = Duration::from_secs(10);

/// The logs of all servers of this process.
static LOGS: Mutex<Vec<RefusalLog>> = Mutex::new(Vec::new());

/// A log as far as it was read.
struct RefusalLog {
    path: PathBuf,
    end: u64,
    /// What was forbidden to an account of ours and was not allowed since, by account, verb and path,
    /// and when that was read.
    refused: BTreeMap<[String; 3], (Instant, Value)>,
    /// When somebody wrote roles or their bindings.
    roles_written: Vec<Timestamp>,
}

pub(crate) struct AuditLog {
    directory: tempfile::TempDir,
}

/// One request that the server answered.
#[derive(Clone, Debug)]
pub(crate) struct Audited {
    pub(crate) user: String,
    /// The token of a service account; each token has its own.
    pub(crate) credential: String,
    pub(crate) verb: String,
    pub(crate) group: String,
    /// With the subresource: `pods/eviction`.
    pub(crate) resource: String,
    pub(crate) code: u64,
    pub(crate) received: Timestamp,
}

impl AuditLog {
    /// A real API server with an audit log.
    pub(crate) fn control_plane(more: &[(&str, &str)]) -> (ControlPlane, Self) {
        let log = Self { directory: tempfile::tempdir().unwrap() };
        let policy = log.directory.path().join("policy.yaml");
        std::fs::write(&policy, POLICY).unwrap();
        let programs =
            Programs::find().unwrap_or_else(|error| panic!("this test needs it: {error}"));
        let (policy, path) = (policy.to_string_lossy(), log.path());
        let path = path.to_string_lossy();
        let flags = [("--audit-policy-file", policy.as_ref()), ("--audit-log-path", path.as_ref())];
        let control_plane = ControlPlane::start(&programs, &[&flags, more].concat()).unwrap();
        LOGS.lock().unwrap().push(RefusalLog::new(log.path()));
        (control_plane, log)
    }

    /// Keeps the log for as long as the process runs, which ends without dropping what is static.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("audit.log")
    }

    /// All requests for resources so far, in the order of their responses.
    pub(crate) fn requests(&self) -> Vec<Audited> {
        let text = std::fs::read_to_string(self.path()).unwrap();
        // The last line may be half written.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|event| event["objectRef"].is_object()).map(|event| audited(&event)).collect()
    }
}

/// The end of the test whose server it is: nothing is allowed later.
impl Drop for AuditLog {
    fn drop(&mut self) {
        let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = logs.iter().position(|log| log.path == self.path()) else { return };
        let mut log = logs.swap_remove(at);
        drop(logs);
        // Whatever else has failed says so itself.
        if !std::thread::panicking() {
            let refused = log.refused_at_the_end();
            assert!(refused.is_empty(), "a permission is missing: {refused:#?}");
        }
    }
}

/// Fails if a server of this process has forbidden something to an account of ours, and has not
/// allowed it soon after that. What an account asks for in somebody's name is that person's business.
pub(crate) fn no_account_is_refused() {
    let mut logs = LOGS.lock().unwrap();
    // The log of a test that has ended is gone.
    logs.retain(|log| log.path.exists());
    let refused: Vec<Value> = logs.iter_mut().flat_map(RefusalLog::late).collect();
    drop(logs);
    assert!(refused.is_empty(), "a permission is missing: {refused:#?}");
}

impl RefusalLog {
    fn new(path: PathBuf) -> Self {
        Self { path, end: 0, refused: BTreeMap::new(), roles_written: Vec::new() }
    }

    /// Reads on; what has been forbidden for too long.
    fn late(&mut self) -> Vec<Value> {
        self.read();
        let late = self.refused.values().filter(|(since, _)| since.elapsed() > ROLE_DELAY);
        late.map(|(_, event)| event.clone()).collect()
    }

    /// Reads on; what was forbidden last, for however short a time. A server may not have known a role
    /// that was written at about that time.
    fn refused_at_the_end(&mut self) -> Vec<Value> {
        self.read();
        let delay = SignedDuration::try_from(ROLE_DELAY).unwrap();
        let is_excused = |event: &Value| {
            let written = |at: &Timestamp| at.duration_since(received(event)).abs() <= delay;
            self.roles_written.iter().any(written)
        };
        let refused = self.refused.values().map(|(_, event)| event);
        refused.filter(|event| !is_excused(event)).cloned().collect()
    }

    fn read(&mut self) {
        let mut text = String::new();
        let mut file = File::open(&self.path).unwrap();
        file.seek(SeekFrom::Start(self.end)).unwrap();
        file.read_to_string(&mut text).unwrap();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or(0, |last| last + 1);
        self.end += whole as u64;
        let is_of_interest = |line: &&str| {
            line.contains(ROLES) || ACCOUNTS.iter().any(|it| line.contains(&format!(":{it}\"")))
        };
        let lines = text[..whole].lines().filter(is_of_interest);
        for event in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if writes_roles(&event) {
                self.roles_written.push(received(&event));
            }
            let Some(request) = request_of_ours(&event) else { continue };
            if event["responseStatus"]["code"] == 403 {
                self.refused.entry(request).or_insert((Instant::now(), event));
            } else {
                self.refused.remove(&request);
            }
        }
    }
}

fn writes_roles(event: &Value) -> bool {
    let is_read = ["get", "list", "watch"].iter().any(|verb| event["verb"] == *verb);
    event["objectRef"]["apiGroup"] == ROLES && !is_read
}

fn received(event: &Value) -> Timestamp {
    event["requestReceivedTimestamp"].as_str().unwrap().parse().unwrap()
}

/// Account, verb and path of a request that an account of ours makes in its own name.
fn request_of_ours(event: &Value) -> Option<[String; 3]> {
    let user = event["user"]["username"].as_str()?;
    let (_, account) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let is_ours = ACCOUNTS.contains(&account) && event["impersonatedUser"].is_null();
    let path = event["requestURI"].as_str()?.split('?').next()?;
    let verb = event["verb"].as_str()?;
    is_ours.then(|| [user, verb, path].map(str::to_owned))
}

fn audited(event: &Value) -> Audited {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &event["objectRef"];
    let (resource, part) = (word(&object["resource"]), word(&object["subresource"]));
    let extra = &event["user"]["extra"];
    Audited {
        user: word(&event["user"]["username"]),
        credential: word(&extra["authentication.kubernetes.io/credential-id"][0]),
        verb: word(&event["verb"]),
        group: word(&object["apiGroup"]),
        resource: if part.is_empty() { resource } else { format!("{resource}/{part}") },
        code: event["responseStatus"]["code"].as_u64().unwrap_or(0),
        received: received(event),
    }
}

#[test]
fn a_refusal_in_the_last_second_counts_unless_roles_were_written() {
    let event = |user: &str, verb: &str, object: Value, code: u16, at: &str| {
        let user = json!({"username": format!("system:serviceaccount:{user}")});
        let at = format!("2026-01-01T00:{at}Z");
        let uri = format!("/{}", object["resource"].as_str().unwrap());
        json!({"user": user, "verb": verb, "objectRef": object, "requestURI": uri,
            "responseStatus": {"code": code}, "requestReceivedTimestamp": at})
    };
    let pods = || json!({"resource": "pods"});
    let refused = |user: &str, at: &str| event(user, "list", pods(), 403, at);
    let role = |verb: &str| {
        let object = json!({"apiGroup": ROLES, "resource": "clusterroles"});
        event("kube-system:admin", verb, object, 200, "01:00")
    };
    let last = refused("a:convoy", "01:30");
    for (case, events, expected) in [
        ("nothing", vec![], 0),
        ("an account of the chart", vec![last.clone()], 1),
        ("an agent on its hub", vec![refused(&format!("hub:{MANAGED}"), "01:30")], 1),
        ("another one", vec![refused(&format!("hub:{}", REAL[1]), "01:30")], 1),
        ("somebody else", vec![refused("a:other", "01:30")], 0),
        ("allowed later", vec![last.clone(), event("a:convoy", "list", pods(), 200, "01:31")], 0),
        ("something else allowed", vec![last, event("a:convoy", "watch", pods(), 200, "01:31")], 1),
        ("a new role", vec![role("create"), refused("a:convoy", "01:08")], 0),
        ("a role that comes", vec![refused("a:convoy", "00:52"), role("patch")], 0),
        ("an old role", vec![role("create"), refused("a:convoy", "01:12")], 1),
        ("a role that was read", vec![role("list"), refused("a:convoy", "01:08")], 1),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let lines = events.iter().map(|event| format!("{event}\n"));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let mut log = RefusalLog::new(path);
        assert_eq!(log.refused_at_the_end().len(), expected, "{case}");
        assert_eq!(log.late().len(), 0, "{case}");
    }
}
