//! The manifests of `deploy/` on a real API server, where the loop of all rollouts has their
//! account.

use std::collections::BTreeSet;

use convoy_plan::Dialect;
use convoy_plan::dialect::apps::Deployments;
use serde_json::Value;

use crate::home;

const ACCOUNT: &str = "--as=system:serviceaccount:convoy-system:convoy";

#[test]
fn the_account_may_read_what_the_dialect_names() {
    let access = &home::real().access;
    let role = access.get("clusterrole convoy-apps");
    let words = |value: &Value| -> Vec<String> {
        let words = value.as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let mut watched = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        if words(&rule["verbs"]).contains(&"watch".to_owned()) {
            let group = &words(&rule["apiGroups"])[0];
            watched.extend(words(&rule["resources"]).iter().map(|name| format!("{group}/{name}")));
        }
    }
    let named = Deployments
        .watches()
        .iter()
        .map(|watch| format!("{}/{}s", watch.kind.group, watch.kind.kind.to_lowercase()));
    assert_eq!(watched, named.collect());
}

#[test]
fn the_account_may_do_nothing_else() {
    let access = &home::real().access;
    for (verb, resource, want) in [
        ("patch", "deployments", "yes"),
        ("create", "replicasets", "yes"),
        ("create", "deployments", "no"),
        ("delete", "deployments", "no"),
        ("create", "pods", "no"),
        ("delete", "pods", "no"),
        ("list", "secrets", "no"),
        ("list", "nodes", "no"),
        ("update", "leases", "no"),
    ] {
        let asked = format!("auth can-i {verb} {resource} --all-namespaces {ACCOUNT}");
        let answer = String::from_utf8(access.try_kubectl(&asked, "").stdout).unwrap();
        assert_eq!(answer.trim(), want, "{verb} {resource}");
    }
}

/// Its own Deployment is one like any other, and the pods that are admitted keep to the
/// namespace's restrictions.
#[test]
fn it_rolls_itself_out() {
    let access = &home::real().access;
    access.kubectl("rollout status deployment convoy -n convoy-system --timeout=120s");
    let lease = access.get("lease convoy -n convoy-system");
    assert!(!lease["spec"]["holderIdentity"].as_str().unwrap().is_empty(), "{lease}");
}
