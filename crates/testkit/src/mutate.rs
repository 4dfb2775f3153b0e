//! Generates nearly valid objects: takes them from vectors and damages them. All choices come from
//! the bytes of an [`Unstructured`], so that a fuzzer and proptest drive the same generator.

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Number, Value};

/// Larger cases are skipped: many small ones find more.
const OBJECTS_MAX: usize = 40;

/// The valid objects to start from, by case.
#[derive(Debug)]
pub struct Templates {
    cases: Vec<Vec<Value>>,
}

impl Templates {
    /// The objects of all cases in vector files, given as their text.
    pub fn from_vectors(files: &[&str]) -> Self {
        let mut cases = Vec::new();
        for file in files {
            let vectors: Vec<Value> = serde_json::from_str(file).unwrap_or_default();
            for mut vector in vectors {
                if let Some(Value::Array(mut objects)) = vector.get_mut("objects").map(Value::take)
                {
                    objects.truncate(OBJECTS_MAX);
                    cases.push(objects);
                }
            }
        }
        assert!(!cases.is_empty(), "vectors have objects");
        Self { cases }
    }

    /// The objects of one case, damaged up to a dozen times.
    pub fn objects(&self, source: &mut Unstructured<'_>) -> Result<Vec<Value>> {
        let mut objects = source.choose(&self.cases)?.clone();
        if source.ratio(1, 4)? {
            objects.extend(source.choose(&self.cases)?.iter().take(8).cloned());
        }
        for _ in 0..source.int_in_range(0..=12)? {
            self.damage(&mut objects, source)?;
        }
        Ok(objects)
    }

    fn damage(&self, objects: &mut Vec<Value>, source: &mut Unstructured<'_>) -> Result<()> {
        if objects.is_empty() {
            objects.push(self.any_object(source)?);
        }
        let last = objects.len() - 1;
        let at = source.int_in_range(0..=last)?;
        match source.int_in_range(0..=11)? {
            0 => drop(objects.remove(at)),
            1 => objects.push(self.any_object(source)?),
            2 => objects[at] = self.any_object(source)?,
            3 => {
                let mut copy = objects[at].clone();
                if let Some(name) = copy.pointer_mut("/metadata/name") {
                    *name = Value::from(*source.choose(&NAMES)?);
                }
                objects.push(copy);
            }
            4 => {
                // The same field of another object, so that the type is right and the value odd.
                let other = objects[source.int_in_range(0..=last)?].clone();
                let field = *source.choose(&["spec", "status", "metadata"])?;
                if let (Some(into), Some(value)) = (objects[at].get_mut(field), other.get(field)) {
                    *into = value.clone();
                }
            }
            _ => below(&mut objects[at], 0, source)?,
        }
        Ok(())
    }

    fn any_object(&self, source: &mut Unstructured<'_>) -> Result<Value> {
        let case = source.choose(&self.cases)?;
        if case.is_empty() { Ok(Value::Null) } else { source.choose(case).cloned() }
    }
}

/// Walks down from `value` some way and damages what it finds there.
fn below(value: &mut Value, depth: usize, source: &mut Unstructured<'_>) -> Result<()> {
    let stop = depth >= 12 || (depth >= 2 && source.ratio(1, 4)?);
    match value {
        Value::Object(members) if !members.is_empty() && !stop => {
            let at = source.int_in_range(0..=members.len() - 1)?;
            match members.values_mut().nth(at) {
                Some(child) => below(child, depth + 1, source),
                None => Ok(()),
            }
        }
        Value::Array(items) if !items.is_empty() && !stop => {
            let at = source.int_in_range(0..=items.len() - 1)?;
            below(&mut items[at], depth + 1, source)
        }
        Value::Object(members) => damage_map(members, source),
        Value::Array(items) => damage_list(items, source),
        scalar => {
            *scalar = hostile(scalar, source)?;
            Ok(())
        }
    }
}

fn damage_map(members: &mut Map<String, Value>, source: &mut Unstructured<'_>) -> Result<()> {
    let keys: Vec<String> = members.keys().cloned().collect();
    match source.int_in_range(0..=2)? {
        0 if !keys.is_empty() => drop(members.shift_remove(source.choose(&keys)?)),
        1 if !keys.is_empty() => {
            let value = members.get(source.choose(&keys)?).cloned().unwrap_or_default();
            members.insert((*source.choose(&NAMES)?).to_owned(), value);
        }
        _ => {
            let value = hostile(&Value::Null, source)?;
            members.insert((*source.choose(&FIELDS)?).to_owned(), value);
        }
    }
    Ok(())
}

fn damage_list(items: &mut Vec<Value>, source: &mut Unstructured<'_>) -> Result<()> {
    match source.int_in_range(0..=3)? {
        0 => drop(items.pop()),
        1 => items.reverse(),
        2 => {
            let copy = items.last().cloned().unwrap_or_default();
            items.extend(std::iter::repeat_n(copy, source.int_in_range(1..=5)?));
        }
        _ => items.push(hostile(&Value::Null, source)?),
    }
    Ok(())
}

/// Another value in place of `old`: mostly of the same type and at an edge, sometimes not.
fn hostile(old: &Value, source: &mut Unstructured<'_>) -> Result<Value> {
    let kind = if source.ratio(2, 3)? { shape(old) } else { source.int_in_range(0..=5)? };
    Ok(match kind {
        0 => Value::Null,
        1 => Value::Bool(source.arbitrary()?),
        2 if source.ratio(1, 4)? => Value::from(source.arbitrary::<i64>()?),
        2 => Value::from(*source.choose(&INTEGERS)?),
        3 => Number::from_f64(*source.choose(&FLOATS)?).map_or(Value::Null, Value::Number),
        4 => Value::from(text(source)?),
        _ if source.arbitrary()? => Value::Array(Vec::new()),
        _ => Value::Object(Map::new()),
    })
}

fn shape(value: &Value) -> u8 {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => 5,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 4,
    }
}

fn text(source: &mut Unstructured<'_>) -> Result<String> {
    Ok(match source.int_in_range(0..=9)? {
        0 => "x".repeat(10_000),
        1 => source.arbitrary::<&str>()?.chars().take(64).collect(),
        2 => format!("{}%", source.choose(&INTEGERS)?),
        3 => source.choose(&INTEGERS)?.to_string(),
        4 => format!("{}{}", source.choose(&INTEGERS)?, source.choose(&UNITS)?),
        5 => (*source.choose(&NAMES)?).to_owned(),
        6 => (*source.choose(&TIMES)?).to_owned(),
        7 => (*source.choose(&SCHEDULES)?).to_owned(),
        _ => (*source.choose(&WORDS)?).to_owned(),
    })
}

const INTEGERS: [i64; 15] = [
    0,
    1,
    -1,
    2,
    3,
    100,
    101,
    2_147_483_647,
    2_147_483_648,
    -2_147_483_648,
    4_294_967_296,
    i64::MAX,
    i64::MIN,
    9_007_199_254_740_993,
    31_536_000,
];
const FLOATS: [f64; 6] = [0.5, -0.5, 1e300, -1e300, 1e-300, 1.8e19];
const UNITS: [&str; 11] = ["s", "m", "h", "d", "ms", "ns", "Gi", "Ki", "m0s", "e9", "µs"];
const NAMES: [&str; 10] =
    ["a", "default", "n1", "__default__", "cluster-1", "kube-system", "", "A B", "é/ü", "-"];
const TIMES: [&str; 9] = [
    "2026-01-01T00:00:00Z",
    "2025-12-31T23:59:59.999999999Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "2026-01-01T00:00:00+14:00",
    "2026-02-30T00:00:00Z",
    "2026-01-01",
    "-009999-01-02T01:59:59Z",
    "now",
];
const SCHEDULES: [&str; 10] = [
    "* * * * *",
    "@daily",
    "@every 1ns",
    "0 0 30 2 *",
    "0 0 29 2 *",
    "61 * * * *",
    "*/0 * * * *",
    "TZ=Europe/Zurich 30 2 * * *",
    "CRON_TZ=Mars/Phobos @hourly",
    "0 0 * * 0-7/18446744073709551616",
];
const WORDS: [&str; 22] = [
    "True",
    "False",
    "Unknown",
    "Never",
    "Always",
    "In",
    "NotIn",
    "Exists",
    "DoesNotExist",
    "Gt",
    "Lt",
    "all",
    "Progressive",
    "ProgressivePerGroup",
    "RollingUpdate",
    "Recreate",
    "PickN",
    "PickAll",
    "PickFixed",
    "complete",
    "in_progress",
    "NoSchedule",
];
const FIELDS: [&str; 20] = [
    "name",
    "namespace",
    "labels",
    "annotations",
    "deletionTimestamp",
    "creationTimestamp",
    "generation",
    "ownerReferences",
    "finalizers",
    "uid",
    "spec",
    "status",
    "conditions",
    "selector",
    "matchLabels",
    "matchExpressions",
    "strategy",
    "replicas",
    "paused",
    "budgets",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_give_equal_objects() {
        let vectors = r#"[{"objects": [{"kind": "A", "spec": {"b": [1, "c"]}}]}, {"objects": []}]"#;
        let templates = Templates::from_vectors(&[vectors]);
        let bytes: Vec<u8> = (0..=255).collect();
        for start in 0..200 {
            let objects = || templates.objects(&mut Unstructured::new(&bytes[start..])).unwrap();
            assert_eq!(objects(), objects());
        }
    }
}
