//! Tables: what `kubectl get` shows, printed by the server.
//!
//! Which columns a built-in kind has is said beside the kind, and a definition says it of its own.

mod custom;
mod subresource;

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::column::{Column, Row};
use crate::convert;
use crate::kinds::{self, Kind};
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::response::partial;
use crate::status::{ApiResult, Status};

use custom::CustomColumn;

/// The columns of a table.
enum Columns<'r> {
    /// Those of a built-in kind.
    Kind(&'static dyn Kind),
    /// Those of a sub-resource's answer.
    Subresource(&'static [Column]),
    Custom(Vec<CustomColumn<'r>>),
}

/// Objects as rows; the columns are named only where the client does not know them yet.
pub fn of(request: &ResourceRequest, objects: &[Value], with_columns: bool) -> ApiResult<Value> {
    let columns = match objects.first() {
        Some(object) => columns_of(&request.resource, object).ok_or_else(Status::not_acceptable)?,
        None => resource_columns(&request.resource).ok_or_else(Status::not_acceptable)?,
    };
    let include = request.query.get("includeObject").filter(|include| !include.is_empty());
    if let Some(unknown) = include.filter(|one| !["Metadata", "Object", "None"].contains(one)) {
        return Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {unknown:?}: must be 'Metadata', 'Object', 'None', or empty"
        )));
    }
    let now = request.server.now();
    let siblings = printed(&request.resource, objects);
    let rows: Vec<Value> = objects
        .iter()
        .zip(&*siblings)
        .map(|(object, printed)| {
            let shown = match include {
                Some("None") => Value::Null,
                Some("Object") => object.clone(),
                _ => partial(object),
            };
            row(&columns, &Row { object: printed, siblings: &siblings, now }, shown)
        })
        .collect();
    Ok(json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": with_columns.then(|| columns.definitions()), "rows": rows,
    }))
}

/// The marker of a watch, as a table of one row.
pub fn bookmark(object: &Value) -> Value {
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
        "columnDefinitions": null, "rows": [{"cells": [], "object": object}],
    })
}

/// Objects in the one version that cells are made from.
fn printed<'o>(resource: &Resource, objects: &'o [Value]) -> Cow<'o, [Value]> {
    if resource.custom.is_some() || !convert::differs_from_stored(resource) {
        return Cow::Borrowed(objects);
    }
    let mut objects = objects.to_vec();
    for object in &mut objects {
        convert::to_stored(resource, object);
    }
    Cow::Owned(objects)
}

fn row(columns: &Columns<'_>, row: &Row<'_>, shown: Value) -> Value {
    let mut value = json!({"cells": columns.cells(row)});
    if let Some(conditions) = columns.conditions(row.object) {
        value["conditions"] = conditions;
    }
    value["object"] = shown;
    value
}

/// The columns of an object that a request at a resource shows: the resource's own kind, or
/// what one of its sub-resources gives. None for kinds that are never printed.
fn columns_of<'r>(resource: &'r Resource, object: &Value) -> Option<Columns<'r>> {
    match object["kind"].as_str() {
        Some(kind) if kind != resource.kind => subresource::columns(kind).map(Columns::Subresource),
        _ => resource_columns(resource),
    }
}

fn resource_columns(resource: &Resource) -> Option<Columns<'_>> {
    match &resource.custom {
        Some(custom) => Some(Columns::Custom(custom::columns(&custom.columns))),
        // Reviews and bindings are answers to a question; there is nothing to list.
        None if !resource.has_verb("get") => None,
        None => Some(Columns::Kind(kinds::of(resource))),
    }
}

impl Columns<'_> {
    fn definitions(&self) -> Value {
        match self {
            Self::Kind(kind) => kind.columns().iter().map(Column::definition).collect(),
            Self::Subresource(columns) => columns.iter().map(Column::definition).collect(),
            Self::Custom(columns) => columns.iter().map(CustomColumn::definition).collect(),
        }
    }

    fn cells(&self, row: &Row<'_>) -> Vec<Value> {
        match self {
            Self::Kind(kind) => kind.columns().iter().map(|column| column.cell(row)).collect(),
            Self::Subresource(columns) => columns.iter().map(|column| column.cell(row)).collect(),
            Self::Custom(columns) => columns.iter().map(|column| column.cell(row)).collect(),
        }
    }

    /// What a row says about its object besides the cells.
    fn conditions(&self, object: &Value) -> Option<Value> {
        match self {
            Self::Kind(kind) => kind.row_conditions(object),
            Self::Subresource(_) | Self::Custom(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
