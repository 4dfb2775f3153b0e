//! The certificate of the webhooks and the authority that API servers trust. The authority signs
//! one certificate, its key is discarded, and both are kept in a secret that every replica reads.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoy_api::well_known::secret_type;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use x509_parser::extensions::GeneralName;

/// The annotation of the secret with the expiration of the certificate.
pub(crate) const EXPIRATION: &str = "skyhook.nvidia.com/expiration";

/// The validity of a certificate.
const VALID_DAYS: i64 = 365;
/// How long before its expiration it is renewed.
const RENEW_DAYS: i64 = 7;

/// A certificate with its key, and the authorities to trust.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// Certificates of authorities, the newest first. The one before it is kept, so that a
    /// replica that still serves with its certificate is trusted too.
    pub(crate) authorities: String,
    /// The certificate that is served.
    leaf: String,
    key: String,
    pub(crate) expires: Timestamp,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("could not make a certificate")]
    Make(#[from] rcgen::Error),
    #[error("could not serve with the certificate")]
    Serve(#[from] rustls::Error),
}

impl Certificate {
    /// A new one for `names`, which may be addresses.
    pub(crate) fn make(
        names: &[String],
        previous: Option<&Self>,
        now: Timestamp,
    ) -> Result<Self, CertificateError> {
        let ends = date(now, VALID_DAYS);
        let mut root = params("convoy-webhook-ca", now, ends);
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        root.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let root_key = KeyPair::generate()?;
        let authority = root.self_signed(&root_key)?.pem();
        let issuer = Issuer::from_params(&root, &root_key);
        let mut leaf = params("convoy-webhook", now, ends);
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.subject_alt_names = alternatives(names)?;
        let key = KeyPair::generate()?;
        let leaf = leaf.signed_by(&key, &issuer)?.pem();
        let older = previous.filter(|previous| previous.expires > now);
        let older = older.and_then(|previous| first_block(&previous.authorities));
        let authorities = authority + older.unwrap_or_default();
        Ok(Self { authorities, leaf, key: key.serialize_pem(), expires: midnight(ends) })
    }

    /// Reads a secret; `None` if it does not hold a certificate.
    pub(crate) fn read(secret: &Value) -> Option<Self> {
        let text = |field: &str| {
            let bytes = STANDARD.decode(secret["data"][field].as_str()?).ok()?;
            String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
        };
        let leaf = text("tls.crt")?;
        let ends = ending(&leaf)?;
        let annotated = secret["metadata"]["annotations"][EXPIRATION].as_str();
        // An earlier instant in the annotation forces a renewal.
        let annotated = annotated.and_then(|text| text.parse::<Timestamp>().ok()).unwrap_or(ends);
        Some(Self {
            authorities: text("ca.crt")?,
            leaf,
            key: text("tls.key")?,
            expires: ends.min(annotated),
        })
    }

    /// The secret that holds it, as a change of the stored one.
    pub(crate) fn secret(&self, namespace: &str, name: &str, stored: Option<&Value>) -> Value {
        let mut secret = stored.cloned().unwrap_or_else(|| {
            json!({"apiVersion": "v1", "kind": "Secret", "type": secret_type::TLS,
                "metadata": {"name": name, "namespace": namespace}})
        });
        if !secret["metadata"]["annotations"].is_object() {
            secret["metadata"]["annotations"] = json!({});
        }
        secret["metadata"]["annotations"][EXPIRATION] = json!(self.expires.to_string());
        secret["data"] = json!({
            "ca.crt": STANDARD.encode(&self.authorities),
            "tls.crt": STANDARD.encode(&self.leaf),
            "tls.key": STANDARD.encode(&self.key),
        });
        secret
    }

    /// When to renew it.
    pub(crate) fn renew_at(&self) -> Timestamp {
        self.expires.saturating_sub((RENEW_DAYS * 24).hours()).unwrap_or(self.expires)
    }

    /// Whether it has time left, stands for all `names`, and can be served with.
    pub(crate) fn is_good(&self, names: &[String], now: Timestamp) -> bool {
        let known = names_of(&self.leaf);
        now < self.renew_at()
            && names.iter().all(|name| known.contains(name))
            && self.server_config().is_ok()
    }

    /// How to talk to callers.
    pub(crate) fn server_config(&self) -> Result<Arc<rustls::ServerConfig>, CertificateError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(certificates(&self.leaf), key)?;
        Ok(Arc::new(config))
    }

    /// What configurations trust.
    pub(crate) fn bundle(&self) -> String {
        STANDARD.encode(&self.authorities)
    }
}

/// Without the key.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("expires", &self.expires).finish_non_exhaustive()
    }
}

fn params(common_name: &str, now: Timestamp, ends: Date) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    // Clocks of callers may be a little behind.
    let (year, month, day) = parts(date(now, -1));
    params.not_before = rcgen::date_time_ymd(year, month, day);
    let (year, month, day) = parts(ends);
    params.not_after = rcgen::date_time_ymd(year, month, day);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params
}

fn parts(date: Date) -> (i32, u8, u8) {
    (i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs())
}

fn date(now: Timestamp, days: i64) -> Date {
    let then = now.saturating_add((days * 24).hours()).unwrap_or(now);
    then.to_zoned(TimeZone::UTC).date()
}

fn midnight(date: Date) -> Timestamp {
    let zoned = date.to_zoned(TimeZone::UTC).expect("midnight is there every day");
    zoned.timestamp()
}

fn alternatives(names: &[String]) -> Result<Vec<SanType>, rcgen::Error> {
    let alternative = |name: &String| match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(name.as_str().try_into()?)),
    };
    names.iter().map(alternative).collect()
}

/// The first certificate of several.
fn first_block(pem: &str) -> Option<&str> {
    const END: &str = "-----END CERTIFICATE-----\n";
    pem.find(END).map(|at| &pem[..at + END.len()])
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok).collect()
}

fn ending(pem: &str) -> Option<Timestamp> {
    let der = certificates(pem).into_iter().next()?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&der).ok()?;
    Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()
}

/// Whom the first certificate stands for.
fn names_of(pem: &str) -> Vec<String> {
    let Some(der) = certificates(pem).into_iter().next() else { return Vec::new() };
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(&der) else { return Vec::new() };
    let Ok(Some(extension)) = parsed.subject_alternative_name() else { return Vec::new() };
    let names = extension.value.general_names.iter();
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
            _ => None,
        })
        .collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn names() -> Vec<String> {
        ["127.0.0.1", "::1", "convoy.skyhook.svc"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_certificate_survives_its_secret_and_stands_for_its_names_for_a_year() {
        let made = Certificate::make(&names(), None, now()).unwrap();
        assert_eq!(made.expires.to_string(), "2027-01-01T00:00:00Z");
        let secret = made.secret("skyhook", "webhook-cert", None);
        assert_eq!(secret["metadata"]["annotations"][EXPIRATION], "2027-01-01T00:00:00Z");
        assert_eq!(secret["type"], "kubernetes.io/tls");
        assert_eq!(Certificate::read(&secret).as_ref(), Some(&made));
        assert!(made.is_good(&names(), now()));
        assert!(!made.is_good(&["elsewhere".to_owned()], now()));
        for (instant, good) in [("2026-12-24T23:59:59Z", true), ("2026-12-25T00:00:00Z", false)] {
            assert_eq!(made.is_good(&names(), instant.parse().unwrap()), good, "{instant}");
        }
        assert!(!format!("{made:?}").contains("PRIVATE"));
    }

    #[test]
    fn who_trusted_the_last_one_trusts_the_next_for_as_long_as_it_lasts() {
        let first = Certificate::make(&names(), None, now()).unwrap();
        let later = "2026-12-25T00:00:00Z".parse().unwrap();
        let second = Certificate::make(&names(), Some(&first), later).unwrap();
        assert!(second.authorities.ends_with(&first.authorities));
        let third = Certificate::make(&names(), Some(&second), later).unwrap();
        assert_eq!(certificates(&third.authorities).len(), 2, "only the last one is kept");
        let much_later = "2028-06-01T00:00:00Z".parse().unwrap();
        let fourth = Certificate::make(&names(), Some(&third), much_later).unwrap();
        assert_eq!(certificates(&fourth.authorities).len(), 1);
    }

    #[test]
    fn a_secret_that_somebody_broke_holds_none() {
        let made = Certificate::make(&names(), None, now()).unwrap();
        let secret = made.secret("skyhook", "webhook-cert", None);
        for (field, value) in [("tls.crt", "eA=="), ("tls.key", "%"), ("ca.crt", "")] {
            let mut broken = secret.clone();
            broken["data"][field] = json!(value);
            let read = Certificate::read(&broken);
            assert!(read.is_none_or(|read| !read.is_good(&names(), now())), "{field}");
        }
        let mut hurried = secret;
        hurried["metadata"]["annotations"][EXPIRATION] = json!("2026-01-02T00:00:00Z");
        assert!(!Certificate::read(&hurried).unwrap().is_good(&names(), now()));
    }
}
