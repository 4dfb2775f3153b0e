//! Placements: selectors, strategy, and what depends on other objects.

use convoy_api::kinds::CUSTOM_RESOURCE_DEFINITION;
use convoy_api::{GroupKind, Object};
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::budget::{BudgetError, IntOrPercent};
use crate::built_in_kind::Scope;
use crate::diagnostic::Diagnostic;
use crate::dialect::fleet::names::Family;
use crate::dialect::fleet::names::kind::{is_selectable, scope};
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::dialect::fleet::validate::{Moment, NAME_MAX, policy, selector};
use crate::world::World;

pub(crate) fn validate(
    world: &World,
    object: &Object,
    family: Family,
    moment: Moment,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if object.name().len() > NAME_MAX {
        let right = "the name field cannot have length exceeding 63";
        found.push(Diagnostic::invalid(object, "metadata.name", &json!(object.name()), right));
    }
    found.extend(selectors(world, object, family, moment));
    found.extend(policy::validate(object, field(object.spec(), "policy")));
    found.extend(strategy(object, field(object.spec(), "strategy")));
    found
}

fn selectors(world: &World, object: &Object, family: Family, moment: Moment) -> Vec<Diagnostic> {
    let selectors = list(object.spec(), "resourceSelectors");
    let partial = selectors
        .iter()
        .any(|term| text(term, "selectionScope") == "NamespaceWithResourceSelectors");
    let mut found = Vec::new();
    for (index, term) in selectors.iter().enumerate() {
        let at = format!("spec.resourceSelectors[{index}]");
        let labels = field(term, "labelSelector");
        let labelled = format!("{at}.labelSelector");
        found.extend(selector(object, &labelled, labels, "resource selector"));
        let kind = GroupKind {
            group: SmolStr::new(text(term, "group")),
            kind: SmolStr::new(text(term, "kind")),
        };
        if !is_selectable(&kind) {
            let message = format!("objects of kind {kind} are never placed");
            found.push(Diagnostic::error(object, format!("{at}.kind"), message));
            continue;
        }
        let (version, at) = (text(term, "version"), format!("{at}.kind"));
        let message = match (family, known_scope(world, &kind)) {
            // Beside a namespace that is taken in parts, the others select within it.
            (Family::Cluster, Some(Scope::Namespaced)) if !partial => format!(
                "{NOT_FOUND} or it is not a cluster scoped resource: {}; select the Namespace, \
                 or use a ResourcePlacement",
                full_kind(&kind, version)
            ),
            (Family::Namespaced, Some(Scope::Cluster)) => format!(
                "{NOT_FOUND} or it is a cluster scoped resource: {}; use a \
                 ClusterResourcePlacement",
                full_kind(&kind, version)
            ),
            (_, None) if moment == Moment::Admission && !may_be_served(&kind) => format!(
                "failed to get GVR of the selector: no matches for kind {:?} in version {:?}",
                kind.kind,
                if kind.group.is_empty() {
                    version.to_owned()
                } else {
                    format!("{}/{version}", kind.group)
                }
            ),
            _ => continue,
        };
        found.push(Diagnostic::error(object, at, message));
    }
    found
}

const NOT_FOUND: &str = "the resource is not found in schema (please retry)";

fn full_kind(kind: &GroupKind, version: &str) -> String {
    format!("{}/{version}, Kind={}", kind.group, kind.kind)
}

/// Whether an API server may have the kind though no definition tells: groups of Kubernetes gain
/// kinds with its versions, or are served by other servers.
fn may_be_served(kind: &GroupKind) -> bool {
    kind.group.ends_with(".k8s.io")
}

/// The scope of a built-in kind, or of one whose definition is known.
fn known_scope(world: &World, kind: &GroupKind) -> Option<Scope> {
    if let Some(scope) = scope(kind) {
        return Some(scope);
    }
    let definition = world.of(&CUSTOM_RESOURCE_DEFINITION).find(|definition| {
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
        let message = "rollingUpdate is not valid for strategy type External";
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
        let message = "serverSideApplyConfig is only valid for ServerSideApply strategy type";
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
        let found = validate(&World::new(), &object, Family::Cluster, Moment::Planning);
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
