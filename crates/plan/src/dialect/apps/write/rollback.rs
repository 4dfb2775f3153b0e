//! The patch that takes the template of an earlier revision again.

use convoy_api::apps::{TEMPLATE_HASH, annotation};
use serde_json::{Map, Value, json};

use crate::dialect::apps::decide::rollback::Rollback;
use crate::dialect::apps::read::deployment::Deployment;
use crate::dialect::apps::read::template;

/// The Deployment's patch: the request goes, and with [`Rollback::To`] the template and
/// the annotations of that set come.
pub(super) fn patch(deployment: &Deployment<'_>, rollback: &Rollback<'_>) -> Value {
    let object = deployment.object;
    let mut annotations = Map::new();
    if object.annotation(annotation::ROLLBACK_TO).is_some() {
        annotations.insert(annotation::ROLLBACK_TO.to_owned(), Value::Null);
    }
    let Rollback::To { set, .. } = rollback else {
        return json!({"metadata": {"annotations": annotations}});
    };
    for (key, _) in object.annotations().filter(|(key, _)| !annotation::is_reserved(key)) {
        annotations.insert(key.to_owned(), Value::Null);
    }
    for (key, text) in set.annotations().filter(|(key, _)| !annotation::is_reserved(key)) {
        annotations.insert(key.to_owned(), json!(text));
    }
    let mut template = template(set).clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.shift_remove(TEMPLATE_HASH);
    }
    let template = merge_between(deployment.raw_template(), &template);
    json!({"metadata": {"annotations": annotations}, "spec": {"template": template}})
}

/// The merge patch that turns `from` into `to`. Nulls in `to` cannot be kept, and mean absent.
fn merge_between(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in to {
        match from.get(key) {
            Some(before) if before == value => {}
            Some(before) => _ = patch.insert(key.clone(), merge_between(before, value)),
            None => _ = patch.insert(key.clone(), value.clone()),
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_takes_away_what_is_no_longer_there() {
        let from = json!({"a": 1, "b": {"c": 1, "d": 2}, "list": [1]});
        let to = json!({"b": {"c": 1, "e": 3}, "list": [2]});
        let mut patched = from.clone();
        json_patch::merge(&mut patched, &merge_between(&from, &to));
        assert_eq!(patched, to);
    }
}
