//! Requirements on cluster properties: names, quantities, and whether they leave anything.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::text::Quantity;
use serde_json::{Value, json};

use crate::diagnostic::Diagnostic;
use crate::dialect::fleet::names::RESOURCE_PROPERTY_PREFIX;
use crate::dialect::fleet::read::member::resource_property;
use crate::dialect::fleet::read::placement::{list, text};
use crate::selector::is_qualified_name;

/// What is wrong with the requirements of one term.
pub(crate) fn requirements(object: &Object, at: &str, expressions: &[Value]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut by_name: BTreeMap<&str, Vec<(&str, Quantity)>> = BTreeMap::new();
    for (index, expression) in expressions.iter().enumerate() {
        let property = text(expression, "name");
        found.extend(name(object, &format!("{at}[{index}].name"), property));
        let values = list(expression, "values");
        let [value] = values else {
            let right = "want exactly one quantity";
            let got = Value::Array(values.to_vec());
            found.push(Diagnostic::invalid(object, format!("{at}[{index}].values"), &got, right));
            continue;
        };
        if let Some(Ok(quantity)) = value.as_str().map(str::parse::<Quantity>) {
            by_name.entry(property).or_default().push((text(expression, "operator"), quantity));
        } else {
            let at = format!("{at}[{index}].values[0]");
            let right = "want a quantity such as 3, 500m or 4Gi";
            found.push(Diagnostic::invalid(object, at, value, right));
        }
    }
    for (property, requirements) in by_name {
        if let Some(why) = contradiction(&requirements) {
            let message = format!("requirements on {property} contradict each other: {why}");
            found.push(Diagnostic::error(object, at, message));
        }
    }
    found
}

/// What is wrong with the name of a property.
pub(crate) fn name(object: &Object, at: &str, name: &str) -> Option<Diagnostic> {
    let right = if name.starts_with(RESOURCE_PROPERTY_PREFIX) {
        let sound = resource_property(name).is_some() && is_qualified_name(name);
        (!sound).then_some("want resources.kubernetes-fleet.io/ and total-, allocatable- or available- before a resource")
    } else {
        (!is_qualified_name(name))
            .then_some("want a qualified name such as kubernetes-fleet.io/node-count")
    };
    right.map(|right| Diagnostic::invalid(object, at, &json!(name), right))
}

/// Why no value can meet all requirements on one property. None: some value can.
///
/// | requirements   | finding | because              |
/// |----------------|---------|----------------------|
/// | Eq 3, Eq 4     | yes     | two values           |
/// | Eq 3, Ne 3     | yes     | the value excluded   |
/// | Gt 8, Lt 3     | yes     | the bounds cross     |
/// | Gt 3, Lt 3     | yes     | nothing in between   |
/// | Ge 3, Le 3     | no      | 3                    |
/// | Eq 2, Ge 3     | yes     | outside the bounds   |
fn contradiction(requirements: &[(&str, Quantity)]) -> Option<&'static str> {
    let of = |operator: &'static str| {
        requirements.iter().filter(move |(found, _)| *found == operator).map(|(_, value)| *value)
    };
    let fixed: Vec<Quantity> = of("Eq").collect();
    if fixed.windows(2).any(|pair| pair[0] != pair[1]) {
        return Some("it cannot equal two values");
    }
    // A bound that excludes its own value is the tighter one.
    let lower =
        of("Ge").map(|value| (value, false)).chain(of("Gt").map(|value| (value, true))).max();
    let upper =
        of("Le").map(|value| (value, true)).chain(of("Lt").map(|value| (value, false))).min();
    if let Some(value) = fixed.first() {
        let below = lower.is_some_and(|(bound, open)| *value < bound || open && *value == bound);
        let above =
            upper.is_some_and(|(bound, closed)| *value > bound || !closed && *value == bound);
        if of("Ne").any(|excluded| excluded == *value) {
            return Some("the value it has to equal is excluded");
        }
        return (below || above).then_some("the value it has to equal is out of bounds");
    }
    let (lower, open) = lower?;
    let (upper, closed) = upper?;
    let empty = lower > upper || lower == upper && (open || !closed);
    (empty).then_some("the bounds leave nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_found() {
        let cases: [(&[(&str, i64)], bool); 9] = [
            (&[("Eq", 3), ("Eq", 4)], true),
            (&[("Eq", 3), ("Eq", 3)], false),
            (&[("Eq", 3), ("Ne", 3)], true),
            (&[("Gt", 8), ("Lt", 3)], true),
            (&[("Gt", 3), ("Lt", 3)], true),
            (&[("Ge", 3), ("Le", 3)], false),
            (&[("Ge", 3), ("Lt", 3)], true),
            (&[("Eq", 2), ("Ge", 3)], true),
            (&[("Gt", 3), ("Ne", 5)], false),
        ];
        for (requirements, expected) in cases {
            let read: Vec<(&str, Quantity)> = requirements
                .iter()
                .map(|(operator, value)| (*operator, Quantity::from_units(*value)))
                .collect();
            assert_eq!(contradiction(&read).is_some(), expected, "{requirements:?}");
        }
    }
}
