//! The writes by which a cluster joins and leaves: its namespace on the hub, what its agent may
//! do there, and what the agent is asked for.

use convoy_api::kinds::NAMESPACE;
use convoy_api::{GroupKind, Object};
use serde_json::{Map, Value, json};

use crate::dialect::fleet::decide::membership::{Membership, Phase};
use crate::dialect::fleet::names::{
    CLUSTER_GROUP, FLEET_RESOURCE, Family, INTERNAL_MEMBER_CLUSTER, MEMBER_CLEANUP, MEMBER_CLUSTER,
    MEMBER_NAME, PLACEMENT_GROUP, RBAC, READY_TO_JOIN, ROLE, ROLE_BINDING, WORK, WORK_CLEANUP,
    member_namespace,
};
use crate::dialect::fleet::read::placement::{field, text};
use crate::finalizer;
use crate::merge_patch;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

const DEFAULT_HEARTBEAT_SECS: i64 = 60;

/// `released` are the finalizers that a member which leaves does not need any more.
pub(crate) fn actions(
    snapshot: &Snapshot<'_>,
    membership: &Membership<'_>,
    released: &[&str],
) -> Vec<Action> {
    let member = snapshot.rollout();
    match membership.phase {
        Phase::Joining => joining(snapshot, membership.internal),
        Phase::AwaitingAgent { .. } => {
            let asked = asked(member, membership.internal, "Leave");
            asked.into_iter().chain(finalizer::removed(member, released, left(member))).collect()
        }
        Phase::DeletingNamespace(_) | Phase::AwaitingNamespace | Phase::Left => {
            leaving(snapshot, membership.phase, released)
        }
    }
}

/// What a cluster needs to join: a namespace of its own on the hub, and rights there.
fn joining(snapshot: &Snapshot<'_>, internal: Option<&Object>) -> Vec<Action> {
    let member = snapshot.rollout();
    let home = member_namespace(member.name());
    let mut actions: Vec<Action> = guarded(member).into_iter().collect();
    if snapshot.find(&NAMESPACE, "", &home).is_none() {
        actions.push(namespace_created(member));
    }
    let role = role(member);
    actions.extend(kept(snapshot, member, &ROLE, &role_name(member), role, "rules"));
    let binding = role_binding(member);
    let name = role_binding_name(member);
    actions.extend(kept(snapshot, member, &ROLE_BINDING, &name, binding, "subjects"));
    actions.extend(asked(member, internal, "Join"));
    actions
}

/// Objects on the member stay: their Works are let go, not undone.
fn leaving(snapshot: &Snapshot<'_>, phase: Phase<'_>, released: &[&str]) -> Vec<Action> {
    let member = snapshot.rollout();
    let home = member_namespace(member.name());
    let why = || left(member);
    let works = snapshot.of(&WORK).iter().filter(|work| *work.namespace() == home.as_str());
    let mut actions: Vec<Action> =
        works.filter_map(|work| finalizer::removed(work, &[WORK_CLEANUP], why())).collect();
    match phase {
        Phase::DeletingNamespace(namespace) => {
            let propagation = Propagation::Background;
            actions.push(Action::delete(Verb::Delete, namespace, propagation, why()));
        }
        Phase::Left => {
            // Without its Works a binding of the cluster waits for nothing.
            let bindings = Family::ALL.iter().flat_map(|family| snapshot.of(&family.binding()));
            actions.extend(
                bindings.filter_map(|binding| finalizer::removed(binding, &[WORK_CLEANUP], why())),
            );
            let all = [&[MEMBER_CLEANUP], released].concat();
            actions.extend(finalizer::removed(member, &all, why()));
        }
        _ => {}
    }
    if phase != Phase::Left {
        actions.extend(finalizer::removed(member, released, why()));
    }
    actions
}

fn left(member: &Object) -> Why {
    Why::new("MemberLeft", format!("cluster {} has left", member.name()))
}

/// The finalizer, and the label by which selectors find a single cluster. A finalizer that
/// somebody takes off from a member that was ready stays off until its spec changes: who forces a
/// cluster out takes the finalizers first, and deletes it then.
fn guarded(member: &Object) -> Option<Action> {
    let mut metadata = Map::new();
    let ready = member.condition(READY_TO_JOIN);
    let observed = ready.and_then(|it| field(it, "observedGeneration").as_i64());
    let was_ready = observed == Some(member.generation());
    if let Some(finalizers) = finalizer::with(member, &[MEMBER_CLEANUP]).filter(|_| !was_ready) {
        metadata.insert("finalizers".into(), finalizers);
    }
    if member.label(MEMBER_NAME) != Some(member.name().as_str()) {
        metadata.insert("labels".into(), json!({MEMBER_NAME: member.name()}));
    }
    let why = Why::new("MemberGuarded", "its namespace is to be deleted with it");
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
            let home = member_namespace(member.name());
            let target = member.key().sibling(&INTERNAL_MEMBER_CLUSTER, &home, member.name());
            let object = json!({
                "apiVersion": format!("{CLUSTER_GROUP}/v1beta1"),
                "kind": INTERNAL_MEMBER_CLUSTER.kind,
                "metadata": owned(member, member.name(), &home),
                "spec": spec,
            });
            Some(Action::create(Verb::Record, target, object, why))
        }
    }
}

fn role_name(member: &Object) -> String {
    format!("fleet-role-{}", member.name())
}

fn role_binding_name(member: &Object) -> String {
    format!("fleet-rolebinding-{}", member.name())
}

fn namespace_created(member: &Object) -> Action {
    let home = member_namespace(member.name());
    let mut metadata = owned(member, &home, "");
    metadata["labels"] = json!({FLEET_RESOURCE: "true"});
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let target = member.key().sibling(&NAMESPACE, "", &home);
    Action::create(Verb::Create, target, object, why(member))
}

/// An agent reads and reports on what lies in its own namespace, and nothing else.
pub fn agent_rules() -> Value {
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    json!([
        {"apiGroups": [CLUSTER_GROUP], "verbs": verbs,
            "resources": ["internalmemberclusters", "internalmemberclusters/status"]},
        {"apiGroups": [PLACEMENT_GROUP], "verbs": verbs,
            "resources": ["works", "works/status", "works/finalizers"]},
        {"apiGroups": ["", "events.k8s.io"], "verbs": ["create", "patch", "update"],
            "resources": ["events"]},
    ])
}

fn role(member: &Object) -> Value {
    let mut object = object(member, &ROLE, &role_name(member));
    object["rules"] = agent_rules();
    object
}

fn role_binding(member: &Object) -> Value {
    let identity = field(member.spec(), "identity");
    let kind = text(identity, "kind");
    let mut subject = json!({"kind": kind, "name": text(identity, "name")});
    match kind {
        "ServiceAccount" => subject["namespace"] = json!(text(identity, "namespace")),
        // Users and groups are named within the group of the rights themselves.
        _ => subject["apiGroup"] = json!(RBAC),
    }
    let mut object = object(member, &ROLE_BINDING, &role_binding_name(member));
    object["roleRef"] = json!({"apiGroup": RBAC, "kind": "Role", "name": role_name(member)});
    object["subjects"] = json!([subject]);
    object
}

fn object(member: &Object, kind: &GroupKind, name: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": kind.kind,
        "metadata": owned(member, name, &member_namespace(member.name())),
    })
}

/// Metadata of an object that goes with the member cluster, whoever takes its finalizer off.
pub(crate) fn owned(member: &Object, name: &str, namespace: &str) -> Value {
    let mut metadata = json!({"name": name});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    if let Some(uid) = member.uid() {
        metadata["ownerReferences"] = json!([{
            "apiVersion": member.api_version(),
            "kind": MEMBER_CLUSTER.kind,
            "name": member.name(),
            "uid": uid,
            "controller": true,
        }]);
    }
    metadata
}

/// Creates an object that grants rights, or makes its member `part` as wanted.
fn kept(
    snapshot: &Snapshot<'_>,
    member: &Object,
    kind: &GroupKind,
    name: &str,
    wanted: Value,
    part: &str,
) -> Option<Action> {
    let home = member_namespace(member.name());
    let Some(found) = snapshot.find(kind, &home, name) else {
        let target = member.key().sibling(kind, &home, name);
        return Some(Action::create(Verb::Create, target, wanted, why(member)));
    };
    let part_of = |object: &Value| field(object, part).clone();
    let patch = merge_patch::nested(&[part], part_of(&wanted));
    let message = format!("the agent of cluster {} may do what its member says", member.name());
    let why = Why::new("RightsChanged", message);
    (part_of(found.raw()) != part_of(&wanted))
        .then(|| Action::patch(Verb::Record, found, patch, why))
}

fn why(member: &Object) -> Why {
    Why::new("MemberJoining", format!("cluster {} gets its namespace on the hub", member.name()))
}
