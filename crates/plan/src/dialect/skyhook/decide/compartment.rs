//! Compartments: which nodes belong where, and how many of them may be in progress.

use crate::count;
use crate::dialect::skyhook::decide::batch::{Ended, next_size};
use crate::dialect::skyhook::decide::member::Member;
use crate::dialect::skyhook::read::batch::BatchState;
use crate::dialect::skyhook::read::policy::{CompartmentSpec, percent_of};
use crate::gate::{Limit, grant};
use crate::hold::HoldReason;
use crate::selector::label_sets::LabelSets;
use convoy_api::skyhook::StatusWord;
use smol_str::SmolStr;

/// A group of nodes with a budget and a pace.
#[derive(Clone, Debug)]
pub(crate) struct Compartment {
    pub(crate) spec: CompartmentSpec,
    /// Indices of its members, oldest first.
    pub(crate) members: Vec<usize>,
    /// The most of them in progress at once, as published.
    pub(crate) ceiling: u32,
    pub(crate) batch: BatchState,
    /// How many members have ended, as far as the size of the next batch is concerned.
    pub(crate) processed: Ended,
    /// Members that hold a slot.
    pub(crate) in_flight: Vec<usize>,
    /// Members that start now.
    pub(crate) starts: Vec<usize>,
}

/// What is published about a compartment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompartmentProgress {
    pub(crate) matched: u32,
    pub(crate) ceiling: u32,
    pub(crate) in_progress: u32,
    pub(crate) completed: u32,
    pub(crate) progress_percent: u32,
}

/// Puts every member into exactly one compartment. `specs` end with the default, which takes
/// the nodes that no other selector matches.
pub(crate) fn assign(
    specs: Vec<CompartmentSpec>,
    label_sets: &LabelSets<'_>,
    members: &mut [Member<'_>],
) -> Vec<Compartment> {
    if specs.is_empty() {
        return Vec::new(); // the policy is missing: nobody goes anywhere
    }
    // The last one is the default, which takes the nodes that no other selects.
    let named = specs.iter().take(specs.len() - 1).map(|spec| &spec.selector);
    let candidates = label_sets.candidates(named);
    let mut sizes = vec![0u32; candidates.len()];
    for member in members.iter() {
        sizes[member.label_set] = sizes[member.label_set].saturating_add(1);
    }
    let mut matched = vec![0u32; specs.len()];
    for (set, wanting) in candidates.iter().enumerate() {
        for at in wanting {
            matched[*at] = matched[*at].saturating_add(sizes[set]);
        }
    }
    let default = specs.len().saturating_sub(1);
    let best = |wanting: &Vec<usize>| {
        let wanting = wanting.iter().copied();
        wanting.min_by_key(|at| specs[*at].safety(matched[*at])).unwrap_or(default)
    };
    let chosen: Vec<usize> = candidates.iter().map(best).collect();
    let mut compartments: Vec<Compartment> = specs.into_iter().map(Compartment::new).collect();
    for (index, member) in members.iter_mut().enumerate() {
        member.compartment = chosen[member.label_set];
        compartments[member.compartment].members.push(index);
    }
    for compartment in &mut compartments {
        compartment.ceiling = compartment.spec.ceiling(compartment.total());
    }
    compartments
}

impl Compartment {
    fn new(spec: CompartmentSpec) -> Self {
        Self {
            spec,
            members: Vec::new(),
            ceiling: 0,
            batch: BatchState::default(),
            processed: Ended::default(),
            in_flight: Vec::new(),
            starts: Vec::new(),
        }
    }

    pub(crate) fn total(&self) -> u32 {
        count(self.members.len())
    }

    /// Whether failures stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        self.spec.strategy.is_some() && self.batch.should_stop
    }

    /// Its members that are `counted`, by whether they are complete or failed.
    pub(crate) fn ended<'w>(
        &self,
        members: &[Member<'w>],
        counted: impl Fn(&Member<'w>) -> bool,
    ) -> Ended {
        let mut ended = Ended::default();
        for member in self.members.iter().map(|index| &members[*index]) {
            if member.is_complete() && counted(member) {
                ended.completed += 1;
            } else if member.has_failed() && counted(member) {
                ended.failed += 1;
            }
        }
        ended
    }

    /// The reason, if failures stopped it.
    pub(crate) fn failure_stop(&self) -> Option<HoldReason> {
        let strategy = self.spec.strategy.as_ref().filter(|_| self.is_stopped())?;
        Some(HoldReason::FailureStop {
            limit: "failureThreshold",
            value: strategy.failure_threshold.unwrap_or(1),
            failures: self.batch.consecutive_failures,
            remedy: "fix the package, then run `convoy retry`",
        })
    }

    /// The most of its nodes in progress at once. A legacy budget of zero still lets one through.
    pub(crate) fn slots(&self) -> u32 {
        self.ceiling.max(1)
    }

    /// How far it has come, given the status words of all members.
    pub(crate) fn progress(
        &self,
        members: &[Member<'_>],
        words: &[StatusWord],
    ) -> CompartmentProgress {
        let busy = |index: &&usize| words[**index] == StatusWord::InProgress;
        let Ended { completed, .. } = self.ended(members, |_| true);
        let matched = self.total();
        CompartmentProgress {
            matched,
            ceiling: self.ceiling,
            in_progress: count(self.members.iter().filter(busy).count()),
            completed,
            progress_percent: percent_of(completed, matched),
        }
    }

    /// The limits on a batch that begins beside so many nodes `in_flight`, `by` naming the first
    /// few: the size that the strategy asks for, then the ceiling.
    pub(crate) fn batch_limits(&self, in_flight: u32, by: Vec<SmolStr>) -> Vec<Limit> {
        let batch = self.spec.strategy.as_ref().map(|strategy| {
            let size = next_size(strategy, &self.batch, self.processed, self.total());
            Limit::batch(self.batch.current_batch, size)
        });
        let ceiling = Limit::slots("the compartment", in_flight, self.slots(), by);
        batch.into_iter().chain([ceiling]).collect()
    }

    /// How many nodes the next batch takes, once nobody is in flight.
    pub(crate) fn next_size(&self) -> u32 {
        grant(self.total(), &self.batch_limits(0, Vec::new())).count
    }
}
