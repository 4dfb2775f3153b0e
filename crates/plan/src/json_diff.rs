//! Differences between two JSON values, as paths and texts that a status can carry.

use serde_json::{Map, Value, json};

/// One difference. A side that has nothing there is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// A JSON pointer.
    pub(crate) path: String,
    pub(crate) in_hub: Option<String>,
    pub(crate) in_member: Option<String>,
}

impl Difference {
    /// The object is not there at all.
    pub(crate) fn of_whole_object() -> Self {
        let in_hub = Some("(the whole object)".to_owned());
        Self { path: "/".to_owned(), in_hub, in_member: None }
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut entry = Map::new();
        entry.insert("path".into(), json!(self.path));
        let sides = [("valueInMember", &self.in_member), ("valueInHub", &self.in_hub)];
        for (name, text) in sides {
            if let Some(text) = text {
                entry.insert(name.into(), json!(text));
            }
        }
        Value::Object(entry)
    }
}

/// The first `most` differences, in the order of their paths.
pub(crate) fn differences(hub: &Value, member: &Value, most: usize) -> Vec<Difference> {
    let mut found = Vec::new();
    collect(hub, member, "", most, &mut found);
    found
}

fn collect(hub: &Value, member: &Value, path: &str, most: usize, found: &mut Vec<Difference>) {
    if found.len() >= most || hub == member {
        return;
    }
    match (hub, member) {
        (Value::Object(hub), Value::Object(member)) => {
            let mut names: Vec<&String> = hub.keys().chain(member.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let below = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                one(hub.get(name), member.get(name), &below, most, found);
            }
        }
        (Value::Array(hub), Value::Array(member)) => {
            for at in 0..hub.len().max(member.len()) {
                one(hub.get(at), member.get(at), &format!("{path}/{at}"), most, found);
            }
        }
        _ => found.push(Difference {
            path: path.to_owned(),
            in_hub: Some(text(hub)),
            in_member: Some(text(member)),
        }),
    }
}

fn one(
    hub: Option<&Value>,
    member: Option<&Value>,
    path: &str,
    most: usize,
    found: &mut Vec<Difference>,
) {
    match (hub, member) {
        (Some(hub), Some(member)) => collect(hub, member, path, most, found),
        _ if found.len() >= most => {}
        _ => found.push(Difference {
            path: path.to_owned(),
            in_hub: hub.map(text),
            in_member: member.map(text),
        }),
    }
}

/// Texts as they are, anything else as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_path_and_both_sides() {
        let hub = json!({"spec": {"replicas": 3, "a/b": "x", "list": [1, 2]}});
        let member = json!({"spec": {"replicas": 5, "list": [1], "new": true}});
        let found: Vec<Value> =
            differences(&hub, &member, 10).iter().map(Difference::to_value).collect();
        assert_eq!(
            found,
            [
                json!({"path": "/spec/a~1b", "valueInHub": "x"}),
                json!({"path": "/spec/list/1", "valueInHub": "2"}),
                json!({"path": "/spec/new", "valueInMember": "true"}),
                json!({"path": "/spec/replicas", "valueInMember": "5", "valueInHub": "3"}),
            ]
        );
        assert_eq!(differences(&hub, &member, 2).len(), 2);
        assert_eq!(differences(&hub, &hub, 2), []);
    }
}
