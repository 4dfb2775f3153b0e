//! Disruption budgets of placements.

use convoy_api::Object;
use serde_json::Value;

use crate::budget::IntOrPercent;

/// What a `ClusterResourcePlacementDisruptionBudget` says about its placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisruptionBudget<'w> {
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
    /// The budget of a placement, of type `PickAll` or not. Counts are read from the JSON: the
    /// wire type has 32 bits, and larger counts are sound, if useless.
    pub fn read(object: &'w Object, is_pick_all: bool) -> Self {
        let name = object.name().as_str();
        let share = |field: &str| {
            let value = object.spec().get(field).filter(|value: &&Value| !value.is_null())?;
            Some(IntOrPercent::from_value(value).ok())
        };
        match (share("maxUnavailable"), share("minAvailable")) {
            (Some(_), _) | (_, Some(Some(IntOrPercent::Percent(_)))) if is_pick_all => {
                Self::NotForPickAll { name }
            }
            (Some(Some(share)), _) => Self::MaxUnavailable { name, share },
            (None, Some(Some(share))) => Self::MinAvailable { name, share },
            _ => Self::Unset { name },
        }
    }

    pub fn name(&self) -> &'w str {
        match self {
            Self::MaxUnavailable { name, .. }
            | Self::MinAvailable { name, .. }
            | Self::Unset { name }
            | Self::NotForPickAll { name } => name,
        }
    }
}
