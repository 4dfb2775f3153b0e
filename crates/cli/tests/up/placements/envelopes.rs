//! Envelopes: objects that shall take effect on members only.

use serde_json::{Value, json};

use super::site::{embedded, fixed, placed, rolling};

#[test]
fn envelopes_are_unpacked_into_works_of_their_own_and_leave_nothing_behind() {
    let site = embedded().site("envelopes");
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "amounts", "namespace": site.name}, "spec": {"hard": {"pods": "3"}}});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "enveloped"}, "rules": []});
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["secrets"]});
    let hook = json!({"name": "guard.example.com", "sideEffects": "None", "rules": [rule],
        "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/guard"},
        "namespaceSelector": {"matchLabels": {"guarded": "yes"}}});
    let webhook = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "guard"}, "webhooks": [hook]});
    let envelope = |kind: &str, metadata: Value, data: Value| {
        site.apply(&json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": kind,
            "metadata": metadata, "data": data}));
    };
    let within = json!({"name": "limits", "namespace": site.name});
    envelope("ResourceEnvelope", within, json!({"quota.yaml": quota}));
    let data = json!({"role.yaml": role, "webhook.yaml": webhook});
    envelope("ClusterResourceEnvelope", json!({"name": "access"}), data);
    let selectors = json!([
        {"group": "", "version": "v1", "kind": "Namespace", "name": site.name},
        {"group": "placement.kubernetes-fleet.io", "version": "v1beta1",
            "kind": "ClusterResourceEnvelope", "name": "access"}]);
    let fields = json!({"resourceSelectors": selectors, "policy": fixed(&["member-1", "member-2"]),
        "strategy": rolling(&json!({}))});
    site.place_with(&site.name, &fields);
    let placement = site.finished(0);
    for kind in ["Scheduled", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied"] {
        assert!(placed(&placement, kind).starts_with("True"), "{kind}: {placement}");
    }
    let works = |member: &str| {
        let works = site.hub.get(&format!(
            "works -n fleet-member-{member} -l kubernetes-fleet.io/parent-CRP={}",
            site.name
        ));
        works["items"].as_array().unwrap().clone()
    };
    for member in ["member-1", "member-2"] {
        assert_eq!(works(member).len(), 3, "one for the snapshot and one for each envelope");
        for work in works(member) {
            assert_eq!(work["metadata"]["generation"], 1, "a Work is written once: {work}");
        }
        let quota = site.on(member, "resourcequota amounts").unwrap();
        assert_eq!(quota["spec"]["hard"]["pods"], "3");
        site.on(member, "clusterrole enveloped").unwrap();
        site.on(member, "validatingwebhookconfiguration guard").unwrap();
    }
    let hub = |what: &str| site.hub.refused(&format!("get {what} -n {}", site.name), "");
    assert!(hub("resourcequota amounts").contains("NotFound"));
    assert!(hub("clusterrole enveloped").contains("NotFound"));

    site.hub.kubectl(&format!("delete clusterresourceplacement {} --timeout=60s", site.name));
    for member in ["member-1", "member-2"] {
        assert!(works(member).is_empty());
        site.until_on(member, "clusterrole enveloped", Value::is_null);
        site.until_on(member, "validatingwebhookconfiguration guard", Value::is_null);
        site.members[member]
            .kubectl(&format!("wait --for=delete namespace/{} --timeout=60s", site.name));
    }
}
