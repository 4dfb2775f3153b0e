//! The ConfigMap that tells packages about their node: one per Skyhook and node, made before
//! the first pod there, brought up to date whenever another pod is made.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use convoy_api::kinds::CONFIG_MAP;
use serde_json::{Value, json};

use crate::dialect::skyhook::names::{NAME, NODE_META, PREFIX, metadata_config_map};
use crate::dialect::skyhook::read::config::data as stored;
use crate::dialect::skyhook::read::hook::{Hook, Package};
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::write::pod::owner;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

/// Creates or updates the ConfigMap of `node`.
pub(crate) fn ensure(
    hook: &Hook<'_>,
    options: &Options,
    snapshot: &Snapshot<'_>,
    node: &Object,
) -> Option<Action> {
    let name = metadata_config_map(hook.name(), node.name());
    let data = json!({
        "annotations.json": sorted(node.annotations()),
        "labels.json": sorted(node.labels()),
        "packages.json": packages(hook, options),
    });
    let why =
        Why::new("NodeMetadata", format!("give packages the metadata of node {}", node.name()));
    if let Some(map) = snapshot.find(&CONFIG_MAP, &options.namespace, &name) {
        let current = stored(map) == data.as_object();
        let update = || Action::patch(Verb::Record, map, json!({"data": data}), why).concurrently();
        return (!current).then(update);
    }
    let key = hook.object.key().sibling(&CONFIG_MAP, &options.namespace, &name);
    let body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": options.namespace,
            "labels": {NODE_META: hook.name()},
            "annotations": {
                NAME: hook.name(),
                format!("{PREFIX}Node.name"): node.name(),
            },
            "ownerReferences": [owner(hook.object)],
        },
        "data": data,
    });
    Some(Action::create(Verb::Create, key, body, why))
}

/// Deletes the ConfigMaps of nodes that are no longer targeted.
pub(crate) fn forget(
    hook: &Hook<'_>,
    options: &Options,
    snapshot: &Snapshot<'_>,
    nodes: impl Iterator<Item = impl AsRef<str>>,
) -> Vec<Action> {
    let mine = |map: &&&Object| {
        map.label(NODE_META) == Some(hook.name())
            && *map.namespace() == options.namespace
            && !map.is_deleting()
    };
    let mine: Vec<&Object> = snapshot.of(&CONFIG_MAP).iter().filter(mine).copied().collect();
    if mine.is_empty() {
        return Vec::new();
    }
    let wanted: BTreeSet<String> =
        nodes.map(|node| metadata_config_map(hook.name(), node.as_ref()).to_string()).collect();
    let left_over = mine.into_iter().filter(|map| !wanted.contains(map.name().as_str()));
    left_over
        .map(|map| {
            let why = Why::new("NodeGone", "the Skyhook no longer selects the node");
            Action::delete(Verb::Delete, map, Propagation::Background, why)
        })
        .collect()
}

/// As JSON with sorted keys.
fn sorted<'m>(pairs: impl Iterator<Item = (&'m str, &'m str)>) -> String {
    let pairs: BTreeMap<&str, &str> = pairs.collect();
    serde_json::to_string(&pairs).expect("maps of strings always serialise")
}

fn packages(hook: &Hook<'_>, options: &Options) -> String {
    let agent_version = options.agent_image.rsplit_once(':').map_or("", |(_, tag)| tag);
    let one = |package: &Package<'_>| {
        let mut body = json!({
            "name": package.name, "version": package.version, "image": package.image,
        });
        if let Some(image) = &package.agent_image {
            body["agentImageOverride"] = json!(image);
        }
        if let Some(interrupt) = &package.interrupt {
            body["interrupt"] = json!(interrupt);
        }
        if !package.config_interrupts.is_empty() {
            body["configInterrupts"] = json!(package.config_interrupts);
        }
        (package.name.clone(), body)
    };
    let packages: serde_json::Map<String, Value> = hook.packages.iter().map(one).collect();
    json!({"agentVersion": agent_version, "packages": packages}).to_string()
}
