//! What a NodePool's author should know: errors beyond the schema, and traps that the API
//! accepts but that hardly anyone means.

use convoy_api::Object;
use convoy_api::karpenter::convert::{self, REASON_WORDS};
use convoy_api::object::member::list;
use serde_json::Value;

use super::names::{NODE_CLAIM, annotation, label};
use super::read::budget::{Budget, Unreadable, ZONE};
use super::read::pool::Pool;
use super::read::reason::Reason;
use crate::cron;
use crate::diagnostic::Diagnostic;
use crate::selector::{is_label_value, is_qualified_name};
use crate::taint::Taint;
use crate::window::{Phase, Window};

/// Findings about a pool whose schema is sound.
pub(crate) fn pool(object: &Object) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    annotations(object, &mut found);
    if object.version() == "v1beta1" {
        reason_words(object, &mut found);
    }
    let pool = Pool::new(object);
    expired_unbudgeted(&pool, &mut found);
    if let Some(text) = at_run_time(&pool) {
        found.push(Diagnostic::warning(
            object,
            "spec.template",
            format!("{text}: the pool will not be Ready"),
        ));
    }
    for (at, budget) in pool.budgets.iter().enumerate() {
        lint(object, at, budget, &mut found);
    }
    unlimited_outside(&pool, &mut found);
    found
}

/// Whether it is a NodeClaim of the version before `v1`: what is read of it is the same there, and
/// its pool goes on.
pub(crate) fn is_older_claim(object: &Object) -> bool {
    *object.kind() == NODE_CLAIM && object.version() == "v1beta1"
}

/// Our own switches have known values; a zone that does not exist closes the pool.
fn annotations(object: &Object, found: &mut Vec<Diagnostic>) {
    let known = [
        (annotation::DEFAULT_BUDGET, ["all", "unlisted"]),
        (annotation::EXPIRATION, ["forceful", "budgeted"]),
    ];
    for (key, values) in known {
        if let Some(value) = object.annotation(key).filter(|value| !values.contains(value)) {
            let field = format!("metadata.annotations[{key}]");
            found.push(Diagnostic::unsupported(object, field, value, &values));
        }
    }
    if let Some(name) = object.annotation(annotation::TIME_ZONE)
        && let Err(error) = cron::zone(name)
    {
        let field = format!("metadata.annotations[{}]", annotation::TIME_ZONE);
        let message = format!(
            "{error}: want an IANA name such as Europe/Berlin; no scheduled budget can be evaluated, so nothing is disrupted"
        );
        found.push(Diagnostic::warning(object, field, message));
    }
}

/// `reason` may be a list or a word, which a schema cannot say.
fn reason_words(object: &Object, found: &mut Vec<Diagnostic>) {
    let budgets = object.spec().pointer("/disruption/budgets").and_then(Value::as_array);
    for (at, budget) in budgets.into_iter().flatten().enumerate() {
        let field = format!("spec.disruption.budgets[{at}].reason");
        let words = match budget.get("reason") {
            None | Some(Value::Null) => continue,
            Some(Value::Array(words)) => words
                .iter()
                .enumerate()
                .map(|(at, word)| (format!("{field}[{at}]"), word))
                .collect(),
            Some(word) => vec![(field, word)],
        };
        for (field, word) in words {
            match word.as_str() {
                Some(text) if convert::reason(text).is_some() => {}
                Some(text) => {
                    found.push(Diagnostic::unsupported(object, field, text, &REASON_WORDS));
                }
                None => found.push(Diagnostic::invalid(
                    object,
                    field,
                    word,
                    "want a reason, or a list of reasons",
                )),
            }
        }
    }
}

/// Expiration that keeps to no budget cannot be limited by one.
fn expired_unbudgeted(pool: &Pool<'_>, found: &mut Vec<Diagnostic>) {
    if pool.is_budgeted_expiration() || pool.object.version() != "v1" {
        return;
    }
    let budgets = pool.object.spec().pointer("/disruption/budgets").and_then(Value::as_array);
    for (at, budget) in budgets.into_iter().flatten().enumerate() {
        for (place, reason) in list(budget, "reasons").iter().enumerate() {
            if *reason == Reason::Expired.word() {
                let field = format!("spec.disruption.budgets[{at}].reasons[{place}]");
                let right = format!(
                    "expiration ignores budgets, unless the annotation {}=budgeted says otherwise; \
                     supported values: \"Underutilized\", \"Empty\", \"Drifted\"",
                    annotation::EXPIRATION
                );
                found.push(Diagnostic::invalid(pool.object, field, reason, &right));
            }
        }
    }
}

/// What upstream's controller checks once the API server has let the pool in.
pub(crate) fn at_run_time(pool: &Pool<'_>) -> Option<String> {
    let template = pool.template();
    let labels = template.pointer("/metadata/labels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        if !is_qualified_name(key) {
            return Some(format!("invalid value {key:?} for a label key"));
        }
        if !value.as_str().is_some_and(is_label_value) {
            return Some(format!("invalid value {value} for label {key:?}"));
        }
    }
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for list in ["taints", "startupTaints"] {
        let taints = template.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
        for taint in taints.into_iter().flatten().map(Taint::from_value) {
            if !is_qualified_name(taint.key) || !is_label_value(taint.value) {
                return Some(format!("invalid taint {taint} in {list}"));
            }
            if seen.contains(&(taint.key, taint.effect)) {
                return Some(format!("duplicate taint {}:{} in {list}", taint.key, taint.effect));
            }
            seen.push((taint.key, taint.effect));
        }
    }
    let mut capacity = pool.requirements.values_of(label::CAPACITY_TYPE).peekable();
    let known = ["on-demand", "spot", "reserved"];
    if capacity.peek().is_some() && !capacity.any(|value| known.contains(&value.as_str())) {
        return Some(format!(
            "no valid values for {}: want on-demand, spot or reserved",
            label::CAPACITY_TYPE
        ));
    }
    None
}

/// Budgets that are accepted and do not do what they look like.
fn lint(object: &Object, at: usize, budget: &Budget, found: &mut Vec<Diagnostic>) {
    let field = |part: &str| format!("spec.disruption.budgets[{at}]{part}");
    let mut warn =
        |part: &str, message: String| found.push(Diagnostic::warning(object, field(part), message));
    // A bad time zone is a finding about its annotation.
    if let Some(Unreadable { field, text }) = budget.unreadable().filter(|it| it.field != ZONE) {
        warn(
            &format!(".{field}"),
            format!("the budget cannot be evaluated, so nothing of this pool is disrupted: {text}"),
        );
    }
    let raw = object.spec().pointer(&format!("/disruption/budgets/{at}/reasons"));
    if raw.and_then(Value::as_array).is_some_and(Vec::is_empty) {
        warn(".reasons", "an empty list is read as if it were absent".to_owned());
    }
    let Some(window) = budget.window() else { return };
    // Any instant will do: these are properties of the schedule.
    match window.at(jiff::Timestamp::UNIX_EPOCH) {
        Phase::NoHit => warn(
            ".schedule",
            "this date never comes, which makes the budget apply always".to_owned(),
        ),
        Phase::Closed { opens_at: None } => {
            warn(".duration", "a duration of zero means that the budget never applies".to_owned());
        }
        Phase::Open { closes_at: None } => warn(
            ".duration",
            "as long as its recurrence or longer, so the budget applies always".to_owned(),
        ),
        _ => {}
    }
}

/// Many write a window and expect nothing to happen outside it; the opposite is true.
fn unlimited_outside(pool: &Pool<'_>, found: &mut Vec<Diagnostic>) {
    let reasons = [Reason::Underutilized, Reason::Empty, Reason::Drifted];
    // A window that never closes has no outside.
    let closes = |window: &Window| {
        !matches!(
            window.at(jiff::Timestamp::UNIX_EPOCH),
            Phase::NoHit | Phase::Open { closes_at: None }
        )
    };
    let open: Vec<&str> = reasons
        .iter()
        .filter(|reason| {
            let mut covering =
                pool.budgets.iter().filter(|budget| budget.concerns(**reason)).peekable();
            covering.peek().is_some() && covering.all(|budget| budget.window().is_some_and(closes))
        })
        .map(|reason| reason.word())
        .collect();
    if !open.is_empty() {
        let message = format!(
            "outside the scheduled windows {} is unlimited: budgets only ever restrict",
            open.join(", ")
        );
        found.push(Diagnostic::warning(pool.object, "spec.disruption.budgets", message));
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::karpenter;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_budget_that_cannot_be_read_names_the_field_at_fault() {
        let zone = "metadata.annotations[convoy.dev/budget-time-zone]";
        let cases = [
            (
                json!({"nodes": "1", "schedule": "0 9 * * sat-sun", "duration": "1h"}),
                "UTC",
                ".schedule",
            ),
            (json!({"nodes": "1", "schedule": "@daily", "duration": "1 hour"}), "UTC", ".duration"),
            (json!({"nodes": "1", "duration": "1h"}), "UTC", ".schedule"),
            (json!({"nodes": "1.5"}), "UTC", ".nodes"),
            (json!({"nodes": "1", "schedule": "@daily", "duration": "1h"}), "Nowhere", zone),
        ];
        for (budget, name, field) in cases {
            let permanent = json!({"nodes": "5"});
            let pool = karpenter::pool("default", &json!({"budgets": [permanent, budget]}))
                .annotation(annotation::TIME_ZONE, name)
                .build();
            let found: Vec<String> = super::pool(&pool).into_iter().map(|it| it.field).collect();
            let expected = match field.strip_prefix('.') {
                Some(field) => format!("spec.disruption.budgets[1].{field}"),
                None => field.to_owned(),
            };
            assert_eq!(found, [expected], "{budget}");
        }
    }
}
