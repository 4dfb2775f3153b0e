//! What overrides make of one object on one cluster.

use convoy_api::Object;
use serde_json::Value;
use smol_str::SmolStr;

use crate::dialect::fleet::read::overrides::{cluster_terms, identity, terms_match};
use crate::dialect::fleet::read::placement::{field, list, text};

const CLUSTER_NAME: &str = "${MEMBER-CLUSTER-NAME}";
const LABEL_BEGIN: &str = "${MEMBER-CLUSTER-LABEL-KEY-";

/// Why an override cannot be applied. Its author has to change it; trying again is no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OverrideError {
    #[error("override {snapshot} refers to label {label:?}, which cluster {cluster} does not have")]
    NoSuchLabel { snapshot: SmolStr, label: String, cluster: SmolStr },
    #[error("override {snapshot} does not fit {object}: {message}")]
    DoesNotFit { snapshot: SmolStr, object: String, message: String },
}

/// `resource` as the cluster `member` should have it. None: it should not have it at all.
///
/// `overrides` are the snapshots a binding lists, in the order of application: those of
/// cluster scope first, so that the more specific ones win.
pub(crate) fn overridden(
    mut resource: Value,
    overrides: &[&Object],
    member: &Object,
) -> Result<Option<Value>, OverrideError> {
    for snapshot in overrides {
        if !asks_for(snapshot, &resource) {
            continue;
        }
        let spec = field(snapshot.spec(), "overrideSpec");
        for rule in list(field(spec, "policy"), "overrideRules") {
            let meant = cluster_terms(rule).is_some_and(|terms| terms_match(&terms, member));
            if !meant {
                continue;
            }
            if text(rule, "overrideType") == "Delete" {
                return Ok(None);
            }
            resource = patched(resource, rule, snapshot, member)?;
        }
    }
    Ok(Some(resource))
}

/// Whether one of the override's selectors means this object, or the namespace it lives in.
fn asks_for(snapshot: &Object, resource: &Value) -> bool {
    let spec = field(snapshot.spec(), "overrideSpec");
    let (group, version, kind, namespace, name) = identity(resource);
    let means = |selector: &Value, wanted: [&str; 4]| {
        ["group", "version", "kind", "name"].map(|part| text(selector, part)) == wanted
    };
    if snapshot.namespace().is_empty() {
        return list(spec, "clusterResourceSelectors").iter().any(|selector| match namespace {
            "" => means(selector, [group, version, kind, name]),
            _ => means(selector, ["", "v1", "Namespace", namespace]),
        });
    }
    namespace == snapshot.namespace()
        && list(spec, "resourceSelectors")
            .iter()
            .any(|selector| means(selector, [group, version, kind, name]))
}

fn patched(
    mut resource: Value,
    rule: &Value,
    snapshot: &Object,
    member: &Object,
) -> Result<Value, OverrideError> {
    let mut operations = field(rule, "jsonPatchOverrides").clone();
    let unknown = fill_in(&mut operations, member);
    if let Some(label) = unknown {
        let (snapshot, cluster) = (snapshot.name().clone(), member.name().clone());
        return Err(OverrideError::NoSuchLabel { snapshot, label, cluster });
    }
    if operations.is_null() {
        return Ok(resource);
    }
    let (_, _, kind, namespace, name) = identity(&resource);
    let object = format!("{kind} {namespace}/{name}");
    let does_not_fit = |message: String| {
        let (snapshot, object) = (snapshot.name().clone(), object.clone());
        OverrideError::DoesNotFit { snapshot, object, message }
    };
    let operations: json_patch::Patch =
        serde_json::from_value(operations).map_err(|error| does_not_fit(error.to_string()))?;
    json_patch::patch(&mut resource, &operations)
        .map_err(|error| does_not_fit(error.to_string()))?;
    Ok(resource)
}

/// Puts the cluster's name and labels in for the variables in every text of `value`. Gives
/// back the first label that the cluster lacks.
fn fill_in(value: &mut Value, member: &Object) -> Option<String> {
    match value {
        Value::String(text) => match filled_in(text, member) {
            Ok(filled) => {
                *text = filled;
                None
            }
            Err(label) => Some(label),
        },
        Value::Array(items) => items.iter_mut().find_map(|item| fill_in(item, member)),
        Value::Object(map) => map.values_mut().find_map(|item| fill_in(item, member)),
        _ => None,
    }
}

fn filled_in(text: &str, member: &Object) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${MEMBER-CLUSTER-") {
        let (before, variable) = rest.split_at(at);
        filled.push_str(before);
        if let Some(after) = variable.strip_prefix(CLUSTER_NAME) {
            filled.push_str(member.name());
            rest = after;
        } else if let Some((label, after)) =
            variable.strip_prefix(LABEL_BEGIN).and_then(|label| label.split_once('}'))
        {
            filled.push_str(member.label(label).ok_or_else(|| label.to_owned())?);
            rest = after;
        } else {
            let (dollar, after) = variable.split_at(1);
            filled.push_str(dollar);
            rest = after;
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn member() -> Object {
        Object::from_value(json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
            "kind": "MemberCluster", "metadata": {"name": "eu-2", "labels": {"region": "eu"}}}))
        .unwrap()
    }

    fn rule(rule: &Value) -> Object {
        let mut whole = json!({"clusterSelector": {}});
        whole.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
        Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ResourceOverrideSnapshot", "metadata": {"name": "o-0", "namespace": "shop"},
            "spec": {"overrideSpec": {
                "resourceSelectors": [{"group": "apps", "version": "v1", "kind": "Deployment", "name": "front"}],
                "policy": {"overrideRules": [whole]}}}}))
        .unwrap()
    }

    fn front() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "front", "namespace": "shop"}, "spec": {"replicas": 1}})
    }

    #[test]
    fn patches_are_applied_with_the_clusters_values() {
        let patch = rule(&json!({"jsonPatchOverrides": [
            {"op": "replace", "path": "/spec/replicas", "value": 8},
            {"op": "add", "path": "/metadata/annotations", "value":
                {"site": "${MEMBER-CLUSTER-NAME}.${MEMBER-CLUSTER-LABEL-KEY-region}"}}]}));
        let made = overridden(front(), &[&patch], &member()).unwrap().unwrap();
        assert_eq!(made["spec"]["replicas"], 8);
        assert_eq!(made["metadata"]["annotations"]["site"], "eu-2.eu");
    }

    #[test]
    fn what_is_deleted_is_left_out_and_what_does_not_fit_is_an_error() {
        let delete = rule(&json!({"overrideType": "Delete"}));
        assert_eq!(overridden(front(), &[&delete], &member()), Ok(None));
        let label = rule(&json!({"jsonPatchOverrides": [
            {"op": "add", "path": "/spec/x", "value": "${MEMBER-CLUSTER-LABEL-KEY-zone}"}]}));
        let error = overridden(front(), &[&label], &member()).unwrap_err();
        assert!(matches!(error, OverrideError::NoSuchLabel { .. }), "{error}");
        let path = rule(&json!({"jsonPatchOverrides": [{"op": "remove", "path": "/spec/none"}]}));
        let error = overridden(front(), &[&path], &member()).unwrap_err();
        assert!(matches!(error, OverrideError::DoesNotFit { .. }), "{error}");
    }
}
