//! What admission fills in: a placement says how it picks clusters and how it rolls out.

use serde_json::{Value, json};

/// The JSON patch that makes of a placement what is stored. What does not have the form that the
/// schema asks for is left to the schema.
pub(super) fn changes(object: &Value) -> Vec<Value> {
    let mut spec = match &object["spec"] {
        Value::Object(_) => object["spec"].clone(),
        _ => return Vec::new(),
    };
    policy(&mut spec);
    strategy(&mut spec);
    fill(&mut spec, "revisionHistoryLimit", json!(10));
    let fields = spec.as_object().into_iter().flatten();
    fields
        .filter(|(field, value)| object["spec"][field.as_str()] != **value)
        .map(
            |(field, value)| json!({"op": "add", "path": format!("/spec/{field}"), "value": value}),
        )
        .collect()
}

fn policy(spec: &mut Value) {
    fill(spec, "policy", json!({}));
    let policy = &mut spec["policy"];
    fill(policy, "placementType", json!("PickAll"));
    for constraint in each(policy, "topologySpreadConstraints") {
        fill(constraint, "maxSkew", json!(1));
        fill(constraint, "whenUnsatisfiable", json!("DoNotSchedule"));
    }
    for toleration in each(policy, "tolerations") {
        fill(toleration, "operator", json!("Equal"));
    }
}

fn strategy(spec: &mut Value) {
    fill(spec, "strategy", json!({}));
    let strategy = &mut spec["strategy"];
    fill(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        fill(strategy, "rollingUpdate", json!({}));
        let rolling = &mut strategy["rollingUpdate"];
        fill(rolling, "maxUnavailable", json!("25%"));
        fill(rolling, "maxSurge", json!("25%"));
        fill(rolling, "unavailablePeriodSeconds", json!(60));
    }
    fill(strategy, "applyStrategy", json!({}));
    let apply = &mut strategy["applyStrategy"];
    fill(apply, "type", json!("ClientSideApply"));
    fill(apply, "comparisonOption", json!("PartialComparison"));
    fill(apply, "whenToApply", json!("Always"));
    fill(apply, "whenToTakeOver", json!("Always"));
    if apply["type"] == "ServerSideApply" {
        fill(apply, "serverSideApplyConfig", json!({"force": false}));
    }
}

/// Sets a field of an object that is absent or, as clients written in Go send it, empty.
fn fill(object: &mut Value, field: &str, value: Value) {
    if let Value::Object(fields) = object
        && fields.get(field).is_none_or(|given| given.is_null() || given == "")
    {
        fields.insert(field.to_owned(), value);
    }
}

fn each<'v>(object: &'v mut Value, list: &str) -> impl Iterator<Item = &'v mut Value> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_omitted_strategy_is_stored_with_its_defaults_and_nothing_else() {
        let selectors = json!([{"group": "", "version": "v1", "kind": "Namespace", "name": "a"}]);
        let placement = json!({"spec": {"resourceSelectors": selectors}});
        let expected = json!([
            {"op": "add", "path": "/spec/policy", "value": {"placementType": "PickAll"}},
            {"op": "add", "path": "/spec/revisionHistoryLimit", "value": 10},
            {"op": "add", "path": "/spec/strategy", "value": {"type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%",
                    "unavailablePeriodSeconds": 60},
                "applyStrategy": {"type": "ClientSideApply", "whenToApply": "Always",
                    "comparisonOption": "PartialComparison", "whenToTakeOver": "Always"}}},
        ]);
        let mut found = changes(&placement);
        found.sort_by_key(|change| change["path"].to_string());
        assert_eq!(json!(found), expected);
        assert!(changes(&json!({"spec": null})).is_empty());
    }

    #[test]
    fn what_is_given_stays() {
        let spec = json!({
            "policy": {"placementType": "PickN", "numberOfClusters": 2,
                "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 3}],
                "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b"}]},
            "strategy": {"type": "External", "applyStrategy": {"type": "ServerSideApply"}},
            "revisionHistoryLimit": 1});
        let found = changes(&json!({"spec": spec}));
        let of = |path: &str| found.iter().find(|change| change["path"] == path);
        let policy = &of("/spec/policy").expect("it changes")["value"];
        assert_eq!(
            policy["topologySpreadConstraints"][0],
            json!({"topologyKey": "zone", "maxSkew": 3, "whenUnsatisfiable": "DoNotSchedule"})
        );
        assert_eq!(policy["tolerations"][1]["operator"], "Equal");
        assert_eq!(policy["tolerations"][0]["operator"], "Exists");
        let strategy = &of("/spec/strategy").expect("it changes")["value"];
        assert_eq!(strategy["rollingUpdate"], Value::Null);
        assert_eq!(strategy["applyStrategy"]["serverSideApplyConfig"], json!({"force": false}));
        assert_eq!(of("/spec/revisionHistoryLimit"), None);
        // Once it is defaulted nothing changes any more.
        let mut stored = spec;
        for change in found {
            let field = change["path"].as_str().expect("a path").rsplit('/').next();
            stored[field.expect("a field")] = change["value"].clone();
        }
        assert!(changes(&json!({"spec": stored})).is_empty());
    }
}
