//! KubeFleet: placements rolled over member clusters.
//!
//! A placement's step joins the stages of the pipeline, which run independently on the objects
//! as given: selecting resources, scheduling clusters, rolling out bindings, rolling up status.

pub mod decide;
pub mod names;
pub mod read;
pub mod report;
pub mod status;
pub mod validate;
pub mod watch;
pub mod write;

use crate::diagnostic::Diagnostic;
use crate::dialect::fleet::decide::selection::policy::Line;
use crate::dialect::fleet::decide::{
    available, cleanup, eviction, membership, override_history, rollout, schedule, selection,
    staged,
};
use crate::dialect::fleet::names::{DIALECT, Family, Role};
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::report::Part;
use crate::dialect::fleet::status::rollup;
use crate::dialect::fleet::{report as part, watch as scope};
use crate::dialect::{Dialect, Keep, Watch};
use crate::hold::{Hold, HoldReason};
use crate::parallel;
use crate::snapshot::Snapshot;
use crate::step::{Step, Verdict};
use crate::world::World;
use std::collections::BTreeSet;

use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

/// The `fleet` dialect.
#[derive(Clone, Copy, Debug)]
pub struct Fleet;

impl Dialect for Fleet {
    fn name(&self) -> &'static str {
        DIALECT
    }

    fn watches(&self) -> &'static [Watch] {
        &WATCHES
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        validate::validates(kind)
    }

    fn validate(&self, world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::validate(world, object)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        let mut found: Vec<&Object> = Vec::new();
        for family in Family::ALL {
            found.extend(world.of(&family.placement()));
            found.extend(world.of(&family.run()));
        }
        for kind in [names::EVICTION, names::CLUSTER_OVERRIDE, names::OVERRIDE] {
            found.extend(world.of(&kind));
        }
        let members = world.of(&names::MEMBER_CLUSTER);
        found.extend(members.filter(|member| membership::is_concerned(world, member)));
        found.extend(available::judged(world));
        found.sort_by(|a, b| a.key().cmp(b.key()));
        found
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        scope::affected(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        Snapshot::new(rollout, scope::surroundings(world, rollout))
    }

    fn hangs_on(&self, world: &World, rollout: &Object, refused: &Object) -> bool {
        scope::hangs_on(world, rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        match Role::of(snapshot.rollout().kind()) {
            Some(Role::Placement(_)) => placement_step(snapshot, now),
            Some(Role::Run(_)) => staged::step(snapshot, now),
            Some(Role::Eviction) => eviction::step(snapshot, now),
            Some(Role::Override) => override_history::step(snapshot),
            Some(Role::Member) => membership::step(snapshot, now),
            None => available::step(snapshot.rollout()),
        }
    }
}

/// Joins the stages of a placement.
fn placement_step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let rollout = snapshot.rollout();
    let mut step = Step::new(DIALECT, rollout, Verdict::Done);
    let placement = match Placement::read(rollout) {
        Ok(placement) => placement,
        Err(unsound) => {
            step.verdict = Verdict::Invalid;
            let fields = vec![unsound.field.to_owned()];
            step.holds.push(Hold::of_rollout(HoldReason::Invalid { fields }));
            return step;
        }
    };
    if rollout.is_deleting() {
        cleanup::part(snapshot, &placement).join(&mut step);
        rollout::part(snapshot, &placement, now).join(&mut step);
        return step;
    }
    step.actions.extend(cleanup::guarded(&placement));
    let line = Line::read(snapshot, &placement);
    let inputs = rollup::Inputs { snapshot, placement: &placement, policy: line.active(), now };
    let members = snapshot.of(&placement.binding_kind()).len();
    let ((selected, reported), rolled) = parallel::join(
        members >= parallel::MADE_MIN,
        || {
            let selected = selection::part(snapshot, &placement, now)
                .map(|part| (part, schedule::part(snapshot, &placement, &line, now)));
            let reported = selected.is_ok().then(|| rollup::status(inputs));
            (selected, reported)
        },
        || rollout::part(snapshot, &placement, now),
    );
    match selected {
        Ok((part, scheduled)) => {
            let policy = Part { actions: line.actions.clone(), ..Part::default() };
            policy.join(&mut step);
            part.join(&mut step);
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
    join_rollout(rolled, &mut step);
    part::never_silently_stuck(&mut step);
    step
}

/// Joins the rolling update. What the scheduler writes to a binding goes first; the rollout
/// sees it in the next pass.
fn join_rollout(mut part: Part, step: &mut Step) {
    let written: BTreeSet<&ObjectKey> = step.actions.iter().map(|action| &action.target).collect();
    part.actions.retain(|action| !written.contains(&action.target));
    part.join(step);
}

const fn whole(kind: GroupKind) -> Watch {
    Watch { kind, keep: Keep::Whole }
}

/// The fleet's own kinds. Kinds that placements select come on top, as they are selected.
static WATCHES: [Watch; 23] = [
    whole(Family::Cluster.placement()),
    whole(Family::Cluster.binding()),
    whole(Family::Cluster.resource_snapshot()),
    whole(Family::Cluster.policy_snapshot()),
    whole(Family::Cluster.run()),
    whole(Family::Cluster.strategy()),
    whole(Family::Cluster.approval_request()),
    whole(Family::Namespaced.placement()),
    whole(Family::Namespaced.binding()),
    whole(Family::Namespaced.resource_snapshot()),
    whole(Family::Namespaced.policy_snapshot()),
    whole(Family::Namespaced.run()),
    whole(Family::Namespaced.strategy()),
    whole(Family::Namespaced.approval_request()),
    whole(names::EVICTION),
    whole(names::DISRUPTION_BUDGET),
    whole(names::CLUSTER_OVERRIDE),
    whole(names::CLUSTER_OVERRIDE_SNAPSHOT),
    whole(names::OVERRIDE),
    whole(names::OVERRIDE_SNAPSHOT),
    whole(names::MEMBER_CLUSTER),
    whole(names::INTERNAL_MEMBER_CLUSTER),
    whole(names::PLACEMENT_STATUS),
];
