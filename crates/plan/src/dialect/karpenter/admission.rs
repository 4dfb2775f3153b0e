//! The webhook that converts NodePools between their versions, by the function that the embedded
//! server uses.

use convoy_api::karpenter::convert::{to_v1, to_v1beta1};
use serde_json::Value;

use crate::webhook::Conversion;

const V1: &str = "karpenter.sh/v1";
const V1BETA1: &str = "karpenter.sh/v1beta1";

pub(crate) const CONVERSIONS: &[Conversion] = &[Conversion {
    definition: "nodepools.karpenter.sh",
    path: "/convert-karpenter-sh-nodepool",
    versions: &["v1", "v1beta1"],
}];

/// A NodePool in another version.
pub(crate) fn convert(pool: &Value, to: &str) -> Result<Value, String> {
    match (pool.get("apiVersion").and_then(Value::as_str).unwrap_or_default(), to) {
        (from, to) if from == to => Ok(pool.clone()),
        (V1BETA1, V1) => Ok(to_v1(pool)),
        (V1, V1BETA1) => Ok(to_v1beta1(pool)),
        (from, to) => Err(format!("NodePools are not converted from {from} to {to}")),
    }
}
