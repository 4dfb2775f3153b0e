//! Who may approve and sign requests for certificates, and what nobody may ask for.
//!
//! These are the admission plugins `CertificateApproval`, `CertificateSigning` and
//! `CertificateSubjectRestriction` of a kube-apiserver.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoy_api::well_known::CLIENT_SIGNER;
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

use crate::access::Attributes;
use crate::caller::MASTERS;
use crate::metadata;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

/// Refuses what the caller may not ask for, approve or sign.
pub(crate) fn refuse(
    request: &ResourceRequest,
    object: &Value,
    old: Option<&Value>,
) -> ApiResult<()> {
    let refused = match (request.target.subresource.as_str(), old) {
        ("", None) => restricted_subject(object),
        // What counts is the signer of the request that stands.
        ("approval", Some(old)) => unless_permitted(request, "approve", old),
        ("status", Some(old)) if is_signed_by(object, old) => {
            unless_permitted(request, "sign", old)
        }
        _ => None,
    };
    match refused {
        None => Ok(()),
        Some(why) => {
            Err(Status::forbidden(&request.resource, metadata::text(object, "name"), &why))
        }
    }
}

/// Whether an update of the status does a signer's work.
fn is_signed_by(object: &Value, old: &Value) -> bool {
    // A field that is absent, null or empty says the same.
    let is_some = |value: &&Value| {
        !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()) && *value != ""
    };
    ["certificate", "conditions"].iter().any(|field| {
        let of = |object: &'_ Value| object["status"].get(field).filter(is_some).cloned();
        of(object) != of(old)
    })
}

/// Why the caller may not do something for a signer: the verb is needed on the signer of this
/// name, or on all signers of its domain.
fn unless_permitted(request: &ResourceRequest, verb: &str, old: &Value) -> Option<String> {
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    let domain = signer.split('/').next().unwrap_or_default();
    let is_permitted = |name: &str| {
        let attributes = Attributes::on(verb, "certificates.k8s.io", "signers", "", name);
        request.guard().may(&request.caller, &attributes)
    };
    if is_permitted(signer) || is_permitted(&format!("{domain}/*")) {
        return None;
    }
    Some(format!("user not permitted to {verb} requests with signerName {signer:?}"))
}

/// Why nobody may ask for such a certificate: it would make an administrator whom no binding
/// names, and whom no binding could be taken from.
fn restricted_subject(object: &Value) -> Option<String> {
    let spec = &object["spec"];
    if spec["signerName"] != CLIENT_SIGNER {
        return None;
    }
    match groups(spec["request"].as_str().unwrap_or_default()) {
        Err(why) => Some(format!("failed to parse CSR: {why}")),
        Ok(groups) if groups.iter().any(|group| group == MASTERS) => {
            Some(format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"))
        }
        Ok(_) => None,
    }
}

/// The organizations that a request names, which become groups.
fn groups(request: &str) -> Result<Vec<String>, String> {
    let pem = STANDARD.decode(request).map_err(|error| error.to_string())?;
    let der = CertificateSigningRequestDer::from_pem_slice(&pem)
        .map_err(|_| "PEM block type must be CERTIFICATE REQUEST".to_owned())?;
    let (_, parsed) =
        X509CertificationRequest::from_der(&der).map_err(|error| error.to_string())?;
    let organizations = parsed.certification_request_info.subject.iter_organization();
    organizations
        .map(|part| part.as_str().map(str::to_owned).map_err(|error| error.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};
    use serde_json::json;

    use crate::access::tests::World;

    use super::*;

    const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

    fn csr(name: &str, signer: &str, groups: &[&str]) -> Value {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        for group in groups {
            let value = DnValue::Utf8String((*group).to_owned());
            params.distinguished_name.push(DnType::OrganizationName, value);
        }
        let key = KeyPair::generate().unwrap();
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        json!({"metadata": {"name": name}, "spec": {"request": STANDARD.encode(pem),
            "signerName": signer, "usages": ["client auth"]}})
    }

    /// A world in which ada may do everything with requests, and `verb` for one signer name.
    fn world(verb: &str, signer: &str) -> World {
        let world = World::new();
        let rules = json!([
            {"apiGroups": ["certificates.k8s.io"], "verbs": ["*"],
             "resources": ["certificatesigningrequests", "certificatesigningrequests/approval",
                "certificatesigningrequests/status"]},
            {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
             "resourceNames": [signer], "verbs": [verb]}]);
        let role = json!({"metadata": {"name": "csr"}, "rules": rules});
        world.test.create(&format!("{RBAC}/clusterroles"), &role);
        let group = "rbac.authorization.k8s.io";
        let binding = json!({"metadata": {"name": "csr"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "csr"},
            "subjects": [{"kind": "User", "apiGroup": group, "name": "ada"}]});
        world.test.create(&format!("{RBAC}/clusterrolebindings"), &binding);
        world
    }

    /// What comes of ada's update of a part of a request for `signer`.
    fn update(world: &World, part: &str, signer: &str, status: &Value) -> (u16, String) {
        let name = format!("{}-{part}", signer.replace('/', "."));
        let mut object = world.test.create(PATH, &csr(&name, signer, &[]));
        object["status"] = status.clone();
        let path = format!("{PATH}/{name}/{part}");
        let (code, answer) = world.request("ada-token", "PUT", &path, &object);
        (code, answer["message"].as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn nobody_asks_to_become_an_administrator() {
        let world = world("none", "none");
        let ask = |object: &Value| world.request("ada-token", "POST", PATH, object);
        let (code, answer) = ask(&csr("a", CLIENT_SIGNER, &["dev", MASTERS]));
        assert_eq!(code, 403);
        assert_eq!(
            answer["message"],
            "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: use of \
             kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
        );
        assert_eq!(world.test.call("POST", PATH, &csr("b", CLIENT_SIGNER, &[MASTERS])).0, 403);
        assert_eq!(ask(&csr("c", CLIENT_SIGNER, &["dev"])).0, 201);
        assert_eq!(ask(&csr("d", "example.com/other", &[MASTERS])).0, 201);
    }

    #[test]
    fn an_approval_needs_the_right_for_the_signer() {
        let world = world("approve", "example.com/one");
        let approved = json!({"conditions": [{"type": "Approved", "status": "True"}]});
        assert_eq!(update(&world, "approval", "example.com/one", &approved).0, 200);
        let (code, message) = update(&world, "approval", "example.com/two", &approved);
        assert_eq!(code, 403);
        let why = "user not permitted to approve requests with signerName \"example.com/two\"";
        assert!(message.ends_with(why), "{message}");
    }

    #[test]
    fn a_right_may_be_for_all_signers_of_a_domain() {
        let world = world("approve", "example.com/*");
        let approved = json!({"conditions": [{"type": "Approved", "status": "True"}]});
        assert_eq!(update(&world, "approval", "example.com/one", &approved).0, 200);
        assert_eq!(update(&world, "approval", "example.org/one", &approved).0, 403);
    }

    #[test]
    fn a_certificate_is_stored_by_who_may_sign() {
        let world = world("sign", "example.com/one");
        let signed = json!({"certificate": STANDARD.encode("PEM")});
        assert_eq!(update(&world, "status", "example.com/one", &signed).0, 200);
        let (code, message) = update(&world, "status", "example.com/two", &signed);
        assert_eq!(code, 403);
        let why = "user not permitted to sign requests with signerName \"example.com/two\"";
        assert!(message.ends_with(why), "{message}");
        assert_eq!(update(&world, "status", "example.com/three", &json!({})).0, 200, "no change");
    }
}
