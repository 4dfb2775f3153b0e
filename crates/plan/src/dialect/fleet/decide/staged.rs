//! Staged update runs: a placement's bindings moved stage by stage, with waits and approvals
//! between, and de-selected ones deleted at the end.
//!
//! A run is initialised once; from then on every pass first sees that nothing changed under it
//! ([`consistency`]) and then goes on from its recorded state. What cannot be undone by waiting
//! aborts the run; a person makes a new one.

pub(crate) mod approval;
pub(crate) mod consistency;
pub(crate) mod deletion;
pub(crate) mod execute;
pub(crate) mod initialise;
pub(crate) mod scope;
pub(crate) mod stages;
pub(crate) mod stop;

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::fleet::staged::UpdateRunSpec;
use jiff::Timestamp;
use smol_str::SmolStr;

use self::scope::Scope;
use crate::dialect::fleet::decide::selection::group::Decision;
use crate::dialect::fleet::decide::stage_limits;
use crate::dialect::fleet::names::{INITIALIZED, STARTED};
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::options::Options;
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::read::run::{Record, Stage, Stamp, spec};
use crate::dialect::fleet::read::strategy::When;
use crate::gate::{self, Candidate, Permit};
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;

/// Upstream looks again so often while clusters are in progress.
const CLUSTERS_SECS: i64 = 15;
/// Upstream looks again so often while a person has to approve.
const APPROVAL_SECS: i64 = 60;

/// Why a pass cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// For good: the run is over.
    Abort(String),
    /// For now: this is awaited.
    Retry(String),
}

/// Why a run as a whole waits, and until when if time frees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) reason: HoldReason,
    pub(crate) until: Option<Timestamp>,
}

/// The clusters of a stage that are in progress, and how many may be.
#[derive(Clone, Debug)]
pub(crate) struct Concurrency {
    pub(crate) in_flight: u32,
    pub(crate) ceiling: u32,
    pub(crate) by: Vec<SmolStr>,
}

/// What a pass changes beside the run's own record.
#[derive(Debug)]
pub(crate) enum Change<'w> {
    /// What is selected now is written down before the run begins.
    Snapshots { placement: Box<Placement<'w>>, decision: Decision<'w> },
    /// A person is asked to approve a stage.
    ApprovalRequested { request: String, stage: String, when: When },
    /// An approval counts from now on, and cannot be taken back.
    ApprovalAccepted { request: &'w Object, stage: String },
    /// A binding gets the run's resources.
    Updated { binding: Binding<'w>, resources: String, overrides: Applicable, permit: Permit },
    /// A binding has the run's resources already and is told to apply them.
    RolloutStarted { binding: Binding<'w>, resources: String },
    /// A de-selected cluster loses its resources.
    Removed { binding: Binding<'w>, permit: Permit },
}

/// A pass over a run: the record that becomes the status, and what is written beside it.
#[derive(Debug)]
pub(crate) struct Pass<'s, 'w> {
    snapshot: &'s Snapshot<'w>,
    options: Options,
    pub(crate) run: &'w Object,
    spec: UpdateRunSpec,
    pub(crate) stamp: Stamp,
    pub(crate) record: Record,
    /// In order.
    pub(crate) changes: Vec<Change<'w>>,
    pub(crate) requeue_secs: Option<i64>,
    pub(crate) wake_at: Option<Timestamp>,
    /// The run failed to initialise, or finished either way: nothing happens any more.
    pub(crate) is_over: bool,
    /// Why the run as a whole waits.
    pub(crate) wait: Option<Wait>,
    /// Whether someone stopped the run while clusters are in progress.
    stopping: bool,
    /// Clusters whose update does not work, with the reason.
    pub(crate) failing: Vec<(SmolStr, String)>,
    /// By stage, the delete stage last: the positions of the clusters that wait, and why.
    pub(crate) holds: BTreeMap<usize, Vec<(usize, HoldReason)>>,
}

/// The stages and clusters that the gate lets start.
#[derive(Debug)]
struct Started {
    clusters: Vec<usize>,
    permit: Option<Permit>,
}

impl Halt {
    fn abort(message: String) -> Self {
        Self::Abort(message)
    }
}

impl Wait {
    fn indefinite(reason: HoldReason) -> Self {
        Self { reason, until: None }
    }
}

/// One pass over an update run that is not being deleted.
pub(crate) fn decide<'s, 'w>(
    snapshot: &'s Snapshot<'w>,
    now: Timestamp,
    options: &Options,
) -> Pass<'s, 'w> {
    let run = snapshot.rollout();
    let generation = run.generation();
    let record = Record::read(run.status(), generation);
    let mut pass = Pass {
        options: options.at_once(),
        snapshot,
        run,
        spec: spec(run),
        stamp: Stamp { generation, now },
        is_over: record.is_over(),
        record,
        changes: Vec::new(),
        requeue_secs: None,
        wake_at: None,
        wait: None,
        stopping: false,
        failing: Vec::new(),
        holds: BTreeMap::new(),
    };
    if pass.is_over {
        return pass;
    }
    match pass.advance() {
        Ok(()) => {}
        Err(Halt::Abort(message)) => pass.abort(&message),
        Err(Halt::Retry(on)) => pass.wait = Some(Wait::indefinite(HoldReason::Depends { on })),
    }
    pass.hold_others();
    pass
}

impl Pass<'_, '_> {
    fn advance(&mut self) -> Result<(), Halt> {
        let scope = Scope::find(self.snapshot, self.run, &self.spec.placement_name)?;
        let current = if self.record.node.is_true(INITIALIZED) {
            consistency::current_stage(self, &scope)?
        } else {
            initialise::run(self, &scope)?;
            Some(0)
        };
        let Some(current) = current else {
            self.record.succeed(self.stamp);
            return Ok(());
        };
        match self.spec.state.as_deref() {
            Some("Run") => execute::stage(self, &scope, current),
            Some("Stop") => stop::stage(self, &scope, current),
            // Initialize, which is the default.
            _ => {
                self.wait = Some(Wait::indefinite(HoldReason::Paused));
                Ok(())
            }
        }
    }

    /// Ends the run for good. What was to be written for clusters in this pass is not: an
    /// aborted run starts nothing.
    fn abort(&mut self, message: &str) {
        self.changes.clear();
        self.holds.clear();
        self.requeue_secs = None;
        self.wake_at = None;
        if self.record.node.is_true(INITIALIZED) {
            self.record.fail(self.stamp, message);
        } else {
            // Nothing of a half-made record is worth keeping.
            self.record = Record::read(self.run.status(), self.stamp.generation);
            let why = ("UpdateRunInitializedFailed", message);
            self.record.node.set(self.stamp, INITIALIZED, "False", why);
        }
        self.wait = Some(Wait::indefinite(HoldReason::Failed { detail: message.to_owned() }));
    }

    /// Looks again at `at`, or earlier.
    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |other| other.min(at)));
    }

    /// Asks the gate which clusters of stage `index` start, and notes why the others wait.
    fn admit(
        &mut self,
        index: usize,
        earlier: Option<HoldReason>,
        concurrency: Option<Concurrency>,
    ) -> Started {
        let Some(stage) = self.record.stage(index) else {
            return Started { clusters: Vec::new(), permit: None };
        };
        let stopped = || self.stopping.then(|| Wait::indefinite(HoldReason::Paused));
        let wait = self.wait.clone().or_else(stopped);
        let limits = stage_limits(wait.as_ref(), earlier, concurrency);
        let admission = gate::admit(waiting(stage), &limits);
        let permit = admission.permit();
        let clusters = admission.starts.iter().map(|member| member.index).collect();
        let holds = admission.holds.into_iter().map(|(member, reason)| (member.index, reason));
        let holds = holds.collect();
        self.holds.insert(index, holds);
        Started { clusters, permit }
    }

    /// Asks the gate about every stage that was not worked on: all their clusters wait.
    fn hold_others(&mut self) {
        let mut earlier = None;
        for index in 0..=self.record.stages.len() {
            let Some(stage) = self.record.stage(index) else { continue };
            let (name, finished) = (stage.name().to_owned(), stage.is_finished());
            let order = HoldReason::GroupOrder {
                behind: format!("stage {name}"),
                unfinished: crate::count(stage.unfinished()),
            };
            if !self.holds.contains_key(&index) {
                let on = || format!("the status of the stage before {name} to be written");
                let order = earlier.clone().unwrap_or_else(|| HoldReason::Depends { on: on() });
                self.admit(index, Some(order), None);
            }
            if earlier.is_none() && !finished {
                earlier = Some(order);
            }
        }
    }
}

/// The clusters of a stage that have not begun.
fn waiting(stage: &Stage) -> Vec<Candidate<'_>> {
    let numbered = stage.clusters.iter().enumerate();
    let waiting =
        numbered.filter(|(_, cluster)| !cluster.is_true(STARTED) && cluster.end().is_none());
    waiting.map(|(at, cluster)| Candidate::free(cluster.cluster_name(), at)).collect()
}
