//! What an update run is about: the placement, its policy as scheduled, and its bindings.
//! Looked up afresh in every pass, first to initialise the run and later to see that nothing
//! changed under it.

use std::collections::BTreeMap;

use convoy_api::Object;

use super::Halt;
use crate::dialect::fleet::names::{self, Family, NUMBER_OF_CLUSTERS, POLICY_INDEX};
use crate::dialect::fleet::read::binding::{Binding, State, bindings};
use crate::dialect::fleet::read::placement::{Placement, Strategy};
use crate::dialect::fleet::read::run::current_status;
use crate::dialect::fleet::read::snapshot::{SnapshotPick, snapshot_pick};
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
    pub(super) fn find(snapshot: &Snapshot<'w>, run: &Object, name: &str) -> Result<Self, Halt> {
        let placement = placement(snapshot, run, name)?;
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

fn placement<'w>(snapshot: &Snapshot<'w>, run: &Object, name: &str) -> Result<Placement<'w>, Halt> {
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
    match snapshot_pick(policy) {
        SnapshotPick::Number => {
            let count = policy.annotation(NUMBER_OF_CLUSTERS).and_then(|text| text.parse().ok());
            let missing = || {
                let name = policy.name();
                Halt::abort(format!("policy snapshot {name} does not say how many clusters"))
            };
            count.map(Some).ok_or_else(missing)
        }
        SnapshotPick::Fixed(clusters) => Ok(Some(clusters)),
        SnapshotPick::All => Ok(None),
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
    for binding in bindings(snapshot, placement) {
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
