//! Certificates for others: what the signers `kubernetes.io/kube-apiserver-client`,
//! `kubernetes.io/kube-apiserver-client-kubelet` and `kubernetes.io/kubelet-serving` issue.

use std::sync::Arc;
use std::time::Duration;

use convoy_api::well_known::CLIENT_SIGNER;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

use crate::server::Server;

/// Lifetimes, and how far before now a certificate begins: clocks differ.
const LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);
const LIFETIME_MIN: SignedDuration = SignedDuration::from_mins(10);
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);

/// Signs what others ask for, with the key of the server's authority.
pub(crate) struct CertificateSigner {
    issuer: Issuer<'static, KeyPair>,
    /// When the authority's own certificate ends.
    ends: Timestamp,
}

/// Who signs, and so what a certificate may be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignerName {
    Client,
    KubeletClient,
    KubeletServing,
}

/// What somebody asks a signer for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SigningRequest<'r> {
    pub signer: SignerName,
    /// The request itself, in PEM.
    pub pem: &'r [u8],
    pub usages: &'r [&'r str],
    /// How long it is to be valid, if the request says.
    pub seconds: Option<i64>,
}

impl Server {
    /// Has the server sign certificates for others.
    pub(crate) fn sign_with(&self, signer: CertificateSigner) {
        self.attached.set(Some(signer));
    }

    /// What signs certificates, if anything does.
    pub(crate) fn certificate_signer(&self) -> Arc<Option<CertificateSigner>> {
        self.attached.get(|| None)
    }
}

/// The key stays out of logs.
impl std::fmt::Debug for CertificateSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateSigner").field("ends", &self.ends).finish_non_exhaustive()
    }
}

impl SignerName {
    /// `None`: somebody else's, or one whose certificates nobody here trusts.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            CLIENT_SIGNER => Some(Self::Client),
            "kubernetes.io/kube-apiserver-client-kubelet" => Some(Self::KubeletClient),
            "kubernetes.io/kubelet-serving" => Some(Self::KubeletServing),
            _ => None,
        }
    }

    /// The usage that its certificates must have; signatures and key encipherment may be added.
    fn purpose(self) -> (&'static str, ExtendedKeyUsagePurpose) {
        match self {
            Self::Client | Self::KubeletClient => {
                ("client auth", ExtendedKeyUsagePurpose::ClientAuth)
            }
            Self::KubeletServing => ("server auth", ExtendedKeyUsagePurpose::ServerAuth),
        }
    }
}

impl CertificateSigner {
    pub(crate) fn new(issuer: Issuer<'static, KeyPair>, ends: Timestamp) -> Self {
        Self { issuer, ends }
    }

    /// The certificate that is asked for, in PEM, or why there is none.
    pub(crate) fn sign(
        &self,
        asked: &SigningRequest<'_>,
        now: Timestamp,
    ) -> Result<String, String> {
        let der = CertificateSigningRequestDer::from_pem_slice(asked.pem)
            .map_err(|_| "the request is no PEM block of type CERTIFICATE REQUEST".to_owned())?;
        let (_, parsed) =
            X509CertificationRequest::from_der(&der).map_err(|error| error.to_string())?;
        let subject = &parsed.certification_request_info.subject;
        if !subject.iter().all(|part| part.iter().count() == 1) {
            return Err("the subject has several values in one place, such as organizations: \
                        only one of each can be signed"
                .to_owned());
        }
        let mut request =
            CertificateSigningRequestParams::from_der(&der).map_err(|error| error.to_string())?;
        let organizations: Vec<&str> =
            subject.iter_organization().filter_map(|part| part.as_str().ok()).collect();
        let common_name = subject.iter_common_name().find_map(|part| part.as_str().ok());
        check(asked, &request.params.subject_alt_names, &organizations, common_name)?;
        self.prepare(asked, &mut request.params, now)?;
        let issued = request.signed_by(&self.issuer).map_err(|error| error.to_string())?;
        // What is issued is for the key and the name of the request, or it is not issued.
        let (_, certificate) =
            x509_parser::parse_x509_certificate(issued.der()).map_err(|error| error.to_string())?;
        let key = &parsed.certification_request_info.subject_pki;
        if certificate.public_key().raw != key.raw || certificate.subject() != subject {
            return Err("the key or the subject is of a form that cannot be signed: use RSA, or \
                        ECDSA with P-256, and one value for each part of the subject"
                .to_owned());
        }
        Ok(issued.pem())
    }

    /// Sets what the signer decides: usages, lifetime, and that it is no authority.
    fn prepare(
        &self,
        asked: &SigningRequest<'_>,
        params: &mut CertificateParams,
        now: Timestamp,
    ) -> Result<(), String> {
        let has = |usage: &str| asked.usages.contains(&usage);
        params.key_usages = [
            ("digital signature", KeyUsagePurpose::DigitalSignature),
            ("key encipherment", KeyUsagePurpose::KeyEncipherment),
        ]
        .into_iter()
        .filter_map(|(usage, purpose)| has(usage).then_some(purpose))
        .collect();
        params.extended_key_usages = vec![asked.signer.purpose().1];
        params.is_ca = IsCa::ExplicitNoCa;
        params.custom_extensions = Vec::new();
        let asked_for = asked.seconds.map(SignedDuration::from_secs);
        let lifetime = asked_for.unwrap_or(LIFETIME).clamp(LIFETIME_MIN, LIFETIME);
        let moment = |at: Result<Timestamp, jiff::Error>| at.map_err(|error| error.to_string());
        let begins = moment(now.checked_sub(BACKDATED))?;
        let ends = moment(now.checked_add(lifetime))?.min(self.ends);
        if ends <= now {
            return Err(format!(
                "the certificate of this server's authority ended at {}",
                self.ends
            ));
        }
        // The type of these is not ours to name: it is made from one that the library gives.
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + since_epoch(begins);
        params.not_after = epoch + since_epoch(ends);
        Ok(())
    }
}

fn since_epoch(at: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(at.as_second()).unwrap_or_default())
}

/// Whether a signer issues what it is asked for.
fn check(
    asked: &SigningRequest<'_>,
    names: &[SanType],
    organizations: &[&str],
    common_name: Option<&str>,
) -> Result<(), String> {
    let (purpose, _) = asked.signer.purpose();
    let allowed = ["digital signature", "key encipherment", purpose];
    if let Some(usage) = asked.usages.iter().find(|usage| !allowed.contains(usage)) {
        return Err(format!("usage {usage:?} is not one of {}", allowed.join(", ")));
    }
    if !asked.usages.contains(&purpose) {
        return Err(format!("usage {purpose:?} is missing"));
    }
    if asked.signer == SignerName::Client {
        return Ok(());
    }
    if !asked.usages.contains(&"digital signature") {
        return Err("usage \"digital signature\" is missing".to_owned());
    }
    if organizations != ["system:nodes"] {
        return Err("the organization of the subject is not system:nodes".to_owned());
    }
    if !common_name.is_some_and(|name| name.starts_with("system:node:")) {
        return Err("the common name of the subject does not begin with system:node:".to_owned());
    }
    let is_address = |name: &SanType| matches!(name, SanType::DnsName(_) | SanType::IpAddress(_));
    match asked.signer {
        SignerName::KubeletServing if names.is_empty() || !names.iter().all(is_address) => {
            Err("DNS names or IP addresses are needed as subjectAltNames, and nothing else"
                .to_owned())
        }
        SignerName::KubeletClient if !names.is_empty() => {
            Err("subjectAltNames are not allowed".to_owned())
        }
        _ => Ok(()),
    }
}
