//! Skyhook: node packages rolled through compartments with budgets and batches.
//!
//! A node is the truth about its packages (annotations); the Skyhook's status carries batch
//! state and who was picked. A pass folds pod results into node state ([`observe`]), puts the
//! nodes into compartments ([`compartment`]), scores and picks ([`batch`], [`pass`]), drives
//! the nodes that hold a slot ([`drive`]) and renders the result ([`writes`], [`status`],
//! [`report`]).

mod admission;
mod assess;
mod batch;
mod compartment;
mod config;
mod defaults;
mod drain;
mod drive;
mod farewell;
mod glob;
mod hook;
mod interrupt;
mod lifecycle;
pub mod manual;
mod member;
mod metadata;
pub mod migrate;
mod names;
mod node_write;
mod observe;
mod options;
mod pass;
mod pod;
mod policy;
mod report;
mod room;
mod series;
mod state;
mod status;
mod status_conditions;
mod validate;
mod version;
mod writes;

use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use self::config::CONFIG_MAP;
use self::drain::BUDGET;
use self::hook::Hook;
use self::names::{CORDON, NAME, NODE_META};
use self::pass::{NODE, POD, POLICY, Pass, SKYHOOK};
use super::{Dialect, Keep, Watch};
use crate::admission::{Request, Verdict as Admitted, Webhook};
use crate::diagnostic::Diagnostic;
use crate::hold::{Hold, HoldReason};
use crate::merge_patch;
use crate::snapshot::Snapshot;
use crate::step::{Action, Step, Verb, Verdict, Why};
use crate::world::World;

pub use self::options::{Options, RuntimeTaint};

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

const WATCHES: &[Watch] = &[
    Watch { kind: SKYHOOK, keep: Keep::Whole },
    Watch { kind: POLICY, keep: Keep::Whole },
    Watch {
        kind: NODE,
        keep: Keep::Fields(&[
            "spec.taints",
            "spec.unschedulable",
            "status.conditions",
            "status.nodeInfo.bootID",
        ]),
    },
    Watch {
        kind: POD,
        keep: Keep::Fields(&[
            "spec.nodeName",
            "spec.tolerations",
            "spec.initContainers",
            "status.phase",
            "status.initContainerStatuses",
        ]),
    },
    Watch { kind: BUDGET, keep: Keep::Fields(&["spec.selector", "status.disruptionsAllowed"]) },
    Watch { kind: CONFIG_MAP, keep: Keep::Whole },
];

impl Dialect for Skyhook {
    fn name(&self) -> &'static str {
        "skyhook"
    }

    fn watches(&self) -> &'static [Watch] {
        WATCHES
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        *kind == SKYHOOK || *kind == POLICY
    }

    fn validate(&self, world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::validate(world, object, validate::Moment::Planning)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&SKYHOOK).collect()
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        let named = affected_by_name(world, changed);
        let skyhooks = world.of(&SKYHOOK).filter(|skyhook| match &named {
            Some(test) => test(skyhook),
            None => true,
        });
        skyhooks.map(|skyhook| skyhook.key().clone()).collect()
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        let relevant = |map: &&Object| map.label(NAME).or_else(|| map.label(NODE_META)).is_some();
        let objects = world.of(&SKYHOOK).filter(|other| other.key() != rollout.key());
        let objects = objects.chain(world.of(&POLICY)).chain(world.of(&NODE));
        let objects = objects.chain(world.of(&POD)).chain(world.of(&BUDGET));
        Snapshot::new(rollout, objects.chain(world.of(&CONFIG_MAP).filter(relevant)))
    }

    fn hangs_on(&self, _world: &World, rollout: &Object, refused: &Object) -> bool {
        *refused.kind() == POLICY && policy_of(rollout) == Some(refused.name())
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        let hook = match Hook::read(rollout) {
            Ok(hook) => hook,
            Err(error) => {
                let mut step = Step::new(self.name(), rollout, Verdict::Invalid);
                step.holds
                    .push(Hold::of_rollout(HoldReason::Invalid { fields: vec![error.field] }));
                step.series = None;
                return step;
            }
        };
        // A Skyhook on its way out asks nothing of others any more.
        let staying = snapshot.of(&SKYHOOK).iter().filter(|other| !other.is_deleting());
        let others: Vec<Hook<'_>> = staying.filter_map(|other| Hook::read(other).ok()).collect();
        let step = Step::new(self.name(), rollout, Verdict::Held);
        if rollout.is_deleting() {
            return farewell::step(&hook, &others, &self.options, snapshot, step);
        }
        rendered(&Pass::new(&hook, &others, &self.options, snapshot, now), step)
    }

    fn webhooks(&self) -> &'static [Webhook] {
        admission::WEBHOOKS
    }

    fn admit(&self, webhook: &Webhook, world: &World, request: &Request<'_>) -> Admitted {
        admission::admit(webhook, world, request)
    }
}

/// A pass as a step.
fn rendered(pass: &Pass<'_, '_>, mut step: Step) -> Step {
    let words = status::words(pass);
    let rolled_up = status::rolled_up(pass, &words);
    let status = status::status(pass, &words, rolled_up);
    let changed = status != *pass.hook.object.status();
    let starting = report::starting(pass);
    let reservation = (changed && starting > 0)
        .then(|| reservation(pass.hook.object, &status, format!("{starting} nodes are picked")));
    step.decision = report::decision(pass, rolled_up);
    step.groups = report::groups(pass);
    step.holds = report::holds(pass);
    step.verdict = report::verdict(pass, &step.holds);
    step.events = report::events(pass, rolled_up);
    step.actions = writes::actions(pass, reservation);
    step.series = Some(series::series(pass, &words, rolled_up));
    step.status = changed.then_some(status);
    step
}

/// Who was picked, and how the last batch went, goes on record before anyone begins.
fn reservation(skyhook: &Object, status: &serde_json::Value, message: String) -> Action {
    let changes = merge_patch::between(skyhook.status(), status);
    let patch = merge_patch::nested(&["status"], changes.unwrap_or_default());
    Action::patch_status(Verb::Record, skyhook, patch, Why::new("Reserved", message))
}

/// The policy that a Skyhook names.
fn policy_of(skyhook: &Object) -> Option<&str> {
    skyhook.spec().get("deploymentPolicy").and_then(serde_json::Value::as_str)
}

type Test<'t> = Box<dyn Fn(&Object) -> bool + 't>;

/// Which Skyhooks a change concerns, where the changed object still tells.
fn affected_by_name<'t>(world: &'t World, changed: &'t ObjectKey) -> Option<Test<'t>> {
    let object = world.get(changed);
    if changed.kind == POLICY {
        return Some(Box::new(|skyhook| policy_of(skyhook) == Some(&changed.name)));
    }
    let object = object?;
    if changed.kind == NODE {
        return Some(Box::new(move |skyhook| {
            let keys = names::Keys::of(skyhook.name());
            // A node that was a member carries its word, also when it is one no more.
            object.annotation(&keys.status).is_some()
                || Hook::read(skyhook).is_ok_and(|hook| hook.selector.matches(object))
        }));
    }
    if changed.kind == POD && object.label(NAME).is_none() {
        let node = pod::node_of(object).and_then(|name| world.find(&NODE, "", name))?;
        return Some(Box::new(move |skyhook| {
            node.annotation(&format!("{CORDON}{}", skyhook.name())).is_some()
        }));
    }
    if changed.kind == POD || changed.kind == CONFIG_MAP {
        let owner = object.label(NAME).or_else(|| object.label(NODE_META));
        let Some(owner) = owner else { return Some(Box::new(|_| false)) };
        // Interrupts wait for the pods of every Skyhook to be gone from the node.
        return (changed.kind == CONFIG_MAP)
            .then(|| -> Test<'t> { Box::new(move |skyhook| *skyhook.name() == owner) });
    }
    None
}
