//! Skyhook: node packages rolled through compartments with budgets and batches.
//!
//! A node is the truth about its packages (annotations); the Skyhook's status carries batch
//! state and who was picked. [`read`] folds pod results into node state, [`decide`] puts the
//! nodes into compartments, scores batches, starts nodes and advances those that hold a slot;
//! [`write`], [`status`] and [`report`] render the result.

mod admission;
mod decide;
mod names;
mod read;
mod report;
mod status;
mod validate;
mod write;

use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use self::decide::config::CONFIG_MAP;
use self::decide::drain::BUDGET;
use self::decide::{NODE, POD, POLICY, Pass, SKYHOOK, orphan};
use self::names::{CORDON, DISABLE, NAME, NODE_META, PAUSE};
use self::read::hook::{self, Hook, policy_of};
use self::read::pod;
use super::{Dialect, Keep, Watch};
use crate::admission::{Request, Verdict as Admitted, Webhook};
use crate::diagnostic::Diagnostic;
use crate::hold::{Hold, HoldReason};
use crate::merge_patch;
use crate::snapshot::Snapshot;
use crate::step::{Action, Step, Verb, Verdict, Why};
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
        let orphans = world.of(&POD).filter(|pod| orphan::is_one(world, pod));
        orphans.chain(world.of(&SKYHOOK)).collect()
    }

    fn is_rollout(&self, world: &World, object: &Object) -> bool {
        *object.kind() == SKYHOOK || orphan::is_one(world, object)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        let named = affected_by_name(world, changed);
        let skyhooks = world.of(&SKYHOOK).filter(|skyhook| match &named {
            Some(test) => test(skyhook),
            None => true,
        });
        skyhooks
            .map(|skyhook| skyhook.key().clone())
            .chain(orphan::affected(world, changed))
            .collect()
    }

    /// Of another Skyhook, its spec counts, whether it stands still or goes, and which config of
    /// its packages has changed.
    fn is_own_matter(&self, before: &Object, after: &Object) -> bool {
        let annotations =
            |object: &Object| [PAUSE, DISABLE].map(|key| object.annotation(key) == Some("true"));
        *after.kind() == SKYHOOK
            && before.uid() == after.uid()
            && before.is_deleting() == after.is_deleting()
            && annotations(before) == annotations(after)
            && before.status().get("configUpdates") == after.status().get("configUpdates")
            && before.spec() == after.spec()
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        if *rollout.kind() == POD {
            return Snapshot::new(rollout, orphan::node(world, rollout));
        }
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
        if *rollout.kind() == POD {
            let step = Step::new(self.name(), rollout, Verdict::Held);
            return orphan::step(rollout, &self.options, snapshot, step);
        }
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
            return write::deletion::step(&hook, &others, &self.options, snapshot, step);
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
    step.holds = report::holds(pass);
    let status = status::status(pass, &words, rolled_up, &step.holds);
    let changed = status != *pass.hook.object.status();
    let starting = report::starting(pass);
    let reservation = (changed && starting > 0)
        .then(|| reservation(pass.hook.object, &status, format!("{starting} nodes are picked")));
    step.decision = report::decision(pass, rolled_up);
    step.groups = report::groups(pass);
    step.verdict = report::verdict(pass, &step.holds);
    step.events = report::events(pass, rolled_up);
    step.actions = write::actions(pass, reservation);
    step.series = Some(report::series::series(pass, &words, rolled_up));
    step.status = changed.then_some(status);
    step
}

/// Who was picked, and how the last batch went, goes on record before anyone begins.
fn reservation(skyhook: &Object, status: &serde_json::Value, message: String) -> Action {
    let changes = merge_patch::between(skyhook.status(), status);
    let patch = merge_patch::nested(&["status"], changes.unwrap_or_default());
    Action::patch_status(Verb::Record, skyhook, patch, Why::new("Reserved", message))
}

type Test<'t> = Box<dyn Fn(&Object) -> bool + 't>;

/// Which Skyhooks a change concerns, where the changed object still tells.
fn affected_by_name<'t>(world: &'t World, changed: &'t ObjectKey) -> Option<Test<'t>> {
    let object = world.get(changed);
    if changed.kind == POLICY {
        return Some(Box::new(|skyhook| policy_of(skyhook) == Some(&changed.name)));
    }
    if object.is_none() && (changed.kind == POD || changed.kind == CONFIG_MAP) {
        return Some(Box::new(|_| false)); // whom it concerned was known before it went
    }
    let object = object?;
    if changed.kind == NODE {
        return Some(Box::new(move |skyhook| {
            let keys = names::Keys::of(skyhook.name());
            // A node that was a member carries its word, also when it is one no more.
            object.annotation(&keys.status).is_some()
                || hook::targets(skyhook).is_ok_and(|selector| selector.matches(object))
        }));
    }
    if changed.kind == POD {
        let owner = object.label(NAME);
        let node = pod::node_of(object).and_then(|name| world.find(&NODE, "", name));
        // Drains and interrupts wait for the pods of others to be gone from the node, and both
        // have it cordoned first.
        return Some(Box::new(move |skyhook| {
            let cordon = || format!("{CORDON}{}", skyhook.name());
            owner == Some(skyhook.name())
                || node.is_some_and(|node| node.annotation(&cordon()).is_some())
        }));
    }
    if changed.kind == CONFIG_MAP {
        let owner = object.label(NAME).or_else(|| object.label(NODE_META));
        return Some(Box::new(move |skyhook| owner == Some(skyhook.name())));
    }
    None
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{Builder, node, object};
    use serde_json::json;

    use super::*;

    fn skyhook(name: &str) -> Builder {
        object("skyhook.nvidia.com/v1alpha1", "Skyhook", name).spec(json!({"priority": 1}))
    }

    fn pod(owner: &str) -> Object {
        let pod = object("v1", "Pod", "p").namespace("skyhook").spec(json!({"nodeName": "worker"}));
        if owner.is_empty() { pod.build() } else { pod.label(NAME, owner).build() }
    }

    #[test]
    fn a_pod_concerns_its_skyhook_and_those_that_cordoned_its_node() {
        let affected = |owner: &str| {
            let mut world = World::new();
            let worker = node("worker").annotation("skyhook.nvidia.com/cordon_b", "true");
            let skyhooks = ["a", "b", "c"].map(|name| skyhook(name).build());
            for object in skyhooks.into_iter().chain([worker.build(), pod(owner)]) {
                world.insert(object);
            }
            let key = pod(owner).key().clone();
            let names = |world: &World| -> Vec<String> {
                let keys = Skyhook::new().affected(world, &key).into_iter();
                keys.map(|key| key.name.to_string()).collect()
            };
            let found = names(&world);
            world.remove(&key);
            assert!(names(&world).is_empty(), "whom it concerned was known before");
            found
        };
        assert_eq!(affected("a"), ["a", "b"]);
        assert_eq!(affected("b"), ["b"]);
        assert_eq!(affected(""), ["b"]);
    }

    #[test]
    fn others_look_again_unless_a_skyhook_only_tells_how_far_it_is() {
        let before = skyhook("a").status(json!({"completeNodes": "0/1"})).build();
        let cases = [
            (true, skyhook("a").status(json!({"completeNodes": "1/1"}))),
            (true, skyhook("a").annotation(names::VERSION, "v1")),
            (false, skyhook("a").annotation(PAUSE, "true")),
            (false, skyhook("a").spec(json!({"priority": 2}))),
            (false, skyhook("a").status(json!({"configUpdates": {"tuning": ["a.conf"]}}))),
            (false, skyhook("a").with("/metadata/deletionTimestamp", json!(convoy_testkit::NOW))),
        ];
        for (is_own, after) in cases {
            let after = after.build();
            assert_eq!(Skyhook::new().is_own_matter(&before, &after), is_own, "{after:?}");
        }
    }
}
