//! Webhooks as their configurations describe them.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use convoy_plan::admission::configurations;
use serde_json::Value;

use super::audience::{Audience, Subject};
use super::condition::{Condition, Match, all_hold, scope};
use super::own::Own;
use crate::hook_client::Client;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;

/// One webhook of a configuration.
#[derive(Debug)]
pub(super) struct Hook {
    pub name: String,
    judge: Judge,
    audience: Audience,
    pub ignores_failure: bool,
    pub is_reinvoked: bool,
    timeout_seconds: u64,
    pub has_side_effects: bool,
    /// `admit` if it changes objects, `validating` if it only checks them.
    pub role: &'static str,
    conditions: Vec<Condition>,
}

/// The implementation of a webhook.
#[derive(Debug)]
enum Judge {
    Remote(Box<Client>),
    Own(Own),
}

impl Hook {
    /// The webhooks of a configuration, in order.
    pub(super) fn of(configuration: &Value) -> Vec<Self> {
        let hooks = configuration["webhooks"].as_array().into_iter().flatten();
        let judge = |hook: &Value| Judge::Remote(Box::new(Client::new(&hook["clientConfig"])));
        hooks.filter_map(|hook| Self::read(hook, role(configuration), judge(hook))).collect()
    }

    /// One that is built in, with the rules that it would be registered with elsewhere.
    pub(super) fn own(own: Own) -> Option<Self> {
        let configuration =
            configurations(slice::from_ref(own.webhook()), |_| Value::Null).pop()?;
        Self::read(&configuration["webhooks"][0], role(&configuration), Judge::Own(own))
    }

    fn read(hook: &Value, role: &'static str, judge: Judge) -> Option<Self> {
        let conditions = hook["matchConditions"].as_array().into_iter().flatten();
        Some(Self {
            name: hook["name"].as_str()?.to_owned(),
            judge,
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

    /// Whether the webhook is built in and applies to the kind of this request.
    pub(super) fn is_own_about(&self, request: &ResourceRequest) -> bool {
        matches!(&self.judge, Judge::Own(own) if own.is_about(request))
    }

    /// Sends a review to the webhook and returns its response, or the reason of the failure.
    pub(super) async fn call(
        &self,
        request: &ResourceRequest,
        review: &Value,
    ) -> Result<Value, String> {
        match &self.judge {
            Judge::Remote(client) => {
                client.call(request, review, Duration::from_secs(self.timeout_seconds)).await
            }
            Judge::Own(own) => own.call(request, review),
        }
    }

    /// The resource of a request as the webhook knows it; `None` if the webhook does not apply.
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

fn role(configuration: &Value) -> &'static str {
    let is_mutating = configuration["kind"] == "MutatingWebhookConfiguration";
    if is_mutating { "admit" } else { "validating" }
}
