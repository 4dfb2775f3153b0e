//! Numbers of members: counts and percentages.

use serde_json::Value;

use super::at::{At, Errors};

/// A count that is not negative, or a percentage.
pub(super) fn count_or_percent(value: &At<'_>, errors: &mut Errors) {
    match value.value {
        Value::String(text) if !is_percent(text) => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            errors.push(value.invalid(detail));
        }
        Value::String(_) => {}
        _ => value.not_negative(errors),
    }
}

fn is_percent(text: &str) -> bool {
    text.strip_suffix('%').is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// No more than all of them.
pub(super) fn at_most_all(value: &At<'_>, errors: &mut Errors) {
    if is_percent(value.text()) && number_in(value) > 100 {
        errors.push(value.invalid("must not be greater than 100%"));
    }
}

pub(super) fn number_in(value: &At<'_>) -> i64 {
    match value.value {
        Value::String(text) => {
            text.strip_suffix('%').and_then(|digits| digits.parse().ok()).unwrap_or(0)
        }
        _ => value.integer().unwrap_or(0),
    }
}
