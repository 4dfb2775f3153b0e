//! The dialect in the two parts that control loops run: Deployments everywhere, ReplicaSets
//! where no kube-controller-manager keeps them. Unlike in a plan, every ReplicaSet is then a
//! rollout of its own, beside the Deployment that sizes it.
//!
//! Both are asked who is affected on every change of every pod, so they follow references
//! instead of looking through the namespace.

use convoy_api::apps::{DEPLOYMENT, POD, REPLICA_SET};
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use super::status::denied;
use super::{Apps, WATCHES, concerns, needs_pods, selects, validate};
use crate::diagnostic::Diagnostic;
use crate::dialect::{Dialect, Watch};
use crate::snapshot::Snapshot;
use crate::step::{Complaint, Denial, Step};
use crate::world::World;

/// Deployments, and no ReplicaSet.
#[derive(Clone, Copy, Debug)]
pub struct Deployments;

/// Every ReplicaSet.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaSets;

impl Dialect for Deployments {
    fn name(&self) -> &'static str {
        "apps"
    }

    fn watches(&self) -> &'static [Watch] {
        WATCHES
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        Apps.validates(kind)
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::findings(object)
    }

    fn validates_alone(&self) -> bool {
        true
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&DEPLOYMENT).collect()
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        *object.kind() == DEPLOYMENT
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        if changed.kind == DEPLOYMENT {
            return vec![changed.clone()];
        }
        let Some(object) = world.get(changed) else { return Vec::new() };
        if changed.kind == REPLICA_SET {
            return keepers(world, &DEPLOYMENT, object);
        }
        // A pod without a set belongs to no Deployment either.
        let owner = object.controller().and_then(|_| owner(world, &REPLICA_SET, object));
        let mut keys = owner.map_or_else(Vec::new, |set| keepers(world, &DEPLOYMENT, set));
        keys.retain(|key| world.get(key).is_some_and(needs_pods));
        keys
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        let sets: Vec<&Object> = kept(world, &REPLICA_SET, rollout).collect();
        let own = sets.iter().filter(|set| is_controlled(set, rollout)).copied();
        let pods = needs_pods(rollout).then(|| own.flat_map(|set| pods_of(world, set)));
        let pods: Vec<&Object> = pods.into_iter().flatten().collect();
        Snapshot::new(rollout, sets.into_iter().chain(pods))
    }

    fn hangs_on(&self, _world: &World, rollout: &Object, refused: &Object) -> bool {
        concerns(rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        Apps.step(snapshot, now)
    }

    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
        denied::deployment(snapshot, denial, now)
    }
}

impl Dialect for ReplicaSets {
    fn name(&self) -> &'static str {
        "replicasets"
    }

    fn watches(&self) -> &'static [Watch] {
        // Which pods go first depends on where siblings have theirs, so the kinds are the same.
        WATCHES
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        *kind == REPLICA_SET
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::findings(object)
    }

    fn validates_alone(&self) -> bool {
        true
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&REPLICA_SET).collect()
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        *object.kind() == REPLICA_SET
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        if changed.kind == REPLICA_SET {
            return vec![changed.clone()];
        }
        let pod = world.get(changed).filter(|_| changed.kind == POD);
        pod.map_or_else(Vec::new, |pod| keepers(world, &REPLICA_SET, pod))
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        let siblings: Vec<&Object> = match rollout.controller() {
            Some(owner) => world.controlled(&REPLICA_SET, rollout.namespace(), owner.uid).collect(),
            None => vec![rollout],
        };
        let beside = siblings.iter().flat_map(|set| pods_of(world, set));
        let pods: Vec<&Object> = kept(world, &POD, rollout).chain(beside).collect();
        Snapshot::new(rollout, siblings.into_iter().chain(pods))
    }

    /// Sets stand beside each other; one that is refused stops only itself.
    fn hangs_on(&self, _world: &World, _rollout: &Object, _refused: &Object) -> bool {
        false
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        Step { dialect: self.name(), ..Apps.step(snapshot, now) }
    }

    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
        denied::replica_set(snapshot, denial, now)
    }
}

/// The objects of a kind that a controller has to look at: its own, those that it may adopt,
/// and those that may stand where it would make its own.
pub(crate) fn kept<'w>(
    world: &'w World,
    kind: &GroupKind,
    controller: &'w Object,
) -> impl Iterator<Item = &'w Object> + use<'w> {
    let namespace = controller.namespace();
    let own = world.controlled(kind, namespace, controller.uid().unwrap_or_default());
    let loose = world.controlled(kind, namespace, "");
    own.chain(loose).chain(world.named(kind, namespace, &format!("{}-", controller.name())))
}

fn pods_of<'w>(world: &'w World, set: &Object) -> impl Iterator<Item = &'w Object> + use<'w> {
    world.controlled(&POD, set.namespace(), set.uid().unwrap_or_default())
}

fn is_controlled(object: &Object, by: &Object) -> bool {
    object.controller().is_some_and(|owner| Some(owner.uid) == by.uid())
}

/// Who of a kind owns `object`, or, where nobody does, may adopt it.
pub(crate) fn keepers(world: &World, kind: &GroupKind, object: &Object) -> Vec<ObjectKey> {
    if object.controller().is_some() {
        return owner(world, kind, object).map(|owner| owner.key().clone()).into_iter().collect();
    }
    let peers = world.in_namespace(kind, object.namespace());
    peers.filter(|peer| selects(peer, object)).map(|peer| peer.key().clone()).collect()
}

/// The controller of `object`, if it is of this kind and still the one that is meant.
fn owner<'w>(world: &'w World, kind: &GroupKind, object: &Object) -> Option<&'w Object> {
    let reference = object.controller()?;
    let owner = world.find(kind, object.namespace(), reference.name)?;
    (owner.uid() == Some(reference.uid)).then_some(owner)
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{NOW, apps};
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_reach_those_who_are_referred_to() {
        let orphan =
            apps::replica("loose", "web-1", NOW).with("/metadata/ownerReferences", json!([]));
        let objects = [
            apps::deployment(1, "web:v1").with("/spec/minReadySeconds", json!(5)),
            apps::replica_set("web-1", "web:v1", 1, 1),
            apps::replica_set("web-2", "web:v2", 1, 1),
            apps::replica("web-1-a", "web-1", NOW),
            orphan,
        ];
        let world: World = objects.into_iter().map(convoy_testkit::Builder::build).collect();
        let affected = |dialect: &dyn Dialect, kind: &GroupKind, name: &str| -> Vec<String> {
            let keys = dialect.affected(&world, &kind.key("shop", name));
            keys.iter().map(|key| key.name.to_string()).collect()
        };
        assert_eq!(affected(&Deployments, &REPLICA_SET, "web-2"), ["web"]);
        assert_eq!(affected(&Deployments, &POD, "web-1-a"), ["web"]);
        assert_eq!(affected(&ReplicaSets, &POD, "web-1-a"), ["web-1"]);
        assert_eq!(affected(&ReplicaSets, &POD, "loose"), ["web-1"]);
        assert_eq!(affected(&ReplicaSets, &REPLICA_SET, "gone"), ["gone"]);
        assert!(affected(&ReplicaSets, &POD, "gone").is_empty());
        assert_eq!(ReplicaSets.rollouts(&world).len(), 2);
    }
}
