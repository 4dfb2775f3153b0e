//! The audit log of a real API server: who asked it for what, and when.

use std::path::PathBuf;

use convoy_kubernetes::{ControlPlane, Programs};
use serde_json::Value;

/// Every request is logged without its body, and once it is answered or, for a watch, accepted.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

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
    pub(crate) fn control_plane() -> (ControlPlane, Self) {
        let log = Self { directory: tempfile::tempdir().unwrap() };
        let policy = log.directory.path().join("policy.yaml");
        std::fs::write(&policy, POLICY).unwrap();
        let programs =
            Programs::find().unwrap_or_else(|error| panic!("this test needs it: {error}"));
        let (policy, path) = (policy.to_string_lossy(), log.path());
        let path = path.to_string_lossy();
        let flags = [("--audit-policy-file", policy.as_ref()), ("--audit-log-path", path.as_ref())];
        (ControlPlane::start(&programs, &flags).unwrap(), log)
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
