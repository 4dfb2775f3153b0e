//! Planning that fails: a dialect with a defect.

use convoy_api::kinds::NODE;
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;
use serde_json::json;

use crate::dialect::{Dialect, Watch};
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;
use crate::step::{Step, Verdict};
use crate::world::World;
use crate::{Diagnostic, decide, validate_object};

/// Panics on every object whose name is `bad`.
struct Defective;

impl Dialect for Defective {
    fn name(&self) -> &'static str {
        "defective"
    }

    fn watches(&self) -> &'static [Watch] {
        &[]
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        *kind == NODE
    }

    fn validate(&self, _: &World, object: &Object) -> Vec<Diagnostic> {
        assert_ne!(object.name(), "bad", "a defect");
        Vec::new()
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&NODE).collect()
    }

    fn affected(&self, _: &World, key: &ObjectKey) -> Vec<ObjectKey> {
        vec![key.clone()]
    }

    fn snapshot<'w>(&self, _: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        Snapshot::new(rollout, [])
    }

    fn step(&self, snapshot: &Snapshot<'_>, _: Timestamp) -> Step {
        assert_ne!(snapshot.rollout().name(), "bad", "a defect");
        Step::new(self.name(), snapshot.rollout(), Verdict::Done)
    }
}

#[test]
fn a_defect_stops_one_rollout_and_says_so() {
    let node = |name: &str| {
        let raw = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        Object::from_value(raw).unwrap()
    };
    let world: World = [node("bad"), node("good")].into_iter().collect();
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let step = |name: &str| decide(&Defective, &world, &[], &NODE.key("", name), now).unwrap();
    assert_eq!(step("good"), Step::new("defective", &node("good"), Verdict::Done));
    let failed = step("bad");
    assert!(
        matches!(&failed.holds[0].reason, HoldReason::PlanFailed { panic } if panic.contains("a defect"))
    );
    assert_eq!(failed.wake_at, Some("2026-01-01T00:01:00Z".parse().unwrap()));
    let condition = &failed.status.as_ref().unwrap()["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"]),
        (&json!("convoy.dev/Refused"), &json!("True"), &json!("PlanFailed"))
    );
    assert_eq!(failed.events.len(), 1);
    assert_eq!(validate_object(&Defective, &world, &node("good")), []);
    let found = validate_object(&Defective, &world, &node("bad"));
    assert!(found[0].message.contains("a defect in Convoy"), "{found:?}");
}
