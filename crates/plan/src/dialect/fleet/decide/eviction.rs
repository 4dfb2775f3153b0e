//! Evictions: taking a placement off one cluster, once, as far as its disruption budget allows.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;

use crate::dialect::fleet::decide::eviction_limits;
use crate::dialect::fleet::names::{AVAILABLE, DISRUPTION_BUDGET, EVICTION, Family};
use crate::dialect::fleet::read::binding::{Binding, bindings};
use crate::dialect::fleet::read::budget::DisruptionBudget;
use crate::dialect::fleet::read::eviction::{is_final, spec};
use crate::dialect::fleet::read::placement::{Pick, Placement};
use crate::gate::{self, Permit};
use crate::hold::{HoldReason, NAMED};
use crate::snapshot::Snapshot;

// Tools compare these messages literally, so they are upstream's, word for word. The holds of a plan
// say more.
const MISSING_PLACEMENT: &str = "Failed to find ClusterResourcePlacement targeted by eviction";
const DELETING_PLACEMENT: &str = "Found deleting ClusterResourcePlacement targeted by eviction";
const FIXED_PLACEMENT: &str =
    "Found ClusterResourcePlacement with PickFixed placement type targeted by eviction";
const MISSING_BINDING: &str =
    "Failed to find scheduler decision for placement in cluster targeted by eviction";
const SEVERAL_BINDINGS: &str =
    "Found more than one scheduler decision for placement in cluster targeted by eviction";
const BEING_REMOVED: &str = "Eviction is allowed, resources propagated by placement is currently \
    being removed from cluster targeted by eviction";
const PLACEMENT_FAILED: &str = "Eviction is allowed, placement has failed";
const NO_BUDGET: &str =
    "Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified";
const NOT_PLACED: &str =
    "Eviction is blocked, placement has not propagated resources to target cluster yet";
const MISCONFIGURED_BUDGET: &str = "Eviction is blocked by misconfigured \
    ClusterResourcePlacementDisruptionBudget, either MaxUnavailable is specified or MinAvailable \
    is specified as a percentage for PickAll ClusterResourcePlacement";

/// What becomes of one eviction. It is decided once; afterwards it only stands as a record.
#[derive(Clone, Debug)]
pub(crate) enum Eviction<'w> {
    /// Decided before, or no longer wanted.
    Over,
    /// It cannot be carried out as it is written.
    Invalid { message: String },
    /// Allowed; the binding is deleted unless that is under way.
    Evicted { delete: Option<(&'w Object, Permit)>, message: String },
    /// Understood, and not done.
    Refused { reason: HoldReason, message: String },
}

/// Where the bindings of a placement stand, with the evictions that were decided before.
#[derive(Clone, Debug)]
pub(crate) struct Standing<'w> {
    /// The number of clusters that the placement asks for, which shares are taken of.
    pub(crate) wanted: u32,
    pub(crate) available: u32,
    pub(crate) total: u32,
    /// The names of the first few bindings that are not available.
    pub(crate) unavailable: Vec<&'w str>,
}

/// The bindings of a placement by their cluster.
type ByCluster<'b, 'w> = BTreeMap<&'w str, Vec<&'b Binding<'w>>>;

/// Evictions are decided in the order of their names, each seeing what the ones before it
/// are about to delete: together they stay within the budget even if all run at once.
pub(crate) fn decide<'w>(snapshot: &Snapshot<'w>) -> Eviction<'w> {
    let eviction = snapshot.rollout();
    if is_final(eviction) || eviction.is_deleting() {
        return Eviction::Over;
    }
    let placement = match placement(snapshot, eviction) {
        Ok(placement) => placement,
        Err(message) => return Eviction::Invalid { message },
    };
    let bindings = bindings(snapshot, &placement);
    let is_pick_all = !matches!(placement.policy.pick, Pick::Number(_));
    let budget = snapshot.find(&DISRUPTION_BUDGET, "", placement.name());
    let budget = budget.map(|object| DisruptionBudget::read(object, is_pick_all));
    let mut standing = Standing::of(&placement, &bindings);
    let mut by_cluster: ByCluster<'_, '_> = BTreeMap::new();
    for binding in &bindings {
        by_cluster.entry(binding.cluster()).or_default().push(binding);
    }
    let mut going = BTreeSet::new();
    let earlier = snapshot.of(&EVICTION).iter().filter(|other| {
        let same = spec(other).placement_name == placement.name().as_str();
        same && other.key() < eviction.key() && !is_final(other) && !other.is_deleting()
    });
    for other in earlier {
        let decided = judge(other, &by_cluster, budget.as_ref(), &standing, &going);
        if let Eviction::Evicted { delete: Some((binding, _)), .. } = decided {
            going.insert(binding.name().as_str());
            standing.lose(binding);
        }
    }
    judge(eviction, &by_cluster, budget.as_ref(), &standing, &going)
}

fn placement<'w>(snapshot: &Snapshot<'w>, eviction: &Object) -> Result<Placement<'w>, String> {
    let name = &spec(eviction).placement_name;
    let object = snapshot.find(&Family::Cluster.placement(), "", name);
    let object = object.ok_or_else(|| MISSING_PLACEMENT.to_owned())?;
    if object.is_deleting() {
        return Err(DELETING_PLACEMENT.to_owned());
    }
    let placement = Placement::read(object).map_err(|unsound| unsound.to_string())?;
    match placement.policy.pick {
        Pick::Fixed(_) => Err(FIXED_PLACEMENT.to_owned()),
        Pick::All | Pick::Number(_) => Ok(placement),
    }
}

fn judge<'w>(
    eviction: &Object,
    bindings: &ByCluster<'_, 'w>,
    budget: Option<&DisruptionBudget<'_>>,
    standing: &Standing<'_>,
    going: &BTreeSet<&str>,
) -> Eviction<'w> {
    let cluster = spec(eviction).cluster_name;
    let invalid = |message: &str| Eviction::Invalid { message: message.to_owned() };
    let of_cluster = bindings.get(cluster.as_str()).map_or(&[][..], Vec::as_slice);
    let Some(binding) = of_cluster.first() else {
        return invalid(MISSING_BINDING);
    };
    if of_cluster.len() > 1 {
        return invalid(SEVERAL_BINDINGS);
    }
    if binding.is_deleting() || going.contains(binding.name()) {
        return Eviction::Evicted { delete: None, message: BEING_REMOVED.to_owned() };
    }
    if !binding.is_placed() {
        let detail = format!("nothing is placed on cluster {cluster:?} yet");
        let (reason, message) = (HoldReason::NotDisruptable { detail }, NOT_PLACED.to_owned());
        return Eviction::Refused { reason, message };
    }
    let works = !binding.has_failed() && !binding.is_diff_reported();
    let limits = if works { eviction_limits(budget, standing) } else { Vec::new() };
    let granted = gate::grant(1, &limits);
    let Some(permit) = granted.permit() else {
        let reason = granted.hold.expect("the gate says why nobody starts");
        let message = refusal(budget, standing);
        return Eviction::Refused { reason, message };
    };
    let message = allowed(works, budget, standing);
    Eviction::Evicted { delete: Some((binding.object, permit)), message }
}

/// Why an eviction goes ahead, with the counts before it.
fn allowed(works: bool, budget: Option<&DisruptionBudget<'_>>, standing: &Standing<'_>) -> String {
    match budget {
        _ if !works => PLACEMENT_FAILED.to_owned(),
        None => NO_BUDGET.to_owned(),
        Some(_) => format!("Eviction is allowed by specified {}", standing.counted()),
    }
}

fn refusal(budget: Option<&DisruptionBudget<'_>>, standing: &Standing<'_>) -> String {
    match budget {
        Some(DisruptionBudget::NotForPickAll { .. }) => MISCONFIGURED_BUDGET.to_owned(),
        _ => format!("Eviction is blocked by specified {}", standing.counted()),
    }
}

impl<'w> Standing<'w> {
    fn of(placement: &Placement<'_>, bindings: &[Binding<'w>]) -> Self {
        let wanted = match placement.policy.pick {
            Pick::Number(wanted) => wanted,
            Pick::All | Pick::Fixed(_) => 0,
        };
        let available = bindings.iter().filter(|binding| is_available(binding)).count();
        let unavailable = bindings.iter().filter(|binding| !is_available(binding));
        Self {
            wanted,
            available: crate::count(available),
            total: crate::count(bindings.len()),
            unavailable: unavailable.take(NAMED).map(Binding::name).collect(),
        }
    }

    /// How many bindings are not available.
    pub(crate) fn in_flight(&self) -> u32 {
        self.total.saturating_sub(self.available)
    }

    /// Reckons with the loss of a binding that is about to be deleted.
    fn lose(&mut self, binding: &'w Object) {
        if Binding::read(binding).is_some_and(|lost| is_available(&lost)) {
            self.available = self.available.saturating_sub(1);
            self.unavailable.push(binding.name());
        }
    }

    fn counted(&self) -> String {
        format!(
            "ClusterResourcePlacementDisruptionBudget, availablePlacements: {}, totalPlacements: {}",
            self.available, self.total
        )
    }
}

/// Whether the resources on a binding's cluster are known to work, and to stay.
fn is_available(binding: &Binding<'_>) -> bool {
    binding.is_true(AVAILABLE) && !binding.is_deleting()
}

#[cfg(test)]
mod tests {
    use convoy_testkit::fleet;
    use serde_json::{Value, json};

    use super::*;
    use crate::dialect::Dialect;
    use crate::dialect::fleet::Fleet;

    const API: &str = "placement.kubernetes-fleet.io/v1beta1";

    fn object(kind: &str, name: &str, spec: &Value) -> Object {
        let built = convoy_testkit::object(API, kind, name).spec(spec.clone());
        built.with("/metadata/generation", json!(1)).build()
    }

    fn binding(cluster: &str) -> Object {
        fleet::binding("web", cluster, "Bound", "web-0-snapshot")
            .with("/metadata/generation", json!(1))
            .status(json!({"conditions": [{"type": "Available", "status": "True",
                "reason": "AllWorkAreAvailable", "observedGeneration": 1}]}))
            .build()
    }

    fn eviction(name: &str, cluster: &str) -> Object {
        let spec = json!({"placementName": "web", "clusterName": cluster});
        object("ClusterResourcePlacementEviction", name, &spec)
    }

    #[test]
    fn evictions_at_once_stay_within_the_budget_together() {
        let policy = json!({"placementType": "PickN", "numberOfClusters": 3});
        let objects = [
            fleet::placement("web", policy).build(),
            object(
                "ClusterResourcePlacementDisruptionBudget",
                "web",
                &json!({"maxUnavailable": 2}),
            ),
            binding("c1"),
            binding("c2"),
            binding("c3"),
            eviction("a", "c1"),
            eviction("b", "c2"),
            eviction("c", "c3"),
            eviction("d", "c9"),
            eviction("e", "c1"),
        ];
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let decided = |name: &str| {
            let rollout = objects.iter().find(|object| object.name() == name).unwrap();
            let step = Fleet.step(&Snapshot::new(rollout, objects.iter()), now);
            let status = step.status.unwrap();
            let last = status["conditions"].as_array().unwrap().last().unwrap().clone();
            (step.decision["remove"].clone(), last["reason"].as_str().unwrap().to_owned())
        };
        let reason = |word: &str| format!("ClusterResourcePlacementEviction{word}");
        assert_eq!(decided("a"), (json!(["web-c1"]), reason("Executed")));
        assert_eq!(decided("b"), (json!(["web-c2"]), reason("Executed")));
        assert_eq!(decided("c"), (json!([]), reason("NotExecuted")));
        assert_eq!(decided("d"), (json!([]), reason("Invalid")));
        assert_eq!(decided("e"), (json!([]), reason("Executed")), "the first one did it");
    }

    #[test]
    fn messages_are_those_that_tools_compare() {
        let policy = json!({"placementType": "PickN", "numberOfClusters": 3});
        let fixed = json!({"placementType": "PickFixed", "clusterNames": ["c1"]});
        let message = |policy: &Value, budget: Option<Value>| {
            let mut objects = vec![
                fleet::placement("web", policy.clone()).build(),
                binding("c1"),
                binding("c2"),
                eviction("a", "c1"),
            ];
            objects.extend(
                budget.map(|budget| {
                    object("ClusterResourcePlacementDisruptionBudget", "web", &budget)
                }),
            );
            let now = "2026-01-01T00:00:00Z".parse().unwrap();
            let status = Fleet.step(&Snapshot::new(&objects[3], objects.iter()), now).status;
            let last = status.unwrap()["conditions"].as_array().unwrap().last().unwrap().clone();
            last["message"].as_str().unwrap().to_owned()
        };
        assert_eq!(
            message(&policy, None),
            "Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified"
        );
        let counted = "by specified ClusterResourcePlacementDisruptionBudget, \
            availablePlacements: 2, totalPlacements: 2";
        let allowed = format!("Eviction is allowed {counted}");
        assert_eq!(message(&policy, Some(json!({"minAvailable": 1}))), allowed);
        let blocked = format!("Eviction is blocked {counted}");
        assert_eq!(message(&policy, Some(json!({"minAvailable": 2}))), blocked);
        assert_eq!(message(&fixed, None), FIXED_PLACEMENT);
    }

    fn allowed(pick: &Value, budget: &Value, available: u32, total: u32) -> bool {
        let placement = fleet::placement("web", pick.clone()).build();
        let placement = Placement::read(&placement).unwrap();
        let budget = object("ClusterResourcePlacementDisruptionBudget", "web", budget);
        let is_pick_all = !matches!(placement.policy.pick, Pick::Number(_));
        let budget = DisruptionBudget::read(&budget, is_pick_all);
        let standing = Standing { available, total, ..Standing::of(&placement, &[]) };
        gate::grant(1, &eviction_limits(Some(&budget), &standing)).count == 1
    }

    #[test]
    fn a_budget_allows_one_more_while_enough_are_available() {
        let pick = |number: u32| json!({"placementType": "PickN", "numberOfClusters": number});
        let all = json!({"placementType": "PickAll"});
        let cases = [
            ("none missing", pick(3), json!({"maxUnavailable": 1}), 3, 3, true),
            ("one missing", pick(3), json!({"maxUnavailable": 1}), 2, 3, false),
            ("40% of 4 is 2", pick(4), json!({"maxUnavailable": "40%"}), 2, 4, false),
            ("50% of 3 is 2", pick(3), json!({"maxUnavailable": "50%"}), 2, 3, true),
            ("the last one", pick(2), json!({"minAvailable": 1}), 1, 2, false),
            ("one to spare", pick(2), json!({"minAvailable": 1}), 2, 2, true),
            ("30% of 3 is 1", pick(3), json!({"minAvailable": "30%"}), 2, 3, true),
            ("neither", pick(3), json!({}), 3, 3, false),
            ("all, a number", all.clone(), json!({"minAvailable": 1}), 2, 2, true),
            ("all, a share", all.clone(), json!({"minAvailable": "1%"}), 2, 2, false),
            ("all, at most", all, json!({"maxUnavailable": 2}), 2, 2, false),
        ];
        for (name, pick, budget, available, total, want) in cases {
            assert_eq!(allowed(&pick, &budget, available, total), want, "{name}");
        }
    }
}
