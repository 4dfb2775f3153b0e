//! The batches of a Skyhook, followed write by write: who was picked together, and whether the
//! published batch state says about a finished batch what became of its nodes. It remembers the picks
//! itself, and reads neither marks nor counters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The batches of all compartments.
#[derive(Clone, Debug, Default)]
pub(super) struct Batches {
    /// A status was seen; the first one is taken as it is.
    has_begun: bool,
    /// Picked and not scored, by compartment.
    open: BTreeMap<String, Open>,
    /// The batch state that was last published, by compartment.
    states: BTreeMap<String, Value>,
    /// The nodes that were last listed as picked, with the instant.
    picked: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default)]
struct Open {
    /// The nodes of the batch, with the instant of their pick.
    nodes: BTreeMap<String, String>,
    /// Nodes that may count or not: they changed compartments around their pick.
    others: BTreeMap<String, String>,
    /// The number of nodes that moved here since.
    joined: u64,
    /// People changed something that may undo what nodes have reached.
    is_disturbed: bool,
}

/// What is known of a node that a status lists.
pub(super) struct ListedNode<'n> {
    pub(super) compartment: &'n str,
    /// It changed compartments since the loops last settled.
    pub(super) has_moved: bool,
    /// It is complete, or it failed.
    pub(super) has_ended: bool,
}

impl Batches {
    /// Takes in a status, and checks the scores of batches. Returns the nodes that it picks, by
    /// compartment; not those that changed compartments. Entries at the instant `outside` are of nodes
    /// that keep a slot and belong to no batch.
    pub(super) fn see<'n>(
        &mut self,
        status: &Value,
        outside: impl Fn(&str) -> bool,
        listed: impl Fn(&str) -> Option<ListedNode<'n>>,
    ) -> Result<BTreeMap<&'n str, Vec<String>>, String> {
        let entries =
            |field: &str| status.get(field).and_then(Value::as_object).into_iter().flatten();
        let picked: BTreeMap<String, String> = entries("nodePriority")
            .map(|(name, at)| (name.clone(), at.as_str().unwrap_or_default().to_owned()))
            .collect();
        let states: BTreeMap<String, Value> = entries("compartmentStatuses")
            .map(|(name, one)| (name.clone(), one.get("batchState").cloned().unwrap_or_default()))
            .collect();
        if std::mem::replace(&mut self.has_begun, true) {
            for (compartment, state) in &states {
                self.check_score(compartment, state, &listed)?;
            }
        }
        self.open.retain(|name, open| {
            let is_listed = |(node, at): (&String, &String)| picked.get(node) == Some(at);
            states.contains_key(name) && open.nodes.iter().chain(&open.others).any(is_listed)
        });
        let before = std::mem::replace(&mut self.picked, picked);
        self.states = states;
        let mut new: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (node, at) in &self.picked {
            if before.get(node) == Some(at) || outside(at) {
                continue;
            }
            match listed(node) {
                Some(ListedNode { compartment, has_moved: false, .. }) => {
                    let open = self.open.entry(compartment.to_owned()).or_default();
                    open.nodes.insert(node.clone(), at.clone());
                    new.entry(compartment).or_default().push(node.clone());
                }
                // It may have been picked in whichever compartment it was.
                Some(_) => self.states.keys().for_each(|name| {
                    let open = self.open.entry(name.clone()).or_default();
                    open.others.insert(node.clone(), at.clone());
                }),
                None => {}
            }
        }
        Ok(new)
    }

    /// A state that says another batch must say about the last one what became of its nodes.
    fn check_score<'n>(
        &mut self,
        compartment: &str,
        state: &Value,
        listed: impl Fn(&str) -> Option<ListedNode<'n>>,
    ) -> Result<(), String> {
        let number = |state: &Value, field: &str| state.get(field).and_then(Value::as_u64);
        let batch = |state: &Value| number(state, "currentBatch").unwrap_or(1);
        let size = |state: &Value| number(state, "lastBatchSize").unwrap_or(0);
        let before = self.states.get(compartment).unwrap_or(&Value::Null);
        let (old, new, size, last) = (batch(before), batch(state), size(state), size(before));
        if new == old && size == last || new == 1 && size == 0 {
            return Ok(());
        }
        let found = format!("{compartment} goes from batch {old} to {new} with a size of {size}");
        let Some(open) = self.open.remove(compartment).filter(|_| new == old + 1) else {
            return Err(format!("{found}, and no batch has ended"));
        };
        let names: BTreeSet<&String> = open.nodes.keys().collect();
        let ended = names.iter().filter(|name| listed(name).is_some_and(|node| node.has_ended));
        let least = if open.is_disturbed { 0 } else { ended.count() };
        let most = (open.nodes.len() + open.others.len()) as u64 + open.joined;
        if size > most || size < least as u64 {
            return Err(format!("{found}, but it was {names:?}, of which {least} have ended"));
        }
        Ok(())
    }

    /// A node moved into a compartment: where it is, a process may take it for one of the batch.
    pub(super) fn join(&mut self, compartment: &str) {
        if let Some(open) = self.open.get_mut(compartment) {
            open.joined += 1;
        }
    }

    /// People changed something: nodes that have ended may no longer have.
    pub(super) fn disturb(&mut self) {
        self.open.values_mut().for_each(|open| open.is_disturbed = true);
    }
}
