//! What an API server fills in before it stores a Deployment or a ReplicaSet.

mod template;

use serde_json::{Map, Value, json};

pub use template::template;

/// A Deployment as it would be stored.
pub fn deployment(object: &Value) -> Value {
    let mut stored = object.clone();
    let Some(spec) = stored.get_mut("spec").and_then(Value::as_object_mut) else { return stored };
    fill(spec, "replicas", || json!(1));
    fill(spec, "revisionHistoryLimit", || json!(10));
    fill(spec, "progressDeadlineSeconds", || json!(600));
    fill(spec, "strategy", || json!({}));
    if let Some(given) = spec.get_mut("strategy").and_then(Value::as_object_mut) {
        strategy(given);
    }
    store_template(spec);
    stored
}

/// A ReplicaSet as it would be stored.
pub fn replica_set(object: &Value) -> Value {
    let mut stored = object.clone();
    if let Some(spec) = stored.get_mut("spec").and_then(Value::as_object_mut) {
        fill(spec, "replicas", || json!(1));
        store_template(spec);
    }
    stored
}

fn strategy(strategy: &mut Map<String, Value>) {
    fill_text(strategy, "type", "RollingUpdate");
    if strategy["type"] != "RollingUpdate" {
        return;
    }
    fill(strategy, "rollingUpdate", || json!({}));
    // The two are filled in one by one: a surge of 0 alone leaves 25% to be unavailable.
    if let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut) {
        fill(rolling, "maxUnavailable", || json!("25%"));
        fill(rolling, "maxSurge", || json!("25%"));
    }
}

fn store_template(spec: &mut Map<String, Value>) {
    if let Some(given) = spec.get_mut("template") {
        *given = template(given);
    }
}

/// Puts a value where there is none; an explicit null is none.
fn fill(map: &mut Map<String, Value>, key: &str, value: impl FnOnce() -> Value) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value());
    }
}

/// Puts a text where there is none; the empty text is none.
fn fill_text(map: &mut Map<String, Value>, key: &str, text: &str) {
    if map.get(key).is_none_or(|given| given.is_null() || given == "") {
        map.insert(key.to_owned(), json!(text));
    }
}

/// Puts a number where there is none; zero is none.
fn fill_number(map: &mut Map<String, Value>, key: &str, number: i64) {
    if map.get(key).is_none_or(|given| given.is_null() || given.as_i64() == Some(0)) {
        map.insert(key.to_owned(), json!(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_deployment_gets_one_replica_and_a_quarter_to_move() {
        let stored = deployment(&json!({"spec": {"template": {}}}));
        assert_eq!(stored["spec"]["replicas"], 1);
        assert_eq!(stored["spec"]["revisionHistoryLimit"], 10);
        assert_eq!(stored["spec"]["progressDeadlineSeconds"], 600);
        let rolling = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
        assert_eq!(stored["spec"]["strategy"]["rollingUpdate"], rolling);
    }

    #[test]
    fn what_is_given_stays() {
        let given =
            json!({"spec": {"replicas": 0, "strategy": {"rollingUpdate": {"maxSurge": 0}}}});
        let stored = deployment(&given);
        assert_eq!(stored["spec"]["replicas"], 0);
        let rolling = json!({"maxSurge": 0, "maxUnavailable": "25%"});
        assert_eq!(stored["spec"]["strategy"]["rollingUpdate"], rolling);
        let recreate = deployment(&json!({"spec": {"strategy": {"type": "Recreate"}}}));
        assert_eq!(recreate["spec"]["strategy"], json!({"type": "Recreate"}));
    }
}
