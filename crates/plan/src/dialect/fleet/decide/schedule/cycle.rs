//! Scheduling cycles: which clusters a placement has afterwards, and what becomes of its
//! bindings. Cycles that would be queued again are run here until they settle.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use jiff::Timestamp;
use smol_str::SmolStr;

use crate::dialect::fleet::decide::schedule::classes::Classes;
use crate::dialect::fleet::decide::schedule::filter::refusal;
use crate::dialect::fleet::decide::schedule::score::{Topology, affinities};
use crate::dialect::fleet::read::binding::{Score, recorded_score, target};
use crate::dialect::fleet::read::member::ineligibility;
use crate::dialect::fleet::read::placement::{Pick, Placement};
use crate::dialect::fleet::read::policy::SchedulingPolicy;

/// The clusters that a placement has after scheduling.
#[derive(Debug, Default)]
pub(crate) struct Picks<'w> {
    /// By cluster, those with a Scheduled or Bound binding afterwards.
    pub(crate) selected: BTreeMap<&'w str, Selected<'w>>,
    /// Scheduled and Bound bindings that become Unscheduled, in key order.
    pub(crate) dropped: Vec<&'w Object>,
    /// Clusters that were looked at and not selected, the best first.
    pub(crate) unselected: Vec<Unselected>,
}

/// A cluster that is selected, and what its binding needs for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selected<'w> {
    pub(crate) change: Change<'w>,
    /// Only where clusters are compared; of one that is kept its binding tells.
    pub(crate) score: Option<Score>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'w> {
    /// Picked by the active policy before; it is not judged again.
    Keep(&'w Object),
    /// An older policy had picked it: points at the active one, and keeps its state.
    Point(&'w Object),
    /// It was given up, and gets the state back that it had before.
    Restore(&'w Object),
    Create,
}

/// A cluster that is not selected, and why.
#[derive(Clone, Debug)]
pub(crate) struct Unselected {
    pub(crate) cluster: SmolStr,
    pub(crate) score: Option<Score>,
    pub(crate) reason: Cow<'static, str>,
}

/// Everything one run looks at.
struct Run<'p, 'w> {
    placement: &'p Placement<'w>,
    clusters: &'p [&'w Object],
    classes: &'p Classes<'w>,
    now: Timestamp,
    picks: Picks<'w>,
}

/// Decides which clusters the placement has, given its bindings by class.
pub(crate) fn settled<'w>(
    placement: &Placement<'w>,
    clusters: &[&'w Object],
    classes: &Classes<'w>,
    now: Timestamp,
) -> Picks<'w> {
    let mut run = Run { placement, clusters, classes, now, picks: Picks::default() };
    let kept =
        classes.scheduled.iter().chain(&classes.bound).map(|binding| {
            (target(binding), Selected { change: Change::Keep(binding), score: None })
        });
    run.picks.selected = kept.collect();
    run.picks.dropped.extend(&classes.dangling);
    match &placement.policy.pick {
        Pick::All => run.pick_all(),
        Pick::Fixed(names) => run.pick_fixed(names),
        Pick::Number(wanted) => run.pick_number(*wanted),
    }
    let mut picks = run.picks;
    picks.dropped.sort_by(|a, b| a.key().cmp(b.key()));
    picks
}

impl Picks<'_> {
    /// Whether the policy has what it asks for.
    pub(crate) fn is_fulfilled(&self, placement: &Placement<'_>) -> bool {
        match &placement.policy.pick {
            Pick::All => true,
            Pick::Fixed(_) => self.unselected.is_empty(),
            Pick::Number(wanted) => usize::try_from(*wanted) == Ok(self.selected.len()),
        }
    }

    /// How many clusters were found, and why there are not more.
    pub(crate) fn summary(&self, placement: &Placement<'_>) -> String {
        let found = self.selected.len();
        let first = self.unselected.first();
        let example = first.map(|first| format!("; {}: {}", first.cluster, first.reason));
        let example = example.unwrap_or_default();
        match &placement.policy.pick {
            Pick::All if found == 0 => format!("found no cluster that fits{example}"),
            Pick::All => format!("found all {found} clusters that fit"),
            Pick::Fixed(names) if self.unselected.is_empty() => {
                format!("found all {} clusters named", names.len())
            }
            Pick::Fixed(names) => {
                format!("found {found} of {} clusters named{example}", names.len())
            }
            Pick::Number(wanted) if usize::try_from(*wanted) == Ok(found) => {
                format!("found all {wanted} clusters wanted")
            }
            Pick::Number(wanted) => format!("found {found} of {wanted} clusters wanted{example}"),
        }
    }
}

impl<'w> Run<'_, 'w> {
    fn pick_all(&mut self) {
        let policy = SchedulingPolicy::read(self.placement);
        for cluster in self.clusters {
            let name = cluster.name().as_str();
            if self.picks.selected.contains_key(name) {
                continue;
            }
            match refusal(self.placement, &policy, cluster, self.now) {
                None => self.select(name, None),
                Some(reason) => self.refuse(cluster.name(), None, reason),
            }
        }
        self.drop_obsolete();
    }

    fn pick_fixed(&mut self, names: &[SmolStr]) {
        let by_name: BTreeMap<&str, &'w Object> =
            self.clusters.iter().map(|cluster| (cluster.name().as_str(), *cluster)).collect();
        let wanted: BTreeSet<&SmolStr> = names.iter().collect();
        for name in wanted {
            if self.picks.selected.contains_key(name.as_str()) {
                continue;
            }
            match by_name.get(name.as_str()) {
                None => self.refuse(name, None, Cow::Borrowed("cluster does not exist")),
                Some(cluster) => match ineligibility(cluster, self.now) {
                    None => self.select(cluster.name().as_str(), None),
                    Some(reason) => self.refuse(name, None, Cow::Borrowed(reason)),
                },
            }
        }
        self.drop_obsolete();
    }

    fn pick_number(&mut self, wanted: u32) {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let policy = SchedulingPolicy::read(self.placement);
        let mut field = Field::new(self, &policy);
        let surplus = self.picks.selected.len().saturating_sub(wanted);
        self.drop_surplus(surplus);
        let mut first = true;
        while self.picks.selected.len() < wanted {
            let missing = wanted - self.picks.selected.len();
            let batch = if policy.spread.is_empty() { missing } else { 1 };
            let picked = field.best(batch, first);
            if picked.is_empty() {
                break;
            }
            for (at, score) in picked {
                self.select(self.clusters[at].name().as_str(), Some(score));
                field.take(at);
            }
            field.topology.settle();
            first = false;
        }
        self.drop_obsolete();
        field.report(self);
    }

    /// Gives up `surplus` clusters: those that carry nothing yet before those that do, the
    /// lowest score first.
    fn drop_surplus(&mut self, surplus: usize) {
        let order = |binding: &&'w Object| {
            let score = recorded_score(binding).map(|score| (score.topology, score.affinity));
            (score, target(binding))
        };
        let mut scheduled = self.classes.scheduled.clone();
        let mut bound = self.classes.bound.clone();
        scheduled.sort_by_key(order);
        bound.sort_by_key(order);
        for binding in scheduled.into_iter().chain(bound).take(surplus) {
            self.picks.selected.remove(target(binding));
            self.picks.dropped.push(binding);
        }
    }

    fn select(&mut self, cluster: &'w str, score: Option<Score>) {
        let change = if let Some(binding) = self.classes.obsolete.get(cluster) {
            Change::Point(binding)
        } else if let Some(binding) = self.classes.unscheduled.get(cluster) {
            Change::Restore(binding)
        } else {
            Change::Create
        };
        self.picks.selected.insert(cluster, Selected { change, score });
    }

    fn refuse(&mut self, cluster: &SmolStr, score: Option<Score>, reason: Cow<'static, str>) {
        self.picks.unselected.push(Unselected { cluster: cluster.clone(), score, reason });
    }

    /// What an older policy had picked and this one did not is given up.
    fn drop_obsolete(&mut self) {
        for (cluster, binding) in &self.classes.obsolete {
            if !self.picks.selected.contains_key(cluster) {
                self.picks.dropped.push(binding);
            }
        }
    }
}

/// The clusters that compete, and how they stand.
struct Field<'p> {
    /// Per cluster: why it is out of the question.
    refused: Vec<Option<Cow<'static, str>>>,
    /// Per cluster: whether it is selected already.
    taken: Vec<bool>,
    /// Per cluster: whether an older policy had picked it.
    obsolete: Vec<bool>,
    affinity: Vec<i32>,
    topology: Topology<'p>,
}

impl<'p> Field<'p> {
    fn new(run: &Run<'_, '_>, policy: &SchedulingPolicy<'p>) -> Self {
        let names = || run.clusters.iter().map(|cluster| cluster.name().as_str());
        let taken: Vec<bool> = names().map(|name| run.picks.selected.contains_key(name)).collect();
        let refused = run.clusters.iter().zip(&taken).map(|(cluster, taken)| {
            if *taken { None } else { refusal(run.placement, policy, cluster, run.now) }
        });
        let refused = refused.collect();
        let obsolete = names().map(|name| run.classes.obsolete.contains_key(name)).collect();
        let mut topology = Topology::new(policy, run.clusters);
        for at in (0..taken.len()).filter(|at| taken[*at]) {
            topology.count(at);
        }
        topology.settle();
        let affinity = affinities(policy, run.clusters);
        Self { refused, taken, obsolete, affinity, topology }
    }

    fn take(&mut self, at: usize) {
        self.taken[at] = true;
        self.topology.count(at);
    }

    /// The best `count` clusters that may still be picked; on a tie the larger name.
    fn best(&self, count: usize, first: bool) -> Vec<(usize, Score)> {
        if count == 1 {
            return self.open(first).max_by_key(|(at, score)| (*score, *at)).into_iter().collect();
        }
        let mut scored: Vec<(usize, Score)> = self.open(first).collect();
        // Clusters are listed by name, so the larger position is the larger name.
        scored.sort_by_key(|(at, score)| Reverse((*score, *at)));
        scored.truncate(count);
        scored
    }

    /// The clusters that pass every filter, with their scores. Only the first cycle sees
    /// obsolete bindings: it gives up those that it does not pick.
    fn open(&self, first: bool) -> impl Iterator<Item = (usize, Score)> {
        (0..self.taken.len()).filter_map(move |at| {
            if self.taken[at] || self.refused[at].is_some() {
                return None;
            }
            let topology = self.topology.score(at).ok()?;
            let kept = first && self.obsolete[at];
            Some((at, Score { topology, affinity: self.affinity[at], kept }))
        })
    }

    /// Puts down everyone who was not picked: first those that were merely not good enough.
    fn report(&mut self, run: &mut Run<'_, '_>) {
        let mut open: Vec<(usize, Score)> = self.open(false).collect();
        open.sort_by_key(|(at, score)| Reverse((*score, *at)));
        for (at, score) in open {
            let reason = Cow::Borrowed("others scored higher");
            run.refuse(run.clusters[at].name(), Some(score), reason);
        }
        for (at, cluster) in run.clusters.iter().enumerate() {
            if self.taken[at] {
                continue;
            }
            if let Some(reason) = self.refused[at].take() {
                run.refuse(cluster.name(), None, reason);
            } else if let Err(spread) = self.topology.score(at) {
                let reason = format!("would skew {} by more than {}", spread.key, spread.max_skew);
                run.refuse(cluster.name(), None, Cow::Owned(reason));
            }
        }
    }
}
