//! Webhooks as configurations describe them, and which requests they are asked about.

use std::sync::Arc;

use serde_json::Value;

use super::audience::{Audience, Subject};
use super::call::Client;
use super::condition::{Condition, Match, all_hold, scope};
use crate::registry::Resource;

/// One webhook of a configuration.
#[derive(Debug)]
pub(super) struct Hook {
    pub name: String,
    pub client: Client,
    audience: Audience,
    pub ignores_failure: bool,
    pub is_reinvoked: bool,
    pub timeout_seconds: u64,
    pub has_side_effects: bool,
    /// `admit` if it changes objects, `validating` if it only checks them.
    pub role: &'static str,
    conditions: Vec<Condition>,
}

impl Hook {
    /// The webhooks of a configuration, in order.
    pub(super) fn of(configuration: &Value) -> Vec<Self> {
        let hooks = configuration["webhooks"].as_array().into_iter().flatten();
        let is_mutating = configuration["kind"] == "MutatingWebhookConfiguration";
        let role = if is_mutating { "admit" } else { "validating" };
        hooks.filter_map(|hook| Self::read(hook, role)).collect()
    }

    fn read(hook: &Value, role: &'static str) -> Option<Self> {
        let conditions = hook["matchConditions"].as_array().into_iter().flatten();
        Some(Self {
            name: hook["name"].as_str()?.to_owned(),
            client: Client::new(&hook["clientConfig"]),
            audience: Audience::of_hook(hook)?,
            ignores_failure: hook["failurePolicy"] == "Ignore",
            is_reinvoked: hook["reinvocationPolicy"] == "IfNeeded",
            timeout_seconds: hook["timeoutSeconds"].as_u64().unwrap_or(10).clamp(1, 30),
            has_side_effects: !matches!(
                hook["sideEffects"].as_str(),
                Some("None" | "NoneOnDryRun")
            ),
            role,
            conditions: conditions.map(Condition::read).collect(),
        })
    }

    /// The resource of a request as the webhook knows it; none if it is not asked about it.
    pub(super) fn row(&self, subject: &Subject<'_>) -> Option<Arc<Resource>> {
        self.audience.row(subject)
    }

    /// Whether its conditions hold of a request, in the version that it knows.
    pub(super) fn matches(&self, subject: &Subject<'_>) -> Match {
        if self.conditions.is_empty() {
            return Match::Yes;
        }
        let asks = self.conditions.iter().any(Condition::asks);
        all_hold(&self.conditions, self.ignores_failure, &scope(subject, asks))
    }
}
