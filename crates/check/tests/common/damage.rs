//! Objects with a field of any type, one field at a time.

use convoy_api::Object;
use convoy_plan::{Dialect, HoldReason, World, decide};
use convoy_testkit::NOW;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Every version of `value` in which one member has another type.
fn damaged(value: &Value) -> Vec<Value> {
    let others = [json!(null), json!("x"), json!({"x": [1]}), json!([{}])];
    let mut paths = Vec::new();
    collect(value, String::new(), &mut paths);
    let mut found = Vec::new();
    for path in paths {
        for other in &others {
            let mut copy = value.clone();
            *copy.pointer_mut(&path).expect("it was found there") = other.clone();
            found.push(copy);
        }
    }
    found
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{path}/{name}"), paths);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                collect(value, format!("{path}/{at}"), paths);
            }
        }
        _ => {}
    }
    if !path.is_empty() {
        paths.push(path);
    }
}

/// Damages every object in turn, and decides about every rollout.
pub(crate) fn survives(dialect: &dyn Dialect, world: &World) {
    let now: Timestamp = NOW.parse().expect("a fixed instant");
    let objects: Vec<Object> = world.iter().cloned().collect();
    let mut decided = 0;
    for object in &objects {
        for raw in damaged(object.raw()) {
            let Ok(copy) = Object::from_value(raw) else { continue };
            let mut world = world.clone();
            world.remove(object.key());
            world.insert(copy.in_cluster(&object.key().cluster));
            for rollout in dialect.rollouts(&world) {
                let step = decide(dialect, &world, &[], rollout.key(), now);
                let step = step.expect("it is a rollout");
                let failed =
                    step.holds.iter().find(|it| matches!(it.reason, HoldReason::PlanFailed { .. }));
                assert_eq!(failed, None, "{}", copied(&world, object));
                decided += 1;
            }
        }
    }
    assert!(decided > 1000, "only {decided} decisions");
}

fn copied(world: &World, object: &Object) -> String {
    world.get(object.key()).map_or_else(String::new, |it| it.raw().to_string())
}
