//! A hub with a defect: one of its limits is higher by one than the placement says.

use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::dialect::fleet::{Hub, Options};
use convoy_plan::dialect::{Need, Watch};
use convoy_plan::{Dialect, Snapshot, Step, World};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Without the intervals by which changes are collected: what is at rest then stays at rest.
static HUB: Hub = Hub { options: Options::AT_ONCE };

pub(crate) struct Generous {
    field: &'static str,
}

pub(crate) static GENEROUS: [Generous; 2] =
    [Generous { field: "maxUnavailable" }, Generous { field: "maxSurge" }];

impl Generous {
    fn raised(&self, placement: &Object) -> Object {
        let mut raw = placement.raw().clone();
        let limit = &mut raw["spec"]["strategy"]["rollingUpdate"][self.field];
        *limit = match &*limit {
            Value::String(_) => json!("100%"),
            number => json!(number.as_u64().unwrap_or(0) + 1),
        };
        placement.with_raw(raw)
    }
}

impl Dialect for Generous {
    fn name(&self) -> &'static str {
        HUB.name()
    }

    fn watches(&self) -> &'static [Watch] {
        HUB.watches()
    }

    fn needs(&self, world: &World, rollout: &Object) -> Vec<Need> {
        HUB.needs(world, rollout)
    }

    fn takes_along(&self, kind: &GroupKind) -> bool {
        HUB.takes_along(kind)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        HUB.rollouts(world)
    }

    fn is_rollout(&self, world: &World, object: &Object) -> bool {
        HUB.is_rollout(world, object)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        HUB.affected(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        HUB.snapshot(world, rollout)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        if snapshot.rollout().kind().kind != "ClusterResourcePlacement" {
            return HUB.step(snapshot, now);
        }
        let raised = self.raised(snapshot.rollout());
        HUB.step(&Snapshot::new(&raised, snapshot.iter()), now)
    }
}
