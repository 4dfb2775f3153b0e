//! Horizontal autoscalers: bounds, what is scaled, by which metrics, and how fast.

mod columns;
mod defaults;

use convoy_api::text::{Name, Quantity};
use serde_json::Value;

use super::at::{At, Errors};
use super::kind::{Change, Kind};
use super::pod::amount;
use crate::column::Column;
use crate::convert::to_stored;
use crate::metadata::path_segment;
use crate::registry::Resource;

/// The sources of metrics, each with the field that describes it, in the order they are read.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const KINDS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const WINDOW_SECS_MAX: i64 = 3_600;
const PERIOD_SECS_MAX: i64 = 1_800;

/// One in its newest version, whatever version it was sent in.
pub(super) fn validate(object: &Value, old: Option<&Value>) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    bounds(&spec, &mut errors);
    let target = spec.get("scaleTargetRef");
    reference(&target, &mut errors);
    let had = old.map(|old| &old["spec"]["scaleTargetRef"]["apiVersion"]);
    if had != Some(target.get("apiVersion").value) {
        group(&target, &mut errors);
    }
    let metrics = spec.get("metrics").items();
    for metric in &metrics {
        self::metric(metric, &mut errors);
    }
    let from_outside = |metric: &At<'_>| matches!(metric.get("type").text(), "Object" | "External");
    if spec.get("minReplicas").integer() == Some(0) && !metrics.iter().any(from_outside) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(spec.get("metrics").forbidden(detail));
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = spec.get("behavior").get(direction);
        if !rules.is_absent() {
            pace(&rules, &mut errors);
        }
    }
    errors
}

/// What its controller reports.
pub(super) fn status(object: &Value) -> Errors {
    let mut errors = Errors::new();
    for field in ["currentReplicas", "desiredReplicas"] {
        At::root(object).get("status").get(field).not_negative(&mut errors);
    }
    errors
}

fn bounds(spec: &At<'_>, errors: &mut Errors) {
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    if least.integer().is_some_and(|count| count < 1) {
        errors.push(least.invalid("must be greater than or equal to 1"));
    }
    match most.integer().unwrap_or(0) {
        0 => errors.push(most.required("must be set and greater than 0")),
        count if count < 0 => errors.push(most.invalid("must be greater than or equal to 1")),
        _ => {}
    }
    if least.integer().is_some_and(|least| most.integer().unwrap_or(0) < least) {
        let shown = most.integer().unwrap_or(0);
        errors.push(most.invalid_as(shown, "must be greater than or equal to `minReplicas`"));
    }
}

/// Another object, by kind and name.
fn reference(reference: &At<'_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let part = reference.get(field);
        if part.is_empty() {
            errors.push(part.required(""));
        } else {
            segment(&part, errors);
        }
    }
}

/// All that can be scaled is in a group, but for one.
fn group(target: &At<'_>, errors: &mut Errors) {
    let version = target.get("apiVersion");
    let text = version.text();
    if text.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {text}");
        errors.push(version.invalid(&detail));
    } else if !text.contains('/') && target.get("kind").text() != "ReplicationController" {
        errors.push(version.invalid_as(text, "apiVersion must specify API group"));
    }
}

fn segment(part: &At<'_>, errors: &mut Errors) {
    let details = path_segment(part.text());
    errors.extend(details.iter().map(|detail| part.invalid(detail)));
}

fn metric(metric: &At<'_>, errors: &mut Errors) {
    let kind = metric.get("type");
    if kind.text().is_empty() {
        errors.push(kind.required("must specify a metric source type"));
    }
    let is_known = KINDS.contains(&kind.text());
    if !is_known {
        errors.push(kind.unsupported(&KINDS));
    }
    let present = || SOURCES.iter().filter(|(_, field)| !metric.get(field).is_absent());
    if let Some((source, field)) = present().next() {
        source_rules(source, &metric.get(field), errors);
    }
    if !is_known {
        errors.push(kind.unsupported(&KINDS));
    }
    let expected = SOURCES.iter().find(|(source, _)| *source == kind.text());
    if let Some((_, field)) = expected
        && metric.get(field).is_absent()
    {
        let detail = "must populate information for the given metric source";
        errors.push(metric.get(field).required(detail));
    }
    if present().count() > 1 {
        for (_, field) in present().filter(|source| Some(*source) != expected) {
            let detail = "must populate the given metric source only";
            errors.push(metric.get(field).forbidden(detail));
        }
    }
}

fn source_rules(kind: &str, source: &At<'_>, errors: &mut Errors) {
    match kind {
        "Object" => {
            reference(&source.get("describedObject"), errors);
            named_metric(source, errors);
            target(source, errors);
            let detail = "must set either a target value or averageValue";
            either(source, ["value", "averageValue"], (detail, ""), errors);
        }
        "External" => {
            named_metric(source, errors);
            target(source, errors);
            let none = "must set either a target value for metric or a per-pod target";
            let both = "may not set both a target value for metric and a per-pod target";
            either(source, ["value", "averageValue"], (none, both), errors);
        }
        "Pods" => {
            named_metric(source, errors);
            target(source, errors);
            let average = source.get("target").get("averageValue");
            if average.is_absent() {
                errors.push(average.required("must specify a positive target averageValue"));
            }
        }
        _ => {
            if source.get("name").is_empty() {
                errors.push(source.get("name").required("must specify a resource name"));
            }
            if kind == "ContainerResource" {
                let container = source.get("container");
                if container.is_empty() {
                    errors.push(container.required("must specify a container"));
                }
                container.name(Name::Dns1123Label, errors);
            }
            target(source, errors);
            let none = "must set either a target raw value or a target utilization";
            let both = "may not set both a target raw value and a target utilization";
            either(source, ["averageValue", "averageUtilization"], (none, both), errors);
        }
    }
}

fn named_metric(source: &At<'_>, errors: &mut Errors) {
    let name = source.get("metric").get("name");
    if name.is_empty() {
        errors.push(name.required("must specify a metric name"));
    } else {
        segment(&name, errors);
    }
}

fn target(source: &At<'_>, errors: &mut Errors) {
    let target = source.get("target");
    let kind = target.get("type");
    if kind.text().is_empty() {
        errors.push(kind.required("must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind.text()) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(kind.invalid_as(kind.text(), detail));
    }
    for field in ["value", "averageValue"] {
        let value = target.get(field);
        if amount(value.value).is_some_and(|amount| amount <= Quantity::ZERO) {
            errors.push(value.invalid("must be positive"));
        }
    }
    let share = target.get("averageUtilization");
    if share.integer().is_some_and(|share| share < 1) {
        errors.push(share.invalid("must be greater than 0"));
    }
}

/// One of two ways to say how much; `both` is empty where both may be given. Complaints about
/// both stand at the first, those about neither at the last.
fn either(source: &At<'_>, fields: [&str; 2], (none, both): (&str, &str), errors: &mut Errors) {
    let [first, last] = fields.map(|field| source.get("target").get(field));
    match (first.is_absent(), last.is_absent()) {
        (true, true) => errors.push(last.required(none)),
        (false, false) if !both.is_empty() => errors.push(first.forbidden(both)),
        _ => {}
    }
}

/// How fast it scales in one direction.
fn pace(rules: &At<'_>, errors: &mut Errors) {
    let window = rules.get("stabilizationWindowSeconds");
    match window.integer() {
        Some(..0) => errors.push(window.invalid("must be greater than or equal to zero")),
        Some(seconds) => at_most(&window, seconds, WINDOW_SECS_MAX, errors),
        None => {}
    }
    rules.get("selectPolicy").one_of_if_given(&["Disabled", "Max", "Min"], errors);
    let policies = rules.get("policies");
    if policies.is_empty() {
        errors.push(policies.required("must specify at least one Policy"));
    }
    for policy in policies.items() {
        let kind = policy.get("type");
        if !["Percent", "Pods"].contains(&kind.text()) {
            errors.push(kind.unsupported(&["Percent", "Pods"]));
        }
        for field in ["value", "periodSeconds"] {
            let number = policy.get(field);
            match number.integer().unwrap_or(0) {
                ..=0 => errors.push(number.invalid("must be greater than zero")),
                seconds if field == "periodSeconds" => {
                    at_most(&number, seconds, PERIOD_SECS_MAX, errors);
                }
                _ => {}
            }
        }
    }
    let tolerance = rules.get("tolerance");
    if amount(tolerance.value).is_some_and(|amount| amount < Quantity::ZERO) {
        errors.push(tolerance.invalid("must be greater than or equal to 0"));
    }
}

fn at_most(at: &At<'_>, number: i64, most: i64, errors: &mut Errors) {
    if number > most {
        errors.push(at.invalid(&format!("must be less than or equal to {most}")));
    }
}

pub(super) struct Autoscaler;

impl Kind for Autoscaler {
    fn default(&self, resource: &Resource, object: &mut Value) {
        defaults::autoscaler(&resource.version, object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        let Change { resource, object, old, .. } = *change;
        if resource.version != "v1" {
            return validate(object, old);
        }
        let newest = |object: &Value| {
            let mut newest = object.clone();
            to_stored(resource, &mut newest);
            newest
        };
        validate(&newest(object), old.map(newest).as_ref())
    }

    fn validate_status(&self, change: &Change<'_>) -> Errors {
        status(change.object)
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(spec: &Value) -> Vec<String> {
        let errors = validate(&json!({"spec": spec}), None);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn autoscalers_have_bounds_and_a_target() {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let sound = json!({"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": target});
        assert!(texts(&sound).is_empty());
        let bad = json!({"minReplicas": 4, "maxReplicas": 3, "scaleTargetRef": {}});
        assert_eq!(texts(&bad).len(), 4);
        let old = json!({"kind": "ReplicationController", "name": "web", "apiVersion": "v1"});
        assert!(texts(&json!({"maxReplicas": 3, "scaleTargetRef": old})).is_empty());
    }

    #[test]
    fn a_metric_has_the_source_that_it_names_and_no_other() {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let pods = json!({"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}});
        let cpu =
            json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}});
        let of = |metric: Value| {
            texts(&json!({"maxReplicas": 3, "scaleTargetRef": target, "metrics": [metric]}))
        };
        assert!(of(json!({"type": "Pods", "pods": pods})).is_empty());
        assert_eq!(
            of(json!({"type": "Resource", "resource": cpu, "pods": pods})),
            ["spec.metrics[0].pods: Forbidden: must populate the given metric source only"]
        );
        assert_eq!(
            of(json!({"type": "Resource", "pods": pods})),
            [
                "spec.metrics[0].resource: Required value: must populate information for the given metric source"
            ]
        );
    }
}
