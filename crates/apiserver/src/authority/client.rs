//! Verification of client certificates: as rustls does it, and besides for those of X.509 version
//! 1, which have no extensions. `openssl x509 -req` makes them, and Kubernetes accepts them.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use x509_parser::oid_registry::{
    OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA, OID_PKCS1_SHA512WITHRSA,
    OID_SIG_ECDSA_WITH_SHA256, OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ED25519,
};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// Verifies certificates that clients may show and need not.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    usual: Arc<dyn ClientCertVerifier>,
    roots: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientVerifier {
    pub(super) fn new(
        roots: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let mut store = RootCertStore::empty();
        for root in &roots {
            store.add(root.clone())?;
        }
        let usual =
            WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
                .allow_unauthenticated()
                .build()
                .map_err(|error| Error::General(error.to_string()))?;
        Ok(Self { usual, roots, algorithms: provider.signature_verification_algorithms })
    }

    /// Without extensions a certificate cannot say who else may sign for it, so a root has to have
    /// signed it itself.
    fn verify_version_1(
        &self,
        certificate: &X509Certificate<'_>,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let now = i64::try_from(now.as_secs()).map_err(|_| CertificateError::Expired)?;
        if now < certificate.validity().not_before.timestamp() {
            return Err(CertificateError::NotValidYet);
        }
        if now > certificate.validity().not_after.timestamp() {
            return Err(CertificateError::Expired);
        }
        if !has_strong_signature(certificate) {
            return Err(CertificateError::BadSignature);
        }
        let mut is_known = false;
        for root in &self.roots {
            let Ok((_, root)) = X509Certificate::from_der(root) else { continue };
            if root.subject().as_raw() != certificate.issuer().as_raw() {
                continue;
            }
            is_known = true;
            if certificate.verify_signature(Some(root.public_key())).is_ok() {
                return Ok(());
            }
        }
        Err(if is_known { CertificateError::BadSignature } else { CertificateError::UnknownIssuer })
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn offer_client_auth(&self) -> bool {
        self.usual.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.usual.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.usual.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match version_1(end_entity) {
            Some(certificate) => {
                self.verify_version_1(&certificate, now)?;
                Ok(ClientCertVerified::assertion())
            }
            None => self.usual.verify_client_cert(end_entity, intermediates, now),
        }
    }

    /// rustls has no way to do this for version 1; clients that have those speak TLS 1.3.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match version_1(certificate) {
            Some(certificate) => {
                let key = SubjectPublicKeyInfoDer::from(certificate.public_key().raw);
                verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
            }
            None => self.usual.verify_tls13_signature(message, certificate, signed),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// A certificate of version 1; none for all others, and for what only pretends to be one.
fn version_1<'c>(der: &'c CertificateDer<'_>) -> Option<X509Certificate<'c>> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    let is_plain = certificate.version() == X509Version::V1 && certificate.extensions().is_empty();
    (rest.is_empty() && is_plain).then_some(certificate)
}

/// Whether the signature is of a kind that rustls accepts too, and says so in both places.
fn has_strong_signature(certificate: &X509Certificate<'_>) -> bool {
    let strong = [
        OID_PKCS1_SHA256WITHRSA,
        OID_PKCS1_SHA384WITHRSA,
        OID_PKCS1_SHA512WITHRSA,
        OID_SIG_ECDSA_WITH_SHA256,
        OID_SIG_ECDSA_WITH_SHA384,
        OID_SIG_ED25519,
    ];
    let algorithm = &certificate.signature_algorithm;
    *algorithm == certificate.tbs_certificate.signature && strong.contains(&algorithm.algorithm)
}

#[cfg(test)]
mod tests;
