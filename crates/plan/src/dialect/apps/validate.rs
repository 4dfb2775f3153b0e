//! What a Kubernetes API server refuses about Deployments and ReplicaSets, in its words, so
//! that people and tools recognise them.

use convoy_api::apps::shape::Misfit;
use convoy_api::apps::{DEPLOYMENT, annotation, defaults, shape};
use convoy_api::object::Object;
use serde_json::Value;

use crate::budget::IntOrPercent;
use crate::diagnostic::Diagnostic;
use crate::pod_template;
use crate::selector::Selector;
use crate::validation::findings::{Findings, NOT_NEGATIVE};
use crate::validation::mending::{self, Mistyped};
use crate::validation::{self, metadata};

/// Everything that is wrong with a Deployment or a ReplicaSet.
pub(super) fn findings(object: &Object) -> Vec<Diagnostic> {
    let known = if *object.kind() == DEPLOYMENT { "v1.Deployment" } else { "v1.ReplicaSet" };
    let misfits = shape::misfits(object.raw(), known);
    let mut findings = Findings::new(object);
    for unknown in misfits.unknown {
        findings.warn(&unknown.field, unknown.message());
    }
    let mistyped = misfits.errors.iter().map(|misfit| {
        let Misfit { field, wants_text, .. } = misfit;
        Mistyped { field: field.clone(), wants_text: *wants_text, meant: None }
    });
    let mistyped: Vec<Mistyped> = mistyped.collect();
    let unreadable: Vec<String> = mistyped.iter().map(|it| it.field.clone()).collect();
    for misfit in misfits.errors {
        findings.error(&misfit.field, misfit.message);
    }
    let mut found = findings.finish();
    found.extend(validation::beside(&unreadable, rules(&mending::mended(object, &mistyped))));
    found
}

/// What is wrong with values whose types are right.
fn rules(object: &Object) -> Vec<Diagnostic> {
    let deployment = *object.kind() == DEPLOYMENT;
    let mut findings = Findings::new(object);
    if object.version() != "v1" {
        let message =
            format!("Unsupported value: {:?}: supported values: \"apps/v1\"", object.api_version());
        findings.error("apiVersion", message);
    }
    let stored = if deployment {
        defaults::deployment(object.raw())
    } else {
        defaults::replica_set(object.raw())
    };
    metadata::check(&mut findings, object);
    let spec = stored.get("spec").unwrap_or(&Value::Null);
    workload(&mut findings, spec);
    if deployment {
        strategy(&mut findings, spec);
        deadlines(&mut findings, spec);
        rollback(&mut findings, object);
    }
    findings.finish()
}

/// What both kinds have: a size, a selector and a template that belongs to it.
fn workload(findings: &mut Findings<'_>, spec: &Value) {
    findings.not_negative(spec.get("replicas"), "spec.replicas");
    findings.not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds");
    let template = spec.get("template").filter(|template| !template.is_null());
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    match selector {
        None => findings.required("spec.selector", ""),
        Some(given) => match Selector::from_value(given) {
            Err(error) => unsound_selector(findings, given, &error.field, &error.message),
            Ok(selector) if selector.is_empty() => {
                findings.invalid(
                    "spec.selector",
                    given,
                    "empty selector is invalid for deployment",
                );
            }
            Ok(selector) => {
                let labels = template.and_then(|template| template.pointer("/metadata/labels"));
                let value = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
                if template.is_some() && !selector.matches_with(value) {
                    let given = labels.unwrap_or(&Value::Null);
                    let right = "`selector` does not match template `labels`";
                    findings.invalid("spec.template.metadata.labels", given, right);
                }
            }
        },
    }
    match template {
        None => findings.required("spec.template", ""),
        Some(template) => pod_template::check(findings, template, "spec.template"),
    }
}

/// The part of a selector that is wrong.
fn unsound_selector(findings: &mut Findings<'_>, given: &Value, part: &str, message: &str) {
    let field =
        if part.is_empty() { "spec.selector".to_owned() } else { format!("spec.selector.{part}") };
    if part.ends_with(".operator") {
        let pointer = format!("/{}", part.replace(['.', '['], "/").replace(']', ""));
        let value = given.pointer(&pointer).unwrap_or(&Value::Null);
        findings.invalid(&field, value, "not a valid selector operator");
    } else {
        findings.error(&field, format!("Invalid value: {message}"));
    }
}

fn strategy(findings: &mut Findings<'_>, spec: &Value) {
    let strategy = spec.get("strategy").unwrap_or(&Value::Null);
    let rolling = strategy.get("rollingUpdate").filter(|rolling| !rolling.is_null());
    let kind = strategy.get("type").and_then(Value::as_str).unwrap_or_default();
    match (kind, rolling) {
        ("Recreate", Some(_)) => findings.error(
            "spec.strategy.rollingUpdate",
            "Forbidden: may not be specified when strategy `type` is 'Recreate'".to_owned(),
        ),
        ("Recreate", None) => {}
        ("RollingUpdate", Some(rolling)) => rolling_update(findings, rolling),
        ("RollingUpdate", None) => findings.required("spec.strategy.rollingUpdate", ""),
        (other, _) => {
            findings.unsupported("spec.strategy.type", other, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn rolling_update(findings: &mut Findings<'_>, rolling: &Value) {
    let path = |field: &str| format!("spec.strategy.rollingUpdate.{field}");
    let mut read = |field: &str| {
        let value = rolling.get(field).unwrap_or(&Value::Null);
        match IntOrPercent::from_value(value) {
            Ok(IntOrPercent::Int(count)) if count < 0 => {
                findings.invalid(&path(field), value, NOT_NEGATIVE);
                None
            }
            Ok(share) => Some(share),
            Err(_) => {
                let right = "a valid percent string must be a numeric string followed by an \
                    ending '%' (e.g. '1%', or '93%', regex used for validation is '[0-9]+%')";
                findings.invalid(&path(field), value, right);
                None
            }
        }
    };
    let (surge, unavailable) = (read("maxSurge"), read("maxUnavailable"));
    let zero = |share| matches!(share, Some(IntOrPercent::Int(0) | IntOrPercent::Percent(0)));
    let value = rolling.get("maxUnavailable").unwrap_or(&Value::Null);
    if zero(surge) && zero(unavailable) {
        let right = "may not be 0 when `maxSurge` is 0";
        findings.invalid(&path("maxUnavailable"), value, right);
    }
    if matches!(unavailable, Some(IntOrPercent::Percent(101..))) {
        findings.invalid(&path("maxUnavailable"), value, "must not be greater than 100%");
    }
}

fn deadlines(findings: &mut Findings<'_>, spec: &Value) {
    findings.not_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit");
    let field = "spec.progressDeadlineSeconds";
    let deadline = spec.get("progressDeadlineSeconds").unwrap_or(&Value::Null);
    findings.not_negative(Some(deadline), field);
    let min_ready = spec.get("minReadySeconds").and_then(Value::as_i64).unwrap_or(0);
    if deadline.as_i64().is_some_and(|secs| secs <= min_ready) {
        findings.invalid(field, deadline, "must be greater than minReadySeconds");
    }
}

fn rollback(findings: &mut Findings<'_>, object: &Object) {
    let Some(asked) = object.annotation(annotation::ROLLBACK_TO).filter(|text| !text.is_empty())
    else {
        return;
    };
    let field = format!("metadata.annotations[{}]", annotation::ROLLBACK_TO);
    match asked.parse::<i64>() {
        Ok(revision) if revision >= 0 => {}
        Ok(_) => findings.invalid(&field, &Value::from(asked), NOT_NEGATIVE),
        Err(_) => findings.invalid(
            &field,
            &Value::from(asked),
            "must be a revision, 0 for the previous one",
        ),
    }
}

#[cfg(test)]
mod tests;
