//! The stand-in does what an API server does.

use convoy_plan::{Verb, Verdict, Why};
use convoy_testkit::{NOW, node, object};

use super::*;

fn applier(objects: Vec<Object>) -> Applier {
    Applier::new(objects.into_iter().collect(), NOW.parse().unwrap())
}

fn step(rollout: &Object, actions: Vec<Action>) -> Step {
    Step { actions, ..Step::new("skyhook", rollout, Verdict::Moving) }
}

fn why() -> Why {
    Why::new("Test", "for the test")
}

#[test]
fn a_patch_of_the_spec_is_a_new_generation_and_leaves_the_status_alone() {
    let worker = node("n1").build();
    let mut applier = applier(vec![worker.clone()]);
    let patch = json!({"spec": {"unschedulable": true}, "status": {"phase": "Gone"}});
    let cordon = Action::patch(Verb::Cordon, &worker, patch, why());
    applier.apply(&step(&worker, vec![cordon])).unwrap();
    let after = applier.world().get(worker.key()).unwrap();
    assert_eq!(after.generation(), 2);
    assert_eq!(after.spec()["unschedulable"], true);
    assert_eq!(after.status().get("phase"), None);
}

#[test]
fn a_write_to_an_object_that_changed_is_refused() {
    let worker = node("n1").build();
    let mut applier = applier(vec![worker.clone()]);
    applier.edit(worker.key(), |raw| raw["metadata"]["labels"] = json!({"a": "b"}));
    let cordon = Action::patch(Verb::Cordon, &worker, json!({"spec": {}}), why());
    let refused = applier.apply(&step(&worker, vec![cordon])).unwrap_err();
    assert_eq!(refused, ApplyError::Stale(Box::new(worker.key().clone())));
}

#[test]
fn two_writes_of_one_step_to_one_object_both_go_through() {
    let worker = node("n1").build();
    let mut applier = applier(vec![worker.clone()]);
    let annotate = json!({"metadata": {"annotations": {"a": "b"}}});
    let actions = vec![
        Action::patch(Verb::Record, &worker, annotate, why()),
        Action::patch_status(Verb::Record, &worker, json!({"status": {"phase": "x"}}), why()),
    ];
    applier.apply(&step(&worker, actions)).unwrap();
    assert_eq!(applier.world().get(worker.key()).unwrap().status()["phase"], "x");
}

#[test]
fn deletion_waits_for_finalizers_and_takes_dependents_along() {
    let owner = object("apps/v1", "ReplicaSet", "web").namespace("a").build();
    let owned = |name: &str, finalizers: Value| {
        let reference = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
            "uid": owner.uid(), "controller": true}]);
        object("v1", "Pod", name)
            .namespace("a")
            .with("/metadata/ownerReferences", reference)
            .with("/metadata/finalizers", finalizers)
            .build()
    };
    let (plain, kept) = (owned("plain", json!([])), owned("kept", json!(["example.com/keep"])));
    let mut applier = applier(vec![owner.clone(), plain.clone(), kept.clone()]);
    let delete = Action::delete(Verb::Delete, &owner, Propagation::Background, why());
    applier.apply(&step(&owner, vec![delete])).unwrap();
    assert!(applier.world().get(owner.key()).is_none());
    assert!(applier.world().get(plain.key()).is_none());
    assert!(applier.world().get(kept.key()).unwrap().is_deleting());
}
