//! Decisions as writes: to the objects on the member, and to the Work on the hub.

mod announce;
pub(crate) mod permissions;

use convoy_api::object::member::list;
use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;
use serde_json::{Value, json};

use self::announce::announced;
use super::decide::manifest::{ApplyOrReportResult, Processed};
use super::decide::work::{Application, Deletion, LeftOver, in_order};
use super::decide::writing::Writing;
use super::names::{APPLIED_WORK, PLACEMENT_API, WORK_CLEANUP};
use super::read::manifest::{Manifest, manifests};
use crate::finalizer;
use crate::merge_patch::{self, nested};
use crate::step::{Action, Propagation, Verb, Why};

/// Makes what will own the objects of the Work, and keeps the Work until it is gone.
pub(crate) fn owning(work: &Object, member: &str, now: Timestamp) -> Vec<Action> {
    let why = Why::new("WorkGuarded", "its objects are to be deleted with it");
    let mut actions: Vec<Action> =
        finalizer::added(work, &[WORK_CLEANUP], why).into_iter().collect();
    let object = json!({
        "apiVersion": PLACEMENT_API,
        "kind": APPLIED_WORK.kind,
        "metadata": {"name": work.name()},
        "spec": {"workName": work.name(), "workNamespace": work.namespace()},
    });
    let target = ObjectKey { cluster: member.into(), ..APPLIED_WORK.key("", work.name()) };
    let message = format!("it will own the objects of Work {}", work.name());
    let why = Why::new("WorkFound", message);
    actions.push(Action::create(Verb::Create, target, object, why));
    actions.extend(announced(work, &manifests(work), now));
    actions
}

/// Lets a Work go; its objects stay where they are.
pub(crate) fn released(work: &Object) -> Vec<Action> {
    let why = Why::new("MemberLeaves", "the cluster leaves the fleet; its objects stay");
    finalizer::removed(work, &[WORK_CLEANUP], why).into_iter().collect()
}

pub(crate) fn deleted(work: &Object, deletion: &Deletion<'_>) -> Vec<Action> {
    let why = |message: &str| Why::new("WorkDeleted", message.to_owned());
    match deletion {
        Deletion::Done => {
            let why = why("its objects are gone from the member");
            finalizer::removed(work, &[WORK_CLEANUP], why).into_iter().collect()
        }
        Deletion::Deleting(applied_work) => {
            let why = why("the objects that it owns go with it");
            vec![Action::delete(Verb::Delete, applied_work, Propagation::Foreground, why)]
        }
        Deletion::Awaiting { .. } => Vec::new(),
        Deletion::Unblocking { applied_work, shared } => {
            shared.iter().filter_map(|live| unblocked(live, applied_work)).collect()
        }
    }
}

/// What brings the objects in line with the Work. Those that are no longer in it go last: what
/// keeps them from being deleted keeps nothing else from being applied.
pub(crate) fn applied(
    work: &Object,
    application: &Application<'_>,
    member: &str,
    now: Timestamp,
) -> Vec<Action> {
    let why = Why::new("WorkGuarded", "its objects are to be deleted with it");
    let mut actions: Vec<Action> =
        finalizer::added(work, &[WORK_CLEANUP], why).into_iter().collect();
    if application.is_pending() {
        let manifests: Vec<Manifest<'_>> =
            application.processed.iter().map(|it| it.manifest.clone()).collect();
        actions.extend(announced(work, &manifests, now));
    }
    let (mut fresh, mut retried) = (Vec::new(), Vec::new());
    for processed in in_order(&application.processed, now) {
        let of = match processed.result {
            ApplyOrReportResult::Retried { .. } => &mut retried,
            _ => &mut fresh,
        };
        of.extend(written(work, processed, member));
    }
    actions.extend(fresh);
    actions.extend(application.left_over.iter().map(|it| taken_away(it, application)));
    actions.extend(retried);
    actions
}

fn written(work: &Object, processed: &Processed<'_>, member: &str) -> Vec<Action> {
    let (write, reason) = match &processed.result {
        ApplyOrReportResult::Applied { write: Some(write), .. } => (write, "DriftReverted"),
        ApplyOrReportResult::Pending { write } | ApplyOrReportResult::Retried { write, .. } => {
            (write, "ManifestApplied")
        }
        ApplyOrReportResult::Applied { write: None, .. }
        | ApplyOrReportResult::Failed { .. }
        | ApplyOrReportResult::Reported => {
            return Vec::new();
        }
    };
    let why = || Why::new(reason, format!("Work {} asks for it", work.name()));
    let target = || processed.manifest.identifier.key(member);
    match (write, processed.live) {
        (Writing::ApplyNew { object, force }, _) => {
            vec![Action::apply_new(Verb::Create, target(), object.clone(), *force, why())]
        }
        (Writing::Merge(wanted), Some(live)) => {
            let patch = merge_patch::between(live.raw(), wanted);
            let action = patch.map(|patch| Action::patch(Verb::Advance, live, patch, why()));
            action.into_iter().collect()
        }
        (Writing::Apply { object, owners, force }, Some(live)) => {
            let taken_over = owners.as_ref().map(|owners| {
                let patch = nested(&["metadata", "ownerReferences"], json!(owners));
                let message = format!("it belongs to Work {} from now on", work.name());
                Action::patch(Verb::Adopt, live, patch, Why::new("ObjectTakenOver", message))
            });
            let apply = Action::apply(Verb::Advance, live, object.clone(), *force, why());
            taken_over.into_iter().chain([apply]).collect()
        }
        (Writing::Create(object) | Writing::Merge(object) | Writing::Apply { object, .. }, _) => {
            vec![Action::create(Verb::Create, target(), object.clone(), why())]
        }
    }
}

fn taken_away(left_over: &LeftOver<'_>, application: &Application<'_>) -> Action {
    let live = left_over.live;
    let message = format!("{} has left the Work", left_over.identifier.shown());
    let why = Why::new("ManifestRemoved", message);
    if !left_over.is_shared {
        return Action::delete(Verb::Delete, live, Propagation::Background, why);
    }
    let uid = application.applied_work.uid();
    let owners = list(live.metadata(), "ownerReferences").iter();
    let others: Vec<&Value> = owners.filter(|owner| owner["uid"].as_str() != uid).collect();
    let patch = nested(&["metadata", "ownerReferences"], json!(others));
    Action::patch(Verb::Release, live, patch, why)
}

/// An object with other owners survives, and must not keep its `AppliedWork` from going.
fn unblocked(live: &Object, applied_work: &Object) -> Option<Action> {
    let mut owners = list(live.metadata(), "ownerReferences").to_vec();
    let uid = applied_work.uid();
    let ours = owners.iter_mut().find(|owner| owner["uid"].as_str() == uid)?;
    if ours["blockOwnerDeletion"] == json!(false) {
        return None;
    }
    ours["blockOwnerDeletion"] = json!(false);
    let why = Why::new("WorkDeleted", "the object has other owners, and stays");
    let patch = nested(&["metadata", "ownerReferences"], Value::Array(owners));
    Some(Action::patch(Verb::Release, live, patch, why))
}
