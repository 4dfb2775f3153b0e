//! Defaults. A field that is absent gets its default; one that is null where null is no value
//! gets it too, or goes away where there is none.

use serde_json::Value;

use super::node::Node;
use crate::size::{SizeBudget, TooLarge};

/// Drops nulls of fields that are not nullable and have no default.
pub(super) fn drop_nulls(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| match node.field(name) {
                Some(schema) => {
                    drop_nulls(schema, value);
                    !value.is_null() || schema.nullable || schema.default.is_some()
                }
                None => true,
            });
        }
        Value::Array(items) => {
            if let Some(schema) = &node.items {
                for item in items {
                    drop_nulls(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// Fills in defaults, below filled-in values too. Each is charged to `budget` before it is added:
/// a default of 4 KB in each of 100,000 items would take 400 MB.
pub(super) fn fill(
    node: &Node,
    value: &mut Value,
    budget: &mut SizeBudget,
) -> Result<(), TooLarge> {
    match value {
        Value::Object(fields) => {
            for (name, schema) in &node.properties {
                let Some(default) = &schema.default else { continue };
                let given = fields.get(name);
                if given.is_none_or(|given| given.is_null() && !schema.nullable) {
                    budget.charge_field(name, default)?;
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(schema) = node.field(name) {
                    fill_item(schema, value, budget)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &node.items {
                for item in items {
                    fill_item(schema, item, budget)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn fill_item(schema: &Node, value: &mut Value, budget: &mut SizeBudget) -> Result<(), TooLarge> {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        budget.charge_value(default)?;
        *value = default.clone();
    }
    fill(schema, value, budget)
}
