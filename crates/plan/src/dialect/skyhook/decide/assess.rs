//! What a node's own annotation says about its packages, read once per distinct text: nodes
//! at the same stage carry the same text, so a large fleet costs a few readings.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoy_api::skyhook::{PackageState, Stage};

use crate::dialect::skyhook::decide::lifecycle::is_node_complete;
use crate::dialect::skyhook::names::unique;
use crate::dialect::skyhook::read::hook::Hook;
use crate::dialect::skyhook::read::state::{Entry, NodeState};

/// A node's packages, as far as one Skyhook is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assessment {
    pub(crate) state: NodeState,
    pub(crate) complete: bool,
    /// The package that fails, e.g. `driver|1.2.3 at apply after 3 restarts`.
    pub(crate) failure: Option<String>,
    /// Something fails or failed, but of another version than the spec's: no evidence about
    /// this revision.
    pub(crate) stale_failure: bool,
    /// It was written by an early operator and reads otherwise now.
    pub(crate) migrated: bool,
    /// Why the annotation cannot be read. Nothing is known then, and nothing is done.
    pub(crate) unreadable: Option<String>,
}

impl Assessment {
    pub(crate) fn of(hook: &Hook<'_>, state: NodeState) -> Self {
        let of_this_revision = |entry: &&Entry| {
            entry.stage == Stage::Uninstall
                || hook.package(&entry.name).is_some_and(|now| now.version == entry.version)
        };
        let erroring = || state.values().filter(|entry| entry.state == PackageState::Erroring);
        let failure = erroring().find(of_this_revision).map(|entry| {
            let stage = crate::dialect::skyhook::read::state::stage_word(entry.stage);
            let plural = if entry.restarts == 1 { "" } else { "s" };
            format!("{} at {stage} after {} restart{plural}", entry.unique(), entry.restarts)
        });
        let stale_failure = failure.is_none() && erroring().next().is_some();
        let complete = is_node_complete(hook, &state);
        Self { complete, failure, stale_failure, migrated: false, unreadable: None, state }
    }
}

/// Reads the annotations of one Skyhook.
#[derive(Debug)]
pub(crate) struct Assessor<'h, 'o> {
    hook: &'h Hook<'o>,
    absent: Arc<Assessment>,
    known: BTreeMap<&'h str, Arc<Assessment>>,
}

impl<'h, 'o> Assessor<'h, 'o> {
    pub(crate) fn new(hook: &'h Hook<'o>) -> Self {
        let absent = Arc::new(Assessment::of(hook, NodeState::default()));
        Self { hook, absent, known: BTreeMap::new() }
    }

    /// What the annotation's text says; absent means that nothing was begun.
    pub(crate) fn read(&mut self, text: Option<&'h str>) -> Arc<Assessment> {
        let Some(text) = text else { return Arc::clone(&self.absent) };
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        let assessment = Arc::new(match NodeState::parse(text) {
            Ok(state) if state.entries.keys().all(|key| key.contains('|')) => {
                Assessment::of(self.hook, state)
            }
            Ok(old) => {
                let state = migrated(self.hook, old);
                Assessment { migrated: true, ..Assessment::of(self.hook, state) }
            }
            Err(error) => {
                let unreadable = Some(format!(
                    "annotation {} cannot be read: {error}; correct or remove it",
                    self.hook.keys.node_state
                ));
                Assessment { unreadable, ..Assessment::default() }
            }
        });
        self.known.insert(text, Arc::clone(&assessment));
        assessment
    }
}

/// Operators before 0.5 wrote keys without a version. Such entries count only if the spec has
/// that package at that version.
fn migrated(hook: &Hook<'_>, state: NodeState) -> NodeState {
    let renamed = state.entries.into_iter().filter_map(|(key, mut entry)| {
        if !key.contains('|') {
            let package = hook.package(&entry.name)?;
            if package.version != entry.version {
                return None;
            }
            entry.image.clone_from(&package.image);
        }
        Some((unique(&entry.name, &entry.version), entry))
    });
    NodeState { entries: renamed.collect() }
}
