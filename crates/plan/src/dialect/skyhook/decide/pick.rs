//! Picks: which batch each node was picked for, how a finished batch is scored by its own nodes, and
//! under which instant the status lists a node.
//!
//! A node that is picked gets a [`Mark`] in the write that takes its slot, and the status lists it
//! under the instant of the mark. A batch is *open* from its pick until it is scored: its number is
//! the current one, and the status lists its instant. A reset leaves no instant of an earlier pick, so
//! marks of earlier runs are never open again.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use convoy_api::skyhook::StatusWord;
use jiff::SignedDuration;

use super::Decision;
use crate::dialect::skyhook::decide::batch::{Ended, score, score_by_difference};
use crate::dialect::skyhook::decide::compartment::Compartment;
use crate::dialect::skyhook::decide::member::Member;
use crate::dialect::skyhook::decide::record::PickRecord;
use crate::dialect::skyhook::read::batch::BatchState;
use crate::dialect::skyhook::read::mark::{Mark, pick_text};

/// The run that batches are counted in: from one reset to the next.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Batch state was reset now.
    pub(super) begins: bool,
    /// The instant of the picks that are made now, as the status has it.
    pub(super) instant: String,
    /// The instant of picks that belong to no batch of this run.
    pub(super) outside: String,
}

impl<'p, 'w: 'p> Decision<'p, 'w> {
    /// Reads each compartment's batch state, resets it where that is due, and scores the batch
    /// that has ended. The last batch of a rollout counts only where its state is kept.
    pub(super) fn score_batches(&mut self, reset_enabled: bool) {
        let completes = self.complete && self.hook.published_word() != Some("complete");
        self.run.begins = reset_enabled && (completes || !self.versions_changed.is_empty());
        let picks = self.hook.published_picks();
        let instants = LazyCell::new(move || picks.instants());
        let mut compartments = std::mem::take(&mut self.compartments);
        for compartment in &mut compartments {
            compartment.batch = if self.run.begins {
                BatchState::default()
            } else {
                self.hook.published_batch(&compartment.spec.name)
            };
            let in_flight = |index: &usize| self.members[*index].is_in_flight();
            compartment.in_flight = compartment.members.iter().copied().filter(in_flight).collect();
            let counts = !(self.complete && reset_enabled);
            let is_marked = |index: &usize| self.members[*index].mark.is_some();
            if compartment.members.iter().any(is_marked) {
                self.score_by_marks(compartment, || &instants, counts);
            } else {
                self.score_by_difference(compartment, counts);
            }
        }
        self.compartments = compartments;
    }

    /// Scores the current batch once none of its nodes holds a slot. A failed node counts in the run
    /// that it was picked in, a complete one always.
    fn score_by_marks<'i>(
        &self,
        compartment: &mut Compartment,
        instants: impl FnOnce() -> &'i BTreeSet<&'w str>,
        counts: bool,
    ) where
        'w: 'i,
    {
        let of_run = |member: &Member<'_>| !self.run.begins && compartment.has_picked(member);
        let all = compartment.ended(&self.members, |member| member.is_complete() || of_run(member));
        compartment.processed = all;
        let runs = compartment.in_flight.iter().any(|index| self.runs(compartment, *index));
        let strategy = compartment.spec.strategy.filter(|_| counts && !self.run.begins && !runs);
        if let Some(strategy) = strategy {
            let (instants, start) = (instants(), compartment.mark_before_instant());
            let instant = |mark: &'w str| mark.strip_prefix(&*start)?.strip_suffix("\"}");
            let counted = |member: &Member<'w>| {
                member.mark.and_then(instant).is_some_and(|at| instants.contains(at))
            };
            let batch = compartment.ended(&self.members, counted);
            let total = compartment.total();
            score(&mut compartment.batch, &strategy, batch, all, total);
        }
    }

    /// Whether a node that holds a slot does so in the current batch: it has its mark, or is about to
    /// get it. Others were picked before a reset or in another compartment, and are not waited for:
    /// when the last node of a batch ends, the status still lists the instant of the batch.
    fn runs(&self, compartment: &Compartment, index: usize) -> bool {
        let member = &self.members[index];
        let Some(at) = member.picked_at.filter(|at| **at != *self.run.outside) else {
            return false;
        };
        match member.mark.and_then(Mark::parse) {
            Some(mark) if *mark.picked == *at => mark == compartment.mark(at),
            _ => true,
        }
    }

    /// For state that upstream wrote, or an earlier version: no node carries a mark. Where nobody has
    /// ended either, all nodes are new or were reset, and the state is left as it is.
    fn score_by_difference(&self, compartment: &mut Compartment, counts: bool) {
        let all = compartment.ended(&self.members, |_| true);
        let has_ended = compartment.in_flight.is_empty();
        if has_ended && all == Ended::default() {
            return;
        }
        if let Some(strategy) = compartment.spec.strategy.filter(|_| counts && has_ended) {
            let total = compartment.total();
            score_by_difference(&mut compartment.batch, &strategy, all, total);
        }
        let BatchState { completed_nodes, failed_nodes, .. } = compartment.batch;
        compartment.processed = Ended { completed: completed_nodes, failed: failed_nodes };
    }

    /// An instant for the picks of this decision: now, or as soon after as no node of a compartment
    /// that starts nodes has a mark that reads the same.
    pub(super) fn free_instant(&self) -> String {
        let starting = || self.compartments.iter().filter(|one| !one.starts.is_empty());
        let marks = || {
            let members = starting().flat_map(|compartment| &compartment.members);
            members.filter_map(|index| self.members[*index].mark)
        };
        let texts = |at: &str| -> Vec<String> {
            starting().map(|compartment| compartment.mark(at).text()).collect()
        };
        let now = pick_text(self.now);
        let wanted = texts(&now);
        if now != self.run.outside && !marks().any(|mark| wanted.iter().any(|text| text == mark)) {
            return now;
        }
        let taken: BTreeSet<&str> = marks().collect();
        let mut later = (1..).map_while(|micros| {
            let at = self.now.checked_add(SignedDuration::from_micros(micros)).ok()?;
            Some(pick_text(at))
        });
        let is_free = |at: &String| {
            *at != self.run.outside && !texts(at).iter().any(|text| taken.contains(text.as_str()))
        };
        later.find(is_free).unwrap_or(now)
    }

    /// The mark that is written to a node: of its batch, when it takes its slot. A node that the
    /// status lists, without its mark, was about to take it when a process ended. What already is in
    /// progress without a mark was picked by upstream, or by an earlier version, and gets none. A node
    /// that keeps its slot over a reset and has forgotten its mark gets one of no batch.
    pub(crate) fn mark_after(&self, index: usize) -> Option<Mark<'_>> {
        let member = &self.members[index];
        let compartment = self.compartment_of(index)?;
        if self.is_started(index) {
            return Some(compartment.mark(&self.run.instant));
        }
        let listed = member.picked_at.filter(|_| member.is_in_flight())?;
        if listed == self.run.outside {
            // Without any mark it would be taken for a node that upstream picked.
            let mark = Mark { batch: 0, ..compartment.mark(listed) };
            return member.mark.is_none().then_some(mark);
        }
        let begun = matches!(
            member.observed,
            Some(StatusWord::InProgress | StatusWord::Paused | StatusWord::Disabled)
        );
        let is_marked =
            member.mark.and_then(Mark::parse).is_some_and(|mark| *mark.picked == *listed);
        (!self.run.begins && !begun && !is_marked).then(|| compartment.mark(listed))
    }

    /// The nodes that the status lists, with the instant of their pick: all that hold a slot, and
    /// while there is room those that failed in this run.
    pub(crate) fn listed(&self) -> BTreeMap<&str, Cow<'_, str>> {
        let mut record = PickRecord::default();
        let mut listed = BTreeMap::new();
        let name_of = |index: usize| self.members[index].node.name().as_str();
        for index in 0..self.members.len() {
            if let Some(at) = self.slot_instant(index) {
                record.take(name_of(index));
                listed.insert(name_of(index), at);
            }
        }
        let others = (0..self.members.len()).filter(|index| self.stays_listed(*index));
        let with_room = others.take_while(|index| record.take(name_of(*index)));
        listed.extend(with_room.filter_map(|index| {
            Some((name_of(index), Cow::Borrowed(self.members[index].picked_at?)))
        }));
        listed
    }

    /// The instant under which a node that holds a slot is listed.
    fn slot_instant(&self, index: usize) -> Option<Cow<'_, str>> {
        let member = &self.members[index];
        if self.is_started(index) {
            return Some(Cow::Borrowed(&self.run.instant));
        }
        member.is_in_flight().then(|| match (member.picked_at, member.mark) {
            (Some(at), _) if !self.run.begins && !self.has_moved(index) => Cow::Borrowed(at),
            (None, None) => Cow::Owned(pick_text(self.now)),
            _ => Cow::Borrowed(self.run.outside.as_str()),
        })
    }

    /// Whether a node was picked for a batch of another compartment than it is in.
    fn has_moved(&self, index: usize) -> bool {
        let member = &self.members[index];
        let Some(compartment) = self.compartment_of(index) else { return false };
        let mark = member.mark.and_then(Mark::parse);
        let is_of_pick = mark.is_some_and(|mark| Some(&*mark.picked) == member.picked_at);
        is_of_pick && !compartment.has_picked(member)
    }

    /// Whether a node that holds no slot stays listed.
    fn stays_listed(&self, index: usize) -> bool {
        let member = &self.members[index];
        if member.picked_at.is_none()
            || member.is_complete()
            || member.is_ignored()
            || member.is_in_flight()
            || self.is_started(index)
        {
            return false;
        }
        let Some(compartment) = self.compartment_of(index) else { return true };
        member.mark.is_none() || !self.run.begins && compartment.has_picked(member)
    }
}

impl Compartment {
    /// The mark of a node that is picked for the current batch.
    fn mark<'m>(&'m self, picked: &'m str) -> Mark<'m> {
        let batch = if self.spec.strategy.is_some() { self.batch.current_batch } else { 0 };
        Mark { compartment: Cow::Borrowed(&self.spec.name), batch, picked: Cow::Borrowed(picked) }
    }

    /// What the marks of the current batch begin with. They are compared as texts: of a large fleet
    /// only few are of this batch, and reading all would take longer than everything else.
    fn mark_before_instant(&self) -> String {
        let mut text = self.mark("").text();
        text.truncate(text.len() - "\"}".len());
        text
    }

    /// Whether it picked a node in the run that is under way: the status lists the node under the
    /// instant that its mark has. Batches do not outlive the strategy that they were picked by.
    fn has_picked(&self, member: &Member<'_>) -> bool {
        let mark = member.mark.and_then(Mark::parse);
        mark.is_some_and(|mark| {
            *mark.compartment == *self.spec.name
                && (mark.batch > 0) == self.spec.strategy.is_some()
                && Some(&*mark.picked) == member.picked_at
        })
    }
}
