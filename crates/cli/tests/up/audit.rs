//! The audit log of a real API server: who asked it for what, and when. In the whole suite, no
//! request of an account that `deploy/` or the chart makes may be forbidden.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use convoy_kubernetes::{ControlPlane, Programs};
use serde_json::Value;

/// Every request is logged without its body, and once it is answered or, for a watch, accepted.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

/// Names of the accounts that `deploy/` and the chart make.
const ACCOUNTS: [&str; 2] = ["convoy", "convoy-agent"];

/// The logs of all servers of this process, and how far each was read.
static LOGS: Mutex<Vec<(PathBuf, u64)>> = Mutex::new(Vec::new());

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
        LOGS.lock().unwrap().push((log.path(), 0));
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

/// Fails if a server of this process has forbidden something to an account of ours since the last
/// call. What an account asks for in somebody's name is that person's business.
pub(crate) fn no_account_is_refused() {
    let mut logs = LOGS.lock().unwrap();
    // The log of a test that has ended is gone.
    logs.retain(|(path, _)| path.exists());
    let refused: Vec<Value> = logs.iter_mut().flat_map(|(path, end)| refused(path, end)).collect();
    drop(logs);
    assert!(refused.is_empty(), "a permission is missing: {refused:#?}");
}

/// Requests of our accounts that are logged as forbidden after `end`, which moves on.
fn refused(path: &Path, end: &mut u64) -> Vec<Value> {
    let mut text = String::new();
    let mut file = File::open(path).unwrap();
    file.seek(SeekFrom::Start(*end)).unwrap();
    file.read_to_string(&mut text).unwrap();
    // The last line may be half written.
    let whole = text.rfind('\n').map_or(0, |last| last + 1);
    *end += whole as u64;
    let is_ours = |event: &Value| {
        let user = event["user"]["username"].as_str().unwrap_or_default();
        let account = user.strip_prefix("system:serviceaccount:").unwrap_or_default();
        let account = account.split_once(':').map_or("", |(_, name)| name);
        ACCOUNTS.contains(&account) && event["impersonatedUser"].is_null()
    };
    let events = text[..whole].lines().filter(|line| line.contains(r#""code":403"#));
    let events = events.filter_map(|line| serde_json::from_str(line).ok());
    events.filter(is_ours).collect()
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
