//! The comparison of plans with what controllers did: for every decision of a recorded run, `convoy
//! plan` on the recorded snapshot gives the actions and the status that the control loop wrote. A
//! snapshot has whole objects as a server returns them, read from text, where a loop has projections
//! in its cache; kinds that the loop does not watch are there as well.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::kinds::POD_DISRUPTION_BUDGET;
use convoy_api::object::member::{list, text};
use convoy_api::ocm::names::{MANIFEST_WORK_REPLICA_SET, PLACEMENT_DECISION, PLACEMENT_LABEL};
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_controllers::cache::Cache;
use convoy_plan::{
    Action, DIALECTS, Dialect, HoldReason, Step, World, Write, decide, plan, validate_object,
};
use convoy_sim::simulation::cluster::{Author, WriteRecord};
use convoy_store::Change;
use jiff::Timestamp;
use serde_json::{Value, json};

/// A decision, and what the loop knew.
pub(crate) struct Decided {
    /// The number of the loop.
    pub(crate) index: usize,
    pub(crate) step: Step,
    pub(crate) now: Timestamp,
    /// The kinds that it had read, and the versions of all objects.
    kinds: BTreeSet<GroupKind>,
    versions: Vec<(ObjectKey, String)>,
}

impl Decided {
    pub(crate) fn new(index: usize, step: &Step, cache: &Cache, now: Timestamp) -> Self {
        let version = |it: &Object| it.resource_version().unwrap_or_default().to_owned();
        let versions = cache.world().iter().map(|it| (it.key().clone(), version(it))).collect();
        let kinds = cache.versions().keys().map(|it| it.kind.clone()).collect();
        Self { index, step: step.clone(), now, kinds, versions }
    }
}

/// The versions of all objects, and how plans compare with what was decided and written.
pub(crate) struct Comparison {
    /// The dialects of each loop.
    loops: Vec<Vec<&'static dyn Dialect>>,
    /// By the version, as the server gave it.
    versions: BTreeMap<(ObjectKey, String), Object>,
    newest: BTreeMap<ObjectKey, Object>,
    /// The writes that the plans of recorded snapshots have, by their targets.
    planned: BTreeMap<ObjectKey, Vec<Write>>,
    /// Decisions that a plan has, and those of controllers that a plan does not have: agents, and
    /// what a hub does for its clusters.
    pub(crate) compared: usize,
    pub(crate) beside: usize,
    pub(crate) writes: usize,
    pub(crate) differences: Vec<String>,
    /// Plans are changed by this before they are compared.
    distort: fn(&mut Vec<Action>),
}

/// Nothing is changed.
pub(crate) const AS_IT_IS: fn(&mut Vec<Action>) = |_| ();

impl Comparison {
    pub(crate) fn new(
        loops: Vec<Vec<&'static dyn Dialect>>,
        distort: fn(&mut Vec<Action>),
    ) -> Self {
        Self {
            loops,
            versions: BTreeMap::new(),
            newest: BTreeMap::new(),
            planned: BTreeMap::new(),
            compared: 0,
            beside: 0,
            writes: 0,
            differences: Vec::new(),
            distort,
        }
    }

    /// A version of an object is there, or it is gone.
    pub(crate) fn note(&mut self, object: &Object, is_deletion: bool) {
        if is_deletion {
            self.newest.remove(object.key());
            return;
        }
        self.newest.insert(object.key().clone(), object.clone());
        let version = object.resource_version().unwrap_or_default().to_owned();
        self.versions.insert((object.key().clone(), version), object.clone());
    }

    /// The objects that a loop knows, whole, in the versions that it knows; and those of other kinds
    /// of the home cluster as they are now.
    fn snapshot(&self, decided: &Decided) -> World {
        let mut known = decided.kinds.clone();
        for dialect in &self.loops[decided.index] {
            let watches = dialect.watches().iter().chain(dialect.member_watches());
            known.extend(watches.map(|watch| watch.kind.clone()));
        }
        let known_objects = decided.versions.iter().map(|at| {
            self.versions.get(at).unwrap_or_else(|| panic!("{} was never written so", at.0))
        });
        let others = self
            .newest
            .values()
            .filter(|object| object.key().cluster.is_empty() && !known.contains(object.kind()));
        known_objects.chain(others).map(recorded).collect()
    }

    /// Compares a decision with the plan of what was known, unless nothing was decided.
    pub(crate) fn compare(&mut self, decided: &Decided) {
        if is_postponed(&decided.step) {
            return;
        }
        let world = self.snapshot(decided);
        let (step, is_planned) = replayed(&world, &self.loops[decided.index], decided);
        *(if is_planned { &mut self.compared } else { &mut self.beside }) += 1;
        let rollout = &decided.step.rollout;
        let Some(mut step) = step else {
            return self.differences.push(format!("{rollout} is in no plan"));
        };
        (self.distort)(&mut step.actions);
        let written = |step: &Step| json!({"actions": step.actions, "status": step.status});
        if written(&step) != written(&decided.step) {
            let (plan, wrote) = (written(&step), written(&decided.step));
            self.differences.push(format!("{rollout}: plan {plan:#}\nloop {wrote:#}"));
        }
        for action in step.actions {
            self.planned.entry(action.target).or_default().push(action.write);
        }
    }

    /// Begins with the first records again; versions stay known.
    pub(crate) fn forget_newest(&mut self) {
        self.newest.clear();
    }

    /// Looks for the plan that has what was written.
    pub(crate) fn wrote(&mut self, record: &WriteRecord) {
        let object = &record.object;
        let key = object.key();
        // The server itself counts an eviction in the status of a budget.
        let is_of_loop = record.by == Author::Controller && *object.kind() != POD_DISRUPTION_BUDGET;
        let before = self.newest.get(key);
        if is_of_loop && before.is_none_or(|before| differ(before, object)) {
            self.writes += 1;
            let planned = self.planned.get(key).map(Vec::as_slice).unwrap_or_default();
            if !planned.iter().rev().any(|write| explains(write, record)) {
                let (change, raw) = (record.change, object.raw());
                let what = format!("{change:?} {key} is in no plan: {raw}\nplans: {planned:#?}");
                self.differences.push(what);
            }
        }
        self.note(object, record.is_deletion());
    }
}

/// An object as somebody reads it from a file.
fn recorded(object: &Object) -> Object {
    let text = object.raw().to_string();
    let raw: Value = serde_json::from_str(&text).expect("it was JSON");
    Object::from_value(raw).expect("it was an object").in_cluster(&object.key().cluster)
}

/// The step of a rollout as `convoy plan` has it, and whether it has it. A controller that `convoy
/// plan` does not have is asked itself.
fn replayed(
    world: &World,
    dialects: &[&'static dyn Dialect],
    decided: &Decided,
) -> (Option<Step>, bool) {
    let (rollout, now) = (&decided.step.rollout, decided.now);
    let is_it = |step: &Step| step.rollout == *rollout && step.dialect == decided.step.dialect;
    let is_planned = DIALECTS.iter().any(|dialect| dialect.name() == decided.step.dialect)
        && !is_ahead(world, rollout);
    let steps = if is_planned { plan(world, now).steps } else { Vec::new() };
    if let Some(step) = steps.into_iter().find(is_it) {
        return (Some(step), true);
    }
    let is_own = |dialect: &&&'static dyn Dialect| {
        let object = world.get(rollout);
        dialect.name() == decided.step.dialect
            && object.is_some_and(|object| dialect.is_rollout(world, object))
    };
    let Some(dialect) = dialects.iter().find(is_own) else { return (None, false) };
    let validated = world.by_kind().filter(|(kind, _)| dialect.validates(kind));
    let refused: Vec<_> = validated
        .flat_map(|(_, objects)| objects)
        .flat_map(|object| validate_object(*dialect, world, object))
        .collect();
    (decide(*dialect, world, &refused, rollout, now), false)
}

/// Whether `convoy plan` looks one decision ahead: it schedules a Placement that has no decisions
/// yet for the replica sets that name it, where the hub waits for its own decisions.
fn is_ahead(world: &World, rollout: &ObjectKey) -> bool {
    let replica_set = world.get(rollout).filter(|it| *it.kind() == MANIFEST_WORK_REPLICA_SET);
    let Some(replica_set) = replica_set else { return false };
    let references = list(replica_set.spec(), "placementRefs").iter();
    references.map(|reference| text(reference, "name")).any(|name| {
        let is_of = |it: &Object| it.label(PLACEMENT_LABEL) == Some(name);
        !world.in_namespace(&PLACEMENT_DECISION, replica_set.namespace()).any(is_of)
    })
}

/// Whether nothing was decided, because a watch had not begun.
fn is_postponed(step: &Step) -> bool {
    step.holds.iter().any(|hold| matches!(hold.reason, HoldReason::NotObserved { .. }))
}

/// Whether more than the status differs: statuses are compared with their steps.
fn differ(before: &Object, after: &Object) -> bool {
    let rest = |object: &Object| {
        let mut raw = object.raw().clone();
        raw["status"] = Value::Null;
        for field in ["resourceVersion", "managedFields"] {
            raw["metadata"][field] = Value::Null;
        }
        raw
    };
    rest(before) != rest(after)
}

/// Whether a planned write has led to what was written.
fn explains(write: &Write, record: &WriteRecord) -> bool {
    let object = record.object.raw();
    match write {
        Write::Create { object: made } => record.change == Change::Created && has(object, made),
        Write::Patch { patch, .. } => has(object, patch),
        Write::Apply { object: applied, .. } => has(object, applied),
        Write::Delete { .. } | Write::Evict { .. } => {
            record.is_deletion() || record.object.is_deleting()
        }
    }
}

/// Whether an object has what a patch or a manifest says; a server adds defaults, also where a patch
/// removes a field, and leaves out what is empty.
fn has(object: &Value, part: &Value) -> bool {
    match (object, part) {
        (_, Value::Null) => true,
        (Value::Object(object), Value::Object(part)) => {
            part.iter().all(|(name, value)| has(object.get(name).unwrap_or(&Value::Null), value))
        }
        (Value::Array(all), Value::Array(part)) => {
            part.iter().all(|part| all.iter().any(|one| has(one, part)))
        }
        (Value::Null, Value::Object(part)) => part.values().all(|it| has(&Value::Null, it)),
        (Value::Null, Value::Array(part)) => part.is_empty(),
        (object, part) => object == part,
    }
}
