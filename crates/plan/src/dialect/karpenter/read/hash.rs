//! The NodePool hash: one number over what a node takes from its pool's template, so that a
//! node made from an earlier template is recognised. It has to equal upstream's bit by bit,
//! or every node would look drifted after a migration.

use convoy_api::text::GoDuration;
use serde_json::Value;

use crate::hash::structure::{map, number, string, structure};

/// The hash of a `v1` template, without its requirements, as the annotation spells it.
pub(crate) fn of_template(template: &Value) -> String {
    let metadata = template.get("metadata");
    let meta = structure("ObjectMeta")
        .field("Labels", metadata.and_then(|meta| map(meta.get("labels"))))
        .field("Annotations", metadata.and_then(|meta| map(meta.get("annotations"))));
    let spec = template.get("spec").unwrap_or(&Value::Null);
    let claim = structure("NodeClaimTemplateSpec")
        .field("Taints", taints(spec.get("taints")))
        .field("StartupTaints", taints(spec.get("startupTaints")))
        .field("NodeClassRef", class(spec.get("nodeClassRef")))
        .field("TerminationGracePeriod", grace_period(spec.get("terminationGracePeriod")))
        .field("ExpireAfter", expire_after(spec.get("expireAfter")));
    structure("NodeClaimTemplate")
        .field("ObjectMeta", meta.value())
        .field("Spec", claim.value())
        .hash
        .to_string()
}

fn taints(list: Option<&Value>) -> Option<u64> {
    let list = list?.as_array()?.iter();
    Some(list.fold(0, |all, taint| {
        let field = |name: &str| string(taint.get(name));
        let taint = structure("Taint")
            .field("Key", field("key"))
            .field("Value", field("value"))
            .field("Effect", field("effect"));
        all ^ taint.hash
    }))
}

fn class(reference: Option<&Value>) -> Option<u64> {
    let field = |name: &str| string(reference?.get(name));
    structure("NodeClassReference")
        .field("Kind", field("kind"))
        .field("Name", field("name"))
        .field("Group", field("group"))
        .value()
}

/// A pointer to a duration: present even when it is zero, but then without its one field.
fn grace_period(value: Option<&Value>) -> Option<u64> {
    let nanos = nanos(value?)?;
    let nanos = (nanos != 0).then(|| number(nanos));
    Some(structure("Duration").field("Duration", nanos).hash)
}

/// A pointer inside a struct: `Never` is none, and zero counts.
fn expire_after(value: Option<&Value>) -> Option<u64> {
    // The API's default is part of the template.
    let nanos = value.map_or(Some(720 * 3_600_000_000_000), nanos)?;
    Some(structure("NillableDuration").field("Duration", Some(number(nanos))).hash)
}

fn nanos(value: &Value) -> Option<i64> {
    Some(value.as_str()?.parse::<GoDuration>().ok()?.as_nanos())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(spec: &Value) -> Value {
        let mut template = json!({"spec": {"requirements": [], "nodeClassRef":
            {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}});
        for (key, value) in spec.as_object().unwrap() {
            template["spec"][key] = value.clone();
        }
        template
    }

    #[test]
    fn hashes_equal_those_of_upstream() {
        let taint = |key: &str, value: Option<&str>, effect: &str| match value {
            Some(value) => json!({"key": key, "value": value, "effect": effect}),
            None => json!({"key": key, "effect": effect}),
        };
        let (a, c) = (taint("a", Some("b"), "NoSchedule"), taint("c", None, "NoExecute"));
        let start = json!([taint("d", None, "NoSchedule")]);
        let mut full = template(&json!({"expireAfter": "1h30m5s", "terminationGracePeriod": "5m",
            "taints": [a, c], "startupTaints": start}));
        full["metadata"] =
            json!({"labels": {"team": "a", "tier": "web"}, "annotations": {"x": "y"}});
        let mut swapped = template(
            &json!({"expireAfter": "5405s", "terminationGracePeriod": "300s",
            "taints": [c, a], "startupTaints": start, "requirements": [{"key": "k", "operator": "Exists"}]}),
        );
        swapped["metadata"] = full["metadata"].clone();
        let mut labelled = template(&json!({"expireAfter": "720h"}));
        labelled["metadata"] = json!({"labels": {}});
        let cases = [
            (template(&json!({"expireAfter": "720h"})), "12745407319442031341"),
            (template(&json!({})), "12745407319442031341"),
            (template(&json!({"expireAfter": "Never"})), "7428780003907761376"),
            (
                template(&json!({"expireAfter": "720h", "terminationGracePeriod": "30m"})),
                "1360483597026239722",
            ),
            (full, "9659275691912283937"),
            (swapped, "9659275691912283937"),
            (
                template(&json!({"expireAfter": "0s", "terminationGracePeriod": "0s"})),
                "11201156090959835969",
            ),
            (labelled, "5327702334917744615"),
        ];
        for (template, hash) in cases {
            assert_eq!(of_template(&template), hash, "{template}");
        }
    }
}
