//! Pod results folded into a node's state. What a pod reports counts only for the very
//! package, version and stage that the node is at; everything else is a stray.

use convoy_api::Object;
use convoy_api::skyhook::{PackageState, Stage};

use crate::dialect::skyhook::read::hook::{Hook, Package};
use crate::dialect::skyhook::read::pod::{PackageTag, PodResult, pod_result};
use crate::dialect::skyhook::read::state::{Entry, NodeState};

/// What the package pods of one node say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation<'w> {
    /// Pods that stand for what the node is at, leaving ones included.
    pub(crate) live: Vec<Live<'w>>,
    /// Pods whose result is recorded: they can go.
    pub(crate) done: Vec<&'w Object>,
    /// Pods that stand for nothing the node is at.
    pub(crate) strays: Vec<&'w Object>,
    /// Packages whose stage ended, as `(name, version, state)`.
    pub(crate) results: Vec<(String, String, PackageState)>,
}

/// A pod at work.
#[derive(Clone, Debug)]
pub(crate) struct Live<'w> {
    pub(crate) pod: &'w Object,
    pub(crate) tag: PackageTag,
}

impl<'w> Observation<'w> {
    /// The pod at work on a package's stage.
    pub(crate) fn pod_for(&self, unique: &str, stage: Stage) -> Option<&Live<'w>> {
        self.live.iter().find(|live| live.tag.stage == stage && live.tag.unique() == unique)
    }

    /// Whether any pod is at work and may still end well.
    pub(crate) fn is_at_work(&self) -> bool {
        self.live.iter().any(|live| !live.pod.is_deleting() && !live.tag.invalid)
    }
}

/// Folds what `pods` report into `state`.
pub(crate) fn observe<'w>(
    hook: &Hook<'_>,
    state: &mut NodeState,
    pods: &[&'w Object],
) -> Observation<'w> {
    let mut seen = Observation::default();
    for pod in pods.iter().copied() {
        let Some(tag) = PackageTag::of(pod) else {
            seen.strays.push(pod);
            continue;
        };
        let unique = tag.unique();
        let entry = state.get(&unique).filter(|entry| entry.stage == tag.stage).cloned();
        let Some(entry) = entry else {
            seen.strays.push(pod);
            continue;
        };
        if pod.is_deleting() || tag.invalid {
            // Its result was recorded before it was deleted, or no longer counts.
            seen.live.push(Live { pod, tag });
            continue;
        }
        match pod_result(pod, tag.stage) {
            _ if entry.state == PackageState::Complete => seen.done.push(pod),
            PodResult::Complete => {
                seen.results.push((tag.name, tag.version, PackageState::Complete));
                seen.done.push(pod);
                let package = hook.package(&entry.name);
                complete(state, entry, package);
            }
            PodResult::Failed { restarts } => {
                if entry.state != PackageState::Erroring {
                    let result = (tag.name.clone(), tag.version.clone(), PackageState::Erroring);
                    seen.results.push(result);
                }
                state.put(Entry { state: PackageState::Erroring, restarts, ..entry });
                seen.live.push(Live { pod, tag });
            }
            PodResult::Running => seen.live.push(Live { pod, tag }),
        }
    }
    seen
}

/// Records that the stage of `entry` succeeded, with what follows from it for others. `package`
/// is what the spec asks for under that name, if anything.
pub(crate) fn complete(state: &mut NodeState, entry: Entry, package: Option<&Package<'_>>) {
    match entry.stage {
        // One interrupt stood for several.
        Stage::Interrupt => {
            for other in state.entries.values_mut() {
                if other.is(Stage::Interrupt, PackageState::Skipped) {
                    other.state = PackageState::Complete;
                }
            }
        }
        Stage::Upgrade => {
            let (name, version) = (&entry.name, &entry.version);
            state.entries.retain(|_, other| other.name != *name || other.version == *version);
        }
        Stage::Uninstall => {
            state.entries.remove(&entry.unique());
            if let Some(package) = package.filter(|package| package.version != entry.version) {
                state.put(package.entry(Stage::Uninstall, PackageState::Complete));
            }
            return;
        }
        Stage::Apply | Stage::Config | Stage::PostInterrupt => {}
    }
    state.put(Entry { state: PackageState::Complete, ..entry });
}
