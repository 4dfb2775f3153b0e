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
pub(crate) fn authorize(_cluster: &Cluster, _caller: &Caller, _attributes: &Attributes) -> Answer<()> {
    Ok(())
}
