//! What an update run is about: the placement, its policy as scheduled, and its bindings.
//! Looked up afresh in every pass, first to initialise the run and later to see that nothing
//! changed under it.

use std::collections::BTreeMap;

use convoy_api::Object;
use serde_json::{Map, Value, json};

use crate::dialect::fleet::decide::rollout;
use crate::dialect::fleet::decide::staged::Halt;
use crate::dialect::fleet::names::{self, Family, NUMBER_OF_CLUSTERS, POLICY_INDEX};
use crate::dialect::fleet::read::binding::{Binding, State};
use crate::dialect::fleet::read::placement::{Placement, Strategy, field, list, text};
use crate::snapshot::Snapshot;

/// The world as far as a run is concerned.
#[derive(Debug)]
pub(crate) struct Scope<'w> {
    pub(crate) placement: Placement<'w>,
    /// The index of the newest policy snapshot, as its label says.
    pub(crate) policy_index: &'w str,
    /// How many clusters the policy asks for.
    pub(crate) cluster_count: usize,
    /// Scheduled and bound bindings, by name.
    pub(crate) update: Vec<Binding<'w>>,
    /// De-selected bindings, by name.
    pub(crate) delete: Vec<Binding<'w>>,
}

impl<'w> Scope<'w> {
    pub(crate) fn find(snapshot: &Snapshot<'w>, run: &'w Object) -> Result<Self, Halt> {
        let placement = placement(snapshot, run)?;
        let policy = latest_policy(snapshot, &placement)?;
        let policy_index = policy.label(POLICY_INDEX).filter(|index| !index.is_empty());
        let policy_index = policy_index.ok_or_else(|| {
            Halt::abort(format!("policy snapshot {} has no index", policy.name()))
        })?;
        let expected = expected(policy)?;
        let scheduled = current_status(policy, "Scheduled") == Some("True");
        if !scheduled {
            return Err(Halt::abort(format!(
                "policy snapshot {} is not fully scheduled yet",
                policy.name()
            )));
        }
        let (update, delete) = sorted(snapshot, &placement, policy)?;
        if update.is_empty() && delete.is_empty() {
            let name = policy.name();
            return Err(Halt::abort(format!("no bindings found for policy snapshot {name}")));
        }
        let cluster_count = expected.unwrap_or(update.len());
        if cluster_count != update.len() {
            return Err(Halt::abort(format!(
                "{} bindings are scheduled where the policy asks for {cluster_count} clusters",
                update.len()
            )));
        }
        Ok(Self { placement, policy_index, cluster_count, update, delete })
    }

    /// The bindings to be updated, by cluster.
    pub(crate) fn by_cluster(&self) -> BTreeMap<&str, &Binding<'w>> {
        self.update.iter().map(|binding| (binding.cluster(), binding)).collect()
    }
}

fn placement<'w>(snapshot: &Snapshot<'w>, run: &Object) -> Result<Placement<'w>, Halt> {
    let name = text(run.spec(), "placementName");
    let kind = Family::of(run).placement();
    let object = snapshot.find(&kind, run.namespace(), name);
    let object = object.ok_or_else(|| Halt::abort(format!("{} {name:?} not found", kind.kind)))?;
    let placement = Placement::read(object).map_err(|unsound| Halt::abort(unsound.to_string()))?;
    match placement.strategy {
        Strategy::External => Ok(placement),
        Strategy::RollingUpdate(_) => Err(Halt::abort(format!(
            "{} {name:?} has strategy RollingUpdate, an update run needs External",
            kind.kind
        ))),
    }
}

fn latest_policy<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'_>,
) -> Result<&'w Object, Halt> {
    let all = snapshot.of(&placement.family.policy_snapshot()).iter().copied();
    let mut latest = all.filter(|object| placement.owns(object) && names::is_latest(object));
    match (latest.next(), latest.next()) {
        (Some(policy), None) => Ok(policy),
        (None, _) => Err(Halt::abort(format!(
            "placement {} has no latest policy snapshot",
            placement.name()
        ))),
        (Some(one), Some(two)) => Err(Halt::abort(format!(
            "policy snapshots {} and {} both claim to be the latest",
            one.name(),
            two.name()
        ))),
    }
}

/// How many clusters the policy names or counts; None: as many as fit.
fn expected(policy: &Object) -> Result<Option<usize>, Halt> {
    let spec = field(policy.spec(), "policy");
    match text(spec, "placementType") {
        "PickN" => {
            let count = policy.annotation(NUMBER_OF_CLUSTERS).and_then(|text| text.parse().ok());
            let missing = || {
                let name = policy.name();
                Halt::abort(format!("policy snapshot {name} does not say how many clusters"))
            };
            count.map(Some).ok_or_else(missing)
        }
        "PickFixed" => Ok(Some(list(spec, "clusterNames").len())),
        _ => Ok(None),
    }
}

type Sorted<'w> = (Vec<Binding<'w>>, Vec<Binding<'w>>);

/// Bindings to update and to delete. One that still follows an older policy will be looked at
/// by the scheduler any moment, so the run waits for that.
fn sorted<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'_>,
    policy: &Object,
) -> Result<Sorted<'w>, Halt> {
    let (mut update, mut delete) = (Vec::new(), Vec::new());
    for binding in rollout::bindings(snapshot, placement) {
        match binding.state {
            State::Unscheduled => delete.push(binding),
            _ if binding.policy_snapshot() == policy.name() => update.push(binding),
            _ => {
                let (name, old) = (binding.name(), binding.policy_snapshot());
                return Err(Halt::Retry(format!(
                    "the scheduler: binding {name} still follows policy snapshot {old}"
                )));
            }
        }
    }
    Ok((update, delete))
}

/// The status word of a condition of the current generation.
pub(crate) fn current_status<'o>(object: &'o Object, kind: &str) -> Option<&'o str> {
    let condition = object.condition(kind)?;
    let observed = condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
    (observed == object.generation()).then(|| text(condition, "status"))
}

/// The strategy's stages as a run records them: an approval has no wait time.
pub(crate) fn strategy_snapshot(strategy: &Object) -> Value {
    let mut spec = strategy.spec().as_object().cloned().unwrap_or_else(Map::new);
    let mut stages = list(strategy.spec(), "stages").to_vec();
    for stage in stages.iter_mut().filter_map(Value::as_object_mut) {
        for tasks in ["beforeStageTasks", "afterStageTasks"] {
            let tasks = stage.get_mut(tasks).and_then(Value::as_array_mut);
            for task in tasks.into_iter().flatten().filter_map(Value::as_object_mut) {
                if task.get("type").and_then(Value::as_str) == Some("Approval") {
                    task.shift_remove("waitTime");
                }
            }
        }
    }
    spec.insert("stages".into(), json!(stages));
    Value::Object(spec)
}
