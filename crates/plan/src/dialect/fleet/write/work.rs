//! The writes that bring the Works of a binding in line with it, and take them away with it.

use std::collections::BTreeSet;

use convoy_api::Object;
use serde_json::{Map, Value, json};

use super::work_content::DesiredWork;
use crate::dialect::fleet::decide::works::Generation;
use crate::dialect::fleet::names::{PLACEMENT_GROUP, WORK, WORK_CLEANUP, member_namespace};
use crate::dialect::fleet::read::placement::{apply_strategy, field, list};
use crate::finalizer;
use crate::merge_patch;
use crate::step::{Action, Propagation, Verb, Why};

/// Adds the finalizer that keeps the binding until its Works are gone.
pub(crate) fn guarded(binding: &Object) -> Option<Action> {
    let why = Why::new("BindingGuarded", "its Works are to be deleted with it");
    finalizer::added(binding, &[WORK_CLEANUP], why)
}

/// What makes the Works as desired. None desired: only the apply strategy is brought up to date.
pub(crate) fn actions(generation: &Generation<'_>, desired: Option<&[DesiredWork]>) -> Vec<Action> {
    let Some(desired) = desired else {
        let strategy = field(generation.binding.object.spec(), "applyStrategy");
        let works = generation.works.iter();
        return works.filter_map(|work| restrategized(work, strategy)).collect();
    };
    let mut actions: Vec<Action> =
        desired.iter().filter_map(|work| written(generation, work)).collect();
    let names: BTreeSet<&str> = desired.iter().map(|work| work.name.as_str()).collect();
    let surplus = generation.works.iter().filter(|work| !names.contains(work.name().as_str()));
    actions.extend(surplus.map(|work| {
        let message = format!("the resources no longer need Work {}", work.name());
        let why = Why::new("WorkNotNeeded", message);
        Action::delete(Verb::Delete, work, Propagation::Background, why)
    }));
    actions
}

/// Takes the Works away, and lets the binding go once they are gone.
pub(crate) fn withdrawn(generation: &Generation<'_>, abandon: bool) -> Vec<Action> {
    let binding = generation.binding.object;
    let why = |message: &str| Why::new("BindingDeleted", message);
    let mut actions = Vec::new();
    if abandon {
        let held = generation.works.iter().chain(&generation.leaving);
        let message = "the placement's deleteStrategy is Abandon: its objects stay on the member";
        actions.extend(
            held.filter_map(|work| finalizer::removed(work, &[WORK_CLEANUP], why(message))),
        );
    }
    actions.extend(generation.works.iter().map(|work| {
        let why = why("the resources are taken off the cluster");
        Action::delete(Verb::Delete, work, Propagation::Background, why)
    }));
    if generation.works.is_empty() && generation.leaving.is_empty() {
        actions.extend(finalizer::removed(binding, &[WORK_CLEANUP], why("its Works are gone")));
    }
    actions
}

/// Creates or updates one Work. One that is being deleted is made again when it is gone.
fn written(generation: &Generation<'_>, desired: &DesiredWork) -> Option<Action> {
    let is_it = |work: &&&Object| *work.name() == desired.name;
    if generation.leaving.iter().any(|work| *work.name() == desired.name) {
        return None;
    }
    match generation.works.iter().find(is_it) {
        Some(work) => updated(work, desired),
        None => Some(created(generation, desired)),
    }
}

fn created(generation: &Generation<'_>, desired: &DesiredWork) -> Action {
    let binding = &generation.binding;
    let home = member_namespace(binding.cluster());
    let object = json!({
        "apiVersion": format!("{PLACEMENT_GROUP}/v1beta1"),
        "kind": WORK.kind,
        "metadata": {
            "name": desired.name,
            "namespace": home,
            "labels": desired.labels,
            "annotations": desired.annotations,
        },
        "spec": desired.spec,
    });
    let target = binding.object.key().sibling(&WORK, &home, &desired.name);
    Action::create(Verb::Create, target, object, why(generation))
}

fn updated(work: &Object, desired: &DesiredWork) -> Option<Action> {
    let mut metadata = Map::new();
    let stale = |wanted: &Map<String, Value>, has: &dyn Fn(&str) -> Option<String>| {
        let differs = |(key, value): &(&String, &Value)| has(key).as_deref() != value.as_str();
        let entries = wanted.iter().filter(differs);
        entries.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>()
    };
    let labels = stale(&desired.labels, &|key| work.label(key).map(str::to_owned));
    let annotations = stale(&desired.annotations, &|key| work.annotation(key).map(str::to_owned));
    for (name, entries) in [("labels", labels), ("annotations", annotations)] {
        if !entries.is_empty() {
            metadata.insert(name.to_owned(), Value::Object(entries));
        }
    }
    let mut patch = Map::new();
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    let spec = stale_spec(work, &desired.spec);
    if !spec.is_empty() {
        patch.insert("spec".to_owned(), Value::Object(spec));
    }
    let message = format!("Work {} gets what its binding says", work.name());
    let why = Why::new("WorkOutdated", message);
    (!patch.is_empty())
        .then(|| Action::patch(Verb::Advance, work, Value::Object(patch), why).concurrently())
}

/// The members of a Work's spec that say something else, as a merge patch.
fn stale_spec(work: &Object, desired: &Value) -> Map<String, Value> {
    let mut patch = Map::new();
    let manifests = |spec: &Value| list(field(spec, "workload"), "manifests").to_vec();
    if manifests(work.spec()) != manifests(desired) {
        patch.insert("workload".to_owned(), field(desired, "workload").clone());
    }
    let (has, wanted) = (field(work.spec(), "applyStrategy"), field(desired, "applyStrategy"));
    if apply_strategy(has) != apply_strategy(wanted) {
        patch.extend(changed("applyStrategy", has, wanted));
    }
    let name = "reportBackStrategy";
    patch.extend(changed(name, field(work.spec(), name), field(desired, name)));
    patch
}

fn restrategized(work: &Object, wanted: &Value) -> Option<Action> {
    let has = field(work.spec(), "applyStrategy");
    if apply_strategy(has) == apply_strategy(wanted) {
        return None;
    }
    let (name, patch) = changed("applyStrategy", has, wanted)?;
    let why = Why::new("ApplyStrategyChanged", "the placement's apply strategy changed");
    let patch = merge_patch::nested(&["spec", &name], patch);
    Some(Action::patch(Verb::Advance, work, patch, why).concurrently())
}

fn changed(name: &str, has: &Value, wanted: &Value) -> Option<(String, Value)> {
    Some((name.to_owned(), merge_patch::between(has, wanted)?))
}

fn why(generation: &Generation<'_>) -> Why {
    let binding = &generation.binding;
    let message =
        format!("cluster {} is to have {}", binding.cluster(), binding.resource_snapshot());
    Why::new("WorkMissing", message)
}
