//! Which stage a package is at and what comes next; when a package, and a node, is complete.

use std::collections::BTreeSet;

use convoy_api::skyhook::{PackageState, Stage};

use crate::dialect::skyhook::read::hook::{Hook, Package};
use crate::dialect::skyhook::read::state::{Entry, NodeState};
use crate::text::version::is_downgrade;

/// Whether a package is all done on a node.
pub(crate) fn is_package_complete(package: &Package<'_>, state: &NodeState) -> bool {
    let last = if package.has_interrupt() { Stage::PostInterrupt } else { Stage::Config };
    state.get(&package.unique).is_some_and(|entry| entry.is(last, PackageState::Complete))
}

/// Whether a node has every package of the Skyhook, and nothing left to uninstall.
pub(crate) fn is_node_complete(hook: &Hook<'_>, state: &NodeState) -> bool {
    hook.packages.iter().all(|package| is_package_complete(package, state))
        && !state.values().any(|entry| entry.stage == Stage::Uninstall || leaves(hook, entry))
}

/// Whether the package of this entry has to be uninstalled: it is gone from the spec, or the
/// spec went back to an earlier version.
pub(crate) fn leaves(hook: &Hook<'_>, entry: &Entry) -> bool {
    match hook.package(&entry.name) {
        None => true,
        Some(package) => {
            package.version != entry.version && is_downgrade(&entry.version, &package.version)
        }
    }
}

/// What follows a completed stage.
///
/// | from           | no interrupt | with interrupt |
/// |----------------|--------------|----------------|
/// | uninstall      | apply        | apply          |
/// | upgrade, apply | config       | config         |
/// | config         | done         | interrupt      |
/// | interrupt      |              | post-interrupt |
/// | post-interrupt |              | done           |
pub(crate) fn next_stage(from: Stage, has_interrupt: bool) -> Option<Stage> {
    match (from, has_interrupt) {
        (Stage::Uninstall, _) => Some(Stage::Apply),
        (Stage::Config, true) => Some(Stage::Interrupt),
        (Stage::Interrupt, true) => Some(Stage::PostInterrupt),
        // An interrupt that the config no longer asks for was run already; the package starts
        // over at config, which is where it has to end.
        (Stage::Upgrade | Stage::Apply, _) | (Stage::Interrupt | Stage::PostInterrupt, false) => {
            Some(Stage::Config)
        }
        (Stage::Config, false) | (Stage::PostInterrupt, true) => None,
    }
}

/// The packages that may go on now, by name: incomplete, with every dependency complete.
pub(crate) fn runnable<'h, 'o>(hook: &'h Hook<'o>, state: &NodeState) -> Vec<&'h Package<'o>> {
    let complete: BTreeSet<&str> = hook
        .packages
        .iter()
        .filter(|package| is_package_complete(package, state))
        .map(|package| package.unique.as_str())
        .collect();
    let may_run = |package: &&Package<'_>| {
        !complete.contains(package.unique.as_str())
            && package.depends_on.iter().all(|needed| complete.contains(needed.as_str()))
    };
    hook.packages.iter().filter(may_run).collect()
}

/// What the entries of other versions ask for, now that the node is under way: a newer
/// version in the spec is upgraded to, an older one is applied after the installed one is
/// uninstalled, and a package that is gone is uninstalled.
pub(crate) fn change_versions(hook: &Hook<'_>, state: &mut NodeState) {
    let others: Vec<Entry> = state
        .values()
        .filter(|entry| {
            hook.package(&entry.name).is_none_or(|package| package.version != entry.version)
        })
        .cloned()
        .collect();
    for old in others {
        let uninstall = leaves(hook, &old);
        if uninstall && old.stage != Stage::Uninstall {
            let mut leaving = old.clone();
            (leaving.stage, leaving.state) = (Stage::Uninstall, PackageState::InProgress);
            leaving.restarts = 0;
            state.put(leaving);
        }
        let Some(package) = hook.package(&old.name) else { continue };
        if uninstall {
            state.put(package.entry(Stage::Uninstall, PackageState::Skipped));
        } else if state.get(&package.unique).is_none() {
            state.put(package.entry(Stage::Upgrade, PackageState::InProgress));
        }
    }
}

#[cfg(test)]
mod tests;
