//! Label selectors inside objects.

use convoy_api::text::Name;
use serde_json::Value;

use super::at::{At, Errors};

/// Everything that is wrong with a selector, which may be absent.
pub(super) fn validate(selector: &At<'_>, errors: &mut Errors) {
    selector.get("matchLabels").labels(errors);
    for requirement in selector.get("matchExpressions").items() {
        let values = requirement.get("values");
        match requirement.get("operator").text() {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(values.required(detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(values.forbidden(detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(requirement.get("operator").invalid("not a valid selector operator")),
        }
        let key = requirement.get("key");
        for detail in Name::QualifiedName.errors(key.text()) {
            errors.push(key.invalid_as(key.text(), &detail));
        }
        for value in values.items() {
            value.name(Name::LabelValue, errors);
        }
    }
}

/// A selector without any condition.
pub(super) fn is_empty(selector: &Value) -> bool {
    let at = At::root(selector);
    at.get("matchLabels").is_empty() && at.get("matchExpressions").is_empty()
}

/// Whether a selector takes these labels; one that cannot be read takes nothing.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    convoy_plan::selector::Selector::from_value(selector)
        .is_ok_and(|selector| selector.matches_with(|key| labels.get(key).and_then(Value::as_str)))
}
