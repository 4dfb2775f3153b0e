//! Webhooks of dialects: what they are registered for, what is asked of them, what they say; kinds
//! whose versions they convert.

use convoy_api::GroupKind;
use jiff::Timestamp;
use serde_json::{Value, json};

/// One webhook of a dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// What clients read in refusals.
    pub name: &'static str,
    /// The object that registers it.
    pub configuration: &'static str,
    /// Where it is served.
    pub path: &'static str,
    pub role: Role,
    pub about: Served,
    pub operations: &'static [Operation],
    /// What it looks at beside the object.
    pub beside: &'static [Served],
}

/// What a webhook may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Fill in and normalise.
    Mutates,
    /// Refuse.
    Validates,
    /// Warn: it never refuses, and nothing is refused when it cannot be asked.
    Warns,
    /// Refuse by who asks, for parts of objects such as their status too. Nothing is refused when
    /// it cannot be asked.
    Guards(&'static Guarded),
}

/// What a guard is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    pub kinds: &'static [GuardedKinds],
    /// The label of a namespace, and the values of it, that the guard is asked about; None: all.
    pub namespaces: Option<(&'static str, &'static [&'static str])>,
}

/// Kinds of one group that are guarded alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedKinds {
    pub operations: &'static [Operation],
    /// `*`: every group.
    pub group: &'static str,
    pub version: &'static str,
    /// Plural names, with parts as in `pods/status`.
    pub resources: &'static [&'static str],
    /// `Cluster` or `Namespaced`.
    pub scope: &'static str,
}

/// A kind as an API server serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub kind: GroupKind,
    pub version: &'static str,
    pub plural: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// What is asked of a webhook.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request<'r> {
    pub operation: Operation,
    pub name: &'r str,
    /// As it shall be; absent when it shall go.
    pub object: Option<&'r Value>,
    /// As it is; absent when it is new.
    pub old: Option<&'r Value>,
    /// The name of the user who makes the request.
    pub user: &'r str,
    pub circumstances: Circumstances<'r>,
}

/// What a review does not say: whoever carries it finds that out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Circumstances<'r> {
    pub now: Timestamp,
    /// The rights of [`Dialect::rights`](crate::Dialect::rights) that the user does not have.
    pub denied: &'r [NeededRight],
}

/// A right that a user needs for a request, beside the right to write the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededRight {
    pub verb: &'static str,
    pub group: &'static str,
    pub resource: &'static str,
    pub subresource: &'static str,
    /// Empty: cluster-wide.
    pub namespace: String,
    pub name: String,
}

/// A kind whose versions an API server can have converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The name of its definition.
    pub definition: &'static str,
    /// Where the webhook is served.
    pub path: &'static str,
    /// The versions that differ in more than their name.
    pub versions: &'static [&'static str],
}

impl Conversion {
    /// Whether a definition has the versions that are converted. One that lacks some, such as
    /// upstream's, is left as it is.
    pub fn concerns(&self, definition: &Value) -> bool {
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let has = |name: &str| {
            versions.is_some_and(|versions| versions.iter().any(|version| version["name"] == name))
        };
        self.versions.iter().all(|version| has(version))
    }

    /// What its definition says, given how an API server reaches the webhook.
    pub fn strategy(&self, client: &Value) -> Value {
        json!({"strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}})
    }
}

/// What a webhook says.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Allowed {
        /// The operations of a JSON patch.
        changes: Vec<Value>,
        warnings: Vec<String>,
    },
    /// Forbidden.
    Refused(String),
    /// A bad request.
    Invalid(String),
}

impl Operation {
    /// As reviews and rules spell it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

impl Role {
    /// The kind of the configurations that register webhooks of this role.
    pub fn configuration_kind(self) -> &'static str {
        match self {
            Self::Mutates => "MutatingWebhookConfiguration",
            Self::Validates | Self::Warns | Self::Guards(_) => "ValidatingWebhookConfiguration",
        }
    }
}

impl Verdict {
    /// Nothing to change, nothing to say.
    pub fn allowed() -> Self {
        Self::Allowed { changes: Vec::new(), warnings: Vec::new() }
    }
}
