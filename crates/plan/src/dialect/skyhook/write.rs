//! The actions of a pass, in the order in which they are carried out: slots are given back
//! on record before they are taken, they are taken on record before anything is disturbed,
//! and on each node the record of a stage comes before the pod that runs it. Where order does
//! not matter, writes of one sort stand together: these can be on their way at once.

pub(crate) mod deletion;
pub mod manual;
pub mod migrate;
pub(crate) mod node;
mod node_metadata;
mod outdated;
pub(crate) mod pod;

use convoy_api::Object;
use convoy_api::skyhook::{PackageState, Stage, StatusWord};
use serde_json::{Value, json};

use crate::condition::instant;
use crate::dialect::skyhook::decide::advance::{NewPod, Work};
use crate::dialect::skyhook::decide::compartment::Compartment;
use crate::dialect::skyhook::decide::config::{self, CONFIG_MAP};
use crate::dialect::skyhook::decide::member::Member;
use crate::dialect::skyhook::decide::{NODE, Pass};
use crate::dialect::skyhook::names::{FINALIZER, PACKAGE, VERSION};
use crate::dialect::skyhook::read::hook::{Package, Runtime};
use crate::dialect::skyhook::read::pod::Tag;
use crate::dialect::skyhook::write::node::{NodeWrite, conditions, has_taint, is_new};
use crate::dialect::skyhook::write::outdated::is_outdated;
use crate::dialect::skyhook::write::pod::{Maker, salvaged};
use crate::gate::Permit;
use crate::step::{Action, Propagation, Verb, Why, Write};

/// How much bookkeeping one step does. A fleet that is seen for the first time, or paused,
/// has a word to be written on every node; that comes in pieces, so that a step stays short
/// and what matters is never behind it.
const RECORDS_MAX: usize = 256;

/// Actions sorted by what they do to slots.
#[derive(Debug, Default)]
struct Pile {
    /// This instant, as Kubernetes writes it.
    now: Value,
    released: Vec<Action>,
    moved: Vec<Action>,
    started: Vec<Action>,
    records: Vec<Action>,
}

/// The pods that packages have at their stages, each made once however many run: what one is
/// compared with does not depend on its node.
#[derive(Debug, Default)]
struct Wanted<'p> {
    pods: Vec<(&'p str, Stage, Value)>,
}

impl<'p> Wanted<'p> {
    fn pod(&mut self, maker: &Maker<'_>, package: &'p Package<'_>, stage: Stage) -> &Value {
        let is_it = |(name, at, _): &(&str, Stage, Value)| *name == package.name && *at == stage;
        let place = self.pods.iter().position(is_it).unwrap_or_else(|| {
            self.pods.push((&package.name, stage, maker.stage_pod(package, stage).1));
            self.pods.len() - 1
        });
        &self.pods[place].2
    }
}

/// Everything that is written, the step's own status apart. `reservation` puts on record who
/// was picked: after slots are given back, before any is taken.
pub(super) fn actions(pass: &Pass<'_, '_>, reservation: Option<Action>) -> Vec<Action> {
    let mut actions: Vec<Action> =
        adopt(pass.hook.object, pass.options.version.as_str()).into_iter().collect();
    if pass.is_active() {
        actions.extend(config::writes(pass.hook, pass.options, pass.snapshot, &pass.members));
    }
    let (mut pile, mut wanted) =
        (Pile { now: instant(pass.now), ..Pile::default() }, Wanted::default());
    for index in 0..pass.members.len() {
        node(pass, index, &mut pile, &mut wanted);
    }
    pile.records.extend(let_go(pass));
    let nodes = pass.members.iter().map(|member| member.node.name());
    pile.records.extend(node_metadata::forget(pass.hook, pass.options, pass.snapshot, nodes));
    pile.records.truncate(RECORDS_MAX);
    actions.extend(sorted(pile.released));
    actions.extend(reservation);
    actions.extend(sorted(pile.moved));
    actions.extend(sorted(pile.started));
    actions.extend(sorted(pile.records));
    // Evictions may be refused, which ends a step: nothing else has to wait for that.
    let (evictions, mut actions): (Vec<Action>, Vec<Action>) =
        actions.into_iter().partition(|action| matches!(action.write, Write::Evict { .. }));
    actions.extend(evictions);
    actions
}

/// What is recorded on nodes goes first, then what packages read there, then the pods, then
/// what is over; by node within each.
fn sorted(mut shelf: Vec<Action>) -> Vec<Action> {
    let rank = |action: &Action| match &action.write {
        Write::Patch { subresource: None, .. } if action.target.kind == NODE => 0,
        Write::Patch { .. } if action.target.kind == NODE => 4,
        Write::Create { .. } | Write::Patch { .. } if action.target.kind == CONFIG_MAP => 1,
        Write::Create { .. } => 2,
        Write::Patch { .. } | Write::Delete { .. } | Write::Evict { .. } => 3,
    };
    shelf.sort_by_key(|action| (rank(action), action.verb));
    shelf
}

/// Makes sure that the Skyhook is not gone before its cordons are.
fn adopt(skyhook: &Object, version: &str) -> Option<Action> {
    let mut metadata = serde_json::Map::new();
    if !skyhook.has_finalizer(FINALIZER) {
        let finalizers = skyhook.metadata().get("finalizers").and_then(Value::as_array);
        let mut finalizers = finalizers.cloned().unwrap_or_default();
        finalizers.push(json!(FINALIZER));
        metadata.insert("finalizers".to_owned(), Value::Array(finalizers));
    }
    if skyhook.annotation(VERSION) != Some(version) {
        metadata.insert("annotations".to_owned(), json!({VERSION: version}));
    }
    if metadata.is_empty() {
        return None;
    }
    let why = Why::new("Adopted", "a finalizer keeps it until its cordons are lifted");
    Some(Action::patch(Verb::Record, skyhook, json!({"metadata": metadata}), why))
}

/// The writes of one node.
fn node<'p>(pass: &'p Pass<'_, '_>, index: usize, pile: &mut Pile, wanted: &mut Wanted<'p>) {
    let member = &pass.members[index];
    let work = pass.work(index);
    let word = pass.word_after(index);
    if is_written(pass, member, work, word) {
        written(pass, index, word, pile, wanted);
    }
    if pile.records.len() < RECORDS_MAX && !member.rebooted {
        let erroring = member
            .assessed
            .state
            .values()
            .any(|entry| matches!(entry.state, PackageState::Erroring | PackageState::Unknown));
        let standing = (member.is_complete(), erroring);
        let (name, keys) = (pass.hook.name(), &pass.hook.keys);
        pile.records.extend(conditions(member.node, name, keys, standing, &pile.now));
    }
}

/// Whether anything about a node may have to be written, as far as what is known of it tells.
/// Of most nodes of a large fleet nothing has.
fn is_written(
    pass: &Pass<'_, '_>,
    member: &Member<'_>,
    work: Option<&Work<'_>>,
    word: StatusWord,
) -> bool {
    work.is_some()
        || member.seen.is_some()
        || member.rebooted
        || member.assessed.migrated
        || pass.hook.runtime_required()
        || !member.carried.says(word)
        || member.is_complete() && member.carried.is_cordoned
        || pass.options.reapply_on_reboot
}

/// The patch of one node, and what is done to its pods.
fn written<'p>(
    pass: &'p Pass<'_, '_>,
    index: usize,
    word: StatusWord,
    pile: &mut Pile,
    wanted: &mut Wanted<'p>,
) {
    let member = &pass.members[index];
    let work = pass.work(index);
    let mut write = NodeWrite::new(member.node);
    if member.rebooted {
        write.forget(&pass.hook.keys);
        write.boot_id(&pass.hook.keys);
        let why = Why::new("Rebooted", "the node rebooted and starts over");
        pile.released.extend(write.action(Verb::Record, why));
        return;
    }
    let started = pass.is_started(index);
    let released =
        matches!(word, StatusWord::Complete | StatusWord::Erroring | StatusWord::Blocked)
            && member.observed != Some(word);
    let moved = work.is_some() || member.seen.is_some();
    if !started && !released && !moved && pile.records.len() >= RECORDS_MAX {
        return; // bookkeeping alone, and there is enough of it for one step
    }
    let taints = runtime_taint(pass, member, &mut write);
    write.word(&pass.hook.keys, word, &pass.options.version);
    if pass.options.reapply_on_reboot {
        write.boot_id(&pass.hook.keys);
    }
    if moved || member.assessed.migrated {
        let state = work.map_or(&member.assessed.state, |work| &work.state);
        if member.assessed.unreadable.is_none() {
            write.node_state(&pass.hook.keys, &state.text());
        }
    }
    if member.is_complete() {
        write.uncordon(&pass.hook.keys);
    } else if work.is_some_and(|work| work.cordon) {
        write.cordon(&pass.hook.keys);
    }
    let shelf = match (started, released, moved) {
        (true, ..) => &mut pile.started,
        (_, true, _) => &mut pile.released,
        (_, _, true) => &mut pile.moved,
        _ => &mut pile.records,
    };
    if !write.is_empty() {
        let (verb, why) = meaning(pass, index, started, taints);
        shelf.extend(write.action(verb, why));
    }
    if let Some(work) = work {
        shelf.extend(disturbances(pass, member, work));
    }
    shelf.extend(clean_up(pass, index, member, wanted));
}

/// What the patch of a node means to a person.
fn meaning(pass: &Pass<'_, '_>, index: usize, started: bool, taints: Option<Verb>) -> (Verb, Why) {
    let member = &pass.members[index];
    let name = member.node.name();
    let work = pass.work(index);
    if started {
        let Some(compartment) = pass.compartment_of(index) else {
            return (Verb::Start(Permit::unchecked()), Why::new("Started", name.to_string()));
        };
        let (batch, size) = (compartment.batch.current_batch, compartment.next_size());
        let message = format!("batch {batch} of {} takes {size} nodes", compartment.terms.name);
        let again = member.word() == StatusWord::Erroring;
        let verb =
            if again { Verb::Retry(Permit::unchecked()) } else { Verb::Start(Permit::unchecked()) };
        return (verb, Why::new(if again { "Retried" } else { "Started" }, message));
    }
    if member.is_complete() && member.node.annotation(&pass.hook.keys.cordon).is_some() {
        return (Verb::Uncordon, Why::new("NodeComplete", "every package is complete"));
    }
    if work.is_some_and(|work| work.cordon) {
        return (Verb::Cordon, Why::new("InterruptAhead", "a package will disturb the node"));
    }
    if let Some(verb) = taints {
        return (verb, Why::new("RuntimeRequired", "workloads wait for this Skyhook"));
    }
    if work.is_some() {
        return (Verb::Advance, Why::new("NextStage", "the node holds a slot"));
    }
    let word = crate::dialect::skyhook::decide::member::word_text(pass.word_after(index));
    (Verb::Record, Why::new("StatusRecorded", format!("the node is {word}")))
}

/// Adds the taint that keeps workloads off to nodes never seen before, and removes it once
/// every Skyhook that they require is complete on the node.
fn runtime_taint(
    pass: &Pass<'_, '_>,
    member: &Member<'_>,
    write: &mut NodeWrite<'_>,
) -> Option<Verb> {
    let taint = &pass.options.runtime_taint;
    if !pass.hook.runtime_required() || pass.hook.disabled {
        return None;
    }
    let tainted = has_taint(member.node, taint);
    if tainted && member.is_complete() && others_are_complete(pass, member) {
        write.untaint(taint);
        return Some(Verb::Untaint);
    }
    let wanted = pass.hook.runtime == Runtime::RequiredOfNewNodes;
    if wanted && !tainted && !member.is_complete() && is_new(member.node) {
        write.taint(taint);
        return Some(Verb::Taint);
    }
    None
}

fn others_are_complete(pass: &Pass<'_, '_>, member: &Member<'_>) -> bool {
    let node = member.node;
    pass.others.iter().filter(|other| other.runtime_required()).all(|other| {
        let mut assessor = crate::dialect::skyhook::decide::assess::Assessor::new(other);
        !other.selector.matches(node)
            || assessor.read(node.annotation(&other.keys.node_state)).complete
    })
}

/// Pods made and evicted on a node that holds a slot.
fn disturbances(pass: &Pass<'_, '_>, member: &Member<'_>, work: &Work<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    if !work.pods.is_empty() {
        actions.extend(node_metadata::ensure(pass.hook, pass.options, pass.snapshot, member.node));
    }
    for pod in &work.pods {
        actions.push(create(pass, member, pod));
    }
    for pod in &work.evictions {
        let why =
            Why::new("Draining", format!("package {} will disturb the node", work.drained_for));
        actions.push(Action::evict(pod, None, why));
    }
    actions
}

fn create(pass: &Pass<'_, '_>, member: &Member<'_>, pod: &NewPod) -> Action {
    let maker = Maker { hook: pass.hook, options: pass.options, node: member.node };
    let entry = &pod.entry;
    let known = pass.hook.package(&entry.name).filter(|_| entry.stage != Stage::Uninstall);
    let package = known.cloned().unwrap_or_else(|| salvaged(entry));
    let (key, body) = match &pod.interrupt {
        Some(interrupt) => maker.interrupt_pod(&package, interrupt),
        None => maker.stage_pod(&package, entry.stage),
    };
    let stage = crate::dialect::skyhook::read::state::stage_word(entry.stage);
    let message = format!("package {} is at {stage}", entry.unique());
    Action::create(Verb::Create, key, body, Why::new("NextStage", message))
}

/// Removes pods that have done their part, stand for nothing, or are no longer what the spec
/// asks for. The last are marked first, so that what they still report does not count.
fn clean_up<'p>(
    pass: &'p Pass<'_, '_>,
    index: usize,
    member: &Member<'_>,
    wanted: &mut Wanted<'p>,
) -> Vec<Action> {
    let Some(seen) = &member.seen else { return Vec::new() };
    let delete = |pod: &Object, reason, message: &str| {
        Action::delete(Verb::Delete, pod, Propagation::Background, Why::new(reason, message))
    };
    let mut actions: Vec<Action> = Vec::new();
    actions.extend(seen.done.iter().map(|pod| delete(pod, "StageRecorded", "its result is kept")));
    let present = |pod: &&&Object| !pod.is_deleting();
    let strays = seen.strays.iter().filter(present);
    actions.extend(strays.map(|pod| delete(pod, "Stray", "the node is not at this stage")));
    if !pass.is_active() {
        return actions;
    }
    let stopped = pass.compartment_of(index).is_none_or(Compartment::is_stopped);
    for live in seen.live.iter().filter(|live| !live.pod.is_deleting()) {
        if live.tag.invalid {
            actions.push(delete(live.pod, "Outdated", "the spec asks for something else now"));
        } else if reads_old_config(pass, &live.tag)
            || !stopped && outdated(pass, member, &live.tag, live.pod, wanted)
        {
            let tag = Tag { invalid: true, ..live.tag.clone() };
            let tag = serde_json::to_string(&tag).expect("strings always serialise");
            let patch = json!({"metadata": {"annotations": {PACKAGE: tag}}});
            let why = Why::new("Outdated", "the spec asks for something else now");
            actions.push(Action::patch(Verb::Record, live.pod, patch, why));
        }
    }
    actions
}

/// Whether a pod works with files that are being replaced. A change is handed to all nodes
/// together, so such a pod goes even where failures stopped the compartment: the others would
/// wait for it for ever.
fn reads_old_config(pass: &Pass<'_, '_>, tag: &Tag) -> bool {
    tag.depends_on_config() && pass.changing.contains_key(tag.unique().as_str())
}

fn outdated<'p>(
    pass: &'p Pass<'_, '_>,
    member: &Member<'_>,
    tag: &Tag,
    pod: &Object,
    wanted: &mut Wanted<'p>,
) -> bool {
    if tag.stage == Stage::Uninstall {
        return false;
    }
    let package = pass.hook.package(&tag.name).filter(|package| package.version == tag.version);
    let Some(package) = package else { return true };
    if tag.stage == Stage::Interrupt {
        return false; // what it was told to do is under way
    }
    let maker = Maker { hook: pass.hook, options: pass.options, node: member.node };
    is_outdated(pod, wanted.pod(&maker, package, tag.stage))
}

/// Lifts our cordon from nodes that the Skyhook no longer targets.
fn let_go(pass: &Pass<'_, '_>) -> Vec<Action> {
    let keys = &pass.hook.keys;
    let lifted = |node: &&Object| {
        let mut write = NodeWrite::new(node);
        write.uncordon(keys);
        let why = Why::new("NoLongerTargeted", "the Skyhook does not select the node any more");
        write.action(Verb::Uncordon, why)
    };
    pass.left.iter().filter_map(lifted).collect()
}
