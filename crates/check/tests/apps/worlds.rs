//! Random Deployments in the middle of something, and the cluster around them.

use convoy_api::apps::REPLICA_SET;
use convoy_api::{Object, ObjectKey};
use convoy_check::Applier;
use convoy_plan::World;
use convoy_testkit::apps;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A rollout in the middle of something.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) replicas: i64,
    pub(crate) strategy: Value,
    /// Image, size, how many of them are available, the size it was made for.
    pub(crate) sets: Vec<(u8, i64, i64, i64)>,
    pub(crate) image: u8,
    pub(crate) history_limit: i64,
    /// Who moves when: one bit per set and round.
    pub(crate) luck: u64,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let share = prop_oneof![
        (0i64..6).prop_map(|count| json!(count)),
        (0i64..=100).prop_map(|percent| json!(format!("{percent}%"))),
    ];
    let rolling = (share.clone(), share).prop_map(|(surge, unavailable)| {
        let zero = |share: &Value| [json!(0), json!("0%")].contains(share);
        let surge = if zero(&surge) && zero(&unavailable) { json!(1) } else { surge };
        json!({"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
    });
    let strategy = prop_oneof![4 => rolling, 1 => Just(json!({"type": "Recreate"}))];
    let set = (0u8..4, 0i64..8, 0i64..8, 0i64..12);
    (0i64..12, strategy, prop::collection::vec(set, 0..4), 0u8..4, 0i64..4, any::<u64>()).prop_map(
        |(replicas, strategy, sets, image, history_limit, luck)| Case {
            replicas,
            strategy,
            sets,
            image,
            history_limit,
            luck,
        },
    )
}

pub(crate) fn world(case: &Case) -> World {
    let deployment = apps::deployment(case.replicas, &format!("web:v{}", case.image))
        .with("/spec/strategy", case.strategy.clone())
        .with("/spec/revisionHistoryLimit", json!(case.history_limit))
        .build();
    let sets = case.sets.iter().enumerate().map(|(at, (image, size, available, desired))| {
        let available = *available.min(size);
        apps::replica_set(&format!("web-{at}"), &format!("web:v{image}"), *size, *desired)
            .annotation("deployment.kubernetes.io/revision", &(at + 1).to_string())
            .created_at(&format!("2025-12-0{}T00:00:00Z", at + 1))
            .with("/status/readyReplicas", json!(available))
            .with("/status/availableReplicas", json!(available))
            .build()
    });
    sets.chain([deployment]).collect()
}

/// What ReplicaSet controller and kubelets do in one round, for the sets that are lucky.
pub(crate) fn cluster_moves(applier: &mut Applier, luck: &mut u64) -> bool {
    let keys: Vec<ObjectKey> =
        applier.world().of(&REPLICA_SET).map(|set| set.key().clone()).collect();
    let mut changed = false;
    for key in keys {
        *luck = luck.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let lucky = *luck >> 62 != 0; // three of four
        let Some(set) = applier.world().get(&key) else { continue };
        let wanted = number(set, "/spec/replicas");
        let ready = number(set, "/status/readyReplicas").min(wanted);
        let ready = if lucky { (ready + 2).min(wanted) } else { ready };
        let status = json!({
            "replicas": wanted, "fullyLabeledReplicas": wanted, "readyReplicas": ready,
            "availableReplicas": ready, "terminatingReplicas": 0,
            "observedGeneration": set.generation(),
        });
        // Luck that never comes would be a broken cluster: being unlucky counts as a change.
        changed |= *set.status() != status || ready < wanted;
        applier.edit(&key, |raw| raw["status"] = status);
    }
    changed
}

pub(crate) fn number(object: &Object, pointer: &str) -> i64 {
    object.raw().pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}
