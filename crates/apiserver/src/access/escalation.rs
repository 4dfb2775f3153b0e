//! Nobody hands out more than they hold: what a role or a binding grants must be held by who
//! writes it, unless they may `escalate` the role, or `bind` it.

use serde_json::Value;

use super::aggregate::is_sum;
use super::index::{GROUP, RoleReference};
use super::rule::{Deed, Rule, missing};
use super::{Authorization, may};
use crate::ask::Ask;
use crate::caller::{Caller, MASTERS};
use crate::metadata;
use crate::status::{Answer, Status};

/// Refuses a role or binding that would give its writer more than they have. Called before a
/// write, with the object as it will be and as it was.
pub(crate) fn check(ask: &Ask, object: &Value, current: Option<&Value>) -> Answer<()> {
    let free = ask.server.access.authorization == Authorization::AlwaysAllow;
    if free || ask.caller.is_in(MASTERS) {
        return Ok(());
    }
    match ask.resource.plural.as_str() {
        "roles" | "clusterroles" => check_role(ask, object, current),
        "rolebindings" | "clusterrolebindings" => check_binding(ask, object, current),
        _ => Ok(()),
    }
}

fn check_role(ask: &Ask, object: &Value, current: Option<&Value>) -> Answer<()> {
    let same = |field: &str| current.is_some_and(|current| object[field] == current[field]);
    if same("rules") && same("aggregationRule") {
        return Ok(());
    }
    let name = metadata::text(object, "name");
    let deed = Deed::on("escalate", GROUP, &ask.resource.plural, ask.namespace(), name);
    if may(&ask.server, &ask.cluster, &ask.caller, &deed) {
        return Ok(());
    }
    // Who chooses the parts of a sum chooses any rules at all, including those of tomorrow.
    let mut wanted = rules(object);
    if is_sum(object) && !same("aggregationRule") {
        wanted.extend(Rule::everything());
    }
    refuse_missing(ask, name, &wanted)
}

fn check_binding(ask: &Ask, object: &Value, current: Option<&Value>) -> Answer<()> {
    let same = |field: &str| current.is_some_and(|current| object[field] == current[field]);
    if same("roleRef") && same("subjects") {
        return Ok(());
    }
    let role: RoleReference = serde_json::from_value(object["roleRef"].clone()).unwrap_or_default();
    let is_local = role.kind == "Role";
    let plural = if is_local { "roles" } else { "clusterroles" };
    let deed = Deed::on("bind", GROUP, plural, ask.namespace(), &role.name);
    if may(&ask.server, &ask.cluster, &ask.caller, &deed) {
        return Ok(());
    }
    let (store, cluster) = (&ask.server.store, &ask.cluster);
    let place = ask.namespace();
    let wanted = cluster.rights.with(store, &cluster.name, |index| index.rules(place, &role));
    let Some(wanted) = wanted else {
        let resource = ask.registry.get(GROUP, "v1", plural).expect("a built-in resource");
        return Err(Status::not_found(resource, &role.name));
    };
    refuse_missing(ask, metadata::text(object, "name"), &wanted)
}

fn refuse_missing(ask: &Ask, name: &str, wanted: &[Rule]) -> Answer<()> {
    let (store, cluster, place) = (&ask.server.store, &ask.cluster, ask.namespace());
    let held =
        cluster.rights.with(store, &cluster.name, |index| index.rules_of(&ask.caller, place));
    let missing = missing(&held, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let why = format!(
        "{} is attempting to grant RBAC permissions not currently held:\n{}",
        describe(&ask.caller),
        lines.join("\n")
    );
    Err(Status::forbidden(&ask.resource, name, &why))
}

fn describe(caller: &Caller) -> String {
    let groups: Vec<String> = caller.groups.iter().map(|group| format!("{group:?}")).collect();
    format!("user {:?} (groups=[{}])", caller.name, groups.join(" "))
}

/// Rules that cannot be read are refused later, as invalid; here they want nothing.
fn rules(object: &Value) -> Vec<Rule> {
    serde_json::from_value(object["rules"].clone()).unwrap_or_default()
}
