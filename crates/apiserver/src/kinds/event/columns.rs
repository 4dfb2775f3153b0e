//! Events in a table, in their stored spelling.

use serde_json::{Value, json};

use crate::column::Cell::{Made, Text};
use crate::column::{Column, NAME, Row, age, string, wide};

pub(super) const COLUMNS: &[Column] = &[
    string("Last Seen", Made(last_seen)),
    string("Type", Text("/type", "")),
    string("Reason", Text("/reason", "")),
    string("Object", Made(object)),
    wide("Subobject", Text("/involvedObject/fieldPath", "")),
    wide("Source", Made(source)),
    string("Message", Made(message)),
    wide("First Seen", Made(first_seen)),
    wide("Count", Made(count)),
    Column { is_wide: true, ..NAME },
];

fn last_seen(row: &Row<'_>) -> Value {
    if row.object["series"].is_object() {
        return json!(row.age("/series/lastObservedTime"));
    }
    match row.text("/lastTimestamp") {
        "" => first_seen(row),
        last => json!(age(Some(last), row.now)),
    }
}

fn first_seen(row: &Row<'_>) -> Value {
    json!(match row.text("/firstTimestamp") {
        "" => row.age("/eventTime"),
        first => age(Some(first), row.now),
    })
}

fn object(row: &Row<'_>) -> Value {
    let kind = row.text("/involvedObject/kind").to_lowercase();
    let name = row.text("/involvedObject/name");
    json!(if name.is_empty() { kind } else { format!("{kind}/{name}") })
}

/// Who reported an event, and where.
fn source(row: &Row<'_>) -> Value {
    let component = row.text_or("/source/component", row.text("/reportingComponent"));
    let instance = row.text_or("/source/host", row.text("/reportingInstance"));
    json!(if instance.is_empty() { component } else { format!("{component}, {instance}") })
}

fn message(row: &Row<'_>) -> Value {
    json!(row.text("/message").trim())
}

fn count(row: &Row<'_>) -> Value {
    json!(if row.object["series"].is_object() {
        row.number("/series/count")
    } else {
        row.number("/count").max(1)
    })
}
