//! Which selectors select an object, worked out once for all objects whose labels are alike as far
//! as the selectors ask.

use std::collections::BTreeMap;

use convoy_api::Object;
use smol_str::SmolStr;

use super::Selector;

/// Sets of objects: those that agree on every label that some selector asks about are selected
/// alike. Objects are put into sets as they are read, since coming back to their labels is
/// expensive.
#[derive(Debug, Default)]
pub(crate) struct LabelSets<'w> {
    /// What selectors ask about, sorted.
    keys: Vec<SmolStr>,
    /// By length, whether a key of it is asked about. It tells most labels apart from those
    /// without reading their names.
    lengths: Vec<bool>,
    /// By what objects answer (index of the key, and value), the number of the set.
    known: BTreeMap<Vec<(usize, &'w str)>, usize>,
    /// What the last object answered.
    answers: Vec<(usize, &'w str)>,
}

impl<'w> LabelSets<'w> {
    pub(crate) fn new<'s>(selectors: impl Iterator<Item = &'s Selector>) -> Self {
        let keys = selectors.flat_map(Selector::keys);
        let mut keys: Vec<SmolStr> = keys.map(SmolStr::new).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut lengths = vec![false; keys.iter().map(|key| key.len() + 1).max().unwrap_or(0)];
        for key in &keys {
            lengths[key.len()] = true;
        }
        Self { keys, lengths, ..Self::default() }
    }

    /// Sets by the same labels, none of them seen yet.
    pub(crate) fn fresh(&self) -> Self {
        Self { keys: self.keys.clone(), lengths: self.lengths.clone(), ..Self::default() }
    }

    /// Takes in the sets that were found in a piece of the fleet: their numbers here.
    pub(crate) fn join(&mut self, piece: Self) -> Vec<usize> {
        let mut numbers = vec![0; piece.known.len()];
        for (answers, set) in piece.known {
            let next = self.known.len();
            numbers[set] = *self.known.entry(answers).or_insert(next);
        }
        numbers
    }

    /// The set of an object.
    pub(crate) fn set_of(&mut self, object: &'w Object) -> usize {
        if self.keys.is_empty() {
            return self.numbered();
        }
        let (keys, lengths) = (&self.keys, &self.lengths);
        let asked = |key: &str| match lengths.get(key.len()) {
            Some(true) => keys.binary_search_by(|known| known.as_str().cmp(key)).ok(),
            _ => None,
        };
        self.answers.clear();
        self.answers.extend(object.labels().filter_map(|(key, value)| Some((asked(key)?, value))));
        self.answers.sort_unstable();
        self.numbered()
    }

    fn numbered(&mut self) -> usize {
        if let Some(set) = self.known.get(self.answers.as_slice()) {
            return *set;
        }
        let set = self.known.len();
        self.known.insert(self.answers.clone(), set);
        set
    }

    /// By set, the positions of the selectors that select it.
    pub(crate) fn candidates<'s>(
        &self,
        selectors: impl Iterator<Item = &'s Selector> + Clone,
    ) -> Vec<Vec<usize>> {
        let mut candidates = vec![Vec::new(); self.known.len()];
        for (answers, set) in &self.known {
            let look_up = |key: &str| {
                let asked = self.keys.binary_search_by(|known| known.as_str().cmp(key)).ok()?;
                let at = answers.binary_search_by_key(&asked, |(key, _)| *key).ok()?;
                Some(answers[at].1)
            };
            let selecting = selectors.clone().enumerate();
            let selecting = selecting.filter(|(_, selector)| selector.matches_with(look_up));
            candidates[*set] = selecting.map(|(at, _)| at).collect();
        }
        candidates
    }
}
