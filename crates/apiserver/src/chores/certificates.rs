//! Signs approved requests for certificates, for the signers that are built in.
//!
//! Only in the first logical cluster: a certificate names a user to all of them.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoy_store::Key;
use serde_json::{Value, json};

use crate::authority::{CertificateSigner, SignerName, SigningRequest};
use crate::encoding;
use crate::own;
use crate::server::Server;
use crate::status::ApiResult;
use crate::surroundings::seconds;

pub(super) const SHELF: &str = "certificates.k8s.io/certificatesigningrequests";

/// Signs a request if it is to be signed here. A request that changed meanwhile comes again.
pub(super) async fn sign(server: &Arc<Server>, key: Key) -> ApiResult<bool> {
    let signer = server.certificate_signer();
    let Some(signer) = signer.as_ref().as_ref().filter(|_| key.shelf.cluster.is_empty()) else {
        return Ok(false);
    };
    let snapshot = server.store.snapshot();
    let Some(entry) = snapshot.get(&key) else { return Ok(false) };
    let Some(outcome) = signed(signer, &encoding::read_entry(entry), server) else {
        return Ok(false);
    };
    let registry = server.cluster("").map(|cluster| cluster.registry());
    let Some(resource) = registry.as_ref().and_then(|registry| registry.of_shelf(SHELF)) else {
        return Ok(false);
    };
    own::amend_at(server, resource, entry, |request| {
        let status = &mut request["status"];
        match outcome {
            Ok(certificate) => status["certificate"] = json!(STANDARD.encode(certificate)),
            Err(why) => {
                let now = json!(seconds(server.now()));
                let failed = json!({"type": "Failed", "status": "True",
                    "reason": "SignerValidationFailure", "message": why,
                    "lastUpdateTime": now, "lastTransitionTime": now});
                if let Value::Array(conditions) = &mut status["conditions"] {
                    conditions.push(failed);
                }
            }
        }
    })
    .await?;
    Ok(false)
}

/// What a signer makes of a request. `None`: it is not approved, done already, or not for one that
/// is built in.
fn signed(
    signer: &CertificateSigner,
    request: &Value,
    server: &Server,
) -> Option<Result<String, String>> {
    let (spec, status) = (&request["spec"], &request["status"]);
    let is = |kind: &str| {
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.any(|one| one["type"] == kind && one["status"] == "True")
    };
    let is_issued = status["certificate"].as_str().is_some_and(|text| !text.is_empty());
    if !is("Approved") || is("Denied") || is("Failed") || is_issued {
        return None;
    }
    let name = SignerName::of(spec["signerName"].as_str()?)?;
    let usages: Vec<&str> =
        spec["usages"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let pem = STANDARD.decode(spec["request"].as_str().unwrap_or_default()).unwrap_or_default();
    let asked = SigningRequest {
        signer: name,
        pem: &pem,
        usages: &usages,
        seconds: spec["expirationSeconds"].as_i64(),
    };
    Some(signer.sign(&asked, server.now()))
}
