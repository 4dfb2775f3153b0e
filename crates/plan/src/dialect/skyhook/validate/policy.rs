//! `DeploymentPolicy`: budgets, strategies, and compartments that can be told apart.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::skyhook::{Budget, Compartment, DeploymentPolicySpec, Strategy};
use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::dialect::skyhook::names::SAFETY_PROGRESS;
use crate::dialect::skyhook::read::policy::{DEFAULT, SafetyProgress};
use crate::selector::Selector;

/// Every rule that is broken, in the order of the API.
pub(super) fn errors(object: &Object) -> Vec<Diagnostic> {
    let spec: DeploymentPolicySpec = match object.spec_view() {
        Ok(spec) => spec,
        Err(error) => return vec![Diagnostic::error(object, error.field, error.message)],
    };
    let mut found = Vec::new();
    if let Some(progress) = object.annotation(SAFETY_PROGRESS)
        && !SafetyProgress::WORDS.contains(&progress)
    {
        let field = format!("metadata.annotations[{SAFETY_PROGRESS}]");
        found.push(Diagnostic::unsupported(object, field, progress, &SafetyProgress::WORDS));
    }
    let mut fail = |part: &str, message: &str| {
        let field = format!("spec.default.{part}");
        found.push(Diagnostic::error(object, field, format!("default {part}: {message}")));
    };
    let default_budget = spec.default.budget.unwrap_or_default();
    if let Some(message) = budget(&default_budget) {
        fail("budget", message);
    }
    if let Some(message) = spec.default.strategy.as_ref().and_then(strategy) {
        fail("strategy", message);
    }
    let compartments = spec.compartments.unwrap_or_default();
    let raw = object.spec().get("compartments").and_then(Value::as_array);
    let raw = raw.map_or(&[] as &[Value], Vec::as_slice);
    let mut names = BTreeSet::new();
    found.extend((0..compartments.len()).filter_map(|index| {
        let (part, message) = compartment_error(&compartments, index, raw, &mut names)?;
        let field = format!("spec.compartments[{index}].{part}");
        Some(Diagnostic::error(object, field, message))
    }));
    found
}

fn compartment_error<'c>(
    all: &'c [Compartment],
    index: usize,
    raw: &[Value],
    names: &mut BTreeSet<&'c str>,
) -> Option<(String, String)> {
    let compartment = all.get(index)?;
    let name = compartment.name.as_str();
    let at = |part: &str, message: String| Some((part.to_owned(), message));
    if name.is_empty() {
        return at("name", "compartment name must not be empty".to_owned());
    }
    if name == DEFAULT {
        let message = format!("compartment name {DEFAULT:?} is reserved and cannot be used");
        return at("name", message);
    }
    if !names.insert(name) {
        return at("name", format!("compartment name {name:?} is not unique"));
    }
    if let Some(message) = budget(&compartment.budget) {
        return at("budget", format!("compartment {name:?} budget: {message}"));
    }
    if let Some(message) = compartment.strategy.as_ref().and_then(strategy) {
        return at("strategy", format!("compartment {name:?} strategy: {message}"));
    }
    let selector_of = |index: usize| raw.get(index).and_then(|raw| raw.get("selector"));
    let selector = selector_of(index);
    if let Err(error) = Selector::from_value(selector.unwrap_or(&Value::Null)) {
        let below = if error.field.is_empty() { "" } else { "." };
        let field = format!("selector{below}{}", error.field);
        let message = format!("compartment {name:?} has invalid selector: {}", error.message);
        return Some((field, message));
    }
    let twin = (0..index).find(|earlier| selector_of(*earlier) == selector)?;
    let earlier = &all.get(twin)?.name;
    let message = format!("compartment {name:?} has identical selector to compartment {earlier:?}");
    at("selector", message)
}

fn budget(budget: &Budget) -> Option<&'static str> {
    match (budget.percent, budget.count) {
        (None, None) => Some("exactly one of percent or count must be set"),
        (Some(_), Some(_)) => Some("percent and count are mutually exclusive"),
        _ => None,
    }
}

fn strategy(strategy: &Strategy) -> Option<&'static str> {
    let given =
        [strategy.fixed.is_some(), strategy.linear.is_some(), strategy.exponential.is_some()];
    let one = given.into_iter().filter(|given| *given).count() == 1;
    (!one).then_some("exactly one of fixed, linear, or exponential must be set")
}
