//! `persistentVolumeClaimRetentionPolicy` of a StatefulSet: a claim that shall go with the set, or
//! with the pod that a smaller set does without, is owned by it. The garbage collector does the
//! rest.

use convoy_api::kinds::{POD, STATEFUL_SET};
use convoy_api::object::member::{field, text};
use convoy_api::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::dialect::workloads::read::stateful_set::StatefulSet;
use crate::ownership;
use crate::step::{Action, Verb, Why};

/// When claims go.
#[derive(Clone, Copy, Debug)]
struct Retention {
    deletes_with_set: bool,
    deletes_with_pod: bool,
}

impl Retention {
    fn of(owner: &Object) -> Self {
        let policy = field(owner.spec(), "persistentVolumeClaimRetentionPolicy");
        let deletes = |event: &str| text(policy, event) == "Delete";
        Self { deletes_with_set: deletes("whenDeleted"), deletes_with_pod: deletes("whenScaled") }
    }
}

/// Who owns a new claim: the list, or nothing.
pub(super) fn of_new(owner: &Object) -> Option<Value> {
    Retention::of(owner).deletes_with_set.then(|| json!([ownership::reference(owner)]))
}

/// The patch that gives a claim of a pod the owner that it should have; none if it has.
pub(super) fn renewed(
    set: &StatefulSet<'_>,
    ordinal: i64,
    pod: &Object,
    claim: &Object,
) -> Option<Action> {
    let owner = set.owner;
    let is_ours = |kind: &str, name: &str| {
        kind == STATEFUL_SET.kind && name == owner.name() || kind == POD.kind && name == pod.name()
    };
    let references = field(claim.metadata(), "ownerReferences").as_array();
    let others = references.into_iter().flatten();
    let others: Vec<&Value> =
        others.filter(|it| !is_ours(text(it, "kind"), text(it, "name"))).collect();
    let is_controlled = others.iter().any(|it| field(it, "controller") == &Value::Bool(true));
    let Retention { deletes_with_set, deletes_with_pod } = Retention::of(owner);
    let wanted = match (set.wanted.contains(&ordinal), deletes_with_pod, deletes_with_set) {
        _ if is_controlled => None,
        (false, true, _) => Some(ownership::reference(pod)),
        (true, _, true) | (false, false, true) => Some(ownership::reference(owner)),
        _ => None,
    };
    let has = references.map_or(0, Vec::len);
    let is_so = match &wanted {
        Some(wanted) => {
            let uid = text(wanted, "uid");
            has == others.len() + 1 && claim.owners().any(|reference| reference.uid == uid)
        }
        None => has == others.len(),
    };
    if is_so {
        return None;
    }
    let list: Vec<Value> = others.into_iter().cloned().chain(wanted).collect();
    let list = if list.is_empty() { Value::Null } else { Value::Array(list) };
    let why = Why::new("RetentionPolicy", "persistentVolumeClaimRetentionPolicy says who owns it");
    Some(Action::patch(Verb::Record, claim, json!({"metadata": {"ownerReferences": list}}), why))
}

/// The claims of a pod that are there.
pub(super) fn standing<'o>(
    keys: impl IntoIterator<Item = ObjectKey>,
    find: impl Fn(&ObjectKey) -> Option<&'o Object>,
) -> Vec<&'o Object> {
    keys.into_iter().filter_map(|key| find(&key)).filter(|claim| !claim.is_deleting()).collect()
}
