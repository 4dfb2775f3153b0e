//! The bounds that the spec of a placement sets.

use convoy_api::Object;
use convoy_api::object::member::{list, text};
use jiff::SignedDuration;
use serde_json::Value;

/// What a placement asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bounds {
    /// None for as many as are picked.
    target: Option<u32>,
    max_unavailable: Value,
    max_surge: Value,
    pub(super) period: SignedDuration,
    /// Somebody else moves the bindings.
    pub(super) is_external: bool,
}

/// The same as numbers of clusters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Clusters that carry the resources, at most; of several limits the weakest and the strictest.
    pub(super) most: u32,
    pub(super) least_most: u32,
    /// Clusters that work, at least, when one is removed.
    pub(super) least: u32,
    /// The same when one is updated in place: one may always be unavailable for that.
    pub(super) least_updating: u32,
}

impl Bounds {
    pub(super) fn read(placement: &Object) -> Self {
        let spec = placement.spec();
        let policy = spec.get("policy").unwrap_or(&Value::Null);
        let target = match text(policy, "placementType") {
            "PickN" => policy.get("numberOfClusters").and_then(Value::as_u64),
            "PickFixed" => Some(list(policy, "clusterNames").len() as u64),
            _ => None,
        };
        let strategy = spec.get("strategy").unwrap_or(&Value::Null);
        let rolling = strategy.get("rollingUpdate").unwrap_or(&Value::Null);
        let share = |field: &str| rolling.get(field).cloned().unwrap_or_else(|| "25%".into());
        let secs = rolling.get("unavailablePeriodSeconds").and_then(Value::as_i64).unwrap_or(60);
        Self {
            target: target.map(|target| u32::try_from(target).unwrap_or(u32::MAX)),
            max_unavailable: share("maxUnavailable"),
            max_surge: share("maxSurge"),
            period: SignedDuration::from_secs(secs),
            is_external: text(strategy, "type") == "External",
        }
    }

    pub(super) fn limits(&self, picked: u32) -> Limits {
        let target = self.target.unwrap_or(picked);
        let unavailable = resolved(&self.max_unavailable, target);
        let most = target.saturating_add(resolved(&self.max_surge, target));
        Limits {
            most,
            least_most: most,
            least: target.saturating_sub(unavailable),
            least_updating: target.saturating_sub(unavailable.max(1)),
        }
    }
}

impl Limits {
    /// What holds whichever of two limits does.
    pub(super) fn weaker(self, other: Self) -> Self {
        Self {
            most: self.most.max(other.most),
            least_most: self.least_most.min(other.least_most),
            least: self.least.min(other.least),
            least_updating: self.least_updating.min(other.least_updating),
        }
    }
}

/// A number, or a share of the target that rounds up.
fn resolved(share: &Value, target: u32) -> u32 {
    let number = share.as_u64().or_else(|| {
        let percent: u64 = share.as_str()?.strip_suffix('%')?.parse().ok()?;
        Some((percent * u64::from(target)).div_ceil(100))
    });
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}
