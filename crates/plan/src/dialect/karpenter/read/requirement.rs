//! Requirements of a pool or pod on the labels of a node.

use convoy_api::Object;
use convoy_api::karpenter::template::TemplateRequirement;
use serde_json::Value;
use smol_str::SmolStr;

use crate::dialect::karpenter::names::RENAMED_LABELS;

/// Demands that all have to be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requirements(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: SmolStr,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<SmolStr>),
    NotIn(Vec<SmolStr>),
    Exists,
    DoesNotExist,
    /// At least, and at most.
    Between(i64, i64),
}

impl Requirements {
    /// Reads a list of `{key, operator, values}`. What is unsound asks for the impossible.
    pub(crate) fn from_value(list: Option<&Value>) -> Self {
        let list = list.and_then(Value::as_array).into_iter().flatten();
        Self(list.map(Requirement::from_value).collect())
    }

    /// Those of a pool's template.
    pub(crate) fn of_template(list: &[TemplateRequirement]) -> Self {
        let read = |given: &TemplateRequirement| {
            let values = given.values.iter().flatten().map(SmolStr::new).collect();
            Requirement::new(&given.key, &given.operator, values)
        };
        Self(list.iter().map(read).collect())
    }

    /// Reads a `nodeSelector`.
    pub(crate) fn from_labels(labels: Option<&Value>) -> Self {
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        let equal = |(key, value): (&String, &Value)| Requirement {
            key: stable(key),
            test: Test::In(value.as_str().map(SmolStr::new).into_iter().collect()),
        };
        Self(labels.map(equal).collect())
    }

    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object's labels meet them.
    pub(crate) fn are_met_by(&self, object: &Object) -> bool {
        self.first_unmet(|key| object.label(key)).is_none()
    }

    /// The first key whose demand is not met, given how to look labels up.
    pub(crate) fn first_unmet<'v>(
        &self,
        look_up: impl Fn(&str) -> Option<&'v str>,
    ) -> Option<&SmolStr> {
        let unmet =
            |requirement: &&Requirement| !requirement.test.allows(look_up(&requirement.key));
        self.0.iter().find(unmet).map(|requirement| &requirement.key)
    }

    /// Whether some value of `key` is possible under these demands.
    pub(crate) fn allow(&self, key: &str, value: Option<&str>) -> bool {
        self.0
            .iter()
            .filter(|requirement| requirement.key == key)
            .all(|requirement| requirement.test.allows(value))
    }

    /// The values that they name for `key`.
    pub(crate) fn values_of(&self, key: &str) -> impl Iterator<Item = &SmolStr> {
        let of_key = self.0.iter().filter(move |requirement| requirement.key == key);
        of_key.flat_map(|requirement| match &requirement.test {
            Test::In(values) => values.as_slice(),
            _ => &[],
        })
    }

    /// The keys they speak of.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &SmolStr> {
        self.0.iter().map(|requirement| &requirement.key)
    }
}

impl Requirement {
    fn from_value(value: &Value) -> Self {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let values = value.get("values").and_then(Value::as_array).into_iter().flatten();
        let values: Vec<SmolStr> = values.filter_map(|v| v.as_str().map(SmolStr::new)).collect();
        Self::new(text("key"), text("operator"), values)
    }

    fn new(key: &str, operator: &str, values: Vec<SmolStr>) -> Self {
        let bound = values.first().and_then(|bound| bound.parse::<i64>().ok());
        let test = match (operator, bound) {
            ("In", _) => Test::In(values),
            ("NotIn", _) => Test::NotIn(values),
            ("Exists", _) => Test::Exists,
            ("DoesNotExist", _) => Test::DoesNotExist,
            ("Gt", Some(bound)) => Test::Between(bound.saturating_add(1), i64::MAX),
            ("Gte", Some(bound)) => Test::Between(bound, i64::MAX),
            ("Lt", Some(bound)) => Test::Between(i64::MIN, bound.saturating_sub(1)),
            ("Lte", Some(bound)) => Test::Between(i64::MIN, bound),
            _ => Test::In(Vec::new()),
        };
        Self { key: stable(key), test }
    }
}

impl Test {
    fn allows(&self, value: Option<&str>) -> bool {
        match self {
            Self::In(values) => value.is_some_and(|value| values.iter().any(|v| v == value)),
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|v| v != value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Between(least, most) => value
                .and_then(|value| value.parse::<i64>().ok())
                .is_some_and(|number| (*least..=*most).contains(&number)),
        }
    }
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
            let met = Requirements::from_value(Some(&value)).first_unmet(labels).is_none();
            assert_eq!(met, expected, "{value}");
        }
    }
}
