//! KubeFleet: placements rolled over member clusters.
//!
//! A placement's step joins the stages of the pipeline, which run independently on the objects
//! as given: selecting resources, scheduling clusters, rolling out bindings, rolling up status. Only
//! the number of clusters that are picked in the same step counts for the rollout at once.

mod admission;
mod decide;
pub mod names;
mod read;
mod report;
mod status;
mod validate;
mod watch;
mod write;

use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;
use serde_json::Value;
use smol_str::SmolStr;

use self::decide::selection::Selection;
use self::decide::selection::policy::PolicyHistory;
use self::decide::selection::select::SelectionError;
use self::decide::works::Phase;
use self::names::{DIALECT, RolloutKind};
pub use self::read::options::{GuardRail, Options};
use self::read::placement::Placement;
use self::report::PartialStep;
use self::status::binding::Synced;
use self::status::rollup;
pub use self::write::membership::agent_rules;
use super::{Dialect, NamedKind, Need, Watch};
use crate::admission::{Request, Verdict as Admitted, Webhook};
use crate::diagnostic::Diagnostic;
use crate::hold::{Hold, HoldReason};
use crate::intervention::{Intervention, Refused, Revision};
use crate::parallel;
use crate::permission::Permission;
use crate::snapshot::Snapshot;
use crate::step::{Action, Complaint, Denial, Step, Verb, Verdict};
use crate::world::World;

/// The `fleet` dialect of plans.
#[derive(Clone, Copy, Debug)]
pub struct Fleet;

/// The controller of a hub. Unlike a plan it judges no objects of other kinds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hub {
    pub options: Options,
}

impl Dialect for Fleet {
    fn name(&self) -> &'static str {
        DIALECT
    }

    fn watches(&self) -> &'static [Watch] {
        &watch::WATCHES
    }

    fn permissions(&self) -> Option<&'static [Permission]> {
        Some(write::permissions::PERMISSIONS)
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        validate::validates(kind)
    }

    fn validate(&self, world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::validate(world, object)
    }

    fn rollout_kinds(&self) -> &'static [NamedKind] {
        &watch::ROLLOUT_KINDS
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        watch::rollouts(world)
    }

    fn is_rollout(&self, world: &World, object: &Object) -> bool {
        watch::is_rollout(world, object)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        Snapshot::new(rollout, watch::surroundings(world, rollout)).within(world)
    }

    fn validates_beside(&self, kind: &GroupKind, other: &GroupKind) -> bool {
        validate::validates_beside(kind, other)
    }

    fn affected_by(
        &self,
        world: &World,
        before: &Object,
        after: &Object,
        decided_at: Timestamp,
    ) -> Option<Vec<ObjectKey>> {
        watch::member_change::affected(world, before, after, decided_at)
    }

    fn hangs_on(&self, world: &World, rollout: &Object, refused: &Object) -> bool {
        watch::hangs_on(world, rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        step(snapshot, now, &Options { sees_all_clusters: false, ..Options::new() })
    }

    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
        let mut complaint = Complaint::about(snapshot.rollout(), denial);
        let generation = decide::works::decide(snapshot)
            .filter(|it| denial.target.kind == names::WORK && !it.binding.is_deleting());
        if let Some(generation) = generation {
            let detail =
                format!("cannot {} Work {}: {}", denial.verb, denial.target.name, denial.message);
            let synced = Synced::Failed { detail };
            complaint.status =
                status::binding::status(&generation.binding, &synced, &generation.works, now);
        }
        complaint
    }

    fn member_names(&self, world: &World, name: &str) -> Vec<SmolStr> {
        watch::member_names(world, name)
    }

    fn has_member(&self, world: &World, rollout: &Object, name: &str) -> bool {
        watch::has_member(world, rollout, name)
    }

    fn intervene(
        &self,
        world: &World,
        rollout: &Object,
        intervention: &Intervention,
        now: Timestamp,
    ) -> Result<Vec<Action>, Refused> {
        write::intervention::intervene(world, rollout, intervention, now)
    }

    fn revisions(&self, world: &World, rollout: &Object) -> Vec<Revision> {
        write::intervention::revisions(world, rollout)
    }

    fn webhooks(&self) -> &'static [Webhook] {
        admission::WEBHOOKS
    }

    fn admit(&self, webhook: &Webhook, world: &World, request: &Request<'_>) -> Admitted {
        admission::admit(webhook, world, request)
    }
}

impl Dialect for Hub {
    fn name(&self) -> &'static str {
        DIALECT
    }

    fn watches(&self) -> &'static [Watch] {
        &watch::WATCHES
    }

    fn permissions(&self) -> Option<&'static [Permission]> {
        Some(write::permissions::PERMISSIONS)
    }

    fn version(&self, kind: &GroupKind) -> &'static str {
        names::version(kind)
    }

    fn needs(&self, world: &World, rollout: &Object) -> Vec<Need> {
        watch::needs::needs(world, rollout, &self.options)
    }

    fn takes_along(&self, kind: &GroupKind) -> bool {
        names::kind::is_selectable(kind)
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        Fleet.validates(kind)
    }

    fn validate(&self, world: &World, object: &Object) -> Vec<Diagnostic> {
        Fleet.validate(world, object)
    }

    fn rollout_kinds(&self) -> &'static [NamedKind] {
        Fleet.rollout_kinds()
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        let mut found = watch::own_rollouts(world);
        found.sort_by(|a, b| a.key().cmp(b.key()));
        found
    }

    fn is_rollout(&self, world: &World, object: &Object) -> bool {
        watch::is_own_rollout(world, object)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        let mut found = Fleet.affected(world, changed);
        found.retain(|key| RolloutKind::of(&key.kind).is_some());
        found
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        Fleet.snapshot(world, rollout)
    }

    fn validates_beside(&self, kind: &GroupKind, other: &GroupKind) -> bool {
        Fleet.validates_beside(kind, other)
    }

    fn affected_by(
        &self,
        world: &World,
        before: &Object,
        after: &Object,
        decided_at: Timestamp,
    ) -> Option<Vec<ObjectKey>> {
        Fleet.affected_by(world, before, after, decided_at)
    }

    fn hangs_on(&self, world: &World, rollout: &Object, refused: &Object) -> bool {
        Fleet.hangs_on(world, rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let mut step = picks_first(step(snapshot, now, &self.options));
        if let Some(RolloutKind::Placement(_)) = RolloutKind::of(snapshot.rollout().kind()) {
            let until = decide::schedule::reasons_hold_until(snapshot, now);
            step.wake_at = [step.wake_at, until].into_iter().flatten().min();
        }
        step
    }

    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
        Fleet.complaint(snapshot, denial, now)
    }

    fn webhooks(&self) -> &'static [Webhook] {
        match self.options.guard_rail {
            Some(_) => &admission::WITH_GUARDS,
            None => Fleet.webhooks(),
        }
    }

    fn admit(&self, webhook: &Webhook, world: &World, request: &Request<'_>) -> Admitted {
        Fleet.admit(webhook, world, request)
    }

    fn guard(&self, world: &World, request: &Value) -> Admitted {
        let guard = self.options.guard_rail;
        guard.map_or_else(Admitted::allowed, |it| admission::guard::judge(it, world, request))
    }
}

/// The parts of a step run independently on the objects as given: the rollout does not count the
/// clusters that are being picked, and all former ones could go. Who goes is decided afterwards.
fn picks_first(mut step: Step) -> Step {
    if step.actions.iter().any(|action| action.verb == Verb::Schedule) {
        step.actions.retain(|action| !matches!(action.verb, Verb::Remove(_)));
    }
    step
}

fn step(snapshot: &Snapshot<'_>, now: Timestamp, options: &Options) -> Step {
    let mut step = match RolloutKind::of(snapshot.rollout().kind()) {
        Some(RolloutKind::Placement(_)) => placement_step(snapshot, now, options),
        Some(RolloutKind::Run(_)) => run_step(snapshot, now, options),
        Some(RolloutKind::Binding(_)) => binding_step(snapshot, now),
        Some(RolloutKind::Eviction) => eviction_step(snapshot, now),
        Some(RolloutKind::Override) => override_step(snapshot),
        Some(RolloutKind::Member) => member_step(snapshot, now, options),
        None => report::available::step(snapshot.rollout()),
    };
    if step.verdict != Verdict::Invalid {
        step.series = report::series::series(snapshot.rollout(), step.status.as_ref());
    }
    step
}

fn placement_step(snapshot: &Snapshot<'_>, now: Timestamp, options: &Options) -> Step {
    let rollout = snapshot.rollout();
    match Placement::read(rollout) {
        Ok(placement) if rollout.is_deleting() => deleted_placement(snapshot, &placement, now),
        Ok(placement) => live_placement(snapshot, &placement, now, options),
        Err(unsound) => Step::invalid(DIALECT, rollout, vec![unsound.field]),
    }
}

fn deleted_placement<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'w>,
    now: Timestamp,
) -> Step {
    let mut step = Step::new(DIALECT, placement.object, Verdict::Done);
    let cleanup = decide::cleanup::decide(snapshot, placement);
    let actions = write::cleanup::actions(&cleanup, placement);
    report::cleanup::partial(&cleanup, actions).join(&mut step);
    rolled_out(snapshot, placement, now, 0).join(&mut step);
    step
}

/// Joins the parts of the pipeline, which run independently on the objects as given.
fn live_placement<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'w>,
    now: Timestamp,
    options: &Options,
) -> Step {
    let mut step = Step::new(DIALECT, placement.object, Verdict::Done);
    step.actions.extend(write::cleanup::guarded(placement));
    let history = PolicyHistory::of(snapshot, placement);
    let inputs = rollup::Inputs { snapshot, placement, policy: history.active, now };
    let members = snapshot.of(&placement.binding_kind()).len();
    let ((selected, reported), rolled) = parallel::join(
        members >= parallel::MADE_MIN,
        || {
            let selected = selected(snapshot, placement, now, options)
                .map(|partial| (partial, scheduled(inputs, &history, options)));
            let reported = selected.is_ok().then(|| rollup::status(inputs));
            (selected, reported)
        },
        || rolled_out(snapshot, placement, now, 0),
    );
    // Clusters that are picked now are to carry the resources, and do not yet.
    let coming = |it: &(_, PartialStep)| write::schedule::new_bindings(&it.1.actions, placement);
    let coming = selected.as_ref().map_or(0, coming);
    let rolled = if coming > 0 { rolled_out(snapshot, placement, now, coming) } else { rolled };
    match selected {
        Ok((selected, scheduled)) => {
            let actions = write::policy_snapshot::actions(&history, placement);
            PartialStep { actions, ..PartialStep::default() }.join(&mut step);
            selected.join(&mut step);
            scheduled.join(&mut step);
            let (status, shown) = reported.unwrap_or_default();
            step.status = status;
            step.actions.extend(shown);
        }
        Err(error) => {
            let detail = error.to_string();
            step.status = rollup::refused(inputs, &detail);
            step.holds.push(Hold::of_rollout(HoldReason::Failed { detail }));
            step.verdict = Verdict::Stopped;
        }
    }
    rolled.join_behind(&mut step);
    report::never_silently_stuck(&mut step);
    step
}

fn selected(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    now: Timestamp,
    options: &Options,
) -> Result<PartialStep, SelectionError> {
    let selection = decide::selection::decide(snapshot, placement, now, options)?;
    let mut partial = report::selection::partial(&selection, placement);
    if let Selection::Compared(decision) = &selection {
        partial.actions = write::snapshot::actions(decision, placement, now);
    }
    Ok(partial)
}

fn scheduled<'w>(
    inputs: rollup::Inputs<'_, 'w>,
    history: &PolicyHistory<'w>,
    options: &Options,
) -> PartialStep {
    let rollup::Inputs { snapshot, placement, now, .. } = inputs;
    // Files without member clusters say nothing about where resources could go.
    if snapshot.of(&names::MEMBER_CLUSTER).is_empty() && !options.sees_all_clusters {
        return PartialStep::default();
    }
    let schedule = decide::schedule::decide(snapshot, placement, history, now);
    let mut partial = report::schedule::partial(&schedule, placement);
    let policy = &history.active_name;
    partial.actions = write::schedule::actions(snapshot, placement, &schedule, policy);
    // A snapshot that is about to be written itself gets its status in the next pass.
    if let Some(policy) = history.unchanged() {
        partial.actions.extend(status::policy::status(placement, policy, &schedule.picks, now));
    }
    partial
}

fn rolled_out<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'w>,
    now: Timestamp,
    coming: u32,
) -> PartialStep {
    let rollout = decide::rollout::decide(snapshot, placement, now, coming);
    let actions = write::rollout::actions(&rollout, placement, now);
    PartialStep { actions, ..report::rollout::partial(&rollout, placement, now) }
}

fn run_step(snapshot: &Snapshot<'_>, now: Timestamp, options: &Options) -> Step {
    let run = snapshot.rollout();
    if run.is_deleting() {
        let mut step = report::run::quiet(run);
        step.actions = write::run::cleanup(snapshot, run);
        if !step.actions.is_empty() {
            step.verdict = Verdict::Moving;
        }
        return step;
    }
    let pass = decide::staged::decide(snapshot, now, options);
    if pass.is_over {
        return report::run::over(run, &pass.record);
    }
    let actions = write::run::actions(&pass);
    let mut step = report::run::step(&pass, &actions);
    step.actions = actions;
    step.status = status::run::status(&pass);
    step
}

/// The Works of a binding, and what the binding reports about them.
fn binding_step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let Some(generation) = decide::works::decide(snapshot) else {
        return Step::new(DIALECT, snapshot.rollout(), Verdict::Done);
    };
    let sources = match &generation.phase {
        Phase::Idle | Phase::AwaitingRollout => {
            return report::works::step(&generation, Vec::new(), None);
        }
        Phase::Withdrawing { abandon } => {
            let actions = write::work::withdrawn(&generation, *abandon);
            return report::works::step(&generation, actions, None);
        }
        Phase::Generating(sources) => sources,
    };
    let mut actions: Vec<Action> = write::work::guarded(snapshot.rollout()).into_iter().collect();
    let desired = write::work_content::desired(&generation.binding, sources, &generation.works);
    let (synced, failure) = match &desired {
        Ok(desired) => {
            let written = write::work::actions(&generation, desired.as_deref());
            let unchanged = written.is_empty() && generation.leaving.is_empty();
            actions.extend(written);
            (if unchanged { Synced::Unchanged } else { Synced::Written }, None)
        }
        Err(error) => {
            let detail = error.to_string();
            let failure = Some(detail.clone());
            if error.is_of_override() {
                (Synced::OverrideFailed { detail }, failure)
            } else {
                (Synced::Failed { detail }, failure)
            }
        }
    };
    let mut step = report::works::step(&generation, actions, failure);
    step.status = status::binding::status(&generation.binding, &synced, &generation.works, now);
    step
}

fn eviction_step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let eviction = snapshot.rollout();
    let decided = decide::eviction::decide(snapshot);
    let mut step = report::eviction::step(eviction, &decided);
    step.actions = write::eviction::actions(&decided);
    step.status = status::eviction::status(eviction, &decided, now);
    step
}

fn override_step(snapshot: &Snapshot<'_>) -> Step {
    let rollout = snapshot.rollout();
    let history = decide::override_history::decide(snapshot);
    report::overrides::step(rollout, write::override_snapshot::actions(rollout, &history))
}

fn member_step(snapshot: &Snapshot<'_>, now: Timestamp, options: &Options) -> Step {
    let member = snapshot.rollout();
    let membership = decide::membership::decide(snapshot, options, now);
    let profile = decide::profile::decide(snapshot, options, now);
    let released = write::profile::released(&profile);
    let mut actions = write::membership::actions(snapshot, &membership, released);
    // A step writes each object once.
    if actions.iter().all(|action| action.target != *member.key()) {
        actions.extend(write::profile::actions(member, &profile, now));
    }
    let mut step = report::membership::step(member, &membership, &profile, actions);
    step.status = status::membership::status(member, &membership, now);
    step
}
