//! Events, in both spellings. The newer one asks for more.

mod columns;

use convoy_api::schema::FieldError;
use convoy_api::text::Name;
use serde_json::{Value, json};

use super::at::{At, Errors};
use super::kind::{Change, Dependents, Kind};
use crate::column::Column;

const TEXT_MAX: usize = 128;
const NOTE_MAX: usize = 1024;

/// Names of the fields that the two spellings call differently.
struct Spelling {
    regarding: &'static str,
    controller: &'static str,
    note: &'static str,
    is_new: bool,
}

const OLD: Spelling = Spelling {
    regarding: "involvedObject",
    controller: "reportingComponent",
    note: "message",
    is_new: false,
};
const NEW: Spelling = Spelling {
    regarding: "regarding",
    controller: "reportingController",
    note: "note",
    is_new: true,
};

pub(super) fn validate(group: &str, object: &Value, old: Option<&Value>) -> Errors {
    let spelling = if group.is_empty() { OLD } else { NEW };
    let root = At::root(object);
    let mut errors = Errors::new();
    common(&root, &spelling, &mut errors);
    if !spelling.is_new {
        return errors;
    }
    match old {
        None => fresh(&root, &mut errors),
        Some(old) => changed(&root, &At::root(old), &mut errors),
    }
    errors
}

/// The object may have no namespace; the event has.
fn common(root: &At<'_>, spelling: &Spelling, errors: &mut Errors) {
    let namespace = root.get("metadata.namespace").text();
    let about = root.get(spelling.regarding).get("namespace");
    let elsewhere = At::new("involvedObject.namespace", about.value);
    let mismatch = |errors: &mut Errors| {
        errors.push(elsewhere.invalid_as(about.text(), "does not match event.namespace"));
    };
    if root.get("eventTime").is_absent() {
        let expected = if about.text().is_empty() { "default" } else { about.text() };
        if namespace != expected {
            mismatch(errors);
        }
        return;
    }
    if about.text().is_empty() && !matches!(namespace, "default" | "kube-system") {
        mismatch(errors);
    }
    let controller = root.get(spelling.controller);
    if controller.text().is_empty() {
        errors.push(controller.required(""));
    }
    for detail in Name::QualifiedName.errors(controller.text()) {
        errors.push(controller.invalid_as(controller.text(), &detail));
    }
    for field in ["reportingInstance", "action", "reason"] {
        let text = root.get(field);
        if text.text().is_empty() {
            errors.push(text.required(""));
        }
        at_most(&text, TEXT_MAX, errors);
    }
    at_most(&At::new("message", root.get(spelling.note).value), NOTE_MAX, errors);
}

fn at_most(text: &At<'_>, most: usize, errors: &mut Errors) {
    if text.text().len() > most {
        errors.push(text.invalid_as("", &format!("can have at most {most} characters")));
    }
}

fn fresh(root: &At<'_>, errors: &mut Errors) {
    series(root, errors);
    if root.get("eventTime").is_absent() {
        errors.push(root.get("eventTime").required(""));
    }
    let kind = root.get("type").text();
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", &json!(""), &format!("has invalid value: {kind}")));
    }
    for (field, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ] {
        let given = root.get(field);
        if !given.is_absent() && given.integer() != Some(0) {
            errors.push(FieldError::invalid(shown, &json!(""), "needs to be unset"));
        }
    }
    let source = root.get("deprecatedSource");
    if !source.get("component").is_empty() || !source.get("host").is_empty() {
        errors.push(FieldError::invalid("source", &json!(""), "needs to be unset"));
    }
}

/// A series counts on; the rest of an event is history.
fn changed(root: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    if root.get("series").value != old.get("series").value {
        series(root, errors);
    }
    for (field, shown) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let new = At::new(shown, root.get(field).value);
        new.immutable(&old.get(field), errors);
    }
}

fn series(root: &At<'_>, errors: &mut Errors) {
    let series = root.get("series");
    if series.is_absent() {
        return;
    }
    if series.get("count").integer().unwrap_or(0) < 2 {
        errors.push(series.get("count").invalid_as("", "should be at least 2"));
    }
    if series.get("lastObservedTime").is_absent() {
        errors.push(series.get("lastObservedTime").required(""));
    }
}

pub(super) struct CoreEvent;

impl Kind for CoreEvent {
    fn validate(&self, change: &Change<'_>) -> Errors {
        validate("", change.object, change.old)
    }

    fn dependents(&self) -> Dependents {
        Dependents::None
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ]
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }

    /// Who reported an event: newer ones name their controller alone.
    fn field_sources(&self, field: &str) -> &'static [&'static str] {
        match field {
            "source" => &["source.component", "reportingComponent"],
            _ => &[],
        }
    }
}

/// The same in its newer spelling.
pub(super) struct Event;

impl Kind for Event {
    fn validate(&self, change: &Change<'_>) -> Errors {
        validate("events.k8s.io", change.object, change.old)
    }

    fn dependents(&self) -> Dependents {
        Dependents::None
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ]
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_event() -> Value {
        json!({"metadata": {"namespace": "default"}, "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "example.com/c", "reportingInstance": "c-0", "action": "Do",
            "reason": "Done", "type": "Normal", "regarding": {"namespace": "default"}})
    }

    #[test]
    fn the_newer_spelling_asks_for_more() {
        assert!(validate("events.k8s.io", &new_event(), None).is_empty());
        for field in
            ["eventTime", "reportingController", "reportingInstance", "action", "reason", "type"]
        {
            let mut event = new_event();
            event.as_object_mut().unwrap().remove(field);
            assert!(!validate("events.k8s.io", &event, None).is_empty(), "{field}");
        }
        let mut long = new_event();
        long["note"] = json!("x".repeat(1025));
        assert_eq!(
            validate("events.k8s.io", &long, None)[0].to_string(),
            "message: Invalid value: \"\": can have at most 1024 characters"
        );
    }

    #[test]
    fn an_event_is_where_its_object_is() {
        let event = |own: &str, about: &str| json!({"metadata": {"namespace": own}, "involvedObject": {"namespace": about}});
        for (own, about, sound) in
            [("a", "a", true), ("default", "", true), ("a", "", false), ("a", "b", false)]
        {
            assert_eq!(validate("", &event(own, about), None).is_empty(), sound, "{own} {about}");
        }
    }

    #[test]
    fn history_does_not_change() {
        let old = new_event();
        let mut new = new_event();
        new["series"] = json!({"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"});
        assert!(validate("events.k8s.io", &new, Some(&old)).is_empty());
        new["reason"] = json!("Other");
        assert_eq!(validate("events.k8s.io", &new, Some(&old)).len(), 1);
    }
}
