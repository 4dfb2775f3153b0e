//! Config: the ConfigMap of each package, and what happens when its content changes.
//!
//! A change is handed on in steps that each leave a durable trace, so that it survives a
//! crash between any two writes: the ConfigMap takes the new content together with the list
//! of changed keys; then that list goes into the Skyhook's status, and nodes that have the
//! package are put back to `config`; once all are, the list is taken off the ConfigMap. While
//! it is there, the package does not run.

use std::collections::BTreeMap;

use convoy_api::skyhook::{PackageState, Stage};
use convoy_api::{GroupKind, Object, ObjectKey};
use serde_json::{Map, Value, json};

use crate::dialect::skyhook::decide::lifecycle::is_package_complete;
use crate::dialect::skyhook::decide::member::Member;
use crate::dialect::skyhook::names::{NAME, PENDING_KEYS, PREFIX, package_config_map};
use crate::dialect::skyhook::read::hook::{Hook, Package};
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::read::state::NodeState;
use crate::dialect::skyhook::write::pod::owner;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

pub(crate) const CONFIG_MAP: GroupKind = GroupKind::new("", "ConfigMap");

/// The stages that read a package's config, and those that follow from it.
const CONFIGURED: [Stage; 3] = [Stage::Config, Stage::Interrupt, Stage::PostInterrupt];

/// Puts every package in `changing` that is past `config`, or fails there, back to it.
pub(crate) fn mark(hook: &Hook<'_>, changing: &[&str], state: &mut NodeState) {
    let packages = hook.packages.iter();
    for package in packages.filter(|package| changing.contains(&package.unique.as_str())) {
        let Some(entry) = state.get(&package.unique) else { continue };
        let settled = matches!(entry.state, PackageState::Complete | PackageState::Erroring);
        if settled && CONFIGURED.contains(&entry.stage) {
            state.put(package.entry(Stage::Config, PackageState::InProgress));
        }
    }
}

/// The packages whose change is being handed on, by unique name, with the keys.
pub(crate) fn changing<'h>(
    hook: &'h Hook<'_>,
    options: &Options,
    snapshot: &Snapshot<'_>,
) -> BTreeMap<&'h str, Vec<String>> {
    let pending = |package: &'h Package<'_>| {
        let map = config_map(hook, options, snapshot, package)?;
        let keys = serde_json::from_str(map.annotation(PENDING_KEYS)?).unwrap_or_default();
        Some((package.unique.as_str(), keys))
    };
    hook.packages.iter().filter_map(pending).collect()
}

/// Creates, updates and deletes the ConfigMaps of the packages.
pub(crate) fn writes(
    hook: &Hook<'_>,
    options: &Options,
    snapshot: &Snapshot<'_>,
    members: &[Member<'_>],
) -> Vec<Action> {
    let mut actions = Vec::new();
    // Changes that come together are handed on together, so that one interrupt stands for all.
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
            let why = Why::new("ConfigUnused", "no package of this version is left in the spec");
            actions.push(Action::delete(Verb::Delete, map, Propagation::Background, why));
        }
    }
    actions
}

fn config_map<'w>(
    hook: &Hook<'_>,
    options: &Options,
    snapshot: &Snapshot<'w>,
    package: &Package<'_>,
) -> Option<&'w Object> {
    let name = package_config_map(hook.name(), &package.name, &package.version);
    snapshot.find(&CONFIG_MAP, &options.namespace, &name)
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
    let why = Why::new("ConfigNeeded", format!("package {} has files", package.unique));
    Action::create(Verb::Create, key, body, why)
}

/// The next step of handing a change on, if any.
fn update(
    hook: &Hook<'_>,
    package: &Package<'_>,
    map: &Object,
    members: &[Member<'_>],
) -> Option<Action> {
    if let Some(pending) = map.annotation(PENDING_KEYS) {
        let keys: Vec<String> = serde_json::from_str(pending).unwrap_or_default();
        // What the nodes carry, not what this step makes of it: the writes come first.
        let handed_on = keys == package.updated
            && members.iter().all(|member| is_marked(hook, package, member));
        let patch = json!({"metadata": {"annotations": {PENDING_KEYS: null}}});
        let why = Why::new("ConfigHandedOn", "every node knows of the change");
        return handed_on.then(|| Action::patch(Verb::Record, map, patch, why));
    }
    let stored = map.raw().get("data").and_then(Value::as_object);
    let changed = changed_keys(package, map);
    let gone = stored.into_iter().flatten().filter(|(key, _)| !package.config.contains_key(*key));
    let mut data: Map<String, Value> = gone.map(|(key, _)| (key.clone(), Value::Null)).collect();
    data.extend(changed.iter().map(|key| ((*key).clone(), json!(package.config[*key]))));
    if data.is_empty() {
        return None;
    }
    let mut patch = json!({"data": data});
    if !changed.is_empty() {
        let keys = accepted(package, &changed, members)?;
        let keys = serde_json::to_string(&keys).expect("strings always serialise");
        patch["metadata"]["annotations"][PENDING_KEYS] = json!(keys);
    }
    let why = Why::new("ConfigChanged", format!("{} keys changed", changed.len()));
    Some(Action::patch(Verb::Record, map, patch, why).concurrently())
}

/// The keys whose text is another than the ConfigMap has.
fn changed_keys<'k>(package: &'k Package<'_>, map: &Object) -> Vec<&'k String> {
    let stored = map.raw().get("data");
    let stored_text = |key: &str| stored.and_then(|stored| stored.get(key)?.as_str());
    let changed = package.config.iter().filter(|(key, value)| stored_text(key) != Some(value));
    changed.map(|(key, _)| key).collect()
}

/// Whether a change waits to be handed on, of which no node knows yet.
pub(crate) fn is_due(hook: &Hook<'_>, options: &Options, snapshot: &Snapshot<'_>) -> bool {
    hook.packages.iter().any(|package| {
        let map = config_map(hook, options, snapshot, package);
        map.is_some_and(|map| !changed_keys(package, map).is_empty())
    })
}

/// The keys that count as changed once this change is taken up; none while it has to wait.
///
/// With the package complete everywhere, earlier changes are over and only these count. With
/// a node failing on its config, the change may be the cure and is added to them.
fn accepted(
    package: &Package<'_>,
    changed: &[&String],
    members: &[Member<'_>],
) -> Option<Vec<String>> {
    let fresh: Vec<String> = changed.iter().map(|key| (*key).clone()).collect();
    if is_complete(package, members) && !has_pods(package, members) {
        return Some(fresh);
    }
    let fails = |member: &Member<'_>| {
        member.assessed.state.get(&package.unique).is_some_and(|entry| {
            entry.state == PackageState::Erroring && CONFIGURED.contains(&entry.stage)
        })
    };
    members.iter().any(fails).then(|| {
        let mut keys = fresh;
        keys.extend(package.updated.iter().cloned());
        keys.sort_unstable();
        keys.dedup();
        keys
    })
}

fn is_complete(package: &Package<'_>, members: &[Member<'_>]) -> bool {
    members.iter().all(|member| is_package_complete(package, &member.assessed.state))
}

fn has_pods(package: &Package<'_>, members: &[Member<'_>]) -> bool {
    let seen = members.iter().filter_map(|member| member.seen.as_ref());
    seen.flat_map(|seen| &seen.live).any(|live| live.tag.unique() == package.unique)
}

/// Whether a package is complete everywhere, and only its last pods are still to go.
fn is_leaving(package: &Package<'_>, members: &[Member<'_>]) -> bool {
    is_complete(package, members) && has_pods(package, members)
}

/// Whether the node's own annotation already shows that the package starts over.
fn is_marked(hook: &Hook<'_>, package: &Package<'_>, member: &Member<'_>) -> bool {
    let at_work = member.seen.as_ref().is_some_and(|seen| {
        let mut live = seen.live.iter().filter(|live| live.tag.unique() == package.unique);
        live.any(|live| {
            live.tag.depends_on_config() && !live.tag.invalid && !live.pod.is_deleting()
        })
    });
    if at_work {
        return false;
    }
    let text = member.node.annotation(&hook.keys.node_state);
    let Some(Ok(state)) = text.map(NodeState::parse) else { return true };
    state.get(&package.unique).is_none_or(|entry| {
        let settled = matches!(entry.state, PackageState::Complete | PackageState::Erroring);
        !(settled && CONFIGURED.contains(&entry.stage))
    })
}

fn is_left_over(hook: &Hook<'_>, options: &Options, map: &Object) -> bool {
    let ours = map.label(NAME) == Some(hook.name()) && *map.namespace() == options.namespace;
    let wanted = |package: &Package<'_>| {
        *map.name() == package_config_map(hook.name(), &package.name, &package.version)
    };
    ours && !map.is_deleting() && !hook.packages.iter().any(wanted)
}
