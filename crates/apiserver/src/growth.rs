//! Bounds on objects while they are worked on: what defaults, patches, applied configurations and
//! conversions make of a small request. `most` is what one object may have, in bytes.

use convoy_api::size::{SizeBudget, TooLarge};
use serde_json::Value;

use crate::custom::Custom;
use crate::registry::Resource;
use crate::status::{ApiResult, Status};

/// An object may be so many times as large as one that is stored while it is worked on: its
/// managed fields are dropped if it does not fit with them.
const WHILE_WORKED_ON: usize = 2;

/// What the defaults of a built-in kind add to one object in a spec: an empty container gets
/// about 120 bytes.
const DEFAULTS_PER_OBJECT: usize = 128;

/// What defaults and conversions may add to all objects that one request reads.
const READ_GROWTH_MAX: usize = 64 << 20;

/// What the objects that a request reads may still grow by.
pub(crate) fn of_reads() -> SizeBudget {
    SizeBudget::new(READ_GROWTH_MAX)
}

/// What an object of a write may still grow by; refuses one that is too large as it is.
pub(crate) fn budget(most: usize, object: &Value) -> ApiResult<SizeBudget> {
    SizeBudget::beside(WHILE_WORKED_ON * most, object).map_err(|error| refusal(most, error))
}

/// Refuses an object of a write that is too large to be worked on.
pub(crate) fn check(most: usize, object: &Value) -> ApiResult<()> {
    budget(most, object).map(drop)
}

/// Refuses an object of a built-in kind whose defaults would make it too large. The defaults of
/// these kinds are code, so what they add is estimated by the objects in the spec.
pub(crate) fn check_before_defaults(
    most: usize,
    resource: &Resource,
    object: &Value,
) -> ApiResult<()> {
    let mut budget = budget(most, object)?;
    if !matches!(resource.group.as_str(), "" | "apps" | "batch") {
        return Ok(());
    }
    charge_objects(&object["spec"], &mut budget).map_err(|error| refusal(most, error))
}

fn charge_objects(value: &Value, budget: &mut SizeBudget) -> Result<(), TooLarge> {
    match value {
        Value::Object(fields) => {
            budget.charge(DEFAULTS_PER_OBJECT)?;
            fields.values().try_for_each(|value| charge_objects(value, budget))
        }
        Value::Array(items) => items.iter().try_for_each(|item| charge_objects(item, budget)),
        _ => Ok(()),
    }
}

/// Drops unknown fields from an object of a write and fills in the defaults of its schema.
pub(crate) fn default(most: usize, custom: &Custom, object: &mut Value) -> ApiResult<()> {
    custom.form.schema.prune(object);
    let mut budget = budget(most, object)?;
    let filled = custom.form.schema.default_within(object, &mut budget);
    filled.map_err(|error| refusal(most, error))
}

/// Fills in defaults of an object that was read; false if they would make it, or all objects of
/// the request, too large, and some are missing.
pub(crate) fn default_read(
    most: usize,
    all: &mut SizeBudget,
    custom: &Custom,
    object: &mut Value,
) -> bool {
    let left = all.limit() - all.used();
    let mut budget = SizeBudget::new((WHILE_WORKED_ON * most).min(left));
    let is_filled = custom.form.schema.default_within(object, &mut budget).is_ok();
    // What one object may grow by is within what is left for all of them.
    is_filled && all.charge(budget.used()).is_ok()
}

pub(crate) fn refusal(most: usize, error: TooLarge) -> Box<Status> {
    Status::grown_too_large(most, error.wanted)
}

#[cfg(test)]
mod tests;
