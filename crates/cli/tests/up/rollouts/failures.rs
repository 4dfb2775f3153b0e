//! Releases that do not work, and what they may cost.

use serde_json::json;

use super::{condition, create, finish, in_both_homes, items, only, set_image};
use crate::access::Access;

in_both_homes! {
    a_bad_image_is_contained,
    a_deadline_that_passes_is_reported,
    pods_that_are_refused_are_reported,
}

fn a_bad_image_is_contained(site: &Access) {
    create(site, 4);
    let serving = super::uids(site, "pods -l app=web");
    set_image(site, "bad");
    // One of four may be missing, one be in surplus: two new ones are tried.
    site.until("deployment web", |web| {
        let status = &web["status"];
        let available = status["availableReplicas"].as_u64().unwrap_or(0);
        assert!(available >= 3, "{status}");
        status["updatedReplicas"] == 2 && status["replicas"] == 5 && available == 3
    });
    let waits = |pod: &serde_json::Value| {
        let reason = pod.pointer("/status/containerStatuses/0/state/waiting/reason");
        reason.is_some_and(|reason| reason == "ErrImagePull" || reason == "ImagePullBackOff")
    };
    let pods = site.until("pods -l app=web", |pods| {
        items(pods).count() == 5 && items(pods).filter(|pod| waits(pod)).count() == 2
    });
    let old = items(&pods).filter(|pod| {
        let uid = super::text(&pod["metadata"]["uid"]);
        serving.contains(&uid) && condition(pod, "Ready").starts_with("True")
    });
    assert_eq!(old.count(), 3, "they were never touched");
    site.kubectl("rollout undo deployment web");
    finish(site);
    only(site, 4, "1");
}

fn a_deadline_that_passes_is_reported(site: &Access) {
    create(site, 2);
    let hurried = |deadline: u32, tag: &str| {
        let containers = json!([{"name": "web", "image": format!("example/web:{tag}")}]);
        let template = json!({"spec": {"containers": containers}});
        let patch = json!({"spec": {"progressDeadlineSeconds": deadline, "template": template}});
        site.kubectl(&format!("patch deployment web -p {patch}"));
    };
    hurried(1, "stuck");
    let refused = site.refused("rollout status deployment web --timeout=120s", "");
    assert!(refused.contains("exceeded its progress deadline"), "{refused}");
    let late = site.get("deployment web");
    assert_eq!(condition(&late, "Progressing"), "False/ProgressDeadlineExceeded");
    assert_eq!(condition(&late, "Available"), "True/MinimumReplicasAvailable");
    hurried(600, "3");
    finish(site);
    let web = site.get("deployment web");
    assert_eq!(condition(&web, "Progressing"), "True/NewReplicaSetAvailable");
}

fn pods_that_are_refused_are_reported(site: &Access) {
    create(site, 2);
    let namespace = super::text(&site.get("deployment web")["metadata"]["namespace"]);
    let name = format!("{namespace}.example.com");
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["pods"]}]},
            "validations": [{"expression": "object.spec.containers.all(c, !c.image.endsWith(':no'))",
                "message": "this image is not for us"}]},
    });
    let within = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": within}},
    });
    for object in [policy, binding] {
        site.kubectl_with("create -f -", &object.to_string());
    }
    // Servers take a moment to know their policies.
    while site.try_kubectl("run probe --image=example/web:no --dry-run=server", "").status.success()
    {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    set_image(site, "no");
    let web = site.until("deployment web", |web| !condition(web, "ReplicaFailure").is_empty());
    assert_eq!(condition(&web, "ReplicaFailure"), "True/FailedCreate");
    let sets = site.get("replicasets");
    let failing =
        |set: &&serde_json::Value| condition(set, "ReplicaFailure") == "True/FailedCreate";
    let message = items(&sets).find(failing).unwrap()["status"]["conditions"][0]["message"].clone();
    assert!(message.as_str().unwrap().contains("this image is not for us"), "{message}");
    assert!(web["status"]["availableReplicas"].as_u64().unwrap() >= 1, "{web}");

    site.kubectl(&format!("delete validatingadmissionpolicybinding {name}"));
    finish(site);
    only(site, 2, "no");
    site.until("deployment web", |web| condition(web, "ReplicaFailure").is_empty());
    site.kubectl(&format!("delete validatingadmissionpolicy {name}"));
}
