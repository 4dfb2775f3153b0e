//! What admission fills in and normalises: strategies say their numbers, packages carry the name
//! they go by, and images lose the tag that the version takes the place of.

use convoy_api::GroupKind;
use convoy_api::skyhook::{DEPLOYMENT_POLICY, SKYHOOK};
use serde_json::{Value, json};

use crate::dialect::skyhook::read::hook::without_tag;
use crate::dialect::skyhook::read::policy::{
    BATCH_THRESHOLD, DELTA, GROWTH_FACTOR, INITIAL_BATCH, SAFETY_LIMIT,
};

/// The JSON patch that makes of `object` what is stored. What does not have the form that the
/// schema asks for is left to the schema.
pub(crate) fn changes(kind: &GroupKind, object: &Value) -> Vec<Value> {
    let mut changes = Vec::new();
    if *kind == DEPLOYMENT_POLICY {
        policy(object, &mut changes);
    } else if *kind == SKYHOOK {
        skyhook(object, &mut changes);
    }
    changes
}

fn policy(object: &Value, changes: &mut Vec<Value>) {
    strategy(object, "/spec/default/strategy", changes);
    let compartments = object.pointer("/spec/compartments").and_then(Value::as_array);
    for index in 0..compartments.map_or(0, Vec::len) {
        strategy(object, &format!("/spec/compartments/{index}/strategy"), changes);
    }
}

fn strategy(object: &Value, path: &str, changes: &mut Vec<Value>) {
    let common = [
        ("initialBatch", INITIAL_BATCH),
        ("batchThreshold", BATCH_THRESHOLD),
        ("safetyLimit", SAFETY_LIMIT),
    ];
    let own: [(&str, &[(&str, i64)]); 3] = [
        ("fixed", &[]),
        ("linear", &[("delta", DELTA)]),
        ("exponential", &[("growthFactor", GROWTH_FACTOR)]),
    ];
    for (word, more) in own {
        let path = format!("{path}/{word}");
        let Some(given) = object.pointer(&path).filter(|given| given.is_object()) else { continue };
        for (field, value) in common.iter().chain(more) {
            if is_absent(&given[*field]) {
                changes.push(put(&path, field, json!(value)));
            }
        }
    }
}

fn skyhook(object: &Value, changes: &mut Vec<Value>) {
    let packages = object.pointer("/spec/packages").and_then(Value::as_object);
    for (name, package) in packages.into_iter().flatten().filter(|(_, given)| given.is_object()) {
        let path = format!("/spec/packages/{}", escaped(name));
        if is_absent(&package["name"]) || package["name"] == "" {
            changes.push(put(&path, "name", json!(name)));
        }
        let Some(image) = package["image"].as_str() else { continue };
        let plain = without_tag(image);
        if plain != image {
            changes.push(put(&path, "image", json!(plain)));
        }
    }
}

fn is_absent(value: &Value) -> bool {
    value.is_null()
}

/// An `add` also replaces what is there.
fn put(path: &str, field: &str, value: Value) -> Value {
    json!({"op": "add", "path": format!("{path}/{field}"), "value": value})
}

/// A key as a JSON pointer spells it.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(kind: &GroupKind, spec: Value) -> Value {
        let mut object = json!({"spec": spec});
        let patch: json_patch::Patch =
            serde_json::from_value(json!(changes(kind, &object))).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        assert_eq!(changes(kind, &object), Vec::<Value>::new(), "once is enough");
        object["spec"].take()
    }

    #[test]
    fn strategies_say_their_numbers() {
        let spec = json!({"default": {"budget": {"count": 1}, "strategy": {"fixed": {}}},
            "compartments": [
                {"name": "a", "strategy": {"linear": {"initialBatch": 3, "delta": null}}},
                {"name": "b"},
                {"name": "c", "strategy": {"exponential": {"safetyLimit": 10}}}]});
        let spec = patched(&DEPLOYMENT_POLICY, spec);
        let all = json!({"initialBatch": 1, "batchThreshold": 100, "safetyLimit": 50});
        assert_eq!(spec["default"]["strategy"]["fixed"], all);
        let linear = &spec["compartments"][0]["strategy"]["linear"];
        assert_eq!(
            *linear,
            json!({"initialBatch": 3, "delta": 1, "batchThreshold": 100, "safetyLimit": 50})
        );
        assert_eq!(spec["compartments"][1], json!({"name": "b"}));
        let exponential = &spec["compartments"][2]["strategy"]["exponential"];
        assert_eq!(exponential["growthFactor"], 2);
        assert_eq!(exponential["safetyLimit"], 10);
    }

    #[test]
    fn packages_get_their_name_and_lose_their_tag() {
        let spec = json!({"packages": {
            "driver": {"version": "1", "image": "host:5000/driver:2"},
            "odd/~one": {"version": "1", "image": "plain", "name": "other"}}});
        let spec = patched(&SKYHOOK, spec);
        assert_eq!(spec["packages"]["driver"]["name"], "driver");
        assert_eq!(spec["packages"]["driver"]["image"], "host:5000/driver");
        assert_eq!(spec["packages"]["odd/~one"]["name"], "other");
    }

    #[test]
    fn what_has_another_form_is_left_to_the_schema() {
        for spec in [json!(null), json!({"packages": [1]}), json!({"packages": {"a": 1}})] {
            assert_eq!(changes(&SKYHOOK, &json!({"spec": spec})), Vec::<Value>::new());
        }
        let spec = json!({"default": {"strategy": {"fixed": 3}}, "compartments": "many"});
        assert_eq!(changes(&DEPLOYMENT_POLICY, &json!({"spec": spec})), Vec::<Value>::new());
    }
}
