//! The caller that a client certificate names.

use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::CREDENTIAL_ID;
use crate::caller::{AUTHENTICATED, Caller};

/// The identity of a certificate that was verified: its common name, in the groups that its
/// organizations name. None if it names nobody.
pub fn caller_of_certificate(der: &[u8]) -> Option<Caller> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().last()?.as_str().ok()?.to_owned();
    if name.is_empty() {
        return None;
    }
    let organizations = subject.iter_organization();
    let mut groups: Vec<String> =
        organizations.filter_map(|part| part.as_str().ok()).map(str::to_owned).collect();
    groups.push(AUTHENTICATED.to_owned());
    let extra =
        [(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={:x}", Sha256::digest(der))])].into();
    Some(Caller { name, uid: String::new(), groups, extra })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

    use super::*;

    fn certificate(common_name: Option<&str>, organizations: &[&str]) -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(name) = common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        for organization in organizations {
            let value = DnValue::Utf8String((*organization).to_owned());
            params.distinguished_name.push(DnType::OrganizationName, value);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_names_a_user_and_groups() {
        let caller =
            caller_of_certificate(&certificate(Some("admin"), &["system:masters"])).unwrap();
        assert_eq!(caller.name, "admin");
        assert_eq!(caller.groups, ["system:masters", "system:authenticated"]);
        let id = &caller.extra[CREDENTIAL_ID][0];
        assert_eq!(id.len(), "X509SHA256=".len() + 64, "{id}");
    }

    #[test]
    fn a_certificate_without_a_name_names_nobody() {
        assert_eq!(caller_of_certificate(&certificate(None, &["system:masters"])), None);
        assert_eq!(caller_of_certificate(&certificate(Some(""), &[])), None);
        assert_eq!(caller_of_certificate(b"no certificate"), None);
    }
}
