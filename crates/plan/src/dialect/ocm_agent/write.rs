//! Decisions as writes: to the objects on the member, to the `AppliedManifestWork` beside them, and
//! to the work on the hub.

pub(crate) mod applied_work;
pub(crate) mod permissions;

use convoy_api::Object;
use convoy_api::object::member::{field, list};
use convoy_api::ocm::names::APPLIED_MANIFEST_WORK;
use jiff::Timestamp;
use serde_json::{Value, json};

use self::applied_work::{recorded, removed, synced};
use super::Options;
use super::decide::manifest::{ApplyResult, Processed, Wanted};
use super::decide::work::{Application, Deletion, applied_work, in_order};
use super::names::{APPLIED_WORK_FINALIZER, DELETING, WORK_API, WORK_FINALIZER};
use super::read::server_side::ServerSide;
use super::status::applied_work::listed;
use crate::condition::{self, Condition};
use crate::finalizer;
use crate::merge_patch::{self, nested};
use crate::step::{Action, Propagation, Verb, Why};

/// Makes what will own the objects of the work, and keeps the work until it is gone.
pub(crate) fn owning(work: &Object, options: &Options) -> Vec<Action> {
    let why = Why::new("WorkGuarded", "its objects are to be deleted with it");
    let mut actions: Vec<Action> =
        finalizer::added(work, &[WORK_FINALIZER], why).into_iter().collect();
    let target = applied_work(work, options);
    let mut object = json!({
        "apiVersion": WORK_API,
        "kind": APPLIED_MANIFEST_WORK.kind,
        "metadata": {"name": target.name, "finalizers": [APPLIED_WORK_FINALIZER]},
        "spec": spec(work, options),
    });
    let labels = field(work.metadata(), "labels");
    if labels.is_object() {
        object["metadata"]["labels"] = labels.clone();
    }
    let why = Why::new("WorkFound", format!("it will own the objects of work {}", work.name()));
    actions.push(Action::create(Verb::Create, target, object, why));
    actions
}

/// The spec of the `AppliedManifestWork` of a work.
fn spec(work: &Object, options: &Options) -> Value {
    json!({
        "hubHash": options.hub_hash,
        "agentID": options.agent_id,
        "manifestWorkName": work.name(),
    })
}

/// The hub is told before anything goes.
pub(crate) fn deleted(work: &Object, deletion: Deletion<'_>, now: Timestamp) -> Vec<Action> {
    let why = |message: &str| Why::new("WorkDeleted", message.to_owned());
    match deletion {
        Deletion::Done => {
            let why = why("its objects are gone from the member");
            finalizer::removed(work, &[WORK_FINALIZER], why).into_iter().collect()
        }
        Deletion::Awaiting => Vec::new(),
        Deletion::Deleting(applied_work) => {
            let message = "ManifestWork is being deleted";
            let told = Condition::new(DELETING, "True", "WorkDeleting", message)
                .of_generation(work.generation());
            let conditions = condition::with(list(work.status(), "conditions"), &told, now);
            let told = conditions.map(|conditions| {
                let patch = nested(&["status", "conditions"], Value::Array(conditions));
                Action::patch_status(Verb::Record, work, patch, why("its objects go before it"))
            });
            let why = why("the objects that it owns go before it");
            let delete = Action::delete(Verb::Delete, applied_work, Propagation::Background, why);
            told.into_iter().chain([delete]).collect()
        }
    }
}

/// What brings the objects in line with the work. Objects that are no longer in it go after the
/// others, and what the server has denied before comes last: it keeps nothing else waiting.
pub(crate) fn applied(
    work: &Object,
    application: &Application<'_>,
    options: &Options,
    now: Timestamp,
) -> Vec<Action> {
    if application.is_frozen {
        return Vec::new();
    }
    let member = &options.cluster;
    let applied_work = application.applied_work;
    let mut actions: Vec<Action> =
        synced(applied_work, field(work.metadata(), "labels"), spec(work, options))
            .into_iter()
            .collect();
    let (fresh, retried) = in_order(&application.processed, now);
    actions.extend(fresh.iter().filter_map(|it| written(work, it, member)));
    let mut known = recorded(application, &fresh);
    actions.extend(known.action(applied_work));
    if !application.is_pending() {
        let removals = application.removals.iter();
        actions.extend(removals.filter_map(|it| removed(it, applied_work, "has left the work")));
        actions.extend(listed(application));
    }
    for processed in retried {
        actions.extend(written(work, processed, member));
        known.add(processed);
        actions.extend(known.action(applied_work));
    }
    actions
}

fn written(work: &Object, processed: &Processed<'_>, member: &str) -> Option<Action> {
    let (ApplyResult::Pending { write } | ApplyResult::Retried { write, .. }) = &processed.result
    else {
        return None;
    };
    let why = Why::new("ManifestApplied", format!("work {} asks for it", work.name()));
    match (write, processed.live) {
        (Wanted::Applied(ServerSide { object, manager, force, .. }), live) => {
            let apply = if let Some(live) = live {
                Action::apply(Verb::Advance, live, object.clone(), *force, why)
            } else {
                let target = processed.item.key(member);
                Action::apply_new(Verb::Create, target, object.clone(), *force, why)
            };
            Some(apply.managed_by(manager))
        }
        (Wanted::Changed(object), Some(live)) => {
            let patch = merge_patch::between(live.raw(), object)?;
            Some(Action::patch(Verb::Advance, live, patch, why))
        }
        (Wanted::Created(object) | Wanted::Changed(object), _) => {
            let target = processed.item.key(member);
            Some(Action::create(Verb::Create, target, object.clone(), why))
        }
    }
}
