//! A hub with a defect: one of its limits is higher by one than the placement says.

use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::dialect::fleet::Hub;
use convoy_plan::dialect::{Need, Watch};
use convoy_plan::{Dialect, Snapshot, Step, World};
use jiff::Timestamp;
use serde_json::{Value, json};

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
        Hub.name()
    }

    fn watches(&self) -> &'static [Watch] {
        Hub.watches()
    }

    fn needs(&self, world: &World, rollout: &Object) -> Vec<Need> {
        Hub.needs(world, rollout)
    }

    fn takes_along(&self, kind: &GroupKind) -> bool {
        Hub.takes_along(kind)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        Hub.rollouts(world)
    }

    fn is_rollout(&self, world: &World, object: &Object) -> bool {
        Hub.is_rollout(world, object)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        Hub.affected(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        Hub.snapshot(world, rollout)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        if snapshot.rollout().kind().kind != "ClusterResourcePlacement" {
            return Hub.step(snapshot, now);
        }
        let raised = self.raised(snapshot.rollout());
        Hub.step(&Snapshot::new(&raised, snapshot.iter()), now)
    }
}
