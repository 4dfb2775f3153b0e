//! Works on behalf of a service account: it needs the rights itself.

use convoy_api::kinds::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING};
use serde_json::{Value, json};

use super::manifests::{conditions, config, on, shop};
use super::world::{EU, Site, web};
use super::{existing, manifest, settings, site};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn executed() -> Value {
    json!({"executor": {"subject": {"type": "ServiceAccount",
        "serviceAccount": {"namespace": "shop", "name": "runner"}}}})
}

fn role(name: &str, rules: &[(&[&str], &str, &str)]) -> Value {
    let rules: Vec<Value> = rules
        .iter()
        .map(|(verbs, group, resource)| {
            json!({"verbs": verbs, "apiGroups": [group], "resources": [resource]})
        })
        .collect();
    json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
}

fn bound(role: &str) -> Value {
    json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "namespace": "shop", "name": "runner"}]})
}

fn grant(site: &mut Site, name: &str, rules: &[(&[&str], &str, &str)]) {
    site.applier.insert(existing(&role(name, rules)));
    site.applier.insert(existing(&bound(name)));
}

const WRITES: &[&str] = &["create", "update", "patch", "get"];
const ALL: &[&str] = &["create", "update", "patch", "get", "delete"];

#[test]
fn a_work_is_applied_with_the_rights_of_its_executor() {
    let mut site = site(&[shop(), config("a")], executed());
    site.settle();
    assert!(!site.has(&settings()));
    assert_eq!(
        conditions(&manifest(&site, 1)),
        ["Applied=False/AppliedManifestFailed", "Available=False/ResourceNotAvailable"]
    );
    assert_eq!(
        manifest(&site, 1)["conditions"][0]["message"],
        "Failed to apply manifest: not allowed to apply the resource  configmaps, shop settings, \
         will try again in 1m0s"
    );
    grant(&mut site, "writer", &[(WRITES, "", "configmaps")]);
    site.settle();
    assert!(!site.has(&settings()), "it is to be deleted with its work, which nobody may");
    grant(&mut site, "writer", &[(ALL, "", "configmaps")]);
    site.settle();
    assert_eq!(site.get(&settings()).raw()["data"]["mode"], "a");
    let told = |site: &Site, at: usize| conditions(&manifest(site, at))[0].clone();
    assert_eq!(told(&site, 0), "Applied=False/AppliedManifestFailed", "the namespace is another");
    // A right that is taken away takes nothing away.
    grant(&mut site, "writer", &[]);
    site.edit(&web(), |raw| raw["spec"]["workload"]["manifests"][1] = config("b"));
    site.settle();
    assert_eq!(site.get(&settings()).raw()["data"]["mode"], "a");
    assert_eq!(
        conditions(&manifest(&site, 1)),
        [
            "Available=True/ResourceAvailable",
            "StatusFeedbackSynced=True/NoStatusFeedbackSynced",
            "Applied=False/AppliedManifestFailed"
        ]
    );
}

#[test]
fn nobody_hands_out_more_than_they_have() {
    let reads = role("reads", &[(&["get"], "", "secrets")]);
    let mut site = site(&[reads], executed());
    let roles: (&[&str], &str, &str) = (ALL, "rbac.authorization.k8s.io", "clusterroles");
    grant(&mut site, "writer", &[roles]);
    site.settle();
    let key = on(EU, &CLUSTER_ROLE, "", "reads");
    assert!(!site.has(&key));
    let told = manifest(&site, 0)["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert!(
        told.ends_with(
            "clusterroles,  reads, error: permission escalation, will try again in 1m0s"
        ),
        "{told}"
    );
    grant(&mut site, "writer", &[roles, (&["get", "list"], "", "secrets")]);
    site.settle();
    assert!(site.has(&key));
}

#[test]
fn a_binding_waits_for_the_role_that_it_names() {
    let mut site = site(&[bound("reads")], executed());
    let bindings: (&[&str], &str, &str) = (ALL, "rbac.authorization.k8s.io", "clusterrolebindings");
    grant(&mut site, "writer", &[bindings]);
    site.settle();
    let key = on(EU, &CLUSTER_ROLE_BINDING, "", "reads");
    assert!(!site.has(&key), "nobody knows what it would give");
    let told = manifest(&site, 0)["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("error: clusterroles \"reads\" not found"), "{told}");
    site.applier.insert(existing(&role("reads", &[])));
    site.settle();
    assert!(site.has(&key));
}

#[test]
fn an_executor_that_is_nobody_applies_nothing() {
    let mut site = site(&[shop()], json!({"executor": {"subject": {"type": "User"}}}));
    site.settle();
    let told = manifest(&site, 0)["conditions"][0]["message"].as_str().unwrap().to_owned();
    let expected = "Failed to apply manifest: only support ServiceAccount type for the executor";
    assert_eq!(told, expected);
}
