//! Rules that taint devices: when a taint was added, and what it may be.

use convoy_api::text::Name;
use serde_json::{Value, json};

use super::at::{At, Errors};
use super::kind::{Change, Kind, OWNERSHIP_ALONE};
use crate::column::Cell::{Made, Text};
use crate::column::{AGE, Column, NAME, Row, string};
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;
use crate::surroundings::seconds;

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// Notes when the taint got its effect, unless the client says.
pub(super) fn prepare(object: &mut Value, current: Option<&Value>, now: &str) {
    let Some(taint) = object.pointer_mut("/spec/taint").filter(|taint| taint.is_object()) else {
        return;
    };
    let before = current.map(|current| &current["spec"]["taint"]);
    let has_other_effect = before.is_some_and(|before| {
        before["effect"] != taint["effect"] && before["timeAdded"] == taint["timeAdded"]
    });
    if taint["timeAdded"].is_null() || has_other_effect {
        taint["timeAdded"] = json!(now);
    }
}

pub(super) fn rule(object: &Value, old: Option<&Value>) -> Errors {
    let taint = At::root(object).get("spec.taint");
    let mut errors = Errors::new();
    for detail in Name::QualifiedName.errors(taint.get("key").text()) {
        errors.push(taint.get("key").invalid_as(taint.get("key").text(), &detail));
    }
    taint.get("value").name(Name::LabelValue, &mut errors);
    let effect = taint.get("effect");
    if old.is_none_or(|old| old["spec"]["taint"]["effect"] != *effect.value) {
        effect.one_of(&EFFECTS, &mut errors);
    }
    errors
}

pub(super) struct TaintRule;

impl Kind for TaintRule {
    fn prepare_create(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        prepare(object, None, &seconds(request.server.now()));
        Ok(())
    }

    fn prepare_update(
        &self,
        request: &ResourceRequest,
        object: &mut Value,
        current: &Value,
    ) -> ApiResult<()> {
        prepare(object, Some(current), &seconds(request.server.now()));
        Ok(())
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        rule(change.object, change.old)
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }

    fn columns(&self) -> &'static [Column] {
        const {
            &[
                NAME,
                string("Key", Text("/spec/taint/key", "")),
                string("Value", Text("/spec/taint/value", "")),
                string("Effect", Text("/spec/taint/effect", "")),
                string("TimeAdded", Made(age)),
                AGE,
            ]
        }
    }
}

/// Empty for a taint that nobody has timed.
fn age(row: &Row<'_>) -> Value {
    let added = "/spec/taint/timeAdded";
    json!(if row.text(added).is_empty() { String::new() } else { row.age(added) })
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    use super::*;

    #[test]
    fn a_taint_knows_when_it_got_its_effect() {
        let test = TestServer::new();
        let path = "/apis/resource.k8s.io/v1/devicetaintrules";
        let taint = json!({"key": "example.com/broken", "effect": "None"});
        let rule = json!({"metadata": {"name": "r"}, "spec": {"taint": taint}});
        let made = test.create(path, &rule);
        assert_eq!(made["spec"]["taint"]["timeAdded"], "2026-01-01T00:00:00Z");
        assert_eq!(made["metadata"]["generation"], 1);
        test.advance_secs(60);
        let patch = |body: &Value| test.call("PATCH", &format!("{path}/r"), body).1;
        let other = patch(&json!({"spec": {"taint": {"value": "much"}}}));
        assert_eq!(other["spec"]["taint"]["timeAdded"], "2026-01-01T00:00:00Z");
        let other = patch(&json!({"spec": {"taint": {"effect": "NoExecute"}}}));
        assert_eq!(other["spec"]["taint"]["timeAdded"], "2026-01-01T00:01:00Z");
        assert_eq!(other["metadata"]["generation"], 3);
        let refused = patch(&json!({"spec": {"taint": {"key": "", "effect": "Some"}}}));
        assert_eq!(refused["details"]["causes"].as_array().map_or(0, Vec::len), 2, "{refused}");
    }
}
