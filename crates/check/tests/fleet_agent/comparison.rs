//! Comparisons of manifests with what a server makes of them.

use convoy_api::kinds::DEPLOYMENT;
use serde_json::{Value, json};

use super::manifests::{config, on, shop};
use super::world::Site;
use super::{EU, existing, site, told, web};

/// A manifest, and the same object with what an API server adds to it.
fn defaulted() -> Vec<(Value, Value)> {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "front", "namespace": "shop"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "front"}},
            "template": {"metadata": {"labels": {"app": "front"}},
                "spec": {"containers": [{"name": "app", "image": "v1",
                    "ports": [{"containerPort": 80}],
                    "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
                    "env": [{"name": "A", "value": "1"}]}]}}}});
    let mut stored = deployment.clone();
    let spec = &mut stored["spec"];
    spec["progressDeadlineSeconds"] = json!(600);
    spec["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    let pod = &mut spec["template"]["spec"];
    for (name, value) in [("restartPolicy", "Always"), ("dnsPolicy", "ClusterFirst")] {
        pod[name] = json!(value);
    }
    pod["containers"][0]["imagePullPolicy"] = json!("IfNotPresent");
    pod["containers"][0]["ports"][0]["protocol"] = json!("TCP");
    pod["containers"][0]["resources"]["requests"] = json!({"cpu": "1", "memory": "1Gi"});
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "front", "namespace": "shop"},
        "spec": {"selector": {"app": "front"}, "ports": [{"port": 80}]}});
    let mut served = service.clone();
    served["spec"]["clusterIP"] = json!("10.0.0.7");
    served["spec"]["clusterIPs"] = json!(["10.0.0.7"]);
    served["spec"]["type"] = json!("ClusterIP");
    served["spec"]["sessionAffinity"] = json!("None");
    served["spec"]["ports"] = json!([{"port": 80, "targetPort": 80, "protocol": "TCP"}]);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "shop"}, "spec": {"hard": {"cpu": "2000m"}}});
    let mut kept = quota.clone();
    kept["spec"]["hard"]["cpu"] = json!("2");
    kept["status"] = json!({"used": {"cpu": "0"}});
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "n", "namespace": "shop"},
        "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}});
    let mut enforced = policy.clone();
    enforced["spec"]["policyTypes"] = json!(["Ingress"]);
    enforced["spec"]["ingress"][0]["ports"][0]["protocol"] = json!("TCP");
    vec![(deployment, stored), (service, served), (quota, kept), (policy, enforced)]
}

fn differences(site: &Site, at: usize, details: &str, list: &str) -> Vec<String> {
    let entry = &site.get(&web()).status()["manifestConditions"][at][details][list];
    let entries = entry.as_array().cloned().unwrap_or_default();
    entries.iter().map(|it| it["path"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn what_a_server_adds_is_no_difference_in_a_partial_comparison() {
    for (manifest, stored) in defaulted() {
        let kind = manifest["kind"].clone();
        let if_no_diff = json!({"whenToTakeOver": "IfNoDiff", "whenToApply": "IfNotDrifted",
            "comparisonOption": "PartialComparison"});
        let mut site = site(&[shop(), manifest.clone()], &if_no_diff);
        site.applier.insert(existing(&stored));
        site.settle();
        assert_eq!(told(&site, 1)[0], "Applied=True/Applied", "{kind}: taken over and not drifted");
        let report = json!({"type": "ReportDiff", "comparisonOption": "PartialComparison"});
        let mut reporting = super::site(&[shop(), manifest.clone()], &report);
        reporting.applier.insert(existing(&stored));
        reporting.settle();
        assert_eq!(told(&reporting, 1), ["DiffReported=True/NoDiffFound"], "{kind}");
        let full = json!({"type": "ReportDiff", "comparisonOption": "FullComparison"});
        let mut fully = super::site(&[shop(), manifest], &full);
        fully.applier.insert(existing(&stored));
        fully.settle();
        assert_eq!(told(&fully, 1), ["DiffReported=True/FoundDiff"], "{kind}: all fields count");
    }
}

#[test]
fn a_field_that_nobody_can_change_makes_the_comparison_a_full_one() {
    let (manifest, mut stored) = defaulted().remove(0);
    stored["spec"]["selector"] = json!({"matchLabels": {"app": "other"}});
    let report = json!({"type": "ReportDiff", "comparisonOption": "PartialComparison"});
    let mut site = site(&[shop(), manifest.clone()], &report);
    site.applier.insert(existing(&stored));
    site.settle();
    assert_eq!(told(&site, 1), ["DiffReported=True/FoundDiffInDegradedMode"]);
    let paths = differences(&site, 1, "diffDetails", "observedDiffs");
    for path in ["/spec/selector/matchLabels/app", "/spec/progressDeadlineSeconds"] {
        assert!(paths.iter().any(|found| found == path), "{path} is not in {paths:?}");
    }
    let if_not_drifted = json!({"whenToApply": "IfNotDrifted"});
    let mut drifting = super::site(&[shop(), manifest], &if_not_drifted);
    drifting.settle();
    drifting.edit(&on(EU, &DEPLOYMENT, "shop", "front"), |raw| {
        raw["spec"]["selector"] = json!({"matchLabels": {"app": "other"}});
    });
    drifting.settle();
    assert_eq!(told(&drifting, 1)[0], "Applied=False/FoundDriftsInDegradedMode");
}

#[test]
fn what_other_programs_note_on_objects_is_not_taken_along() {
    let mut map = config("a");
    map["metadata"]["annotations"] = json!({
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "deployment.kubernetes.io/revision": "7",
        "team": "shop",
    });
    let mut site = site(&[shop(), map], &json!({}));
    site.settle();
    let live = site.get(&super::settings());
    assert_eq!(live.annotation("team"), Some("shop"));
    assert_eq!(live.annotation("deployment.kubernetes.io/revision"), None);
    assert_eq!(live.annotation("kubectl.kubernetes.io/last-applied-configuration"), None);
}
