//! Writes the ConfigMaps of packages: creates, updates and deletes them.

use convoy_api::kinds::CONFIG_MAP;
use convoy_api::{Object, ObjectKey};
use serde_json::{Map, Value, json};

use crate::dialect::skyhook::decide::config_change::{accepted, is_leaving, is_marked};
use crate::dialect::skyhook::decide::member::Member;
use crate::dialect::skyhook::names::{NAME, PENDING_KEYS, PREFIX, package_config_map};
use crate::dialect::skyhook::read::config::{changed_keys, config_map, data, pending_keys};
use crate::dialect::skyhook::read::hook::{Hook, Package};
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::write::pod::owner;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

/// Creates, updates and deletes the ConfigMaps of the packages.
pub(crate) fn actions(
    hook: &Hook<'_>,
    options: &Options,
    snapshot: &Snapshot<'_>,
    members: &[Member<'_>],
) -> Vec<Action> {
    let mut actions = Vec::new();
    // Changes that come together are taken up together, so that one interrupt serves all.
    let soon = hook.packages.iter().any(|package| {
        let map = config_map(hook, options, snapshot, package);
        map.is_some_and(|map| {
            !changed_keys(package, map).is_empty() && is_leaving(package, members)
        })
    });
    for package in &hook.packages {
        match config_map(hook, options, snapshot, package) {
            Some(map) if soon && map.annotation(PENDING_KEYS).is_none() => {}
            Some(map) => actions.extend(update(hook, package, map, members)),
            None if package.config.is_empty() => {}
            None => actions.push(create(hook, options, package)),
        }
    }
    for map in snapshot.of(&CONFIG_MAP) {
        if is_left_over(hook, options, map) {
            let why = Why::new("ConfigUnused", "the spec has no package of this name and version");
            actions.push(Action::delete(Verb::Delete, map, Propagation::Background, why));
        }
    }
    actions
}

fn create(hook: &Hook<'_>, options: &Options, package: &Package<'_>) -> Action {
    let name = package_config_map(hook.name(), &package.name, &package.version);
    let key: ObjectKey = hook.object.key().sibling(&CONFIG_MAP, &options.namespace, &name);
    let body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": options.namespace,
            "labels": {NAME: hook.name()},
            "annotations": {
                NAME: hook.name(),
                format!("{PREFIX}Package.Name"): package.name,
                format!("{PREFIX}Package.Version"): package.version,
            },
            "ownerReferences": [owner(hook.object)],
        },
        "data": package.config,
    });
    let why = Why::new("ConfigNeeded", format!("create the files of package {}", package.unique));
    Action::create(Verb::Create, key, body, why)
}

/// The next step of a config change, if any.
fn update(
    hook: &Hook<'_>,
    package: &Package<'_>,
    map: &Object,
    members: &[Member<'_>],
) -> Option<Action> {
    if let Some(keys) = pending_keys(map) {
        // What the nodes carry, not what this step makes of it: the writes come first.
        let is_known = keys == package.updated
            && members.iter().all(|member| is_marked(hook, package, member));
        let patch = json!({"metadata": {"annotations": {PENDING_KEYS: null}}});
        let why = Why::new("ConfigHandedOn", "every node has been told about the changed config");
        return is_known.then(|| Action::patch(Verb::Record, map, patch, why));
    }
    let stored = data(map);
    let changed = changed_keys(package, map);
    let gone = stored.into_iter().flatten().filter(|(key, _)| !package.config.contains_key(*key));
    let mut changes: Map<String, Value> = gone.map(|(key, _)| (key.clone(), Value::Null)).collect();
    changes.extend(changed.iter().map(|key| ((*key).clone(), json!(package.config[*key]))));
    if changes.is_empty() {
        return None;
    }
    let mut patch = json!({"data": changes});
    if !changed.is_empty() {
        let keys = accepted(package, &changed, members)?;
        let keys = serde_json::to_string(&keys).expect("strings always serialise");
        patch["metadata"]["annotations"][PENDING_KEYS] = json!(keys);
    }
    let why = Why::new(
        "ConfigChanged",
        format!("the config of package {} changed in {} keys", package.unique, changed.len()),
    );
    Some(Action::patch(Verb::Record, map, patch, why).concurrently())
}

fn is_left_over(hook: &Hook<'_>, options: &Options, map: &Object) -> bool {
    let ours = map.label(NAME) == Some(hook.name()) && *map.namespace() == options.namespace;
    let wanted = |package: &Package<'_>| {
        *map.name() == package_config_map(hook.name(), &package.name, &package.version)
    };
    ours && !map.is_deleting() && !hook.packages.iter().any(wanted)
}
