//! The Skyhook's status as it should read after a decision.

pub(crate) mod conditions;
mod waiting;

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::skyhook::StatusWord;
use serde_json::{Map, Value, json};

use self::conditions::conditions;
use crate::dialect::skyhook::decide::Decision;
use crate::dialect::skyhook::decide::compartment::Compartment;
use crate::dialect::skyhook::read::node::{boot_id, word_text};
use crate::hold::Hold;

/// Up to how many nodes the status mirrors each. Beyond it an object would grow with the
/// fleet; the nodes carry the truth themselves.
const MIRRORED_MAX: usize = 256;

/// The whole status; what we do not know about stays as it is.
pub(super) fn status(
    decision: &Decision<'_, '_>,
    words: &[StatusWord],
    rolled_up: StatusWord,
    holds: &[Hold],
) -> Value {
    let stored = decision.hook.object.status().as_object();
    let mut status = stored.cloned().unwrap_or_default();
    let mut put = |field: &str, value: Option<Value>| match value {
        Some(value) => _ = status.insert(field.to_owned(), value),
        None => _ = status.shift_remove(field),
    };
    put("status", Some(json!(word_text(rolled_up))));
    if rolled_up == StatusWord::Complete && !decision.config_due {
        put("observedGeneration", Some(json!(decision.hook.object.generation())));
    }
    let busy = |word: &&StatusWord| matches!(word, StatusWord::InProgress | StatusWord::Erroring);
    put("nodesInProgress", Some(json!(words.iter().filter(busy).count())));
    let complete = decision.members.iter().filter(|member| member.is_complete()).count();
    put("completeNodes", Some(json!(format!("{complete}/{}", decision.members.len()))));
    put("packageList", Some(json!(decision.hook.package_list())));
    let mirrored = decision.members.len() <= MIRRORED_MAX;
    put("nodeStatus", mirrored.then(|| node_status(decision, words)));
    put("nodeState", mirrored.then(|| node_state(decision)));
    put("nodeBootIds", boot_ids(decision, mirrored));
    let listed = decision.listed();
    put("nodePriority", (!listed.is_empty()).then(|| json!(listed)));
    put("configUpdates", config_updates(decision));
    if !decision.policy_missing {
        // Without its policy nothing is known of compartments; what they were at is kept.
        put("compartmentStatuses", Some(compartments(decision, words)));
    }
    put("conditions", Some(conditions(decision, rolled_up, holds)));
    Value::Object(status)
}

fn node_status(decision: &Decision<'_, '_>, words: &[StatusWord]) -> Value {
    let pairs = decision.members.iter().zip(words);
    let by_node: BTreeMap<&str, &str> =
        pairs.map(|(member, word)| (member.node.name().as_str(), word_text(*word))).collect();
    json!(by_node)
}

fn node_state(decision: &Decision<'_, '_>) -> Value {
    let states =
        decision.members.iter().enumerate().map(|(index, member)| {
            (member.node.name().as_str(), json!(decision.state_after(index)))
        });
    json!(states.collect::<BTreeMap<&str, Value>>())
}

/// The boots that nodes run. Of a large fleet only what an earlier version left here, until
/// the nodes carry it themselves.
fn boot_ids(decision: &Decision<'_, '_>, mirrored: bool) -> Option<Value> {
    let hook = decision.hook;
    let kept = |node: &Object| {
        let waits =
            decision.options.reapply_on_reboot && node.annotation(&hook.keys.boot).is_none();
        hook.published_boot(node.name()).filter(|_| waits)
    };
    let nodes = decision.members.iter().map(|member| member.node);
    let ids: BTreeMap<&str, &str> = nodes
        .filter_map(|node| {
            let boot = if mirrored { boot_id(node) } else { kept(node) };
            Some((node.name().as_str(), boot?))
        })
        .collect();
    (!ids.is_empty()).then(|| json!(ids))
}

/// Changed config keys by package: of this version only.
fn config_updates(decision: &Decision<'_, '_>) -> Option<Value> {
    let mut updates = Map::new();
    for package in &decision.hook.packages {
        let changing = decision.changing.get(package.unique.as_str());
        let keys = match changing {
            Some(keys) => keys,
            None if decision.versions_changed.contains(&package.name) => continue,
            None => &package.updated,
        };
        if !keys.is_empty() {
            updates.insert(package.name.clone(), json!(keys));
        }
    }
    (!updates.is_empty()).then_some(Value::Object(updates))
}

fn compartments(decision: &Decision<'_, '_>, words: &[StatusWord]) -> Value {
    let all = decision.compartments.iter();
    let statuses: BTreeMap<&str, Value> = all
        .map(|compartment| {
            (compartment.spec.name.as_str(), published(decision, compartment, words))
        })
        .collect();
    json!(statuses)
}

fn published(
    decision: &Decision<'_, '_>,
    compartment: &Compartment,
    words: &[StatusWord],
) -> Value {
    let progress = compartment.progress(&decision.members, words);
    let mut status = json!({
        "matched": progress.matched,
        "ceiling": progress.ceiling,
        "inProgress": progress.in_progress,
        "completed": progress.completed,
        "progressPercent": progress.progress_percent,
    });
    if compartment.spec.strategy.is_some() {
        status["batchState"] = compartment.batch.wire();
    }
    status
}
