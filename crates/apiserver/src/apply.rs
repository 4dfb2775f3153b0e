//! Server-side apply: who owns which field, and what an applied configuration makes of an
//! object.
//!
//! All of it is pure: an object, a configuration or a new version of it, and the instant go in;
//! the object with its `metadata.managedFields` comes out. Defaults, validation, admission and
//! HTTP are the caller's.

mod check;
mod compare;
mod conflict;
mod element;
mod fields;
mod grain;
mod last_applied;
mod managers;
mod merge;
mod overlay;
mod own;
mod prune;
mod reconcile;
mod reset;
mod revert;
mod scale;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value};
use smol_str::{SmolStr, ToSmolStr};

use self::check::{Duplicates, check};
use self::compare::compare;
use self::element::same;
use self::managers::{Sent, sent};
use self::merge::merge;
use self::own::set_of;
use self::prune::{may_remove, prune};
use self::reconcile::reconcile;
use crate::shape::Shape;

pub use self::check::Mismatches;
pub use self::conflict::{Cause, Conflicts};
pub use self::element::{BadElement, Element};
pub use self::fields::{BadFields, FieldSet};
pub use self::managers::{BadManagers, Entry, Manager, Managers, Operation};
pub use self::overlay::{OverlayError, overlay};
pub use self::reset::{Reset, Step};
pub use self::revert::revert_times;
pub use self::scale::{managers_of_parent, managers_of_scale};

/// Who records fields that were there before anybody applied anything.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// An object that is not there yet.
static ABSENT: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));
/// Fields that nobody owns: they identify the object, or are the server's.
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_names(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// What is known about a write besides the objects.
#[derive(Clone, Copy, Debug)]
pub struct Context<'c> {
    pub shape: Shape<'c>,
    /// The version in which the objects are written, `apps/v1`.
    pub api_version: &'c str,
    /// All versions in which the kind is served; what is recorded for others is dropped.
    pub served: &'c [SmolStr],
    /// The field manager, or what stands for it.
    pub manager: &'c str,
    /// Empty for the resource itself.
    pub subresource: &'c str,
    pub now: Timestamp,
    pub reset: &'c Reset,
}

/// Why a configuration was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{}", .0.message())]
    Conflicts(Conflicts),
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsInConfig,
    #[error("failed to create typed patch object ({object}): {mismatches}")]
    Config { object: String, mismatches: Mismatches },
    #[error("failed to create typed live object ({object}): {mismatches}")]
    Live { object: String, mismatches: Mismatches },
    #[error("failed to decode managed fields: {0}")]
    Managers(#[from] BadManagers),
}

/// Records in `new` who owns what after a write that was not an apply. `live` is what the write
/// changes, none for a create.
///
/// Ownership never stands in the way of a write: if it cannot be told, what was recorded stays.
pub fn track_update(context: &Context<'_>, live: Option<&Value>, new: &mut Value) {
    let Some(Value::Object(metadata)) = new.get_mut("metadata") else {
        return;
    };
    let sent = match metadata.shift_remove("managedFields") {
        // A sub-resource is no place to set them.
        Some(list) if context.subresource.is_empty() => sent(Some(&list)),
        _ => Sent::Nothing,
    };
    let managers = match sent {
        Sent::Managers(managers) => managers,
        Sent::Reset => Managers::default(),
        Sent::Nothing => Managers::parse(live.and_then(managed_fields)).unwrap_or_default(),
    };
    let exists = live.and_then(|live| live.pointer("/metadata/uid")?.as_str()).is_some();
    let tracked = if managers.is_empty() && exists {
        Ok(managers) // begins with the first apply
    } else {
        updated(context, live.unwrap_or(&ABSENT), new, managers)
    };
    match tracked {
        Ok(managers) => set_managed_fields(new, managers.into_value()),
        Err(_) => set_managed_fields(new, live.and_then(managed_fields).cloned()),
    }
}

/// The object after `config` was applied to `live`, none if it is not there yet. An object that
/// comes out as it was keeps the time at which its manager last changed it.
pub fn apply(
    context: &Context<'_>,
    live: Option<&Value>,
    config: &Value,
    force: bool,
) -> Result<Value, Error> {
    if managed_fields(config).is_some_and(|list| !list.is_null()) {
        return Err(Error::ManagedFieldsInConfig);
    }
    let live = live.unwrap_or(&ABSENT);
    let mismatch = |mismatches| Error::Config { object: described(config), mismatches };
    check(context.shape, config, Duplicates::Refused).map_err(mismatch)?;
    let mismatch = |mismatches| Error::Live { object: described(live), mismatches };
    check(context.shape, live, Duplicates::Allowed).map_err(mismatch)?;
    let mut managers = Managers::parse(managed_fields(live))?;
    if managers.is_empty() {
        let context = Context { manager: BEFORE_FIRST_APPLY, ..*context };
        managers = updated(&context, &ABSENT, live, managers).map_err(mismatch)?;
    }
    let mut attempt = applied(context, live, config, managers.clone(), force);
    if let Err(conflicts) = attempt {
        let left = last_applied::conflicts_left(context, live, conflicts);
        if !left.is_empty() {
            return Err(Error::Conflicts(left));
        }
        attempt = applied(context, live, config, managers, true);
    }
    let (mut object, managers) = attempt.map_err(Error::Conflicts)?;
    last_applied::refresh(context, &mut object, config);
    set_managed_fields(&mut object, managers.into_value());
    Ok(object)
}

/// The managers after `old` became `new` by an update.
fn updated(
    context: &Context<'_>,
    old: &Value,
    new: &Value,
    mut managers: Managers,
) -> Result<Managers, Mismatches> {
    check(context.shape, old, Duplicates::Allowed)?;
    check(context.shape, new, Duplicates::Allowed)?;
    bring_up_to_date(context, &mut managers);
    let mut changes = compare(context.shape, old, new);
    changes.without(context.reset);
    let mut written = changes.written();
    let touched = written.union(&changes.removed);
    managers.for_each(|entry| entry.fields.subtract(&touched));
    managers.retain(|entry| !entry.fields.is_empty());
    written.subtract(&NEVER_OWNED);
    // A write that only removes is nobody's latest change.
    if !written.is_empty() {
        let manager = acting(context, Operation::Update);
        let fields = match managers.get(&manager) {
            Some(entry) => written.union(&entry.fields),
            None => written,
        };
        managers.put(Entry { manager, time: Some(context.now), fields });
    }
    managers.merge_oldest();
    Ok(managers)
}

/// One attempt at an apply: the object without its new managed fields, and the managers.
fn applied(
    context: &Context<'_>,
    live: &Value,
    config: &Value,
    mut managers: Managers,
    force: bool,
) -> Result<(Value, Managers), Conflicts> {
    bring_up_to_date(context, &mut managers);
    let mut set = set_of(context.shape, config);
    context.reset.remove_from(&mut set);
    let manager = acting(context, Operation::Apply);
    let last = managers.get(&manager).cloned();
    let time = last.as_ref().and_then(|entry| entry.time);
    managers.put(Entry { manager: manager.clone(), time, fields: set.clone() });

    let mut object = merge(context.shape, live, config);
    if let Some(last) = last.filter(|last| may_remove(context.shape, &last.fields, &set)) {
        let entries = managers.entries().iter();
        let owned = entries.fold(FieldSet::default(), |all, entry| all.union(&entry.fields));
        object = prune(context.shape, object, &last.fields, &owned);
    }

    let mut changes = compare(context.shape, live, &object);
    changes.without(context.reset);
    let written = changes.written();
    let others = managers.entries().iter().filter(|entry| !entry.manager.is(&manager));
    let conflicts = others
        .map(|entry| (entry.manager.clone(), entry.fields.intersection(&written)))
        .filter(|(_, fields)| !fields.is_empty());
    if !force {
        let conflicts = Conflicts::new(conflicts.collect());
        if !conflicts.is_empty() {
            return Err(conflicts);
        }
    }
    let touched = written.union(&changes.removed);
    let changed = !same(live, &object);
    managers.for_each(|entry| {
        if entry.manager.is(&manager) {
            entry.fields.subtract(&NEVER_OWNED);
            entry.time = if changed { Some(context.now) } else { entry.time };
        } else {
            entry.fields.subtract(&touched);
        }
    });
    managers.retain(|entry| !entry.fields.is_empty());
    Ok((object, managers))
}

/// Drops what is recorded for versions that are gone, and what became atomic since.
fn bring_up_to_date(context: &Context<'_>, managers: &mut Managers) {
    managers.retain(|entry| {
        let version = &entry.manager.api_version;
        version == context.api_version || context.served.contains(version)
    });
    managers.for_each(|entry| reconcile(context.shape, &mut entry.fields));
}

fn acting(context: &Context<'_>, operation: Operation) -> Manager {
    let name = if context.manager.is_empty() { "unknown" } else { context.manager };
    Manager {
        name: name.to_smolstr(),
        operation,
        subresource: context.subresource.to_smolstr(),
        api_version: context.api_version.to_smolstr(),
    }
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

fn set_managed_fields(object: &mut Value, list: Option<Value>) {
    let Value::Object(object) = object else { return };
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(metadata) = metadata else { return };
    match list {
        Some(list) => {
            metadata.insert("managedFields".to_owned(), list);
        }
        None => {
            metadata.shift_remove("managedFields");
        }
    }
}

/// `default/web; apps/v1, Kind=Deployment`.
fn described(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    // The core group is written with its slash.
    let slash = if version.contains('/') { "" } else { "/" };
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    format!("{namespace}/{name}; {slash}{version}, Kind={}", text("/kind"))
}
