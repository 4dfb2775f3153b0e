//! Disruption budgets of placements: how many more clusters may lose their resources.

use convoy_api::Object;

use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::fleet::decide::eviction::is_available;
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::placement::{Pick, Placement};
use crate::hold::HoldReason;

/// What a budget says, and where the bindings stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts<'w> {
    limit: Limit,
    /// The wanted number of clusters that shares are taken of.
    wanted: u32,
    available: u32,
    total: u32,
    name: &'w str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// There is no budget.
    None,
    MaxUnavailable(IntOrPercent),
    MinAvailable(IntOrPercent),
    /// Neither field, or one that cannot be read: nothing is allowed.
    Nothing,
    /// Shares have no meaning where every fitting cluster is picked.
    NotForPickAll,
}

impl<'w> Verdicts<'w> {
    pub fn new(
        placement: &Placement<'_>,
        bindings: &[Binding<'_>],
        budget: Option<&'w Object>,
    ) -> Self {
        let wanted = match placement.policy.pick {
            Pick::Number(wanted) => Some(wanted),
            Pick::All | Pick::Fixed(_) => None,
        };
        let available = bindings.iter().filter(|binding| is_available(binding)).count();
        let count = |many: usize| u32::try_from(many).unwrap_or(u32::MAX);
        Self {
            limit: budget.map_or(Limit::None, |budget| Limit::read(budget, wanted.is_none())),
            wanted: wanted.unwrap_or(0),
            available: count(available),
            total: count(bindings.len()),
            name: budget.map_or("", |budget| budget.name().as_str()),
        }
    }

    /// Reckons with the loss of a binding that is about to be deleted.
    pub fn lose(&mut self, binding: &Object) {
        if Binding::read(binding).is_some_and(|lost| is_available(&lost)) {
            self.available = self.available.saturating_sub(1);
        }
    }

    /// Whether one more may go, with the counts; otherwise what forbids it.
    pub fn one_more(&self) -> Result<String, (HoldReason, String)> {
        let (available, total) = (self.available, self.total);
        let counted = format!("{available} of {total} placements are available");
        let refused = |reason| Err((reason, format!("{}, {counted}", self.refusal())));
        let by = Vec::new;
        match self.limit {
            Limit::None => Ok(format!("no disruption budget is set, {counted}")),
            Limit::Nothing | Limit::NotForPickAll => {
                refused(HoldReason::NotDisruptable { detail: self.refusal() })
            }
            Limit::MaxUnavailable(share) => {
                let ceiling = share.resolve(self.wanted, Rounding::Up);
                let in_flight = total.saturating_sub(available);
                if in_flight < ceiling {
                    return Ok(format!("{in_flight} of {ceiling} may be unavailable, {counted}"));
                }
                let limit = "maxUnavailable";
                refused(HoldReason::BudgetSpent { limit, in_flight, ceiling, by: by() })
            }
            Limit::MinAvailable(share) => {
                let floor = share.resolve(self.wanted, Rounding::Up);
                if available > floor {
                    return Ok(format!("{floor} have to stay available, {counted}"));
                }
                let ceiling = total.saturating_sub(floor);
                let in_flight = total.saturating_sub(available);
                let limit = "minAvailable";
                refused(HoldReason::BudgetSpent { limit, in_flight, ceiling, by: by() })
            }
        }
    }

    fn refusal(&self) -> String {
        let name = self.name;
        match self.limit {
            Limit::NotForPickAll => format!(
                "disruption budget {name} has a share or maxUnavailable, \
                 which mean nothing for a placement of type PickAll"
            ),
            Limit::Nothing => format!("disruption budget {name} allows nothing"),
            _ => format!("disruption budget {name} does not allow one more"),
        }
    }
}

impl Limit {
    fn read(budget: &Object, pick_all: bool) -> Self {
        let share = |name: &str| {
            let value = budget.spec().get(name).filter(|value| !value.is_null())?;
            Some(IntOrPercent::from_value(value).ok())
        };
        match (share("maxUnavailable"), share("minAvailable")) {
            (Some(_), _) | (_, Some(Some(IntOrPercent::Percent(_)))) if pick_all => {
                Self::NotForPickAll
            }
            (Some(Some(share)), _) => Self::MaxUnavailable(share),
            (None, Some(Some(share))) => Self::MinAvailable(share),
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn allowed(pick: &Value, budget: &Value, available: u32, total: u32) -> bool {
        let placement = Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1",
            "kind": "ClusterResourcePlacement", "metadata": {"name": "web"}, "spec": {"policy": pick}}))
        .unwrap();
        let placement = Placement::read(&placement).unwrap();
        let budget =
            Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourcePlacementDisruptionBudget", "metadata": {"name": "web"},
            "spec": budget}))
            .unwrap();
        let mut verdicts = Verdicts::new(&placement, &[], Some(&budget));
        (verdicts.available, verdicts.total) = (available, total);
        verdicts.one_more().is_ok()
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
