//! Nobody hands out more than they hold: what a role or a binding grants must be held by who
//! writes it, unless they may `escalate` the role, or `bind` it.

use serde_json::Value;

use crate::access::aggregate::is_sum;
use crate::access::index::{GROUP, RoleReference};
use crate::access::{Attributes, Authorization, Rule, missing};
use crate::caller::{Caller, MASTERS};
use crate::metadata;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

/// Refuses a role or binding that would give its writer more than they have. Called before a
/// write, with the object as it will be and as it was.
pub(crate) fn check(
    request: &ResourceRequest,
    object: &Value,
    current: Option<&Value>,
) -> ApiResult<()> {
    let free = request.server.access.authorization == Authorization::AlwaysAllow;
    if free || request.caller.is_in(MASTERS) {
        return Ok(());
    }
    match request.resource.plural.as_str() {
        "roles" | "clusterroles" => check_role(request, object, current),
        "rolebindings" | "clusterrolebindings" => check_binding(request, object, current),
        _ => Ok(()),
    }
}

fn check_role(request: &ResourceRequest, object: &Value, current: Option<&Value>) -> ApiResult<()> {
    let same = |field: &str| current.is_some_and(|current| object[field] == current[field]);
    if same("rules") && same("aggregationRule") {
        return Ok(());
    }
    let name = metadata::text(object, "name");
    let attributes =
        Attributes::on("escalate", GROUP, &request.resource.plural, request.namespace(), name);
    if request.guard().may(&request.caller, &attributes) {
        return Ok(());
    }
    // Who chooses the parts of a sum chooses any rules at all, including those of tomorrow.
    let mut wanted = rules(object);
    if is_sum(object) && !same("aggregationRule") {
        wanted.extend(Rule::everything());
    }
    refuse_missing(request, name, &wanted)
}

fn check_binding(
    request: &ResourceRequest,
    object: &Value,
    current: Option<&Value>,
) -> ApiResult<()> {
    let same = |field: &str| current.is_some_and(|current| object[field] == current[field]);
    if same("roleRef") && same("subjects") {
        return Ok(());
    }
    let role: RoleReference = serde_json::from_value(object["roleRef"].clone()).unwrap_or_default();
    let is_local = role.kind == "Role";
    let plural = if is_local { "roles" } else { "clusterroles" };
    let attributes = Attributes::on("bind", GROUP, plural, request.namespace(), &role.name);
    if request.guard().may(&request.caller, &attributes) {
        return Ok(());
    }
    let place = request.namespace();
    let wanted = request.guard().look_up(|index| index.rules(place, &role));
    let Some(wanted) = wanted else {
        let resource = request.registry.get(GROUP, "v1", plural).expect("a built-in resource");
        return Err(Status::not_found(resource, &role.name));
    };
    refuse_missing(request, metadata::text(object, "name"), &wanted)
}

fn refuse_missing(request: &ResourceRequest, name: &str, wanted: &[Rule]) -> ApiResult<()> {
    let held =
        request.guard().look_up(|index| index.rules_of(&request.caller, request.namespace()));
    let missing = missing(&held, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let why = format!(
        "{} is attempting to grant RBAC permissions not currently held:\n{}",
        describe(&request.caller),
        lines.join("\n")
    );
    Err(Status::forbidden(&request.resource, name, &why))
}

fn describe(caller: &Caller) -> String {
    let groups: Vec<String> = caller.groups.iter().map(|group| format!("{group:?}")).collect();
    format!("user {:?} (groups=[{}])", caller.name, groups.join(" "))
}

/// Rules that cannot be read are refused later, as invalid; here they want nothing.
fn rules(object: &Value) -> Vec<Rule> {
    serde_json::from_value(object["rules"].clone()).unwrap_or_default()
}
