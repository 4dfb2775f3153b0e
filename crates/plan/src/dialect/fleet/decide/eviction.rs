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
    let object = object.ok_or_else(|| format!("ClusterResourcePlacement {name:?} not found"))?;
    if object.is_deleting() {
        return Err(format!("ClusterResourcePlacement {name:?} is being deleted"));
    }
    let placement = Placement::read(object).map_err(|unsound| unsound.to_string())?;
    match placement.policy.pick {
        Pick::Fixed(_) => Err(format!(
            "ClusterResourcePlacement {name:?} is of type PickFixed; remove the cluster from \
             spec.policy.clusterNames instead"
        )),
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
    let invalid = |message| Eviction::Invalid { message };
    let of_cluster = bindings.get(cluster.as_str()).map_or(&[][..], Vec::as_slice);
    let Some(binding) = of_cluster.first() else {
        return invalid(format!("the placement has no binding for cluster {cluster:?}"));
    };
    if let Some(second) = of_cluster.get(1) {
        let (one, two) = (binding.name(), second.name());
        return invalid(format!("cluster {cluster:?} has two bindings, {one} and {two}"));
    }
    if binding.is_deleting() || going.contains(binding.name()) {
        let message = "the binding is being deleted already".to_owned();
        return Eviction::Evicted { delete: None, message };
    }
    if !binding.is_placed() {
        let message = format!("nothing is placed on cluster {cluster:?} yet");
        let reason = HoldReason::NotDisruptable { detail: message.clone() };
        return Eviction::Refused { reason, message };
    }
    let works = !binding.has_failed() && !binding.is_diff_reported();
    let limits = if works { eviction_limits(budget, standing) } else { Vec::new() };
    let granted = gate::grant(1, &limits);
    let Some(permit) = granted.permit() else {
        let reason = granted.hold.expect("the gate says why nobody starts");
        let message = format!("{}, {}", refusal(budget, &reason), standing.counted());
        return Eviction::Refused { reason, message };
    };
    let message = allowed(works, budget, standing);
    Eviction::Evicted { delete: Some((binding.object, permit)), message }
}

/// Why an eviction goes ahead, with the counts before it.
fn allowed(works: bool, budget: Option<&DisruptionBudget<'_>>, standing: &Standing<'_>) -> String {
    match budget {
        _ if !works => {
            "the placement does not work on the cluster, so no budget is needed".to_owned()
        }
        None => format!("no disruption budget is set, {}", standing.counted()),
        Some(budget) => {
            format!("disruption budget {} allows it, {}", budget.name(), standing.counted())
        }
    }
}

fn refusal(budget: Option<&DisruptionBudget<'_>>, reason: &HoldReason) -> String {
    match reason {
        HoldReason::NotDisruptable { detail } => detail.clone(),
        reason => {
            let name = budget.map_or("", DisruptionBudget::name);
            format!("disruption budget {name} does not allow one more: {reason}")
        }
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
        format!("{} of {} placements are available", self.available, self.total)
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
