//! Sub-resources that are more than a part of the object, and kinds that are never stored.

mod binding;
mod component;
mod conditions;
mod eviction;
mod log;
mod scale;

use serde_json::{Value, json};

use crate::access::{review, token_request};
use crate::ask::Ask;
use crate::reply::Reply;
use crate::status::{Answer, Status};
use crate::verb;

/// A create on a resource: for most kinds a new object, for some an action.
pub(crate) async fn create(ask: &Ask) -> Answer<Reply> {
    if let Some(answer) = review::answer(ask) {
        return answer;
    }
    match (ask.resource.group.as_str(), ask.resource.plural.as_str()) {
        ("", "bindings") => binding::create(ask).await,
        _ => verb::create::create(ask).await,
    }
}

/// A read of kinds that nobody stores; none if the resource is an ordinary one.
pub(crate) fn read(ask: &Ask) -> Option<Answer<Reply>> {
    if !ask.resource.is("", "componentstatuses") {
        return None;
    }
    match ask.verb.as_str() {
        "get" => Some(component::get(ask)),
        "list" => Some(Ok(component::list(ask))),
        _ => None,
    }
}

/// A request on a sub-resource of a kind of its own.
pub(crate) async fn carry_out(ask: &Ask) -> Answer<Reply> {
    let name = ask.target.subresource.as_str();
    match (name, ask.verb.as_str()) {
        ("token", "create") => token_request::create(ask),
        ("scale", _) => scale::carry_out(ask).await,
        ("binding", "create") => binding::create(ask).await,
        ("eviction", "create") => eviction::create(ask).await,
        ("log", "get") => log::get(ask),
        ("finalize" | "approval" | "ephemeralcontainers" | "resize", "update") => {
            verb::update::update(ask).await
        }
        ("approval" | "ephemeralcontainers" | "resize", "patch") => verb::patch::patch(ask).await,
        ("approval" | "ephemeralcontainers" | "resize", "get") => verb::get::get(ask).await,
        ("exec" | "attach" | "portforward", "get" | "create") | ("proxy", _) => {
            Err(not_simulated(name))
        }
        _ => Err(Status::method_not_allowed()),
    }
}

/// Containers run nowhere here, so nothing can be reached inside them.
fn not_simulated(name: &str) -> Box<Status> {
    Status::not_provided(format!(
        "{name} is not provided: workloads are simulated, no container runs behind this API"
    ))
}

/// The same caller's request on a built-in kind itself.
fn plain(ask: &Ask, group: &str, plural: &str, name: &str) -> Ask {
    let resource = ask.registry.get(group, "v1", plural).expect("a built-in resource");
    let namespace = &ask.target.namespace;
    let mut plain = Ask::internal(&ask.server, &ask.cluster, resource, namespace, name);
    plain.caller = ask.caller.clone();
    plain.user_agent.clone_from(&ask.user_agent);
    plain
}

/// What an action answers that has nothing to show.
fn done() -> Reply {
    let status: Value = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Reply::Plain(201, status)
}

#[cfg(test)]
mod tests;
