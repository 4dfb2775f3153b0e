//! The manifests of `deploy/` on a real API server, where the loops of all rollouts have their
//! accounts.

use std::collections::BTreeSet;

use convoy_plan::Dialect;
use convoy_plan::dialect::apps::Deployments;
use convoy_plan::dialect::skyhook::Skyhook;
use serde_json::Value;

use crate::home;

const APPS: &str = "convoy-system";
const SKYHOOKS: &str = "skyhook";

#[test]
fn the_accounts_may_read_what_their_dialects_name() {
    reads("convoy-apps", &Deployments);
    crate::skyhooks::site::real();
    reads("convoy-skyhook", &Skyhook::new());
}

fn reads(role: &str, dialect: &dyn Dialect) {
    let role = home::real().access.get(&format!("clusterrole {role}"));
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
    let named = dialect.watches().iter().map(|watch| {
        let plural = format!("{}s", watch.kind.kind.to_lowercase()).replace("ys", "ies");
        format!("{}/{plural}", watch.kind.group)
    });
    assert_eq!(watched, named.collect());
}

#[test]
fn the_accounts_may_do_nothing_else() {
    crate::skyhooks::site::real();
    for (account, verb, resource, want) in [
        (APPS, "patch", "deployments", "yes"),
        (APPS, "create", "replicasets", "yes"),
        (APPS, "create", "deployments", "no"),
        (APPS, "delete", "deployments", "no"),
        (APPS, "create", "pods", "no"),
        (APPS, "delete", "pods", "no"),
        (APPS, "list", "secrets", "no"),
        (APPS, "list", "nodes", "no"),
        (APPS, "update", "leases", "no"),
        (SKYHOOKS, "patch", "nodes", "yes"),
        (SKYHOOKS, "delete", "nodes", "no"),
        (SKYHOOKS, "create", "pods", "no"),
        (SKYHOOKS, "delete", "pods", "no"),
        (SKYHOOKS, "create", "pods --subresource=eviction", "yes"),
        (SKYHOOKS, "list", "secrets", "no"),
        (SKYHOOKS, "delete", "skyhooks", "no"),
        (SKYHOOKS, "patch", "deploymentpolicies", "no"),
    ] {
        let who = format!("--as=system:serviceaccount:{account}:convoy");
        let asked = format!("auth can-i {verb} {resource} --all-namespaces {who}");
        let answer = home::real().access.try_kubectl(&asked, "").stdout;
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(answer.trim(), want, "{account} {verb} {resource}");
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
