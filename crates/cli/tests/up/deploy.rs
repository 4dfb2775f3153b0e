//! The manifests of `deploy/` on a real API server, where the loops of all rollouts have their
//! accounts.

use std::collections::BTreeSet;

use convoy_api::GroupKind;
use convoy_plan::Dialect;
use convoy_plan::dialect::apps::Deployments;
use convoy_plan::dialect::fleet::Hub;
use convoy_plan::dialect::fleet_agent::FleetAgent;
use convoy_plan::dialect::karpenter::Operator;
use convoy_plan::dialect::ocm;
use convoy_plan::dialect::ocm_agent::{self, OcmAgent};
use convoy_plan::dialect::ocm_registration::{self, OcmRegistration};
use convoy_plan::dialect::skyhook::Skyhook;
use convoy_plan::dialect::{Keep, Watch};
use serde_json::Value;

use crate::access::Access;
use crate::home;

const APPS: &str = "convoy-system";
const SKYHOOKS: &str = "skyhook";

#[test]
fn the_accounts_may_read_what_their_dialects_name() {
    reads("convoy-apps", &Deployments);
    crate::skyhooks::site::real();
    reads("convoy-skyhook", &Skyhook::new());
    let placements = crate::placements::site::real();
    reads("convoy-fleet", &Hub::default());
    let [far, ..] = crate::placements::site::REAL;
    let agent = FleetAgent::new(far);
    compare(placements.member(far), "clusterrole convoy-agent-fleet", agent.member_watches());
    // What it has on the hub is granted by the hub, in its own namespace.
    let role = format!("role fleet-role-{far} -n fleet-member-{far}");
    compare(&home::real().access, &role, agent.watches());
}

#[test]
fn accounts_of_ocm_may_read_what_their_dialects_name_and_do_nothing_else() {
    let hub = crate::ocm_real::hub();
    reads("convoy-ocm", &ocm::Hub { parts: ocm::HubControllers::ALL });
    let work = OcmAgent::new(ocm_agent::Options::new(home::MANAGED, ""));
    let registration = OcmRegistration::new(ocm_registration::Options::new(home::MANAGED));
    let watches = [work.member_watches(), registration.member_watches()].concat();
    compare(hub, "clusterrole convoy-agent-ocm", &watches);
    let loops = "open-cluster-management-hub:convoy --all-namespaces";
    let member = "open-cluster-management-agent:convoy-agent --all-namespaces";
    let account = format!("open-cluster-management-hub:{}", home::MANAGED);
    let own = format!("{account} -n {}", home::MANAGED);
    let foreign = format!("{account} -n default");
    for (verb, resource, who, want) in [
        ("delete", "manifestworks", loops, "yes"),
        ("delete", "manifestworkreplicasets", loops, "no"),
        ("create", "managedclusters", loops, "no"),
        ("list", "secrets", loops, "no"),
        ("create", "deployments", loops, "no"),
        ("patch", "manifestworks --subresource=status", &own, "yes"),
        ("create", "manifestworks", &own, "no"),
        ("list", "manifestworks", &foreign, "no"),
        ("list", "managedclusters", &own, "no"),
        ("patch", "leases", &foreign, "no"),
        ("create", "deployments", member, "yes"),
        ("create", "clusterrolebindings", member, "no"),
        ("delete", "nodes", member, "no"),
    ] {
        assert_eq!(may(hub, verb, resource, who), want, "{who} {verb} {resource}");
    }
}

#[test]
fn the_account_of_karpenter_may_read_what_its_dialect_names_and_do_nothing_else() {
    let cluster = crate::karpenter_real::cluster();
    compare(cluster, "clusterrole convoy-karpenter", Operator::new().watches());
    let who = "karpenter:convoy --all-namespaces";
    for (verb, resource, want) in [
        ("create", "nodes", "yes"),
        ("delete", "nodeclaims", "yes"),
        ("create", "pods --subresource=eviction", "yes"),
        ("create", "nodepools", "no"),
        ("delete", "nodepools", "no"),
        ("patch", "kwoknodeclasses", "no"),
        ("patch", "poddisruptionbudgets", "no"),
        ("create", "pods", "no"),
        ("list", "secrets", "no"),
        ("update", "customresourcedefinitions", "no"),
        ("update", "customresourcedefinitions/nodepools.karpenter.sh", "yes"),
    ] {
        assert_eq!(may(cluster, verb, resource, who), want, "{verb} {resource}");
    }
}

/// What a dialect writes it reads too, some of it only when it is needed.
fn reads(role: &str, dialect: &dyn Dialect) {
    let written = dialect.permissions().unwrap().iter();
    let written = written.map(|row| Watch { kind: row.kind.clone(), keep: Keep::Whole });
    let read: Vec<Watch> = dialect.watches().iter().cloned().chain(written).collect();
    compare(&home::real().access, &format!("clusterrole {role}"), &read);
}

/// A role names the kinds that are watched, and no others.
fn compare(access: &Access, role: &str, watches: &[Watch]) {
    let role = access.get(role);
    let words = |value: &Value| -> Vec<String> {
        let words = value.as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let mut watched = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        if words(&rule["verbs"]).contains(&"watch".to_owned()) {
            let group = &words(&rule["apiGroups"])[0];
            let resources = words(&rule["resources"]);
            let whole = resources.iter().filter(|name| !name.contains('/'));
            watched.extend(whole.map(|name| format!("{group}/{name}")));
        }
    }
    let named = watches.iter().map(|watch| format!("{}/{}", watch.kind.group, plural(&watch.kind)));
    assert_eq!(watched, named.collect());
}

/// The name of a kind in paths and rules.
pub(crate) fn plural(kind: &GroupKind) -> String {
    let name = kind.kind.to_lowercase();
    match name.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if name.ends_with('s') => format!("{name}es"),
        None => format!("{name}s"),
    }
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
        let who = format!("{account}:convoy --all-namespaces");
        assert_eq!(
            may(&home::real().access, verb, resource, &who),
            want,
            "{account} {verb} {resource}"
        );
    }
}

/// Whether an account, given with flags, may do something.
fn may(access: &Access, verb: &str, resource: &str, who: &str) -> String {
    let asked = format!("auth can-i {verb} {resource} --as=system:serviceaccount:{who}");
    let answer = String::from_utf8(access.try_kubectl(&asked, "").stdout).unwrap();
    answer.trim().to_owned()
}

/// The hub reads everything and writes only its own kinds; an agent keeps to its namespace there.
#[test]
fn accounts_of_a_fleet_may_do_nothing_else() {
    let placements = crate::placements::site::real();
    let [one, other] = crate::placements::site::REAL;
    let hub = &home::real().access;
    let [own, foreign] =
        [one, other].map(|name| format!("fleet-system:{one} -n fleet-member-{name}"));
    let everywhere = "fleet-system:convoy --all-namespaces";
    let agent = "fleet-system:convoy-agent --all-namespaces";
    for (access, verb, resource, who, want) in [
        (hub, "delete", "clusterresourcebindings", everywhere, "yes"),
        (hub, "list", "secrets", everywhere, "yes"),
        (hub, "patch", "secrets", everywhere, "no"),
        (hub, "create", "deployments", everywhere, "no"),
        (hub, "delete", "clusterresourceplacements", everywhere, "no"),
        (hub, "create", "memberclusters", everywhere, "no"),
        (hub, "create", "clusterrolebindings", everywhere, "no"),
        (hub, "patch", "works --subresource=status", &own, "yes"),
        (hub, "list", "works", &foreign, "no"),
        (hub, "get", "secrets", &own, "no"),
        (hub, "list", "memberclusters", &own, "no"),
        (placements.member(one), "create", "deployments", agent, "yes"),
        (placements.member(one), "create", "clusterrolebindings", agent, "no"),
        (placements.member(one), "delete", "nodes", agent, "no"),
        (placements.member(one), "delete", "pods", agent, "no"),
    ] {
        assert_eq!(may(access, verb, resource, who), want, "{who} {verb} {resource}");
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
