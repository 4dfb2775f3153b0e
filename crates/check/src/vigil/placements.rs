//! Observes the placements of a hub during rollouts: checks after every write that enough clusters
//! work, that not too many carry the resources, and that nothing is left behind.
//!
//! It reads bindings, Works and placements only, and counts by the rules of the API. The hub writes
//! bindings itself, so it knows them as they are. What it may not know yet is tolerated until the
//! loops have settled: of a placement that was changed, the weakest of its bounds applies, and a
//! cluster that stopped working for another reason within the last moments is not held against it.

mod binding;
mod bounds;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::{SignedDuration, Timestamp};

use self::binding::Binding;
use self::bounds::{Bounds, Limits};
use super::Hand;

const GROUP: &str = "placement.kubernetes-fleet.io";
const PLACEMENT: GroupKind = GroupKind::new(GROUP, "ClusterResourcePlacement");
const BINDING: GroupKind = GroupKind::new(GROUP, "ClusterResourceBinding");
const EVICTION: GroupKind = GroupKind::new(GROUP, "ClusterResourcePlacementEviction");
const WORK: GroupKind = GroupKind::new(GROUP, "Work");
const MEMBER: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "MemberCluster");
const PARENT: &str = "kubernetes-fleet.io/parent-CRP";
const PARENT_BINDING: &str = "kubernetes-fleet.io/parent-resource-binding";

/// How long a decision may be on its way to the server.
const UNDERWAY: SignedDuration = SignedDuration::from_secs(30);

/// The observed placements.
#[derive(Clone, Debug, Default)]
pub struct Placements {
    watched: BTreeMap<String, Watched>,
    bindings: BTreeMap<ObjectKey, Binding>,
    /// The same by the name of their placement, which has few of them.
    by_placement: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// The Works of each binding, by its name.
    works: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Evictions that are not decided, as (placement, cluster).
    evictions: BTreeMap<ObjectKey, (String, String)>,
    /// Members that exist and are not leaving.
    members: BTreeSet<String>,
    /// Members that leave or have left, and whether they are gone.
    left: BTreeMap<String, bool>,
}

#[derive(Clone, Debug)]
struct Watched {
    is_deleting: bool,
    /// What its spec says now, and what it said since the loops last settled.
    bounds: Bounds,
    former: Vec<Bounds>,
    /// When clusters stopped working that no update and no removal of the rollout had touched.
    lost: VecDeque<Timestamp>,
    /// When clusters lost their resources for good. A loop that has not heard of it yet makes no
    /// use of their places.
    freed: VecDeque<Timestamp>,
    /// When clusters that worked began an update in place, which may take more than removals.
    updated: VecDeque<Timestamp>,
}

impl Placements {
    /// Records a write or a deletion. Returns an error if a bound is violated.
    pub fn see(
        &mut self,
        object: &Object,
        is_gone: bool,
        by: Hand,
        now: Timestamp,
    ) -> Result<(), String> {
        if !object.key().cluster.is_empty() {
            return Ok(());
        }
        match object.kind() {
            kind if *kind == PLACEMENT => self.see_placement(object, is_gone),
            kind if *kind == BINDING => return self.see_binding(object, is_gone, by, now),
            kind if *kind == WORK => return self.see_work(object, is_gone, by),
            kind if *kind == EVICTION => self.see_eviction(object, is_gone),
            kind if *kind == MEMBER && (is_gone || object.is_deleting()) => {
                self.members.remove(object.name().as_str());
                self.left.insert(object.name().to_string(), is_gone);
            }
            kind if *kind == MEMBER => {
                self.members.insert(object.name().to_string());
                self.left.remove(object.name().as_str());
            }
            _ => {}
        }
        Ok(())
    }

    /// Called when the loops have processed all events and have nothing to do: from here on the
    /// current bounds apply.
    pub fn rest(&mut self) {
        for watched in self.watched.values_mut() {
            watched.former.clear();
            watched.lost.clear();
            watched.freed.clear();
            watched.updated.clear();
        }
    }

    /// What is left behind, once everything has settled.
    pub fn left_behind(&self) -> Result<(), String> {
        let is_known = |name: &String| self.bindings.keys().any(|key| key.name == name.as_str());
        if let Some((binding, works)) = self.works.iter().find(|(name, _)| !is_known(name)) {
            return Err(format!("{works:?} have no binding {binding}"));
        }
        let orphan = self.bindings.values().find(|it| !self.watched.contains_key(&it.placement));
        orphan.map_or(Ok(()), |binding| {
            Err(format!("binding {} has no placement {}", binding.name, binding.placement))
        })
    }

    fn see_placement(&mut self, object: &Object, is_gone: bool) {
        let name = object.name().to_string();
        if is_gone {
            self.watched.remove(&name);
            return;
        }
        let bounds = Bounds::read(object);
        let is_deleting = object.is_deleting();
        if let Some(watched) = self.watched.get_mut(&name) {
            watched.is_deleting |= is_deleting;
            if watched.bounds != bounds {
                watched.former.push(std::mem::replace(&mut watched.bounds, bounds));
            }
        } else {
            let watched = Watched {
                is_deleting,
                bounds,
                former: Vec::new(),
                lost: VecDeque::new(),
                freed: VecDeque::new(),
                updated: VecDeque::new(),
            };
            self.watched.insert(name, watched);
        }
    }

    fn see_eviction(&mut self, object: &Object, is_gone: bool) {
        let is_decided = ["Executed", "Valid"].iter().any(|kind| {
            object.condition_status(kind).is_some_and(|word| *kind == "Executed" || word == "False")
        });
        if is_gone || is_decided {
            self.evictions.remove(object.key());
        } else {
            let text = |field| object.spec_text(field).to_owned();
            let named = (text("placementName"), text("clusterName"));
            self.evictions.insert(object.key().clone(), named);
        }
    }

    /// A Work goes only when its binding does, or its cluster.
    fn see_work(&mut self, object: &Object, is_gone: bool, by: Hand) -> Result<(), String> {
        let Some(parent) = object.label(PARENT_BINDING) else { return Ok(()) };
        if !is_gone {
            self.works.entry(parent.to_owned()).or_default().insert(object.key().clone());
            return Ok(());
        }
        if let Some(works) = self.works.get_mut(parent) {
            works.remove(object.key());
            if works.is_empty() {
                self.works.remove(parent);
            }
        }
        let binding = self.bindings.values().find(|it| it.name == parent);
        let Some(binding) = binding else { return Ok(()) };
        let is_wanted = binding.is_bound() && !binding.is_deleting;
        if by == Hand::Loop && is_wanted && self.members.contains(&binding.cluster) {
            return Err(format!("{} is gone, though binding {parent} places it", object.key()));
        }
        Ok(())
    }

    fn see_binding(
        &mut self,
        object: &Object,
        is_gone: bool,
        by: Hand,
        now: Timestamp,
    ) -> Result<(), String> {
        let after = Binding::read(object);
        let before = self.forget(object.key());
        if is_gone
            && self.members.contains(&after.cluster)
            && let Some(works) = self.works.get(&after.name)
        {
            return Err(format!("{} is gone, and {works:?} are left behind", object.key()));
        }
        if !is_gone {
            let peers = self.by_placement.entry(after.placement.clone()).or_default();
            peers.insert(object.key().clone());
            self.bindings.insert(object.key().clone(), after.clone());
        } else if after.is_placed()
            && let Some(watched) = self.watched.get_mut(&after.placement)
        {
            watched.freed.push_back(now);
        }
        let Some(before) = before else { return Ok(()) };
        let change = Change { before: &before, after: (!is_gone).then_some(&after) };
        self.judge(&change, by, now)
    }

    fn forget(&mut self, key: &ObjectKey) -> Option<Binding> {
        let known = self.bindings.remove(key)?;
        if let Some(peers) = self.by_placement.get_mut(&known.placement) {
            peers.remove(key);
            if peers.is_empty() {
                self.by_placement.remove(&known.placement);
            }
        }
        Some(known)
    }

    fn judge(&mut self, change: &Change<'_>, by: Hand, now: Timestamp) -> Result<(), String> {
        let before = change.before;
        let Some(watched) = self.watched.get(&before.placement) else { return Ok(()) };
        let period = watched.bounds.period;
        let was_ready = before.is_ready(period, now);
        let is_lost = was_ready && !change.after.is_some_and(|it| it.is_ready(period, now));
        let is_exempt = by != Hand::Loop
            || watched.is_deleting
            || watched.bounds.is_external
            // What is on a cluster that left the fleet stays there, and is nobody's.
            || self.left.contains_key(&before.cluster)
            || self.is_evicted(before);
        let kind = if is_exempt { Kind::Other } else { change.kind() };
        let limits = self.limits(watched, &before.placement);
        let ready = self.ready(&before.placement, period, now) + recent(&watched.lost, now);
        let updating =
            recent(&watched.updated, now).min(limits.least.saturating_sub(limits.least_updating));
        let verdict = match kind {
            Kind::Bind => self.judge_bind(before, &limits),
            Kind::Update if was_ready => {
                is_enough(ready, limits.least_updating, "updating", before)
            }
            Kind::Remove if was_ready => {
                is_enough(ready + updating, limits.least, "removing", before)
                    .and_then(|()| self.judge_order(before, &limits, recent(&watched.freed, now)))
            }
            Kind::Update | Kind::Remove | Kind::Other => Ok(()),
        };
        if let Some(watched) = self.watched.get_mut(&before.placement).filter(|_| is_lost) {
            match kind {
                Kind::Other => watched.lost.push_back(now),
                Kind::Update => watched.updated.push_back(now),
                Kind::Bind | Kind::Remove => {}
            }
        }
        verdict
    }

    /// The weakest limits of which the loops may know.
    fn limits(&self, watched: &Watched, placement: &str) -> Limits {
        let picked = self.picked(placement);
        let former = watched.former.iter().map(|bounds| bounds.limits(picked));
        former.fold(watched.bounds.limits(picked), Limits::weaker)
    }

    fn judge_bind(&self, binding: &Binding, limits: &Limits) -> Result<(), String> {
        let (carrying, most) = (self.carrying(&binding.placement), limits.most);
        if carrying <= most {
            return Ok(());
        }
        let name = &binding.name;
        Err(format!("binding {name} makes {carrying} clusters that carry resources; {most} may"))
    }

    /// A cluster that works goes after those that replace it have come.
    fn judge_order(&self, removed: &Binding, limits: &Limits, freed: u32) -> Result<(), String> {
        let carrying = self.carrying(&removed.placement) + freed;
        let mut waiting = self.of(&removed.placement).filter(|it| it.is_waiting());
        match waiting.next() {
            Some(next) if carrying < limits.least_most => Err(format!(
                "removing {} before {} is bound, with {carrying} clusters where {} may be",
                removed.name, next.name, limits.least_most
            )),
            _ => Ok(()),
        }
    }

    fn of<'p>(&'p self, placement: &'p str) -> impl Iterator<Item = &'p Binding> {
        let keys = self.by_placement.get(placement).into_iter().flatten();
        keys.filter_map(|key| self.bindings.get(key))
    }

    /// The number of clusters that are picked.
    fn picked(&self, placement: &str) -> u32 {
        count(self.of(placement).filter(|binding| binding.is_picked()))
    }

    fn ready(&self, placement: &str, period: SignedDuration, now: Timestamp) -> u32 {
        let ready = |it: &&Binding| !it.is_deleting && it.is_ready(period, now);
        count(self.of(placement).filter(ready))
    }

    /// The clusters of the fleet on which the resources are, or may be, whether or not they work
    /// there.
    fn carrying(&self, placement: &str) -> u32 {
        let clusters: BTreeSet<&str> = self
            .of(placement)
            .filter(|binding| binding.is_placed() && !binding.reports_differences)
            .filter(|binding| self.left.get(&binding.cluster) != Some(&true))
            .map(|binding| binding.cluster.as_str())
            .collect();
        u32::try_from(clusters.len()).unwrap_or(u32::MAX)
    }

    fn is_evicted(&self, binding: &Binding) -> bool {
        self.evictions.values().any(|(placement, cluster)| {
            *placement == binding.placement && *cluster == binding.cluster
        })
    }
}

/// A write to a binding.
struct Change<'b> {
    before: &'b Binding,
    /// None if it is gone.
    after: Option<&'b Binding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A picked cluster gets the resources.
    Bind,
    /// It gets others.
    Update,
    /// They begin to go.
    Remove,
    /// It is reported about, or picked by another policy.
    Other,
}

impl Change<'_> {
    fn kind(&self) -> Kind {
        let before = self.before;
        let Some(after) = self.after else {
            return if before.is_deleting { Kind::Other } else { Kind::Remove };
        };
        if after.is_deleting {
            return if before.is_deleting { Kind::Other } else { Kind::Remove };
        }
        if after.is_bound() && !before.is_placed() {
            return Kind::Bind;
        }
        if after.is_placed() && before.content != after.content {
            Kind::Update
        } else {
            Kind::Other
        }
    }
}

fn is_enough(ready: u32, least: u32, verb: &str, binding: &Binding) -> Result<(), String> {
    if ready >= least {
        return Ok(());
    }
    Err(format!("{verb} {} leaves {ready} clusters that work; {least} have to", binding.name))
}

/// How many of these instants are not long ago.
fn recent(instants: &VecDeque<Timestamp>, now: Timestamp) -> u32 {
    count(instants.iter().filter(|at| now.duration_since(**at) <= UNDERWAY))
}

fn count<T>(of: impl Iterator<Item = T>) -> u32 {
    u32::try_from(of.count()).unwrap_or(u32::MAX)
}
