//! One pass over a Skyhook: everything that a decision needs, worked out in order. What is
//! written and said about it is left to the modules that render it.

pub(crate) mod advance;
pub(crate) mod assess;
pub(crate) mod batch;
pub(crate) mod compartment;
pub(crate) mod config;
pub(crate) mod drain;
pub(crate) mod interrupt;
pub(crate) mod lifecycle;
pub(crate) mod member;
pub(crate) mod orphan;
pub(crate) mod record;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::skyhook::StatusWord;
use convoy_api::{GroupKind, Object};
use jiff::Timestamp;
use serde_json::Value;

use crate::dialect::skyhook::decide::advance::{Road, Work, drive};
use crate::dialect::skyhook::decide::batch::BatchState;
use crate::dialect::skyhook::decide::compartment::{Compartment, Kinds, assign, count};
use crate::dialect::skyhook::decide::drain::{BUDGET, Disruptions};
use crate::dialect::skyhook::decide::member::{Gathered, Member, Surroundings, gather};
use crate::dialect::skyhook::decide::record::Room;
use crate::dialect::skyhook::read::hook::Hook;
use crate::dialect::skyhook::read::observe::Observation;
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::read::pod::{Pods, node_of};
use crate::dialect::skyhook::read::policy::{Terms, legacy, read};
use crate::dialect::skyhook::read::state::NodeState;
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;

pub(super) const NODE: GroupKind = GroupKind::new("", "Node");
pub(super) const POD: GroupKind = GroupKind::new("", "Pod");
pub(super) const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");
pub(super) const POLICY: GroupKind = GroupKind::new("skyhook.nvidia.com", "DeploymentPolicy");

/// A decision, ready to be rendered.
#[derive(Debug)]
pub(super) struct Pass<'p, 'w> {
    pub(super) hook: &'p Hook<'w>,
    /// All other Skyhooks that are there to stay.
    pub(super) others: &'p [Hook<'w>],
    pub(super) options: &'p Options,
    pub(super) snapshot: &'p Snapshot<'w>,
    pub(super) now: Timestamp,
    pub(super) members: Vec<Member<'w>>,
    /// Nodes that are targeted no more and still cordoned in its name.
    pub(super) left: Vec<&'w Object>,
    pub(super) compartments: Vec<Compartment>,
    /// Whether the policy that the Skyhook names is not there.
    pub(super) policy_missing: bool,
    /// Every node is complete.
    pub(super) complete: bool,
    /// Config has changed, and no node knows of it yet.
    pub(super) config_due: bool,
    /// Package names whose version changed, or that are gone, since the last status.
    pub(super) versions_changed: BTreeSet<String>,
    /// Config changes being handed on: unique name and keys.
    pub(super) changing: BTreeMap<&'p str, Vec<String>>,
    /// What is done to the nodes that hold a slot, by member index.
    work: Vec<Option<Box<Work<'w>>>>,
}

impl<'p, 'w: 'p> Pass<'p, 'w> {
    pub(super) fn new(
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
        let policy = policy(hook, snapshot);
        let policy_missing = policy.is_none() && !hook.policy.is_empty();
        let (mut terms, policy_reset) = policy.unwrap_or_default();
        let mut kinds = Kinds::new(&terms);
        let Gathered { mut members, left } = gather(around, snapshot.of(&NODE), &mut kinds);
        if hook.policy.is_empty() {
            terms.push(legacy(hook.budget.as_ref(), count(members.len())));
        }
        let compartments = assign(terms, &kinds, &mut members);
        let complete = !policy_missing && members.iter().all(Member::is_complete);
        let versions_changed = versions_changed(hook, &members);
        let mut pass = Self {
            hook,
            others,
            options,
            snapshot,
            now,
            members,
            left,
            compartments,
            policy_missing,
            complete,
            config_due: config::is_due(hook, options, snapshot),
            versions_changed,
            changing,
            work: Vec::new(),
        };
        pass.take_stock(hook.reset.or(policy_reset).unwrap_or(true));
        pass.pick();
        pass.drive(&pods);
        pass
    }

    /// The status word that was last published.
    pub(super) fn published(&self) -> Option<&'w str> {
        self.hook.object.status().get("status").and_then(Value::as_str)
    }

    /// Whether anything may be started or driven at all.
    pub(super) fn is_active(&self) -> bool {
        !self.hook.stands_still() && !self.policy_missing
    }

    pub(super) fn compartment_of(&self, index: usize) -> Option<&Compartment> {
        self.compartments.get(self.members[index].compartment)
    }

    /// Whether it takes a slot now.
    pub(super) fn is_started(&self, index: usize) -> bool {
        self.members[index].starts
    }

    /// What is done to a node, if it holds a slot.
    pub(super) fn work(&self, index: usize) -> Option<&Work<'w>> {
        self.work.get(index)?.as_deref()
    }

    /// The packages of a node after this pass.
    pub(super) fn state_after(&self, index: usize) -> &NodeState {
        self.work(index).map_or(&self.members[index].assessed.state, |work| &work.state)
    }

    /// What is done to nodes, by member index.
    pub(super) fn works(&self) -> impl DoubleEndedIterator<Item = (usize, &Work<'w>)> {
        let works = self.work.iter().enumerate();
        works.filter_map(|(index, work)| Some((index, work.as_deref()?)))
    }

    /// The status word of a node after this pass.
    pub(super) fn word_after(&self, index: usize) -> StatusWord {
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

    /// Reads each compartment's batch state, resets it where that is due, and scores what
    /// came of the last batch.
    fn take_stock(&mut self, reset_enabled: bool) {
        let completes = self.complete && self.published() != Some("complete");
        let reset = reset_enabled && (completes || !self.versions_changed.is_empty());
        let published = self.hook.object.status().get("compartmentStatuses");
        for compartment in &mut self.compartments {
            let stored = published
                .and_then(|all| all.get(compartment.terms.name.as_str())?.get("batchState"));
            compartment.batch =
                if reset { BatchState::default() } else { BatchState::read(stored) };
            let members = compartment.members.iter().copied();
            compartment.in_flight =
                members.filter(|index| self.members[*index].is_in_flight()).collect();
            let total = compartment.total();
            let (completed, failed) = compartment.ended(&self.members);
            if let Some(strategy) = compartment.terms.strategy
                && compartment.in_flight.is_empty()
                && !self.complete
            {
                compartment.batch.score(&strategy, completed, failed, total);
            }
        }
    }

    fn pick(&mut self) {
        if !self.is_active() || self.complete {
            return;
        }
        let mut record = Room::default();
        for member in self.members.iter().filter(|member| member.is_in_flight()) {
            record.take(member);
        }
        for compartment in &mut self.compartments {
            compartment.pick(&self.members, &mut record);
            for index in &compartment.starts {
                self.members[*index].starts = true;
            }
        }
    }

    /// Drives every node that holds a slot, oldest first.
    fn drive(&mut self, pods: &Pods<'w>) {
        if !self.is_active() {
            return;
        }
        let going: Vec<usize> = (0..self.members.len())
            .filter(|index| {
                let member = &self.members[*index];
                let stopped = self.compartment_of(*index).is_none_or(Compartment::is_stopped);
                let holds_slot = member.is_in_flight() || self.is_started(*index);
                holds_slot && !stopped && member.obstacle.is_none()
            })
            .collect();
        let names: BTreeSet<&str> =
            going.iter().map(|index| self.members[*index].node.name().as_str()).collect();
        let disturbs = self
            .hook
            .packages
            .iter()
            .any(crate::dialect::skyhook::read::hook::Package::has_interrupt);
        let mut on_nodes: BTreeMap<&str, Vec<&'w Object>> = BTreeMap::new();
        if disturbs {
            for pod in self.snapshot.of(&POD) {
                if let Some(node) = node_of(pod).filter(|node| names.contains(node)) {
                    on_nodes.entry(node).or_default().push(pod);
                }
            }
        }
        let at_work = |index: &&usize| {
            self.members[**index].seen.as_deref().is_some_and(Observation::is_at_work)
        };
        let busy = count(going.iter().filter(at_work).count());
        let mut road = Road {
            hook: self.hook,
            frozen: self.changing.keys().copied().collect(),
            disruptions: Disruptions::new(self.snapshot.of(&BUDGET)),
            pods_left: self.hook.serial.then(|| 1u32.saturating_sub(busy)),
        };
        self.work.resize_with(self.members.len(), || None);
        for index in going {
            let member = &self.members[index];
            let name = member.node.name().as_str();
            let on_node = on_nodes.get(name).map_or(&[] as &[&Object], Vec::as_slice);
            let work = drive(&mut road, member, on_node, pods.other_on(name));
            self.work[index] = Some(Box::new(work));
        }
    }
}

/// The compartments that the policy asks for, and whether it resets batch state. None where
/// there is no policy, or none of the name that the Skyhook gives.
fn policy(hook: &Hook<'_>, snapshot: &Snapshot<'_>) -> Option<(Vec<Terms>, Option<bool>)> {
    if hook.policy.is_empty() {
        return None;
    }
    // A policy that cannot be read is refused by validation, which names the field.
    snapshot.find(&POLICY, "", &hook.policy).and_then(|policy| read(policy).ok())
}

/// The packages whose version is another than last published, or that are gone. Where
/// nothing was published, the nodes tell.
fn versions_changed(hook: &Hook<'_>, members: &[Member<'_>]) -> BTreeSet<String> {
    let published = hook.object.status().get("packageList").and_then(Value::as_str);
    let differs = |name: &str, version: &str| {
        hook.package(name).is_none_or(|package| package.version != version)
    };
    if let Some(list) = published.filter(|list| !list.is_empty()) {
        let packages = list.split(',').filter_map(|item| item.split_once(':'));
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
