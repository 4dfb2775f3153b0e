//! The server's own certificate authority: made at the first start, kept in the data
//! directory, never shown to anybody but its owner.

mod client;
mod signer;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::private::{make_directory, write_private};
use client::ClientVerifier;

pub(crate) use signer::{CertificateSigner, SignerName, SigningRequest};

/// Certificates and keys of one server.
#[derive(Debug)]
pub struct Authority {
    /// In PEM, as kubeconfigs carry it.
    pub certificate: String,
    serving: Pair,
    /// The admin certificate, in `system:masters`, for the owner of the data directory.
    pub admin: Pair,
    /// Its own key, for what others ask it to sign.
    key: String,
}

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// The key stays out of logs.
impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("could not read or write {path}")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{path} does not hold what this server wrote there: {why}; restore it from a backup, or move it away to begin with a new authority"
    )]
    Damaged { path: PathBuf, why: String },
    #[error("could not create a certificate")]
    Make(#[from] rcgen::Error),
    #[error("could not use the certificates")]
    Use(#[from] rustls::Error),
}

/// A certificate that ends sooner is made anew.
const RENEW_DAYS: i64 = 30;

impl Authority {
    /// The authority in a directory; made there if there is none.
    pub fn open(
        directory: &Path,
        names: &[String],
        now: Timestamp,
    ) -> Result<Self, AuthorityError> {
        make_directory(directory).map_err(|source| file(directory, source))?;
        let root = open_pair(directory, "ca", |_| true, || make_root(now))?;
        let issuer_key = KeyPair::from_pem(&root.key)
            .map_err(|error| damaged(&directory.join("ca.key"), &error))?;
        let issuer = Issuer::from_ca_cert_pem(&root.certificate, issuer_key)
            .map_err(|error| damaged(&directory.join("ca.crt"), &error))?;
        let good = |pair: &Pair| is_good(pair, &[], now);
        let admin = open_pair(directory, "admin", good, || make_admin(&issuer, now))?;
        let serves = |pair: &Pair| is_good(pair, names, now);
        let serving = open_pair(directory, "server", serves, || make_serving(&issuer, names, now))?;
        Ok(Self { certificate: root.certificate, serving, admin, key: root.key })
    }

    /// An authority that lives as long as the process.
    pub fn ephemeral(names: &[String], now: Timestamp) -> Result<Self, AuthorityError> {
        let root = make_root(now)?;
        let issuer = Issuer::from_ca_cert_pem(&root.certificate, KeyPair::from_pem(&root.key)?)?;
        Ok(Self {
            serving: make_serving(&issuer, names, now)?,
            admin: make_admin(&issuer, now)?,
            certificate: root.certificate,
            key: root.key,
        })
    }

    /// What signs certificates for others.
    pub(crate) fn signer(&self) -> Result<CertificateSigner, AuthorityError> {
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, KeyPair::from_pem(&self.key)?)?;
        let own = certificates(&self.certificate);
        let parsed = own.first().and_then(|own| x509_parser::parse_x509_certificate(own).ok());
        let ends = parsed.map_or(0, |(_, own)| own.validity().not_after.timestamp());
        Ok(CertificateSigner::new(issuer, Timestamp::from_second(ends).unwrap_or_default()))
    }

    /// The TLS configuration of the server: client certificates are optional, and verified.
    pub fn server_config(&self) -> Result<Arc<rustls::ServerConfig>, AuthorityError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = ClientVerifier::new(certificates(&self.certificate), &provider)?;
        let key = PrivateKeyDer::from_pem_slice(self.serving.key.as_bytes())
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(verifier))
            .with_single_cert(certificates(&self.serving.certificate), key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// The subject alternative names of the serving certificate.
pub fn server_names(listen: IpAddr) -> Vec<String> {
    let mut names: Vec<String> = [
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "10.96.0.1",
    ]
    .map(str::to_owned)
    .to_vec();
    if let Ok(host) = fs::read_to_string("/proc/sys/kernel/hostname") {
        names.push(host.trim().to_lowercase());
    }
    if !listen.is_unspecified() {
        names.push(listen.to_string());
    }
    names.sort();
    names.dedup();
    names.retain(|name| !name.is_empty());
    names
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok).collect()
}

fn params(
    common_name: &str,
    organisation: Option<&str>,
    now: Timestamp,
    days: i64,
) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    if let Some(organisation) = organisation {
        name.push(DnType::OrganizationName, organisation);
    }
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    // Clocks of clients may be a little behind.
    let (year, month, day) = date(now, -1);
    params.not_before = rcgen::date_time_ymd(year, month, day);
    let (year, month, day) = date(now, days);
    params.not_after = rcgen::date_time_ymd(year, month, day);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params
}

/// Year, month and day, some days from now.
fn date(now: Timestamp, days: i64) -> (i32, u8, u8) {
    let then = now.saturating_add((days * 24).hours()).unwrap_or(now);
    let date = then.to_zoned(jiff::tz::TimeZone::UTC).date();
    (i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs())
}

fn make_root(now: Timestamp) -> Result<Pair, rcgen::Error> {
    let mut params = params("convoy-ca", None, now, 3_650);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    Ok(Pair { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

fn make_serving(
    issuer: &Issuer<'_, KeyPair>,
    names: &[String],
    now: Timestamp,
) -> Result<Pair, rcgen::Error> {
    let mut params = params("convoy-apiserver", None, now, 365);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.subject_alt_names = names
        .iter()
        .map(|name| match name.parse::<IpAddr>() {
            Ok(address) => Ok(SanType::IpAddress(address)),
            Err(_) => Ok(SanType::DnsName(name.as_str().try_into()?)),
        })
        .collect::<Result<_, rcgen::Error>>()?;
    let key = KeyPair::generate()?;
    Ok(Pair { certificate: params.signed_by(&key, issuer)?.pem(), key: key.serialize_pem() })
}

fn make_admin(issuer: &Issuer<'_, KeyPair>, now: Timestamp) -> Result<Pair, rcgen::Error> {
    let mut params = params("convoy-admin", Some("system:masters"), now, 365);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    Ok(Pair { certificate: params.signed_by(&key, issuer)?.pem(), key: key.serialize_pem() })
}

/// Whether a certificate still has some time, and has all the names.
fn is_good(pair: &Pair, names: &[String], now: Timestamp) -> bool {
    let Some(der) = certificates(&pair.certificate).into_iter().next() else { return false };
    let Ok((_, certificate)) = x509_parser::parse_x509_certificate(&der) else { return false };
    let ends = certificate.validity().not_after.timestamp();
    let has_time = ends - now.as_second() > RENEW_DAYS * 24 * 3_600;
    let known: Vec<String> = certificate
        .subject_alternative_name()
        .ok()
        .flatten()
        .into_iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            x509_parser::extensions::GeneralName::DNSName(name) => Some((*name).to_owned()),
            x509_parser::extensions::GeneralName::IPAddress(bytes) => match bytes.len() {
                4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
                _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
            },
            _ => None,
        })
        .collect();
    has_time && names.iter().all(|name| known.contains(name))
}

/// Reads a pair, or makes it where there is none or it is not good any more.
fn open_pair(
    directory: &Path,
    name: &str,
    is_good: impl Fn(&Pair) -> bool,
    make: impl Fn() -> Result<Pair, rcgen::Error>,
) -> Result<Pair, AuthorityError> {
    let (certificate, key) =
        (directory.join(format!("{name}.crt")), directory.join(format!("{name}.key")));
    match (fs::read_to_string(&certificate), fs::read_to_string(&key)) {
        (Ok(certificate), Ok(key)) => {
            let pair = Pair { certificate, key };
            if is_good(&pair) {
                return Ok(pair);
            }
        }
        (Err(one), Err(other)) if both_absent(&one, &other) => {}
        (Err(source), _) => return Err(file(&certificate, source)),
        (_, Err(source)) => return Err(file(&key, source)),
    }
    let pair = make()?;
    write_private(&key, pair.key.as_bytes()).map_err(|source| file(&key, source))?;
    write_private(&certificate, pair.certificate.as_bytes())
        .map_err(|source| file(&certificate, source))?;
    Ok(pair)
}

fn both_absent(one: &io::Error, other: &io::Error) -> bool {
    [one, other].iter().all(|error| error.kind() == io::ErrorKind::NotFound)
}

fn file(path: &Path, source: io::Error) -> AuthorityError {
    AuthorityError::File { path: path.to_owned(), source }
}

fn damaged(path: &Path, why: &dyn std::fmt::Display) -> AuthorityError {
    AuthorityError::Damaged { path: path.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_authority_is_made_once_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let names = server_names("127.0.0.1".parse().unwrap());
        let first = Authority::open(directory.path(), &names, now).unwrap();
        let again = Authority::open(directory.path(), &names, now).unwrap();
        assert_eq!(first.certificate, again.certificate);
        assert_eq!(first.serving.certificate, again.serving.certificate);
        first.server_config().unwrap();
        for file in ["ca.key", "server.key", "admin.key"] {
            let mode = fs::metadata(directory.path().join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
        // Eleven months later the serving certificate is made anew, the authority is not.
        let later = now.checked_add((340 * 24).hours()).unwrap();
        let renewed = Authority::open(directory.path(), &names, later).unwrap();
        assert_eq!(first.certificate, renewed.certificate);
        assert_ne!(first.serving.certificate, renewed.serving.certificate);
        // So is it for a name that was not there.
        let more = [names, vec!["elsewhere.example".to_owned()]].concat();
        let renamed = Authority::open(directory.path(), &more, later).unwrap();
        assert_ne!(renewed.serving.certificate, renamed.serving.certificate);
    }

    #[test]
    fn half_an_authority_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        Authority::open(directory.path(), &[], now).unwrap();
        fs::remove_file(directory.path().join("ca.key")).unwrap();
        assert!(Authority::open(directory.path(), &[], now).is_err());
        fs::write(directory.path().join("ca.key"), "not a key").unwrap();
        let error = Authority::open(directory.path(), &[], now).unwrap_err();
        assert!(error.to_string().contains("ca.key"), "{error}");
    }
}
