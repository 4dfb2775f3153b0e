//! Approved requests for certificates.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use x509_parser::parse_x509_certificate;

use super::{server, settle};
use crate::authority::Authority;
use crate::testing::TestServer;

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const SERVING: &str = "kubernetes.io/kubelet-serving";

fn request(common_name: &str, organization: &str, names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    if !organization.is_empty() {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    let key = KeyPair::generate().unwrap();
    params.serialize_request(&key).unwrap().pem().unwrap()
}

/// The status of an approved request.
fn decided(test: &TestServer, name: &str, signer: &str, usages: &[&str], pem: &str) -> Value {
    let request = json!({"apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": STANDARD.encode(pem), "signerName": signer, "usages": usages,
            "expirationSeconds": 3_600}});
    test.create(PATH, &request);
    settle(test);
    assert!(test.get(&format!("{PATH}/{name}"))["status"]["certificate"].is_null());
    let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True",
        "reason": "Test", "message": "by hand"}]}});
    let (code, answer) = test.call("PATCH", &format!("{PATH}/{name}/approval"), &approved);
    assert_eq!(code, 200, "{answer}");
    settle(test);
    test.get(&format!("{PATH}/{name}"))["status"].clone()
}

fn signing_server() -> TestServer {
    let test = server();
    let authority = Authority::ephemeral(&[], test.server.now()).unwrap();
    test.server.sign_with(authority.signer().unwrap());
    test
}

#[test]
fn an_approved_request_gets_its_certificate() {
    let test = signing_server();
    let usages = ["client auth", "digital signature", "key encipherment"];
    let status = decided(&test, "ada", CLIENT, &usages, &request("ada", "team", &[]));
    let pem = STANDARD.decode(status["certificate"].as_str().unwrap()).unwrap();
    let der = CertificateDer::from_pem_slice(&pem).unwrap();
    let (_, certificate) = parse_x509_certificate(&der).unwrap();
    assert_eq!(certificate.subject().to_string(), "CN=ada, O=team");
    assert!(!certificate.is_ca());
    let usage = certificate.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.client_auth && !usage.server_auth);
    let validity = certificate.validity();
    let now = test.server.now().as_second();
    assert_eq!(validity.not_before.timestamp(), now - 300);
    assert_eq!(validity.not_after.timestamp(), now + 3_600);
}

#[test]
fn each_signer_issues_what_it_is_for() {
    let test = signing_server();
    let client = ["client auth", "digital signature"];
    let serving = ["server auth", "digital signature", "key encipherment"];
    let node = "system:node:a";
    for (index, (signer, usages, pem, why)) in [
        (KUBELET, &client[..], request(node, "system:nodes", &[]), ""),
        (KUBELET, &client, request("a", "system:nodes", &[]), "does not begin with system:node:"),
        (KUBELET, &client, request(node, "nodes", &[]), "is not system:nodes"),
        (
            KUBELET,
            &client,
            request(node, "system:nodes", &["a"]),
            "subjectAltNames are not allowed",
        ),
        (SERVING, &serving, request(node, "system:nodes", &["a", "10.0.0.1"]), ""),
        (SERVING, &serving, request(node, "system:nodes", &[]), "DNS names or IP addresses"),
        (SERVING, &client, request(node, "system:nodes", &["a"]), "usage \"client auth\" is not"),
        (CLIENT, &["digital signature"], request("a", "", &[]), "\"client auth\" is missing"),
    ]
    .into_iter()
    .enumerate()
    {
        let status = decided(&test, &format!("r{index}"), signer, usages, &pem);
        let failed =
            status["conditions"].as_array().unwrap().iter().find(|it| it["type"] == "Failed");
        let told = failed.and_then(|it| it["message"].as_str()).unwrap_or_default();
        assert_eq!(status["certificate"].is_string(), why.is_empty(), "{signer}: {status}");
        assert!(told.contains(why) && told.is_empty() == why.is_empty(), "{why}: {told}");
    }
}

#[test]
fn requests_for_other_signers_are_left_alone() {
    let test = signing_server();
    let status = decided(&test, "x", "example.com/x", &["client auth"], &request("x", "", &[]));
    assert!(status["certificate"].is_null() && status["conditions"][1].is_null(), "{status}");
}

#[test]
fn nothing_outlives_the_authority() {
    let test = server();
    let long_ago: Timestamp = "2010-01-01T00:00:00Z".parse().unwrap();
    let authority = Authority::ephemeral(&[], long_ago).unwrap();
    test.server.sign_with(authority.signer().unwrap());
    let status = decided(&test, "x", CLIENT, &["client auth"], &request("x", "", &[]));
    let told = status["conditions"][1]["message"].as_str().unwrap_or_default();
    assert!(told.contains("authority ended at"), "{status}");
}
