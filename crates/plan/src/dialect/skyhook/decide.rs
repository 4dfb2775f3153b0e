//! Decides about one Skyhook: which nodes start, why each other one waits, and what is done to
//! the nodes that hold a slot. `write`, `status` and `report` render the result.
//!
//! # Limits, in order of precedence
//!
//! | limit                                           | nodes it concerns          | hold           |
//! |-------------------------------------------------|----------------------------|----------------|
//! | the Skyhook is paused                           | all                        | `Paused`       |
//! | the Skyhook is disabled                         | all                        | `Disabled`     |
//! | the `DeploymentPolicy` does not exist           | all                        | `Missing`      |
//! | failures stopped the compartment                | all of the compartment     | `FailureStop`  |
//! | a batch of the compartment is running           | those that would start     | `BatchRunning` |
//! | the size of the next batch                      | those that would start     | `BatchFull`    |
//! | the ceiling of the compartment                  | those that would start     | `BudgetSpent`  |
//! | the status has no room to name more picked nodes | those that would start    | `BudgetSpent`  |
//!
//! [`Decision::limits_on_all`] and [`Decision::limits_on_starts`] are this table as code. What
//! keeps a single node from starting, whatever the limits, is its obstacle ([`member`]):
//! it is ignored, another Skyhook goes first on it, it has a taint, and so on.

pub(crate) mod advance;
pub(crate) mod assess;
pub(crate) mod batch;
pub(crate) mod compartment;
pub(crate) mod config_change;
pub(crate) mod drain;
pub(crate) mod interrupt;
pub(crate) mod lifecycle;
pub(crate) mod member;
pub(crate) mod orphan;
pub(crate) mod pick;
pub(crate) mod record;
pub(crate) mod safety;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use convoy_api::kinds::{NODE, POD, POD_DISRUPTION_BUDGET};
use convoy_api::skyhook::StatusWord;
use jiff::Timestamp;
use smol_str::SmolStr;

use self::advance::{Context, NodePlan, Serial, advance};
use self::compartment::{Compartment, assign};
use self::drain::Disruptions;
use self::member::{Gathered, Member, Surroundings, gather};
use self::pick::Run;
use self::record::PickRecord;
use crate::count;
use crate::dialect::skyhook::read::config;
use crate::dialect::skyhook::read::hook::{Hook, Package};
use crate::dialect::skyhook::read::mark::outside_batches;
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::read::pod::Pods;
use crate::dialect::skyhook::read::policy::{self, legacy};
use crate::dialect::skyhook::read::state::NodeState;
use crate::gate::{Admission, Candidate, Limit, admit};
use crate::hold::{HoldReason, NAMED};
use crate::pods::node_of;
use crate::selector::label_sets::LabelSets;
use crate::snapshot::Snapshot;

/// Everything that was decided about one Skyhook, ready to be written and reported.
#[derive(Debug)]
pub(crate) struct Decision<'p, 'w> {
    pub(crate) hook: &'p Hook<'w>,
    /// All other Skyhooks that are not being deleted.
    pub(crate) others: &'p [Hook<'w>],
    pub(crate) options: &'p Options,
    pub(crate) snapshot: &'p Snapshot<'w>,
    pub(crate) now: Timestamp,
    pub(crate) members: Vec<Member<'w>>,
    /// Nodes that are no longer targeted and still cordoned by this Skyhook.
    pub(crate) untargeted: Vec<&'w Object>,
    pub(crate) compartments: Vec<Compartment>,
    /// Whether the policy that the Skyhook names does not exist.
    pub(crate) policy_missing: bool,
    /// Every node is complete.
    pub(crate) complete: bool,
    /// Config has changed, and no node knows of it yet.
    pub(crate) config_due: bool,
    /// Package names whose version changed, or that are gone, since the last status.
    pub(crate) versions_changed: BTreeSet<String>,
    /// Config changes that nodes are being told about: unique name and keys.
    pub(crate) changing: BTreeMap<&'p str, Vec<String>>,
    run: Run,
    /// Why a node does not move, by member index; none if it does, or is complete.
    pub(crate) holds: Vec<Option<HoldReason>>,
    /// What is done to the nodes that hold a slot, by member index.
    plans: Vec<Option<Box<NodePlan<'w>>>>,
}

impl<'p, 'w: 'p> Decision<'p, 'w> {
    pub(crate) fn new(
        hook: &'p Hook<'w>,
        others: &'p [Hook<'w>],
        options: &'p Options,
        snapshot: &'p Snapshot<'w>,
        now: Timestamp,
    ) -> Self {
        let pods = Pods::new(hook.name(), snapshot.of(&POD));
        let changing = config::changing(hook, options, snapshot);
        let earlier: Vec<&Hook<'w>> =
            others.iter().filter(|other| !other.disabled && other.order() < hook.order()).collect();
        let names: Vec<&str> = changing.keys().copied().collect();
        let around =
            Surroundings { hook, earlier: &earlier, options, pods: &pods, changing: &names };
        let policy = policy::find(snapshot, &hook.policy);
        let policy_missing = policy.is_none() && !hook.policy.is_empty();
        let (mut specs, policy_reset) = policy.unwrap_or_default();
        let mut label_sets = LabelSets::new(specs.iter().map(|spec| &spec.selector));
        let Gathered { mut members, untargeted } =
            gather(around, snapshot.of(&NODE), &mut label_sets);
        if hook.policy.is_empty() {
            specs.push(legacy(hook.budget.as_ref(), count(members.len())));
        }
        let compartments = assign(specs, &label_sets, &mut members);
        let complete = !policy_missing && members.iter().all(Member::is_complete);
        let versions_changed = versions_changed(hook, &members);
        let mut decision = Self {
            hook,
            others,
            options,
            snapshot,
            now,
            holds: vec![None; members.len()],
            members,
            untargeted,
            compartments,
            policy_missing,
            complete,
            config_due: config::is_due(hook, options, snapshot),
            versions_changed,
            changing,
            run: Run { outside: outside_batches(hook.object), ..Run::default() },
            plans: Vec::new(),
        };
        decision.score_batches(hook.reset.or(policy_reset).unwrap_or(true));
        let going = decision.ask_gate();
        decision.run.instant = decision.free_instant();
        decision.advance(going, &pods);
        decision
    }

    /// Whether nodes may start or go on at all.
    pub(crate) fn is_active(&self) -> bool {
        !self.hook.stands_still() && !self.policy_missing
    }

    /// Why the Skyhook as a whole does not move, in order of precedence.
    pub(crate) fn standstills(&self) -> impl Iterator<Item = HoldReason> {
        let name = || self.hook.policy.clone();
        let paused = self.hook.paused.then_some(HoldReason::Paused);
        let disabled = self.hook.disabled.then_some(HoldReason::Disabled);
        let missing = self
            .policy_missing
            .then(|| HoldReason::Missing { kind: "DeploymentPolicy", name: name() });
        [paused, disabled, missing].into_iter().flatten()
    }

    /// The limits on every node of a compartment, also on those that hold a slot. Without a
    /// policy there is no compartment.
    fn limits_on_all(&self, compartment: Option<&Compartment>) -> Vec<Limit> {
        let stopped = compartment.and_then(Compartment::failure_stop);
        self.standstills().chain(stopped).map(Limit::closed).collect()
    }

    /// The further limits on nodes of a compartment that would start.
    fn limits_on_starts(&self, compartment: &Compartment) -> Vec<Limit> {
        let batch = compartment.batch.current_batch;
        let in_flight = count(compartment.in_flight.len());
        let by: Vec<SmolStr> = compartment
            .in_flight
            .iter()
            .take(NAMED)
            .map(|index| self.members[*index].node.name().clone())
            .collect();
        let mut limits = Vec::new();
        if in_flight > 0 {
            let by = by.clone().into();
            let running = HoldReason::BatchRunning { batch, unfinished: in_flight, by };
            limits.push(Limit::closed(running));
        }
        limits.extend(compartment.batch_limits(in_flight, by));
        limits
    }

    /// Asks the gate, compartment by compartment, which nodes that hold a slot go on and which
    /// others start. These are returned, oldest first; every other node is told why it waits.
    fn ask_gate(&mut self) -> Vec<usize> {
        let mut record = PickRecord::default();
        for index in self.compartments.iter().flat_map(|compartment| &compartment.in_flight) {
            record.take(self.members[*index].node.name());
        }
        let mut going = Vec::new();
        if self.compartments.is_empty() {
            let limits = self.limits_on_all(None);
            let everyone: Vec<usize> = (0..self.members.len()).collect();
            going.extend(self.keep_going(admit(self.in_flight(&everyone), &limits)));
            going.extend(self.start(admit(self.candidates(&everyone), &limits)));
        }
        for at in 0..self.compartments.len() {
            let compartment = &self.compartments[at];
            let mut limits = self.limits_on_all(Some(compartment));
            let continuing = admit(self.in_flight(&compartment.in_flight), &limits);
            let candidates = self.candidates(&compartment.members);
            limits.extend(self.limits_on_starts(compartment));
            limits.push(record.limit(&candidates));
            let starting = admit(candidates, &limits);
            for start in &starting.starts {
                record.take(start.name);
            }
            going.extend(self.keep_going(continuing));
            let starts = self.start(starting);
            going.extend_from_slice(&starts);
            self.compartments[at].starts = starts;
        }
        going.sort_unstable();
        going
    }

    /// The nodes among `group` that hold a slot, with what keeps each from going on.
    fn in_flight(&self, group: &[usize]) -> Vec<Candidate<'w>> {
        let in_flight = group.iter().filter(|index| self.members[**index].is_in_flight());
        in_flight
            .map(|index| {
                let obstacle = self.members[*index].obstacle.as_deref().cloned();
                self.candidate(*index, obstacle)
            })
            .collect()
    }

    /// The nodes among `group` that would start, in the order in which they do, then by age.
    fn candidates(&self, group: &[usize]) -> Vec<Candidate<'w>> {
        let waits = |index: &usize| {
            let member = &self.members[*index];
            let waits = !member.is_complete() && !member.is_in_flight();
            waits.then(|| (member.precedence(), *index))
        };
        let mut queue: Vec<(u8, usize)> = group.iter().filter_map(waits).collect();
        queue.sort_unstable();
        queue
            .into_iter()
            .map(|(_, index)| self.candidate(index, self.members[index].obstacle_to_start()))
            .collect()
    }

    fn candidate(&self, index: usize, obstacle: Option<HoldReason>) -> Candidate<'w> {
        let name = self.members[index].node.name().as_str();
        match obstacle {
            Some(reason) => Candidate::blocked(name, index, reason),
            None => Candidate::free(name, index),
        }
    }

    /// Takes in who goes on. Pods that are at work finish in any case, so their nodes move even
    /// if they may not take the next step.
    fn keep_going(&mut self, continuing: Admission<'w>) -> Vec<usize> {
        for (node, reason) in continuing.holds {
            let member = &self.members[node.index];
            if !member.is_at_work() {
                self.holds[node.index] = Some(reason);
            }
        }
        continuing.starts.iter().map(|node| node.index).collect()
    }

    /// Takes in who starts, oldest first.
    fn start(&mut self, starting: Admission<'w>) -> Vec<usize> {
        let permit = starting.permit();
        let mut starts: Vec<usize> = starting.starts.iter().map(|node| node.index).collect();
        starts.sort_unstable();
        for index in &starts {
            self.members[*index].starts = permit;
        }
        for (node, reason) in starting.holds {
            self.holds[node.index] = Some(reason);
        }
        starts
    }

    /// Works out what is done to `going`, the nodes that hold a slot and may go on.
    fn advance(&mut self, going: Vec<usize>, pods: &Pods<'w>) {
        if going.is_empty() {
            return;
        }
        let name_of = |index: usize| self.members[index].node.name().as_str();
        let names: BTreeSet<&str> = going.iter().map(|index| name_of(*index)).collect();
        let disturbs = self.hook.packages.iter().any(Package::has_interrupt);
        let mut on_nodes: BTreeMap<&str, Vec<&'w Object>> = BTreeMap::new();
        if disturbs {
            for pod in self.snapshot.of(&POD) {
                if let Some(node) = node_of(pod).filter(|node| names.contains(node)) {
                    on_nodes.entry(node).or_default().push(pod);
                }
            }
        }
        let at_work = going.iter().filter(|index| self.members[**index].is_at_work());
        let busy: Vec<&'w str> = at_work.map(|index| name_of(*index)).collect();
        let mut context = Context {
            hook: self.hook,
            frozen: self.changing.keys().copied().collect(),
            disruptions: Disruptions::new(self.snapshot.of(&POD_DISRUPTION_BUDGET)),
            serial: self.hook.serial.then_some(Serial { busy }),
        };
        self.plans.resize_with(self.members.len(), || None);
        for index in going {
            let member = &self.members[index];
            let name = member.node.name().as_str();
            let on_node = on_nodes.get(name).map_or(&[] as &[&Object], Vec::as_slice);
            let (plan, hold) = advance(&mut context, member, on_node, pods.other_on(name));
            self.holds[index] = hold;
            self.plans[index] = Some(Box::new(plan));
        }
    }

    pub(crate) fn compartment_of(&self, index: usize) -> Option<&Compartment> {
        self.compartments.get(self.members[index].compartment)
    }

    /// Whether a node takes a slot now.
    pub(crate) fn is_started(&self, index: usize) -> bool {
        self.members[index].starts.is_some()
    }

    /// What is done to a node, if it holds a slot.
    pub(crate) fn plan(&self, index: usize) -> Option<&NodePlan<'w>> {
        self.plans.get(index)?.as_deref()
    }

    /// The packages of a node after this decision.
    pub(crate) fn state_after(&self, index: usize) -> &NodeState {
        self.plan(index).map_or(&self.members[index].assessed.state, |plan| &plan.state)
    }

    /// What is done to nodes, by member index.
    pub(crate) fn plans(&self) -> impl DoubleEndedIterator<Item = (usize, &NodePlan<'w>)> {
        let plans = self.plans.iter().enumerate();
        plans.filter_map(|(index, plan)| Some((index, plan.as_deref()?)))
    }

    /// The status word of a node after this decision.
    pub(crate) fn word_after(&self, index: usize) -> StatusWord {
        let member = &self.members[index];
        if self.hook.paused {
            return StatusWord::Paused;
        }
        if self.hook.disabled {
            return StatusWord::Disabled;
        }
        if member.rebooted {
            return StatusWord::Unknown;
        }
        let word = member.word();
        match (member.obstacle.as_deref(), word) {
            (_, StatusWord::Complete) => StatusWord::Complete,
            _ if self.is_started(index) => StatusWord::InProgress,
            (Some(HoldReason::BehindRollout { .. }), _) if word != StatusWord::Erroring => {
                StatusWord::Waiting
            }
            _ if member.is_in_flight() => StatusWord::InProgress,
            (_, StatusWord::Erroring) => StatusWord::Erroring,
            (Some(_), _) => StatusWord::Blocked,
            (None, _) if self.policy_missing => StatusWord::Unknown,
            (None, _) => StatusWord::Waiting,
        }
    }

    /// The status words of all nodes after this decision, by member index.
    pub(crate) fn words(&self) -> Vec<StatusWord> {
        (0..self.members.len()).map(|index| self.word_after(index)).collect()
    }

    /// The nodes' words in one, which is the Skyhook's.
    pub(crate) fn rolled_up(&self, words: &[StatusWord]) -> StatusWord {
        if self.policy_missing {
            return StatusWord::Blocked;
        }
        if self.complete {
            return StatusWord::Complete;
        }
        if self.hook.paused {
            return StatusWord::Paused;
        }
        if self.hook.disabled {
            return StatusWord::Disabled;
        }
        let mut remaining = words.iter().filter(|word| **word != StatusWord::Complete);
        let Some(first) = remaining.clone().next() else { return StatusWord::Unknown };
        if remaining.clone().any(|word| *word == StatusWord::InProgress) {
            return StatusWord::InProgress;
        }
        if remaining.all(|word| word == first) { *first } else { StatusWord::Unknown }
    }
}

/// The packages whose version is another than last published, or that are gone. If nothing was
/// published, the nodes tell.
fn versions_changed(hook: &Hook<'_>, members: &[Member<'_>]) -> BTreeSet<String> {
    let differs = |name: &str, version: &str| {
        hook.package(name).is_none_or(|package| package.version != version)
    };
    if let Some(packages) = hook.published_packages() {
        let changed = packages.filter(|(name, version)| differs(name, version));
        return changed.map(|(name, _)| name.to_owned()).collect();
    }
    let entries = members.iter().flat_map(|member| member.assessed.state.values());
    let mut changed = BTreeSet::new();
    for entry in entries.filter(|entry| differs(&entry.name, &entry.version)) {
        // Thousands of nodes name the same few.
        if !changed.contains(&entry.name) {
            changed.insert(entry.name.clone());
        }
    }
    changed
}
