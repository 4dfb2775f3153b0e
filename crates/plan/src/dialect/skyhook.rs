//! Skyhook: node packages rolled through compartments with budgets and batches.
//!
//! A node's annotations are the truth about its packages; the Skyhook's status carries batch
//! state and the picked nodes. [`read`] folds pod results into node state, [`decide`] puts the
//! nodes into compartments, scores batches, starts nodes and advances those that hold a slot;
//! [`write`], [`status`] and [`report`] render the result.

mod admission;
mod decide;
mod names;
mod read;
mod report;
mod status;
mod validate;
mod watch;
mod write;

#[cfg(test)]
mod tests;

use convoy_api::kinds::POD;
use convoy_api::skyhook::{DEPLOYMENT_POLICY, SKYHOOK};
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use self::decide::Decision;
use self::read::hook::Hook;
use super::{Dialect, NamedKind, Watch};
use crate::admission::{Request, Verdict as Admitted, Webhook};
use crate::diagnostic::Diagnostic;
use crate::intervention::{Intervention, Refused};
use crate::permission::Permission;
use crate::snapshot::Snapshot;
use crate::step::{Action, Step, Verdict};
use crate::world::World;

pub use self::read::options::{Options, RuntimeTaint};
pub use self::write::{manual, migrate};

/// The `skyhook` dialect.
#[derive(Clone, Debug, Default)]
pub struct Skyhook {
    pub options: Options,
}

impl Skyhook {
    /// With upstream's defaults.
    pub const fn new() -> Self {
        Self { options: Options::new() }
    }
}

impl Dialect for Skyhook {
    fn name(&self) -> &'static str {
        "skyhook"
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
    }

    fn permissions(&self) -> Option<&'static [Permission]> {
        Some(write::permissions::PERMISSIONS)
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        *kind == SKYHOOK || *kind == DEPLOYMENT_POLICY
    }

    fn validate(&self, world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::validate(world, object, validate::Moment::Planning)
    }

    fn rollout_kinds(&self) -> &'static [NamedKind] {
        watch::ROLLOUT_KINDS
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

    fn affected_by(
        &self,
        _world: &World,
        before: &Object,
        after: &Object,
        _decided_at: Timestamp,
    ) -> Option<Vec<ObjectKey>> {
        watch::is_own_matter(before, after).then(|| vec![after.key().clone()])
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, rollout)
    }

    fn hangs_on(&self, _world: &World, rollout: &Object, refused: &Object) -> bool {
        watch::hangs_on(rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        if *rollout.kind() == POD {
            let step = Step::new(self.name(), rollout, Verdict::Held);
            return write::orphan::step(rollout, &self.options, snapshot, step);
        }
        let hook = match Hook::read(rollout) {
            Ok(hook) => hook,
            Err(error) => return Step::invalid(self.name(), rollout, vec![error.field]),
        };
        // A Skyhook that is being deleted asks nothing of others any more.
        let staying = snapshot.of(&SKYHOOK).iter().filter(|other| !other.is_deleting());
        let others: Vec<Hook<'_>> = staying.filter_map(|other| Hook::read(other).ok()).collect();
        let step = Step::new(self.name(), rollout, Verdict::Held);
        if rollout.is_deleting() {
            return write::deletion::step(&hook, &others, &self.options, snapshot, step);
        }
        rendered(Decision::new(&hook, &others, &self.options, snapshot, now), step)
    }

    fn has_member(&self, world: &World, rollout: &Object, name: &str) -> bool {
        watch::has_member(world, rollout, name)
    }

    fn intervene(
        &self,
        world: &World,
        rollout: &Object,
        intervention: &Intervention,
        _now: Timestamp,
    ) -> Result<Vec<Action>, Refused> {
        write::intervention::intervene(world, rollout, intervention)
    }

    fn webhooks(&self) -> &'static [Webhook] {
        admission::WEBHOOKS
    }

    fn admit(&self, webhook: &Webhook, world: &World, request: &Request<'_>) -> Admitted {
        admission::admit(webhook, world, request)
    }
}

/// A decision as a step.
fn rendered(mut decision: Decision<'_, '_>, mut step: Step) -> Step {
    let words = decision.words();
    let rolled_up = decision.rolled_up(&words);
    step.verdict = report::verdict(&decision);
    step.holds = report::holds(&mut decision);
    let status = status::status(&decision, &words, rolled_up, &step.holds);
    let changed = status != *decision.hook.object.status();
    let starting = report::starting(&decision);
    let reservation = (changed && starting > 0)
        .then(|| write::reservation(decision.hook.object, &status, starting));
    step.decision = report::summary(&decision, rolled_up);
    step.groups = report::groups(&decision);
    step.events = report::events::events(&decision, rolled_up);
    step.actions = write::actions(&decision, reservation);
    step.series = report::series::series(&decision, &words, rolled_up);
    step.status = changed.then_some(status);
    step
}
