//! KubeFleet: placements rolled over member clusters.
//!
//! A placement's step joins the stages of the pipeline, which run independently on the objects
//! as given: selecting resources, scheduling clusters, rolling out bindings, rolling up status.

pub mod available;
pub mod binding;
pub mod cleanup;
pub mod eviction;
mod membership;
pub mod names;
pub mod override_history;
pub mod overrides;
pub mod part;
pub mod placement;
pub mod resource_group;
pub mod rollout;
pub mod rollup;
pub mod schedule;
mod scope;
pub mod selection;
pub mod staged;
mod validate;
pub mod work;

use std::collections::BTreeSet;

use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use self::names::Family;
use self::part::Part;
use self::placement::Placement;
use self::selection::policy::Line;
use super::{Dialect, Keep, Watch};
use crate::diagnostic::Diagnostic;
use crate::hold::{Hold, HoldReason};
use crate::parallel;
use crate::snapshot::Snapshot;
use crate::step::{Step, Verdict};
use crate::world::World;

/// The `fleet` dialect.
#[derive(Clone, Copy, Debug)]
pub struct Fleet;

/// The word that plans and `--dialects` use.
pub const DIALECT: &str = "fleet";

/// What a rollout object of this dialect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Placement(Family),
    Run(Family),
    Eviction,
    Override,
    /// A cluster that joins or leaves.
    Member,
}

impl Role {
    /// None: the object is not of the fleet's own rollout kinds.
    pub(crate) fn of(kind: &GroupKind) -> Option<Self> {
        let of_family = |family: Family| {
            if *kind == family.placement() {
                Some(Self::Placement(family))
            } else {
                (*kind == family.run()).then_some(Self::Run(family))
            }
        };
        Family::ALL.into_iter().find_map(of_family).or_else(|| {
            let overrides = *kind == names::CLUSTER_OVERRIDE || *kind == names::OVERRIDE;
            if overrides {
                Some(Self::Override)
            } else if *kind == names::MEMBER_CLUSTER {
                Some(Self::Member)
            } else {
                (*kind == names::EVICTION).then_some(Self::Eviction)
            }
        })
    }
}

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
