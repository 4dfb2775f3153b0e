//! Messages for people: the value as they wrote it, and the word that they meant.

use convoy_api::object::field_path;
use convoy_api::text::similar;
use convoy_plan::cron::Cron;
use serde_json::Value;

/// The message with a plain value as it is written, where it means something else to a parser: `yes`
/// for true, `0644` for 420, `1.0` for 1.
pub(super) fn as_written(message: &str, raw: &Value, field: &str, written: Option<&str>) -> String {
    let value = field_path::get(raw, field).filter(|value| !value.is_string());
    let (Some(value), Some(written)) = (value, written) else { return message.to_owned() };
    let shown = value.to_string();
    if shown == written {
        return message.to_owned();
    }
    message.replacen(&format!("value: {shown}"), &format!("value: {written}"), 1)
}

/// The message without a list or an object at fault: it stands at the place of the finding, and a
/// server shows it in another notation.
pub(super) fn without_compound(message: &str) -> String {
    let shown = || {
        let (title, rest) = message.split_once("value: ")?;
        if !rest.starts_with(['{', '[']) {
            return None;
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        values.next()?.ok()?;
        let detail = rest[values.byte_offset()..].strip_prefix(": ")?;
        Some(format!("{title}value: {detail}"))
    };
    shown().unwrap_or_else(|| message.to_owned())
}

/// A message about a schedule, with what would be right.
pub(super) fn with_advice(message: String, raw: &Value, field: &str) -> String {
    if !field.ends_with("schedule") || message.contains("; ") {
        return message;
    }
    let schedule = field_path::get(raw, field).and_then(Value::as_str).map(Cron::parse);
    let Some(Err(error)) = schedule else { return message };
    match error.advice.split_once("; ") {
        Some((_, advice)) => format!("{message}; {advice}"),
        None => message,
    }
}

/// A message about a value outside an enumeration, with the nearest value that is in it.
pub(super) fn with_suggestion(message: String) -> String {
    let suggestion = || {
        let (_, about) = message.split_once("Unsupported value: \"")?;
        let (given, about) = about.split_once('"')?;
        let (_, supported) = about.split_once("supported values: ")?;
        let words = supported.split('"').skip(1).step_by(2);
        similar::nearest(given, words)
    };
    match suggestion() {
        Some(meant) if !message.contains("did you mean") => {
            format!("{message}; did you mean {meant:?}?")
        }
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_as_they_are_written() {
        let raw = json!({"a": true, "b": "x", "c": 420});
        let shown = |message: &str, field: &str, written: &str| {
            as_written(message, &raw, field, Some(written))
        };
        assert_eq!(shown("Invalid value: true: no", "a", "yes"), "Invalid value: yes: no");
        assert_eq!(shown("Invalid value: 420: no", "c", "0644"), "Invalid value: 0644: no");
        assert_eq!(shown("Invalid value: \"x\": no", "b", "x"), "Invalid value: \"x\": no");
    }

    #[test]
    fn a_compound_value_is_left_out() {
        let shown = without_compound("Invalid value: {\"a\":{\"b\":1}}: both are set");
        assert_eq!(shown, "Invalid value: both are set");
        assert_eq!(without_compound("Invalid value: \"{\": no"), "Invalid value: \"{\": no");
    }

    #[test]
    fn a_schedule_comes_with_advice() {
        let raw = json!({"spec": {"schedule": "@dayly"}});
        let told = with_advice("unrecognized".to_owned(), &raw, "spec.schedule");
        assert!(told.ends_with("; did you mean \"@daily\"?"), "{told}");
    }

    #[test]
    fn the_nearest_supported_value_is_suggested() {
        let about = |given: &str| {
            format!("Unsupported value: {given:?}: supported values: \"In\", \"NotIn\"")
        };
        assert!(with_suggestion(about("in")).ends_with("; did you mean \"In\"?"));
        assert_eq!(with_suggestion(about("Exists")), about("Exists"));
    }
}
