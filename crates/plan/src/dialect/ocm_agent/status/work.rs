//! The status of a work: its manifests, and what follows from them for the whole.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::object::member::{list, text};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::manifest::{Entry, entry, is_of_rule, is_outdated};
use crate::condition::{self, Condition, truth};
use crate::dialect::ocm_agent::Options;
use crate::dialect::ocm_agent::decide::manifest::Processed;
use crate::dialect::ocm_agent::decide::work::Application;
use crate::dialect::ocm_agent::names::{APPLIED, AVAILABLE, PROGRESSING};
use crate::dialect::ocm_agent::read::recorded::entry_of;

/// The status of a work, and when there is more to tell.
pub(crate) struct ToldStatus {
    /// None: it reads so already.
    pub(crate) status: Option<Value>,
    pub(crate) wake_at: Option<Timestamp>,
}

pub(crate) fn status(
    work: &Object,
    application: &Application<'_>,
    options: &Options,
    now: Timestamp,
) -> ToldStatus {
    let generation = work.generation();
    let told = |it: &Processed<'_>| entry(it, entry_of(work, &it.item), generation, options, now);
    let entries: Vec<Entry> = application.processed.iter().map(told).collect();
    let wake_at = entries.iter().filter_map(|it| it.wake_at).min();
    let manifests: Vec<Value> = entries.into_iter().map(|it| it.value).collect();
    let mut conditions = list(work.status(), "conditions").to_vec();
    for told in applied(&manifests, application.is_frozen).into_iter().chain(aggregated(&manifests))
    {
        condition::set(&mut conditions, &told.of_generation(generation), now);
    }
    conditions.retain(|it| !is_outdated(it, generation));
    let mut status = work.status().as_object().cloned().unwrap_or_default();
    status.insert("conditions".into(), Value::Array(conditions));
    status.insert("resourceStatus".into(), json!({"manifests": manifests}));
    let status = Value::Object(status);
    ToldStatus { status: (status != *work.status()).then_some(status), wake_at }
}

/// Whether all manifests are applied. A work that is through keeps what it says.
fn applied(manifests: &[Value], is_frozen: bool) -> Option<Condition<'static>> {
    let all = manifests.iter().flat_map(|it| list(it, "conditions"));
    let mut applied = all.filter(|it| text(it, "type") == APPLIED).peekable();
    applied.peek().filter(|_| !is_frozen)?;
    Some(if applied.all(|it| text(it, "status") != "False") {
        let message = "Apply manifest work complete";
        Condition::new(APPLIED, "True", "AppliedManifestWorkComplete", message)
    } else {
        let message = "Failed to apply manifest work";
        Condition::new(APPLIED, "False", "AppliedManifestWorkFailed", message)
    })
}

/// How many manifests say what about one condition.
#[derive(Clone, Copy, Debug, Default)]
struct Count<'m> {
    yes: usize,
    no: usize,
    unknown: usize,
    message: &'m str,
}

impl<'m> Count<'m> {
    fn add(&mut self, condition: &'m Value) {
        match text(condition, "status") {
            "True" => self.yes += 1,
            "False" => self.no += 1,
            _ => self.unknown += 1,
        }
        if !text(condition, "message").is_empty() {
            self.message = text(condition, "message");
        }
    }
}

/// The conditions of the work that follow from those of its manifests, by type.
fn aggregated(manifests: &[Value]) -> Vec<Condition<'_>> {
    let mut counts: BTreeMap<&str, Count<'_>> = BTreeMap::from([(AVAILABLE, Count::default())]);
    for condition in manifests.iter().flat_map(|it| list(it, "conditions")) {
        let kind = text(condition, "type");
        if kind == AVAILABLE || is_of_rule(condition) {
            counts.entry(kind).or_default().add(condition);
        }
    }
    let told = counts.into_iter().map(|(kind, count)| match kind {
        AVAILABLE => available(count, manifests.len()),
        kind => by_rules(kind, count),
    });
    told.collect()
}

fn available(count: Count<'_>, all: usize) -> Condition<'static> {
    let (status, reason, message) = match count {
        Count { no, .. } if no > 0 => {
            ("False", "ResourcesNotAvailable", format!("{no} of {all} resources are not available"))
        }
        Count { unknown, .. } if unknown > 0 => (
            "Unknown",
            "ResourcesStatusUnknown",
            format!("{unknown} of {all} resources have unknown status"),
        ),
        // The blank at the end is upstream's.
        Count { yes: 0, .. } => {
            ("Unknown", "ResourcesStatusUnknown", "cannot get any available resource ".to_owned())
        }
        Count { .. } => ("True", "ResourcesAvailable", "All resources are available".to_owned()),
    };
    Condition::new(AVAILABLE, status, reason, message)
}

/// One manifest that is progressing makes the work progressing; for everything else all have to
/// agree.
fn by_rules<'m>(kind: &'m str, count: Count<'m>) -> Condition<'m> {
    let Count { yes, no, unknown, message } = count;
    let status = if kind == PROGRESSING {
        if yes == 0 && unknown > 0 { "Unknown" } else { truth(yes > 0) }
    } else if no > 0 {
        "False"
    } else if unknown > 0 || yes == 0 {
        "Unknown"
    } else {
        "True"
    };
    let all = yes + no + unknown;
    let message = if all == 1 && !message.is_empty() {
        message.to_owned()
    } else {
        format!("Aggregated from {all} manifest conditions")
    };
    Condition::new(kind, status, "ConditionRulesAggregated", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(kind: &str, status: &str) -> Value {
        json!({"conditions": [{"type": kind, "status": status, "message": "it says so",
            "reason": "ConditionRuleEvaluated"}]})
    }

    #[test]
    fn all_agree_but_one_is_enough_for_progress() {
        let cases = [
            ("Complete", vec!["True", "True"], "True"),
            ("Complete", vec!["True", "False", "Unknown"], "False"),
            ("Complete", vec!["True", "Unknown"], "Unknown"),
            ("Progressing", vec!["False", "False"], "False"),
            ("Progressing", vec!["False", "True", "Unknown"], "True"),
            ("Progressing", vec!["False", "Unknown"], "Unknown"),
            ("Available", vec!["True"], "True"),
            ("Available", vec!["True", "False", "Unknown"], "False"),
            ("Available", vec!["True", "Unknown"], "Unknown"),
            ("Available", vec![], "Unknown"),
        ];
        for (kind, statuses, expected) in cases {
            let manifests: Vec<Value> = statuses.iter().map(|it| manifest(kind, it)).collect();
            let told = aggregated(&manifests);
            let told = told.iter().find(|it| it.kind == kind).unwrap();
            assert_eq!(told.status, expected, "{kind} {statuses:?}");
        }
        let one = [manifest("Complete", "True")];
        assert_eq!(aggregated(&one)[1].message, "it says so");
        let two = [manifest("Complete", "True"), manifest("Complete", "True")];
        assert_eq!(aggregated(&two)[1].message, "Aggregated from 2 manifest conditions");
    }
}
