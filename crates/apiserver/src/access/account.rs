//! Tokens of service accounts: their claims, and whether the claims still hold.

use std::collections::BTreeMap;

use convoy_store::Shelf;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::{CREDENTIAL_ID, Signer};
use crate::caller::{AUTHENTICATED, Caller};
use crate::object_meta::{Entry, Snapshot};

/// The claims of a token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Claims {
    pub aud: Vec<String>,
    pub exp: i64,
    pub iat: i64,
    pub iss: String,
    pub jti: String,
    #[serde(rename = "kubernetes.io")]
    pub kubernetes: KubernetesClaims,
    pub nbf: i64,
    pub sub: String,
}

/// The `kubernetes.io` claim: the service account, and the object that the token is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct KubernetesClaims {
    pub namespace: SmolStr,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Named>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Named>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Named>,
    pub serviceaccount: Named,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Named {
    pub name: SmolStr,
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    pub uid: SmolStr,
}

/// Tolerated clock skew since a token was issued.
const SKEW_SECS: i64 = 60;

/// How long tokens stay valid after the deletion of their object has begun.
const DELETION_GRACE: SignedDuration = SignedDuration::from_secs(60);

pub(crate) fn user_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The groups of every service account of a namespace.
pub(crate) fn groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Namespace and name of the service account that a user name stands for.
pub(crate) fn split_user_name(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

impl Claims {
    /// The claims of a token that this server signed.
    pub(crate) fn read(signer: &Signer, token: &str) -> Option<Self> {
        serde_json::from_slice(&signer.verify(token)?).ok()
    }

    pub(crate) fn token(&self, signer: &Signer) -> Option<String> {
        signer.sign(&json!(self))
    }

    /// Whom the claims name in one logical cluster, as of `now`; none if any of them does not
    /// hold. The audience is for the caller to check.
    pub(crate) fn caller(
        &self,
        issuer: &str,
        now: Timestamp,
        snapshot: &Snapshot,
        cluster: &str,
    ) -> Option<Caller> {
        let kubernetes = &self.kubernetes;
        let account = &kubernetes.serviceaccount;
        let seconds = now.as_second();
        let in_time = seconds < self.exp && self.nbf <= seconds.saturating_add(SKEW_SECS);
        let name = user_name(&kubernetes.namespace, &account.name);
        if !in_time || self.iss != issuer || self.sub != name {
            return None;
        }
        let look = Look { snapshot, cluster, now };
        look.vouches("serviceaccounts", &kubernetes.namespace, account)?;
        if let Some(secret) = &kubernetes.secret {
            look.vouches("secrets", &kubernetes.namespace, secret)?;
        }
        match (&kubernetes.pod, &kubernetes.node) {
            // With a pod, the node is informational only: the token is bound to the pod.
            (Some(pod), _) => look.vouches("pods", &kubernetes.namespace, pod)?,
            (None, Some(node)) => look.vouches("nodes", "", node)?,
            (None, None) => {}
        }
        let mut groups = groups(&kubernetes.namespace);
        groups.push(AUTHENTICATED.to_owned());
        Some(Caller { name, uid: account.uid.to_string(), groups, extra: self.extra() })
    }

    fn extra(&self) -> BTreeMap<String, Vec<String>> {
        let mut extra = BTreeMap::new();
        if !self.jti.is_empty() {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={}", self.jti)]);
        }
        for (what, named) in [("pod", &self.kubernetes.pod), ("node", &self.kubernetes.node)] {
            let Some(Named { name, uid }) = named else { continue };
            for (part, value) in [("name", name), ("uid", uid)] {
                if !value.is_empty() {
                    let key = format!("authentication.kubernetes.io/{what}-{part}");
                    extra.insert(key, vec![value.to_string()]);
                }
            }
        }
        extra
    }
}

struct Look<'l> {
    snapshot: &'l Snapshot,
    cluster: &'l str,
    now: Timestamp,
}

impl Look<'_> {
    /// Whether the very object that a claim names is there, and stays.
    fn vouches(&self, plural: &str, namespace: &str, named: &Named) -> Option<()> {
        let key = Shelf::new(self.cluster, plural).key(namespace, &named.name);
        let entry = self.snapshot.get(&key)?;
        let is_same = !named.uid.is_empty() && entry.meta.uid == named.uid;
        (is_same && !self.is_gone(entry)).then_some(())
    }

    fn is_gone(&self, entry: &Entry) -> bool {
        let Some(deletion) = &entry.meta.deletion else { return false };
        let deletion: Result<Timestamp, _> = deletion.parse();
        deletion.is_ok_and(|at| at.saturating_add(DELETION_GRACE).is_ok_and(|end| end < self.now))
    }
}

/// `{"name": …, "uid": …}` of an object.
pub(crate) fn named(entry: &Entry) -> Named {
    Named { name: entry.key.name.clone(), uid: entry.meta.uid.clone() }
}

/// What others need to check tokens of one logical cluster.
pub(crate) fn openid_configuration(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}
