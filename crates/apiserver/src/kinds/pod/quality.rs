//! How well a pod is served when its node runs short.

use convoy_api::text::Quantity;
use serde_json::Value;

/// `Guaranteed`: every container has limits of CPU and memory, equal to its requests.
/// `BestEffort`: no container has requests or limits. `Burstable`: all other pods.
pub(super) fn class(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let own = &spec["resources"];
    if names(own).next().is_some() {
        return graded(std::iter::once(own));
    }
    let containers = ["containers", "initContainers"].map(|list| spec[list].as_array());
    graded(containers.into_iter().flatten().flatten().map(|container| &container["resources"]))
}

fn graded<'v>(all: impl Iterator<Item = &'v Value>) -> &'static str {
    let (mut any, mut guaranteed) = (false, true);
    for resources in all {
        any |= names(resources).next().is_some();
        guaranteed &= ["cpu", "memory"].into_iter().all(|name| {
            let limit = positive(&resources["limits"][name]);
            let request = positive(&resources["requests"][name]);
            limit.is_some() && request.is_none_or(|request| Some(request) == limit)
        });
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Which of CPU and memory have a request or a limit.
fn names(resources: &Value) -> impl Iterator<Item = (&'static str, &'static str)> {
    let pairs = ["requests", "limits"]
        .into_iter()
        .flat_map(|part| ["cpu", "memory"].into_iter().map(move |name| (part, name)));
    pairs.filter(|(part, name)| positive(&resources[*part][*name]).is_some())
}

fn positive(amount: &Value) -> Option<Quantity> {
    let amount: Quantity = match amount {
        Value::String(text) => text.parse().ok()?,
        Value::Number(number) => number.to_string().parse().ok()?,
        _ => return None,
    };
    (amount > Quantity::ZERO).then_some(amount)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_follows_from_limits_and_requests() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let cases = [
            (json!({}), "BestEffort"),
            (json!({"limits": {"cpu": "0"}}), "BestEffort"),
            (json!({"requests": {"cpu": "1"}}), "Burstable"),
            (json!({"limits": both, "requests": both}), "Guaranteed"),
            (json!({"limits": both, "requests": {"cpu": "1", "memory": "1024Mi"}}), "Guaranteed"),
            (json!({"limits": both, "requests": {"cpu": "500m", "memory": "1Gi"}}), "Burstable"),
            (json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}), "Burstable"),
        ];
        for (resources, expected) in cases {
            let pod = json!({"spec": {"containers": [{"name": "a", "resources": resources}]}});
            assert_eq!(class(&pod), expected, "{resources}");
        }
    }
}
