//! No permission of the chart's roles is idle. Each is taken by a request in the audit log of an
//! installed chart, so that it is refused without the rule; or it is one of which another test shows
//! that decisions take it. All dialects have one account here: what two roles give, the log cannot tell
//! apart. The rules in `access/` are also compared with the tables, in `crates/plan/tests/roles.rs`.

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
use convoy_plan::permission::Permission;
use serde_json::{Value, json};

use super::{AGENT, MEMBER, Site, WITHIN};
use crate::deploy::plural;

/// Verb, group and resource.
type Allowed = (String, String, String);

const READS: [&str; 2] = ["list", "watch"];

impl Site {
    /// Has the agent create, change and delete one object of every kind that it may place, for itself
    /// and on behalf of an account.
    pub(super) fn places_every_kind(&self) {
        let access = &self.access;
        access.kubectl("create namespace placed-within");
        let objects: Vec<Value> = serde_json::from_str(include_str!("placed.json")).unwrap();
        let work = |round: &str| {
            let mut objects = objects.clone();
            for object in &mut objects {
                object["metadata"]["labels"] = json!({"round": round});
                if object["kind"] != "Namespace" {
                    object["metadata"]["namespace"] = json!("placed-within");
                }
            }
            json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
                "metadata": {"name": "kinds", "namespace": MEMBER},
                "spec": {"workload": {"manifests": objects}}})
        };
        for round in ["first", "second"] {
            access.kubectl_with("apply -f -", &work(round).to_string());
            self.applies("kinds");
        }
        access.kubectl(&format!("delete manifestwork kinds -n {MEMBER} --timeout=120s"));

        access.kubectl("create serviceaccount deployer -n placed-within");
        access.kubectl(
            "create clusterrolebinding deployer --clusterrole=cluster-admin \
             --serviceaccount=placed-within:deployer",
        );
        let account = json!({"namespace": "placed-within", "name": "deployer"});
        let mut work = work("third");
        work["metadata"]["name"] = json!("for-another");
        work["spec"]["workload"]["manifests"] = json!([work["spec"]["workload"]["manifests"][1]]);
        let subject = json!({"type": "ServiceAccount", "serviceAccount": account});
        work["spec"]["executor"] = json!({"subject": subject});
        access.kubectl_with("apply -f -", &work.to_string());
        self.applies("for-another");
    }

    /// Waits until the agent has applied a work as it is now.
    fn applies(&self, work: &str) {
        self.access.until(&format!("manifestwork {work} -n {MEMBER}"), |work| {
            let conditions = work["status"]["conditions"].as_array().into_iter().flatten();
            conditions.clone().any(|condition| {
                condition["type"] == "Applied"
                    && condition["status"] == "True"
                    && condition["observedGeneration"] == work["metadata"]["generation"]
            })
        });
    }

    /// What the accounts of the chart asked for and were given, here and as agents on their hub.
    fn used(&self) -> BTreeSet<Allowed> {
        let accounts = [WITHIN, AGENT].map(|within| format!("system:serviceaccount:{within}:"));
        let requests = self.log.requests().into_iter();
        let ours = requests
            .filter(|request| accounts.iter().any(|account| request.user.starts_with(account)));
        ours.inspect(|request| assert_ne!(request.code, 403, "{request:?}"))
            .map(|request| (request.verb, request.group, request.resource))
            .collect()
    }

    /// Name and rules of roles with these flags.
    fn roles(&self, flags: &str) -> Vec<(String, BTreeSet<Allowed>)> {
        let mut found = Vec::new();
        for kind in ["clusterroles", "roles -A"] {
            for role in self.access.get(&format!("{kind} {flags}"))["items"].as_array().unwrap() {
                let name = role["metadata"]["name"].as_str().unwrap().to_owned();
                found.push((name, expanded(&role["rules"])));
            }
        }
        found
    }

    /// The API server has refused nothing, and no permission is idle.
    pub(super) fn permissions_are_those_that_are_used(&self) {
        let used = self.used();
        let of_chart = self.roles("-l app.kubernetes.io/name=convoy");
        let granted: BTreeSet<Allowed> = self
            .roles("-l app.kubernetes.io/name!=convoy")
            .into_iter()
            .filter(|(name, _)| is_made_by_the_hub(name))
            .flat_map(|(_, allowed)| allowed)
            .collect();
        let named: BTreeSet<&Allowed> = of_chart.iter().flat_map(|(_, allowed)| allowed).collect();
        let mut idle = Vec::new();
        for (role, allowed) in &of_chart {
            let table = table(role);
            let written = table.as_ref().or_else(|| role.ends_with("-placed").then_some(allowed));
            let of_role = || of_chart.iter().filter(|(other, _)| other == role);
            let unread = written.into_iter().flat_map(reads_again);
            let unread: Vec<Allowed> =
                unread.filter(|get| !of_role().any(|(_, allowed)| allowed.contains(get))).collect();
            assert!(unread.is_empty(), "{role} lacks {unread:?}");
            for permission in allowed {
                let is_needed = match table.as_ref() {
                    _ if is_used(permission, &used, &named) => true,
                    // An API server lets nobody grant what they do not have.
                    None if is_for_granting(role) => granted.contains(permission),
                    None if role.ends_with("-placed") => reads_again(allowed).contains(permission),
                    None => false,
                    Some(table) => {
                        table.contains(permission) || reads_again(table).contains(permission)
                    }
                };
                if !is_needed {
                    idle.push(format!("{role}: {permission:?}"));
                }
            }
        }
        assert!(of_chart.len() > 15, "{of_chart:?}");
        assert!(idle.is_empty(), "nothing needs\n{}", idle.join("\n"));
    }
}

/// A rule for every kind is for those that no other rule names.
fn is_used(permission: &Allowed, used: &BTreeSet<Allowed>, named: &BTreeSet<&Allowed>) -> bool {
    if permission.2 != "*" {
        return used.contains(permission);
    }
    used.iter().any(|asked| asked.0 == permission.0 && !named.contains(asked))
}

/// An object whose write got no response is read before the next decision; tests of the control loop
/// lose responses.
fn reads_again(written: &BTreeSet<Allowed>) -> BTreeSet<Allowed> {
    let writes = written.iter().filter(|one| one.0 != "get" && !READS.contains(&&*one.0));
    let whole = |resource: &str| resource.split('/').next().unwrap_or_default().to_owned();
    writes.map(|one| ("get".to_owned(), one.1.clone(), whole(&one.2))).collect()
}

fn is_for_granting(role: &str) -> bool {
    role.ends_with("-fleet-members") || role.ends_with("-ocm-granted")
}

fn is_made_by_the_hub(role: &str) -> bool {
    role.starts_with("open-cluster-management:") || role == format!("fleet-role-{MEMBER}")
}

/// What the dialect of a role writes. That decisions take all of it is a test of the simulations; that
/// they take nothing else is checked wherever one is made, in builds for tests.
fn table(role: &str) -> Option<BTreeSet<Allowed>> {
    let work = OcmAgent::new(ocm_agent::Options::new(MEMBER, ""));
    let registration = OcmRegistration::new(ocm_registration::Options::new(MEMBER));
    let home = |dialect: &dyn Dialect| dialect.permissions().unwrap().to_vec();
    let member = |dialect: &dyn Dialect| dialect.member_permissions().unwrap().to_vec();
    let rows: Vec<Permission> = match role {
        "convoy-apps" => home(&Deployments),
        "convoy-skyhook" => home(&Skyhook::new()),
        "convoy-fleet" => home(&Hub::default()),
        "convoy-karpenter" => home(&Operator::new()),
        "convoy-ocm" => home(&ocm::Hub { parts: ocm::HubControllers::ALL }),
        "convoy-agent-fleet" => member(&FleetAgent::new(MEMBER)),
        "convoy-agent-ocm" => [member(&work), member(&registration)].concat(),
        _ => return None,
    };
    let written = |row: &Permission| {
        let GroupKind { group, .. } = &row.kind;
        let (group, resource) = (group.to_string(), plural(&row.kind));
        let verbs = row.verbs.iter().map(|verb| verb.rule());
        let one = |(verb, below)| (String::from(verb), group.clone(), format!("{resource}{below}"));
        verbs.map(one).collect::<Vec<Allowed>>()
    };
    Some(rows.iter().flat_map(written).collect())
}

/// Every verb, group and resource of rules, those for single objects included.
fn expanded(rules: &Value) -> BTreeSet<Allowed> {
    let words = |value: &Value| -> Vec<String> {
        let words = value.as_array().into_iter().flatten();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let mut all = BTreeSet::new();
    for rule in rules.as_array().into_iter().flatten() {
        for verb in words(&rule["verbs"]) {
            for group in words(&rule["apiGroups"]) {
                let of = |resource| (verb.clone(), group.clone(), resource);
                all.extend(words(&rule["resources"]).into_iter().map(of));
            }
        }
    }
    all
}
