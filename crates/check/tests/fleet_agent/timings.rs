//! The waits of agents and hubs, as their flags set them.

use convoy_api::kinds::{CONFIG_MAP, NAMESPACE};
use convoy_plan::dialect::fleet::{Hub, Options};
use convoy_plan::dialect::fleet_agent::{AgentTimings, Requeue};
use convoy_plan::{Dialect, Verb, World, decide};
use convoy_testkit::{NOW, object};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::manifests::{config, now, on, shop};
use super::world::{APPLIED_WORK, Site};
use super::{EU, settings, site, web};

/// When the Work is looked at next.
fn wake(site: &Site) -> Option<SignedDuration> {
    let steps = site.steps();
    let step = steps.iter().find(|step| step.rollout == web()).expect("a step");
    step.wake_at.map(|at| at.duration_since(site.applier.now()))
}

fn drift(site: &Site) -> &Value {
    &site.get(&web()).status()["manifestConditions"][1]["driftDetails"]
}

fn at(text: &Value) -> Timestamp {
    text.as_str().expect("an instant").parse().expect("an instant")
}

#[test]
fn differences_are_observed_again_at_growing_intervals() {
    let mut site = site(&[shop(), config("a")], &json!({"whenToApply": "IfNotDrifted"}));
    site.settle();
    assert_eq!(wake(&site), None, "nothing is looked at in vain");
    site.edit(&settings(), |raw| raw["data"]["mode"] = json!("b"));
    site.settle();
    let first = drift(&site)["observationTime"].clone();
    for secs in [5.0, 2.0, 2.4, 2.88] {
        let next = SignedDuration::from_secs_f64(secs);
        assert_eq!(wake(&site), Some(next));
        let before = at(&drift(&site)["observationTime"]);
        let then = site.applier.now() + next;
        site.applier.advance_to(then);
        site.settle();
        assert!(at(&drift(&site)["observationTime"]) > before, "observed again");
        assert_eq!(drift(&site)["firstDriftedObservedTime"], first);
    }
    site.edit(&settings(), |raw| raw["data"]["mode"] = json!("a"));
    site.settle();
    assert_eq!((wake(&site), drift(&site)), (None, &Value::Null));
}

#[test]
fn the_caps_of_the_intervals_are_settings() {
    let five = SignedDuration::from_secs(5);
    let requeue = Requeue { slow_max: five, fast_max: five, ..AgentTimings::new().requeue };
    let report = json!({"type": "ReportDiff"});
    let mut site = site(&[shop(), config("a")], &report)
        .waiting(AgentTimings { requeue, ..AgentTimings::new() });
    site.settle();
    let hours_later = site.applier.now() + SignedDuration::from_hours(7);
    site.applier.advance_to(hours_later);
    site.settle();
    assert!(wake(&site).expect("differences are reported") <= five);
}

#[test]
fn the_wait_for_deletions_is_a_setting() {
    let wait = SignedDuration::from_mins(1);
    let mut site = site(&[shop(), config("a")], &json!({"allowCoOwnership": true}))
        .waiting(AgentTimings { deletion_wait: wait, ..AgentTimings::new() });
    site.settle();
    let other = json!({"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u-1"});
    site.edit(&settings(), |raw| {
        raw["metadata"]["ownerReferences"].as_array_mut().expect("owners").push(other);
    });
    // An object that blocks the deletion, as a garbage collector would find it.
    let applied = on(EU, &APPLIED_WORK, "", "web-work");
    site.edit(&applied, |raw| raw["metadata"]["finalizers"] = json!(["foregroundDeletion"]));
    site.edit(&web(), |raw| raw["metadata"]["deletionTimestamp"] = json!(NOW));
    site.settle();
    let blocks = |site: &Site| {
        let owners =
            &site.get(&on(EU, &CONFIG_MAP, "shop", "settings")).metadata()["ownerReferences"];
        owners[0]["blockOwnerDeletion"].clone()
    };
    assert_eq!((wake(&site), blocks(&site)), (Some(wait), json!(true)));
    let then = site.applier.now() + wait;
    site.applier.advance_to(then);
    site.settle();
    assert_eq!(blocks(&site), json!(false));
}

#[test]
fn a_silent_member_is_given_up_after_the_wait_that_was_set() {
    let wait = SignedDuration::from_mins(1);
    let hub = Hub { options: Options { force_delete_wait: wait, ..Options::new() } };
    let home = "fleet-member-eu";
    let joined = json!([{"type": "Joined", "status": "True", "reason": "x"}]);
    let world: World = [
        object("cluster.kubernetes-fleet.io/v1beta1", "MemberCluster", EU)
            .with("/metadata/deletionTimestamp", json!(NOW))
            .with("/metadata/finalizers", json!(["x"]))
            .spec(json!({"identity": {"kind": "User", "name": "agent"}}))
            .build(),
        object("cluster.kubernetes-fleet.io/v1beta1", "InternalMemberCluster", EU)
            .namespace(home)
            .spec(json!({"state": "Leave", "heartbeatPeriodSeconds": 60}))
            .with(
                "/status",
                json!({"agentStatus": [{"type": "MemberAgent", "conditions": joined}]}),
            )
            .build(),
        object("v1", "Namespace", home).build(),
    ]
    .into_iter()
    .collect();
    let member = hub.rollouts(&world)[0].key().clone();
    let step = |at: Timestamp| decide(&hub, &world, &[], &member, at).expect("a step");
    let deletes = |at: Timestamp| {
        let actions = step(at).actions.into_iter();
        let mut of_namespace = actions.filter(|action| action.target.kind == NAMESPACE);
        of_namespace.any(|action| action.verb == Verb::Delete)
    };
    assert_eq!(step(now()).wake_at, Some(now() + wait));
    assert!(!deletes(now() + SignedDuration::from_secs(59)));
    assert!(deletes(now() + wait));
}
