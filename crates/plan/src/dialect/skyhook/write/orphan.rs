//! Records the result of a package pod whose Skyhook does not exist.

use convoy_api::Object;
use convoy_api::kinds::NODE;
use convoy_api::skyhook::{PackageState, StatusWord};

use crate::dialect::skyhook::decide::orphan::Recorded;
use crate::dialect::skyhook::names::Keys;
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::read::pod::PackageTag;
use crate::dialect::skyhook::write::node::NodePatch;
use crate::pods::node_of;
use crate::snapshot::Snapshot;
use crate::step::{Action, Event, EventType, Propagation, Step, Verb, Verdict, Why};

/// The step of such a pod.
pub(crate) fn step(
    pod: &Object,
    options: &Options,
    snapshot: &Snapshot<'_>,
    mut step: Step,
) -> Step {
    let node = node_of(pod).and_then(|name| snapshot.find(&NODE, "", name));
    let recorded = node.zip(PackageTag::of(pod)).and_then(|(node, tag)| {
        let recorded = Recorded::of(pod, &tag, node)?;
        Some((node, tag, recorded))
    });
    let Some((node, tag, recorded)) = recorded else { return step };
    let keys = Keys::of(&tag.skyhook);
    let mut write = NodePatch::new(node);
    write.node_state(&keys, &recorded.state.text());
    if recorded.result == PackageState::Erroring {
        write.word(&keys, StatusWord::Erroring, &options.version);
    }
    let why =
        Why::new("ResultOfPod", format!("record the result of a pod of Skyhook {}", tag.skyhook));
    step.actions.extend(write.action(Verb::Record, why));
    if recorded.result == PackageState::Complete {
        let why = Why::new("StageRecorded", "its result is recorded");
        step.actions.push(Action::delete(Verb::Delete, pod, Propagation::Background, why));
    }
    let message = package_result(&tag.skyhook, &tag.name, &tag.version, recorded.result);
    step.events.push(Event::new(node.key(), EventType::Normal, "Apply", message));
    step.verdict = Verdict::Moving;
    step
}

/// That a stage of a package ended.
pub(crate) fn package_result(
    skyhook: &str,
    name: &str,
    version: &str,
    state: PackageState,
) -> String {
    let word = if state == PackageState::Complete { "complete" } else { "erroring" };
    format!("Package [{name}:{version}] state {word} on [skyhook:{skyhook}]")
}
