//! A Skyhook that is being deleted: cordons and taints are removed from nodes, then the finalizer.
//! Packages stay installed, and annotations stay on nodes, as the API says.

use convoy_api::Object;
use convoy_api::kinds::NODE;

use crate::dialect::skyhook::names::{FINALIZER, auto_taint};
use crate::dialect::skyhook::read::hook::Hook;
use crate::dialect::skyhook::read::node::has_taint;
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::write::node::NodePatch;
use crate::finalizer;
use crate::snapshot::Snapshot;
use crate::step::{Action, Step, Verb, Verdict, Why};

pub(crate) fn step(
    hook: &Hook<'_>,
    others: &[Hook<'_>],
    options: &Options,
    snapshot: &Snapshot<'_>,
    mut step: Step,
) -> Step {
    if !hook.object.has_finalizer(FINALIZER) {
        step.verdict = Verdict::Done;
        return step;
    }
    for node in snapshot.of(&NODE).iter().copied() {
        step.actions.extend(undo(hook, others, options, node));
    }
    let why =
        Why::new("Undone", "cordons and taints are removed from all nodes: remove the finalizer");
    step.actions.extend(finalizer::removed(hook.object, &[FINALIZER], why));
    step.verdict = Verdict::Moving;
    step
}

/// Lifts our cordon, and takes off a taint of ours that nobody waits for any more.
fn undo(hook: &Hook<'_>, others: &[Hook<'_>], options: &Options, node: &Object) -> Option<Action> {
    let mut write = NodePatch::new(node);
    write.uncordon(&hook.keys);
    let taint = &options.runtime_taint;
    let marked = node.annotation(&auto_taint(&taint.key)).is_some();
    let wanted =
        others.iter().any(|other| other.runtime_required() && other.selector.matches(node));
    let targeted = hook.runtime_required() && hook.selector.matches(node);
    if targeted && marked && !wanted && has_taint(node, taint) {
        write.untaint(taint);
    }
    let why = Why::new(
        "SkyhookDeleted",
        format!("Skyhook {} is being deleted: lift its cordon", hook.name()),
    );
    write.action(Verb::Uncordon, why)
}
