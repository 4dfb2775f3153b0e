//! Disruption budgets of placements.

use convoy_api::Object;
use convoy_api::fleet::eviction::PlacementDisruptionBudgetSpec;
use convoy_api::text::CountOrPercent;

use crate::budget::IntOrPercent;

/// What a `ClusterResourcePlacementDisruptionBudget` says about its placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisruptionBudget<'w> {
    MaxUnavailable {
        name: &'w str,
        share: IntOrPercent,
    },
    MinAvailable {
        name: &'w str,
        share: IntOrPercent,
    },
    /// Neither field, or one that cannot be read: nothing is allowed.
    Unset {
        name: &'w str,
    },
    /// Shares have no meaning where every fitting cluster is picked.
    NotForPickAll {
        name: &'w str,
    },
}

impl<'w> DisruptionBudget<'w> {
    /// The budget of a placement, of type `PickAll` or not. One that does not fit its type says
    /// nothing, and so allows nothing.
    pub(crate) fn read(object: &'w Object, is_pick_all: bool) -> Self {
        let name = object.name().as_str();
        let spec: PlacementDisruptionBudgetSpec = object.spec_view().unwrap_or_default();
        let share =
            |given: Option<CountOrPercent>| given.map(|it| IntOrPercent::from_view(&it).ok());
        match (share(spec.max_unavailable), share(spec.min_available)) {
            (Some(_), _) | (_, Some(Some(IntOrPercent::Percent(_)))) if is_pick_all => {
                Self::NotForPickAll { name }
            }
            (Some(Some(share)), _) => Self::MaxUnavailable { name, share },
            (None, Some(Some(share))) => Self::MinAvailable { name, share },
            _ => Self::Unset { name },
        }
    }
}
