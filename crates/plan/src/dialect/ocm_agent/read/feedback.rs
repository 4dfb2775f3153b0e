//! Status feedback: values of an object that its work asks for.

use convoy_api::Object;
use convoy_api::json_path::JsonPath;
use convoy_api::object::member::{list, text};
use serde_json::{Value, json};

use crate::dialect::ocm_agent::Options;
use crate::hash::content::sorted;

/// What the rules of a manifest give.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Feedback {
    /// In the order of the rules, as they are reported.
    pub(crate) values: Vec<Value>,
    /// Why some are missing.
    pub(crate) errors: Vec<String>,
}

/// Names and paths of a kind's well-known status.
type WellKnown = &'static [(&'static str, &'static str)];

/// By apiVersion and kind.
const WELL_KNOWN: [(&str, &str, WellKnown); 4] = [
    (
        "apps/v1",
        "Deployment",
        &[
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ],
    ),
    (
        "apps/v1",
        "DaemonSet",
        &[
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
        ],
    ),
    (
        "batch/v1",
        "Job",
        &[
            ("JobComplete", r#".status.conditions[?(@.type=="Complete")].status"#),
            ("JobSucceeded", ".status.succeeded"),
        ],
    ),
    (
        "v1",
        "Pod",
        &[
            ("PodReady", r#".status.conditions[?(@.type=="Ready")].status"#),
            ("PodPhase", ".status.phase"),
        ],
    ),
];

/// The values that rules ask for. A rule that fails keeps no other from being reported.
pub(crate) fn feedback(live: &Object, rules: &[Value], options: &Options) -> Feedback {
    let mut found = Feedback::default();
    for rule in rules {
        match text(rule, "type") {
            "WellKnownStatus" => match well_known(live) {
                Some(paths) => {
                    for (name, path) in paths {
                        found.add(name, path, live, options);
                    }
                }
                None => found.errors.push(format!(
                    "cannot find the wellknown statuses for resource with gvk {}, Kind={}",
                    live.api_version(),
                    live.kind().kind
                )),
            },
            "JSONPaths" => {
                for path in list(rule, "jsonPaths") {
                    let (name, version) = (text(path, "name"), text(path, "version"));
                    if version.is_empty() || version == live.version() {
                        found.add(name, text(path, "path"), live, options);
                    } else {
                        found.errors.push(format!(
                            "version set in the path {name} is not matched for the related resource"
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

fn well_known(live: &Object) -> Option<WellKnown> {
    let (version, kind) = (live.api_version(), live.kind().kind.as_str());
    let known = WELL_KNOWN.iter().find(|(of, name, _)| *of == version && *name == kind);
    known.map(|(_, _, paths)| *paths)
}

impl Feedback {
    fn add(&mut self, name: &str, path: &str, live: &Object, options: &Options) {
        match value(name, path, live, options) {
            Ok(Some(value)) => self.values.push(json!({"name": name, "fieldValue": value})),
            Ok(None) => {}
            Err(why) => self.errors.push(why),
        }
    }

    /// As one message.
    pub(crate) fn problem(&self) -> Option<String> {
        let errors = match self.errors.as_slice() {
            [] => return None,
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Some(format!("Sync status feedback failed with error {errors}"))
    }
}

/// The value that a path leads to; none where it leads nowhere.
fn value(
    name: &str,
    path: &str,
    live: &Object,
    options: &Options,
) -> Result<Option<Value>, String> {
    let read = JsonPath::parse(&format!("{{{path}}}")).map_err(|error| {
        format!("failed to parse json path {path} of {name} with error: {error}")
    })?;
    let found = read.find(live.raw()).ok_or_else(|| {
        format!("failed to find value for {name} with error: {path} does not fit the object")
    })?;
    let raw = options.features.raw_feedback_json_string;
    let value = match found.as_slice() {
        [] => return Ok(None),
        [one] => (*one).clone(),
        [first, ..] if !raw => (*first).clone(),
        several => json!(several),
    };
    match &value {
        Value::Null => Ok(None),
        Value::Bool(boolean) => Ok(Some(json!({"type": "Boolean", "boolean": boolean}))),
        Value::String(string) => Ok(Some(json!({"type": "String", "string": string}))),
        Value::Number(number) if number.is_i64() => {
            Ok(Some(json!({"type": "Integer", "integer": number})))
        }
        _ if !raw => Err(format!(
            "the type {} of the value for {name} is not found; the feature RawFeedbackJsonString \
             reports it as JSON",
            convoy_api::object::shape(&value)
        )),
        _ => {
            let (text, most) = (sorted(&value).to_string(), options.max_json_raw_length);
            if text.len() > most {
                return Err(format!(
                    "the length of returned json raw string for name {name} is larger than the \
                     maximum length {most}"
                ));
            }
            Ok(Some(json!({"type": "JsonRaw", "jsonRaw": text})))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Object {
        Object::from_value(json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"},
            "status": {"readyReplicas": 1, "replicas": 2, "availableReplicas": 1, "share": 0.5,
                "conditions": [{"type": "Available", "status": "True", "z": null}, {"type": "B"}]}}))
        .unwrap()
    }

    fn names(found: &Feedback) -> Vec<&str> {
        found.values.iter().map(|value| text(value, "name")).collect()
    }

    #[test]
    fn well_known_values_come_in_their_order() {
        let options = Options::new("eu", "https://hub");
        let rules = [json!({"type": "WellKnownStatus"})];
        let found = feedback(&deployment(), &rules, &options);
        assert_eq!(names(&found), ["ReadyReplicas", "Replicas", "AvailableReplicas"]);
        assert_eq!(found.values[1]["fieldValue"], json!({"type": "Integer", "integer": 2}));
        assert_eq!(found.problem(), None);
        let raw = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        let found = feedback(&Object::from_value(raw).unwrap(), &rules, &options);
        assert!(found.problem().unwrap().contains("v1, Kind=Secret"));
    }

    #[test]
    fn a_rule_that_fails_keeps_no_other_from_being_reported() {
        let mut options = Options::new("eu", "https://hub");
        let paths = json!([
            {"name": "ready", "path": ".status.readyReplicas"},
            {"name": "all", "path": ".status.conditions"},
            {"name": "types", "path": ".status.conditions[*].type"},
            {"name": "old", "path": ".status.replicas", "version": "v1beta1"},
            {"name": "absent", "path": ".status.nothing.here"},
            {"name": "broken", "path": ".status["},
        ]);
        let rules = [json!({"type": "JSONPaths", "jsonPaths": paths})];
        let found = feedback(&deployment(), &rules, &options);
        assert_eq!(names(&found), ["ready", "types"]);
        assert_eq!(found.errors.len(), 3, "{:?}", found.errors);
        assert_eq!(found.values[1]["fieldValue"]["string"], "Available", "only the first");
        options.features.raw_feedback_json_string = true;
        let found = feedback(&deployment(), &rules, &options);
        assert_eq!(names(&found), ["ready", "all", "types"]);
        let raw = |at: usize| found.values[at]["fieldValue"]["jsonRaw"].as_str().unwrap();
        assert_eq!(
            raw(1),
            r#"[{"status":"True","type":"Available","z":null},{"type":"B"}]"#,
            "keys are sorted, nulls stay"
        );
        assert_eq!(raw(2), r#"["Available","B"]"#);
        options.max_json_raw_length = 10;
        assert_eq!(feedback(&deployment(), &rules, &options).errors.len(), 4);
    }
}
