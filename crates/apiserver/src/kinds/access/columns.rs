//! Bindings of roles in a table.

use serde_json::{Value, json};

use crate::column::Cell::Made;
use crate::column::{AGE, Column, NAME, Row, plain, string, wide};

pub(super) const BINDING: &[Column] = &[
    NAME,
    string("Role", Made(role)),
    AGE,
    wide("Users", Made(bound_users)),
    wide("Groups", Made(bound_groups)),
    wide("ServiceAccounts", Made(bound_accounts)),
];

fn role(row: &Row<'_>) -> Value {
    let role = &row.object["roleRef"];
    json!(format!("{}/{}", plain(&role["kind"]), plain(&role["name"])))
}

fn bound_users(row: &Row<'_>) -> Value {
    subjects(row, "User")
}

fn bound_groups(row: &Row<'_>) -> Value {
    subjects(row, "Group")
}

fn bound_accounts(row: &Row<'_>) -> Value {
    subjects(row, "ServiceAccount")
}

fn subjects(row: &Row<'_>, kind: &str) -> Value {
    let names = row.items("/subjects").filter(|one| one["kind"] == kind).map(|one| match kind {
        "ServiceAccount" => format!("{}/{}", plain(&one["namespace"]), plain(&one["name"])),
        _ => plain(&one["name"]),
    });
    json!(names.collect::<Vec<_>>().join(", "))
}
