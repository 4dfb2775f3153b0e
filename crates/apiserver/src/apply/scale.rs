//! Managed fields of the scale sub-resource: there `spec.replicas` stands for the field of the
//! resource that holds the number, and only its owners are seen.

use smol_str::SmolStr;

use super::element::Element;
use super::fields::FieldSet;
use super::managers::{Entry, Managers};

const SCALE_VERSION: &str = "autoscaling/v1";
const REPLICAS: [&str; 2] = ["spec", "replicas"];

/// The managers that a Scale shows: those that own the number, as owners of `spec.replicas`.
/// `replicas` is the path of the number in the resource.
pub fn managers_of_scale(parent: &Managers, replicas: &[&str]) -> Managers {
    let path = elements(replicas);
    let mut scale = Managers::default();
    for entry in parent.entries().iter().filter(|entry| entry.fields.has(&path)) {
        let mut entry = entry.clone();
        entry.manager.api_version = SmolStr::new_static(SCALE_VERSION);
        entry.fields = FieldSet::of_names(&[&REPLICAS]);
        scale.put(entry);
    }
    scale
}

/// The managers of the resource after a write of its Scale left `scale`.
///
/// Whoever owned the number and owns it still is left alone; who does no longer loses it, and
/// who newly does gets it in `api_version`.
pub fn managers_of_parent(
    parent: &Managers,
    scale: &Managers,
    replicas: &[&str],
    api_version: &str,
) -> Managers {
    let path = elements(replicas);
    let number = FieldSet::of_names(&[replicas]);
    let owners: Vec<&Entry> =
        scale.entries().iter().filter(|entry| entry.fields.has(&elements(&REPLICAS))).collect();
    let mut result = Managers::default();
    for entry in parent.entries() {
        let mut entry = entry.clone();
        if !owners.iter().any(|owner| is_one(owner, &entry)) {
            entry.fields.subtract(&number);
        }
        if !entry.fields.is_empty() {
            result.put(entry);
        }
    }
    for owner in owners {
        let owned = |entry: &Entry| is_one(owner, entry) && entry.fields.has(&path);
        if result.entries().iter().any(owned) {
            continue;
        }
        let mut entry = owner.clone();
        // Times are those of the parent's list, which does not know this owner yet.
        entry.time = None;
        entry.manager.api_version = SmolStr::new(api_version);
        entry.fields = match result.get(&entry.manager) {
            Some(own) => own.fields.union(&number),
            None => number.clone(),
        };
        result.put(entry);
    }
    result
}

/// Whether two entries are of one manager, each in the version of its own kind.
fn is_one(a: &Entry, b: &Entry) -> bool {
    let key = |entry: &'_ Entry| {
        let manager = &entry.manager;
        (manager.name.clone(), manager.operation, manager.subresource.clone())
    };
    key(a) == key(b)
}

fn elements(names: &[&str]) -> Vec<Element> {
    names.iter().map(|name| Element::Field((*name).into())).collect()
}
