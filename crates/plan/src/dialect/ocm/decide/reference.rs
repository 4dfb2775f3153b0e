//! One placement reference of a replica set: its groups, where its clusters stand, and what
//! the round decides for them.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::object::member::text;
use convoy_api::ocm::names::PLACEMENT;
use convoy_api::ocm::spelling::decision_group;
use jiff::Timestamp;
use serde_json::Value;
use smol_str::SmolStr;

use crate::dialect::ocm::decide::group::{count, length};
use crate::dialect::ocm::decide::placement::{is_disabled, select};
use crate::dialect::ocm::decide::{Ring, Round, round};
use crate::dialect::ocm::read::decisions::Layout;
use crate::dialect::ocm::read::placement::Policy;
use crate::dialect::ocm::read::strategy::Strategy;
use crate::dialect::ocm::read::work::{Pair, Template, Works};
use crate::dialect::ocm::read::work_status::{Report, Standing, report};
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;

/// What became of one reference.
#[derive(Clone, Debug)]
pub(crate) enum Outcome<'w> {
    /// There is no such placement: the pass ends here.
    NotFound,
    /// The strategy or the decisions cannot be read: the next reference goes on.
    Error(String),
    Rolled(Box<Rolled<'w>>),
}

/// A reference that was rolled on.
#[derive(Clone, Debug)]
pub(crate) struct Rolled<'w> {
    pub(crate) placement: SmolStr,
    pub(crate) rings: Vec<Ring<'w>>,
    pub(crate) round: Round<'w>,
    pub(crate) strategy: Strategy,
    /// Works that hold the current template and stay.
    pub(crate) current: Vec<&'w Object>,
    /// Works of clusters that are no longer selected, also those that are going already.
    pub(crate) removed: Vec<&'w Object>,
    /// Works that are one too many.
    pub(crate) surplus: Vec<&'w Object>,
    /// Works that wait for their agent under labels that are no longer right.
    pub(crate) mislabelled: Vec<&'w Object>,
    /// How many clusters the placement says it selected.
    pub(crate) selected: u64,
    pub(crate) succeeded: u64,
}

/// Reads and rolls the reference `entry`.
pub(crate) fn roll<'w>(
    snapshot: &Snapshot<'w>,
    entry: &Value,
    works: &Works<'w>,
    template: &Template<'_>,
    now: Timestamp,
) -> Outcome<'w> {
    let name = text(entry, "name");
    let namespace = snapshot.rollout().namespace();
    let Some(placement) = snapshot.find(&PLACEMENT, namespace, name) else {
        return Outcome::NotFound;
    };
    let strategy = match Strategy::read(entry.get("rolloutStrategy").unwrap_or(&Value::Null)) {
        Ok(strategy) => strategy,
        Err(error) => return Outcome::Error(format!("{}: {}", error.field, error.message)),
    };
    let policy = Policy::read(placement).ok();
    let present = Layout::read(snapshot, placement);
    let groups = match groups(snapshot, placement, policy.as_ref(), &present, now) {
        Ok(groups) => groups,
        Err(error) => return Outcome::Error(error),
    };
    let mut rolled = Rolled::new(placement, strategy);
    rolled.stand(groups, works, template, now);
    let total = rolled.total();
    let group_length = policy.map_or(total, |policy| length(policy.grouping.per_group, total));
    rolled.round = round(&rolled.rings, &rolled.strategy, group_length);
    let reported = placement.status().get("numberOfSelectedClusters").and_then(Value::as_u64);
    rolled.selected = reported.unwrap_or(u64::from(total));
    if !is_disabled(placement) && !present.decisions.is_empty() && !present.is_settled(placement) {
        let on = format!("placement {name} to finish writing its decisions");
        rolled.defer(&HoldReason::Depends { on });
    }
    Outcome::Rolled(Box::new(rolled))
}

/// A decision group: number, name, clusters.
type Numbered<'w> = (i64, SmolStr, Vec<&'w str>);

/// The groups that the decisions spell out. Where none is written yet, those that are about
/// to be, so that a replica set can be judged beside a placement that is still new.
fn groups<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Object,
    policy: Option<&Policy>,
    present: &Layout<'w>,
    now: Timestamp,
) -> Result<Vec<Numbered<'w>>, String> {
    if let (Some(policy), true, false) =
        (policy, present.decisions.is_empty(), is_disabled(placement))
    {
        let groups = select(snapshot, placement, policy, present, now).groups.into_iter();
        let numbered = (0..).zip(groups).map(|(index, group)| (index, group.name, group.clusters));
        return Ok(numbered.collect());
    }
    for decision in &present.decisions {
        let (index, _) = decision_group(decision);
        if index.and_then(|index| index.parse::<u32>().ok()).is_none() {
            let name = decision.name();
            return Err(format!("PlacementDecision {name} has no numeric decision group index"));
        }
    }
    let groups = present.groups.iter();
    Ok(groups.map(|group| (group.index, group.name.into(), group.clusters.clone())).collect())
}

impl<'w> Rolled<'w> {
    fn new(placement: &Object, strategy: Strategy) -> Self {
        Self {
            placement: placement.name().clone(),
            rings: Vec::new(),
            round: Round::default(),
            strategy,
            current: Vec::new(),
            removed: Vec::new(),
            surplus: Vec::new(),
            mislabelled: Vec::new(),
            selected: 0,
            succeeded: 0,
        }
    }

    /// Finds out where every selected cluster stands, and which works nobody selects.
    fn stand(
        &mut self,
        groups: Vec<Numbered<'w>>,
        works: &Works<'w>,
        template: &Template<'_>,
        now: Timestamp,
    ) {
        let placement = self.placement.clone();
        let mut selected: BTreeSet<&str> = BTreeSet::new();
        for (index, name, clusters) in groups {
            let mut members = Vec::with_capacity(clusters.len());
            for cluster in clusters {
                selected.insert(cluster);
                let pair = works.pair(&placement, cluster, template);
                members.push((cluster, self.standing(pair, template, now)));
            }
            self.rings.push(Ring { index, name, members });
        }
        let left = works.of_placement(&placement);
        let left = left.filter(|work| !selected.contains(work.namespace().as_str()));
        self.removed = left.collect();
    }

    fn standing(&mut self, pair: Pair<'w>, template: &Template<'_>, now: Timestamp) -> Standing {
        self.surplus.extend(pair.surplus);
        let Some(work) = pair.work else { return Standing::Unstarted };
        if work.is_deleting() {
            return Standing::Leaving;
        }
        if !pair.current {
            return Standing::Unstarted;
        }
        self.current.push(work);
        let report = report(work);
        self.succeeded += u64::from(report.0 == Report::Succeeded);
        let standing = Standing::of(report, &self.strategy, now);
        if standing == Standing::ToApply && !template.is_labelled(&self.placement, work) {
            self.mislabelled.push(work);
        }
        standing
    }

    /// How many clusters the groups hold.
    pub(crate) fn total(&self) -> u32 {
        count(self.rings.iter().map(|ring| ring.members.len()).sum())
    }

    /// Starts and removes nothing now, for a reason that everybody who waits is told.
    pub(crate) fn defer(&mut self, reason: &HoldReason) {
        let taken = std::mem::take(&mut self.round.take);
        self.round.waits.extend(taken.into_iter().map(|cluster| (cluster, reason.clone())));
        self.removed.clear();
        self.surplus.clear();
        self.mislabelled.clear();
    }

    /// Every selected cluster and where it stands.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'w str, Standing)> + '_ {
        self.rings.iter().flat_map(|ring| ring.members.iter().copied())
    }
}
