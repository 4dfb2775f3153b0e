//! What the expressions of a validating policy get wrong about the kinds that it is about: said in
//! its status, and nothing is refused for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoy_api::cel::{Declared, Type, type_of};
use convoy_api::object::member::{list, text};
use serde_json::{Value, json};

use crate::form;
use crate::kinds::expression::{of_policies, with_variables};
use crate::registry::{Registry, Resource};
use crate::shape;

/// More kinds than this are not looked at.
const KINDS_MAX: usize = 10;

/// The warnings about a policy, as its status lists them.
pub(crate) fn warnings(policy: &Value, registry: &Registry) -> Vec<Value> {
    let spec = &policy["spec"];
    let kinds = kinds(spec, registry);
    let declared: Vec<(String, Declared)> =
        kinds.values().map(|kind| (described(kind), declared(spec, kind, registry))).collect();
    let mut warnings = Vec::new();
    for (index, validation) in list(spec, "validations").iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let source = text(validation, field);
            if source.is_empty() {
                continue;
            }
            let told: Vec<String> = declared
                .iter()
                .filter_map(|(kind, declared)| {
                    let error = type_of(source, declared).err()?;
                    Some(format!("{kind}: compilation failed: {error}\n"))
                })
                .collect();
            if !told.is_empty() {
                let place = format!("spec.validations[{index}].{field}");
                warnings.push(json!({"fieldRef": place, "warning": told.join("\n")}));
            }
        }
    }
    warnings
}

/// The kinds that a policy names without wildcards, by group, version and kind.
fn kinds<'r>(
    spec: &Value,
    registry: &'r Registry,
) -> BTreeMap<(&'r str, &'r str, &'r str), &'r Arc<Resource>> {
    let mut kinds = BTreeMap::new();
    for rule in list(&spec["matchConstraints"], "resourceRules") {
        let texts = |field: &str| -> Vec<&str> {
            let mut texts: Vec<&str> = list(rule, field).iter().filter_map(Value::as_str).collect();
            texts.sort_unstable();
            texts
        };
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        if groups.contains(&"*") || versions.contains(&"*") {
            continue;
        }
        for group in groups {
            for version in &versions {
                let plurals =
                    texts("resources").into_iter().filter(|name| !name.contains(['*', '/']));
                for row in plurals.filter_map(|plural| registry.get(group, version, plural)) {
                    if kinds.len() < KINDS_MAX {
                        kinds.insert(
                            (row.group.as_str(), row.version.as_str(), row.kind.as_str()),
                            row,
                        );
                    }
                }
            }
        }
    }
    kinds
}

/// `apps/v1, Kind=Deployment`.
fn described(kind: &Resource) -> String {
    // The core group is written with its slash.
    format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind)
}

/// What expressions may name when they are about objects of one kind.
fn declared(spec: &Value, kind: &Resource, registry: &Registry) -> Declared {
    let object = object_type(kind);
    let parameter = &spec["paramKind"];
    let mut declared = of_policies(parameter.is_object())
        .variable("object", object.clone())
        .variable("oldObject", object);
    let parameter = registry.of_kind(text(parameter, "apiVersion"), text(parameter, "kind"));
    if let Some(parameter) = parameter {
        declared = declared.variable("params", object_type(parameter));
    }
    let mut variables: Vec<(String, Type)> = Vec::new();
    for variable in list(spec, "variables") {
        let known = with_variables(&declared, &variables);
        // One that is wrong is told where it is used.
        let of = type_of(text(variable, "expression"), &known).unwrap_or(Type::Dyn);
        variables.push((text(variable, "name").to_owned(), of));
    }
    with_variables(&declared, &variables)
}

/// The type of an object of a kind. Custom kinds declare what is their own; the rest all have.
fn object_type(kind: &Resource) -> Type {
    let of = shape::cel_type(form::shape_of(kind), &kind.kind);
    let Type::Object(object) = &of else { return of };
    let metadata = form::builtin("v1", "ConfigMap").child("metadata");
    let metadata = metadata
        .map_or(Type::Dyn, |shape| shape::cel_type(shape, &format!("{}.metadata", kind.kind)));
    let common = [("apiVersion", Type::String), ("kind", Type::String), ("metadata", metadata)];
    let fields = object.fields.clone().into_iter();
    Type::object(&object.name, fields.chain(common.map(|(name, of)| (name.to_owned(), of))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(group: &str, plural: &str, validations: Value) -> Value {
        json!({"spec": {"validations": validations,
            "variables": [{"name": "n", "expression": "object.spec.replicas"}],
            "matchConstraints": {"resourceRules": [{"apiGroups": [group], "apiVersions": ["v1"],
                "operations": ["*"], "resources": [plural]}]}}})
    }

    #[test]
    fn expressions_that_take_a_field_for_another_type_are_told() {
        let registry = Registry::over_builtin();
        let fine = json!([{"expression": "object.spec.replicas > 1 && variables.n > 1"},
            {"expression": "object.metadata.labels['a'] == 'b' && object.kind == 'Deployment'"},
            {"expression": "object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')"},
            {"expression": "object.spec.template.spec.containers.all(c, c.image.startsWith('r/'))"},
            {"expression": "object.metadata.__namespace__ == 'x' && oldObject == null"}]);
        assert_eq!(warnings(&policy("apps", "deployments", fine), &registry), Vec::<Value>::new());
        let wrong = json!([
            {"expression": "object.spec.replicas > '1'",
                "messageExpression": "'got ' + object.spec.replicas"},
            {"expression": "object.spec.replica > 1 || variables.n == 'x'"}]);
        let told = warnings(&policy("apps", "deployments", wrong.clone()), &registry);
        let places: Vec<&str> = told.iter().map(|one| text(one, "fieldRef")).collect();
        assert_eq!(
            places,
            [
                "spec.validations[0].expression",
                "spec.validations[0].messageExpression",
                "spec.validations[1].expression"
            ]
        );
        let first = text(&told[0], "warning");
        let want = "found no matching overload for '_>_' applied to '(int, string)'";
        assert!(first.starts_with("apps/v1, Kind=Deployment: ") && first.contains(want), "{first}");
        let last = text(&told[2], "warning");
        assert!(
            last.contains("undefined field 'replica'") && last.contains("(int, string)"),
            "{last}"
        );
        // Where a wildcard stands, nobody knows what the objects are.
        assert_eq!(warnings(&policy("*", "deployments", wrong), &registry), Vec::<Value>::new());
    }
}
