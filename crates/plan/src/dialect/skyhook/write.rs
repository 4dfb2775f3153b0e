//! The actions of a decision, in the order in which they are marks out: slots are released
//! on record before they are taken, they are taken on record before anything is disturbed,
//! and on each node the record of a stage comes before the pod that runs it. If the order does
//! not matter, writes of one sort stand together: these can be sent at once.

mod config_map;
pub(crate) mod deletion;
pub(crate) mod intervention;
pub mod manual;
pub mod migrate;
pub(crate) mod node;
mod node_metadata;
pub(crate) mod orphan;
mod outdated;
pub(crate) mod permissions;
pub(crate) mod pod;

use convoy_api::Object;
use convoy_api::kinds::{CONFIG_MAP, NODE};
use convoy_api::skyhook::{PackageState, Stage, StatusWord};
use serde_json::{Value, json};

use self::node::{NodePatch, conditions};
use self::outdated::is_outdated;
use self::pod::PodBuilder;
use crate::condition::instant;
use crate::count;
use crate::dialect::skyhook::decide::Decision;
use crate::dialect::skyhook::decide::advance::{NewPod, NodePlan};
use crate::dialect::skyhook::decide::assess::Assessor;
use crate::dialect::skyhook::decide::compartment::Compartment;
use crate::dialect::skyhook::decide::member::Member;
use crate::dialect::skyhook::names::{FINALIZER, PACKAGE, VERSION};
use crate::dialect::skyhook::read::hook::{Package, Runtime};
use crate::dialect::skyhook::read::node::{has_taint, is_new, word_text};
use crate::dialect::skyhook::read::pod::PackageTag;
use crate::dialect::skyhook::read::state::stage_word;
use crate::finalizer;
use crate::merge_patch;
use crate::step::{Action, Propagation, Verb, Why, Write};

/// How much bookkeeping one step does. A fleet that is seen for the first time, or paused,
/// has a word to be written on every node; that comes in pieces, so that a step stays short
/// and what matters is never behind it.
const RECORDS_MAX: usize = 256;

/// Actions by what they do to slots.
#[derive(Debug, Default)]
struct Phases {
    /// This instant, as Kubernetes writes it.
    now: Value,
    released: Vec<Action>,
    moved: Vec<Action>,
    started: Vec<Action>,
    records: Vec<Action>,
}

/// The pods that packages should have at their stages, each built once however many run: what a
/// pod is compared with does not depend on its node.
#[derive(Debug, Default)]
struct ExpectedPods<'p> {
    pods: Vec<(&'p str, Stage, Value)>,
}

impl<'p> ExpectedPods<'p> {
    fn pod(&mut self, builder: &PodBuilder<'_>, package: &'p Package<'_>, stage: Stage) -> &Value {
        let is_it = |(name, at, _): &(&str, Stage, Value)| *name == package.name && *at == stage;
        let place = self.pods.iter().position(is_it).unwrap_or_else(|| {
            self.pods.push((&package.name, stage, builder.stage_pod(package, stage).1));
            self.pods.len() - 1
        });
        &self.pods[place].2
    }
}

/// All writes but that of the step's own status. `reservation` records the picked nodes: after
/// slots are released, before any is taken.
pub(crate) fn actions(decision: &Decision<'_, '_>, reservation: Option<Action>) -> Vec<Action> {
    let mut actions: Vec<Action> =
        adopt(decision.hook.object, decision.options.version.as_str()).into_iter().collect();
    if decision.is_active() {
        actions.extend(config_map::actions(
            decision.hook,
            decision.options,
            decision.snapshot,
            &decision.members,
        ));
    }
    let (mut phases, mut expected) =
        (Phases { now: instant(decision.now), ..Phases::default() }, ExpectedPods::default());
    for index in 0..decision.members.len() {
        node(decision, index, &mut phases, &mut expected);
    }
    phases.records.extend(uncordon_untargeted(decision));
    let nodes = decision.members.iter().map(|member| member.node.name());
    phases.records.extend(node_metadata::forget(
        decision.hook,
        decision.options,
        decision.snapshot,
        nodes,
    ));
    phases.records.truncate(RECORDS_MAX);
    actions.extend(sorted(phases.released));
    actions.extend(reservation);
    actions.extend(sorted(phases.moved));
    actions.extend(sorted(phases.started));
    actions.extend(sorted(phases.records));
    // Evictions may be refused, which ends a step: nothing else has to wait for that.
    let (evictions, mut actions): (Vec<Action>, Vec<Action>) =
        actions.into_iter().partition(|action| matches!(action.write, Write::Evict { .. }));
    actions.extend(evictions);
    actions
}

/// Puts on record which nodes were picked, and how the last batch went, before any starts.
pub(crate) fn reservation(skyhook: &Object, status: &Value, starting: u32) -> Action {
    let changes = merge_patch::between(skyhook.status(), status);
    let patch = merge_patch::nested(&["status"], changes.unwrap_or_default());
    let message = format!("reserve the slots of {} that start now", nodes(starting));
    Action::patch_status(Verb::Record, skyhook, patch, Why::new("Reserved", message))
}

fn nodes(count: u32) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

/// Patches of nodes go first, then ConfigMaps, then new pods, then deletions, then node
/// conditions; by verb, then by node within each.
fn sorted(mut phase: Vec<Action>) -> Vec<Action> {
    let rank = |action: &Action| match &action.write {
        Write::Patch { subresource: None, .. } if action.target.kind == NODE => 0,
        Write::Patch { .. } if action.target.kind == NODE => 4,
        Write::Create { .. } | Write::Patch { .. } if action.target.kind == CONFIG_MAP => 1,
        Write::Create { .. } => 2,
        Write::Patch { .. } | Write::Apply { .. } | Write::Delete { .. } | Write::Evict { .. } => 3,
    };
    phase.sort_by_key(|action| (rank(action), action.verb));
    phase
}

/// Adds the finalizer, so that the Skyhook is not gone before its cordons are.
fn adopt(skyhook: &Object, version: &str) -> Option<Action> {
    let mut metadata = serde_json::Map::new();
    if let Some(finalizers) = finalizer::with(skyhook, &[FINALIZER]) {
        metadata.insert("finalizers".to_owned(), finalizers);
    }
    if skyhook.annotation(VERSION) != Some(version) {
        metadata.insert("annotations".to_owned(), json!({VERSION: version}));
    }
    if metadata.is_empty() {
        return None;
    }
    let why = Why::new(
        "Adopted",
        "add a finalizer, so that cordons are lifted before the Skyhook is gone",
    );
    Some(Action::patch(Verb::Record, skyhook, json!({"metadata": metadata}), why))
}

/// The writes of one node.
fn node<'p>(
    decision: &'p Decision<'_, '_>,
    index: usize,
    phases: &mut Phases,
    expected: &mut ExpectedPods<'p>,
) {
    let member = &decision.members[index];
    let plan = decision.plan(index);
    let word = decision.word_after(index);
    if needs_write(decision, member, plan, word) {
        write_node(decision, index, word, phases, expected);
    }
    if phases.records.len() < RECORDS_MAX && !member.rebooted {
        let erroring = member
            .assessed
            .state
            .values()
            .any(|entry| matches!(entry.state, PackageState::Erroring | PackageState::Unknown));
        let standing = (member.is_complete(), erroring);
        let (name, keys) = (decision.hook.name(), &decision.hook.keys);
        phases.records.extend(conditions(member.node, name, keys, standing, &phases.now));
    }
}

/// Whether anything about a node may have to be written, told cheaply: for most nodes of a large
/// fleet nothing has.
fn needs_write(
    decision: &Decision<'_, '_>,
    member: &Member<'_>,
    plan: Option<&NodePlan<'_>>,
    word: StatusWord,
) -> bool {
    plan.is_some()
        || member.seen.is_some()
        || member.rebooted
        || member.assessed.migrated
        || decision.hook.runtime_required()
        || !member.marks.says(word)
        || member.is_complete() && member.marks.is_cordoned
        || decision.options.reapply_on_reboot
}

/// The patch of one node, and what is done to its pods.
fn write_node<'p>(
    decision: &'p Decision<'_, '_>,
    index: usize,
    word: StatusWord,
    phases: &mut Phases,
    expected: &mut ExpectedPods<'p>,
) {
    let member = &decision.members[index];
    let plan = decision.plan(index);
    let mut write = NodePatch::new(member.node);
    if member.rebooted {
        write.forget(&decision.hook.keys);
        write.boot_id(&decision.hook.keys);
        let why = Why::new(
            "Rebooted",
            "the node rebooted: reset it, so that its packages are applied again",
        );
        phases.released.extend(write.action(Verb::Record, why));
        return;
    }
    let started = decision.is_started(index);
    let released =
        matches!(word, StatusWord::Complete | StatusWord::Erroring | StatusWord::Blocked)
            && member.observed != Some(word);
    let moved = plan.is_some() || member.seen.is_some();
    if !started && !released && !moved && phases.records.len() >= RECORDS_MAX {
        return; // bookkeeping alone, and there is enough of it for one step
    }
    let taints = runtime_taint(decision, member, &mut write);
    write.word(&decision.hook.keys, word, &decision.options.version);
    if let Some(mark) = decision.mark_after(index) {
        write.mark(&decision.hook.keys, &mark);
    }
    if decision.options.reapply_on_reboot {
        write.boot_id(&decision.hook.keys);
    }
    if moved || member.assessed.migrated {
        let state = plan.map_or(&member.assessed.state, |plan| &plan.state);
        if member.assessed.unreadable.is_none() {
            write.node_state(&decision.hook.keys, &state.text());
        }
    }
    if member.is_complete() {
        write.uncordon(&decision.hook.keys);
    } else if plan.is_some_and(|plan| plan.cordon) {
        write.cordon(&decision.hook.keys);
    }
    let phase = match (started, released, moved) {
        (true, ..) => &mut phases.started,
        (_, true, _) => &mut phases.released,
        (_, _, true) => &mut phases.moved,
        _ => &mut phases.records,
    };
    if !write.is_empty() {
        let (verb, why) = meaning(decision, index, taints);
        phase.extend(write.action(verb, why));
    }
    if let Some(plan) = plan {
        phase.extend(disturbances(decision, member, plan));
    }
    phase.extend(clean_up(decision, index, member, expected));
}

/// The verb of a node patch, and why it is made.
fn meaning(decision: &Decision<'_, '_>, index: usize, taints: Option<Verb>) -> (Verb, Why) {
    let member = &decision.members[index];
    let plan = decision.plan(index);
    if let (Some(permit), Some(compartment)) = (member.starts, decision.compartment_of(index)) {
        let (batch, size) = (compartment.batch.current_batch, count(compartment.starts.len()));
        let name = &compartment.spec.name;
        let message = format!("batch {batch} of compartment {name} starts {}", nodes(size));
        return match member.word() {
            StatusWord::Erroring => (Verb::Retry(permit), Why::new("Retried", message)),
            _ => (Verb::Start(permit), Why::new("Started", message)),
        };
    }
    if member.is_complete() && member.node.annotation(&decision.hook.keys.cordon).is_some() {
        return (
            Verb::Uncordon,
            Why::new("NodeComplete", "every package is complete: lift the cordon"),
        );
    }
    if plan.is_some_and(|plan| plan.cordon) {
        return (Verb::Cordon, Why::new("InterruptAhead", "cordon the node before an interrupt"));
    }
    if let Some(verb) = taints {
        return (
            verb,
            Why::new(
                "RuntimeRequired",
                "workloads stay off the node until this Skyhook is complete",
            ),
        );
    }
    if plan.is_some() {
        return (Verb::Advance, Why::new("NextStage", "record the next stage of the packages"));
    }
    let word = word_text(decision.word_after(index));
    (Verb::Record, Why::new("StatusRecorded", format!("record status {word}")))
}

/// Adds the taint that keeps workloads off to nodes never seen before, and removes it once
/// every Skyhook that they require is complete on the node.
fn runtime_taint(
    decision: &Decision<'_, '_>,
    member: &Member<'_>,
    write: &mut NodePatch<'_>,
) -> Option<Verb> {
    let taint = &decision.options.runtime_taint;
    if !decision.hook.runtime_required() || decision.hook.disabled {
        return None;
    }
    let tainted = has_taint(member.node, taint);
    if tainted && member.is_complete() && others_are_complete(decision, member) {
        write.untaint(taint);
        return Some(Verb::Untaint);
    }
    let wanted = decision.hook.runtime == Runtime::RequiredOfNewNodes;
    if wanted && !tainted && !member.is_complete() && is_new(member.node) {
        write.taint(taint);
        return Some(Verb::Taint);
    }
    None
}

fn others_are_complete(decision: &Decision<'_, '_>, member: &Member<'_>) -> bool {
    let node = member.node;
    decision.others.iter().filter(|other| other.runtime_required()).all(|other| {
        let mut assessor = Assessor::new(other);
        !other.selector.matches(node)
            || assessor.read(node.annotation(&other.keys.node_state)).complete
    })
}

/// Pods made and evicted on a node that holds a slot.
fn disturbances(
    decision: &Decision<'_, '_>,
    member: &Member<'_>,
    plan: &NodePlan<'_>,
) -> Vec<Action> {
    let mut actions = Vec::new();
    if !plan.pods.is_empty() {
        actions.extend(node_metadata::ensure(
            decision.hook,
            decision.options,
            decision.snapshot,
            member.node,
        ));
    }
    for pod in &plan.pods {
        actions.push(create(decision, member, pod));
    }
    for pod in &plan.evictions {
        let why = Why::new(
            "Draining",
            format!("drain the node for the interrupt of package {}", plan.drained_for),
        );
        actions.push(Action::evict(pod, None, why));
    }
    actions
}

fn create(decision: &Decision<'_, '_>, member: &Member<'_>, pod: &NewPod) -> Action {
    let builder = PodBuilder { hook: decision.hook, options: decision.options, node: member.node };
    let entry = &pod.entry;
    let known = decision.hook.package(&entry.name).filter(|_| entry.stage != Stage::Uninstall);
    let package = known.cloned().unwrap_or_else(|| Package::recorded(entry));
    let (key, body) = match &pod.interrupt {
        Some(interrupt) => builder.interrupt_pod(&package, interrupt),
        None => builder.stage_pod(&package, entry.stage),
    };
    let stage = stage_word(entry.stage);
    let message = format!("run stage {stage} of package {}", entry.unique());
    Action::create(Verb::Create, key, body, Why::new("NextStage", message))
}

/// Removes pods that have done their part, stand for nothing, or are no longer what the spec
/// asks for. The last are marked first, so that what they still report does not count.
fn clean_up<'p>(
    decision: &'p Decision<'_, '_>,
    index: usize,
    member: &Member<'_>,
    expected: &mut ExpectedPods<'p>,
) -> Vec<Action> {
    let Some(seen) = &member.seen else { return Vec::new() };
    let delete = |pod: &Object, reason, message: &str| {
        Action::delete(Verb::Delete, pod, Propagation::Background, Why::new(reason, message))
    };
    let mut actions: Vec<Action> = Vec::new();
    actions
        .extend(seen.done.iter().map(|pod| delete(pod, "StageRecorded", "its result is recorded")));
    let present = |pod: &&&Object| !pod.is_deleting();
    let strays = seen.strays.iter().filter(present);
    actions.extend(
        strays.map(|pod| delete(pod, "Stray", "the node is not at the stage that the pod runs")),
    );
    if !decision.is_active() {
        return actions;
    }
    let stopped = decision.compartment_of(index).is_none_or(Compartment::is_stopped);
    for live in seen.live.iter().filter(|live| !live.pod.is_deleting()) {
        if live.tag.invalid {
            actions.push(delete(live.pod, "Outdated", "the pod no longer matches the spec"));
        } else if reads_old_config(decision, &live.tag)
            || !stopped && outdated(decision, member, &live.tag, live.pod, expected)
        {
            let tag = PackageTag { invalid: true, ..live.tag.clone() };
            let tag = serde_json::to_string(&tag).expect("strings always serialise");
            let patch = json!({"metadata": {"annotations": {PACKAGE: tag}}});
            let why = Why::new("Outdated", "the pod no longer matches the spec");
            actions.push(Action::patch(Verb::Record, live.pod, patch, why));
        }
    }
    actions
}

/// Whether a pod works with files that are being replaced. A change reaches all nodes
/// together, so such a pod is deleted even if failures stopped the compartment: the other nodes
/// would wait for it for ever.
fn reads_old_config(decision: &Decision<'_, '_>, tag: &PackageTag) -> bool {
    tag.depends_on_config() && decision.changing.contains_key(tag.unique().as_str())
}

fn outdated<'p>(
    decision: &'p Decision<'_, '_>,
    member: &Member<'_>,
    tag: &PackageTag,
    pod: &Object,
    expected: &mut ExpectedPods<'p>,
) -> bool {
    if tag.stage == Stage::Uninstall {
        return false;
    }
    let package = decision.hook.package(&tag.name).filter(|package| package.version == tag.version);
    let Some(package) = package else { return true };
    if tag.stage == Stage::Interrupt {
        return false; // the interrupt is under way
    }
    let builder = PodBuilder { hook: decision.hook, options: decision.options, node: member.node };
    is_outdated(pod, expected.pod(&builder, package, tag.stage))
}

/// Lifts our cordon from nodes that the Skyhook no longer targets.
fn uncordon_untargeted(decision: &Decision<'_, '_>) -> Vec<Action> {
    let keys = &decision.hook.keys;
    let lifted = |node: &&Object| {
        let mut write = NodePatch::new(node);
        write.uncordon(keys);
        let why =
            Why::new("NoLongerTargeted", "the Skyhook no longer selects the node: lift the cordon");
        write.action(Verb::Uncordon, why)
    };
    decision.untargeted.iter().filter_map(lifted).collect()
}
