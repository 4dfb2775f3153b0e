//! Tables: what `kubectl get` shows, printed by the server.

mod age;

use serde_json::{Value, json};

use crate::ask::Ask;
use crate::reply::partial;
use crate::status::Answer;

pub use age::age;

/// Objects as rows; the columns are named only where the client does not know them yet.
pub fn of(ask: &Ask, objects: &[Value], with_columns: bool) -> Answer<Value> {
    let include = ask.query.get("includeObject").unwrap_or("Metadata");
    let now = ask.server.now();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let shown = match include {
                "None" => Value::Null,
                "Object" => object.clone(),
                _ => partial(object),
            };
            let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
            let cells = json!([object["metadata"]["name"], age(created, now)]);
            json!({"cells": cells, "object": shown})
        })
        .collect();
    let columns = with_columns.then(|| {
        json!([
            {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
            {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0},
        ])
    });
    Ok(json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": columns, "rows": rows,
    }))
}

/// The marker of a watch, as a table of one row.
pub fn bookmark(object: &Value) -> Value {
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
        "columnDefinitions": null, "rows": [{"cells": [], "object": object}],
    })
}
