//! Whether a cluster may start, whether a work may go, and whether somebody waits for nothing.

use std::collections::BTreeMap;

use convoy_api::ObjectKey;
use jiff::Timestamp;
use serde_json::Value;

use super::layout::{DecisionGroup, Layout, length};
use super::strategy::{Order, Strategy};
use super::work::{Stage, Work};
use super::{Placement, ReplicaSets, Slot, named};

/// A rollout of one template through one placement.
struct Case<'r> {
    template: usize,
    strategy: &'r Strategy,
    layout: &'r Layout,
    /// How many clusters a group may hold, at most.
    length: usize,
    slots: Option<&'r BTreeMap<String, Slot>>,
    now: Timestamp,
}

impl ReplicaSets {
    /// Whether a cluster may get a template. What the hub may have decided by is tried in turn.
    pub(super) fn judge_start(
        &self,
        key: &(String, String),
        cluster: &str,
        template: usize,
        now: Timestamp,
    ) -> Result<(), String> {
        let (owner, name) = key;
        let versions = self.sets.get(owner).map_or(&[][..], |watched| watched.versions.as_slice());
        let namespace = owner.split_once('.').map_or("", |(namespace, _)| namespace);
        let placement = self.placements.get(&(namespace.to_owned(), name.clone()));
        let mut verdict = Err(format!(
            "cluster {cluster} gets a template that {owner} has not, or no placement {name}"
        ));
        let Some(placement) = placement else { return verdict };
        for spec in versions.iter().rev().filter(|spec| spec.template == template) {
            for (_, strategy) in spec.references.iter().filter(|(found, _)| found == name) {
                for layout in placement.layouts.iter().rev() {
                    let length = placement.length(layout);
                    let slots = self.slots.get(key);
                    let case = Case { template, strategy, layout, length, slots, now };
                    let found = case.may_start(cluster);
                    if found.is_ok() {
                        return Ok(());
                    }
                    if verdict.is_err() && spec == &versions[versions.len() - 1] {
                        verdict = found.map_err(|error| format!("{owner}: {error}"));
                    }
                }
            }
        }
        verdict
    }

    /// Whether the hub may delete a work.
    pub(super) fn judge_removal(
        &self,
        key: &(String, String),
        cluster: &str,
        work: &ObjectKey,
    ) -> Result<(), String> {
        let (owner, name) = key;
        let Some(watched) = self.sets.get(owner).filter(|it| it.exists) else { return Ok(()) };
        let namespace = owner.split_once('.').map_or("", |(namespace, _)| namespace);
        let placement = self.placements.get(&(namespace.to_owned(), name.clone()));
        let is_unreferenced = watched
            .versions
            .iter()
            .any(|spec| spec.references.iter().all(|(found, _)| found != name));
        // Decisions that are missing say nothing.
        let is_unselected = placement.is_none_or(|placement| {
            let mut written = placement.layouts.iter().filter(|layout| layout.is_written);
            written.any(|layout| layout.group_of(cluster).is_none())
        });
        let slot = self.slots.get(key).and_then(|slots| slots.get(cluster));
        let is_doubled = slot.and_then(Slot::current).is_some_and(|other| !other.is_deleting);
        let is_leaving = self.leaving.contains(cluster);
        if watched.was_deleting || is_unreferenced || is_unselected || is_doubled || is_leaving {
            return Ok(());
        }
        Err(format!("{} is deleted, though placement {name} selects the cluster", named(work)))
    }

    /// Nobody waits who may start, once the loops have settled.
    pub(super) fn judge_rest(&self, now: Timestamp) -> Result<(), String> {
        for (owner, watched) in &self.sets {
            let Some(spec) = watched.versions.last().filter(|_| !watched.was_deleting) else {
                continue;
            };
            let namespace = owner.split_once('.').map_or("", |(namespace, _)| namespace);
            for (name, strategy) in &spec.references {
                let placement = self.placements.get(&(namespace.to_owned(), name.clone()));
                let Some(placement) = placement.filter(|it| it.exists) else { break };
                let Some(layout) = placement.layouts.last() else { break };
                let (template, length) = (spec.template, placement.length(layout));
                let slots = self.slots.get(&(owner.clone(), name.clone()));
                let case = Case { template, strategy, layout, length, slots, now };
                case.nobody_waits().map_err(|error| format!("{owner}: {error}"))?;
            }
        }
        Ok(())
    }
}

impl Placement {
    /// How many clusters a group may hold; of several strategies the most.
    fn length(&self, layout: &Layout) -> usize {
        let per_group =
            |it: &Value| it.get("clustersPerDecisionGroup").cloned().unwrap_or_default();
        let lengths = self.strategies.iter().map(|it| length(&per_group(it), layout.len()));
        lengths.max().unwrap_or(layout.len())
    }
}

impl Case<'_> {
    fn may_start(&self, cluster: &str) -> Result<(), String> {
        let Some(own) = self.layout.group_of(cluster) else {
            return Err(format!("cluster {cluster} starts, and is not selected"));
        };
        if self.strategy.order == Order::AtOnce {
            return Ok(());
        }
        let is_first = self.strategy.is_mandatory(own);
        for group in &self.layout.groups {
            let is_mandatory = self.strategy.is_mandatory(group);
            let is_before = match (is_mandatory, is_first) {
                (true, false) => true,
                (false, true) => false,
                _ => group.index < own.index && (is_first || self.strategy.order == Order::ByGroup),
            };
            if is_before && !self.is_through(group, is_mandatory) {
                return Err(format!(
                    "cluster {cluster} of decision group {} starts before group {} is through",
                    own.index, group.index
                ));
            }
        }
        if is_first || self.strategy.order == Order::ByGroup {
            return Ok(());
        }
        self.has_room(cluster)
    }

    fn has_room(&self, cluster: &str) -> Result<(), String> {
        let others = || self.layout.clusters().filter(|other| *other != cluster);
        let busy = others()
            .filter(|other| self.possible(other).iter().all(|it| it.is_in_flight()))
            .count();
        let failed =
            others().filter(|other| self.possible(other).iter().all(|it| it.is_failure())).count();
        let most = self.ceiling();
        if busy + 1 > most {
            let message = format!("cluster {cluster} starts as one of {} in flight", busy + 1);
            return Err(format!("{message}; {most} may be"));
        }
        let allowed = self.strategy.failures(self.layout.len());
        if failed > allowed && !self.strategy.is_tolerant {
            return Err(format!("cluster {cluster} starts, and {failed} failed; {allowed} may"));
        }
        Ok(())
    }

    /// The most clusters in flight.
    fn ceiling(&self) -> usize {
        let counted = self.layout.groups.iter().filter(|it| !self.strategy.is_mandatory(it));
        self.strategy.concurrency(counted.map(|it| it.clusters.len()).sum(), self.length)
    }

    /// Whether everybody of a group may be finished, but for as many failures as are allowed.
    fn is_through(&self, group: &DecisionGroup, is_mandatory: bool) -> bool {
        let allowed = if is_mandatory { 0 } else { self.strategy.failures(group.clusters.len()) };
        let is_tolerant = self.strategy.is_tolerant;
        let mut failures = 0;
        for cluster in &group.clusters {
            let possible = self.possible(cluster);
            if possible.contains(&Stage::Finished)
                || is_tolerant && !is_mandatory && possible.contains(&Stage::TimedOut)
            {
                continue;
            }
            if !possible.iter().any(|it| it.is_failure()) || is_tolerant && !is_mandatory {
                return false;
            }
            failures += 1;
        }
        failures <= allowed
    }

    /// Where a cluster may be, for all that a hub knows.
    fn possible(&self, cluster: &str) -> Vec<Stage> {
        let slot = self.slots.and_then(|slots| slots.get(cluster));
        let former = slot.into_iter().flat_map(|slot| &slot.former);
        let former = former.map(|(work, until)| (work.as_ref(), *until));
        let known = former.chain([(slot.and_then(Slot::current), self.now)]);
        let stage = |work: &Work, at| work.stage(self.template, self.strategy, at);
        known.map(|(work, at)| work.map_or(Stage::Unstarted, |work| stage(work, at))).collect()
    }

    fn stage(&self, cluster: &str) -> Stage {
        let slot = self.slots.and_then(|slots| slots.get(cluster)).and_then(Slot::current);
        slot.map_or(Stage::Unstarted, |it| it.stage(self.template, self.strategy, self.now))
    }

    /// Whoever has not started is held by somebody.
    fn nobody_waits(&self) -> Result<(), String> {
        let mut waiting =
            self.layout.clusters().filter(|cluster| self.stage(cluster) == Stage::Unstarted);
        let free = waiting.find(|cluster| self.may_start(cluster).is_ok());
        free.map_or(Ok(()), |cluster| Err(format!("cluster {cluster} waits, and nothing holds it")))
    }
}
