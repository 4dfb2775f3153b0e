//! The ConfigMap of each package, and what a change of its content means for nodes.
//!
//! A change reaches the nodes in steps that each leave a durable trace, so that it survives a
//! crash between any two writes: the ConfigMap takes the new content together with the list
//! of changed keys; then that list goes into the Skyhook's status, and nodes that have the
//! package are put back to `config`; once all are, the list is removed from the ConfigMap. While
//! it is there, the package does not run.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::kinds::CONFIG_MAP;
use convoy_api::skyhook::{PackageState, Stage};
use serde_json::{Map, Value};

use crate::dialect::skyhook::names::{PENDING_KEYS, package_config_map};
use crate::dialect::skyhook::read::hook::{Hook, Package};
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::read::state::{Entry, NodeState};
use crate::snapshot::Snapshot;

/// The stages that read a package's config, and those that follow from it.
const CONFIGURED: [Stage; 3] = [Stage::Config, Stage::Interrupt, Stage::PostInterrupt];

/// Whether a package has completed, or failed at, a stage that depends on its config, so that a
/// change has to be applied by starting over there.
pub(crate) fn has_read_config(entry: &Entry) -> bool {
    let ended = matches!(entry.state, PackageState::Complete | PackageState::Erroring);
    ended && CONFIGURED.contains(&entry.stage)
}

/// Puts every package in `changing` that is past `config`, or fails there, back to it.
pub(crate) fn mark(hook: &Hook<'_>, changing: &[&str], state: &mut NodeState) {
    let packages = hook.packages.iter();
    for package in packages.filter(|package| changing.contains(&package.unique.as_str())) {
        let Some(entry) = state.get(&package.unique) else { continue };
        if has_read_config(entry) {
            state.put(package.entry(Stage::Config, PackageState::InProgress));
        }
    }
}

/// The packages whose config change nodes are being told about, by unique name, with the keys.
pub(crate) fn changing<'h>(
    hook: &'h Hook<'_>,
    options: &Options,
    snapshot: &Snapshot<'_>,
) -> BTreeMap<&'h str, Vec<String>> {
    let pending = |package: &'h Package<'_>| {
        let map = config_map(hook, options, snapshot, package)?;
        Some((package.unique.as_str(), pending_keys(map)?))
    };
    hook.packages.iter().filter_map(pending).collect()
}

/// The changed keys that nodes are being told about.
pub(crate) fn pending_keys(map: &Object) -> Option<Vec<String>> {
    Some(serde_json::from_str(map.annotation(PENDING_KEYS)?).unwrap_or_default())
}

/// The ConfigMap of a package.
pub(crate) fn config_map<'w>(
    hook: &Hook<'_>,
    options: &Options,
    snapshot: &Snapshot<'w>,
    package: &Package<'_>,
) -> Option<&'w Object> {
    let name = package_config_map(hook.name(), &package.name, &package.version);
    snapshot.find(&CONFIG_MAP, &options.namespace, &name)
}

/// The files of a ConfigMap.
pub(crate) fn data(map: &Object) -> Option<&Map<String, Value>> {
    map.raw().get("data").and_then(Value::as_object)
}

/// The keys whose text is another than the ConfigMap has.
pub(crate) fn changed_keys<'k>(package: &'k Package<'_>, map: &Object) -> Vec<&'k String> {
    let stored = data(map);
    let stored_text = |key: &str| stored.and_then(|stored| stored.get(key)?.as_str());
    let changed = package.config.iter().filter(|(key, value)| stored_text(key) != Some(value));
    changed.map(|(key, _)| key).collect()
}

/// Whether a config changed, and nodes have not been told about it yet.
pub(crate) fn is_due(hook: &Hook<'_>, options: &Options, snapshot: &Snapshot<'_>) -> bool {
    hook.packages.iter().any(|package| {
        let map = config_map(hook, options, snapshot, package);
        map.is_some_and(|map| !changed_keys(package, map).is_empty())
    })
}
