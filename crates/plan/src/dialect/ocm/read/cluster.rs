//! Managed clusters, and the sets they belong to.

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::timestamp;
use convoy_api::object::view::view_of;
use convoy_api::ocm::names::{CLUSTER_SET_LABEL, DEFAULT_CLUSTER_SET};
use convoy_api::ocm::{SetSelector, spelling};
use convoy_api::text::quantity::Quantity;
use jiff::Timestamp;
use serde_json::Value;

use crate::selector::Selector;
use crate::taint::Taint;

/// Which clusters belong to a set.
pub(crate) enum Membership<'o> {
    /// Those that carry the set's name.
    Exclusive(&'o str),
    Labels(Selector),
    Nobody,
}

impl<'o> Membership<'o> {
    pub(crate) fn read(set: &'o Object) -> Result<Self, String> {
        let failed = |error: String| format!("ManagedClusterSet {}: {error}", set.name());
        let given = field(set.spec(), "clusterSelector");
        let selector: Option<SetSelector> =
            view_of(given).map_err(|error| failed(error.to_string()))?;
        let SetSelector { selector_type, label_selector } = selector.unwrap_or_default();
        match selector_type.as_deref().unwrap_or_default() {
            "" | "ExclusiveClusterSetLabel" => Ok(Self::Exclusive(set.name())),
            "LabelSelector" if label_selector.is_none() => Ok(Self::Nobody),
            "LabelSelector" => {
                let labels = spelling::selector(field(given, "labelSelector"));
                let labels = Selector::from_value(&labels);
                labels.map(Self::Labels).map_err(|error| failed(error.to_string()))
            }
            other => Err(format!("selectorType is not right: {other}")),
        }
    }

    pub(crate) fn contains(&self, cluster: &Object) -> bool {
        match self {
            Self::Exclusive(set) => {
                // Admission puts a cluster without a set into the default one.
                let label = cluster.label(CLUSTER_SET_LABEL).filter(|label| !label.is_empty());
                label.unwrap_or(DEFAULT_CLUSTER_SET) == *set
            }
            Self::Labels(selector) => selector.matches(cluster),
            Self::Nobody => false,
        }
    }
}

/// The value of a cluster claim; of several with one name the last counts.
pub(crate) fn claim<'o>(cluster: &'o Object, name: &str) -> Option<&'o str> {
    let claims = list(cluster.status(), "clusterClaims");
    let claim = claims.iter().rev().find(|claim| text(claim, "name") == name)?;
    claim.get("value").and_then(Value::as_str)
}

/// The taints of a cluster, each with the instant at which it was added.
pub(crate) fn taints(cluster: &Object) -> impl Iterator<Item = (Taint<'_>, Option<Timestamp>)> {
    let taints = list(cluster.spec(), "taints").iter();
    taints.map(|taint| (Taint::from_value(taint), timestamp(taint.get("timeAdded"))))
}

/// How much of a resource a cluster has left, if it reports both capacity and what is left.
#[expect(clippy::cast_precision_loss, reason = "scores are shares; upstream is no finer")]
pub(crate) fn allocatable(cluster: &Object, resource: &str) -> Option<f64> {
    let amount = |list: &str| -> Option<Quantity> {
        match cluster.status().get(list)?.get(resource)? {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.to_string().parse().ok(),
            _ => None,
        }
    };
    amount("capacity")?;
    Some(amount("allocatable")?.as_nanos() as f64 / 1e9)
}
