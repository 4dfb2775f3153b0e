//! What is wrong with a Skyhook or a DeploymentPolicy beyond its schema, in the words that
//! clients of upstream's webhooks know.

mod packages;
mod policy;

use convoy_api::Object;
use convoy_api::skyhook::{DEPLOYMENT_POLICY, SkyhookSpec};
use convoy_api::text::similar;
use serde_json::Value;

use crate::diagnostic::{Diagnostic, Severity};
use crate::selector::Selector;
use crate::validation;
use crate::world::World;

/// How long the part of a label or annotation key after its prefix may be.
const KEY_NAME_MAX: usize = 63;

/// The longest of our keys that a Skyhook's name is appended to.
const LONGEST_KEY: &str = "nodeState_";

const OPERATORS: [&str; 2] = ["Equal", "Exists"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// When an object is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// It is about to be stored, and the objects that it names have to exist.
    Admission,
    /// It is stored, and the objects that it names may still appear.
    Planning,
}

/// Findings about one object: the schema's own first, then the rules in the order of the API.
pub(super) fn validate(world: &World, object: &Object, moment: Moment) -> Vec<Diagnostic> {
    validation::schema_and_as_meant(object, |object| {
        if *object.kind() == DEPLOYMENT_POLICY {
            policy::errors(object)
        } else {
            rules(world, object, moment)
        }
    })
}

fn rules(world: &World, object: &Object, moment: Moment) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = name(object).into_iter().collect();
    match object.spec_view::<SkyhookSpec>() {
        Ok(spec) => {
            found.extend(budget(object, &spec));
            let nodes = selector(object, "nodeSelectors", "node selectors are not valid");
            let pods = "pod non interrupt labels are not valid";
            found.extend(nodes.into_iter().chain(selector(object, "podNonInterruptLabels", pods)));
            let packages = spec.packages.unwrap_or_default();
            found.extend(packages::errors(object, &packages, moment));
            if moment == Moment::Planning {
                found.extend(tolerations(object));
            }
        }
        Err(error) => found.push(Diagnostic::error(object, error.field, error.message)),
    }
    found.extend(missing_policy(world, object, moment));
    found
}

/// The name becomes part of annotation keys on nodes, whose length is limited.
fn name(object: &Object) -> Option<Diagnostic> {
    let longest = KEY_NAME_MAX - LONGEST_KEY.len();
    (object.name().len() > longest).then(|| {
        let message = format!(
            "name {:?} has {} characters: node annotations such as {LONGEST_KEY}<name> leave room \
             for {longest}",
            object.name(),
            object.name().len()
        );
        Diagnostic::error(object, "metadata.name", message)
    })
}

fn budget(object: &Object, spec: &SkyhookSpec) -> Option<Diagnostic> {
    let budget = spec.interruption_budget.as_ref()?;
    if budget.percent.is_some() && budget.count.is_some() {
        let message = "InterruptionBudget is not valid, both percent and count can not be set at \
                       the same time";
        return Some(Diagnostic::error(object, "spec.interruptionBudget", message));
    }
    let given = budget.percent.is_some() || budget.count.is_some();
    let policy = spec.deployment_policy.as_deref().unwrap_or_default();
    (given && !policy.is_empty()).then(|| {
        let message = format!(
            "deploymentPolicy and interruptionBudget are mutually exclusive: remove one, the \
             policy {policy:?} has budgets of its own"
        );
        Diagnostic::error(object, "spec.interruptionBudget", message)
    })
}

fn selector(object: &Object, field: &str, what: &str) -> Option<Diagnostic> {
    let value = object.spec().get(field).unwrap_or(&Value::Null);
    let error = Selector::from_value(value).err()?;
    let below = if error.field.is_empty() { "" } else { "." };
    let field = format!("spec.{field}{below}{}", error.field);
    Some(Diagnostic::error(object, field, format!("{what}: {}", error.message)))
}

/// Neither the schema nor the webhook looks at these words, but no pod with others can be created.
fn tolerations(object: &Object) -> Vec<Diagnostic> {
    let list = object.spec().get("additionalTolerations").and_then(Value::as_array);
    let mut found = Vec::new();
    for (at, toleration) in list.into_iter().flatten().enumerate() {
        for (field, known) in [("operator", &OPERATORS[..]), ("effect", &EFFECTS[..])] {
            let word = toleration.get(field).and_then(Value::as_str).unwrap_or_default();
            if word.is_empty() || known.contains(&word) {
                continue;
            }
            let field = format!("spec.additionalTolerations[{at}].{field}");
            let unsupported = Diagnostic::unsupported(object, field, word, known);
            found.push(Diagnostic { severity: Severity::Warning, ..unsupported });
        }
    }
    found
}

/// A Skyhook that is there already is blocked until the policy appears, not refused.
fn missing_policy(world: &World, object: &Object, moment: Moment) -> Option<Diagnostic> {
    let name = object.spec().get("deploymentPolicy")?.as_str().filter(|name| !name.is_empty())?;
    let there = world.get(&object.key().sibling(&DEPLOYMENT_POLICY, "", name)).is_some();
    (!there).then(|| {
        let known = world.of(&DEPLOYMENT_POLICY).map(|policy| policy.name().as_str());
        let message = match moment {
            Moment::Admission => format!("deploymentPolicy {name:?} not found"),
            Moment::Planning => {
                format!("deploymentPolicy {name:?} not found{}", similar::question(name, known))
            }
        };
        match moment {
            Moment::Admission => Diagnostic::error(object, "spec.deploymentPolicy", message),
            Moment::Planning => Diagnostic::warning(object, "spec.deploymentPolicy", message),
        }
    })
}

#[cfg(test)]
mod tests;
