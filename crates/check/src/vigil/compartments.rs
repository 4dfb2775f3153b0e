//! Observes a Skyhook during a rollout: checks after every write that no compartment has more nodes
//! in progress than its ceiling, that no batch has more nodes than its size or starts before the
//! previous one has finished, and that no pod is created on a node without a slot.
//!
//! A batch is as large as its strategy says after the last one, whose size and success it takes from
//! its own record of who was picked ([`batches`](super::batches)).
//!
//! It reads nodes, pods, policy and status, and nothing of the engine. A lowered budget does not
//! stop nodes in progress, a node keeps its slot when it moves, and a loop may not know of either
//! yet. So until the loops have settled, the loosest bound applies, and nodes that changed
//! compartments count in none. Compartments must not overlap.

use convoy_api::kinds::NODE;
use convoy_api::kinds::POD;
use std::collections::{BTreeMap, BTreeSet};

use convoy_api::{GroupKind, Object};
use convoy_plan::selector::Selector;
use jiff::Timestamp;
use serde_json::Value;

use super::batches::{Batches, ListedNode};

const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");
const POLICY: GroupKind = GroupKind::new("skyhook.nvidia.com", "DeploymentPolicy");
const NAME: &str = "skyhook.nvidia.com/name";
const SAFETY_PROGRESS: &str = "convoy.dev/safety-progress";
const DEFAULT: &str = "__default__";

/// One Skyhook with its policy and nodes.
#[derive(Clone, Debug)]
pub struct Compartments {
    skyhook: String,
    word: String,
    /// The node selector, once the Skyhook was seen.
    selector: Option<Selector>,
    nodes: BTreeMap<String, TrackedNode>,
    /// Number of nodes, and the nodes in progress, by compartment. Updated incrementally, so that the
    /// cost of a write does not depend on the size of the fleet.
    members: BTreeMap<String, u64>,
    going: BTreeMap<String, BTreeSet<String>>,
    /// Nodes that were in progress when the Skyhook was paused; they keep their slots.
    held: BTreeSet<String>,
    /// Nodes that left or changed compartments since the loops last settled.
    moved: BTreeSet<String>,
    /// All policies since the loops last settled, the current one last.
    policies: Vec<Vec<Terms>>,
    /// By compartment.
    sizes: BTreeMap<String, Sizes>,
    batches: Batches,
    /// The spec of the Skyhook.
    spec: Value,
    /// A node forgot what it had, or the packages changed, since the loops last settled.
    has_reset: bool,
    /// The nodes that forgot what they had since then.
    forgetful: BTreeSet<String>,
    pods: BTreeSet<String>,
}

/// The last written state of a node, and its compartment.
#[derive(Clone, Debug)]
struct TrackedNode {
    node: Object,
    compartment: Option<String>,
}

/// Number of nodes of a compartment since the loops last settled.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    least: u64,
    most: u64,
    /// Nodes in progress when the loops last settled.
    going: u64,
}

/// How far a compartment is.
#[derive(Clone, Copy, Debug)]
struct Standing {
    complete: u64,
    failed: u64,
    ceiling: u64,
    /// It may have been further on, or less far, when the batch was decided.
    has_reset: bool,
}

/// The settings of a policy for one compartment.
#[derive(Clone, Debug)]
struct Terms {
    name: String,
    selector: Option<Selector>,
    budget: Value,
    strategy: Value,
    /// Failed nodes are no progress towards the safety limit.
    only_completed: bool,
}

impl Compartments {
    pub fn of(skyhook: &str) -> Self {
        Self {
            skyhook: skyhook.to_owned(),
            word: format!("skyhook.nvidia.com/status_{skyhook}"),
            selector: None,
            nodes: BTreeMap::new(),
            members: BTreeMap::new(),
            going: BTreeMap::new(),
            held: BTreeSet::new(),
            moved: BTreeSet::new(),
            policies: Vec::new(),
            sizes: BTreeMap::new(),
            batches: Batches::default(),
            spec: Value::Null,
            has_reset: false,
            forgetful: BTreeSet::new(),
            pods: BTreeSet::new(),
        }
    }

    /// Records a write or a deletion. Returns an error if a bound is violated.
    pub fn see(&mut self, object: &Object, is_gone: bool) -> Result<(), String> {
        match object.kind() {
            kind if *kind == NODE => self.see_node(object, is_gone),
            kind if *kind == POLICY => {
                if !is_gone {
                    self.batches.disturb();
                    self.policies.push(terms(object));
                    self.sort_nodes();
                    self.count_members();
                }
                Ok(())
            }
            kind if *kind == SKYHOOK && *object.name() == self.skyhook => self.see_skyhook(object),
            kind if *kind == POD => self.see_pod(object, is_gone),
            _ => Ok(()),
        }
    }

    /// Called when the loops have processed all events and have nothing to do: from here on the
    /// current bounds apply.
    pub fn rest(&mut self) {
        self.policies = self.policies.pop().into_iter().collect();
        self.moved.clear();
        self.has_reset = false;
        self.forgetful.clear();
        self.sizes.clear();
        self.count_members();
        let names: Vec<String> = self.sizes.keys().cloned().collect();
        for name in names {
            let held = self.held.iter().filter(|held| self.compartment(held) == Some(&name));
            let going = count(self.in_progress(&name).len() + held.count());
            self.sizes.entry(name).and_modify(|sizes| sizes.going = going);
        }
    }

    fn see_node(&mut self, node: &Object, is_gone: bool) -> Result<(), String> {
        let name = node.name().to_string();
        self.hold(&name, Some(node).filter(|_| !is_gone));
        let before = self.nodes.remove(&name);
        let word = |node: &Object| node.annotation(&self.word).map(str::to_owned);
        if before
            .as_ref()
            .is_some_and(|tracked| word(&tracked.node).is_some() && word(node).is_none())
        {
            self.has_reset = true;
            self.forgetful.insert(name.clone());
            self.batches.disturb();
        }
        if let Some(compartment) = before.as_ref().and_then(|tracked| tracked.compartment.as_ref())
        {
            self.members.entry(compartment.clone()).and_modify(|count| *count -= 1);
            self.going.entry(compartment.clone()).and_modify(|names| _ = names.remove(&name));
        }
        let compartment = if is_gone { None } else { self.count_in(node.clone()) };
        match before {
            Some(before) if before.compartment == compartment => {}
            before => {
                self.batches.disturb();
                if let Some(compartment) = &compartment {
                    self.batches.join(compartment);
                }
                self.moved.extend(before.is_some().then_some(name));
                self.count_members();
            }
        }
        let Some(compartment) = compartment else { return Ok(()) };
        let (going, most) = (self.in_progress(&compartment), self.ceiling(&compartment));
        if count(going.len()) > most {
            return Err(format!("{going:?} are in progress in {compartment}, more than {most}"));
        }
        Ok(())
    }

    /// Records whether a node has a slot that a pause hides.
    fn hold(&mut self, name: &str, after: Option<&Object>) {
        let going = self.compartment(name).and_then(|compartment| self.going.get(compartment));
        let had = self.held.contains(name) || going.is_some_and(|names| names.contains(name));
        let word = after.and_then(|node| node.annotation(&self.word));
        if had && matches!(word, Some("paused" | "disabled")) {
            self.held.insert(name.to_owned());
        } else {
            self.held.remove(name);
        }
    }

    /// The compartment in which a node was last seen.
    fn compartment(&self, name: &str) -> Option<&str> {
        self.nodes.get(name)?.compartment.as_deref()
    }

    /// Assigns a node to its compartment and returns it.
    fn count_in(&mut self, node: Object) -> Option<String> {
        let compartment = self.compartment_of(&node).map(str::to_owned);
        let name = node.name().to_string();
        if let Some(compartment) = &compartment {
            *self.members.entry(compartment.clone()).or_default() += 1;
            if node.annotation(&self.word) == Some("in_progress") {
                self.going.entry(compartment.clone()).or_default().insert(name.clone());
            }
        }
        self.nodes.insert(name, TrackedNode { node, compartment: compartment.clone() });
        compartment
    }

    /// Assigns every node to its compartment.
    fn sort_nodes(&mut self) {
        self.members.clear();
        self.going.clear();
        for tracked in std::mem::take(&mut self.nodes).into_values() {
            self.count_in(tracked.node);
        }
    }

    /// Checks that no more nodes were selected than the batch has, by the published batch state.
    fn see_skyhook(&mut self, skyhook: &Object) -> Result<(), String> {
        if self.selector.is_none() {
            let selector = skyhook.spec().get("nodeSelectors").unwrap_or(&Value::Null);
            self.selector = Selector::from_value(selector).ok();
            self.sizes.clear();
            self.sort_nodes();
            self.count_members();
        }
        if self.spec != *skyhook.spec() {
            self.spec = skyhook.spec().clone();
            self.has_reset = true;
            self.batches.disturb();
        }
        let mut batches = std::mem::take(&mut self.batches);
        let created = skyhook.created_at().unwrap_or(Timestamp::UNIX_EPOCH);
        let outside = |at: &str| at.parse().is_ok_and(|at: Timestamp| at == created);
        let new = batches.see(skyhook.status(), outside, |name| {
            let tracked = self.nodes.get(name)?;
            let word = tracked.node.annotation(&self.word);
            Some(ListedNode {
                compartment: tracked.compartment.as_deref()?,
                has_moved: self.moved.contains(name),
                has_ended: matches!(word, Some("complete" | "erroring")),
            })
        })?;
        self.batches = batches;
        for (compartment, names) in new {
            let published = skyhook.status().get("compartmentStatuses");
            let state = published.and_then(|all| all.get(compartment)?.get("batchState"));
            let most = self.batch(compartment, state.unwrap_or(&Value::Null));
            if count(names.len()) > most {
                return Err(format!("{names:?} are selected in {compartment}, more than {most}"));
            }
            let going = self.in_progress(compartment);
            if going.iter().any(|name| !names.iter().any(|new| new == name)) {
                return Err(format!(
                    "{names:?} are picked in {compartment}, where {going:?} are in progress"
                ));
            }
        }
        Ok(())
    }

    fn see_pod(&mut self, pod: &Object, is_gone: bool) -> Result<(), String> {
        let uid = pod.uid().unwrap_or_default();
        if is_gone {
            self.pods.remove(uid);
            return Ok(());
        }
        if pod.label(NAME) != Some(&self.skyhook) || !self.pods.insert(uid.to_owned()) {
            return Ok(());
        }
        let node = pod.spec().get("nodeName").and_then(Value::as_str).unwrap_or_default();
        let tracked = self.nodes.get(node);
        let word = tracked.map(|tracked| tracked.node.annotation(&self.word).unwrap_or("none"));
        match word {
            // A pause keeps nodes in progress, and can come between a slot and its pod.
            None | Some("in_progress" | "paused" | "disabled") => Ok(()),
            // So can a reset of the node.
            Some(_) if self.moved.contains(node) || self.forgetful.contains(node) => Ok(()),
            Some(word) => Err(format!("{} was created on {node}, which is {word}", pod.key())),
        }
    }

    /// Updates the number of nodes.
    fn count_members(&mut self) {
        let Some(current) = self.policies.last() else { return };
        let members: Vec<(String, u64)> = current
            .iter()
            .map(|terms| (terms.name.clone(), self.members.get(&terms.name).copied().unwrap_or(0)))
            .collect();
        for (name, members) in members {
            let fresh = Sizes { least: members, most: members, going: 0 };
            let sizes = self.sizes.entry(name).or_insert(fresh);
            sizes.least = sizes.least.min(members);
            sizes.most = sizes.most.max(members);
        }
    }

    /// The most nodes that may be in progress under any policy since the loops last settled.
    fn ceiling(&self, compartment: &str) -> u64 {
        let Some(sizes) = self.sizes.get(compartment) else { return 1 };
        let ceilings = self.terms_of(compartment).map(|terms| terms.ceiling(sizes.most));
        ceilings.max().unwrap_or(1).max(sizes.going)
    }

    /// The most nodes in the next batch under any policy since the loops last settled.
    fn batch(&self, compartment: &str, state: &Value) -> u64 {
        let Some(sizes) = self.sizes.get(compartment) else { return 0 };
        let ceiling = self.ceiling(compartment);
        let nodes = self
            .nodes
            .values()
            .filter(|tracked| tracked.compartment.as_deref() == Some(compartment));
        let words = nodes.filter_map(|tracked| tracked.node.annotation(&self.word));
        let (mut complete, mut failed) = (0, 0);
        for word in words {
            complete += u64::from(word == "complete");
            failed += u64::from(word == "erroring");
        }
        let standing = Standing { complete, failed, ceiling, has_reset: self.has_reset };
        self.terms_of(compartment)
            .map(|terms| terms.size(state, *sizes, standing))
            .max()
            .unwrap_or(0)
    }

    fn terms_of(&self, compartment: &str) -> impl Iterator<Item = &Terms> {
        self.policies.iter().flatten().filter(move |terms| terms.name == compartment)
    }

    fn in_progress(&self, compartment: &str) -> Vec<&str> {
        let going = self.going.get(compartment).into_iter().flatten();
        going.filter(|name| !self.moved.contains(*name)).map(String::as_str).collect()
    }

    /// The compartment of a node, if the Skyhook selects it.
    fn compartment_of(&self, node: &Object) -> Option<&str> {
        let current = self.policies.last().into_iter().flatten();
        let mut matching = current
            .filter(|terms| terms.selector.as_ref().is_some_and(|selector| selector.matches(node)));
        let compartment = matching.next().map_or(DEFAULT, |terms| &terms.name);
        self.selector.as_ref().is_none_or(|selector| selector.matches(node)).then_some(compartment)
    }
}

impl Terms {
    /// Number of nodes that the policy allows in progress; at least one.
    fn ceiling(&self, members: u64) -> u64 {
        let number = |field: &str| self.budget.get(field).and_then(Value::as_u64);
        let percent = number("percent").map(|percent| members * percent / 100);
        percent.or_else(|| number("count")).unwrap_or(0).max(1)
    }

    /// The largest size of the next batch.
    fn size(&self, state: &Value, members: Sizes, standing: Standing) -> u64 {
        let Standing { complete, failed, ceiling, has_reset } = standing;
        let kinds = ["fixed", "linear", "exponential"];
        let kind = kinds.into_iter().find(|kind| self.strategy.get(kind).is_some());
        let Some(kind) = kind else { return ceiling };
        let given = |field: &str, default: u64| {
            self.strategy[kind].get(field).and_then(Value::as_u64).unwrap_or(default)
        };
        let told = |field: &str| state.get(field).and_then(Value::as_u64).unwrap_or(0);
        let counted = if self.only_completed { complete } else { complete + failed };
        // Fewer nodes are further on, and slow down no more.
        let progress = (counted * 100).checked_div(members.least).unwrap_or(100);
        let is_failed = state.get("lastBatchFailed").and_then(Value::as_bool) == Some(true);
        let slow = is_failed && !has_reset && progress < given("safetyLimit", 50);
        let (last, first) = (told("lastBatchSize"), given("initialBatch", 1));
        let (delta, factor) = (given("delta", 1), given("growthFactor", 2));
        let size = match (kind, last, slow) {
            ("fixed", ..) | (_, 0, _) => first,
            ("linear", last, true) => last.saturating_sub(delta),
            ("linear", last, false) => last + delta,
            (_, last, true) => last / factor,
            (_, last, false) => last * factor,
        };
        let done = if has_reset { 0 } else { complete };
        let remaining = members.most.saturating_sub(done);
        size.min(remaining).max(1).min(ceiling)
    }
}

fn terms(policy: &Object) -> Vec<Terms> {
    let only_completed = policy.annotation(SAFETY_PROGRESS) == Some("completed");
    let read = |name: &str, entry: &Value| {
        let field = |field: &str| entry.get(field).cloned().unwrap_or_default();
        let selector = entry.get("selector").and_then(|value| Selector::from_value(value).ok());
        let (name, budget, strategy) = (name.to_owned(), field("budget"), field("strategy"));
        Terms { name, selector, budget, strategy, only_completed }
    };
    let listed = policy.spec().get("compartments").and_then(Value::as_array).into_iter().flatten();
    let listed = listed.map(|entry| read(entry["name"].as_str().unwrap_or_default(), entry));
    let rest = policy.spec().get("default").map(|entry| read(DEFAULT, entry));
    listed.chain(rest).collect()
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
