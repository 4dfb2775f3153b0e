//! Bounds of numbers. Integers are compared as integers, as in Kubernetes.

use serde_json::{Number, Value};

use super::checked::Checked;
use super::error::FieldError;
use super::format::Format;
use super::go;
use super::node::{Bound, Node, Type};

pub(super) fn check(node: &Node, number: &Number, path: &str, checked: &mut Checked) {
    let size = number.as_f64().unwrap_or(f64::NAN);
    check_width(node, number, size, path, checked);
    let value = Value::Number(number.clone());
    let limit = |bound: &Bound| match number.as_i64() {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "as Kubernetes reads bounds of integers"
        )]
        Some(_) => (bound.limit as i64).to_string(),
        None => go::float(bound.limit),
    };
    if let Some(factor) = node.multiple_of {
        check_multiple(number, size, factor, path, checked);
    }
    if let Some(bound) = node.minimum.filter(|bound| is_beyond(number, size, bound, -1)) {
        let than = if bound.exclusive { "greater than" } else { "greater than or equal to" };
        let detail = format!("{path} in body should be {than} {}", limit(&bound));
        checked.error(FieldError::invalid(path, &value, &detail));
    }
    if let Some(bound) = node.maximum.filter(|bound| is_beyond(number, size, bound, 1)) {
        let than = if bound.exclusive { "less than" } else { "less than or equal to" };
        let detail = format!("{path} in body should be {than} {}", limit(&bound));
        checked.error(FieldError::invalid(path, &value, &detail));
    }
    checked.looked_at(2);
}

/// Whether a float stands for an integer, which those beyond 2^53 cannot.
pub(super) fn is_whole(size: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    (-EXACT..=EXACT).contains(&size) && size.fract() == 0.0
}

/// Whether the number fits the width that the format asks for.
fn check_width(node: &Node, number: &Number, size: f64, path: &str, checked: &mut Checked) {
    if node.types != [Type::Integer] && node.types != [Type::Number] {
        return;
    }
    let (fits, format) = match &node.format {
        Some(Format::Int32) => (
            number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
                || (number.is_f64() && size.fract() == 0.0 && size.abs() <= f64::from(i32::MAX)),
            "with format int32",
        ),
        Some(Format::Float) => (size.abs() <= f64::from(f32::MAX), "with format float"),
        Some(Format::Int64) => (is_int64(number, size), "with format int64"),
        _ if node.is(Type::Integer) => (is_int64(number, size), "(default format)"),
        _ => return,
    };
    if !fits {
        let kind = if node.is(Type::Integer) { "integer" } else { "number" };
        let detail = format!("Checked value must be of type {kind} {format} in {path}");
        checked.error(FieldError::detached(path, &detail));
    }
}

fn is_int64(number: &Number, size: f64) -> bool {
    const EDGE: f64 = 9_223_372_036_854_775_808.0;
    number.is_i64() || (size.fract() == 0.0 && (-EDGE..EDGE).contains(&size))
}

fn is_beyond(number: &Number, size: f64, bound: &Bound, side: i8) -> bool {
    let order = match number.as_i64() {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "as Kubernetes reads bounds of integers"
        )]
        Some(number) => number.cmp(&(bound.limit as i64)),
        None => size.total_cmp(&bound.limit),
    };
    let order = if side < 0 { order.reverse() } else { order };
    order.is_gt() || (bound.exclusive && order.is_eq())
}

/// Factors of integers are read as integers; one below 1 reads as 0 and nothing is a multiple.
fn check_multiple(number: &Number, size: f64, factor: f64, path: &str, checked: &mut Checked) {
    #[expect(clippy::cast_possible_truncation, reason = "as Kubernetes reads factors of integers")]
    let whole = number.as_i64().map(|number| (number, factor as i64));
    let shown = whole.map_or_else(|| go::float(factor), |(_, factor)| factor.to_string());
    let is_positive = whole.map_or(factor > 0.0, |(_, factor)| factor > 0);
    if !is_positive {
        let detail = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        let factor = whole.map_or_else(|| Value::from(factor), |(_, factor)| Value::from(factor));
        return checked.error(FieldError::invalid(path, &factor, &detail));
    }
    let is_multiple = match whole {
        Some((number, factor)) => number % factor == 0,
        None if factor < 1.0 => is_whole(1.0 / factor * size),
        None => is_whole(size / factor),
    };
    if !is_multiple {
        let detail = format!("{path} in body should be a multiple of {shown}");
        checked.error(FieldError::invalid(path, &Value::Number(number.clone()), &detail));
    }
}
