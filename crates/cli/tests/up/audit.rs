//! The audit log of a real API server: who asked it for what, and when. In the whole suite, no
//! request of an account that `deploy/` or the chart makes may be forbidden.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use convoy_kubernetes::{ControlPlane, Programs};
use serde_json::Value;

/// Every request is logged without its body, and once it is answered or, for a watch, accepted.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

/// Names of the accounts that `deploy/` and the chart make.
const ACCOUNTS: [&str; 2] = ["convoy", "convoy-agent"];

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
    pub(crate) received: jiff::Timestamp,
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
        let refused = BTreeMap::new();
        LOGS.lock().unwrap().push(RefusalLog { path: log.path(), end: 0, refused });
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

/// Fails if a server of this process has forbidden something to an account of ours, and has not
/// allowed it soon after that. What an account asks for in somebody's name is that person's business.
pub(crate) fn no_account_is_refused() {
    let mut logs = LOGS.lock().unwrap();
    // The log of a test that has ended is gone.
    logs.retain(|log| log.path.exists());
    let refused: Vec<Value> = logs.iter_mut().flat_map(RefusalLog::read).collect();
    drop(logs);
    assert!(refused.is_empty(), "a permission is missing: {refused:#?}");
}

impl RefusalLog {
    /// Reads on; what has been forbidden for too long.
    fn read(&mut self) -> Vec<Value> {
        let mut text = String::new();
        let mut file = File::open(&self.path).unwrap();
        file.seek(SeekFrom::Start(self.end)).unwrap();
        file.read_to_string(&mut text).unwrap();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or(0, |last| last + 1);
        self.end += whole as u64;
        let lines = text[..whole].lines().filter(|line| line.contains(":convoy"));
        for event in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let Some(request) = request_of_ours(&event) else { continue };
            if event["responseStatus"]["code"] == 403 {
                self.refused.entry(request).or_insert((Instant::now(), event));
            } else {
                self.refused.remove(&request);
            }
        }
        let late = self.refused.values().filter(|(since, _)| since.elapsed() > ROLE_DELAY);
        late.map(|(_, event)| event.clone()).collect()
    }
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
        received: word(&event["requestReceivedTimestamp"]).parse().unwrap(),
    }
}
