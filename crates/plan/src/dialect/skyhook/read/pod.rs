//! The package pods that run stages on a node: which package and stage each runs, and with what
//! result.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::skyhook::Stage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dialect::skyhook::names::{CONFIG_MIRROR, NAME, PACKAGE, unique};
use crate::node_selector::CORDONED;
use crate::pods::node_of;
use crate::taint::Toleration;

/// The annotation that says which package and stage a pod runs. The order of fields is the order on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackageTag {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) skyhook: String,
    pub(crate) stage: Stage,
    /// Absent only in what people wrote by hand.
    #[serde(default)]
    pub(crate) image: String,
    #[serde(default, rename = "containerSHA", skip_serializing_if = "String::is_empty")]
    pub(crate) container_sha: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) invalid: bool,
}

/// How a pod's steps went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodResult {
    Running,
    Complete,
    Failed { restarts: i64 },
}

/// The package pods of one Skyhook, and who else is at work on the nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pods<'w> {
    ours: BTreeMap<&'w str, Vec<&'w Object>>,
    /// By node, one pod of another Skyhook.
    others: BTreeMap<&'w str, &'w Object>,
}

impl<'w> Pods<'w> {
    pub(crate) fn new(skyhook: &str, pods: &[&'w Object]) -> Self {
        let mut index = Self::default();
        for pod in pods.iter().copied() {
            let Some(owner) = pod.label(NAME) else { continue };
            let Some(node) = node_of(pod) else { continue };
            if owner == skyhook {
                index.ours.entry(node).or_default().push(pod);
            } else {
                index.others.entry(node).or_insert(pod);
            }
        }
        index
    }

    /// This Skyhook's pods on a node, by namespace and name.
    pub(crate) fn on(&self, node: &str) -> &[&'w Object] {
        self.ours.get(node).map_or(&[], Vec::as_slice)
    }

    /// A package pod of another Skyhook on a node.
    pub(crate) fn other_on(&self, node: &str) -> Option<&'w Object> {
        self.others.get(node).copied()
    }
}

impl PackageTag {
    pub(crate) fn of(pod: &Object) -> Option<Self> {
        serde_json::from_str(pod.annotation(PACKAGE)?).ok()
    }

    pub(crate) fn unique(&self) -> String {
        unique(&self.name, &self.version)
    }

    /// Whether its result hangs on the package's config. After `apply` the config is read
    /// again, and `uninstall` is not given it.
    pub(crate) fn depends_on_config(&self) -> bool {
        !matches!(self.stage, Stage::Apply | Stage::Uninstall)
    }
}

/// The phase that a pod's status gives.
pub(crate) fn phase(pod: &Object) -> Option<&str> {
    pod.status().get("phase").and_then(Value::as_str)
}

/// Whether a pod runs, or is about to.
pub(crate) fn is_alive(pod: &Object) -> bool {
    matches!(phase(pod), Some("Running" | "Pending") | None)
}

/// Whether a drain evicts a pod: all but those that tolerate a cordon, system pods, DaemonSet
/// pods and mirror pods.
pub(crate) fn has_to_go(pod: &Object) -> bool {
    let tolerations = pod.spec().get("tolerations").and_then(Value::as_array);
    let stays = tolerations
        .into_iter()
        .flatten()
        .any(|toleration| Toleration::from_value(toleration).tolerates(&CORDONED));
    let daemon = pod.owners().any(|owner| owner.kind == "DaemonSet");
    let mirror = pod.annotation(CONFIG_MIRROR).is_some();
    !(stays || daemon || mirror || pod.namespace() == "kube-system")
}

/// The result of a pod for this stage, by its init containers: all of them succeeded, one failed, or
/// neither yet. An image that cannot be pulled is a failure. That an interrupt's container ended
/// before it was started again is none: it goes down with the machine that it reboots.
pub(crate) fn pod_result(pod: &Object, stage: Stage) -> PodResult {
    let statuses = pod.status().get("initContainerStatuses").and_then(Value::as_array);
    let statuses = statuses.map_or(&[] as &[Value], Vec::as_slice);
    let number = |value: Option<&Value>| value.and_then(Value::as_i64);
    for status in statuses {
        let state = status.get("state");
        let exit = number(state.and_then(|state| state.get("terminated")?.get("exitCode")));
        let reason = state.and_then(|state| state.get("waiting")?.get("reason")?.as_str());
        let stuck =
            matches!(reason, Some("CrashLoopBackOff" | "ErrImagePull" | "ImagePullBackOff"));
        let restarts = number(status.get("restartCount")).unwrap_or(0);
        let goes_down = stage == Stage::Interrupt && restarts == 0;
        if stuck || exit.is_some_and(|code| code != 0 && !goes_down) {
            return PodResult::Failed { restarts };
        }
    }
    let steps = pod.spec().get("initContainers").and_then(Value::as_array).map_or(0, Vec::len);
    let succeeded =
        |status: &Value| number(status.pointer("/state/terminated/exitCode")) == Some(0);
    if steps > 0 && statuses.len() >= steps && statuses.iter().all(succeeded) {
        return PodResult::Complete;
    }
    PodResult::Running
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;
    use serde_json::json;

    use super::*;

    fn with(statuses: &Value) -> Object {
        object("v1", "Pod", "p")
            .spec(json!({"initContainers": [{"name": "a"}, {"name": "b"}]}))
            .status(json!({"initContainerStatuses": statuses}))
            .build()
    }

    #[test]
    fn an_interrupt_may_go_down_with_its_machine_but_not_fail_again() {
        let ended = |restarts: u32| {
            with(&json!([{"state": {"terminated": {"exitCode": 255}}, "restartCount": restarts}]))
        };
        assert_eq!(pod_result(&ended(0), Stage::Interrupt), PodResult::Running);
        assert_eq!(pod_result(&ended(1), Stage::Interrupt), PodResult::Failed { restarts: 1 });
        assert_eq!(pod_result(&ended(0), Stage::Config), PodResult::Failed { restarts: 0 });
        let unpullable = with(&json!([{"state": {"waiting": {"reason": "ErrImagePull"}}}]));
        assert_eq!(pod_result(&unpullable, Stage::Interrupt), PodResult::Failed { restarts: 0 });
    }

    #[test]
    fn a_pod_is_judged_by_its_init_containers() {
        let done = json!({"state": {"terminated": {"exitCode": 0}}});
        let failed = json!({"state": {"terminated": {"exitCode": 2}}, "restartCount": 4});
        let crashing =
            json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 3});
        let unpullable = json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}});
        let running = json!({"state": {"running": {}}});
        let cases = [
            ("nothing reported", json!([]), PodResult::Running),
            ("all done", json!([done, done]), PodResult::Complete),
            ("one to go", json!([done]), PodResult::Running),
            ("second runs", json!([done, running]), PodResult::Running),
            ("second failed", json!([done, failed]), PodResult::Failed { restarts: 4 }),
            ("first crashes", json!([crashing, running]), PodResult::Failed { restarts: 3 }),
            ("no image", json!([unpullable]), PodResult::Failed { restarts: 0 }),
        ];
        for (case, statuses, expected) in cases {
            assert_eq!(pod_result(&with(&statuses), Stage::Apply), expected, "{case}");
        }
    }
}
