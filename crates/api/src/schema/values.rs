//! Value validation: types, enums, patterns, bounds, counts, required fields and the four
//! combinators. Paths and texts are those of Kubernetes' OpenAPI validator, whose quirks are
//! kept where they decide what is accepted.

use serde_json::{Map, Value};

use super::checked::Checked;
use super::error::{FieldError, Reason};
use super::format::Format;
use super::node::{Additional, Node, Type};
use super::{go, numbers};

/// Everything in `value` that breaks `node`.
pub(super) fn validate(node: &Node, value: &Value) -> Vec<FieldError> {
    check(node, value, "").errors
}

fn check(node: &Node, value: &Value, path: &str) -> Checked {
    let mut checked = Checked::default();
    if value.is_null() {
        check_type(node, value, path, &mut checked);
        check_allowed(node, value, path, &mut checked);
        return checked;
    }
    if !node.types.is_empty() || node.format.is_some() {
        check_type(node, value, path, &mut checked);
        checked.matches += 1;
    }
    check_combinators(node, value, path, &mut checked);
    match value {
        Value::String(text) => check_string(node, text, path, &mut checked),
        Value::Number(number) => numbers::check(node, number, path, &mut checked),
        Value::Array(items) => check_items(node, items, path, &mut checked),
        _ => {}
    }
    check_allowed(node, value, path, &mut checked);
    if let Value::Object(fields) = value {
        check_fields(node, fields, path, &mut checked);
    }
    checked.matches += 3;
    checked
}

fn check_type(node: &Node, value: &Value, path: &str, checked: &mut Checked) {
    let names: Vec<_> = node.types.iter().map(|kind| kind.name()).collect();
    let wanted = names.join(",");
    let Some((kind, width)) = type_of(value) else {
        if !names.is_empty() && !node.nullable {
            checked.error(wrong_type(path, &wanted, "null"));
        }
        return;
    };
    let whole = value.as_f64().is_some_and(numbers::is_whole);
    let fits = node.is(kind)
        || (kind == Type::Number && whole && node.is(Type::Integer))
        || (kind == Type::Integer && node.is(Type::Number));
    let is_sequence = matches!(kind, Type::String | Type::Array);
    let is_numeric = node.is(Type::Number) || node.is(Type::Integer);
    match &node.format {
        Some(format) if !is_sequence && !fits => {
            checked.error(wrong_type(path, format.name(), width));
        }
        Some(_) if is_sequence && !is_numeric => checked.matches += 1,
        _ if !fits => checked.error(wrong_type(path, &wanted, kind.name())),
        _ => checked.matches += 1,
    }
}

fn wrong_type(path: &str, wanted: &str, got: &str) -> FieldError {
    FieldError::mistyped(path, wanted, got, got)
}

/// The type of a value and the name of its width in memory; None for null.
fn type_of(value: &Value) -> Option<(Type, &'static str)> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => (Type::Boolean, ""),
        Value::Number(number) if number.is_i64() => (Type::Integer, "int64"),
        Value::Number(_) => (Type::Number, "float64"),
        Value::String(_) => (Type::String, ""),
        Value::Array(_) => (Type::Array, ""),
        Value::Object(_) => (Type::Object, ""),
    })
}

fn check_combinators(node: &Node, value: &Value, path: &str, checked: &mut Checked) {
    check_any_of(node, value, path, checked);
    check_one_of(node, value, path, checked);
    let mut valid = 0;
    for branch in &node.all_of {
        let result = check(branch, value, path);
        valid += usize::from(result.is_valid());
        checked.merge(result);
    }
    let name = go::quoted(path);
    if valid != node.all_of.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        let detail = format!("{name} must validate all the schemas (allOf){none}");
        checked.error(FieldError::detached(path, &detail));
    }
    if node.not.as_ref().is_some_and(|not| check(not, value, path).is_valid()) {
        let detail = format!("{name} must not validate the schema (not)");
        checked.error(FieldError::detached(path, &detail));
    }
    checked.matches += 2;
}

fn check_any_of(node: &Node, value: &Value, path: &str, checked: &mut Checked) {
    let mut best: Option<Checked> = None;
    for branch in &node.any_of {
        let result = check(branch, value, path);
        if result.is_valid() {
            checked.merge(result);
            return;
        }
        if best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    if let Some(best) = best {
        let detail = format!("{} must validate at least one schema (anyOf)", go::quoted(path));
        checked.error(FieldError::detached(path, &detail));
        checked.merge(best);
    }
}

fn check_one_of(node: &Node, value: &Value, path: &str, checked: &mut Checked) {
    let (mut valid, mut failed): (Vec<_>, Vec<_>) =
        node.one_of.iter().map(|branch| check(branch, value, path)).partition(Checked::is_valid);
    if node.one_of.is_empty() {
        return;
    }
    if valid.len() == 1 {
        valid.drain(..).for_each(|result| checked.merge(result));
        return;
    }
    let found = match valid.len() {
        0 => "Found none valid".to_owned(),
        count => format!("Found {count} valid alternatives"),
    };
    let name = go::quoted(path);
    let detail = format!("{name} must validate one and only one schema (oneOf). {found}");
    checked.error(FieldError::detached(path, &detail));
    if valid.is_empty() {
        let most = failed.iter().map(|result| result.matches).max();
        let best = failed.iter().position(|result| Some(result.matches) == most);
        if let Some(best) = best {
            checked.merge(failed.swap_remove(best));
        }
    }
}

fn check_string(node: &Node, text: &str, path: &str, checked: &mut Checked) {
    let value = || Value::String(text.to_owned());
    let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let error = match (&node.pattern, node.length.min, node.length.max) {
        (_, _, Some(max)) if length() > max => {
            let unit = if max == 1 { "byte" } else { "bytes" };
            let detail = format!("may not be more than {max} {unit}");
            Some(FieldError::plain(Reason::TooLong, path, &detail))
        }
        (_, Some(min), _) if length() < min => {
            let detail = format!("{path} in body should be at least {min} chars long");
            Some(FieldError::invalid(path, &value(), &detail))
        }
        (Some(pattern), _, _)
            if !pattern.regex.as_ref().is_some_and(|regex| regex.is_match(text)) =>
        {
            let detail = format!("{path} in body should match '{}'", pattern.source);
            Some(FieldError::invalid(path, &value(), &detail))
        }
        _ => None,
    };
    if let Some(error) = error {
        checked.error(error);
    }
    checked.matches += 1;
    if let Some(format @ Format::Text { .. }) = &node.format {
        checked.matches += 1;
        if !format.accepts(text) {
            checked.error(wrong_format(path, format.name(), text));
        }
    }
}

fn wrong_format(path: &str, format: &str, text: &str) -> FieldError {
    FieldError::mistyped(path, format, text, text)
}

fn check_items(node: &Node, items: &[Value], path: &str, checked: &mut Checked) {
    if let Some(schema) = &node.items {
        for (index, item) in items.iter().enumerate() {
            checked.merge(check(schema, item, &format!("{path}[{index}]")));
        }
    }
    let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(min) = node.item_count.min.filter(|min| count < *min) {
        let detail = format!("{path} in body should have at least {min} items");
        checked.error(FieldError::invalid(path, &count.into(), &detail));
    }
    if let Some(max) = node.item_count.max.filter(|max| count > *max) {
        checked.error(too_many(path, count, max));
    }
    let repeated = |(index, item): (usize, &Value)| items[..index].contains(item);
    if node.unique_items && items.iter().enumerate().any(repeated) {
        let detail = format!("{path} in body shouldn't contain duplicates");
        checked.error(FieldError::invalid(path, &Value::String(String::new()), &detail));
    }
    checked.matches += 2;
}

fn too_many(path: &str, count: i64, max: i64) -> FieldError {
    let unit = if max == 1 { "item" } else { "items" };
    let detail = format!("must have at most {max} {unit}");
    FieldError::about(Reason::TooMany, path, &count.into(), &detail)
}

fn check_allowed(node: &Node, value: &Value, path: &str, checked: &mut Checked) {
    // Numbers are compared as the enum has them: 1.5 is the 1 of an enum of integers.
    let same = |allowed: &Value| match (value.as_f64(), allowed.as_f64()) {
        (Some(ours), Some(theirs)) if allowed.is_i64() => ours.trunc().total_cmp(&theirs).is_eq(),
        (Some(ours), Some(theirs)) => ours.total_cmp(&theirs).is_eq(),
        _ => value == allowed,
    };
    if node.allowed.is_empty() || (!value.is_null() && node.allowed.iter().any(same)) {
        return;
    }
    let allowed = node.allowed.iter().map(|allowed| match allowed {
        Value::String(text) => go::quoted(text),
        other => go::quoted(&other.to_string()),
    });
    let detail = format!("supported values: {}", allowed.collect::<Vec<_>>().join(", "));
    let supported = node.allowed.iter().filter_map(Value::as_str).map(Box::from).collect();
    let error = FieldError::about(Reason::NotSupported, path, value, &detail);
    checked.error(FieldError { supported, ..error });
}

fn check_fields(node: &Node, fields: &Map<String, Value>, path: &str, checked: &mut Checked) {
    let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
    if let Some(min) = node.property_count.min.filter(|min| count < *min) {
        let detail = format!("{path} in body should have at least {min} properties");
        checked.error(FieldError::invalid(path, &count.into(), &detail));
    }
    if let Some(max) = node.property_count.max.filter(|max| count > *max) {
        checked.error(too_many(path, count, max));
    }
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for (name, value) in fields {
        match (node.properties.get(name), &node.additional) {
            (Some(schema), _) => checked.merge(check(schema, value, &below(name))),
            (None, Additional::Like(schema)) => checked.merge(check(schema, value, &below(name))),
            (None, Additional::Forbidden) => {
                let detail = format!("{path}.{name} in body is a forbidden property");
                checked.error(FieldError::invalid(path, &Value::String(String::new()), &detail));
            }
            (None, Additional::Unsaid | Additional::Any) => {}
        }
    }
    for name in node.required.iter().filter(|name| !fields.contains_key(*name)) {
        checked.error(FieldError::plain(Reason::Required, &below(name), ""));
    }
    checked.matches += 1;
}
