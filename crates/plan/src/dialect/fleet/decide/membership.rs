//! Membership: how a cluster joins the fleet and leaves it, as far as the hub decides. The
//! agent on the member does its part through the `InternalMemberCluster`.

use crate::condition::{self, Condition};
use crate::dialect::fleet::names::kind::NAMESPACE;
use crate::dialect::fleet::names::{
    CLUSTER_GROUP, DIALECT, INTERNAL_MEMBER_CLUSTER, MEMBER_CLEANUP, MEMBER_NAME, WORK,
    WORK_CLEANUP,
};
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::dialect::fleet::write::membership as rights;
use crate::dialect::fleet::write::membership::{
    namespace_created, role_binding_created, role_created,
};
use crate::dialect::fleet::write::schedule::without_finalizer;
use crate::hold::{Hold, HoldReason};
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Step, Verb, Verdict, Why};
use crate::world::World;
use convoy_api::{GroupKind, Object};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

pub(crate) use rights::{ROLE, ROLE_BINDING};

/// How long a leaving member is given to answer.
const PATIENCE: SignedDuration = SignedDuration::from_mins(15);

const DEFAULT_HEARTBEAT_SECS: i64 = 60;

/// Where everything about a member lies.
pub(crate) fn home(cluster: &str) -> String {
    format!("fleet-member-{cluster}")
}

/// Whether the hub has something to do with this cluster: it is new, it leaves, or its agent's
/// side is known here. A cluster that merely lies in a bag as a target is left alone.
pub(crate) fn is_concerned(world: &World, member: &Object) -> bool {
    let is_new = field(member.status(), "conditions").is_null()
        && field(member.status(), "agentStatus").is_null();
    is_new
        || member.is_deleting()
        || world.find(&INTERNAL_MEMBER_CLUSTER, &home(member.name()), member.name()).is_some()
}

/// The kinds that lie in a member's namespace and matter here.
pub(crate) const AT_HOME: [GroupKind; 4] = [INTERNAL_MEMBER_CLUSTER, ROLE, ROLE_BINDING, WORK];

/// What joining or leaving needs next.
pub(crate) fn step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let member = snapshot.rollout();
    let home = home(member.name());
    let internal = snapshot.find(&INTERNAL_MEMBER_CLUSTER, &home, member.name());
    let mut step = Step::new(DIALECT, member, Verdict::Done);
    if member.is_deleting() {
        leave(snapshot, internal, now, &mut step);
    } else {
        step.actions = joining(snapshot, internal);
        if step.actions.is_empty() && joined(internal) != "True" {
            let detail = "its agent has not joined yet".to_owned();
            step.holds.push(Hold::of_rollout(HoldReason::NotAvailable { detail }));
            step.verdict = Verdict::Held;
        }
    }
    step.status = reported(member, internal, now);
    if !step.actions.is_empty() {
        step.verdict = Verdict::Moving;
    }
    step
}

/// What a cluster needs to join: a place of its own on the hub, and rights there.
fn joining(snapshot: &Snapshot<'_>, internal: Option<&Object>) -> Vec<Action> {
    let member = snapshot.rollout();
    let home = home(member.name());
    let mut actions: Vec<Action> = guarded(member).into_iter().collect();
    if snapshot.find(&NAMESPACE, "", &home).is_none() {
        actions.push(namespace_created(member));
    }
    if snapshot.find(&ROLE, &home, &rights::role_name(member)).is_none() {
        actions.push(role_created(member));
    }
    if snapshot.find(&ROLE_BINDING, &home, &rights::role_binding_name(member)).is_none() {
        actions.push(role_binding_created(member));
    }
    actions.extend(asked(member, internal, "Join"));
    actions
}

/// The finalizer, and the label by which selectors find a single cluster.
fn guarded(member: &Object) -> Option<Action> {
    let mut metadata = Map::new();
    if !member.has_finalizer(MEMBER_CLEANUP) {
        let present = member.metadata().get("finalizers").and_then(Value::as_array);
        let mut finalizers = present.cloned().unwrap_or_default();
        finalizers.push(json!(MEMBER_CLEANUP));
        metadata.insert("finalizers".into(), Value::Array(finalizers));
    }
    if member.label(MEMBER_NAME) != Some(member.name().as_str()) {
        metadata.insert("labels".into(), json!({MEMBER_NAME: member.name()}));
    }
    let why = Why::new("MemberGuarded", "it leaves in an orderly way");
    let patch = json!({"metadata": metadata});
    (!metadata.is_empty()).then(|| Action::patch(Verb::Record, member, patch, why))
}

/// Tells the agent what is wanted of it.
fn asked(member: &Object, internal: Option<&Object>, state: &str) -> Option<Action> {
    let secs = field(member.spec(), "heartbeatPeriodSeconds").as_i64();
    let spec = json!({
        "state": state,
        "heartbeatPeriodSeconds": secs.unwrap_or(DEFAULT_HEARTBEAT_SECS),
    });
    let why = Why::new("MembershipWanted", format!("the cluster is to {}", state.to_lowercase()));
    match internal {
        Some(internal) => {
            let differs = |name: &str| field(internal.spec(), name) != field(&spec, name);
            let stale = differs("state") || differs("heartbeatPeriodSeconds");
            stale.then(|| Action::patch(Verb::Record, internal, json!({"spec": spec}), why))
        }
        // One that never was there need not leave.
        None if state == "Leave" => None,
        None => {
            let home = home(member.name());
            let target = member.key().sibling(&INTERNAL_MEMBER_CLUSTER, &home, member.name());
            let object = json!({
                "apiVersion": format!("{CLUSTER_GROUP}/v1beta1"),
                "kind": INTERNAL_MEMBER_CLUSTER.kind,
                "metadata": {"name": member.name(), "namespace": home},
                "spec": spec,
            });
            Some(Action::create(Verb::Record, target, object, why))
        }
    }
}

/// The agent is asked to leave; once it has, or does not answer, its place goes. Objects on
/// the member stay: their Works are let go, not undone.
fn leave(snapshot: &Snapshot<'_>, internal: Option<&Object>, now: Timestamp, step: &mut Step) {
    let member = snapshot.rollout();
    let home = home(member.name());
    let namespace = snapshot.find(&NAMESPACE, "", &home);
    let patient_until = member.deleted_at().and_then(|at| at.checked_add(PATIENCE).ok());
    let given_up = patient_until.is_none_or(|until| until <= now);
    let gone = internal.is_none() || joined(internal) == "False";
    if !gone && !given_up {
        step.actions.extend(asked(member, internal, "Leave"));
        let on = "the agent to leave".to_owned();
        step.holds.push(Hold::of_rollout(HoldReason::Depends { on }).until(patient_until));
        step.wake_at = patient_until;
        step.verdict = Verdict::Held;
        return;
    }
    let why = || Why::new("MemberLeft", format!("cluster {} has left", member.name()));
    let works = snapshot.of(&WORK).iter().filter(|work| *work.namespace() == home.as_str());
    step.actions.extend(works.filter_map(|work| {
        let patch = without_finalizer(work, WORK_CLEANUP)?;
        Some(Action::patch(Verb::Release, work, patch, why()))
    }));
    match namespace {
        Some(namespace) if !namespace.is_deleting() => {
            step.actions.push(Action::delete(
                Verb::Delete,
                namespace,
                Propagation::Background,
                why(),
            ));
        }
        Some(_) => {
            let on = format!("namespace {home} to go");
            step.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
            step.verdict = Verdict::Held;
        }
        None => {
            let patch = without_finalizer(member, MEMBER_CLEANUP);
            step.actions
                .extend(patch.map(|patch| Action::patch(Verb::Release, member, patch, why())));
        }
    }
}

/// `Joined` over all agents: Unknown until the member agent reported, and while they differ.
fn joined(internal: Option<&Object>) -> &'static str {
    let agents = internal.map_or(&[][..], |internal| list(internal.status(), "agentStatus"));
    let said = |agent: &Value| {
        let conditions = list(agent, "conditions").iter();
        let mut joined = conditions.filter(|condition| text(condition, "type") == "Joined");
        joined.next().map_or("Unknown", |condition| match text(condition, "status") {
            "True" => "True",
            "False" => "False",
            _ => "Unknown",
        })
    };
    if !agents.iter().any(|agent| text(agent, "type") == "MemberAgent") {
        return "Unknown";
    }
    let mut words = agents.iter().map(said);
    let first = words.next().unwrap_or("Unknown");
    if words.all(|word| word == first) { first } else { "Unknown" }
}

/// The status: what the agent says, and where membership stands. None: it reads so already.
fn reported(member: &Object, internal: Option<&Object>, now: Timestamp) -> Option<Value> {
    let internal = internal?;
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
        conditions.push(condition.clone());
    }
    let mut say = |kind: &str, status: &'static str, reason: &str, message: &str| {
        let wanted = Condition {
            kind: kind.into(),
            status,
            reason: reason.into(),
            message: message.into(),
            observed_generation: Some(member.generation()),
        };
        condition::set(&mut conditions, &wanted, now);
    };
    let message = "the hub has made room for the cluster";
    say("ReadyToJoin", "True", "MemberClusterReadyToJoin", message);
    match joined(Some(internal)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(kind: &str, joined: &str) -> Value {
        json!({"type": kind, "conditions": [{"type": "Joined", "status": joined}]})
    }

    #[test]
    fn a_cluster_has_joined_when_all_its_agents_have() {
        let internal = |agents: &[Value]| {
            Object::from_value(json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
                "kind": "InternalMemberCluster",
                "metadata": {"name": "a", "namespace": "fleet-member-a"},
                "status": {"agentStatus": agents}}))
            .unwrap()
        };
        let cases = [
            (vec![], "Unknown"),
            (vec![agent("MemberAgent", "True")], "True"),
            (vec![agent("MemberAgent", "False")], "False"),
            (vec![agent("ServiceExportImportAgent", "True")], "Unknown"),
            (
                vec![agent("MemberAgent", "True"), agent("ServiceExportImportAgent", "False")],
                "Unknown",
            ),
        ];
        for (agents, expected) in cases {
            assert_eq!(joined(Some(&internal(&agents))), expected, "{agents:?}");
        }
        assert_eq!(joined(None), "Unknown");
    }
}
