//! How much of which requests is logged: `audit.k8s.io/v1` Policy.

use serde::Deserialize;

use crate::caller::Caller;
use crate::request_info::{RequestInfo, Target};

/// How much of a request is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Level {
    #[default]
    None,
    /// All but the bodies.
    Metadata,
    Request,
    RequestResponse,
}

/// Where a request stands when a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

/// Rules in order; the first that matches a request decides.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    rules: Vec<PolicyRule>,
    omit_stages: Vec<Stage>,
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PolicyRule {
    level: Level,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    omit_stages: Vec<Stage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("the audit policy cannot be read: {0}")]
    Read(String),
    #[error("the audit policy is not an audit.k8s.io/v1 Policy")]
    Kind,
    #[error("rule {0} of the audit policy names both resources and paths")]
    Mixed(usize),
    #[error("rule {0} of the audit policy has no level")]
    Level(usize),
}

/// What the policy says about one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub level: Level,
    pub omit_managed_fields: bool,
    omitted: Vec<Stage>,
}

impl Policy {
    /// Every request without its bodies.
    pub fn metadata() -> Self {
        let rule = PolicyRule { level: Level::Metadata, ..PolicyRule::default() };
        Self { rules: vec![rule], ..Self::default() }
    }

    /// Reads a policy in YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let value: serde_json::Value =
            serde_saphyr::from_str(text).map_err(|error| PolicyError::Read(error.to_string()))?;
        if value["kind"] != "Policy" || value["apiVersion"] != "audit.k8s.io/v1" {
            return Err(PolicyError::Kind);
        }
        for (at, rule) in value["rules"].as_array().into_iter().flatten().enumerate() {
            if rule["level"].is_null() {
                return Err(PolicyError::Level(at));
            }
        }
        let policy: Self =
            serde_json::from_value(value).map_err(|error| PolicyError::Read(error.to_string()))?;
        let is_mixed = |rule: &PolicyRule| {
            let names_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
            names_resources && !rule.non_resource_urls.is_empty()
        };
        match policy.rules.iter().position(is_mixed) {
            Some(at) => Err(PolicyError::Mixed(at)),
            None => Ok(policy),
        }
    }

    pub(super) fn choose(&self, caller: &Caller, info: &RequestInfo) -> Chosen {
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(caller, info)) else {
            return Chosen::default();
        };
        let level = rule.level.min(level_max(rule, info));
        let omitted = [&self.omit_stages[..], &rule.omit_stages[..]].concat();
        let omit_managed_fields = rule.omit_managed_fields.unwrap_or(self.omit_managed_fields);
        Chosen { level, omit_managed_fields, omitted }
    }
}

impl Chosen {
    pub(super) fn omits(&self, stage: Stage) -> bool {
        self.omitted.contains(&stage)
    }
}

impl PolicyRule {
    /// An empty list matches everything.
    fn matches(&self, caller: &Caller, info: &RequestInfo) -> bool {
        let lists = |list: &[String], value: &str| {
            list.is_empty() || list.iter().any(|known| known == value)
        };
        let in_groups =
            self.user_groups.is_empty() || self.user_groups.iter().any(|group| caller.is_in(group));
        lists(&self.users, &caller.name)
            && in_groups
            && lists(&self.verbs, info.verb.as_str())
            && match &info.target {
                Some(target) => self.matches_target(target),
                None => self.matches_path(&info.path),
            }
    }

    fn matches_target(&self, target: &Target) -> bool {
        let here = |known: &String| known == target.namespace.as_str();
        self.non_resource_urls.is_empty()
            && (self.namespaces.is_empty() || self.namespaces.iter().any(here))
            && (self.resources.is_empty() || self.resources.iter().any(|one| one.matches(target)))
    }

    fn matches_path(&self, path: &str) -> bool {
        if !self.resources.is_empty() || !self.namespaces.is_empty() {
            return false;
        }
        let covers = |url: &String| match url.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => url == path,
        };
        self.non_resource_urls.is_empty() || self.non_resource_urls.iter().any(covers)
    }
}

impl GroupResources {
    fn matches(&self, target: &Target) -> bool {
        if self.group != target.group.as_str() {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let named = self.resource_names.is_empty()
            || self.resource_names.iter().any(|name| name == target.name.as_str());
        named && self.resources.iter().any(|resource| resource_matches(resource, target))
    }
}

/// `*`, `pods`, `pods/status`, `pods/*`, `*/status`; one without a slash is the resource alone.
fn resource_matches(pattern: &str, target: &Target) -> bool {
    if pattern == "*" {
        return true;
    }
    match pattern.split_once('/') {
        None => target.subresource.is_empty() && pattern == target.resource.as_str(),
        Some((left, right)) => {
            !target.subresource.is_empty()
                && (left == "*" || left == target.resource.as_str())
                && (right == "*" || right == target.subresource.as_str())
        }
    }
}

/// Bodies that hold secrets stay out of the log: those with live tokens always, those of
/// Secrets unless the very rule names them.
fn level_max(rule: &PolicyRule, info: &RequestInfo) -> Level {
    let Some(target) = &info.target else { return Level::RequestResponse };
    let what = (target.group.as_str(), target.resource.as_str(), target.subresource.as_str());
    match what {
        ("authentication.k8s.io", "tokenreviews", _) | ("", "serviceaccounts", "token") => {
            Level::Metadata
        }
        ("", "secrets", _) => {
            let mut named = rule.resources.iter().flat_map(|one| &one.resources);
            if named.any(|name| name == "secrets") {
                Level::RequestResponse
            } else {
                Level::Metadata
            }
        }
        _ => Level::RequestResponse,
    }
}
