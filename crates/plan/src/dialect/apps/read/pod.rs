//! What a pod says about itself while it is not ready.

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use serde_json::Value;

/// Why a pod is not ready, in the words of its kubelet and scheduler: the first container that
/// does not run, the scheduler's message, or its phase.
pub(crate) fn trouble(pod: &Object) -> String {
    let status = pod.status();
    let containers = ["initContainerStatuses", "containerStatuses"];
    let mut statuses = containers.iter().flat_map(|name| list(status, name));
    if let Some(told) = statuses.find_map(of_container) {
        return told;
    }
    if let Some(scheduled) = pod.condition("PodScheduled")
        && text(scheduled, "status") == "False"
    {
        return joined(text(scheduled, "reason"), text(scheduled, "message"));
    }
    match text(status, "phase") {
        "" => "Pending".to_owned(),
        "Running" => "its readiness probe has not succeeded".to_owned(),
        phase => phase.to_owned(),
    }
}

fn of_container(status: &Value) -> Option<String> {
    let state = field(status, "state");
    let waiting = field(state, "waiting");
    let ended = field(state, "terminated");
    let name = text(status, "name");
    if !waiting.is_null() {
        // Its beginning is no trouble.
        let reason = Some(text(waiting, "reason")).filter(|it| *it != "PodInitializing")?;
        return Some(format!("container {name}: {}", joined(reason, text(waiting, "message"))));
    }
    let code = field(ended, "exitCode").as_i64().filter(|code| *code != 0)?;
    Some(format!("container {name} ended with code {code}"))
}

fn joined(reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_trouble_is_told() {
        let waiting = |reason: &str| json!({"name": "web", "state": {"waiting": {"reason": reason, "message": "why"}}});
        let cases = [
            (
                json!({"containerStatuses": [waiting("ErrImagePull")]}),
                "container web: ErrImagePull: why",
            ),
            (
                json!({"initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 3}}}],
                    "containerStatuses": [waiting("PodInitializing")]}),
                "container init ended with code 3",
            ),
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                    "reason": "Unschedulable", "message": "0/3 nodes are available"}]}),
                "Unschedulable: 0/3 nodes are available",
            ),
            (json!({"phase": "Running"}), "its readiness probe has not succeeded"),
            (json!({}), "Pending"),
        ];
        for (status, told) in cases {
            let pod = object("v1", "Pod", "p").status(status).build();
            assert_eq!(trouble(&pod), told);
        }
    }
}
