//! Roles and their bindings. Whether the caller may hand out what they say is asked elsewhere.

mod columns;

use convoy_api::text::Name;
use serde_json::{Value, json};

use super::at::{At, Errors};
use super::kind::{Change, Consequence, Kind};
use super::selector;
use super::{escalation, fill};
use crate::column::Column;
use crate::metadata::path_segment;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(object: &Value, namespaced: bool) -> Errors {
    let root = At::root(object);
    let mut errors = Errors::new();
    for rule in root.get("rules").items() {
        policy_rule(&rule, namespaced, &mut errors);
    }
    let aggregation = root.get("aggregationRule");
    if aggregation.is_absent() {
        return errors;
    }
    let selectors = aggregation.get("clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(selectors.required(detail));
    }
    for one in selectors.items() {
        selector::validate(&one, &mut errors);
    }
    errors
}

fn policy_rule(rule: &At<'_>, namespaced: bool, errors: &mut Errors) {
    if rule.get("verbs").is_empty() {
        errors.push(rule.get("verbs").required("verbs must contain at least one value"));
    }
    let paths = rule.get("nonResourceURLs");
    let has_resources =
        ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.get(field).is_empty());
    if !paths.is_empty() {
        if namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            errors.push(paths.invalid(detail));
        }
        if has_resources {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(paths.invalid(detail));
        }
        return;
    }
    if rule.get("apiGroups").is_empty() {
        let detail = "resource rules must supply at least one api group";
        errors.push(rule.get("apiGroups").required(detail));
    }
    if rule.get("resources").is_empty() {
        let detail = "resource rules must supply at least one resource";
        errors.push(rule.get("resources").required(detail));
    }
}

pub(super) fn binding(object: &Value, old: Option<&Value>, namespaced: bool) -> Errors {
    let root = At::root(object);
    let mut errors = Errors::new();
    let role = root.get("roleRef");
    if role.get("apiGroup").text() != GROUP {
        errors.push(role.get("apiGroup").unsupported(&[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&role.get("kind").text()) {
        errors.push(role.get("kind").unsupported(kinds));
    }
    if role.get("name").text().is_empty() {
        errors.push(role.get("name").required(""));
    }
    for subject in root.get("subjects").items() {
        one_subject(&subject, namespaced, &mut errors);
    }
    if old.is_some_and(|old| old["roleRef"] != object["roleRef"]) {
        let fields = ["apiGroup", "kind", "name"];
        errors.push(role.invalid_struct(&fields, "cannot change roleRef"));
    }
    errors
}

fn one_subject(subject: &At<'_>, namespaced: bool, errors: &mut Errors) {
    let (name, group) = (subject.get("name"), subject.get("apiGroup"));
    if name.text().is_empty() {
        errors.push(name.required(""));
    }
    match subject.get("kind").text() {
        "ServiceAccount" => {
            name.name(Name::Dns1123Subdomain, errors);
            if !group.text().is_empty() {
                errors.push(group.unsupported(&[""]));
            }
            if !namespaced && subject.get("namespace").text().is_empty() {
                errors.push(subject.get("namespace").required(""));
            }
        }
        "User" | "Group" if group.text() != GROUP => errors.push(group.unsupported(&[GROUP])),
        "User" | "Group" => {}
        other => {
            let kind = At { path: subject.get("kind").path, value: &json!(other) };
            errors.push(kind.unsupported(&["ServiceAccount", "User", "Group"]));
        }
    }
}

/// Roles, of a namespace or of the cluster.
pub(super) struct Role {
    pub(super) namespaced: bool,
}

impl Kind for Role {
    fn prepare_create(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        escalation::check(request, object, None)
    }

    fn prepare_update(
        &self,
        request: &ResourceRequest,
        object: &mut Value,
        current: &Value,
    ) -> ApiResult<()> {
        escalation::check(request, object, Some(current))
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        role(change.object, self.namespaced)
    }

    fn consequence(&self) -> Option<Consequence> {
        (!self.namespaced).then_some(Consequence::SumRoles)
    }

    fn name_errors(&self, _object: &Value, name: &str) -> Vec<String> {
        path_segment(name)
    }
}

/// Bindings of roles, in a namespace or in the cluster.
pub(super) struct Binding {
    pub(super) namespaced: bool,
}

impl Kind for Binding {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        let Value::Object(binding) = object else { return };
        if let Some(role) = fill::make(binding, "roleRef") {
            fill::text(role, "apiGroup", GROUP);
        }
        fill::each(binding.get_mut("subjects"), |subject| {
            if matches!(fill::given(subject, "kind"), "User" | "Group") {
                fill::text(subject, "apiGroup", GROUP);
            }
        });
    }

    fn prepare_create(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        escalation::check(request, object, None)
    }

    fn prepare_update(
        &self,
        request: &ResourceRequest,
        object: &mut Value,
        current: &Value,
    ) -> ApiResult<()> {
        escalation::check(request, object, Some(current))
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        binding(change.object, change.old, self.namespaced)
    }

    fn name_errors(&self, _object: &Value, name: &str) -> Vec<String> {
        path_segment(name)
    }

    fn columns(&self) -> &'static [Column] {
        columns::BINDING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(errors: Errors) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_name_verbs_and_what_they_are_for() {
        let sound =
            json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
        assert!(role(&sound, true).is_empty());
        let paths = json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]});
        assert!(role(&paths, false).is_empty());
        assert_eq!(
            texts(role(&paths, true)),
            [
                "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs"
            ]
        );
        assert_eq!(
            texts(role(&json!({"rules": [{}]}), true)),
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ]
        );
    }

    #[test]
    fn bindings_keep_their_role() {
        let role = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"});
        let subject = json!({"kind": "User", "name": "ann", "apiGroup": GROUP});
        let given = json!({"roleRef": role, "subjects": [subject]});
        assert!(binding(&given, Some(&given), false).is_empty());
        let mut changed = given.clone();
        changed["roleRef"]["name"] = json!("edit");
        let errors = texts(binding(&changed, Some(&given), false));
        assert!(errors[0].ends_with("cannot change roleRef"), "{errors:?}");
        let account =
            json!({"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": "a"}]});
        assert_eq!(
            texts(binding(&account, None, false)),
            ["subjects[0].namespace: Required value"]
        );
        assert!(binding(&account, None, true).is_empty());
    }
}
