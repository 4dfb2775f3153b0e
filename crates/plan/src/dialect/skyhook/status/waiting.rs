//! Why nodes wait, as `kubectl describe` shows it: one sentence for each reason, with its numbers
//! and the first few names, so that the text does not grow with the fleet. The plan and the
//! decision log have every node.

use std::collections::BTreeMap;

use crate::hold::{Hold, HoldReason};

/// How many nodes a sentence names.
const NAMED_MAX: usize = 5;
/// How many sentences there are.
const SENTENCES_MAX: usize = 10;

/// Nodes of one compartment that wait for the same.
#[derive(Debug)]
struct Sentence<'h> {
    reason: &'h HoldReason,
    first: Vec<&'h str>,
    nodes: usize,
}

/// What the nodes wait for; none if no node waits.
pub(crate) fn summary(holds: &[Hold]) -> Option<String> {
    let mut by_group: BTreeMap<(&str, &str), Vec<Sentence<'_>>> = BTreeMap::new();
    for hold in holds {
        let Some(node) = hold.member.as_deref() else { continue };
        let key = (hold.group.as_deref().unwrap_or_default(), hold.reason.word());
        let sentences = by_group.entry(key).or_default();
        let same = |sentence: &Sentence<'_>| {
            is_of_the_group(&hold.reason) || *sentence.reason == hold.reason
        };
        let at = sentences.iter().position(same).unwrap_or(sentences.len());
        if at == sentences.len() {
            sentences.push(Sentence { reason: &hold.reason, first: Vec::new(), nodes: 0 });
        }
        let sentence = &mut sentences[at];
        sentence.nodes += 1;
        if sentence.first.len() < NAMED_MAX {
            sentence.first.push(node);
        }
    }
    let all: Vec<(&str, Sentence<'_>)> = by_group
        .into_iter()
        .flat_map(|((group, _), sentences)| sentences.into_iter().map(move |one| (group, one)))
        .collect();
    let (told, rest) = all.split_at(all.len().min(SENTENCES_MAX));
    let mut text: Vec<String> = told.iter().map(|(group, one)| one.text(group)).collect();
    if !rest.is_empty() {
        let nodes: usize = rest.iter().map(|(_, one)| one.nodes).sum();
        text.push(format!("{} for {} more reasons", shown(nodes), rest.len()));
    }
    (!text.is_empty()).then(|| text.join("; "))
}

/// Whether all nodes of a compartment that wait for this wait for the very same, so that it need
/// not be compared: there may be many.
fn is_of_the_group(reason: &HoldReason) -> bool {
    matches!(
        reason,
        HoldReason::BudgetSpent { .. }
            | HoldReason::BatchRunning { .. }
            | HoldReason::BatchFull { .. }
            | HoldReason::FailureStop { .. }
            | HoldReason::Paused
            | HoldReason::Disabled
    )
}

impl Sentence<'_> {
    fn text(&self, group: &str) -> String {
        let of = if group.is_empty() { String::new() } else { format!(" of {group}") };
        let more = match self.nodes - self.first.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{of} [{}{more}]: {}", shown(self.nodes), self.first.join(", "), self.reason)
    }
}

fn shown(nodes: usize) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}

#[cfg(test)]
mod tests;
