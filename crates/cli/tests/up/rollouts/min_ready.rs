//! `minReadySeconds` by the clock: a pod counts when it has been ready for as long as that, although
//! its condition tells the second only. ReplicaSets of a real cluster are kube-controller-manager's,
//! which counts from the beginning of that second.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::{condition, items};
use crate::access::Access;

const MIN_READY: Duration = Duration::from_secs(1);

#[test]
fn a_pod_counts_when_its_seconds_have_passed() {
    let site = crate::home::embedded().namespace("min_ready");
    for attempt in 0..3 {
        let settled = settled(&site, &format!("web-{attempt}"));
        assert!(settled >= MIN_READY, "it counted after {settled:?}");
    }
}

/// The longest that the pod of a new Deployment can have been ready when it was seen to count.
fn settled(site: &Access, name: &str) -> Duration {
    let labels = json!({"app": name});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name}, "spec": {"minReadySeconds": MIN_READY.as_secs(),
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "example/web:1"}]}}}});
    late_in_a_second();
    site.kubectl_with("apply -f -", &deployment.to_string());
    let started = Instant::now();
    let mut not_ready = started;
    loop {
        let looks = Instant::now();
        let found = site.get(&format!("pods,replicasets -l app={name}"));
        if items(&found).any(|object| object["status"]["availableReplicas"] == 1) {
            return not_ready.elapsed();
        }
        if !items(&found).any(|object| condition(object, "Ready").starts_with("True")) {
            not_ready = looks;
        }
        assert!(started.elapsed() < Duration::from_mins(2), "{found:#}");
    }
}

/// Readiness late in a second is told as its beginning, which is what matters here.
fn late_in_a_second() {
    let fraction = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_millis();
    std::thread::sleep(Duration::from_millis(u64::from((1500 - fraction) % 1000)));
}
