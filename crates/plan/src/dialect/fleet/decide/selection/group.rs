//! Groups of resource snapshots: what was selected at one moment, split where it is large.
//! The master is written first and says how many parts follow, so that a creation that was
//! interrupted is noticed and taken up again.

use convoy_api::Object;
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use smol_str::format_smolstr;

use crate::condition::instant;
use crate::dialect::fleet::decide::selection::select::{SelectionError, selected};
use crate::dialect::fleet::names;
use crate::dialect::fleet::read::hash;
use crate::dialect::fleet::read::overrides::is_envelope;
use crate::dialect::fleet::read::placement::{Placement, list};
use crate::dialect::fleet::read::snapshot::ResourceGroup;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

/// What one snapshot object may hold; the API server takes about 1.5 MiB in all.
const PART_BYTES: usize = 800 * 1024;

/// At least so long between two groups.
const INTERVAL: SignedDuration = SignedDuration::from_secs(30);

/// So long changes are collected after the first difference was seen.
const COLLECTING: SignedDuration = SignedDuration::from_secs(15);

/// How the newest group compares with what is selected now.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The group of this index has it all, once these writes are made; usually none.
    Kept { index: u32, actions: Vec<Action> },
    /// It differs, and more changes may follow before it is written down.
    Collecting { until: Timestamp, actions: Vec<Action> },
    /// A new group is written.
    Created { index: u32, actions: Vec<Action> },
}

/// What becomes of the resource snapshots. With `at_once` nothing is waited for.
pub fn decided(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    now: Timestamp,
    at_once: bool,
) -> Result<Decision, SelectionError> {
    let resources = selected(snapshot, placement)?;
    let masters = masters(snapshot, placement);
    let marked = masters.iter().rfind(|master| names::is_latest(master));
    let Some(newest) = marked.or(masters.last()).copied() else {
        return Ok(created(snapshot, placement, &masters, 0, &resources));
    };
    let index = names::index(newest, names::RESOURCE_INDEX).unwrap_or(0);
    let group = ResourceGroup::at(snapshot, placement, index);
    let parts = group.as_ref().map_or(&[][..], |group| group.parts.as_slice());
    if contents(newest, parts) == resources {
        return Ok(Decision::Kept { index, actions: relabelled(newest) });
    }
    let hash = hash_of(&resources);
    if group.is_some_and(|group| !group.is_complete())
        && newest.annotation(names::RESOURCE_HASH) == Some(hash.as_str())
    {
        let missing = missing_parts(snapshot, placement, index, &resources);
        return Ok(Decision::Kept { index, actions: missing });
    }
    if !at_once && let Some(waiting) = collecting(newest, now) {
        return Ok(waiting);
    }
    let last =
        masters.iter().filter_map(|master| names::index(master, names::RESOURCE_INDEX)).max();
    let next = last.map_or(0, |last| last.saturating_add(1));
    Ok(created(snapshot, placement, &masters, next, &resources))
}

/// The masters of a placement, by index.
fn masters<'w>(snapshot: &Snapshot<'w>, placement: &Placement<'_>) -> Vec<&'w Object> {
    let all = snapshot.of(&placement.family.resource_snapshot()).iter().copied();
    let owned = all.filter(|object| placement.owns(object) && names::is_master(object));
    let mut masters: Vec<&Object> = owned.filter(|object| !object.is_deleting()).collect();
    masters.sort_by_key(|master| names::index(master, names::RESOURCE_INDEX));
    masters
}

/// Everything a group holds, the master's part first.
pub fn contents(master: &Object, parts: &[&Object]) -> Vec<Value> {
    let sub_index = |part: &Object| -> u32 {
        part.annotation(names::SUB_INDEX).and_then(|text| text.parse().ok()).unwrap_or(u32::MAX)
    };
    let mut rest: Vec<&Object> =
        parts.iter().copied().filter(|part| part.key() != master.key()).collect();
    rest.sort_by_key(|part| sub_index(part));
    let parts = std::iter::once(master).chain(rest);
    parts.flat_map(|part| list(part.spec(), "selectedResources")).cloned().collect()
}

fn hash_of(resources: &[Value]) -> String {
    let sorted: Vec<Value> = resources.iter().map(hash::sorted).collect();
    hash::hex(&json!({"selectedResources": sorted}))
}

/// Puts right what a group that is up to date says about itself.
fn relabelled(master: &Object) -> Vec<Action> {
    let mut patch = json!({"metadata": {}});
    if !names::is_latest(master) {
        patch["metadata"]["labels"] = json!({names::LATEST: "true"});
    }
    if master.annotation(names::CANDIDATE_SEEN).is_some() {
        patch["metadata"]["annotations"] = json!({names::CANDIDATE_SEEN: null});
    }
    let why = Why::new("ResourcesUnchanged", "it holds what is selected now");
    if patch == json!({"metadata": {}}) {
        return Vec::new();
    }
    vec![Action::patch(Verb::Record, master, patch, why)]
}

/// Whether to wait for further changes; the first difference is written down for that.
fn collecting(newest: &Object, now: Timestamp) -> Option<Decision> {
    let annotation = newest.annotation(names::CANDIDATE_SEEN).map(|text| json!(text));
    let seen = timestamp(annotation.as_ref()).filter(|seen| *seen <= now);
    let collected = seen.unwrap_or(now).saturating_add(COLLECTING).ok()?;
    let spaced = newest.created_at().and_then(|at| at.saturating_add(INTERVAL).ok());
    let until = spaced.map_or(collected, |spaced| spaced.max(collected));
    if until <= now {
        return None;
    }
    let mut actions = Vec::new();
    if seen.is_none() {
        let patch = json!({"metadata": {"annotations": {names::CANDIDATE_SEEN: instant(now)}}});
        let why = Why::new("ResourcesChanged", "further changes are collected before they roll");
        actions.push(Action::patch(Verb::Record, newest, patch, why));
    }
    Some(Decision::Collecting { until, actions })
}

fn created(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    masters: &[&Object],
    index: u32,
    resources: &[Value],
) -> Decision {
    let mut actions = Vec::new();
    for old in masters.iter().filter(|master| names::is_latest(master)) {
        let patch = json!({"metadata": {"labels": {names::LATEST: "false"}}});
        let why = Why::new("ResourcesSuperseded", format!("index {index} is newer"));
        actions.push(Action::patch(Verb::Record, old, patch, why));
    }
    actions.extend(pruned(snapshot, placement, masters));
    let parts = split(resources);
    for (number, part) in parts.iter().enumerate() {
        let shape = Shape { index, number, parts: parts.len(), resources };
        actions.push(part_created(placement, &shape, part));
    }
    Decision::Created { index, actions }
}

/// Deletes the oldest groups, so that the limit holds once the new one is there.
fn pruned(snapshot: &Snapshot<'_>, placement: &Placement<'_>, masters: &[&Object]) -> Vec<Action> {
    let keep = placement.revision_history_limit.saturating_sub(1);
    let surplus = masters.len().saturating_sub(keep);
    let all = snapshot.of(&placement.family.resource_snapshot());
    let why = || {
        let limit = placement.revision_history_limit;
        Why::new("HistoryLimit", format!("revisionHistoryLimit is {limit}"))
    };
    let mut actions = Vec::new();
    for old in &masters[..surplus] {
        let index = old.label(names::RESOURCE_INDEX);
        let group = all.iter().filter(|part| {
            placement.owns(part)
                && part.label(names::RESOURCE_INDEX) == index
                && !part.is_deleting()
        });
        actions.extend(
            group.map(|part| Action::delete(Verb::Delete, part, Propagation::Background, why())),
        );
    }
    actions
}

/// The parts of an interrupted group that are not there yet.
fn missing_parts(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    index: u32,
    resources: &[Value],
) -> Vec<Action> {
    let parts = split(resources);
    let made = parts.iter().enumerate().skip(1).map(|(number, part)| {
        part_created(placement, &Shape { index, number, parts: parts.len(), resources }, part)
    });
    made.filter(|action| snapshot.get(&action.target).is_none()).collect()
}

/// Where a part stands in its group.
struct Shape<'r> {
    index: u32,
    /// 0 is the master.
    number: usize,
    parts: usize,
    resources: &'r [Value],
}

fn part_created(placement: &Placement<'_>, shape: &Shape<'_>, part: &[Value]) -> Action {
    let kind = placement.family.resource_snapshot();
    let namespace = placement.namespace();
    let (name, index) = (placement.name(), shape.index);
    let name = match shape.number.checked_sub(1) {
        None => format_smolstr!("{name}-{index}-snapshot"),
        Some(sub) => format_smolstr!("{name}-{index}-{sub}"),
    };
    let mut metadata = json!({"name": name, "labels": {
        names::PARENT: placement.name(),
        names::RESOURCE_INDEX: index.to_string(),
    }});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    if let Some(sub) = shape.number.checked_sub(1) {
        metadata["annotations"] = json!({names::SUB_INDEX: sub.to_string()});
    } else {
        let envelopes = shape.resources.iter().filter(|resource| is_envelope(resource)).count();
        metadata["labels"][names::LATEST] = json!("true");
        metadata["annotations"] = json!({
            names::RESOURCE_HASH: hash_of(shape.resources),
            names::NUMBER_OF_SNAPSHOTS: shape.parts.to_string(),
            names::NUMBER_OF_ENVELOPED: envelopes.to_string(),
        });
    }
    let object = json!({
        "apiVersion": format!("{}/v1beta1", names::PLACEMENT_GROUP),
        "kind": kind.kind,
        "metadata": metadata,
        "spec": {"selectedResources": part},
    });
    let target = placement.object.key().sibling(&kind, namespace, &name);
    let message = format!("{} resources are selected as index {index}", shape.resources.len());
    Action::create(Verb::Record, target, object, Why::new("ResourcesChanged", message))
}

/// Cuts a selection where a part would grow too large. There is always one part.
fn split(resources: &[Value]) -> Vec<&[Value]> {
    let mut parts = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (at, resource) in resources.iter().enumerate() {
        let size = resource.to_string().len();
        if bytes + size > PART_BYTES && at > from {
            parts.push(&resources[from..at]);
            (from, bytes) = (at, 0);
        }
        bytes += size;
    }
    parts.push(&resources[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_selection_is_cut_into_parts() {
        let large = json!({"data": "x".repeat(500 * 1024)});
        assert_eq!(split(&[]).len(), 1);
        assert_eq!(split(&[large.clone(), json!({})]).len(), 1);
        let parts = [large.clone(), json!({}), large.clone(), large];
        assert_eq!(split(&parts).iter().map(|part| part.len()).collect::<Vec<_>>(), [2, 1, 1]);
    }
}
