//! Certificates of version 1, made by hand since no library makes them any more.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PublicKeyData,
    SigningKey,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::*;

type Root = CertifiedIssuer<'static, KeyPair>;

/// ECDSA over P-256 with SHA-256, which is what keys are made for.
const ALGORITHM: [u8; 12] =
    [0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

fn root(name: &str) -> Root {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn tagged(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length) if length < 0x80 => out.push(length),
        Ok(length) => out.extend([0x81, length]),
        Err(_) => {
            out.push(0x82);
            out.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
        }
    }
    out.extend(content);
    out
}

/// A certificate of version 1 for the user `ann` until the year `ends`, signed by `signer`.
fn certificate(issuer: &Root, signer: &Root, key: &KeyPair, ends: &str) -> CertificateDer<'static> {
    let (_, parsed) = X509Certificate::from_der(issuer.der()).unwrap();
    let validity = [tagged(0x17, &[b"200101000000Z"]), tagged(0x18, &[ends.as_bytes()])];
    let name = tagged(0x30, &[&[0x06, 0x03, 0x55, 0x04, 0x03], &tagged(0x0c, &[b"ann"])]);
    let signed = tagged(
        0x30,
        &[
            &[0x02, 0x01, 0x07],
            &ALGORITHM,
            parsed.subject().as_raw(),
            &tagged(0x30, &[&validity.concat()]),
            &tagged(0x30, &[&tagged(0x31, &[&name])]),
            &key.subject_public_key_info(),
        ],
    );
    let signature = signer.key().sign(&signed).unwrap();
    let signature = tagged(0x03, &[&[0], &signature]);
    CertificateDer::from(tagged(0x30, &[&signed, &ALGORITHM, &signature]))
}

fn verifier(root: &Root) -> ClientVerifier {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientVerifier::new(vec![root.der().clone()], &provider).unwrap()
}

#[test]
fn a_root_has_signed_a_certificate_of_version_1_itself() {
    let (ours, other, namesake) = (root("ours"), root("other"), root("ours"));
    let key = KeyPair::generate().unwrap();
    // The beginning of 2026.
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_hours(490_896));
    let long = "21000101000000Z";
    for (name, certificate, expected) in [
        ("sound", certificate(&ours, &ours, &key, long), None),
        ("over", certificate(&ours, &ours, &key, "20250101000000Z"), Some("Expired")),
        ("other", certificate(&other, &other, &key, long), Some("UnknownIssuer")),
        ("forged", certificate(&ours, &namesake, &key, long), Some("BadSignature")),
    ] {
        assert!(version_1(&certificate).is_some(), "{name}");
        let verified = verifier(&ours).verify_client_cert(&certificate, &[], now);
        let error = verified.err().map(|error| format!("{error:?}"));
        let expected = expected.map(|why| format!("InvalidCertificate({why})"));
        assert_eq!(error, expected, "{name}");
    }
    assert!(version_1(ours.der()).is_none());
}

/// Whether a client with this certificate and key gets through.
fn shakes_hands(root: &Root, certificate: CertificateDer<'static>, key: &KeyPair) -> bool {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pkcs8 = |key: &KeyPair| PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let serving = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let chain = vec![params.signed_by(&serving, root).unwrap().der().clone()];
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(Arc::new(verifier(root)))
        .with_single_cert(chain, pkcs8(&serving))
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(root.der().clone()).unwrap();
    let signing = provider.key_provider.load_private_key(pkcs8(key)).unwrap();
    let shown = SingleCertAndKey::from(CertifiedKey::new(vec![certificate], signing));
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_cert_resolver(Arc::new(shown));
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    for _ in 0..4 {
        let mut sent = Vec::new();
        client.write_tls(&mut sent).unwrap();
        server.read_tls(&mut &*sent).unwrap();
        if server.process_new_packets().is_err() {
            return false;
        }
        let mut answered = Vec::new();
        server.write_tls(&mut answered).unwrap();
        client.read_tls(&mut &*answered).unwrap();
        client.process_new_packets().unwrap();
    }
    !server.is_handshaking() && server.peer_certificates().is_some()
}

#[test]
fn whoever_shows_a_certificate_has_its_key() {
    let ours = root("ours");
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let certificate = certificate(&ours, &ours, &key, "21000101000000Z");
    assert!(shakes_hands(&ours, certificate.clone(), &key));
    assert!(!shakes_hands(&ours, certificate, &other));
}
