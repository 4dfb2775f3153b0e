//! What the demo shows: a rollout of each dialect.

use convoy_api::apps::DEPLOYMENT;
use convoy_api::karpenter::names::{NODE_CLAIM, NODE_POOL};
use convoy_api::kinds::NODE;
use convoy_api::ocm::names::{MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET};
use convoy_api::{GroupKind, Object};
use convoy_plan::{Verdict, World};

/// A rollout of the demo.
pub(super) struct DemoRollout {
    pub(super) dialect: &'static str,
    kind: GroupKind,
    namespace: &'static str,
    name: &'static str,
    /// What changes, in a line.
    pub(super) title: &'static str,
    /// What is there first, and what is applied then.
    pub(super) before: &'static str,
    pub(super) after: &'static str,
    /// There is no rollout before the change.
    pub(super) begins_with_change: bool,
    pub(super) ending: Ending,
    /// The most members that may be down at once, as the objects say.
    pub(super) allowed: usize,
    /// The members that are down.
    pub(super) down: fn(&World) -> usize,
    /// What the members are.
    pub(super) members: &'static str,
}

/// How a rollout ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Every member has what is new.
    Done,
    /// What is new does not work, and stays where it began.
    Contained,
}

impl DemoRollout {
    pub(super) fn object<'w>(&self, world: &'w World) -> Option<&'w Object> {
        world.find(&self.kind, self.namespace, self.name)
    }

    /// The kind and the name, as people write them.
    pub(super) fn label(&self) -> String {
        let separator = if self.namespace.is_empty() { "" } else { "/" };
        format!("{} {}{separator}{}", self.kind.kind, self.namespace, self.name)
    }

    /// The commands that show it, and why its members wait.
    pub(super) fn commands(&self) -> [String; 2] {
        let kind = self.kind.kind.to_lowercase();
        let namespace = match self.namespace {
            "" => String::new(),
            namespace => format!(" --namespace {namespace}"),
        };
        ["status", "why"].map(|verb| format!("convoy {verb} {kind}/{}{namespace}", self.name))
    }

    pub(super) fn has_ended(&self, verdict: Verdict) -> bool {
        match self.ending {
            Ending::Done => verdict == Verdict::Done,
            Ending::Contained => verdict == Verdict::Stopped,
        }
    }
}

const PLACEMENTS: &str = "placement.kubernetes-fleet.io";
const BINDING: GroupKind = GroupKind::new(PLACEMENTS, "ClusterResourceBinding");
const PLACEMENT: GroupKind = GroupKind::new(PLACEMENTS, "ClusterResourcePlacement");
const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");

/// In the order in which they are shown.
pub(super) static ROLLOUTS: [DemoRollout; 5] = [
    DemoRollout {
        dialect: "apps",
        kind: DEPLOYMENT,
        namespace: "shop",
        name: "web",
        title: "a new image for 6 replicas, at most one unavailable",
        before: include_str!("objects/apps.before.yaml"),
        after: include_str!("objects/apps.after.yaml"),
        begins_with_change: false,
        ending: Ending::Done,
        allowed: 1,
        down: unavailable_replicas,
        members: "replicas",
    },
    DemoRollout {
        dialect: "skyhook",
        kind: SKYHOOK,
        namespace: "",
        name: "gpu-driver",
        title: "a driver for 6 nodes: one critical node at a time, production in growing batches",
        before: include_str!("objects/skyhook.before.yaml"),
        after: include_str!("objects/skyhook.after.yaml"),
        begins_with_change: true,
        ending: Ending::Done,
        allowed: 3,
        down: nodes_in_progress,
        members: "nodes",
    },
    DemoRollout {
        dialect: "fleet",
        kind: PLACEMENT,
        namespace: "",
        name: "store",
        title: "a bad image for 4 clusters, at most one unavailable",
        before: include_str!("objects/fleet.before.yaml"),
        after: include_str!("objects/fleet.after.yaml"),
        begins_with_change: false,
        ending: Ending::Contained,
        allowed: 1,
        down: unavailable_bindings,
        members: "clusters",
    },
    DemoRollout {
        dialect: "ocm",
        kind: MANIFEST_WORK_REPLICA_SET,
        namespace: "settings",
        name: "settings",
        title: "new settings for 4 clusters: the canary first, then one by one",
        before: include_str!("objects/ocm.before.yaml"),
        after: include_str!("objects/ocm.after.yaml"),
        begins_with_change: false,
        ending: Ending::Done,
        allowed: 1,
        down: works_in_progress,
        members: "clusters",
    },
    DemoRollout {
        dialect: "karpenter",
        kind: NODE_POOL,
        namespace: "",
        name: "workers",
        title: "a new template for a pool of 3 nodes, one disrupted at a time",
        before: include_str!("objects/karpenter.before.yaml"),
        after: include_str!("objects/karpenter.after.yaml"),
        begins_with_change: false,
        ending: Ending::Done,
        allowed: 1,
        down: disrupted_claims,
        members: "nodes",
    },
];

fn unavailable_replicas(world: &World) -> usize {
    let Some(web) = world.find(&DEPLOYMENT, "shop", "web") else { return 0 };
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    let (wanted, available) =
        (number(&web.spec()["replicas"]), number(&web.status()["availableReplicas"]));
    usize::try_from(wanted.saturating_sub(available)).unwrap_or(usize::MAX)
}

fn nodes_in_progress(world: &World) -> usize {
    let status = |node: &&Object| {
        node.annotation("skyhook.nvidia.com/status_gpu-driver") == Some("in_progress")
    };
    world.of(&NODE).filter(status).count()
}

fn unavailable_bindings(world: &World) -> usize {
    let is_down = |binding: &&Object| binding.condition_status("Available") != Some("True");
    world.of(&BINDING).filter(is_down).count()
}

/// Works whose content was changed and has not been applied.
fn works_in_progress(world: &World) -> usize {
    let is_behind = |work: &&Object| {
        let applied = work.condition("Applied").map(|entry| entry["observedGeneration"].as_i64());
        applied.flatten() != Some(work.generation())
    };
    world.of(&MANIFEST_WORK).filter(is_behind).count()
}

fn disrupted_claims(world: &World) -> usize {
    let is_down = |claim: &&Object| {
        let is = |kind: &str| claim.condition_status(kind) == Some("True");
        (claim.is_deleting() || is("DisruptionReason")) && !is("InstanceTerminating")
    };
    world.of(&NODE_CLAIM).filter(is_down).count()
}
