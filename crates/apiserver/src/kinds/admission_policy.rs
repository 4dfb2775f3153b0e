//! Admission policies and what binds them.

mod columns;
mod defaults;
mod type_check;

use convoy_api::cel::{Declared, Type};
use convoy_api::text::Name;
use serde_json::{Value, json};

use super::at::{At, Errors};
use super::expression::{self, compiles, with_variables};
use super::kind::{Change, Kind, OWNERSHIP_ALONE};
use super::selector;
use super::webhook::{conditions_with, operation_rule};
use crate::column::Column;
use crate::registry::Resource;

pub(crate) use type_check::warnings;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

/// The operations whose objects a policy can change.
const MUTATED: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

/// A `ValidatingAdmissionPolicy`.
pub(super) fn policy(object: &Value) -> Errors {
    let mut errors = Errors::new();
    let spec = At::root(object).get("spec");
    let known = common(&spec, Declared::clone, &mut errors);
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

/// A `MutatingAdmissionPolicy`.
pub(super) fn mutating_policy(object: &Value) -> Errors {
    let mut errors = Errors::new();
    let spec = At::root(object).get("spec");
    only_mutable(&spec.get("matchConstraints"), &mut errors);
    let known = common(&spec, |known| known.clone().making_objects(), &mut errors);
    let mutations = spec.get("mutations");
    if mutations.is_empty() {
        errors.push(mutations.required("mutations must contain at least one item"));
    }
    for mutation in mutations.items() {
        self::mutation(&mutation, &known, &mut errors);
    }
    spec.get("reinvocationPolicy").one_of(&["IfNeeded", "Never"], &mut errors);
    errors
}

/// What all policies have. Gives what their rules may name, where `within` says what variables and
/// rules may name besides the conditions.
fn common(spec: &At<'_>, within: fn(&Declared) -> Declared, errors: &mut Errors) -> Declared {
    spec.get("failurePolicy").one_of_if_given(&["Fail", "Ignore"], errors);
    let kind = spec.get("paramKind");
    if !kind.is_absent() {
        parameter_kind(&kind, errors);
    }
    let known = expression::of_policies(!kind.is_absent());
    let constraints = spec.get("matchConstraints");
    if constraints.is_absent() {
        errors.push(constraints.required(""));
    } else {
        resources(&constraints, errors);
        let rules = constraints.get("resourceRules");
        if rules.is_empty() {
            errors.push(rules.required(""));
        }
    }
    conditions_with(&spec.get("matchConditions"), &known, errors);
    variables(&spec.get("variables"), within(&known), errors)
}

/// There is nothing to change in what is deleted.
fn only_mutable(resources: &At<'_>, errors: &mut Errors) {
    for rule in resources.get("resourceRules").items() {
        for operation in rule.get("operations").items() {
            if operation.text() == "DELETE" {
                let path = format!("{}.resourceRules.operations", resources.path);
                let operation = At::new(&path, operation.value);
                errors.push(operation.unsupported(&MUTATED));
            }
        }
    }
}

/// One mutation: its type, and the expression that this type takes.
fn mutation(mutation: &At<'_>, known: &Declared, errors: &mut Errors) {
    let patch_type = mutation.get("patchType");
    let (given, unwanted, wanted) = match patch_type.text() {
        "JSONPatch" => {
            let operations = Type::list(Type::object("JSONPatch", []));
            ("jsonPatch", "applyConfiguration", operations)
        }
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Type::open_object("Object")),
        _ => return patch_type.one_of(&["ApplyConfiguration", "JSONPatch"], errors),
    };
    let (patch, other) = (mutation.get(given), mutation.get(unwanted));
    if patch.is_absent() {
        let detail = format!("must be specified when patchType is {}", patch_type.text());
        errors.push(patch.required(&detail));
    } else {
        let expression = patch.get("expression");
        required_expression(&expression, "", known, &[wanted], errors);
    }
    if !other.is_absent() {
        let detail = format!("must not be specified when patchType is {}", patch_type.text());
        errors.push(other.invalid_as(format!("{{{unwanted}}}"), &detail));
    }
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
    common_binding(&spec, &mut errors);
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

/// A `MutatingAdmissionPolicyBinding`.
pub(super) fn mutating_binding(object: &Value) -> Errors {
    let mut errors = Errors::new();
    let spec = At::root(object).get("spec");
    common_binding(&spec, &mut errors);
    only_mutable(&spec.get("matchResources"), &mut errors);
    errors
}

/// What the bindings of all policies have.
fn common_binding(spec: &At<'_>, errors: &mut Errors) {
    spec.get("policyName").required_name(Name::Dns1123Subdomain, errors);
    let reference = spec.get("paramRef");
    if !reference.is_absent() {
        parameter_reference(&reference, errors);
    }
    if !spec.get("matchResources").is_absent() {
        resources(&spec.get("matchResources"), errors);
    }
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
        defaults::policy(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        change.new_errors(policy)
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }

    fn columns(&self) -> &'static [Column] {
        columns::POLICY
    }
}

pub(super) struct Binding;

impl Kind for Binding {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::binding(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        binding(change.object)
    }

    fn columns(&self) -> &'static [Column] {
        columns::BINDING
    }
}

pub(super) struct MutatingPolicy;

impl Kind for MutatingPolicy {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::policy(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        change.new_errors(mutating_policy)
    }

    fn columns(&self) -> &'static [Column] {
        columns::MUTATING_POLICY
    }
}

pub(super) struct MutatingBinding;

impl Kind for MutatingBinding {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::binding(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        mutating_binding(change.object)
    }

    fn columns(&self) -> &'static [Column] {
        columns::BINDING
    }
}
