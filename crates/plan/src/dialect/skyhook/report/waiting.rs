//! Why nodes wait, for whoever describes the Skyhook: one sentence for each reason, with its
//! numbers and the first few names, so that the text does not grow with the fleet. Every node by
//! itself is in the plan and in the decision log.

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
        text.push(format!("{} for {} more reasons", count(nodes), rest.len()));
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
        format!("{}{of} [{}{more}]: {}", count(self.nodes), self.first.join(", "), self.reason)
    }
}

fn count(nodes: usize) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(node: &str, group: &str, reason: HoldReason) -> Hold {
        Hold::of_member(node, reason).in_group(group)
    }

    fn taint(key: &str) -> HoldReason {
        HoldReason::TaintNotTolerated { taint: format!("{key}:NoSchedule") }
    }

    #[test]
    fn nodes_that_wait_for_the_same_are_told_together() {
        let running =
            HoldReason::BatchRunning { batch: 2, unfinished: 1, by: vec!["node-0".into()] };
        let mut holds: Vec<Hold> =
            (1..=7).map(|at| hold(&format!("node-{at}"), "all", running.clone())).collect();
        holds.push(hold("node-8", "all", taint("gpu")));
        holds.push(hold("node-9", "few", taint("gpu")));
        holds.push(Hold::of_rollout(HoldReason::Paused));
        let expected = "7 nodes of all [node-1, node-2, node-3, node-4, node-5 and 2 more]: \
            batch 2 is still running, 1 unfinished: node-0; \
            1 node of all [node-8]: taint gpu:NoSchedule is not tolerated; \
            1 node of few [node-9]: taint gpu:NoSchedule is not tolerated";
        assert_eq!(summary(&holds).as_deref(), Some(expected));
        assert_eq!(summary(&[]), None);
    }

    #[test]
    fn the_text_does_not_grow_with_the_reasons() {
        let holds: Vec<Hold> =
            (0..50).map(|at| hold(&format!("n{at:02}"), "all", taint(&format!("k{at}")))).collect();
        let text = summary(&holds).expect("they wait");
        assert!(text.contains("[n09]") && !text.contains("[n10]"), "{text}");
        assert!(text.ends_with("; 40 nodes for 40 more reasons"), "{text}");
    }
}
