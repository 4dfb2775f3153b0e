//! What people do to a Skyhook with `kubectl skyhook`: list the packages of nodes, and patch a node
//! or a rollout so that it starts over.

use convoy_api::Object;
use convoy_api::skyhook::{PackageState, Stage, StatusWord};
use serde_json::{Map, Value, json};

use crate::dialect::skyhook::names::{
    AUTO_TAINT, DISABLE, IGNORE, Keys, NODE_STATE, PAUSE, VERSION, unique,
};
use crate::dialect::skyhook::read::batch::BatchState;
use crate::dialect::skyhook::read::mark::outside_batches;
use crate::dialect::skyhook::read::node::word_text;
use crate::dialect::skyhook::read::state::{Entry, NodeState, stage_word, state_word};
use crate::dialect::skyhook::write::node::NodePatch;
use crate::merge_patch::nested;
use crate::step::{Verb, Why, Write};
use crate::text::version::Version;

/// A package as a node records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageRecord {
    pub name: String,
    pub version: String,
    pub image: String,
    pub container_sha: String,
    pub stage: &'static str,
    pub state: PackageState,
    pub restarts: i64,
}

impl PackageRecord {
    /// The state as it stands on the wire.
    pub fn state_word(&self) -> &'static str {
        state_word(self.state)
    }
}

/// What a person switches on a Skyhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    Pause,
    Resume,
    Disable,
    Enable,
}

impl Switch {
    /// The merge patch that does it.
    pub fn patch(self) -> Value {
        let (key, value) = match self {
            Self::Pause => (PAUSE, json!("true")),
            Self::Resume => (PAUSE, Value::Null),
            Self::Disable => (DISABLE, json!("true")),
            Self::Enable => (DISABLE, Value::Null),
        };
        nested(&["metadata", "annotations", key], value)
    }
}

/// The first operator that reads whether a Skyhook is paused or disabled from its annotations.
pub const ANNOTATIONS_SINCE: &str = "v0.8.0";

/// The version of the operator that last wrote a Skyhook, if it is a version.
pub fn written_by(skyhook: &Object) -> Option<&str> {
    skyhook.annotation(VERSION).filter(|version| is_version(version))
}

pub fn is_version(text: &str) -> bool {
    Version::parse(text).is_some()
}

/// Whether an operator of this version obeys the annotations that [`Switch`] writes.
pub fn obeys_annotations(version: &str) -> bool {
    Version::parse(version) >= Version::parse(ANNOTATIONS_SINCE)
}

/// The names of the Skyhooks that a node records packages of, sorted.
pub fn skyhooks(node: &Object) -> Vec<&str> {
    let mut names: Vec<&str> =
        node.annotations().filter_map(|(key, _)| key.strip_prefix(NODE_STATE)).collect();
    names.sort_unstable();
    names
}

/// The packages that a node records for a Skyhook, by name and version; none where it records
/// nothing.
pub fn packages(
    node: &Object,
    skyhook: &str,
) -> Result<Option<Vec<PackageRecord>>, serde_json::Error> {
    let Some(text) = node.annotation(&Keys::of(skyhook).node_state) else { return Ok(None) };
    let mut entries: Vec<Entry> = NodeState::parse(text)?.entries.into_values().collect();
    entries.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    let records = entries.into_iter().map(|entry| PackageRecord {
        name: entry.name,
        version: entry.version,
        image: entry.image,
        container_sha: entry.container_sha,
        stage: stage_word(entry.stage),
        state: entry.state,
        restarts: entry.restarts,
    });
    Ok(Some(records.collect()))
}

/// How a node stands, from its packages alone.
pub fn standing(packages: &[PackageRecord]) -> &'static str {
    let any = |state: PackageState| packages.iter().any(|package| package.state == state);
    word_text(if any(PackageState::Erroring) {
        StatusWord::Erroring
    } else if !packages.is_empty()
        && packages.iter().all(|package| package.state == PackageState::Complete)
    {
        StatusWord::Complete
    } else if any(PackageState::InProgress) || any(PackageState::Complete) {
        StatusWord::InProgress
    } else {
        StatusWord::Unknown
    })
}

/// Whether a node has more of a Skyhook than the status that every selected node has.
pub fn remembers(node: &Object, skyhook: &str) -> bool {
    let Keys { node_state, cordon, boot, batch, .. } = Keys::of(skyhook);
    [node_state, cordon, boot, batch].iter().any(|key| node.annotation(key).is_some())
}

/// The merge patch that makes a node forget a Skyhook, its cordon included; none if there is
/// nothing to forget.
pub fn forget(node: &Object, skyhook: &str) -> Option<Value> {
    let keys = Keys::of(skyhook);
    let mut write = NodePatch::new(node);
    write.forget(&keys);
    let action = write.action(Verb::Record, Why::new("Reset", "by hand"));
    let mut patch = match action.map(|action| action.write) {
        Some(Write::Patch { patch, .. }) => patch,
        _ => json!({}),
    };
    let mut gone: Vec<&str> =
        node.annotations().map(|(key, _)| key).filter(|key| key.starts_with(AUTO_TAINT)).collect();
    gone.extend(node.annotation(&keys.version).map(|_| keys.version.as_str()));
    for key in gone {
        patch["metadata"]["annotations"][key] = Value::Null;
    }
    patch.as_object().is_some_and(|patch| !patch.is_empty()).then_some(patch)
}

/// The merge patch that removes what a node records of its packages; none if it records nothing.
pub fn forget_packages(node: &Object, skyhook: &str) -> Option<Value> {
    let key = Keys::of(skyhook).node_state;
    node.annotation(&key)?;
    Some(nested(&["metadata", "annotations", &key], Value::Null))
}

/// The merge patch after which a version of a package runs again on a node, from `stage` or from its
/// start; none if the node does not have it.
pub fn rerun(
    node: &Object,
    skyhook: &str,
    (package, version): (&str, &str),
    stage: Option<Stage>,
) -> Option<Value> {
    let key = Keys::of(skyhook).node_state;
    let mut state = NodeState::parse(node.annotation(&key)?).ok()?;
    let package = unique(package, version);
    let entry = state.entries.get_mut(&package)?;
    match stage {
        Some(stage) => (entry.stage, entry.state) = (stage, PackageState::InProgress),
        None => _ = state.entries.remove(&package),
    }
    let text = if state.entries.is_empty() { Value::Null } else { json!(state.text()) };
    Some(nested(&["metadata", "annotations", &key], text))
}

/// The merge patch that takes a node out of all rollouts, or back in; none if it is so already.
pub fn ignore(node: &Object, ignored: bool) -> Option<Value> {
    let is = node.label(IGNORE) == Some("true");
    let value = if ignored { json!("true") } else { Value::Null };
    (is != ignored).then(|| nested(&["metadata", "labels", IGNORE], value))
}

/// A compartment that has batch state: its name, batch, and how many nodes completed and failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    pub compartment: String,
    pub batch: u32,
    pub completed: u32,
    pub failed: u32,
}

/// How many compartments a Skyhook's status tells of, and those that have batch state.
pub fn batches(skyhook: &Object) -> (usize, Vec<Batches>) {
    let all = compartments(skyhook);
    let told = all.iter().flat_map(|all| all.iter()).filter_map(|(name, status)| {
        let state = BatchState::read(Some(status.get("batchState")?));
        Some(Batches {
            compartment: name.clone(),
            batch: state.current_batch,
            completed: state.completed_nodes,
            failed: state.failed_nodes,
        })
    });
    (all.map_or(0, Map::len), told.collect())
}

/// The merge patch of the status that begins a new run: every compartment is before its first batch.
/// Nodes that were picked keep their slots and belong to no batch of the new run. None if there is no
/// compartment. Like every patch of this file it fits the object that it was made from, and no other.
pub fn reset_batches(skyhook: &Object) -> Option<Value> {
    let batches = first_batches(skyhook)?;
    let picks = skyhook.status().get("nodePriority").and_then(Value::as_object);
    let outside = json!(outside_batches(skyhook));
    let picks: Map<String, Value> =
        picks.into_iter().flatten().map(|(node, _)| (node.clone(), outside.clone())).collect();
    let mut status = json!({"compartmentStatuses": batches});
    if !picks.is_empty() {
        status["nodePriority"] = Value::Object(picks);
    }
    Some(nested(&["status"], status))
}

/// The merge patch of the status before its nodes forget a Skyhook: nobody is picked any more, and,
/// unless `keeps_batches`, a new run begins. It comes before the patches of nodes: a status of batches
/// that nodes no longer know of would be read as their result. None if there is nothing to change.
pub fn forget_picks(skyhook: &Object, keeps_batches: bool) -> Option<Value> {
    let mut status = Map::new();
    if let Some(batches) = first_batches(skyhook).filter(|_| !keeps_batches) {
        status.insert("compartmentStatuses".to_owned(), batches);
    }
    if skyhook.status().get("nodePriority").is_some() {
        status.insert("nodePriority".to_owned(), Value::Null);
    }
    (!status.is_empty()).then(|| nested(&["status"], Value::Object(status)))
}

/// What to merge into the compartments for a fresh batch state; none if there is no compartment.
fn first_batches(skyhook: &Object) -> Option<Value> {
    let all = compartments(skyhook).filter(|all| !all.is_empty())?;
    let mut reset = Map::new();
    for (name, status) in all {
        let Some(known) = status.get("batchState").and_then(Value::as_object) else { continue };
        let mut state: Map<String, Value> =
            known.keys().map(|field| (field.clone(), Value::Null)).collect();
        state.extend(BatchState::default().wire().as_object().cloned().unwrap_or_default());
        reset.insert(name.clone(), nested(&["batchState"], Value::Object(state)));
    }
    Some(Value::Object(reset))
}

fn compartments(skyhook: &Object) -> Option<&Map<String, Value>> {
    skyhook.status().get("compartmentStatuses").and_then(Value::as_object)
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{node, object};

    use super::*;

    const STATE: &str = r#"{"a|1":{"name":"a","version":"1","image":"i","stage":"config","state":"complete"},"b|2":{"name":"b","version":"2","image":"i","stage":"apply","state":"erroring","restarts":3}}"#;

    fn worker() -> Object {
        node("n")
            .annotation("skyhook.nvidia.com/nodeState_s", STATE)
            .annotation("skyhook.nvidia.com/status_s", "erroring")
            .annotation("skyhook.nvidia.com/cordon_s", "true")
            .annotation("skyhook.nvidia.com/batch_s", "{}")
            .annotation("skyhook.nvidia.com/status_t", "complete")
            .label("skyhook.nvidia.com/status_s", "erroring")
            .with("/spec/unschedulable", json!(true))
            .build()
    }

    #[test]
    fn packages_and_their_standing_are_read() {
        let packages = packages(&worker(), "s").expect("it is valid").expect("they are recorded");
        assert_eq!((packages[1].name.as_str(), packages[1].restarts), ("b", 3));
        assert_eq!(packages[1].state_word(), "erroring");
        assert_eq!(standing(&packages), "erroring");
        assert_eq!(standing(&packages[..1]), "complete");
        assert_eq!(standing(&[]), "unknown");
        assert_eq!(super::packages(&worker(), "t").expect("it is valid"), None);
        assert_eq!(skyhooks(&worker()), ["s"]);
        assert!(remembers(&worker(), "s") && !remembers(&worker(), "t"));
    }

    #[test]
    fn operators_obey_annotations_since_a_version() {
        assert!(obeys_annotations("v0.8.0") && obeys_annotations("1.2.3"));
        assert!(!obeys_annotations("v0.7.9") && !obeys_annotations("0.8.0-rc.1"));
        assert!(is_version("v0.11") && !is_version("dev") && !is_version(""));
    }

    #[test]
    fn a_node_forgets_one_skyhook_and_its_cordon() {
        let patch = forget(&worker(), "s").expect("there is something to forget");
        assert_eq!(patch["spec"], json!({"unschedulable": null}));
        let annotations = patch["metadata"]["annotations"].as_object().expect("a map");
        assert!(annotations.values().all(Value::is_null) && annotations.len() == 4, "{patch}");
        assert_eq!(forget(&node("n").build(), "s"), None);
    }

    #[test]
    fn a_package_runs_again_from_a_stage_or_from_its_start() {
        let stored = |patch: Value| {
            patch["metadata"]["annotations"]["skyhook.nvidia.com/nodeState_s"].clone()
        };
        let text = stored(rerun(&worker(), "s", ("b", "2"), None).expect("it is there"));
        assert!(text.as_str().is_some_and(|text| !text.contains("b|2") && text.contains("a|1")));
        let text =
            stored(rerun(&worker(), "s", ("a", "1"), Some(Stage::Apply)).expect("it is there"));
        assert!(
            text.as_str()
                .is_some_and(|text| text.contains(r#""stage":"apply","state":"in_progress""#))
        );
        assert_eq!(rerun(&worker(), "s", ("b", "1"), None), None);
    }

    #[test]
    fn batches_begin_again() {
        let skyhook = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
            .status(json!({"compartmentStatuses": {"x": {"matched": 3, "batchState":
                {"currentBatch": 4, "completedNodes": 7, "shouldStop": true}}, "y": {"matched": 1}}}))
            .build();
        let (total, told) = batches(&skyhook);
        assert_eq!((total, told.len(), told[0].batch, told[0].completed), (2, 1, 4, 7));
        let patch = reset_batches(&skyhook).expect("there are compartments");
        let state = &patch["status"]["compartmentStatuses"]["x"]["batchState"];
        assert_eq!(*state, json!({"currentBatch": 1, "completedNodes": null, "shouldStop": null}));
        assert!(patch["status"]["compartmentStatuses"].get("y").is_none());
        assert!(patch["status"].get("nodePriority").is_none());
    }

    #[test]
    fn picks_of_the_last_run_keep_their_slots_or_are_forgotten() {
        let skyhook = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
            .with("/metadata/creationTimestamp", json!("2025-12-31T00:00:00Z"))
            .status(json!({"nodePriority": {"n": "2026-01-01T00:00:00Z"},
                "compartmentStatuses": {"x": {"batchState": {"currentBatch": 2}}}}))
            .build();
        let status = |patch: Option<Value>| patch.expect("something changes")["status"].clone();
        let first = json!({"x": {"batchState": {"currentBatch": 1}}});
        assert_eq!(
            status(reset_batches(&skyhook)),
            json!({"compartmentStatuses": first, "nodePriority": {"n": "2025-12-31T00:00:00Z"}})
        );
        assert_eq!(
            status(forget_picks(&skyhook, false)),
            json!({"compartmentStatuses": first, "nodePriority": null})
        );
        assert_eq!(status(forget_picks(&skyhook, true)), json!({"nodePriority": null}));
        let fresh = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s").build();
        assert_eq!((reset_batches(&fresh), forget_picks(&fresh, false)), (None, None));
    }
}
