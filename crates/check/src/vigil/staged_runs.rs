//! Observes staged update runs: checks after every write that no stage has more clusters in progress
//! than its `maxConcurrency`, that no stage begins before those before it are done and its approvals
//! are given, and that a cluster loses its resources only in a delete stage.
//!
//! It reads runs, approvals, bindings and placements only. A run writes its status after the
//! bindings, so a cluster is also done when its binding has been available with what the run brings.

mod run;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::{GroupKind, Object, ObjectKey};

use self::run::{Run, Stage};
use super::Hand;

const GROUP: &str = "placement.kubernetes-fleet.io";
const PLACEMENT: GroupKind = GroupKind::new(GROUP, "ClusterResourcePlacement");
const BINDING: GroupKind = GroupKind::new(GROUP, "ClusterResourceBinding");
const EVICTION: GroupKind = GroupKind::new(GROUP, "ClusterResourcePlacementEviction");
const RUN: GroupKind = GroupKind::new(GROUP, "ClusterStagedUpdateRun");
const APPROVAL: GroupKind = GroupKind::new(GROUP, "ClusterApprovalRequest");
const MEMBER: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "MemberCluster");
const PREVIOUS_STATE: &str = "kubernetes-fleet.io/previous-binding-state";
const PARENT: &str = "kubernetes-fleet.io/parent-CRP";

/// The observed runs.
#[derive(Clone, Debug, Default)]
pub struct StagedRuns {
    runs: BTreeMap<ObjectKey, Run>,
    /// The bindings that there are.
    bindings: BTreeMap<ObjectKey, SeenBinding>,
    /// Placements whose bindings only runs move.
    external: BTreeSet<String>,
    /// Approvals that were given, by name; they cannot be withdrawn.
    approved: BTreeSet<String>,
    /// Placements and clusters for which an eviction was asked.
    evicted: BTreeSet<(String, String)>,
    members: BTreeSet<String>,
}

/// A binding.
#[derive(Clone, Debug)]
struct SeenBinding {
    placement: String,
    cluster: String,
    snapshot: String,
    is_bound: bool,
    is_deleting: bool,
    /// The only run that was not over when it got the snapshot, or became bound.
    by_run: Option<String>,
    /// Whether it has been available since then.
    was_available: bool,
}

impl StagedRuns {
    /// Records a write or a deletion. Returns an error if a run does what it may not.
    pub fn see(&mut self, object: &Object, is_gone: bool, by: Hand) -> Result<(), String> {
        if !object.key().cluster.is_empty() {
            return Ok(());
        }
        let name = object.name().to_string();
        match object.kind() {
            kind if *kind == PLACEMENT => self.see_placement(object, is_gone),
            kind if *kind == MEMBER && (is_gone || object.is_deleting()) => {
                self.members.remove(&name);
            }
            kind if *kind == MEMBER => _ = self.members.insert(name),
            kind if *kind == EVICTION => {
                let text = |field| object.spec_text(field).to_owned();
                self.evicted.insert((text("placementName"), text("clusterName")));
            }
            kind if *kind == APPROVAL && object.condition_status("Approved") == Some("True") => {
                self.approved.insert(name);
            }
            kind if *kind == RUN && is_gone => _ = self.runs.remove(object.key()),
            kind if *kind == RUN => return self.see_run(object),
            kind if *kind == BINDING => return self.see_binding(object, is_gone, by),
            _ => {}
        }
        Ok(())
    }

    fn see_placement(&mut self, object: &Object, is_gone: bool) {
        let is_external =
            object.spec().pointer("/strategy/type").is_some_and(|it| it == "External");
        if is_external && !is_gone && !object.is_deleting() {
            self.external.insert(object.name().to_string());
        } else {
            self.external.remove(object.name().as_str());
        }
    }

    fn see_run(&mut self, object: &Object) -> Result<(), String> {
        let run = Run::read(object);
        let placement = run.placement.clone();
        self.runs.insert(object.key().clone(), run);
        self.judge(&placement)
    }

    fn see_binding(&mut self, object: &Object, is_gone: bool, by: Hand) -> Result<(), String> {
        let before = self.bindings.remove(object.key());
        let placement = object.label(PARENT).unwrap_or_default();
        let by_run = self.only_active(placement);
        let after = SeenBinding::read(object, before.as_ref(), by_run);
        let begins_to_go = before.is_some_and(|it| !it.is_deleting && it.is_bound)
            && (is_gone || after.is_deleting);
        let (placement, is_removed) = (after.placement.clone(), begins_to_go && by == Hand::Loop);
        let verdict = if is_removed { self.judge_removal(&after) } else { Ok(()) };
        if !is_gone {
            self.bindings.insert(object.key().clone(), after);
        }
        verdict?;
        if by == Hand::Loop { self.judge(&placement) } else { Ok(()) }
    }

    /// The runs of a placement that are not over.
    fn active<'p>(&'p self, placement: &'p str) -> impl Iterator<Item = &'p Run> {
        self.runs.values().filter(move |run| run.placement == placement && !run.is_over)
    }

    /// Of several nobody can tell which one moved a binding.
    fn only_active(&self, placement: &str) -> Option<String> {
        let mut active = self.active(placement);
        let first = active.next()?;
        active.next().is_none().then(|| first.name.clone())
    }

    fn judge(&self, placement: &str) -> Result<(), String> {
        if !self.external.contains(placement) {
            return Ok(());
        }
        self.active(placement).try_for_each(|run| self.judge_run(run))
    }

    fn judge_run(&self, run: &Run) -> Result<(), String> {
        let mut earlier: Option<&Stage> = None;
        // One without clusters is skipped, with its tasks.
        for stage in run.stages.iter().filter(|stage| !stage.clusters.is_empty()) {
            let begun: Vec<&SeenBinding> =
                stage.clusters.keys().filter_map(|it| self.begun(run, it)).collect();
            let under_way = begun.iter().filter(|it| !is_done(stage, it)).count();
            if under_way > stage.ceiling {
                return Err(format!(
                    "stage {} of run {} has {under_way} clusters in progress; {} may be",
                    stage.name, run.name, stage.ceiling
                ));
            }
            if let Some(first) = begun.first() {
                self.may_begin(run, stage, earlier, first)?;
            }
            earlier = Some(stage);
        }
        Ok(())
    }

    /// The binding of a cluster, if the run brought it what it has.
    fn begun(&self, run: &Run, cluster: &str) -> Option<&SeenBinding> {
        let mut found = self.bindings.values().filter(|it| {
            it.cluster == cluster && it.placement == run.placement && !it.is_deleting && it.is_bound
        });
        found.find(|it| it.snapshot == run.snapshot && it.by_run.as_ref() == Some(&run.name))
    }

    fn may_begin(
        &self,
        run: &Run,
        stage: &Stage,
        earlier: Option<&Stage>,
        binding: &SeenBinding,
    ) -> Result<(), String> {
        let missing = stage.asks_before.then(|| format!("{}-before-{}", run.name, stage.name));
        let after = earlier.filter(|it| it.asks_after);
        let after = after.map(|it| format!("{}-after-{}", run.name, it.name));
        let mut missing = missing.into_iter().chain(after);
        if let Some(request) = missing.find(|request| !self.approved.contains(request)) {
            return Err(format!(
                "cluster {} of stage {} got {} before {request} was approved",
                binding.cluster, stage.name, run.snapshot
            ));
        }
        let is_available = |name: &str| self.begun(run, name).is_some_and(|it| it.was_available);
        let mut clusters = earlier.into_iter().flat_map(|it| &it.clusters);
        let unfinished = clusters.find(|(name, is_done)| !**is_done && !is_available(name));
        unfinished.map_or(Ok(()), |(waiting, _)| {
            Err(format!(
                "cluster {} of stage {} got {} before cluster {waiting} of the stage before it",
                binding.cluster, stage.name, run.snapshot
            ))
        })
    }

    /// A cluster that has the resources loses them in the delete stage of a run.
    fn judge_removal(&self, binding: &SeenBinding) -> Result<(), String> {
        let named = (binding.placement.clone(), binding.cluster.clone());
        let is_free = !self.external.contains(&binding.placement)
            || !self.members.contains(&binding.cluster)
            || self.evicted.contains(&named);
        let deletes = |run: &Run| {
            run.stages.iter().all(|stage| stage.clusters.values().all(|is_done| *is_done))
        };
        if is_free || self.active(&binding.placement).any(deletes) {
            return Ok(());
        }
        Err(format!("cluster {} loses its resources, and no run deletes them", binding.cluster))
    }
}

fn is_done(stage: &Stage, binding: &SeenBinding) -> bool {
    binding.was_available || stage.clusters.get(&binding.cluster) == Some(&true)
}

impl SeenBinding {
    fn read(object: &Object, before: Option<&Self>, by_run: Option<String>) -> Self {
        let text = |field| object.spec_text(field).to_owned();
        let snapshot = text("resourceSnapshotName");
        let state = object.spec_text("state");
        let was_bound = object.annotation(PREVIOUS_STATE) == Some("Bound");
        let is_bound = state == "Bound" || state == "Unscheduled" && was_bound;
        let same = before.filter(|it| it.snapshot == snapshot && it.is_bound == is_bound);
        let is_available = object.condition("Available").is_some_and(|it| {
            it["status"] == "True" && it["observedGeneration"] == object.generation()
        });
        Self {
            placement: object.label(PARENT).unwrap_or_default().to_owned(),
            cluster: text("targetCluster"),
            snapshot,
            is_bound,
            is_deleting: object.is_deleting(),
            by_run: same.map_or(by_run, |it| it.by_run.clone()),
            was_available: is_available || same.is_some_and(|it| it.was_available),
        }
    }
}

#[cfg(test)]
mod tests;
