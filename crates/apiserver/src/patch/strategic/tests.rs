//! One case per directive; the recorded answers of upstream are in the crate's `tests`.

use serde_json::json;

use super::*;
use crate::types::shape_of;

fn pod(current: &Value, patch: &Value) -> Result<Value, PatchError> {
    strategic_merge(shape_of("v1", "Pod").expect("a kind"), current, patch)
}

fn names(object: &Value) -> Vec<&str> {
    let items = object["spec"]["containers"].as_array().expect("a list");
    items.iter().map(|item| item["name"].as_str().expect("a name")).collect()
}

#[test]
fn lists_are_merged_by_their_key() {
    let current = json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}});
    let patch = json!({"spec": {"containers": [{"name": "b", "image": "y"}, {"name": "c"}]}});
    let merged = pod(&current, &patch).unwrap();
    assert_eq!(names(&merged), ["a", "b", "c"]);
    assert_eq!(merged["spec"]["containers"][1]["image"], "y");
    let nameless = json!({"spec": {"containers": [{"image": "y"}]}});
    let error = pod(&current, &nameless).unwrap_err();
    assert!(error.to_string().ends_with("does not contain declared merge key: name"), "{error}");
}

#[test]
fn items_can_be_deleted_replaced_and_ordered() {
    let current = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}});
    let after = |patch: Value| pod(&current, &json!({"spec": patch})).map(|it| names(&it).join(""));
    let delete = json!({"containers": [{"name": "b", "$patch": "delete"}]});
    assert_eq!(after(delete).as_deref(), Ok("ac"));
    let replace = json!({"containers": [{"$patch": "replace"}, {"name": "z"}]});
    assert_eq!(after(replace).as_deref(), Ok("z"));
    let order = json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]});
    assert_eq!(after(order).as_deref(), Ok("bca"));
    let add = json!({"$setElementOrder/containers": [{"name": "n"}, {"name": "a"}],
        "containers": [{"name": "n"}]});
    assert_eq!(after(add).as_deref(), Ok("nabc"));
    let missing = json!({"$setElementOrder/containers": [{"name": "a"}],
        "containers": [{"name": "n"}]});
    assert!(matches!(after(missing), Err(PatchError::BadBody(_))));
}

#[test]
fn sets_of_scalars_are_united_and_thinned() {
    let current = json!({"metadata": {"finalizers": ["a", "b"]}});
    let united = pod(&current, &json!({"metadata": {"finalizers": ["c", "a"]}})).unwrap();
    assert_eq!(united["metadata"]["finalizers"], json!(["c", "a", "b"]));
    let thinned = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}});
    assert_eq!(pod(&current, &thinned).unwrap()["metadata"]["finalizers"], json!(["b"]));
}

#[test]
fn objects_obey_their_directives() {
    let shape = shape_of("apps/v1", "Deployment").expect("a kind");
    let current = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}});
    let after = |patch: Value| {
        let merged = strategic_merge(shape, &current, &json!({"spec": {"strategy": patch}}));
        merged.map(|merged| merged["spec"]["strategy"].clone())
    };
    let retain = json!({"$retainKeys": ["type"], "type": "Recreate"});
    assert_eq!(after(retain), Ok(json!({"type": "Recreate"})));
    let unnamed = json!({"$retainKeys": ["rollingUpdate"], "type": "Recreate"});
    assert!(matches!(after(unnamed), Err(PatchError::BadBody(_))));
    assert_eq!(after(json!({"$patch": "delete"})), Ok(json!({})));
    assert_eq!(after(json!({"$patch": "replace", "type": "x"})), Ok(json!({"type": "x"})));
    let merge = json!({"$patch": "merge", "rollingUpdate": null});
    assert_eq!(after(merge), Ok(json!({"type": "RollingUpdate"})));
    assert!(matches!(after(json!({"$patch": "jump"})), Err(PatchError::Impossible(_))));
    assert!(matches!(after(json!({"$jump": 1})), Err(PatchError::BadBody(_))));
}

#[test]
fn long_lists_and_many_keys_take_no_longer_than_they_must() {
    let shape = shape_of("v1", "Pod").expect("a kind");
    let items: Vec<Value> = (0..20_000).map(|i| json!({"name": i.to_string()})).collect();
    let labels: Map<String, Value> = (0..20_000).map(|i| (i.to_string(), json!("x"))).collect();
    let gone: Map<String, Value> = labels.keys().map(|key| (key.clone(), Value::Null)).collect();
    let names: Vec<&String> = labels.keys().collect();
    let current = json!({"metadata": {"labels": labels, "annotations": labels},
        "spec": {"containers": items}});
    let patch = json!({"metadata": {"labels": gone, "annotations": {"$retainKeys": names}},
        "spec": {"containers": items, "$setElementOrder/containers": items}});
    let merged = strategic_merge(shape, &current, &patch).unwrap();
    assert_eq!(merged["metadata"]["labels"], json!({}));
    assert_eq!(merged["spec"]["containers"].as_array().map(Vec::len), Some(20_000));
}

#[test]
fn a_selector_of_a_budget_is_replaced_as_a_whole() {
    let shape = shape_of("policy/v1", "PodDisruptionBudget").expect("a kind");
    let current = json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}});
    let patch = json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}});
    assert_eq!(strategic_merge(shape, &current, &patch), Ok(patch));
}
