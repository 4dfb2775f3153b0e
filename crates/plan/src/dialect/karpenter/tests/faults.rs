//! What the simulated provider does wrong when it is told to.

use convoy_testkit::karpenter::node_class as class;
use convoy_testkit::{Builder, NOW, karpenter};
use serde_json::{Value, json};

use super::{node, unlimited};
use crate::dialect::Dialect;
use crate::dialect::karpenter::Operator;
use crate::{Step, World, Write};

/// The steps of all rollouts of a world, claims first.
fn steps(objects: impl IntoIterator<Item = Builder>) -> Vec<Step> {
    let world: World = objects.into_iter().map(Builder::build).collect();
    let operator = Operator::new();
    let rollouts = operator.rollouts(&world);
    let step = |rollout| operator.step(&operator.snapshot(&world, rollout), NOW.parse().unwrap());
    rollouts.into_iter().map(step).collect()
}

/// A claim that was not launched yet.
fn fresh(uid: &str) -> Builder {
    karpenter::claim("default", "n")
        .with("/metadata/uid", json!(uid))
        .status(json!({}))
        .created_at(NOW)
}

fn patches(step: &Step) -> Vec<&Value> {
    let writes = step.actions.iter().filter_map(|action| match &action.write {
        Write::Patch { patch, .. } => Some(patch),
        _ => None,
    });
    writes.collect()
}

fn condition<'s>(step: &'s Step, kind: &str) -> Option<&'s Value> {
    let conditions =
        patches(step).into_iter().filter_map(|it| it.pointer("/status/conditions")?.as_array());
    conditions.flatten().find(|entry| entry["type"] == kind)
}

#[test]
fn machines_of_another_image_have_drifted() {
    let image = |name: &str| class().annotation("convoy.dev/image", name);
    let made = &steps([image("v2"), fresh("a")])[0];
    let launched = patches(made).into_iter().find_map(|patch| patch.pointer("/status/imageID"));
    assert_eq!(launched, Some(&json!("v2")));
    let claim = || karpenter::claim("default", "n").with("/status/imageID", json!("v1"));
    let drifts = |class: Builder| {
        let all = steps([class, unlimited(), claim(), node("n")]);
        condition(all.last().unwrap(), "Drifted").map(|entry| entry["reason"].clone())
    };
    assert_eq!(drifts(image("v2")), Some(json!("ImageDrifted")));
    assert_eq!(drifts(image("v1")), None);
    assert_eq!(drifts(class()), None, "the provider does not say");
}

#[test]
fn a_share_of_claims_is_not_launched() {
    let failing = |share: &str, uid: &str| {
        let class = class().annotation("convoy.dev/launch-failures", share);
        let step = steps([class, fresh(uid)]).remove(0);
        condition(&step, "Launched").unwrap()["reason"] == "LaunchFailed"
    };
    let failed = |share| (0..200).filter(|at| failing(share, &format!("uid-{at}"))).count();
    assert_eq!([failed("0%"), failed("100%"), failed("often")], [0, 200, 0]);
    let some = failed("25%");
    assert!((30..70).contains(&some), "about a quarter of 200, but {some}");
}

#[test]
fn a_machine_that_the_provider_takes_back_is_drained_and_deleted() {
    let claim =
        karpenter::claim("default", "n").annotation("convoy.dev/instance-state", "Interrupted");
    let step = &steps([class(), claim, node("n")])[0];
    let [action] = step.actions.as_slice() else { panic!("one action: {step:?}") };
    assert!(matches!(action.write, Write::Delete { .. }), "{action:?}");
    assert_eq!(action.why.reason, "interrupted");
    assert_eq!(step.counts[0].labels[0], ("reason", "interrupted".to_owned()));
}

#[test]
fn the_end_of_a_machine_takes_its_time() {
    let class = || class().annotation("convoy.dev/termination-delay", "30s");
    let ending = |since: &str| {
        let told = json!({"type": "InstanceTerminating", "status": "True",
            "reason": "InstanceTerminating", "message": "", "lastTransitionTime": since});
        let claim = karpenter::claim("default", "n")
            .with("/metadata/deletionTimestamp", json!(NOW))
            .with("/status/conditions", json!([karpenter::is("Launched"), told]));
        steps([class(), unlimited(), claim]).pop().unwrap()
    };
    let releases = |step: &Step| {
        patches(step).iter().any(|patch| patch.pointer("/metadata/finalizers").is_some())
    };
    let early = ending("2025-12-31T23:59:45Z");
    assert!(!releases(&early));
    assert_eq!(early.wake_at, Some("2026-01-01T00:00:15Z".parse().unwrap()));
    assert!(releases(&ending("2025-12-31T23:59:30Z")));
}
