//! Kubelets for tests: they run the init containers of package pods, which succeed, fail for
//! a while or fail for good, by node and package.

use std::cell::Cell;

use convoy_api::{Object, ObjectKey};
use convoy_check::Applier;
use serde_json::{Value, json};

use super::POD;

/// All kubelets of a fleet.
#[derive(Debug)]
pub(crate) struct Kubelets {
    seed: u64,
    /// One in so many package runs fails.
    one_in: u64,
    for_good: bool,
    failed_for_good: Cell<bool>,
}

impl Kubelets {
    pub(crate) fn new(seed: u64, one_in: u64, for_good: bool) -> Self {
        Self { seed, one_in, for_good, failed_for_good: Cell::new(false) }
    }

    pub(crate) fn has_failed_for_good(&self) -> bool {
        self.failed_for_good.get()
    }

    /// One step of every pod; whether anything changed.
    pub(crate) fn act(&self, applier: &mut Applier) -> bool {
        let pods: Vec<Object> = applier
            .world()
            .of(&POD)
            .filter(|pod| pod.label("skyhook.nvidia.com/name").is_some())
            .cloned()
            .collect();
        let mut changed = false;
        for pod in pods {
            if let Some(statuses) = self.next(&pod) {
                let key: ObjectKey = pod.key().clone();
                applier.edit(&key, |raw| raw["status"]["initContainerStatuses"] = statuses);
                changed = true;
            }
        }
        changed
    }

    /// The statuses that a pod reports next; none if it stays as it is.
    fn next(&self, pod: &Object) -> Option<Value> {
        let steps = pod.spec()["initContainers"].as_array()?.len();
        let done = json!({"state": {"terminated": {"exitCode": 0}}});
        let failing = json!([{"state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "restartCount": 1}]);
        let succeeded = Value::Array(vec![done; steps]);
        let reported = pod.status().get("initContainerStatuses");
        match reported {
            None if self.fails(pod) => Some(failing),
            Some(now) if *now == succeeded => None,
            Some(_) if self.for_good => {
                self.failed_for_good.set(true);
                None
            }
            _ => Some(succeeded),
        }
    }

    fn fails(&self, pod: &Object) -> bool {
        let name = pod.name().bytes();
        let hash = name.fold(self.seed | 1, |hash, byte| {
            hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
        });
        (hash >> 20) % self.one_in == 0
    }
}
