//! Placements of both families and all versions as one internal type, defaults filled in.

use convoy_api::fleet::placement::{PlacementSpec, ResourceSelectorTerm};
use convoy_api::fleet::policy::PlacementPolicy;
use convoy_api::fleet::strategy::{ApplyStrategy, RollingUpdateConfig, RolloutStrategy};
use convoy_api::object::view::{ViewError, view_of};
use convoy_api::text::CountOrPercent;
use convoy_api::{GroupKind, Object};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

pub(crate) use convoy_api::object::member::{field, list, text};

use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::fleet::names::Family;

/// A `ClusterResourcePlacement` or `ResourcePlacement`, sound and defaulted.
#[derive(Clone, Debug)]
pub(crate) struct Placement<'w> {
    pub(crate) object: &'w Object,
    pub(crate) family: Family,
    pub(crate) resource_selectors: Vec<ResourceSelectorTerm>,
    pub(crate) policy: Policy<'w>,
    pub(crate) strategy: Strategy,
    /// What every binding should carry, in [`apply_strategy`]'s canonical form.
    pub(crate) apply_strategy: Value,
    pub(crate) revision_history_limit: usize,
}

/// Which clusters are picked.
#[derive(Clone, Debug)]
pub(crate) struct Policy<'w> {
    pub(crate) pick: Pick,
    /// What the scheduler goes by.
    pub(crate) spec: PlacementPolicy,
    /// As written, to be hashed and copied; null where the placement has none.
    pub(crate) raw: &'w Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Every cluster that fits.
    All,
    /// The best so many.
    Number(u32),
    /// These and no others.
    Fixed(Vec<SmolStr>),
}

/// Who moves the bindings, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    RollingUpdate(RollingUpdate),
    /// A staged update run, or someone else's controller.
    External,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RollingUpdate {
    pub(crate) max_unavailable: IntOrPercent,
    pub(crate) max_surge: IntOrPercent,
    /// How long resources whose availability cannot be told count as not ready.
    pub(crate) unavailable_period_secs: i64,
}

/// The field of a placement that validation would have refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is invalid")]
pub(crate) struct Unsound {
    pub(crate) field: String,
}

impl Unsound {
    fn at(field: &str) -> Self {
        Self { field: field.to_owned() }
    }
}

impl From<ViewError> for Unsound {
    fn from(error: ViewError) -> Self {
        Self { field: error.field }
    }
}

const DEFAULT_SHARE: IntOrPercent = IntOrPercent::Percent(25);
const DEFAULT_PERIOD_SECS: i64 = 60;
const DEFAULT_HISTORY: i32 = 10;

impl<'w> Placement<'w> {
    pub(crate) fn read(object: &'w Object) -> Result<Self, Unsound> {
        let spec: PlacementSpec = object.spec_view()?;
        let history = spec.revision_history_limit.unwrap_or(DEFAULT_HISTORY).clamp(1, 1000);
        let strategy = spec.strategy.unwrap_or_default();
        Ok(Self {
            object,
            family: Family::of(object),
            resource_selectors: spec.resource_selectors,
            policy: Policy::new(spec.policy.unwrap_or_default(), field(object.spec(), "policy"))?,
            strategy: Strategy::new(&strategy)?,
            apply_strategy: canonical(&strategy.apply_strategy.unwrap_or_default()),
            revision_history_limit: usize::try_from(history).unwrap_or(1),
        })
    }

    pub(crate) fn name(&self) -> &'w SmolStr {
        self.object.name()
    }

    /// Where its bindings and snapshots live; empty for the cluster-scoped family.
    pub(crate) fn namespace(&self) -> &'w SmolStr {
        self.object.namespace()
    }

    /// Whether a binding or snapshot object belongs to this placement.
    pub(crate) fn owns(&self, object: &Object) -> bool {
        object.namespace() == self.namespace()
            && object.label(crate::dialect::fleet::names::PARENT) == Some(self.name().as_str())
    }

    /// How many clusters should carry the resources, where `present` are picked now.
    pub(crate) fn target(&self, present: u32) -> u32 {
        match &self.policy.pick {
            Pick::All => present,
            Pick::Number(wanted) => *wanted,
            Pick::Fixed(names) => u32::try_from(names.len()).unwrap_or(u32::MAX),
        }
    }

    /// The kind of the placement's bindings.
    pub(crate) fn binding_kind(&self) -> GroupKind {
        self.family.binding()
    }
}

impl<'w> Policy<'w> {
    fn new(spec: PlacementPolicy, raw: &'w Value) -> Result<Self, Unsound> {
        Ok(Self { pick: Pick::new(&spec)?, spec, raw })
    }
}

impl Pick {
    fn new(policy: &PlacementPolicy) -> Result<Self, Unsound> {
        match policy.placement_type.as_deref().unwrap_or_default() {
            "" | "PickAll" => Ok(Self::All),
            "PickN" => {
                let number = policy.number_of_clusters.and_then(|number| number.try_into().ok());
                number.map(Self::Number).ok_or_else(|| Unsound::at("spec.policy.numberOfClusters"))
            }
            "PickFixed" => {
                Ok(Self::Fixed(policy.cluster_names.iter().flatten().map(SmolStr::new).collect()))
            }
            _ => Err(Unsound::at("spec.policy.placementType")),
        }
    }

    /// Which clusters a placement asks for; None where that cannot be read.
    pub(crate) fn of(placement: &Object) -> Option<Self> {
        let policy: Option<PlacementPolicy> = view_of(field(placement.spec(), "policy")).ok()?;
        Self::new(&policy.unwrap_or_default()).ok()
    }
}

impl Strategy {
    fn new(strategy: &RolloutStrategy) -> Result<Self, Unsound> {
        match strategy.r#type.as_deref().unwrap_or_default() {
            "" | "RollingUpdate" => {
                let rolling = strategy.rolling_update.as_ref();
                rolling
                    .map_or_else(
                        || RollingUpdate::new(&RollingUpdateConfig::default()),
                        RollingUpdate::new,
                    )
                    .map(Self::RollingUpdate)
            }
            "External" => Ok(Self::External),
            _ => Err(Unsound::at("spec.strategy.type")),
        }
    }
}

impl RollingUpdate {
    fn new(config: &RollingUpdateConfig) -> Result<Self, Unsound> {
        let at = |name: &str| Unsound::at(&format!("spec.strategy.rollingUpdate.{name}"));
        let share = |name: &str, given: Option<&CountOrPercent>| match given {
            None => Ok(DEFAULT_SHARE),
            Some(given) => match IntOrPercent::from_view(given) {
                Ok(IntOrPercent::Int(count)) if count < 0 => Err(at(name)),
                Ok(share) => Ok(share),
                Err(_) => Err(at(name)),
            },
        };
        let period = config.unavailable_period_seconds.unwrap_or(DEFAULT_PERIOD_SECS);
        if period < 0 {
            return Err(at("unavailablePeriodSeconds"));
        }
        Ok(Self {
            max_unavailable: share("maxUnavailable", config.max_unavailable.as_ref())?,
            max_surge: share("maxSurge", config.max_surge.as_ref())?,
            unavailable_period_secs: period,
        })
    }

    /// The most clusters that may be unavailable of `target`; shares round up.
    pub(crate) fn unavailable(&self, target: u32) -> u32 {
        self.max_unavailable.resolve(target, Rounding::Up)
    }

    /// The most clusters that may carry the resources beyond `target`; shares round up.
    pub(crate) fn surge(&self, target: u32) -> u32 {
        self.max_surge.resolve(target, Rounding::Up)
    }
}

/// Whether the objects stay on the members when the placement is deleted.
pub(crate) fn abandons(placement: &Object) -> bool {
    let strategy = field(field(placement.spec(), "strategy"), "deleteStrategy");
    text(strategy, "propagationPolicy") == "Abandon"
}

/// Whether differences are reported and nothing is applied.
pub(crate) fn only_reports(placement: &Object) -> bool {
    let strategy = field(field(placement.spec(), "strategy"), "applyStrategy");
    text(strategy, "type") == "ReportDiff"
}

/// Whether the status is shown in the namespace that the placement selects.
pub(crate) fn is_shown_in_namespace(placement: &Object) -> bool {
    placement.spec_text("statusReportingScope") == "NamespaceAccessible"
}

/// The namespace among the resources that were selected last.
pub(crate) fn selected_namespace(placement: &Object) -> Option<&str> {
    let is_namespace =
        |it: &&Value| text(it, "group").is_empty() && text(it, "kind") == "Namespace";
    let selected = list(placement.status(), "selectedResources").iter().find(is_namespace);
    selected.map(|selected| text(selected, "name"))
}

/// How members report the status of what they have; null where nobody asks.
pub(crate) fn report_back(placement: &Object) -> &Value {
    field(field(placement.spec(), "strategy"), "reportBackStrategy")
}

/// The apply strategy that a binding or a run carries, in [`canonical`] form. One that does not
/// fit its type counts as none.
pub(crate) fn apply_strategy(carried: &Value) -> Value {
    let strategy: Option<ApplyStrategy> = view_of(carried).unwrap_or_default();
    canonical(&strategy.unwrap_or_default())
}

/// An apply strategy in canonical form: defaults filled in, what means nothing left out. Two
/// strategies are the same if and only if their canonical forms are equal.
fn canonical(given: &ApplyStrategy) -> Value {
    let word = |given: &Option<String>, default: &str| match given.as_deref() {
        None | Some("") => json!(default),
        Some(word) => json!(word),
    };
    let mut canonical = Map::new();
    canonical.insert("type".into(), word(&given.r#type, "ClientSideApply"));
    canonical
        .insert("comparisonOption".into(), word(&given.comparison_option, "PartialComparison"));
    canonical.insert("whenToApply".into(), word(&given.when_to_apply, "Always"));
    canonical.insert("whenToTakeOver".into(), word(&given.when_to_take_over, "Always"));
    if given.allow_co_ownership == Some(true) {
        canonical.insert("allowCoOwnership".into(), json!(true));
    }
    if given.r#type.as_deref() == Some("ServerSideApply") {
        let force = given.server_side_apply_config.as_ref().and_then(|config| config.force);
        let config = json!({"force": force.unwrap_or(false)});
        canonical.insert("serverSideApplyConfig".into(), config);
    }
    Value::Object(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(spec: &Value) -> Object {
        let mut raw = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourcePlacement", "metadata": {"name": "web"}, "spec": spec});
        raw["spec"]["resourceSelectors"] = json!([]);
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
            (json!({"policy": {"affinity": 1}}), "spec.policy.affinity"),
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
