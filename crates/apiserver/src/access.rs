//! Authentication and authorization.
//!
//! Authentication finds the caller: a verified client certificate, a token of the token file, a
//! token of a service account, or the anonymous user. Authorization checks the request against the
//! rules of the roles that are bound to the caller in that logical cluster. Access fails closed:
//! an object or credential that cannot be read, verified or found grants nothing.

pub(crate) mod account;
pub(crate) mod aggregate;
mod certificate;
mod impersonation;
pub(crate) mod index;
mod rights;
mod rule;
mod settings;
mod signer;
mod token_file;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;
use serde_json::Value;

pub use certificate::caller_of_certificate;
pub use settings::{AccessError, AccessSettings};
pub use signer::{Signer, SignerError};
pub use token_file::{TokenFile, TokenFileError};

pub(crate) use index::{Index, Role};
pub(crate) use rights::Rights;
pub(crate) use rule::{AccessTarget, Attributes, Rule, missing, read_rule};

use crate::audit::{Auditor, Log};
use crate::caller::{Caller, MASTERS, UNAUTHENTICATED};
use crate::connections::ClientConnection;
use crate::object_meta::Store;
use crate::request_info::RequestInfo;
use crate::status::{ApiResult, Status};
use crate::surroundings::Surroundings;
use account::Claims;
use index::{Held, Verdict};

/// The key of a caller's extras that names the credential they came with.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Who stands at the other end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The identity of a verified client certificate.
    pub certificate: Option<Caller>,
    pub address: String,
    /// The call comes from this process, which is as trusted as the server itself.
    pub is_local: bool,
    /// The connection of the network that requests come over.
    pub connection: Option<Arc<ClientConnection>>,
}

/// The address of the server for clients inside a logical cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceEndpoint {
    /// The cluster IP of the Service `kubernetes`: the first of the range.
    pub service: IpAddr,
    /// The address that the server listens on.
    pub address: IpAddr,
    pub port: u16,
}

impl Default for ServiceEndpoint {
    fn default() -> Self {
        let service = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 1));
        Self { service, address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 6443 }
    }
}

/// Which rules of access hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    #[default]
    Rbac,
    /// For tests: every authenticated caller may do everything.
    AlwaysAllow,
}

/// What access is decided by, besides the objects of a logical cluster.
#[derive(Debug)]
pub struct Access {
    pub authorization: Authorization,
    pub tokens: TokenFile,
    pub signer: Signer,
    /// Who signs tokens of the first logical cluster, and whom they are for unless they say.
    pub issuer: String,
    /// The certificates, as PEM, that clients trust this server by and that it trusts clients by.
    pub authority: String,
    /// The address of this server for clients inside a logical cluster.
    pub endpoint: ServiceEndpoint,
    pub audit: Option<Arc<Auditor>>,
    /// Tokens whose signature was found good, by digest, so that it is computed once.
    verified: Mutex<HashMap<[u8; 32], Arc<Claims>>>,
}

/// The default issuer of service-account tokens.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// How many verified tokens are remembered before all of them are forgotten.
const VERIFIED_MAX: usize = 4_096;

/// The decision of the authorizer, and what it is based on.
#[derive(Debug)]
pub(crate) enum Decision {
    Allowed(Grant),
    Denied(Vec<String>),
}

#[derive(Debug)]
pub(crate) enum Grant {
    Master,
    AlwaysAllow,
    Binding(Held),
}

/// Paths that anonymous callers may read.
const PUBLIC_PATHS: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

impl Access {
    pub fn new(authorization: Authorization, tokens: TokenFile, signer: Signer) -> Self {
        Self {
            authorization,
            tokens,
            signer,
            issuer: ISSUER.to_owned(),
            authority: String::new(),
            endpoint: ServiceEndpoint::default(),
            audit: None,
            verified: Mutex::default(),
        }
    }

    /// Each logical cluster issues its own tokens, so that none counts in another.
    pub(crate) fn issuer(&self, cluster: &str) -> String {
        match cluster {
            "" => self.issuer.clone(),
            name => format!("{}/clusters/{name}", self.issuer),
        }
    }

    /// What others need to check tokens of a logical cluster.
    pub(crate) fn openid_configuration(&self, cluster: &str) -> Value {
        account::openid_configuration(&self.issuer(cluster))
    }

    pub(crate) fn key_set(&self) -> Value {
        self.signer.key_set()
    }

    fn claims(&self, token: &str) -> Option<Arc<Claims>> {
        let digest = token_file::digest(token);
        if let Some(claims) = self.verified.lock().get(&digest) {
            return Some(Arc::clone(claims));
        }
        let claims = Arc::new(Claims::read(&self.signer, token)?);
        let mut verified = self.verified.lock();
        if verified.len() >= VERIFIED_MAX {
            verified.clear();
        }
        verified.insert(digest, Arc::clone(&claims));
        Some(claims)
    }
}

impl Decision {
    fn permit(self, caller: &Caller, attributes: &Attributes<'_>) -> ApiResult<()> {
        match self {
            Self::Allowed(_) => Ok(()),
            Self::Denied(_) => Err(refusal(caller, attributes, &self.reason())),
        }
    }

    /// As the audit log and reviews tell it.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Allowed(Grant::Master | Grant::AlwaysAllow) => String::new(),
            Self::Allowed(Grant::Binding(held)) => format!("RBAC: allowed by {held}"),
            Self::Denied(lost) => match &lost[..] {
                [] => String::new(),
                [one] => format!("RBAC: {one}"),
                several => format!("RBAC: [{}]", several.join(", ")),
            },
        }
    }
}

/// Everything that access to one logical cluster is decided by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard<'s> {
    pub(crate) access: &'s Access,
    pub(crate) store: &'s Store,
    pub(crate) surroundings: &'s dyn Surroundings,
    pub(crate) cluster: &'s str,
    pub(crate) rights: &'s Rights,
}

impl Guard<'_> {
    /// Authenticates a request, applies impersonation, and authorizes the resulting caller.
    pub(crate) fn admit(
        self,
        peer: &Peer,
        headers: &HeaderMap,
        info: &RequestInfo,
        log: &mut Log<'_>,
    ) -> ApiResult<Caller> {
        let found = self.true_caller(peer, headers);
        // A caller that fails to authenticate is logged without a name.
        let auditor = self.access.audit.as_ref();
        log.open(auditor, found.as_ref().unwrap_or(&Caller::default()), info);
        let mut caller = found?;
        if let Some(connection) = &peer.connection {
            connection.identify(&caller)?;
        }
        let check = |attributes: &Attributes<'_>| self.permit(&caller, attributes);
        if let Some(other) = impersonation::caller(headers, check)? {
            log.impersonating(&other);
            caller = other;
        }
        let attributes = Attributes::from(info);
        let decision = self.decide(&caller, &attributes);
        log.decided(matches!(decision, Decision::Allowed(_)), || decision.reason());
        decision.permit(&caller, &attributes)?;
        Ok(caller)
    }

    fn true_caller(self, peer: &Peer, headers: &HeaderMap) -> ApiResult<Caller> {
        if peer.is_local {
            return Ok(Caller::server());
        }
        if let Some(caller) = &peer.certificate {
            return Ok(caller.clone());
        }
        let Some(token) = bearer_token(headers)? else {
            return Ok(Caller::anonymous());
        };
        let known = self.caller_of_token(token, &[]);
        known.map(|(caller, _)| caller).ok_or_else(Status::unauthorized)
    }

    /// Whom a token names, and for which of the wanted audiences (this server, if none is wanted).
    pub(crate) fn caller_of_token(
        self,
        token: &str,
        wanted: &[String],
    ) -> Option<(Caller, Vec<String>)> {
        let issuer = self.access.issuer(self.cluster);
        let own = vec![issuer.clone()];
        let wanted = if wanted.is_empty() { &own[..] } else { wanted };
        if let Some(caller) = self.access.tokens.find(token) {
            // A listed token is for this server and for nobody else.
            return wanted.contains(&issuer).then(|| (caller.clone(), own.clone()));
        }
        let claims = self.access.claims(token)?;
        let audiences = claims.aud.iter().filter(|audience| wanted.contains(audience));
        let audiences: Vec<String> = audiences.cloned().collect();
        if audiences.is_empty() {
            return None;
        }
        let (snapshot, now) = (self.store.snapshot(), self.surroundings.now());
        let caller = claims.caller(&issuer, now, &snapshot, self.cluster)?;
        Some((caller, audiences))
    }

    /// Refuses what the caller may not do.
    pub(crate) fn permit(self, caller: &Caller, attributes: &Attributes<'_>) -> ApiResult<()> {
        self.decide(caller, attributes).permit(caller, attributes)
    }

    /// Whether the caller may do something.
    pub(crate) fn may(self, caller: &Caller, attributes: &Attributes<'_>) -> bool {
        matches!(self.decide(caller, attributes), Decision::Allowed(_))
    }

    pub(crate) fn decide(self, caller: &Caller, attributes: &Attributes<'_>) -> Decision {
        if caller.is_in(MASTERS) {
            return Decision::Allowed(Grant::Master);
        }
        if caller.is_in(UNAUTHENTICATED) && !is_public(attributes) {
            return Decision::Denied(Vec::new());
        }
        if self.access.authorization == Authorization::AlwaysAllow {
            return Decision::Allowed(Grant::AlwaysAllow);
        }
        match self.look_up(|index| index.judge(caller, attributes)) {
            Verdict::Allowed(held) => Decision::Allowed(Grant::Binding(held)),
            Verdict::Denied(lost) => Decision::Denied(lost),
        }
    }

    /// Asks the roles and bindings as they are now.
    pub(crate) fn look_up<T>(self, ask: impl FnOnce(&Index) -> T) -> T {
        self.rights.with(self.store, self.cluster, ask)
    }
}

/// The token of a request; other schemes prove nothing here.
fn bearer_token(headers: &HeaderMap) -> ApiResult<Option<&str>> {
    let Some(header) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let text = header.to_str().map_err(|_| Status::unauthorized())?;
    let (scheme, token) = text.trim().split_once(' ').unwrap_or((text, ""));
    let token = token.trim();
    Ok((scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token))
}

/// Whether rules that are held include all that others allow.
pub(crate) fn includes(held: &[Rule], wanted: &[Rule]) -> bool {
    rule::missing(held, wanted).is_empty()
}

/// What no binding opens further: those whom nobody knows see health and version.
fn is_public(attributes: &Attributes<'_>) -> bool {
    let AccessTarget::Path(path) = attributes.target else { return false };
    let is_below = |public: &&str| {
        let rest = path.strip_prefix(*public);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    matches!(attributes.verb, "get" | "head") && PUBLIC_PATHS.iter().any(is_below)
}

fn refusal(caller: &Caller, attributes: &Attributes<'_>, reason: &str) -> Box<Status> {
    let colon = if reason.is_empty() { "" } else { ": " };
    let why = format!("User {:?} cannot {attributes}{colon}{reason}", caller.name);
    match attributes.target {
        AccessTarget::Path(_) => Status::forbidden_path(&why),
        AccessTarget::Resource { group, resource, name, .. } => {
            Status::forbidden_thing(group, resource, name, &why)
        }
    }
}
