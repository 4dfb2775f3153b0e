//! Reads as `serde_json` and `serde_path_to_error` read, values that fit and values that do not.

use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::fleet::placement::PlacementSpec;
use crate::karpenter::node_pool::NodePoolSpec;
use crate::ocm::ManifestWorkReplicaSetSpec;
use crate::skyhook::{DeploymentPolicySpec, SkyhookSpec};

/// What the libraries say about the same value.
fn reference<T: DeserializeOwned>(value: &Value) -> Result<T, (String, String)> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| (error.path().to_string(), error.inner().to_string()))
}

/// Every way to put another value in the place of a part of a value.
fn damaged(value: &Value) -> Vec<Value> {
    let others = [json!(null), json!(true), json!(-3), json!(2.5), json!("x"), json!([7])];
    let mut all = others.to_vec();
    all.extend([json!([]), json!({}), json!({"a": {"b": 1}}), json!({"a": 1, "b": 2})]);
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                all.extend(damaged(item).into_iter().map(|damaged| {
                    let mut items = items.clone();
                    items[index] = damaged;
                    Value::Array(items)
                }));
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let mut without = fields.clone();
                without.remove(name);
                all.push(Value::Object(without));
                all.extend(damaged(field).into_iter().map(|damaged| {
                    let mut fields = fields.clone();
                    fields[name] = damaged;
                    Value::Object(fields)
                }));
            }
        }
        _ => {}
    }
    all
}

fn agrees<T: DeserializeOwned + PartialEq + fmt::Debug>(yaml: &str) {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let specs = documents.iter().map(|document| &document["spec"]);
    let values: Vec<Value> = specs.flat_map(damaged).collect();
    let failures = values.iter().filter(|value| reference::<T>(value).is_err()).count();
    assert!(failures > 100, "{failures} of {} are refused", values.len());
    for value in &values {
        assert_eq!(read::<T>(value), reference(value), "{value}");
    }
}

#[test]
fn paths_and_messages_are_those_of_the_libraries() {
    agrees::<SkyhookSpec>(include_str!("../../../testdata/skyhook/skyhook.yaml"));
    agrees::<DeploymentPolicySpec>(include_str!(
        "../../../testdata/skyhook/deployment_policy.yaml"
    ));
    agrees::<PlacementSpec>(include_str!(
        "../../../testdata/fleet/cluster_resource_placement.yaml"
    ));
    agrees::<NodePoolSpec>(include_str!("../../../testdata/karpenter/nodepool.yaml"));
    agrees::<ManifestWorkReplicaSetSpec>(include_str!("../../../testdata/ocm/replica_set.yaml"));
}

/// What no type of the dialects has: variants with content, tuples, refused fields.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rare {
    choice: Choice,
    pair: (u8, String),
    wrapped: Wrapped,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Choice {
    None,
    One(u8),
    Two(u8, u8),
    Named { size: i64 },
}

#[derive(Debug, PartialEq, Deserialize)]
struct Wrapped(Option<bool>);

#[test]
fn other_types_are_read_as_the_libraries_read_them() {
    let choices =
        [json!("None"), json!({"One": 1}), json!({"Two": [1, 2]}), json!({"Named": {"size": 1}})];
    for choice in choices {
        let whole = json!({"spec": {"choice": choice, "pair": [1, "a"], "wrapped": true}});
        assert!(read::<Rare>(&whole["spec"]).is_ok());
        let yaml = whole.to_string();
        for value in damaged(&whole["spec"]).into_iter().chain([json!({"pear": 1}), whole]) {
            assert_eq!(read::<Rare>(&value), reference(&value), "{value} from {yaml}");
        }
    }
}
