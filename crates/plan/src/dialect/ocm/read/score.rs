//! Scores that add-ons publish in a cluster's namespace.

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::{Value, json};

/// From when on the scores of `published` count as 0; absent means never.
pub(crate) fn valid_until(published: &Object) -> Option<Timestamp> {
    timestamp(published.status().get("validUntil"))
}

/// One score of `published`; 0 where it is missing.
pub(crate) fn value(published: &Object, score: &str) -> i64 {
    let entry = entries(published).iter().find(|entry| text(entry, "name") == score);
    entry.and_then(|entry| field(entry, "value").as_i64()).unwrap_or(0)
}

/// All scores of `published`, as expressions see them.
pub(crate) fn values(published: &Object) -> Value {
    let value =
        |entry: &Value| json!({"name": field(entry, "name"), "value": field(entry, "value")});
    entries(published).iter().map(value).collect()
}

fn entries(published: &Object) -> &[Value] {
    list(published.status(), "scores")
}
