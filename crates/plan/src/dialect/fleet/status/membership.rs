//! The status of a member cluster.

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::Value;

use crate::condition::{self, Condition};
use crate::dialect::fleet::decide::membership::Membership;
use crate::dialect::fleet::names::READY_TO_JOIN;
use crate::dialect::fleet::read::placement::{field, list, text};

/// The status: what the agent says, and where membership stands. None: it reads so already.
pub(crate) fn status(
    member: &Object,
    membership: &Membership<'_>,
    now: Timestamp,
) -> Option<Value> {
    let internal = membership.internal?;
    let before = member.status();
    let mut status = before.as_object().cloned().unwrap_or_default();
    let mut conditions = list(before, "conditions").to_vec();
    for name in ["agentStatus", "properties", "resourceUsage", "namespaces"] {
        let said = field(internal.status(), name);
        if !said.is_null() {
            status.insert(name.to_owned(), said.clone());
        }
    }
    let copied = list(internal.status(), "conditions");
    for condition in copied {
        condition::remove(&mut conditions, text(condition, "type"));
        let mut condition = condition.clone();
        condition["observedGeneration"] = member.generation().into();
        conditions.push(condition);
    }
    let mut say = |kind: &str, status: &'static str, reason: &str, message: &str| {
        let wanted =
            Condition::new(kind, status, reason, message).of_generation(member.generation());
        condition::set(&mut conditions, &wanted, now);
    };
    let message = "the hub has made room for the cluster";
    say(READY_TO_JOIN, "True", "MemberClusterReadyToJoin", message);
    match membership.joined {
        "True" => say("Joined", "True", "MemberClusterJoined", "every agent has joined"),
        "False" => say("Joined", "False", "MemberClusterLeft", "every agent has left"),
        _ => {
            let reason = "MemberClusterJoinStateUnknown";
            say("Joined", "Unknown", reason, "not every agent has joined or left");
        }
    }
    // The agent's conditions were moved behind the others; by type the list is the same anew.
    conditions.sort_by(|a, b| text(a, "type").cmp(text(b, "type")));
    status.insert("conditions".into(), Value::Array(conditions));
    let status = Value::Object(status);
    (status != *before).then_some(status)
}
