//! Admission policies and their bindings in tables.

use serde_json::{Value, json};

use crate::column::Cell::{Count, Made, Text};
use crate::column::{AGE, Column, NAME, Row, integer, plain, selector, string};

pub(super) const POLICY: &[Column] = &[
    NAME,
    integer("Validations", Count(&["/spec/validations"])),
    string("ParamKind", Made(parameters)),
    AGE,
];

pub(super) const MUTATING_POLICY: &[Column] = &[
    NAME,
    integer("Mutations", Count(&["/spec/mutations"])),
    string("ParamKind", Made(parameters)),
    AGE,
];

pub(super) const BINDING: &[Column] = &[
    NAME,
    string("PolicyName", Text("/spec/policyName", "")),
    string("ParamRef", Made(bound_parameter)),
    AGE,
];

fn parameters(row: &Row<'_>) -> Value {
    let kind = &row.object["spec"]["paramKind"];
    if !kind.is_object() {
        return json!("<unset>");
    }
    json!(format!("{}/{}", plain(&kind["apiVersion"]), plain(&kind["kind"])))
}

fn bound_parameter(row: &Row<'_>) -> Value {
    let parameter = &row.object["spec"]["paramRef"];
    let (namespace, name) = (plain(&parameter["namespace"]), plain(&parameter["name"]));
    json!(match (namespace.is_empty(), name.is_empty()) {
        (false, false) => format!("{namespace}/{name}"),
        (true, false) => format!("*/{name}"),
        (_, true) if parameter["selector"].is_object() => selector::text(&parameter["selector"]),
        (_, true) => "<unset>".to_owned(),
    })
}
