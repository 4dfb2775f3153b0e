//! An applied configuration laid over the live object. Nothing is removed here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::element::Identity;
use super::grain::{Grain, child, entries, grain, items};
use super::own::identified;
use crate::shape::Shape;

/// `live` with everything that `config` mentions as `config` has it.
pub(super) fn merge(shape: Shape<'_>, live: &Value, config: &Value) -> Value {
    match grain(shape, config) {
        Grain::Whole => config.clone(),
        Grain::Keys => match (entries(Some(live)), entries(Some(config))) {
            // Neither has entries: whether it is null, empty or a scalar is the applier's word.
            (None, _) => config.clone(),
            (Some(_), None) => live.clone(),
            (Some(live), Some(config)) => Value::Object(merge_keys(shape, live, config)),
        },
        Grain::Items => match (items(Some(live)), items(Some(config))) {
            (None, _) => config.clone(),
            (Some(_), None) => live.clone(),
            (Some(live), Some(config)) => Value::Array(merge_items(shape, live, config)),
        },
    }
}

fn merge_keys(
    shape: Shape<'_>,
    live: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = Map::with_capacity(live.len().max(config.len()));
    for (key, live) in live {
        let value = match config.get(key) {
            Some(config) => merge(child(shape, key), live, config),
            None => live.clone(),
        };
        merged.insert(key.clone(), value);
    }
    for (key, config) in config.iter().filter(|(key, _)| !live.contains_key(*key)) {
        merged.insert(key.clone(), config.clone());
    }
    merged
}

/// Items of both lists, each once. The order of the configuration holds among the items that
/// both have; what only the live list has keeps its place among its neighbours, and what only
/// the configuration has comes after the item that it follows there.
fn merge_items(shape: Shape<'_>, live: &[Value], config: &[Value]) -> Vec<Value> {
    let live = identified(shape, Some(live));
    let config = identified(shape, Some(config));
    let mut lists = Lists::new(shape.items(), &live, &config);
    let (mut left, mut right) = (0, 0);
    while left < live.len() || right < config.len() {
        if left < live.len() && right < config.len() {
            let identity = &live[left].0;
            if *identity == config[right].0 {
                lists.take_config(right);
                lists.shared.pop_front();
                left += 1;
                right += 1;
                continue;
            }
            if lists.is_in_config(identity)
                && lists.shared.front().is_some_and(|next| *next != identity)
            {
                left += 1; // its turn comes where the configuration has it
                continue;
            }
        }
        if left < live.len() {
            let (identity, item) = &live[left];
            if !lists.is_in_config(identity) {
                lists.merged.push((*item).clone());
                left += 1;
                continue;
            }
            if lists.taken.contains(identity) {
                left += 1;
            }
        }
        if right < config.len() {
            lists.take_config(right);
            if lists.shared.front().is_some_and(|next| **next == config[right].0) {
                lists.shared.pop_front();
            }
            right += 1;
        }
    }
    lists.merged
}

/// Two lists on their way to become one.
struct Lists<'l, 'v> {
    items: Shape<'v>,
    config: &'l [(Identity<'v>, &'v Value)],
    /// None for an item that occurs twice: there is no one to merge with.
    live: BTreeMap<&'l Identity<'v>, Option<&'v Value>>,
    in_config: BTreeSet<&'l Identity<'v>>,
    /// Items of both lists that are still to come, in the order of the configuration.
    shared: VecDeque<&'l Identity<'v>>,
    taken: BTreeSet<&'l Identity<'v>>,
    merged: Vec<Value>,
}

impl<'l, 'v> Lists<'l, 'v> {
    fn new(
        items: Shape<'v>,
        live_items: &'l [(Identity<'v>, &'v Value)],
        config: &'l [(Identity<'v>, &'v Value)],
    ) -> Self {
        let mut live = BTreeMap::new();
        for (identity, item) in live_items {
            live.entry(identity).and_modify(|twice| *twice = None).or_insert(Some(*item));
        }
        let in_config: BTreeSet<_> = config.iter().map(|(identity, _)| identity).collect();
        let shared = config
            .iter()
            .map(|(id, _)| id)
            .filter(|identity| live.contains_key(identity))
            .collect();
        let merged = Vec::with_capacity(live_items.len().max(config.len()));
        Self { items, config, live, in_config, shared, taken: BTreeSet::new(), merged }
    }

    fn is_in_config(&self, identity: &Identity<'v>) -> bool {
        self.in_config.contains(identity)
    }

    fn take_config(&mut self, position: usize) {
        let (identity, item) = &self.config[position];
        self.taken.insert(identity);
        self.merged.push(match self.live.get(identity) {
            Some(Some(live)) => merge(self.items, live, item),
            _ => (*item).clone(),
        });
    }
}
