//! The rolling update of a placement: which bindings change now, and why the others wait.
//!
//! One pass looks at all bindings of the placement, in list order. It first sees to it that
//! they carry the placement's apply strategy and that no cluster has two of them; then it
//! sorts them ([`group`]), measures the room the budgets leave ([`pick`]) and writes what fits.

pub mod group;
pub mod precondition;
pub mod room;

use crate::dialect::fleet::decide::rollout::group::{Candidate, Groups, Wanted};
use crate::dialect::fleet::decide::rollout::precondition as gate;
use crate::dialect::fleet::decide::rollout::precondition::Shared;
use crate::dialect::fleet::read::binding::{Binding, ROLLOUT_STARTED, Readiness};
use crate::dialect::fleet::read::overrides::Overrides;
use crate::dialect::fleet::read::placement::{Placement, RollingUpdate, Strategy};
use crate::dialect::fleet::read::snapshot::ResourceGroup;
use crate::dialect::fleet::report::{Part, rollout as report};
use crate::dialect::fleet::write::binding as write;
use crate::gate::Permit;
use crate::hold::{Hold, HoldReason};
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Verdict, Why};
use jiff::Timestamp;
use serde_json::{Value, json};

/// How long upstream waits for the old binding of a cluster that was picked again.
const CLEAN_UP_SECS: i64 = 5;

const STARTED: &str = "the newest resources are on their way to the cluster";
const NOT_STARTED: &str = "the rollout strategy does not allow the change yet";

/// What one pass picked; everything that is a candidate and not in here waits.
#[derive(Debug)]
pub struct Picked<'g, 'w> {
    /// The failed, then the first of those to update, then the first of those to bind.
    pub roll: Vec<&'g Candidate<'w>>,
    pub remove: &'g [Binding<'w>],
    pub blocked_updates: &'g [Candidate<'w>],
    pub blocked_binds: &'g [Candidate<'w>],
    pub blocked_removals: &'g [Binding<'w>],
}

/// The rolling update's part of a placement's step.
pub fn part(snapshot: &Snapshot<'_>, placement: &Placement<'_>, now: Timestamp) -> Part {
    let mut part = Part::default();
    for key in ["roll", "remove", "blocked"] {
        part.decision.insert(key.to_owned(), json!([]));
    }
    let Strategy::RollingUpdate(rolling) = placement.strategy else { return part };
    if placement.object.is_deleting() {
        return part;
    }
    let bindings = bindings(snapshot, placement);
    part.actions = gate::push_apply_strategy(placement, &bindings);
    if !part.actions.is_empty() {
        requeue(&mut part, 0);
        return part;
    }
    if let Some(shared) = gate::shared_cluster(&bindings) {
        hold_back(&mut part, &shared);
        return part;
    }
    let Some(resources) = ResourceGroup::latest(snapshot, placement) else {
        report::without_resources(&mut part, placement, &bindings);
        return part;
    };
    let overrides = Overrides::touching(snapshot, placement, &resources.parts);
    if !overrides.is_empty() && !resources.is_complete() {
        report::incomplete(&mut part, &resources);
        return part;
    }
    let wanted = Wanted {
        placement,
        rolling: &rolling,
        resource_snapshot: resources.master.name(),
        overrides: &overrides,
    };
    match Groups::sort(snapshot, &bindings, wanted, now) {
        Ok(groups) => roll(&mut part, &groups, wanted, now),
        Err(unknown) => {
            let name = unknown.cluster.to_string();
            let reason = HoldReason::Missing { kind: "MemberCluster", name };
            part.holds.push(Hold::of_rollout(reason));
            part.verdict = Some(Verdict::Held);
        }
    }
    part
}

/// The bindings of a placement, by name.
pub fn bindings<'w>(snapshot: &Snapshot<'w>, placement: &Placement<'_>) -> Vec<Binding<'w>> {
    let all = snapshot.of(&placement.binding_kind()).iter();
    let owned = all.filter(|object| placement.owns(object));
    owned.filter_map(|object| Binding::read(object)).collect()
}

impl<'g, 'w> Picked<'g, 'w> {
    /// The first candidates of each group that the budgets leave room for.
    pub fn from(groups: &'g Groups<'w>) -> Self {
        let removals = u32::try_from(groups.remove.len()).unwrap_or(u32::MAX);
        let room = groups.counts.room(removals);
        let (remove, blocked_removals) = split(&groups.remove, room.remove);
        let (update, blocked_updates) = split(&groups.update, room.update);
        let (bind, blocked_binds) = split(&groups.bind, room.bind);
        let roll = groups.retry.iter().chain(update).chain(bind).collect();
        Self { roll, remove, blocked_updates, blocked_binds, blocked_removals }
    }

    fn blocked(&self) -> impl Iterator<Item = &'g Candidate<'w>> {
        self.blocked_updates.iter().chain(self.blocked_binds)
    }
}

fn split<T>(all: &[T], room: u32) -> (&[T], &[T]) {
    all.split_at(all.len().min(usize::try_from(room).unwrap_or(usize::MAX)))
}

fn roll(part: &mut Part, groups: &Groups<'_>, wanted: Wanted<'_, '_>, now: Timestamp) {
    let picked = Picked::from(groups);
    part.decision.insert("roll".into(), names(picked.roll.iter().map(|it| it.binding)));
    part.decision.insert("remove".into(), names(picked.remove.iter().copied()));
    part.decision.insert("blocked".into(), names(picked.blocked().map(|it| it.binding)));
    for candidate in picked.blocked() {
        let binding = candidate.binding;
        let generation = binding.generation();
        part.actions.extend(write::rollout_started(&binding, false, generation, NOT_STARTED, now));
    }
    for binding in groups.current.iter().filter(|binding| !binding.is_true(ROLLOUT_STARTED)) {
        let generation = binding.generation();
        part.actions.extend(write::rollout_started(binding, true, generation, STARTED, now));
    }
    for candidate in &picked.roll {
        part.actions.extend(rolled(candidate, wanted.resource_snapshot, now));
    }
    part.actions.extend(picked.remove.iter().map(removed));
    if groups.is_out_of_date() {
        requeue(part, requeue_secs(groups, wanted.rolling, now));
    }
    report::holds(part, groups, &picked, wanted.rolling);
    part.wake_at = groups.unready.iter().filter_map(|(_, readiness)| ready_at(*readiness)).min();
}

/// The new spec, then the condition that tells the work generator to act on it. Changing the
/// spec makes the next generation.
fn rolled(candidate: &Candidate<'_>, resource_snapshot: &str, now: Timestamp) -> Vec<Action> {
    let binding = &candidate.binding;
    let wish =
        write::Wish { resource_snapshot, overrides: &candidate.overrides, apply_strategy: None };
    let (verb, reason) = report::meaning(binding);
    let message = format!("cluster {} gets {resource_snapshot}", binding.cluster());
    let granted = wish.grant(binding, verb, Why::new(reason, message));
    let generation = binding.generation().saturating_add(1);
    let started = write::rollout_started(binding, true, generation, STARTED, now);
    [granted].into_iter().chain(started).collect()
}

fn removed(binding: &Binding<'_>) -> Action {
    let message = format!("cluster {} is no longer picked", binding.cluster());
    let why = Why::new("NoLongerPicked", message);
    Action::delete(Verb::Remove(Permit::unchecked()), binding.object, Propagation::Background, why)
}

/// A cluster with two bindings: wait for the old one to be gone, or say that someone has to look.
fn hold_back(part: &mut Part, shared: &Shared<'_>) {
    match shared {
        Shared::Wait { binding, behind } => {
            let reason = HoldReason::Depends { on: format!("deletion of binding {behind}") };
            part.holds.push(Hold::of_member(*binding, reason).in_group(report::GROUP));
            part.verdict = Some(Verdict::Held);
            requeue(part, CLEAN_UP_SECS);
        }
        Shared::Error { detail } => {
            let reason = HoldReason::Stalled { detail: detail.clone() };
            part.holds.push(Hold::of_rollout(reason));
            part.verdict = Some(Verdict::Stopped);
        }
    }
}

/// When upstream's controller would look again. Here events and [`Part::wake_at`] do that.
fn requeue(part: &mut Part, secs: i64) {
    part.decision.insert("requeueAfterSeconds".into(), json!(secs));
}

/// The period, or the shortest known wait of a binding that is not ready; 0 when all are.
fn requeue_secs(groups: &Groups<'_>, rolling: &RollingUpdate, now: Timestamp) -> i64 {
    if groups.unready.is_empty() {
        return 0;
    }
    let instants = groups.unready.iter().filter_map(|(_, readiness)| ready_at(*readiness));
    let waits = instants.map(|at| at.duration_since(now).as_secs().max(0));
    waits.chain([rolling.unavailable_period_secs]).min().unwrap_or(0)
}

fn ready_at(readiness: Readiness) -> Option<Timestamp> {
    match readiness {
        Readiness::At(at) => Some(at),
        Readiness::Ready | Readiness::Unknown => None,
    }
}

fn names<'w>(bindings: impl Iterator<Item = Binding<'w>>) -> Value {
    bindings.map(|binding| Value::from(binding.name())).collect()
}
