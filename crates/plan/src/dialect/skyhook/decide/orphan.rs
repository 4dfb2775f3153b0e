//! Package pods of Skyhooks that do not exist: created by hand, or left behind. Such a pod has
//! changed its node all the same, so its result is recorded there, under the name of the Skyhook
//! that it gives, and the pod is deleted. Each is a rollout of its own, until its result is
//! recorded.

use convoy_api::Object;
use convoy_api::kinds::{NODE, POD};
use convoy_api::skyhook::{PackageState, SKYHOOK};

use crate::dialect::skyhook::names::{Keys, NAME};
use crate::dialect::skyhook::read::observe::complete;
use crate::dialect::skyhook::read::pod::{PackageTag, PodResult, pod_result};
use crate::dialect::skyhook::read::state::{Entry, NodeState};
use crate::pods::node_of;
use crate::world::World;

/// Whether an object is such a pod, with a result that its node does not record yet.
pub(crate) fn is_orphan(world: &World, object: &Object) -> bool {
    let exists = |skyhook: &str| world.find(&SKYHOOK, "", skyhook).is_some();
    if *object.kind() != POD || object.label(NAME).is_none_or(exists) {
        return false;
    }
    let tag = PackageTag::of(object).filter(|tag| !tag.invalid && !exists(&tag.skyhook));
    let Some(tag) = tag else { return false };
    let node = node_of(object).and_then(|name| world.find(&NODE, "", name));
    !object.is_deleting() && node.is_some_and(|node| Recorded::of(object, &tag, node).is_some())
}

/// What a node has to record of such a pod.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) state: NodeState,
    pub(crate) result: PackageState,
}

impl Recorded {
    /// None while the pod runs, if its failure is recorded already, and if the node's state
    /// cannot be read, which nobody may overwrite.
    pub(crate) fn of(pod: &Object, tag: &PackageTag, node: &Object) -> Option<Self> {
        let known = node.annotation(&Keys::of(&tag.skyhook).node_state);
        let known = known.map_or(Some(NodeState::default()), |text| NodeState::parse(text).ok())?;
        let entry = |state, restarts| Entry {
            name: tag.name.clone(),
            version: tag.version.clone(),
            image: tag.image.clone(),
            container_sha: tag.container_sha.clone(),
            stage: tag.stage,
            state,
            restarts,
        };
        let mut state = known.clone();
        let result = match pod_result(pod, tag.stage) {
            PodResult::Running => return None,
            PodResult::Complete => {
                complete(&mut state, entry(PackageState::Complete, 0), None);
                PackageState::Complete
            }
            PodResult::Failed { restarts } => {
                state.put(entry(PackageState::Erroring, restarts));
                PackageState::Erroring
            }
        };
        let is_new = state != known || result == PackageState::Complete;
        is_new.then_some(Self { state, result })
    }
}
