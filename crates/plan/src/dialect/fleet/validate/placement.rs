//! Placements: selectors, strategy, and what depends on other objects.

use convoy_api::{GroupKind, Object};
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::budget::{BudgetError, IntOrPercent};
use crate::built_in_kind::Scope;
use crate::diagnostic::Diagnostic;
use crate::dialect::fleet::names::Family;
use crate::dialect::fleet::names::kind::{is_selectable, scope};
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::dialect::fleet::validate::{NAME_MAX, policy, selector};
use crate::world::World;

const DEFINITION: GroupKind = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");

pub(crate) fn validate(world: &World, object: &Object, family: Family) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if object.name().len() > NAME_MAX {
        let right = "must have at most 63 characters";
        found.push(Diagnostic::invalid(object, "metadata.name", &json!(object.name()), right));
    }
    found.extend(selectors(world, object, family));
    found.extend(policy::validate(object, field(object.spec(), "policy")));
    found.extend(strategy(object, field(object.spec(), "strategy")));
    found
}

fn selectors(world: &World, object: &Object, family: Family) -> Vec<Diagnostic> {
    let selectors = list(object.spec(), "resourceSelectors");
    let partial = selectors
        .iter()
        .any(|term| text(term, "selectionScope") == "NamespaceWithResourceSelectors");
    let mut found = Vec::new();
    for (index, term) in selectors.iter().enumerate() {
        let at = format!("spec.resourceSelectors[{index}]");
        let labels = field(term, "labelSelector");
        found.extend(selector(object, &format!("{at}.labelSelector"), labels));
        let kind = GroupKind {
            group: SmolStr::new(text(term, "group")),
            kind: SmolStr::new(text(term, "kind")),
        };
        if !is_selectable(&kind) {
            let message = format!("objects of kind {kind} are never placed");
            found.push(Diagnostic::error(object, format!("{at}.kind"), message));
            continue;
        }
        let wrong = match (family, known_scope(world, &kind)) {
            // Beside a namespace that is taken in parts, the others select within it.
            (Family::Cluster, Some(Scope::Namespaced)) if !partial => {
                "has namespaced objects: select their Namespace, or use a ResourcePlacement"
            }
            (Family::Namespaced, Some(Scope::Cluster)) => {
                "has objects of cluster scope: use a ClusterResourcePlacement"
            }
            _ => continue,
        };
        found.push(Diagnostic::error(object, format!("{at}.kind"), format!("kind {kind} {wrong}")));
    }
    found
}

/// The scope of a built-in kind, or of one whose definition is known.
fn known_scope(world: &World, kind: &GroupKind) -> Option<Scope> {
    if let Some(scope) = scope(kind) {
        return Some(scope);
    }
    let definition = world.of(&DEFINITION).find(|definition| {
        let spec = definition.spec();
        text(spec, "group") == kind.group && text(field(spec, "names"), "kind") == kind.kind
    })?;
    match text(definition.spec(), "scope") {
        "Cluster" => Some(Scope::Cluster),
        "Namespaced" => Some(Scope::Namespaced),
        _ => None,
    }
}

fn strategy(object: &Object, strategy: &Value) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let rolling = field(strategy, "rollingUpdate");
    if text(strategy, "type") == "External" && !rolling.is_null() {
        let message = "must be absent: strategy type External does not use it";
        found.push(Diagnostic::error(object, "spec.strategy.rollingUpdate", message));
    }
    for name in ["maxUnavailable", "maxSurge"] {
        let value = field(rolling, name);
        let wrong = match IntOrPercent::from_value(value) {
            _ if value.is_null() => continue,
            Ok(IntOrPercent::Int(count)) if count < 0 => BudgetError::Negative.to_string(),
            Ok(_) => continue,
            Err(_) => "want a count of at least 0, or a percentage such as \"25%\"".to_owned(),
        };
        let at = format!("spec.strategy.rollingUpdate.{name}");
        found.push(Diagnostic::invalid(object, at, value, &wrong));
    }
    let apply = field(strategy, "applyStrategy");
    let configured = !field(apply, "serverSideApplyConfig").is_null();
    if configured && text(apply, "type") != "ServerSideApply" {
        let at = "spec.strategy.applyStrategy.serverSideApplyConfig";
        let message = "must be absent: only type ServerSideApply uses it";
        found.push(Diagnostic::error(object, at, message));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(spec: &Value) -> Vec<String> {
        let object = Object::from_value(json!({
            "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourcePlacement", "metadata": {"name": "web"}, "spec": spec}))
        .unwrap();
        let found = validate(&World::new(), &object, Family::Cluster);
        found.into_iter().map(|diagnostic| diagnostic.field).collect()
    }

    #[test]
    fn what_is_wrong_is_named() {
        let rolling = "spec.strategy.rollingUpdate";
        let cases = [
            (json!({"resourceSelectors": [{"group": "", "kind": "Namespace"}]}), vec![]),
            (
                json!({"resourceSelectors": [{"group": "apps", "kind": "Deployment"}]}),
                vec!["spec.resourceSelectors[0].kind".to_owned()],
            ),
            (
                json!({"resourceSelectors": [{"group": "", "kind": "Pod"}]}),
                vec!["spec.resourceSelectors[0].kind".to_owned()],
            ),
            (
                json!({"strategy": {"rollingUpdate": {"maxSurge": -1, "maxUnavailable": "3"}}}),
                vec![format!("{rolling}.maxUnavailable"), format!("{rolling}.maxSurge")],
            ),
            (
                json!({"strategy": {"type": "External", "rollingUpdate": {}}}),
                vec![rolling.to_owned()],
            ),
            (
                json!({"strategy": {"applyStrategy": {"serverSideApplyConfig": {"force": true}}}}),
                vec!["spec.strategy.applyStrategy.serverSideApplyConfig".to_owned()],
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(fields(&spec), expected, "{spec}");
        }
    }
}
