//! Admission policies and what binds them.

use convoy_api::cel::{Declared, Type};
use convoy_api::text::Name;
use serde_json::{Value, json};

use super::at::{At, Errors};
use super::defaults;
use super::expression::{self, compiles, with_variables};
use super::kind::{Change, Kind, OWNERSHIP_ALONE};
use super::selector;
use super::webhook::{conditions_with, operation_rule};
use crate::registry::Resource;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

/// A `ValidatingAdmissionPolicy`.
pub(super) fn policy(object: &Value) -> Errors {
    let mut errors = Errors::new();
    let spec = At::root(object).get("spec");
    spec.get("failurePolicy").one_of_if_given(&["Fail", "Ignore"], &mut errors);
    let kind = spec.get("paramKind");
    if !kind.is_absent() {
        parameter_kind(&kind, &mut errors);
    }
    let known = expression::of_policies(!kind.is_absent());
    let constraints = spec.get("matchConstraints");
    if constraints.is_absent() {
        errors.push(constraints.required(""));
    } else {
        resources(&constraints, &mut errors);
        let rules = constraints.get("resourceRules");
        if rules.is_empty() {
            errors.push(rules.required(""));
        }
    }
    conditions_with(&spec.get("matchConditions"), &known, &mut errors);
    let known = variables(&spec.get("variables"), known, &mut errors);
    let (validations, notes) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && notes.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.extend([validations.required(detail), notes.required(detail)]);
    }
    for validation in validations.items() {
        self::validation(&validation, &known, &mut errors);
    }
    for note in notes.items() {
        let key = note.get("key");
        let whole =
            json!(format!("{}/{}", At::root(object).get("metadata.name").text(), key.text()));
        At::new(&key.path, &whole).name(Name::QualifiedName, &mut errors);
        let value = note.get("valueExpression");
        let missing = "valueExpression is not specified";
        let wanted = [Type::String, Type::Null];
        required_expression(&value, missing, &known, &wanted, &mut errors);
    }
    errors
}

fn parameter_kind(kind: &At<'_>, errors: &mut Errors) {
    let version = kind.get("apiVersion");
    if version.text().is_empty() {
        errors.push(version.required(""));
    } else if version.text().split('/').count() > 2 {
        let detail = format!("unexpected GroupVersion string: {}", version.text());
        errors.push(version.invalid(&detail));
    }
    if kind.get("kind").text().is_empty() {
        errors.push(kind.get("kind").required(""));
    }
}

/// Which requests a policy, or its binding, is about.
fn resources(resources: &At<'_>, errors: &mut Errors) {
    resources.get("matchPolicy").one_of_if_given(&["Equivalent", "Exact"], errors);
    selector::validate(&resources.get("namespaceSelector"), errors);
    selector::validate(&resources.get("objectSelector"), errors);
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.get(list).items() {
            operation_rule(&rule, errors);
        }
    }
}

fn identifier(name: &At<'_>, errors: &mut Errors) {
    let text = name.text();
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_sound = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if text.is_empty() {
        errors.push(name.required("name is not specified"));
    } else if !begins || !is_sound {
        errors.push(name.invalid("must be a valid CEL identifier"));
    }
}

/// The variables of a policy, each of which may use those before it.
fn variables(variables: &At<'_>, known: Declared, errors: &mut Errors) -> Declared {
    if variables.is_empty() {
        return known;
    }
    let mut types: Vec<(String, Type)> = Vec::new();
    for variable in variables.items() {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        identifier(&name, errors);
        let declared = with_variables(&known, &types);
        let of =
            required_expression(&expression, "expression is not specified", &declared, &[], errors);
        types.push((name.text().to_owned(), of));
    }
    with_variables(&known, &types)
}

fn required_expression(
    expression: &At<'_>,
    missing: &str,
    known: &Declared,
    wanted: &[Type],
    errors: &mut Errors,
) -> Type {
    if expression.text().trim().is_empty() {
        errors.push(expression.required(missing));
        return Type::Dyn;
    }
    compiles(expression, known, wanted, errors)
}

fn validation(validation: &At<'_>, known: &Declared, errors: &mut Errors) {
    let expression = validation.get("expression");
    let missing = "expression is not specified";
    required_expression(&expression, missing, known, &[Type::Bool], errors);
    let (message, told) = (validation.get("message"), validation.get("messageExpression"));
    if !told.text().is_empty() {
        if told.text().trim().is_empty() {
            errors.push(told.invalid("must be non-empty if specified"));
        } else {
            compiles(&told, known, &[Type::String], errors);
        }
    }
    let text = message.text().trim();
    if !message.text().is_empty() && text.is_empty() {
        errors.push(message.invalid("must be non-empty if specified"));
    } else if text.contains(['\n', '\r']) {
        errors.push(message.invalid("must not contain line breaks"));
    } else if text.is_empty() && expression.text().trim().contains(['\n', '\r']) {
        let detail = "message must be specified if expression contains line breaks";
        errors.push(message.required(detail));
    }
    let reason = validation.get("reason");
    if !reason.is_empty() && reason.text() != "Unauthorized" {
        reason.one_of_if_given(&REASONS, errors);
    }
}

/// A `ValidatingAdmissionPolicyBinding`.
pub(super) fn binding(object: &Value) -> Errors {
    let mut errors = Errors::new();
    let spec = At::root(object).get("spec");
    spec.get("policyName").required_name(Name::Dns1123Subdomain, &mut errors);
    let reference = spec.get("paramRef");
    if !reference.is_absent() {
        parameter_reference(&reference, &mut errors);
    }
    if !spec.get("matchResources").is_absent() {
        resources(&spec.get("matchResources"), &mut errors);
    }
    let actions = spec.get("validationActions");
    if actions.is_empty() {
        errors.push(actions.required("at least one validation action is required"));
    }
    let mut seen: Vec<&str> = Vec::new();
    for action in actions.items() {
        action.one_of(&ACTIONS, &mut errors);
        if seen.contains(&action.text()) {
            errors.push(action.duplicate());
        }
        seen.push(action.text());
    }
    if seen.contains(&"Deny") && seen.contains(&"Warn") {
        errors.push(actions.invalid(
            "must not contain both Deny and Warn (repeating the same validation failure \
             information in the API response and headers serves no purpose)",
        ));
    }
    errors
}

fn parameter_reference(reference: &At<'_>, errors: &mut Errors) {
    let (name, chosen) = (reference.get("name"), reference.get("selector"));
    match (name.text().is_empty(), chosen.is_absent()) {
        (true, true) => {
            errors.push(reference.required("one of name or selector must be specified"));
        }
        (false, false) => {
            let detail = "name and selector are mutually exclusive";
            errors.extend([name.forbidden(detail), chosen.forbidden(detail)]);
        }
        (_, false) => selector::validate(&chosen, errors),
        (_, true) => {}
    }
    let action = reference.get("parameterNotFoundAction");
    if action.is_empty() {
        errors.push(action.required(""));
    } else {
        action.one_of(&["Deny", "Allow"], errors);
    }
}

pub(super) struct Policy;

impl Kind for Policy {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::access::policy(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        change.new_errors(policy)
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }
}

pub(super) struct Binding;

impl Kind for Binding {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::access::policy_binding(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        binding(change.object)
    }
}

pub(super) struct MutatingPolicy;

impl Kind for MutatingPolicy {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::access::policy(object);
    }
}

pub(super) struct MutatingBinding;

impl Kind for MutatingBinding {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::access::policy_binding(object);
    }
}
