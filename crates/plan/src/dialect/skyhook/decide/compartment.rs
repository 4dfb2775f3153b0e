//! Compartments: which nodes belong where, how many may be in progress, and who goes next.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::skyhook::StatusWord;
use smol_str::SmolStr;

use crate::dialect::skyhook::decide::batch::BatchState;
use crate::dialect::skyhook::decide::member::Member;
use crate::dialect::skyhook::decide::record::Room;
use crate::dialect::skyhook::read::policy::Terms;
use crate::hold::HoldReason;
use crate::limit::{Limit, tightest};

/// How many members a hold names.
const NAMED: usize = 3;

/// A group of nodes with a budget and a pace.
#[derive(Clone, Debug)]
pub(crate) struct Compartment {
    pub(crate) terms: Terms,
    /// Indices of its members, oldest first.
    pub(crate) members: Vec<usize>,
    /// The most of them in progress at once, as published.
    pub(crate) ceiling: u32,
    pub(crate) batch: BatchState,
    /// Members that hold a slot.
    pub(crate) in_flight: Vec<usize>,
    /// Members that begin now.
    pub(crate) starts: Vec<usize>,
    /// Whether more would begin if there were room to record them.
    pub(crate) beyond_record: bool,
}

/// Kinds of nodes: those that agree on every label that some selector asks about go the same
/// way. Nodes are put into kinds as they are read, since coming back to their labels is dear.
#[derive(Debug, Default)]
pub(crate) struct Kinds<'w> {
    /// What selectors ask about, sorted.
    keys: Vec<SmolStr>,
    /// By length, whether a key of it is asked about. It tells most labels apart from those
    /// without reading their names.
    lengths: Vec<bool>,
    /// By what nodes answer (index of the key, and value), the number of the kind.
    known: BTreeMap<Vec<(usize, &'w str)>, usize>,
    /// What the last node answered.
    answers: Vec<(usize, &'w str)>,
}

impl<'w> Kinds<'w> {
    pub(crate) fn new(terms: &[Terms]) -> Self {
        let keys = terms.iter().flat_map(|terms| terms.selector.keys());
        let mut keys: Vec<SmolStr> = keys.map(SmolStr::new).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut lengths = vec![false; keys.iter().map(|key| key.len() + 1).max().unwrap_or(0)];
        for key in &keys {
            lengths[key.len()] = true;
        }
        Self { keys, lengths, ..Self::default() }
    }

    /// Kinds by the same labels, none of them seen yet.
    pub(crate) fn fresh(&self) -> Self {
        Self { keys: self.keys.clone(), lengths: self.lengths.clone(), ..Self::default() }
    }

    /// Takes in the kinds that were found in a piece of the fleet: their numbers here.
    pub(crate) fn join(&mut self, piece: Self) -> Vec<usize> {
        let mut numbers = vec![0; piece.known.len()];
        for (answers, kind) in piece.known {
            let next = self.known.len();
            numbers[kind] = *self.known.entry(answers).or_insert(next);
        }
        numbers
    }

    /// The kind of a node.
    pub(crate) fn of(&mut self, node: &'w Object) -> usize {
        if self.keys.is_empty() {
            return self.numbered();
        }
        let (keys, lengths) = (&self.keys, &self.lengths);
        let asked = |key: &str| match lengths.get(key.len()) {
            Some(true) => keys.binary_search_by(|known| known.as_str().cmp(key)).ok(),
            _ => None,
        };
        self.answers.clear();
        self.answers.extend(node.labels().filter_map(|(key, value)| Some((asked(key)?, value))));
        self.answers.sort_unstable();
        self.numbered()
    }

    fn numbered(&mut self) -> usize {
        if let Some(kind) = self.known.get(self.answers.as_slice()) {
            return *kind;
        }
        let kind = self.known.len();
        self.known.insert(self.answers.clone(), kind);
        kind
    }

    /// By kind, the compartments, other than the default, that select it.
    fn candidates(&self, terms: &[Terms]) -> Vec<Vec<usize>> {
        let mut candidates = vec![Vec::new(); self.known.len()];
        for (answers, kind) in &self.known {
            let look_up = |key: &str| {
                let asked = self.keys.binary_search_by(|known| known.as_str().cmp(key)).ok()?;
                let at = answers.binary_search_by_key(&asked, |(key, _)| *key).ok()?;
                Some(answers[at].1)
            };
            let named = 0..terms.len().saturating_sub(1);
            candidates[*kind] =
                named.filter(|at| terms[*at].selector.matches_with(look_up)).collect();
        }
        candidates
    }
}

/// Puts every member into exactly one compartment. `terms` end with the default, which takes
/// whoever no other selector does.
pub(crate) fn assign(
    terms: Vec<Terms>,
    kinds: &Kinds<'_>,
    members: &mut [Member<'_>],
) -> Vec<Compartment> {
    if terms.is_empty() {
        return Vec::new(); // the policy is missing: nobody goes anywhere
    }
    let candidates = kinds.candidates(&terms);
    let mut sizes = vec![0u32; candidates.len()];
    for member in members.iter() {
        sizes[member.kind] = sizes[member.kind].saturating_add(1);
    }
    let mut matched = vec![0u32; terms.len()];
    for (kind, wanting) in candidates.iter().enumerate() {
        for at in wanting {
            matched[*at] = matched[*at].saturating_add(sizes[kind]);
        }
    }
    let default = terms.len().saturating_sub(1);
    let best = |wanting: &Vec<usize>| {
        let wanting = wanting.iter().copied();
        wanting.min_by_key(|at| terms[*at].safety(matched[*at])).unwrap_or(default)
    };
    let chosen: Vec<usize> = candidates.iter().map(best).collect();
    let mut compartments: Vec<Compartment> = terms.into_iter().map(Compartment::new).collect();
    for (index, member) in members.iter_mut().enumerate() {
        member.compartment = chosen[member.kind];
        compartments[member.compartment].members.push(index);
    }
    for compartment in &mut compartments {
        compartment.ceiling = compartment.terms.ceiling(compartment.total());
    }
    compartments
}

impl Compartment {
    fn new(terms: Terms) -> Self {
        Self {
            terms,
            members: Vec::new(),
            ceiling: 0,
            batch: BatchState::default(),
            in_flight: Vec::new(),
            starts: Vec::new(),
            beyond_record: false,
        }
    }

    pub(crate) fn total(&self) -> u32 {
        count(self.members.len())
    }

    /// Whether failures stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        self.terms.strategy.is_some() && self.batch.should_stop
    }

    /// How many of its members are complete, and how many failed.
    pub(crate) fn ended(&self, members: &[Member<'_>]) -> (u32, u32) {
        let (mut completed, mut failed) = (0, 0);
        for member in self.members.iter().map(|index| &members[*index]) {
            completed += u32::from(member.is_complete());
            failed += u32::from(member.has_failed());
        }
        (completed, failed)
    }

    /// How many nodes the next batch takes: what the strategy asks for, within the ceiling. A
    /// legacy budget of zero still lets one through.
    pub(crate) fn next_size(&self) -> u32 {
        if self.members.is_empty() {
            return 0;
        }
        let wanted = match &self.terms.strategy {
            Some(strategy) => strategy.next_size(&self.batch, self.total()),
            None => self.ceiling,
        };
        wanted.min(self.ceiling.max(1))
    }

    /// Chooses who begins now: nobody while a batch is running, and nobody who could not be
    /// put on record.
    pub(crate) fn pick(&mut self, members: &[Member<'_>], record: &mut Room) {
        if !self.in_flight.is_empty() || self.is_stopped() {
            return;
        }
        let mut queue: Vec<(u8, usize)> = self
            .members
            .iter()
            .filter_map(|index| Some((turn(&members[*index])?, *index)))
            .collect();
        queue.sort_unstable(); // by group; indices are by age already
        queue.truncate(usize::try_from(self.next_size()).unwrap_or(usize::MAX));
        let wanted = queue.len();
        let recorded = queue.into_iter().take_while(|(_, index)| record.take(&members[*index]));
        self.starts = recorded.map(|(_, index)| index).collect();
        self.starts.sort_unstable();
        self.beyond_record = self.starts.len() < wanted;
    }

    /// What a member that could begin, but finds no room, is told.
    pub(crate) fn no_room(&self, members: &[Member<'_>]) -> HoldReason {
        if self.is_stopped() {
            let failures = self.batch.consecutive_failures;
            let strategy = self.terms.strategy.as_ref();
            let value = strategy.and_then(|strategy| strategy.failure_threshold).unwrap_or(1);
            let remedy = "fix the package, then run `kubectl skyhook deployment-policy reset`";
            let limit = "failureThreshold";
            return HoldReason::FailureStop { limit, value, failures, remedy };
        }
        let batch = self.batch.current_batch;
        let named = |list: &[usize]| {
            list.iter().take(NAMED).map(|index| members[*index].node.name().clone()).collect()
        };
        if !self.in_flight.is_empty() {
            let unfinished = count(self.in_flight.len());
            return HoldReason::BatchRunning { batch, unfinished, by: named(&self.in_flight) };
        }
        let started = count(self.starts.len());
        if self.beyond_record {
            let by = named(&self.starts);
            return Limit::ceiling("the record of picked nodes", started, started, by).hold;
        }
        let ceiling =
            Limit::ceiling("the compartment", started, self.ceiling.max(1), named(&self.starts));
        let Some(strategy) = &self.terms.strategy else { return ceiling.hold };
        let size = strategy.next_size(&self.batch, self.total());
        let batch = Limit::new(size.saturating_sub(started), HoldReason::BatchFull { batch, size });
        let limits = [batch, ceiling];
        tightest(&limits).map_or(HoldReason::NoReason, |limit| limit.hold.clone())
    }
}

/// When a member's turn comes among those that may begin; none if it may not.
///
/// Nodes that were disturbed before and can go on come first, then those never started, then
/// those that were blocked, then those that failed.
fn turn(member: &Member<'_>) -> Option<u8> {
    if member.is_complete() || member.obstacle.is_some() {
        return None;
    }
    match member.word() {
        StatusWord::Erroring if member.has_recovered() => Some(0),
        StatusWord::Erroring if member.retries_by_itself() => None,
        StatusWord::Erroring => Some(3),
        StatusWord::Blocked => Some(2),
        _ => Some(1),
    }
}

/// A length as a count of members.
pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
