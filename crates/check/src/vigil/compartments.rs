//! Watches over a Skyhook while it is carried out: after every write, has a compartment more
//! nodes in progress than its ceiling, were more picked than a batch has or while the last batch
//! was going on, is a pod made where no slot was taken?
//!
//! It reads what stands on nodes, pods, policy and status, and nothing of how it came there. A
//! budget that gets smaller does not stop what has begun, a node keeps its slot when it moves, and
//! a loop may not know any of it yet: so until the loops have come to rest the loosest bound
//! holds, and who changed compartments counts in none. Compartments must not overlap.

use convoy_api::kinds::NODE;
use convoy_api::kinds::POD;
use std::collections::{BTreeMap, BTreeSet};

use convoy_api::{GroupKind, Object};
use convoy_plan::selector::Selector;
use serde_json::Value;

const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");
const POLICY: GroupKind = GroupKind::new("skyhook.nvidia.com", "DeploymentPolicy");
const NAME: &str = "skyhook.nvidia.com/name";
const DEFAULT: &str = "__default__";

/// One Skyhook with a policy, and its nodes.
#[derive(Clone, Debug)]
pub struct Compartments {
    skyhook: String,
    word: String,
    /// Which nodes it is about, once it was seen.
    selector: Option<Selector>,
    nodes: BTreeMap<String, Known>,
    /// By compartment, how many nodes it has and which are in progress. Counted along, so that a
    /// write costs as little in a large fleet as in a small one.
    members: BTreeMap<String, u64>,
    going: BTreeMap<String, BTreeSet<String>>,
    /// Nodes that were in progress when a pause came: they keep their slots.
    held: BTreeSet<String>,
    /// Nodes that left, or changed compartments, since the last rest.
    moved: BTreeSet<String>,
    /// Every policy since the last rest, the current one last.
    policies: Vec<Vec<Terms>>,
    /// By compartment.
    sizes: BTreeMap<String, Sizes>,
    picked: BTreeSet<String>,
    pods: BTreeSet<String>,
}

/// A node as it was last written, and its compartment.
#[derive(Clone, Debug)]
struct Known {
    node: Object,
    place: Option<String>,
}

/// How many nodes a compartment has had since the last rest.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    least: u64,
    most: u64,
    /// In progress at the last rest.
    going: u64,
}

/// What a policy says about one compartment.
#[derive(Clone, Debug)]
struct Terms {
    name: String,
    selector: Option<Selector>,
    budget: Value,
    strategy: Value,
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
            picked: BTreeSet::new(),
            pods: BTreeSet::new(),
        }
    }

    /// An object was written, or is gone. Err: what does not hold now.
    pub fn see(&mut self, object: &Object, is_gone: bool) -> Result<(), String> {
        match object.kind() {
            kind if *kind == NODE => self.see_node(object, is_gone),
            kind if *kind == POLICY => {
                if !is_gone {
                    self.policies.push(terms(object.spec()));
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

    /// The loops have seen everything, and have nothing to do: from here on bounds hold as they
    /// read now.
    pub fn rest(&mut self) {
        self.policies = self.policies.pop().into_iter().collect();
        self.moved.clear();
        self.sizes.clear();
        self.count_members();
        let names: Vec<String> = self.sizes.keys().cloned().collect();
        for name in names {
            let held = self.held.iter().filter(|held| self.place(held) == Some(&name));
            let going = count(self.in_progress(&name).len() + held.count());
            self.sizes.entry(name).and_modify(|sizes| sizes.going = going);
        }
    }

    fn see_node(&mut self, node: &Object, is_gone: bool) -> Result<(), String> {
        let name = node.name().to_string();
        self.hold(&name, Some(node).filter(|_| !is_gone));
        let before = self.nodes.remove(&name);
        if let Some(place) = before.as_ref().and_then(|known| known.place.as_ref()) {
            self.members.entry(place.clone()).and_modify(|count| *count -= 1);
            self.going.entry(place.clone()).and_modify(|names| _ = names.remove(&name));
        }
        let place = if is_gone { None } else { self.count_in(node.clone()) };
        match before {
            Some(before) if before.place == place => {}
            before => {
                self.moved.extend(before.is_some().then_some(name));
                self.count_members();
            }
        }
        let Some(compartment) = place else { return Ok(()) };
        let (going, most) = (self.in_progress(&compartment), self.ceiling(&compartment));
        if count(going.len()) > most {
            return Err(format!("{going:?} are in progress in {compartment}, where {most} may be"));
        }
        Ok(())
    }

    /// Notes whether a node has a slot that a pause hides.
    fn hold(&mut self, name: &str, after: Option<&Object>) {
        let going = self.place(name).and_then(|place| self.going.get(place));
        let had = self.held.contains(name) || going.is_some_and(|names| names.contains(name));
        let word = after.and_then(|node| node.annotation(&self.word));
        if had && matches!(word, Some("paused" | "disabled")) {
            self.held.insert(name.to_owned());
        } else {
            self.held.remove(name);
        }
    }

    /// The compartment that a node was last seen in.
    fn place(&self, name: &str) -> Option<&str> {
        self.nodes.get(name)?.place.as_deref()
    }

    /// Puts a node where it belongs; gives that back.
    fn count_in(&mut self, node: Object) -> Option<String> {
        let place = self.place_of(&node).map(str::to_owned);
        let name = node.name().to_string();
        if let Some(place) = &place {
            *self.members.entry(place.clone()).or_default() += 1;
            if node.annotation(&self.word) == Some("in_progress") {
                self.going.entry(place.clone()).or_default().insert(name.clone());
            }
        }
        self.nodes.insert(name, Known { node, place: place.clone() });
        place
    }

    /// Puts every node where it belongs now.
    fn sort_nodes(&mut self) {
        self.members.clear();
        self.going.clear();
        for known in std::mem::take(&mut self.nodes).into_values() {
            self.count_in(known.node);
        }
    }

    /// Whether no more were picked than a batch has, by the state that is published with them.
    fn see_skyhook(&mut self, skyhook: &Object) -> Result<(), String> {
        if self.selector.is_none() {
            let selector = skyhook.spec().get("nodeSelectors").unwrap_or(&Value::Null);
            self.selector = Selector::from_value(selector).ok();
            self.sizes.clear();
            self.sort_nodes();
            self.count_members();
        }
        let picked = skyhook.status().get("nodePriority").and_then(Value::as_object);
        let picked: BTreeSet<String> =
            picked.into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let before = std::mem::replace(&mut self.picked, picked);
        let mut new: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for name in self.picked.difference(&before).filter(|name| !self.moved.contains(*name)) {
            let Some(place) = self.place(name) else { continue };
            new.entry(place).or_default().push(name);
        }
        for (compartment, names) in new {
            let published = skyhook.status().get("compartmentStatuses");
            let state = published.and_then(|all| all.get(compartment)?.get("batchState"));
            let most = self.batch(compartment, state.unwrap_or(&Value::Null));
            if count(names.len()) > most {
                return Err(format!("{names:?} are picked in {compartment}, where {most} may be"));
            }
            let going = self.in_progress(compartment);
            if going.iter().any(|name| !names.contains(name)) {
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
        let known = self.nodes.get(node);
        let word = known.map(|known| known.node.annotation(&self.word).unwrap_or("none"));
        match word {
            // A pause leaves what was begun, and may come between a slot and its pod.
            None | Some("in_progress" | "paused" | "disabled") => Ok(()),
            Some(_) if self.moved.contains(node) => Ok(()),
            Some(word) => Err(format!("{} is made on {node}, which is {word}", pod.key())),
        }
    }

    /// Takes up how many nodes there are now.
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

    /// The most nodes that may be in progress, by any policy since the last rest.
    fn ceiling(&self, compartment: &str) -> u64 {
        let Some(sizes) = self.sizes.get(compartment) else { return 1 };
        let ceilings = self.terms_of(compartment).map(|terms| terms.ceiling(sizes.most));
        ceilings.max().unwrap_or(1).max(sizes.going)
    }

    /// The most nodes that the next batch may have, by any policy since the last rest.
    fn batch(&self, compartment: &str, state: &Value) -> u64 {
        let Some(sizes) = self.sizes.get(compartment) else { return 0 };
        let ceiling = self.ceiling(compartment);
        self.terms_of(compartment)
            .map(|terms| terms.size(state, *sizes, ceiling))
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

    /// The compartment of a node, if the Skyhook is about it.
    fn place_of(&self, node: &Object) -> Option<&str> {
        let current = self.policies.last().into_iter().flatten();
        let mut matching = current
            .filter(|terms| terms.selector.as_ref().is_some_and(|selector| selector.matches(node)));
        let place = matching.next().map_or(DEFAULT, |terms| &terms.name);
        self.selector.as_ref().is_none_or(|selector| selector.matches(node)).then_some(place)
    }
}

impl Terms {
    /// How many nodes the document lets go at once; one at least.
    fn ceiling(&self, members: u64) -> u64 {
        let number = |field: &str| self.budget.get(field).and_then(Value::as_u64);
        let percent = number("percent").map(|percent| members * percent / 100);
        percent.or_else(|| number("count")).unwrap_or(0).max(1)
    }

    /// How many nodes the next batch has at most.
    fn size(&self, state: &Value, members: Sizes, ceiling: u64) -> u64 {
        let kinds = ["fixed", "linear", "exponential"];
        let kind = kinds.into_iter().find(|kind| self.strategy.get(kind).is_some());
        let Some(kind) = kind else { return ceiling };
        let given = |field: &str, default: u64| {
            self.strategy[kind].get(field).and_then(Value::as_u64).unwrap_or(default)
        };
        let told = |field: &str| state.get(field).and_then(Value::as_u64).unwrap_or(0);
        let processed = told("completedNodes") + told("failedNodes");
        // Fewer nodes are further on, and slow down no more.
        let progress = (processed * 100).checked_div(members.least).unwrap_or(100);
        let failed = state.get("lastBatchFailed").and_then(Value::as_bool) == Some(true);
        let slow = failed && progress < given("safetyLimit", 50);
        let (last, first) = (told("lastBatchSize"), given("initialBatch", 1));
        let (delta, factor) = (given("delta", 1), given("growthFactor", 2));
        let size = match (kind, last, slow) {
            ("fixed", ..) | (_, 0, _) => first,
            ("linear", last, true) => last.saturating_sub(delta),
            ("linear", last, false) => last + delta,
            (_, last, true) => last / factor,
            (_, last, false) => last * factor,
        };
        let remaining = members.most.saturating_sub(processed);
        size.min(remaining).max(1).min(ceiling)
    }
}

fn terms(policy: &Value) -> Vec<Terms> {
    let read = |name: &str, entry: &Value| {
        let field = |field: &str| entry.get(field).cloned().unwrap_or_default();
        let selector = entry.get("selector").and_then(|value| Selector::from_value(value).ok());
        let name = name.to_owned();
        Terms { name, selector, budget: field("budget"), strategy: field("strategy") }
    };
    let listed = policy.get("compartments").and_then(Value::as_array).into_iter().flatten();
    let listed = listed.map(|entry| read(entry["name"].as_str().unwrap_or_default(), entry));
    let rest = policy.get("default").map(|entry| read(DEFAULT, entry));
    listed.chain(rest).collect()
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{Builder, node, object};
    use serde_json::json;

    use super::*;

    fn policy(count: u64, strategy: Value) -> Object {
        object("skyhook.nvidia.com/v1alpha1", "DeploymentPolicy", "p")
            .spec(json!({"default": {"budget": {"count": count}, "strategy": strategy}}))
            .build()
    }

    fn going(name: &str) -> Builder {
        node(name).annotation("skyhook.nvidia.com/status_s", "in_progress")
    }

    fn picked(names: &[&str], state: Value) -> Object {
        let picked: BTreeMap<&str, &str> = names.iter().map(|name| (*name, "now")).collect();
        object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
            .status(json!({"nodePriority": picked,
                "compartmentStatuses": {DEFAULT: {"batchState": state}}}))
            .build()
    }

    #[test]
    fn ceilings_hold_and_a_smaller_one_only_after_a_rest() {
        let mut vigil = Compartments::of("s");
        vigil.see(&policy(2, json!({})), false).unwrap();
        for name in ["a", "b"] {
            vigil.see(&going(name).build(), false).unwrap();
        }
        assert!(vigil.see(&going("c").build(), false).is_err());
        vigil.see(&node("c").build(), false).unwrap();
        vigil.see(&policy(1, json!({})), false).unwrap();
        vigil.see(&node("b").build(), false).unwrap();
        vigil.see(&going("b").build(), false).unwrap();
        vigil.see(&node("b").build(), false).unwrap();
        vigil.rest();
        assert!(vigil.see(&going("b").build(), false).is_err());
    }

    #[test]
    fn a_pause_leaves_slots_where_they_are() {
        let mut vigil = Compartments::of("s");
        vigil.see(&policy(2, json!({})), false).unwrap();
        let paused = |name: &str| node(name).annotation("skyhook.nvidia.com/status_s", "paused");
        for name in ["a", "b"] {
            vigil.see(&going(name).build(), false).unwrap();
            vigil.see(&paused(name).build(), false).unwrap();
        }
        vigil.see(&paused("c").build(), false).unwrap();
        vigil.see(&policy(1, json!({})), false).unwrap();
        vigil.rest();
        vigil.see(&going("a").build(), false).unwrap();
        vigil.see(&going("b").build(), false).unwrap();
        assert!(vigil.see(&going("c").build(), false).is_err());
    }

    #[test]
    fn who_moves_keeps_its_slot_and_takes_no_other() {
        let pool = json!({"name": "pool", "budget": {"count": 1},
            "selector": {"matchLabels": {"pool": "a"}}});
        let policy = object("skyhook.nvidia.com/v1alpha1", "DeploymentPolicy", "p")
            .spec(json!({"default": {"budget": {"count": 1}}, "compartments": [pool]}));
        let mut vigil = Compartments::of("s");
        vigil.see(&policy.build(), false).unwrap();
        vigil.see(&going("a").label("pool", "a").build(), false).unwrap();
        vigil.see(&going("b").build(), false).unwrap();
        vigil.see(&going("b").label("pool", "a").build(), false).unwrap();
        assert!(vigil.see(&going("c").label("pool", "a").build(), false).is_err());
        vigil.see(&node("c").label("pool", "a").build(), false).unwrap();
        vigil.see(&going("d").build(), false).unwrap();
        assert!(vigil.see(&going("e").build(), false).is_err());
    }

    #[test]
    fn nodes_that_the_skyhook_is_not_about_do_not_count() {
        let mut vigil = Compartments::of("s");
        vigil.see(&policy(1, json!({})), false).unwrap();
        let skyhook = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
            .spec(json!({"nodeSelectors": {"matchLabels": {"fleet": "yes"}}}));
        vigil.see(&skyhook.build(), false).unwrap();
        vigil.see(&going("a").build(), false).unwrap();
        vigil.see(&going("b").label("fleet", "yes").build(), false).unwrap();
        assert!(vigil.see(&going("c").label("fleet", "yes").build(), false).is_err());
    }

    #[test]
    fn nobody_is_picked_while_a_batch_goes_on() {
        let mut vigil = Compartments::of("s");
        vigil.see(&policy(2, json!({})), false).unwrap();
        for name in ["a", "b"] {
            vigil.see(&node(name).build(), false).unwrap();
        }
        vigil.see(&picked(&["a"], json!({})), false).unwrap();
        vigil.see(&going("a").build(), false).unwrap();
        assert!(vigil.see(&picked(&["a", "b"], json!({})), false).is_err());
    }

    #[test]
    fn a_batch_has_as_many_as_its_strategy_says() {
        let strategy = json!({"exponential": {}});
        let failed = json!({"lastBatchSize": 2, "lastBatchFailed": true, "failedNodes": 2});
        let grown = json!({"lastBatchSize": 1, "completedNodes": 1});
        let cases = [
            (&["a"][..], json!({}), true),
            (&["a", "b"], json!({}), false),
            (&["a", "b"], grown.clone(), true),
            (&["a", "b", "c"], grown, false),
            (&["a", "b"], failed, false),
        ];
        for (names, state, expected) in cases {
            let mut vigil = Compartments::of("s");
            vigil.see(&policy(9, strategy.clone()), false).unwrap();
            for name in ["a", "b", "c", "d", "e", "f"] {
                vigil.see(&node(name).build(), false).unwrap();
            }
            let seen = vigil.see(&picked(names, state.clone()), false);
            assert_eq!(seen.is_ok(), expected, "{names:?} {state}");
        }
    }

    #[test]
    fn pods_are_made_where_a_slot_was_taken() {
        let mut vigil = Compartments::of("s");
        vigil.see(&policy(1, json!({})), false).unwrap();
        vigil.see(&node("a").build(), false).unwrap();
        let pod = |uid: &str| {
            let made = object("v1", "Pod", uid).with("/metadata/uid", json!(uid)).label(NAME, "s");
            made.spec(json!({"nodeName": "a"})).build()
        };
        assert!(vigil.see(&pod("one"), false).is_err());
        vigil.see(&going("a").build(), false).unwrap();
        assert!(vigil.see(&pod("two"), false).is_ok());
    }
}
