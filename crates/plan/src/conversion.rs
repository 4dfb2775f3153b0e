//! Conversion: objects of a kind in another of its versions, in the form of the webhook that an API
//! server asks. A server of webhooks only carries the review.

use serde_json::{Value, json};

use crate::dialect::Dialect;
pub use crate::webhook::Conversion;

/// What a webhook answers to a `ConversionReview`; none if it is no review. One object that
/// cannot be converted fails them all, with its name.
#[must_use = "an answer is of use to whoever asked"]
pub fn answer(dialect: &dyn Dialect, review: &Value) -> Option<Value> {
    let request = review.get("request").filter(|request| request.is_object())?;
    let uid = request.get("uid").filter(|uid| uid.is_string())?;
    let version = request.get("desiredAPIVersion")?.as_str()?;
    let objects = request.get("objects")?.as_array()?;
    let converted: Result<Vec<Value>, String> = objects
        .iter()
        .map(|object| {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            dialect.convert(object, version).map_err(|why| format!("{name:?}: {why}"))
        })
        .collect();
    let response = match converted {
        Ok(objects) => {
            json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}})
        }
        Err(why) => json!({"uid": uid, "convertedObjects": [],
            "result": {"status": "Failure", "message": why}}),
    };
    Some(json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "response": response}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::karpenter::Karpenter;

    fn review(version: &str, objects: &Value) -> Value {
        json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
            "request": {"uid": "u", "desiredAPIVersion": version, "objects": objects}})
    }

    fn pool(version: &str) -> Value {
        json!({"apiVersion": version, "kind": "NodePool", "metadata": {"name": "p", "uid": "1"},
            "spec": {"template": {"spec": {"requirements": []}},
                "disruption": {"budgets": [{"nodes": 1, "reason": "drift"}]}}})
    }

    #[test]
    fn every_object_of_a_review_is_converted() {
        let older = pool("karpenter.sh/v1beta1");
        let answer =
            answer(&Karpenter, &review("karpenter.sh/v1", &json!([older, older]))).unwrap();
        let response = &answer["response"];
        assert_eq!(
            (&response["uid"], &response["result"]["status"]),
            (&json!("u"), &json!("Success"))
        );
        let made = response["convertedObjects"].as_array().unwrap();
        assert_eq!(made.len(), 2);
        let budgets = json!([{"nodes": "1", "reasons": ["Drifted"]}]);
        assert_eq!(made[1]["spec"]["disruption"]["budgets"], budgets);
        assert_eq!(made[1]["metadata"]["uid"], "1");
        let back = super::answer(&Karpenter, &review("karpenter.sh/v1beta1", &json!([made[0]])));
        assert_eq!(back.unwrap()["response"]["convertedObjects"], json!([older]));
    }

    #[test]
    fn a_version_that_nobody_knows_fails_with_the_name_of_the_object() {
        let answer =
            answer(&Karpenter, &review("karpenter.sh/v2", &json!([pool("karpenter.sh/v1")])));
        let result = answer.unwrap()["response"]["result"].clone();
        assert_eq!(result["status"], "Failure");
        let why = "\"p\": NodePools are not converted from karpenter.sh/v1 to karpenter.sh/v2";
        assert_eq!(result["message"], why);
        assert_eq!(super::answer(&Karpenter, &json!({"request": {"uid": "u"}})), None);
    }

    #[test]
    fn a_definition_without_the_older_version_is_left_alone() {
        let conversion = &Karpenter.conversions()[0];
        let of = |versions: &[&str]| {
            let versions: Vec<Value> = versions.iter().map(|name| json!({"name": name})).collect();
            conversion.concerns(&json!({"spec": {"versions": versions}}))
        };
        assert_eq!([of(&["v1", "v1beta1"]), of(&["v1"]), of(&[])], [true, false, false]);
    }
}
