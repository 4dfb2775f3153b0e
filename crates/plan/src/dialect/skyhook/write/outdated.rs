//! Whether a running package pod is still what the spec asks for. Only what the spec decides
//! is compared: a `LimitRange` or an admission webhook may have filled in the rest.

use convoy_api::Object;
use serde_json::Value;

use crate::dialect::skyhook::names::{LIMIT_RANGER, PACKAGE};
use crate::dialect::skyhook::write::pod::AGENT_ENVIRONMENT;
use convoy_api::text::quantity::Quantity;

/// Whether `pod` differs from `wanted`, the body it would be made with now.
pub(crate) fn is_outdated(pod: &Object, wanted: &Value) -> bool {
    let label = wanted.pointer("/metadata/labels").and_then(|labels| labels.get(PACKAGE));
    if pod.label(PACKAGE) != label.and_then(Value::as_str) {
        return true;
    }
    let (have, want) = (init_containers(pod.raw()), init_containers(wanted));
    have.len() != want.len()
        || have.iter().zip(want).any(|(have, want)| differs(have, want))
        || want.iter().all(|want| want.get("resources").is_none()) && gives_resources(pod)
}

/// Whether a pod was made with amounts of its package: all four of them in every step, and
/// nobody says to have filled them in.
fn gives_resources(pod: &Object) -> bool {
    let gives = |container: &Value| {
        ["requests", "limits"].into_iter().all(|side| {
            let amounts = container.pointer(&format!("/resources/{side}"));
            ["cpu", "memory"].iter().all(|name| amounts.is_some_and(|it| it.get(name).is_some()))
        })
    };
    pod.annotation(LIMIT_RANGER).is_none() && init_containers(pod.raw()).iter().all(gives)
}

fn init_containers(pod: &Value) -> &[Value] {
    let list = pod.pointer("/spec/initContainers").and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn differs(have: &Value, want: &Value) -> bool {
    have.get("name") != want.get("name")
        || have.get("image") != want.get("image")
        || environment(have).ne(environment(want))
        || resources_differ(have, want)
}

/// Name and source of every variable that the spec gives, in order.
fn environment(container: &Value) -> impl Iterator<Item = (&str, &str, Option<&Value>)> {
    let list = container.get("env").and_then(Value::as_array).into_iter().flatten();
    let own = |name: &str| name == "SKYHOOK_DIR" || AGENT_ENVIRONMENT.contains(&name);
    list.filter_map(move |entry| {
        let name = entry.get("name").and_then(Value::as_str).filter(|name| !own(name))?;
        let value = entry.get("value").and_then(Value::as_str).unwrap_or_default();
        // A server fills in fields of valueFrom, so that only its presence can be compared.
        Some((name, value, entry.get("valueFrom").map(|_| &Value::Null)))
    })
}

/// Compared by amount, and only where the spec gives one.
fn resources_differ(have: &Value, want: &Value) -> bool {
    ["requests", "limits"].into_iter().any(|side| {
        let wanted = want.pointer(&format!("/resources/{side}")).and_then(Value::as_object);
        wanted.into_iter().flatten().any(|(resource, amount)| {
            let pointer = format!("/resources/{side}/{resource}");
            quantity(have.pointer(&pointer)) != quantity(Some(amount))
        })
    })
}

fn quantity(value: Option<&Value>) -> Option<Quantity> {
    value?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_the_spec_decides_is_compared() {
        let container = json!({"name": "a-apply", "image": "agent:1",
            "env": [{"name": "MODE", "value": "x"}, {"name": "COPY_RESOLV", "value": "false"}],
            "resources": {"limits": {"cpu": "1"}}});
        let wanted = json!({"metadata": {"labels": {PACKAGE: "a-1"}},
            "spec": {"initContainers": [container]}});
        let pod = |field: &str, value: Value| {
            let mut changed = container.clone();
            changed[field] = value;
            object("v1", "Pod", "p")
                .label(PACKAGE, "a-1")
                .spec(json!({"initContainers": [changed]}))
                .build()
        };
        let cases = [
            ("the same", pod("image", json!("agent:1")), false),
            ("another image", pod("image", json!("agent:2")), true),
            ("another amount", pod("resources", json!({"limits": {"cpu": "2"}})), true),
            (
                "the same amount, and a default",
                pod("resources", json!({"limits": {"cpu": "1000m", "memory": "1Gi"}})),
                false,
            ),
            ("another variable", pod("env", json!([{"name": "MODE", "value": "y"}])), true),
            (
                "only our own variables differ",
                pod(
                    "env",
                    json!([{"name": "MODE", "value": "x"},
                    {"name": "SKYHOOK_RESOURCE_ID", "value": "z"}]),
                ),
                false,
            ),
        ];
        for (case, pod, expected) in cases {
            assert_eq!(is_outdated(&pod, &wanted), expected, "{case}");
        }
    }

    #[test]
    fn amounts_that_are_no_longer_given_count() {
        let amounts = json!({"cpu": "1", "memory": "1Gi"});
        let container = |resources: Value| json!({"name": "a-apply", "resources": resources});
        let wanted = json!({"metadata": {"labels": {PACKAGE: "a-1"}},
            "spec": {"initContainers": [{"name": "a-apply"}]}});
        let pod = |resources: Value| {
            let spec = json!({"initContainers": [container(resources)]});
            object("v1", "Pod", "p").label(PACKAGE, "a-1").spec(spec)
        };
        let given = json!({"requests": amounts, "limits": amounts});
        assert!(is_outdated(&pod(given.clone()).build(), &wanted));
        let filled = pod(given).annotation(LIMIT_RANGER, "LimitRanger plugin set: cpu").build();
        assert!(!is_outdated(&filled, &wanted));
        assert!(!is_outdated(&pod(json!({"requests": amounts})).build(), &wanted));
    }
}
