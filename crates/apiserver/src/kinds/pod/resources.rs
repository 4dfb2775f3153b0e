//! What containers ask for, and what they may have.

use convoy_api::text::Name;
use serde_json::{Value, json};

use crate::kinds::at::{At, Errors};

/// An amount of a resource, or nothing that is one.
pub(crate) fn amount(value: &Value) -> Option<convoy_api::text::Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// Whether containers ask for no more than they may have, of things that there are.
pub(super) fn resources(resources: &At<'_>, errors: &mut Errors) {
    let limits = resources.get("limits");
    for (name, limit) in limits.entries() {
        resource(&limit, name, errors);
    }
    for (name, request) in resources.get("requests").entries() {
        resource(&request, name, errors);
        let Some(asked) = amount(request.value) else { continue };
        match amount(limits.key(name).value) {
            Some(limit) if asked > limit => {
                let shown = json!(request.text());
                let detail = format!(
                    "must be less than or equal to {name} limit of {}",
                    limits.key(name).text()
                );
                errors.push(resources.get("requests").invalid_as(shown, &detail));
            }
            _ => {}
        }
    }
}

fn resource(at: &At<'_>, name: &str, errors: &mut Errors) {
    let standard = ["cpu", "memory", "ephemeral-storage"];
    for detail in Name::QualifiedName.errors(name) {
        errors.push(at.invalid_as(name, &detail));
    }
    if !name.contains('/') && !standard.contains(&name) && !name.starts_with("hugepages-") {
        errors.push(at.invalid_as(name, "must be a standard resource for containers"));
    }
    match amount(at.value) {
        Some(amount) if amount < convoy_api::text::Quantity::ZERO => {
            errors.push(at.invalid_as(at.text(), "must be greater than or equal to 0"));
        }
        Some(amount) if name.contains('/') && amount.as_nanos() % 1_000_000_000 != 0 => {
            errors.push(at.invalid_as(at.text(), "must be an integer"));
        }
        _ => {}
    }
}
