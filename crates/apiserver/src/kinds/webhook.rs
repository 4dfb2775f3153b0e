//! Configurations of admission webhooks.

pub(super) mod defaults;

use convoy_api::cel::{Declared, Type};
use convoy_api::text::Name;
use serde_json::Value;

use super::at::{At, Errors};
use super::expression::{self, compiles};
use super::kind::{Change, Kind};
use super::selector;
use crate::column::Cell::Count;
use crate::column::{AGE, Column, NAME, integer};
use crate::registry::Resource;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

pub(super) fn configuration(object: &Value) -> Errors {
    let mut errors = Errors::new();
    let mut names: Vec<&str> = Vec::new();
    for hook in At::root(object).get("webhooks").items() {
        webhook(&hook, &mut errors);
        versions(&hook.get("admissionReviewVersions"), &mut errors);
        let name = hook.get("name");
        if !name.text().is_empty() && names.contains(&name.text()) {
            errors.push(name.duplicate());
        }
        names.push(name.text());
    }
    errors
}

fn webhook(hook: &At<'_>, errors: &mut Errors) {
    full_name(&hook.get("name"), errors);
    for rule in hook.get("rules").items() {
        operation_rule(&rule, errors);
    }
    hook.get("failurePolicy").one_of_if_given(&["Fail", "Ignore"], errors);
    hook.get("matchPolicy").one_of_if_given(&["Equivalent", "Exact"], errors);
    let effects = hook.get("sideEffects");
    if effects.is_absent() {
        errors.push(effects.required("must specify one of None, NoneOnDryRun"));
    }
    effects.one_of_if_given(&["None", "NoneOnDryRun"], errors);
    let timeout = hook.get("timeoutSeconds");
    if timeout.integer().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    selector::validate(&hook.get("namespaceSelector"), errors);
    selector::validate(&hook.get("objectSelector"), errors);
    hook.get("reinvocationPolicy").one_of_if_given(&["IfNeeded", "Never"], errors);
    client(&hook.get("clientConfig"), errors);
    conditions(&hook.get("matchConditions"), errors);
}

/// Which operations on which resources are meant.
pub(super) fn operation_rule(rule: &At<'_>, errors: &mut Errors) {
    let operations = rule.get("operations");
    if operations.is_empty() {
        errors.push(operations.required(""));
    }
    alone(&operations, "operations", errors);
    for operation in operations.items() {
        if !OPERATIONS.contains(&operation.text()) {
            errors.push(operation.unsupported(&OPERATIONS));
        }
    }
    resource_rule(rule, errors);
}

/// At least three labels, so that names of different owners do not meet.
fn full_name(name: &At<'_>, errors: &mut Errors) {
    if name.text().is_empty() {
        errors.push(name.required(""));
        return;
    }
    let details = Name::Dns1123Subdomain.errors(name.text());
    if !details.is_empty() {
        errors.push(name.invalid(&details.join(",")));
    } else if name.text().split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(name.invalid(detail));
    }
}

/// What stands for everything stands alone.
fn alone(list: &At<'_>, what: &str, errors: &mut Errors) {
    let items = list.items();
    if items.len() > 1 && items.iter().any(|item| item.text() == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(list.invalid(&detail));
    }
}

fn resource_rule(rule: &At<'_>, errors: &mut Errors) {
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.get(field);
        if list.is_empty() {
            errors.push(list.required(""));
        }
        alone(&list, what, errors);
    }
    for version in rule.get("apiVersions").items() {
        if version.text().is_empty() {
            errors.push(version.required(""));
        }
    }
    let resources = rule.get("resources");
    if resources.is_empty() {
        errors.push(resources.required(""));
    }
    let items = resources.items();
    if items.len() > 1 && items.iter().any(|item| item.text() == "*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(resources.invalid(detail));
    }
    for resource in items {
        if resource.text().is_empty() {
            errors.push(resource.required(""));
        }
    }
    rule.get("scope").one_of_if_given(&["*", "Cluster", "Namespaced"], errors);
}

fn versions(versions: &At<'_>, errors: &mut Errors) {
    if versions.is_empty() {
        errors.push(versions.required("must specify one of v1, v1beta1"));
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for version in versions.items() {
        if seen.contains(&version.text()) {
            errors.push(version.invalid("duplicate version"));
            continue;
        }
        seen.push(version.text());
        version.name(Name::Dns1035Label, errors);
    }
    if !seen.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        errors.push(versions.invalid("must include at least one of v1, v1beta1"));
    }
}

fn client(client: &At<'_>, errors: &mut Errors) {
    let (url, service) = (client.get("url"), client.get("service"));
    if url.is_absent() == service.is_absent() {
        errors.push(client.required("exactly one of url or service is required"));
    } else if !url.is_absent() {
        address(&url, errors);
    } else {
        // The real server reports the one under the other's name, and clients compare.
        for (field, shown) in [("namespace", "name"), ("name", "namespace")] {
            if service.get(field).is_empty() {
                errors.push(service.get(shown).required(""));
            }
        }
        let port = service.get("port");
        if port.integer().is_some_and(|port| !(1..=65_535).contains(&port)) {
            let detail = "port is not valid: must be between 1 and 65535, inclusive";
            errors.push(port.invalid(detail));
        }
        let path = service.get("path");
        if !path.text().is_empty() && !path.text().starts_with('/') {
            errors.push(path.invalid("must start with a '/'"));
        }
    }
}

fn address(url: &At<'_>, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.text().split_once("://").unwrap_or(("", url.text()));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(url.invalid_as(scheme, &detail));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        errors.push(url.invalid_as("", &format!("host must be specified{FORM}")));
    }
    for (part, detail) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            errors.push(url.invalid_as(part, detail));
        }
    }
}

pub(super) fn conditions(conditions: &At<'_>, errors: &mut Errors) {
    conditions_with(conditions, &expression::of_conditions(), errors);
}

/// Conditions that may use other variables besides.
pub(super) fn conditions_with(conditions: &At<'_>, known: &Declared, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for condition in conditions.items() {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        if expression.text().trim().is_empty() {
            errors.push(expression.required(""));
        } else {
            compiles(&expression, known, &[Type::Bool], errors);
        }
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else {
            name.name(Name::QualifiedName, errors);
            if names.contains(&name.text()) {
                errors.push(name.duplicate());
            }
        }
        names.push(name.text());
    }
}

pub(super) struct Validating;

impl Kind for Validating {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::validating(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        change.new_errors(configuration)
    }

    fn columns(&self) -> &'static [Column] {
        const { &[NAME, integer("Webhooks", Count(&["/webhooks"])), AGE] }
    }
}

pub(super) struct Mutating;

impl Kind for Mutating {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::mutating(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        change.new_errors(configuration)
    }

    fn columns(&self) -> &'static [Column] {
        const { &[NAME, integer("Webhooks", Count(&["/webhooks"])), AGE] }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hook() -> Value {
        json!({"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://host/path"}, "timeoutSeconds": 10, "rules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]})
    }

    #[test]
    fn a_webhook_says_who_it_is_and_what_it_is_for() {
        assert!(configuration(&json!({"webhooks": [hook()]})).is_empty());
        let cases = [
            (
                "/name",
                json!("a.b"),
                "webhooks[0].name: Invalid value: \"a.b\": should be a domain with at least three segments separated by dots",
            ),
            (
                "/sideEffects",
                json!("Some"),
                "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            ),
            (
                "/admissionReviewVersions",
                json!(["v9"]),
                "webhooks[0].admissionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1",
            ),
            (
                "/timeoutSeconds",
                json!(31),
                "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            ),
            (
                "/clientConfig",
                json!({}),
                "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            ),
            (
                "/clientConfig/url",
                json!("http://host"),
                "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ),
            (
                "/rules/0/operations",
                json!(["*", "CREATE"]),
                "webhooks[0].rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
            ),
            ("/rules/0/resources", json!([]), "webhooks[0].rules[0].resources: Required value"),
        ];
        for (place, value, expected) in cases {
            let mut changed = hook();
            *changed.pointer_mut(place).unwrap() = value;
            let errors = configuration(&json!({"webhooks": [changed]}));
            assert_eq!(errors[0].to_string(), expected);
            assert_eq!(errors.len(), 1, "{errors:?}");
        }
        assert_eq!(configuration(&json!({"webhooks": [hook(), hook()]})).len(), 1);
    }
}
