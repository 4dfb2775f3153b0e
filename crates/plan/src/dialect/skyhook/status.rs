//! The Skyhook's status as it should read after a pass.

mod conditions;

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::skyhook::StatusWord;
use serde_json::{Map, Value, json};

use crate::condition::instant;
use crate::dialect::skyhook::decide::Pass;
use crate::dialect::skyhook::decide::compartment::{Compartment, count};
use crate::dialect::skyhook::decide::member::{boot_id, word_text};
use crate::dialect::skyhook::decide::record::Room;
use crate::dialect::skyhook::read::policy::percent_of;
use crate::dialect::skyhook::status::conditions::conditions;
use crate::hold::Hold;

/// Up to how many nodes the status mirrors each. Beyond it an object would grow with the
/// fleet; the nodes carry the truth themselves.
const MIRRORED_MAX: usize = 256;

/// The status words of all members after this pass, by member index.
pub(super) fn words(pass: &Pass<'_, '_>) -> Vec<StatusWord> {
    (0..pass.members.len()).map(|index| pass.word_after(index)).collect()
}

/// The nodes' words in one.
pub(super) fn rolled_up(pass: &Pass<'_, '_>, words: &[StatusWord]) -> StatusWord {
    if pass.policy_missing {
        return StatusWord::Blocked;
    }
    if pass.complete {
        return StatusWord::Complete;
    }
    if pass.hook.paused {
        return StatusWord::Paused;
    }
    if pass.hook.disabled {
        return StatusWord::Disabled;
    }
    let mut remaining = words.iter().filter(|word| **word != StatusWord::Complete);
    let Some(first) = remaining.clone().next() else { return StatusWord::Unknown };
    if remaining.clone().any(|word| *word == StatusWord::InProgress) {
        return StatusWord::InProgress;
    }
    if remaining.all(|word| word == first) { *first } else { StatusWord::Unknown }
}

/// The whole status; what we do not know about stays as it is.
pub(super) fn status(
    pass: &Pass<'_, '_>,
    words: &[StatusWord],
    rolled_up: StatusWord,
    holds: &[Hold],
) -> Value {
    let stored = pass.hook.object.status().as_object();
    let mut status = stored.cloned().unwrap_or_default();
    let mut put = |field: &str, value: Option<Value>| match value {
        Some(value) => _ = status.insert(field.to_owned(), value),
        None => _ = status.shift_remove(field),
    };
    put("status", Some(json!(word_text(rolled_up))));
    if rolled_up == StatusWord::Complete && !pass.config_due {
        put("observedGeneration", Some(json!(pass.hook.object.generation())));
    }
    let busy = |word: &&StatusWord| matches!(word, StatusWord::InProgress | StatusWord::Erroring);
    put("nodesInProgress", Some(json!(words.iter().filter(busy).count())));
    let complete = pass.members.iter().filter(|member| member.is_complete()).count();
    put("completeNodes", Some(json!(format!("{complete}/{}", pass.members.len()))));
    put("packageList", Some(json!(pass.hook.package_list())));
    let mirrored = pass.members.len() <= MIRRORED_MAX;
    put("nodeStatus", mirrored.then(|| node_status(pass, words)));
    put("nodeState", mirrored.then(|| node_state(pass)));
    put("nodeBootIds", boot_ids(pass, mirrored));
    put("nodePriority", node_priority(pass));
    put("configUpdates", config_updates(pass));
    if !pass.policy_missing {
        // Without its policy nothing is known of compartments; what they were at is kept.
        put("compartmentStatuses", Some(compartments(pass, words)));
    }
    put("conditions", Some(conditions(pass, rolled_up, holds)));
    Value::Object(status)
}

fn node_status(pass: &Pass<'_, '_>, words: &[StatusWord]) -> Value {
    let pairs = pass.members.iter().zip(words);
    let by_node: BTreeMap<&str, &str> =
        pairs.map(|(member, word)| (member.node.name().as_str(), word_text(*word))).collect();
    json!(by_node)
}

fn node_state(pass: &Pass<'_, '_>) -> Value {
    let states = pass
        .members
        .iter()
        .enumerate()
        .map(|(index, member)| (member.node.name().as_str(), json!(pass.state_after(index))));
    json!(states.collect::<BTreeMap<&str, Value>>())
}

/// The boots that nodes run. Of a large fleet only what an earlier version left here, until
/// the nodes carry it themselves.
fn boot_ids(pass: &Pass<'_, '_>, mirrored: bool) -> Option<Value> {
    let stored = pass.hook.object.status().get("nodeBootIds");
    let kept = |node: &Object| {
        let waits =
            pass.options.reapply_on_reboot && node.annotation(&pass.hook.keys.boot).is_none();
        stored.filter(|_| waits)?.get(node.name().as_str())?.as_str()
    };
    let nodes = pass.members.iter().map(|member| member.node);
    let ids: BTreeMap<&str, &str> = nodes
        .filter_map(|node| {
            let boot = if mirrored { boot_id(node) } else { kept(node) };
            Some((node.name().as_str(), boot?))
        })
        .collect();
    (!ids.is_empty()).then(|| json!(ids))
}

/// The nodes that were picked and are not complete. A failed node stays listed while there is
/// room beside those that hold a slot; one that someone took out does not.
fn node_priority(pass: &Pass<'_, '_>) -> Option<Value> {
    let mut picked = BTreeMap::new();
    let mut room = Room::default();
    let mut others = Vec::new();
    for (index, member) in pass.members.iter().enumerate() {
        let name = member.node.name().as_str();
        match member.picked_at {
            at if member.is_in_flight() || pass.is_started(index) => {
                room.take(member);
                picked.insert(name, at.map_or_else(|| instant(pass.now), |at| json!(at)));
            }
            Some(at) if !member.is_complete() && !member.is_ignored() => others.push((member, at)),
            _ => {}
        }
    }
    let listed = others.into_iter().take_while(|(member, _)| room.take(member));
    picked.extend(listed.map(|(member, at)| (member.node.name().as_str(), json!(at))));
    (!picked.is_empty()).then(|| json!(picked))
}

/// Changed config keys by package: of this version only.
fn config_updates(pass: &Pass<'_, '_>) -> Option<Value> {
    let mut updates = Map::new();
    for package in &pass.hook.packages {
        let handed_on = pass.changing.get(package.unique.as_str());
        let keys = match handed_on {
            Some(keys) => keys,
            None if pass.versions_changed.contains(&package.name) => continue,
            None => &package.updated,
        };
        if !keys.is_empty() {
            updates.insert(package.name.clone(), json!(keys));
        }
    }
    (!updates.is_empty()).then_some(Value::Object(updates))
}

fn compartments(pass: &Pass<'_, '_>, words: &[StatusWord]) -> Value {
    let all = pass.compartments.iter();
    let statuses: BTreeMap<&str, Value> = all
        .map(|compartment| (compartment.terms.name.as_str(), published(pass, compartment, words)))
        .collect();
    json!(statuses)
}

/// What is published about a compartment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) matched: u32,
    pub(super) ceiling: u32,
    pub(super) in_progress: u32,
    pub(super) completed: u32,
    pub(super) progress_percent: u32,
}

impl Standing {
    pub(super) fn of(pass: &Pass<'_, '_>, compartment: &Compartment, words: &[StatusWord]) -> Self {
        let busy = |index: &&usize| words[**index] == StatusWord::InProgress;
        let (completed, _) = compartment.ended(&pass.members);
        let matched = compartment.total();
        Self {
            matched,
            ceiling: compartment.ceiling,
            in_progress: count(compartment.members.iter().filter(busy).count()),
            completed,
            progress_percent: percent_of(completed, matched),
        }
    }
}

fn published(pass: &Pass<'_, '_>, compartment: &Compartment, words: &[StatusWord]) -> Value {
    let standing = Standing::of(pass, compartment, words);
    let mut status = json!({
        "matched": standing.matched,
        "ceiling": standing.ceiling,
        "inProgress": standing.in_progress,
        "completed": standing.completed,
        "progressPercent": standing.progress_percent,
    });
    if compartment.terms.strategy.is_some() {
        status["batchState"] = compartment.batch.wire();
    }
    status
}
