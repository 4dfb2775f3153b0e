//! A rollout that is refused publishes no numbers.

use convoy_testkit::{Builder, NOW, fleet, karpenter, object};
use serde_json::json;

use super::{Step, Verdict};
use crate::dialect::Dialect;
use crate::dialect::fleet::Fleet;
use crate::snapshot::Snapshot;
use crate::world::World;

fn skyhook() -> Builder {
    let packages = json!({"pa": {"version": "1.0.0", "image": "x"}});
    object("skyhook.nvidia.com/v1alpha1", "Skyhook", "tune").spec(json!({"packages": packages}))
}

fn placement() -> Builder {
    fleet::placement("web", json!({"placementType": "PickN", "numberOfClusters": 1}))
}

fn planned(rollout: Builder) -> Step {
    let world: World = [rollout.build()].into_iter().collect();
    let mut plan = crate::plan(&world, NOW.parse().unwrap());
    assert_eq!(plan.steps.len(), 1);
    plan.steps.remove(0)
}

#[test]
fn a_refused_rollout_has_no_series() {
    let pool = || karpenter::pool("a", &json!({"consolidateAfter": "0s"}));
    let cases = [
        (skyhook(), "/spec/interruptionBudget", json!({"percent": "x"})),
        (placement(), "/spec/policy/numberOfClusters", json!("x")),
        (pool(), "/spec/disruption/budgets", json!([{"nodes": "x"}])),
    ];
    for (rollout, field, wrong) in cases {
        let sound = planned(rollout.clone());
        assert_ne!(sound.verdict, Verdict::Invalid, "{}", sound.rollout);
        assert!(!sound.series.is_empty(), "{} tells its numbers", sound.rollout);
        let refused = planned(rollout.with(field, wrong));
        assert_eq!(refused.verdict, Verdict::Invalid, "{}", refused.rollout);
        assert!(refused.series.is_empty(), "{}: {:?}", refused.rollout, refused.series);
    }
}

#[test]
fn a_dialect_that_cannot_read_a_rollout_tells_no_numbers() {
    let wrong = placement().with("/spec/policy/numberOfClusters", json!("x")).build();
    let step = Fleet.step(&Snapshot::new(&wrong, [&wrong]), NOW.parse().unwrap());
    assert_eq!((step.verdict, step.series), (Verdict::Invalid, Vec::new()));
}
