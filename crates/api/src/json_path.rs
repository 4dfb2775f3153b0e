//! JSON paths as kubectl, the columns of definitions and feedback rules write them:
//! `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Fields, indices, slices, unions, wildcards, descent and filters, with the meaning that
//! kubectl gives them. What a path cannot be applied to has no result; nothing is an error.

mod parse;

use std::cmp::Ordering;

use serde_json::Value;

/// A path that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at character {position}")]
pub struct PathError {
    pub reason: &'static str,
    pub position: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// Every item of a list or value of an object.
    Each,
    /// The value itself and all that it contains.
    Descend,
    Slice {
        from: Option<i64>,
        to: To,
        by: Option<i64>,
    },
    Union(Vec<Vec<Step>>),
    /// Items of a list for which something holds.
    Filter {
        left: Vec<Step>,
        test: Option<(Operator, Vec<Step>)>,
    },
    Constant(Value),
}

/// Where a slice ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    /// Just behind its beginning: an index.
    Next,
    End,
    At(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A result that is no result: something in the path does not fit the value.
type Found<'v> = Option<Vec<&'v Value>>;

impl JsonPath {
    /// Reads a path, with or without the braces around it.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        parse::path(text).map(|steps| Self { steps })
    }

    /// All values that the path leads to.
    pub fn find<'v>(&'v self, value: &'v Value) -> Found<'v> {
        walk(&self.steps, vec![value])
    }
}

fn walk<'v>(steps: &'v [Step], start: Vec<&'v Value>) -> Found<'v> {
    steps.iter().try_fold(start, |values, step| take(step, values))
}

fn take<'v>(step: &'v Step, values: Vec<&'v Value>) -> Found<'v> {
    match step {
        Step::Field(name) => Some(values.into_iter().filter_map(|value| value.get(name)).collect()),
        Step::Each => Some(values.into_iter().flat_map(children).collect()),
        Step::Descend => {
            let mut found = Vec::new();
            for value in values {
                descend(value, &mut found);
            }
            Some(found)
        }
        Step::Slice { from, to, by } => {
            let mut found = Vec::new();
            for value in values.into_iter().filter(|value| !value.is_null()) {
                found.extend(slice(value.as_array()?, *from, *to, *by)?);
            }
            Some(found)
        }
        Step::Union(paths) => {
            let mut found = Vec::new();
            for path in paths {
                found.extend(walk(path, values.clone())?);
            }
            Some(found)
        }
        Step::Filter { left, test } => {
            let mut found = Vec::new();
            for value in values {
                for item in value.as_array()? {
                    if passes(item, left, test.as_ref())? {
                        found.push(item);
                    }
                }
            }
            Some(found)
        }
        Step::Constant(constant) => Some(values.iter().map(|_| constant).collect()),
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

/// Values nest no deeper than the reader of JSON allows, so this does not either.
fn descend<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    let children = children(value);
    if children.is_empty() {
        return;
    }
    found.push(value);
    for child in children {
        descend(child, found);
    }
}

fn slice(items: &[Value], from: Option<i64>, to: To, by: Option<i64>) -> Found<'_> {
    let length = i64::try_from(items.len()).ok()?;
    let from_end = |at: i64| if at < 0 { at + length } else { at };
    let start = from_end(from.unwrap_or(0));
    let end = match to {
        To::Next => start + 1,
        To::End => length,
        To::At(at) => from_end(at),
    };
    if start == end {
        return Some(Vec::new());
    }
    if start < 0 || start >= length || end > length || end < start {
        return None;
    }
    let step = usize::try_from(by.unwrap_or(1)).ok().filter(|step| *step > 0)?;
    let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
    Some(items.get(range)?.iter().step_by(step).collect())
}

/// Whether an item passes a filter; nothing where the question makes no sense.
fn passes(item: &Value, left: &[Step], test: Option<&(Operator, Vec<Step>)>) -> Option<bool> {
    let one = |steps| -> Option<Option<Value>> {
        let found = walk(steps, vec![item])?;
        match found.as_slice() {
            [] => Some(None),
            [value] => Some(Some((*value).clone())),
            _ => None,
        }
    };
    let Some((operator, right)) = test else {
        return Some(walk(left, vec![item]).is_some_and(|found| !found.is_empty()));
    };
    let (Some(left), Some(right)) = (one(left)?, one(right)?) else {
        return Some(false);
    };
    let order = compare(&left, &right)?;
    Some(match operator {
        Operator::Equal => order == Ordering::Equal,
        Operator::NotEqual => order != Ordering::Equal,
        Operator::Less => order == Ordering::Less,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::Greater => order == Ordering::Greater,
        Operator::GreaterOrEqual => order != Ordering::Less,
    })
}

/// Values of one kind can be compared, and only scalars.
fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => Some(left.cmp(&right)),
                _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find(path: &str) -> Option<Value> {
        let object = json!({
            "metadata": {"name": "w", "annotations": {"example.com/key": "annotated"}},
            "spec": {"replicas": 3, "items": [1, 2, 3, 4], "on": true},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "count": 2},
                {"type": "Stalled", "status": "False"},
            ]},
        });
        let path = JsonPath::parse(path).unwrap();
        path.find(&object).map(|found| json!(found))
    }

    #[test]
    fn paths_lead_where_kubectl_goes() {
        for (path, expected) in [
            (".spec.replicas", json!([3])),
            ("{.spec.replicas}", json!([3])),
            ("$.spec.replicas", json!([3])),
            (".spec.absent.deeper", json!([])),
            (".spec['replicas']", json!([3])),
            (".metadata.annotations.example\\.com/key", json!(["annotated"])),
            (".metadata.annotations['example\\.com/key']", json!(["annotated"])),
            (".spec.items[0]", json!([1])),
            (".spec.items[-1]", json!([4])),
            (".spec.items[1:3]", json!([2, 3])),
            (".spec.items[::2]", json!([1, 3])),
            (".spec.items[-2:]", json!([3, 4])),
            (".spec.items[*]", json!([1, 2, 3, 4])),
            (".spec.items[0,2]", json!([1, 3])),
            (".status.conditions[*].type", json!(["Ready", "Stalled"])),
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
            (".status.conditions[?(@.type == 'Ready')].status", json!(["True"])),
            (".status.conditions[?(@.type!='Ready')].status", json!(["False"])),
            (".status.conditions[?(@.count)].type", json!(["Ready"])),
            (".status.conditions[?(@.count>1)].type", json!(["Ready"])),
            (".status.conditions[?(@.type==\"None\")].status", json!([])),
            ("..replicas", json!([3])),
            (".spec.*", json!([3, [1, 2, 3, 4], true])),
        ] {
            assert_eq!(find(path), Some(expected), "{path}");
        }
    }

    #[test]
    fn what_does_not_fit_has_no_result() {
        for path in [
            ".spec.items[9]",
            ".spec.replicas[0]",
            ".spec[?(@.x==1)]",
            ".status.conditions[?(@.type==1)]",
            ".status.conditions[?(@.type==@.status.x)].type",
        ] {
            assert!(find(path).is_none_or(|found| found == json!([])), "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in [
            ".spec[",
            ".spec[x]",
            ".a[?(@.b]",
            ".a[?(@.b==\"c)]",
            "{.a",
            ".a[1:2:3:4]",
            "....a",
            ".a[?(@.b===\"c\")]",
            ".a b",
            ".a['b",
        ] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
        let deep = ".a[?(@".repeat(5_000);
        assert!(JsonPath::parse(&deep).is_err());
    }
}
