//! Resource snapshots: the master is written first and says how many parts follow, so that a
//! creation that was interrupted is noticed and taken up again.

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition::instant;
use crate::dialect::fleet::decide::selection::group::{Decision, Old, split};
use crate::dialect::fleet::names;
use crate::dialect::fleet::read::overrides::is_envelope;
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::read::snapshot::hash_of;
use crate::step::{Action, Propagation, Verb, Why};

pub(crate) fn actions(
    decision: &Decision<'_>,
    placement: &Placement<'_>,
    now: Timestamp,
) -> Vec<Action> {
    match decision {
        Decision::Kept { .. } | Decision::Collecting { mark: None, .. } => Vec::new(),
        Decision::Relabelled { master, .. } => vec![relabelled(master)],
        Decision::Completed { index, resources, missing } => {
            let parts = parts(placement, *index, resources);
            parts.filter(|(number, _)| missing.contains(number)).map(|(_, part)| part).collect()
        }
        Decision::Collecting { mark: Some(newest), .. } => {
            let seen = json!({names::CANDIDATE_SEEN: instant(now)});
            let patch = json!({"metadata": {"annotations": seen}});
            let message = "further changes are collected before they are rolled out";
            vec![Action::patch(Verb::Record, newest, patch, Why::new("ResourcesChanged", message))]
        }
        Decision::Created { index, resources, old } => {
            let mut actions = outdated(placement, *index, old);
            actions.extend(parts(placement, *index, resources).map(|(_, part)| part));
            actions
        }
    }
}

/// Puts right what a group that is up to date says about itself.
fn relabelled(master: &Object) -> Action {
    let mut patch = json!({"metadata": {}});
    if !names::is_latest(master) {
        patch["metadata"]["labels"] = json!({names::LATEST: "true"});
    }
    if master.annotation(names::CANDIDATE_SEEN).is_some() {
        patch["metadata"]["annotations"] = json!({names::CANDIDATE_SEEN: null});
    }
    let why = Why::new("ResourcesUnchanged", "it holds what is selected now");
    Action::patch(Verb::Record, master, patch, why)
}

fn outdated(placement: &Placement<'_>, index: u32, old: &Old<'_>) -> Vec<Action> {
    let superseded = old.superseded.iter().map(|master| {
        let patch = json!({"metadata": {"labels": {names::LATEST: "false"}}});
        let why = Why::new("ResourcesSuperseded", format!("index {index} is newer"));
        Action::patch(Verb::Record, master, patch, why)
    });
    let limit = placement.revision_history_limit;
    let pruned = old.pruned.iter().map(|part| {
        let why = Why::new("HistoryLimit", format!("revisionHistoryLimit is {limit}"));
        Action::delete(Verb::Delete, part, Propagation::Background, why)
    });
    superseded.chain(pruned).collect()
}

/// The creation of every part of a group, by number.
fn parts<'a>(
    placement: &'a Placement<'_>,
    index: u32,
    resources: &'a [Value],
) -> impl Iterator<Item = (usize, Action)> + 'a {
    let parts = split(resources);
    let count = parts.len();
    parts.into_iter().enumerate().map(move |(number, part)| {
        let shape = Shape { index, number, parts: count, resources };
        (number, created(placement, &shape, part))
    })
}

/// Where a part stands in its group.
struct Shape<'r> {
    index: u32,
    /// 0 is the master.
    number: usize,
    parts: usize,
    resources: &'r [Value],
}

fn created(placement: &Placement<'_>, shape: &Shape<'_>, part: &[Value]) -> Action {
    let kind = placement.family.resource_snapshot();
    let namespace = placement.namespace();
    let index = shape.index;
    let name = names::resource_snapshot_name(placement.name(), index, shape.number);
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
