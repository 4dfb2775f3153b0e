//! Requirements of a pool or pod on the labels of a node.

use convoy_api::karpenter::template::TemplateRequirement;
use convoy_api::object::member::{list, text};
use serde_json::Value;
use smol_str::SmolStr;

use crate::dialect::karpenter::names::RENAMED_LABELS;
use crate::requirement::{Requirement, Requirements, Test};

/// Reads a list of `{key, operator, values}`. What is unsound asks for the impossible.
pub(crate) fn from_value(expressions: &[Value]) -> Requirements {
    let read = |given: &Value| {
        let values = list(given, "values").iter().filter_map(Value::as_str).map(SmolStr::new);
        let test = Test::new(text(given, "operator"), values.collect());
        Requirement { key: stable(text(given, "key")), test }
    };
    expressions.iter().map(read).collect()
}

/// Those of a pool's template.
pub(crate) fn of_template(given: &[TemplateRequirement]) -> Requirements {
    let read = |given: &TemplateRequirement| {
        let values = given.values.iter().flatten().map(SmolStr::new).collect();
        Requirement { key: stable(&given.key), test: Test::new(&given.operator, values) }
    };
    given.iter().map(read).collect()
}

/// How many values of each label have to stay possible, where a template says so.
pub(crate) fn min_values(given: &[TemplateRequirement]) -> Vec<(SmolStr, usize)> {
    let read = |given: &TemplateRequirement| {
        let least = usize::try_from(given.min_values?).ok()?;
        Some((stable(&given.key), least))
    };
    given.iter().filter_map(read).collect()
}

/// Reads a `nodeSelector`.
pub(crate) fn from_labels(labels: Option<&Value>) -> Requirements {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let equal = |(key, value): (&String, &Value)| Requirement {
        key: stable(key),
        test: Test::In(value.as_str().map(SmolStr::new).into_iter().collect()),
    };
    labels.map(equal).collect()
}

fn stable(key: &str) -> SmolStr {
    let renamed = RENAMED_LABELS.iter().find(|(beta, _)| *beta == key);
    SmolStr::new(renamed.map_or(key, |(_, stable)| stable))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_meet_requirements_by_operator() {
        let labels = |key: &str| match key {
            "os" => Some("linux"),
            "cpu" => Some("5"),
            "topology.kubernetes.io/zone" => Some("a"),
            _ => None,
        };
        let cases = [
            (json!([]), true),
            (json!([{"key": "os", "operator": "In", "values": ["linux", "windows"]}]), true),
            (json!([{"key": "os", "operator": "In", "values": ["windows"]}]), false),
            (json!([{"key": "os", "operator": "NotIn", "values": ["linux"]}]), false),
            (json!([{"key": "gpu", "operator": "NotIn", "values": ["a"]}]), true),
            (json!([{"key": "os", "operator": "Exists"}]), true),
            (json!([{"key": "os", "operator": "DoesNotExist"}]), false),
            (json!([{"key": "cpu", "operator": "Gt", "values": ["10"]}]), false),
            (json!([{"key": "cpu", "operator": "Gte", "values": ["5"]}]), true),
            (json!([{"key": "cpu", "operator": "Lt", "values": ["5"]}]), false),
            (
                json!([{"key": "cpu", "operator": "Gt", "values": ["1"]}, {"key": "cpu", "operator": "Lt", "values": ["3"]}]),
                false,
            ),
            (json!([{"key": "os", "operator": "Gt", "values": ["1"]}]), false),
            (json!([{"key": "os", "operator": "Like"}]), false),
            (
                json!([{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "In", "values": ["a"]}]),
                true,
            ),
        ];
        for (value, expected) in cases {
            let met = from_value(value.as_array().unwrap()).first_unmet(labels).is_none();
            assert_eq!(met, expected, "{value}");
        }
    }
}
