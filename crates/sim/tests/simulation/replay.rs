//! Plans agree with controllers: for every decision of a recorded run, `convoy plan` on the recorded
//! snapshot gives the actions and the status that the control loop wrote. A snapshot has whole
//! objects as a server returns them, read from text, where a loop has projections in its cache;
//! kinds that the loop does not watch are there as well.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::kinds::POD_DISRUPTION_BUDGET;
use convoy_api::object::member::{list, text};
use convoy_api::ocm::names::{MANIFEST_WORK_REPLICA_SET, PLACEMENT_DECISION, PLACEMENT_LABEL};
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::dialect::fleet;
use convoy_plan::{
    Action, DIALECTS, Dialect, HoldReason, Step, World, Write, decide, plan, validate_object,
};
use convoy_sim::seed::Seed;
use convoy_sim::simulation::apps::Apps;
use convoy_sim::simulation::cluster::{Author, ServerKind, WriteRecord};
use convoy_sim::simulation::disruptions::Disruptions;
use convoy_sim::simulation::fleets::Fleets;
use convoy_sim::simulation::ocm::OcmFleet;
use convoy_sim::simulation::skyhooks::Skyhooks;
use convoy_sim::simulation::{Decision, RunSettings, Simulation, Trial};
use convoy_store::Change;
use serde_json::{Value, json};

use crate::observed::{Observed, Onlooker};

/// The versions of all objects, and what was decided about them.
struct Recorder {
    loops: Vec<Vec<&'static dyn Dialect>>,
    /// By the version, as the server gave it.
    versions: BTreeMap<(ObjectKey, String), Object>,
    newest: BTreeMap<ObjectKey, Object>,
    /// The writes that the plans of recorded snapshots have, by their targets.
    planned: BTreeMap<ObjectKey, Vec<Write>>,
    /// Decisions that a plan has, and those of controllers that a plan does not have: agents, and
    /// what a hub does for its clusters.
    compared: usize,
    beside: usize,
    writes: usize,
    differences: Vec<String>,
    /// Plans are changed by this before they are compared.
    distort: fn(&mut Vec<Action>),
}

impl Recorder {
    fn of<T: Trial>(trial: &T, distort: fn(&mut Vec<Action>)) -> Self {
        Self {
            loops: trial.loops(),
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

    /// The objects that a loop knows, whole, in the versions that it knows; and those of other kinds
    /// of the home cluster as they are now.
    fn snapshot(&self, decision: &Decision<'_>) -> World {
        let mut known: BTreeSet<GroupKind> =
            decision.cache.versions().keys().map(|it| it.kind.clone()).collect();
        for dialect in &self.loops[decision.index] {
            let watches = dialect.watches().iter().chain(dialect.member_watches());
            known.extend(watches.map(|watch| watch.kind.clone()));
        }
        let known_objects = decision.cache.world().iter().map(|object| {
            let version = object.resource_version().unwrap_or_default().to_owned();
            let whole = self.versions.get(&(object.key().clone(), version));
            whole.unwrap_or_else(|| panic!("{} was never written so", object.key()))
        });
        let others = self
            .newest
            .values()
            .filter(|object| object.key().cluster.is_empty() && !known.contains(object.kind()));
        known_objects.chain(others).map(recorded).collect()
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
    decided: &Decision<'_>,
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

impl Onlooker for Recorder {
    fn decided(&mut self, decision: &Decision<'_>) {
        if is_postponed(decision.step) {
            return;
        }
        let world = self.snapshot(decision);
        let (step, is_planned) = replayed(&world, &self.loops[decision.index], decision);
        *(if is_planned { &mut self.compared } else { &mut self.beside }) += 1;
        let rollout = &decision.step.rollout;
        let Some(mut step) = step else {
            return self.differences.push(format!("{rollout} is in no plan"));
        };
        (self.distort)(&mut step.actions);
        let written = |step: &Step| json!({"actions": step.actions, "status": step.status});
        if written(&step) != written(decision.step) {
            let (plan, wrote) = (written(&step), written(decision.step));
            self.differences.push(format!("{rollout}: plan {plan:#}\nloop {wrote:#}"));
        }
        for action in step.actions {
            self.planned.entry(action.target).or_default().push(action.write);
        }
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let object = &record.object;
        let key = object.key();
        // The server itself counts an eviction in the status of a budget.
        let is_of_loop = record.by == Author::Controller && *object.kind() != POD_DISRUPTION_BUDGET;
        let before = self.newest.get(key);
        if is_of_loop && before.is_none_or(|before| differ(before, object)) {
            self.writes += 1;
            let planned = self.planned.get(key).into_iter().flatten();
            if !planned.rev().any(|write| explains(write, record)) {
                let what = format!("{:?} {key} is in no plan: {}", record.change, object.raw());
                self.differences.push(what);
            }
        }
        if record.is_deletion() {
            self.newest.remove(key);
        } else {
            self.newest.insert(key.clone(), object.clone());
            let version = object.resource_version().unwrap_or_default().to_owned();
            self.versions.insert((key.clone(), version), object.clone());
        }
        Ok(())
    }
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

/// Whether an object has what a patch or a manifest says; a server adds defaults, and leaves out
/// what is empty.
fn has(object: &Value, part: &Value) -> bool {
    match (object, part) {
        (Value::Object(object), Value::Object(part)) => {
            part.iter().all(|(name, value)| has(object.get(name).unwrap_or(&Value::Null), value))
        }
        (Value::Array(all), Value::Array(part)) => {
            part.iter().all(|part| all.iter().any(|one| has(one, part)))
        }
        (Value::Null, part) => {
            part.is_null()
                || part
                    .as_object()
                    .is_some_and(|part| part.values().all(|it| has(&Value::Null, it)))
                || part.as_array().is_some_and(Vec::is_empty)
        }
        (object, part) => object == part,
    }
}

/// Runs a trial and compares.
fn replay<T: Trial>(
    seed: u64,
    (trial, settings): (T, RunSettings),
    distort: fn(&mut Vec<Action>),
) -> Recorder {
    let mut recorder = Recorder::of(&trial, distort);
    let trial = Observed { trial, onlooker: &mut recorder };
    let run = Simulation::new(Seed::new(seed), settings, trial).run();
    run.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    recorder
}

/// Runs some seeds of a dialect; all plans equal what was written.
fn agrees(dialect: &str, decisions: usize, run: impl Fn(u64) -> Recorder) {
    let (mut compared, mut beside, mut writes) = (0, 0, 0);
    for seed in 0..SEEDS {
        let recorder = run(seed);
        let differences = recorder.differences;
        let (count, first) = (differences.len(), differences.first());
        assert!(
            count == 0,
            "{dialect}, seed {seed}: {count} differ, first {}",
            first.expect("one")
        );
        compared += recorder.compared;
        beside += recorder.beside;
        writes += recorder.writes;
    }
    eprintln!("{dialect}: {compared} plans, {beside} of other controllers, {writes} writes");
    assert!(compared >= decisions, "{dialect}: only {compared} decisions were planned");
    assert!(writes > 0, "{dialect}: nothing was written");
}

const SEEDS: u64 = 2;

/// With the options that `convoy plan` assumes.
static HUB: fleet::Hub = fleet::Hub { options: fleet::Options::new() };

/// Nothing is changed.
const AS_IT_IS: fn(&mut Vec<Action>) = |_| ();

#[test]
fn plans_of_deployments_equal_what_was_written() {
    agrees("apps", 100, |seed| replay(seed, Apps::from_seed(seed, ServerKind::Real), AS_IT_IS));
}

#[test]
fn plans_of_skyhooks_equal_what_was_written() {
    agrees("skyhook", 100, |seed| {
        replay(seed, Skyhooks::from_seed(seed, ServerKind::Real), AS_IT_IS)
    });
}

#[test]
fn plans_of_placements_equal_what_was_written() {
    agrees("fleet", 100, |seed| {
        let (trial, settings) = Fleets::from_seed(seed);
        replay(seed, (trial.with_hub(&HUB), settings), AS_IT_IS)
    });
}

#[test]
fn plans_of_pools_equal_what_was_written() {
    agrees("karpenter", 100, |seed| replay(seed, Disruptions::from_seed(seed), AS_IT_IS));
}

#[test]
fn plans_of_replica_sets_equal_what_was_written() {
    agrees("ocm", 100, |seed| replay(seed, OcmFleet::from_seed(seed), AS_IT_IS));
}

/// The comparisons above show a plan that lacks an action: it differs from the decision, and the
/// write is in no plan.
#[test]
fn a_plan_that_lacks_an_action_is_found_out() {
    let recorder = replay(0, Apps::from_seed(0, ServerKind::Light), |actions| {
        actions.retain(|action| !matches!(action.write, Write::Delete { .. }));
    });
    let found = |what: &str| recorder.differences.iter().any(|it| it.contains(what));
    assert!(found(": plan "), "{:?}", recorder.differences);
    assert!(found("Modified Pod/") || found("Deleted Pod/"), "{:?}", recorder.differences);
}
