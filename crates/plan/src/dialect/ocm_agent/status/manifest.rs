//! The status of one manifest: its conditions, and the values that its work asks for.

use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};
use crate::dialect::ocm_agent::Options;
use crate::dialect::ocm_agent::decide::manifest::{ApplyResult, Processed};
use crate::dialect::ocm_agent::names::{
    APPLIED, APPLY_COMPLETE, APPLY_FAILED, AVAILABLE, FAILED_PREFIX, FEEDBACK_SYNCED,
    IGNORE_FAILED, RULE_PREFIX,
};
use crate::dialect::ocm_agent::read::feedback::feedback;
use crate::dialect::ocm_agent::read::rule;

/// The entry of a manifest, and when it has more to tell.
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) wake_at: Option<Timestamp>,
}

/// `before` is the entry that it takes the place of, `generation` that of the work.
pub(crate) fn entry(
    processed: &Processed<'_>,
    before: &Value,
    generation: i64,
    options: &Options,
    now: Timestamp,
) -> Entry {
    let mut conditions = list(before, "conditions").to_vec();
    if let Some(applied) = applied(processed) {
        // A new generation moves it to the end, with a new time.
        let known = conditions.iter().find(|it| text(it, "type") == APPLIED);
        let is_current = |it: &Value| field(it, "observedGeneration").as_i64() == Some(generation);
        if known.is_some_and(|it| !is_current(it)) {
            condition::remove(&mut conditions, APPLIED);
        }
        condition::set(&mut conditions, &applied.of_generation(generation), now);
    }
    condition::set(&mut conditions, &available(processed), now);
    let known = list(field(before, "statusFeedback"), "values");
    let (values, wake_at) = fed_back(processed, known, &mut conditions, options, now);
    if let Some(live) = processed.live {
        for told in rule::conditions(live, processed.config.conditions) {
            condition::set(&mut conditions, &told.of_generation(generation), now);
        }
        conditions.retain(|it| !is_outdated(it, generation));
    }
    let mut entry = Map::new();
    entry.insert("resourceMeta".into(), processed.item.meta());
    if !values.is_empty() {
        entry.insert("statusFeedback".into(), json!({"values": values}));
    }
    entry.insert("conditions".into(), Value::Array(conditions));
    Entry { value: Value::Object(entry), wake_at }
}

/// Whether a rule gave the condition.
pub(super) fn is_of_rule(condition: &Value) -> bool {
    text(condition, "reason").starts_with(RULE_PREFIX)
}

/// Whether a rule gave the condition that is no longer there: dropping one makes a new generation.
pub(super) fn is_outdated(condition: &Value, generation: i64) -> bool {
    is_of_rule(condition) && field(condition, "observedGeneration").as_i64() != Some(generation)
}

/// None: what is told stays.
fn applied(processed: &Processed<'_>) -> Option<Condition<'static>> {
    match &processed.result {
        ApplyResult::Applied => {
            Some(Condition::new(APPLIED, "True", APPLY_COMPLETE, "Apply manifest complete"))
        }
        ApplyResult::Retried { message, .. } | ApplyResult::Failed { message } => {
            let message = format!("{FAILED_PREFIX}{message}");
            Some(Condition::new(APPLIED, "False", APPLY_FAILED, message))
        }
        ApplyResult::Misconfigured { message } => {
            let message = format!("Failed to process ignoreFields: {message}");
            Some(Condition::new(APPLIED, "False", IGNORE_FAILED, message))
        }
        ApplyResult::Pending { .. } | ApplyResult::Frozen => None,
    }
}

fn available(processed: &Processed<'_>) -> Condition<'static> {
    let (status, reason, message) = if processed.item.resource.is_empty() {
        ("Unknown", "IncompleteResourceMeta", "Resource meta is incomplete")
    } else if processed.live.is_some() {
        ("True", "ResourceAvailable", "Resource is available")
    } else {
        ("False", "ResourceNotAvailable", "Resource is not available")
    };
    Condition::new(AVAILABLE, status, reason, message)
}

/// The values, and when there will be others: polled ones are renewed now and then, so that an
/// object whose status changes all the time does not write to the hub all the time.
fn fed_back(
    processed: &Processed<'_>,
    known: &[Value],
    conditions: &mut Vec<Value>,
    options: &Options,
    now: Timestamp,
) -> (Vec<Value>, Option<Timestamp>) {
    let Some(live) = processed.live else { return (known.to_vec(), None) };
    let rules = processed.config.feedback;
    let found = feedback(live, rules, options);
    let is_changed = found.values != known;
    if is_changed && !processed.config.is_watched {
        let since = conditions.iter().find(|it| text(it, "type") == FEEDBACK_SYNCED);
        let since = since.and_then(|it| timestamp(it.get("lastTransitionTime")));
        let due = since.and_then(|at| at.checked_add(options.status_sync_interval).ok());
        if let Some(due) = due.filter(|due| now < *due && !known.is_empty()) {
            return (known.to_vec(), Some(due));
        }
    }
    if is_changed {
        condition::remove(conditions, FEEDBACK_SYNCED);
    }
    let told = match found.problem() {
        _ if rules.is_empty() => {
            Condition::new(FEEDBACK_SYNCED, "True", "NoStatusFeedbackSynced", "")
        }
        Some(why) => Condition::new(FEEDBACK_SYNCED, "False", "StatusFeedbackSyncFailed", why),
        None => Condition::new(FEEDBACK_SYNCED, "True", "StatusFeedbackSynced", ""),
    };
    condition::set(conditions, &told, now);
    (found.values, None)
}
