//! Staged update runs: a placement's bindings moved stage by stage, with waits and approvals
//! between, and de-selected ones deleted at the end.
//!
//! A run is initialised once, from then on every pass first sees that nothing changed under it
//! ([`validate`]) and then goes on from its recorded state. What cannot be undone by waiting
//! aborts the run; a person makes a new one.

pub mod approval;
pub mod consistency;
pub mod deletion;
pub mod execute;
pub mod initialise;
pub mod scope;
pub mod stages;
pub mod stop;

use crate::dialect::fleet::decide::staged::consistency as validate;
use crate::dialect::fleet::decide::staged::scope::Scope;
use crate::dialect::fleet::names::{DIALECT, Family, RUN_CLEANUP, TARGET_RUN};
use crate::dialect::fleet::read::placement::{list, text};
use crate::dialect::fleet::read::run::{INITIALIZED, Record, Stamp};
use crate::dialect::fleet::report::staged as report;
use crate::hold::{Hold, HoldReason};
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Step, Verb, Verdict, Why};
use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

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

/// A pass under way: the record that becomes the status, and what is written beside it.
#[derive(Debug)]
pub(crate) struct Pass<'s, 'w> {
    pub(crate) snapshot: &'s Snapshot<'w>,
    pub(crate) run: &'w Object,
    pub(crate) stamp: Stamp,
    pub(crate) record: Record,
    pub(crate) actions: Vec<Action>,
    /// Bindings written now.
    pub(crate) roll: Vec<SmolStr>,
    /// Bindings deleted now.
    pub(crate) remove: Vec<SmolStr>,
    pub(crate) requeue_secs: Option<i64>,
    pub(crate) wake_at: Option<Timestamp>,
    /// Why the run as a whole waits, and until when if time frees it.
    pub(crate) waits: Option<(HoldReason, Option<Timestamp>)>,
    /// Clusters whose update does not work, with the reason.
    pub(crate) failing: Vec<(SmolStr, String)>,
}

impl Halt {
    fn abort(message: String) -> Self {
        Self::Abort(message)
    }
}

/// The step of one update run.
pub fn step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let run = snapshot.rollout();
    if run.is_deleting() {
        return farewell(snapshot, run);
    }
    let generation = run.generation();
    let mut pass = Pass {
        snapshot,
        run,
        stamp: Stamp { generation, now },
        record: Record::read(run.status(), generation),
        actions: Vec::new(),
        roll: Vec::new(),
        remove: Vec::new(),
        requeue_secs: None,
        wake_at: None,
        waits: None,
        failing: Vec::new(),
    };
    if pass.is_over() {
        return report::over(&pass);
    }
    pass.ensure_finalizer();
    match pass.advance() {
        Ok(()) => {}
        Err(Halt::Abort(message)) => pass.abort(&message),
        Err(Halt::Retry(on)) => pass.waits = Some((HoldReason::Depends { on }, None)),
    }
    report::step(pass)
}

impl Pass<'_, '_> {
    /// Whether the run failed to initialise, or finished either way: nothing happens any more.
    fn is_over(&self) -> bool {
        let node = &self.record.node;
        node.status(INITIALIZED) == Some("False")
            || node.is_true(INITIALIZED) && node.end().is_some()
    }

    fn ensure_finalizer(&mut self) {
        if self.run.has_finalizer(RUN_CLEANUP) {
            return;
        }
        let mut finalizers = list(self.run.metadata(), "finalizers").to_vec();
        finalizers.push(json!(RUN_CLEANUP));
        let why = Why::new("Begun", "approval requests are cleaned up with the run");
        let patch = json!({"metadata": {"finalizers": finalizers}});
        self.actions.push(Action::patch(Verb::Record, self.run, patch, why));
    }

    fn advance(&mut self) -> Result<(), Halt> {
        let scope = Scope::find(self.snapshot, self.run)?;
        let current = if self.record.node.is_true(INITIALIZED) {
            validate::current_stage(self, &scope)?
        } else {
            initialise::run(self, &scope)?;
            Some(0)
        };
        let Some(current) = current else {
            self.record.succeed(self.stamp);
            return Ok(());
        };
        match text(self.run.spec(), "state") {
            "Run" => execute::stage(self, &scope, current),
            "Stop" => stop::stage(self, &scope, current),
            // Initialize, which is the default.
            _ => {
                self.waits = Some((HoldReason::Paused, None));
                Ok(())
            }
        }
    }

    /// Ends the run for good. What was to be written for clusters in this pass is not: an
    /// aborted run starts nothing.
    fn abort(&mut self, message: &str) {
        self.roll.clear();
        self.remove.clear();
        self.actions.retain(|action| action.target == *self.run.key());
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
        self.waits = Some((HoldReason::Failed { detail: message.to_owned() }, None));
    }

    /// Looks again at `at`, or earlier.
    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |other| other.min(at)));
    }

    /// The recorded configuration of a stage.
    pub(crate) fn config(&self, stage: usize) -> Value {
        let strategy = self.record.node.get("stagedUpdateStrategySnapshot");
        list(strategy, "stages").get(stage).cloned().unwrap_or_default()
    }
}

/// A run that is being deleted takes its approval requests along.
fn farewell(snapshot: &Snapshot<'_>, run: &Object) -> Step {
    let mut step = Step::new(DIALECT, run, Verdict::Done);
    step.decision = json!({"roll": [], "remove": []});
    if !run.has_finalizer(RUN_CLEANUP) {
        return step;
    }
    let requests = snapshot.of(&Family::of(run).approval_request()).iter().copied();
    let ours = requests.filter(|request| {
        request.namespace() == run.namespace()
            && request.label(TARGET_RUN) == Some(run.name().as_str())
            && !request.is_deleting()
    });
    for request in ours {
        let why = Why::new("RunDeleted", "the update run it belongs to is being deleted");
        step.actions.push(Action::delete(Verb::Delete, request, Propagation::Background, why));
    }
    let finalizers = list(run.metadata(), "finalizers").iter();
    let others: Vec<&Value> = finalizers.filter(|it| it.as_str() != Some(RUN_CLEANUP)).collect();
    let why = Why::new("RunDeleted", "nothing of the run is left to clean up");
    let patch = json!({"metadata": {"finalizers": others}});
    step.actions.push(Action::patch(Verb::Release, run, patch, why));
    step.verdict = Verdict::Moving;
    step
}

pub(crate) fn rollout_hold(reason: HoldReason, until: Option<Timestamp>) -> Hold {
    Hold::of_rollout(reason).until(until)
}
