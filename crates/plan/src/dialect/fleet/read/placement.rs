//! Placements of both families and all versions as one internal type, defaults filled in.
//!
//! Read from the JSON rather than through the wire type: policies and apply strategies are
//! compared, hashed and copied as JSON, and budgets may be counts that the wire type's 32 bits
//! do not hold.

use convoy_api::{GroupKind, Object};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

pub(crate) use convoy_api::object::member::{field, list, text};

use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::fleet::names::Family;

/// A `ClusterResourcePlacement` or `ResourcePlacement`, sound and defaulted.
#[derive(Clone, Debug)]
pub struct Placement<'w> {
    pub object: &'w Object,
    pub family: Family,
    pub policy: Policy<'w>,
    pub strategy: Strategy,
    /// What every binding should carry, in [`apply_strategy`]'s canonical form.
    pub apply_strategy: Value,
    pub revision_history_limit: usize,
}

/// Which clusters are picked.
#[derive(Clone, Debug)]
pub struct Policy<'w> {
    pub pick: Pick,
    /// As written; null where the placement has none.
    pub raw: &'w Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Every cluster that fits.
    All,
    /// The best so many.
    Number(u32),
    /// These and no others.
    Fixed(Vec<SmolStr>),
}

/// Who moves the bindings, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    RollingUpdate(RollingUpdate),
    /// A staged update run, or someone else's controller.
    External,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollingUpdate {
    pub max_unavailable: IntOrPercent,
    pub max_surge: IntOrPercent,
    /// How long resources whose availability cannot be told count as not ready.
    pub unavailable_period_secs: i64,
}

/// The field of a placement that validation would have refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is invalid")]
pub struct Unsound {
    pub field: &'static str,
}

const DEFAULT_SHARE: IntOrPercent = IntOrPercent::Percent(25);
const DEFAULT_PERIOD_SECS: i64 = 60;
const DEFAULT_HISTORY: i64 = 10;
const PERIOD: &str = "spec.strategy.rollingUpdate.unavailablePeriodSeconds";

impl<'w> Placement<'w> {
    pub fn read(object: &'w Object) -> Result<Self, Unsound> {
        let spec = object.spec();
        let history = match spec.get("revisionHistoryLimit") {
            None | Some(Value::Null) => DEFAULT_HISTORY,
            Some(limit) => limit.as_i64().unwrap_or(DEFAULT_HISTORY).clamp(1, 1000),
        };
        let strategy = field(spec, "strategy");
        Ok(Self {
            object,
            family: Family::of(object),
            policy: Policy::read(field(spec, "policy"))?,
            strategy: Strategy::read(strategy)?,
            apply_strategy: apply_strategy(field(strategy, "applyStrategy")),
            revision_history_limit: usize::try_from(history).unwrap_or(1),
        })
    }

    pub fn name(&self) -> &'w SmolStr {
        self.object.name()
    }

    /// Where its bindings and snapshots live; empty for the cluster-scoped family.
    pub fn namespace(&self) -> &'w SmolStr {
        self.object.namespace()
    }

    /// Whether a binding or snapshot object belongs to this placement.
    pub fn owns(&self, object: &Object) -> bool {
        object.namespace() == self.namespace()
            && object.label(crate::dialect::fleet::names::PARENT) == Some(self.name().as_str())
    }

    /// How many clusters should carry the resources, where `present` are picked now.
    pub fn target(&self, present: u32) -> u32 {
        match &self.policy.pick {
            Pick::All => present,
            Pick::Number(wanted) => *wanted,
            Pick::Fixed(names) => u32::try_from(names.len()).unwrap_or(u32::MAX),
        }
    }

    /// The kind of the placement's bindings.
    pub fn binding_kind(&self) -> GroupKind {
        self.family.binding()
    }
}

impl<'w> Policy<'w> {
    pub fn read(raw: &'w Value) -> Result<Self, Unsound> {
        let pick = match text(raw, "placementType") {
            "" | "PickAll" => Pick::All,
            "PickN" => {
                let number = raw.get("numberOfClusters").and_then(Value::as_i64);
                let number = number.and_then(|number| u32::try_from(number).ok());
                Pick::Number(number.ok_or(Unsound { field: "spec.policy.numberOfClusters" })?)
            }
            "PickFixed" => {
                let names = list(raw, "clusterNames").iter().filter_map(Value::as_str);
                Pick::Fixed(names.map(SmolStr::new).collect())
            }
            _ => return Err(Unsound { field: "spec.policy.placementType" }),
        };
        Ok(Self { pick, raw })
    }
}

impl Strategy {
    fn read(raw: &Value) -> Result<Self, Unsound> {
        match text(raw, "type") {
            "" | "RollingUpdate" => {
                Ok(Self::RollingUpdate(RollingUpdate::read(field(raw, "rollingUpdate"))?))
            }
            "External" => Ok(Self::External),
            _ => Err(Unsound { field: "spec.strategy.type" }),
        }
    }
}

impl RollingUpdate {
    fn read(raw: &Value) -> Result<Self, Unsound> {
        let share = |name: &str, field: &'static str| match raw.get(name) {
            None | Some(Value::Null) => Ok(DEFAULT_SHARE),
            Some(value) => match IntOrPercent::from_value(value) {
                Ok(IntOrPercent::Int(count)) if count < 0 => Err(Unsound { field }),
                Ok(share) => Ok(share),
                Err(_) => Err(Unsound { field }),
            },
        };
        let period = match raw.get("unavailablePeriodSeconds") {
            None | Some(Value::Null) => Some(DEFAULT_PERIOD_SECS),
            Some(period) => period.as_i64().filter(|secs| *secs >= 0),
        };
        Ok(Self {
            max_unavailable: share("maxUnavailable", "spec.strategy.rollingUpdate.maxUnavailable")?,
            max_surge: share("maxSurge", "spec.strategy.rollingUpdate.maxSurge")?,
            unavailable_period_secs: period.ok_or(Unsound { field: PERIOD })?,
        })
    }

    /// The most clusters that may be unavailable of `target`; shares round up.
    pub fn unavailable(&self, target: u32) -> u32 {
        self.max_unavailable.resolve(target, Rounding::Up)
    }

    /// The most clusters that may carry the resources beyond `target`; shares round up.
    pub fn surge(&self, target: u32) -> u32 {
        self.max_surge.resolve(target, Rounding::Up)
    }
}

/// An apply strategy in canonical form: defaults filled in, what means nothing left out. Two
/// strategies are the same if and only if their canonical forms are equal.
pub fn apply_strategy(raw: &Value) -> Value {
    let word = |name: &str, default: &str| match text(raw, name) {
        "" => json!(default),
        word => json!(word),
    };
    let mut canonical = Map::new();
    canonical.insert("type".into(), word("type", "ClientSideApply"));
    canonical.insert("comparisonOption".into(), word("comparisonOption", "PartialComparison"));
    canonical.insert("whenToApply".into(), word("whenToApply", "Always"));
    canonical.insert("whenToTakeOver".into(), word("whenToTakeOver", "Always"));
    if raw.get("allowCoOwnership").and_then(Value::as_bool) == Some(true) {
        canonical.insert("allowCoOwnership".into(), json!(true));
    }
    if text(raw, "type") == "ServerSideApply" {
        let config = field(raw, "serverSideApplyConfig");
        let force = config.get("force").and_then(Value::as_bool).unwrap_or(false);
        canonical.insert("serverSideApplyConfig".into(), json!({"force": force}));
    }
    Value::Object(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(spec: &Value) -> Object {
        let raw = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourcePlacement", "metadata": {"name": "web"}, "spec": spec});
        Object::from_value(raw).unwrap()
    }

    #[test]
    fn what_is_left_out_is_defaulted() {
        let object = object(&json!({}));
        let placement = Placement::read(&object).unwrap();
        assert_eq!(placement.policy.pick, Pick::All);
        assert_eq!(placement.revision_history_limit, 10);
        let Strategy::RollingUpdate(rolling) = placement.strategy else { panic!("rolling") };
        assert_eq!(rolling.unavailable_period_secs, 60);
        assert_eq!((rolling.unavailable(2), rolling.surge(9)), (1, 3));
        assert_eq!(placement.target(7), 7);
    }

    #[test]
    fn what_is_not_sound_names_its_field() {
        let cases = [
            (json!({"policy": {"placementType": "PickN"}}), "spec.policy.numberOfClusters"),
            (json!({"policy": {"placementType": "PickMe"}}), "spec.policy.placementType"),
            (json!({"strategy": {"type": "random"}}), "spec.strategy.type"),
            (
                json!({"strategy": {"rollingUpdate": {"maxSurge": -1}}}),
                "spec.strategy.rollingUpdate.maxSurge",
            ),
            (
                json!({"strategy": {"rollingUpdate": {"unavailablePeriodSeconds": "x"}}}),
                "spec.strategy.rollingUpdate.unavailablePeriodSeconds",
            ),
        ];
        for (spec, field) in cases {
            assert_eq!(Placement::read(&object(&spec)).unwrap_err().field, field, "{spec}");
        }
    }

    #[test]
    fn apply_strategies_that_mean_the_same_are_equal() {
        let same = [
            json!(null),
            json!({"type": "ClientSideApply", "allowCoOwnership": false}),
            json!({"whenToTakeOver": "Always", "comparisonOption": "PartialComparison"}),
        ];
        for raw in &same {
            assert_eq!(apply_strategy(raw), apply_strategy(&Value::Null), "{raw}");
        }
        let forced = json!({"type": "ServerSideApply", "serverSideApplyConfig": {"force": true}});
        assert_eq!(apply_strategy(&forced)["serverSideApplyConfig"]["force"], true);
    }
}
