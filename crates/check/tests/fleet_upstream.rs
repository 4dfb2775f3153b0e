//! What KubeFleet's own definitions, agents and end-to-end suite ask of hub and agent, beyond what
//! the objects say.

use convoy_api::kinds::NAMESPACE;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::{Applier, settle};
use convoy_plan::dialect::fleet::{Hub, Options};
use convoy_plan::dialect::fleet_agent::FleetAgent;
use convoy_plan::{Denial, Dialect, World, complain, decide};
use convoy_testkit::{Builder, NOW, fleet, object};
use jiff::Timestamp;
use serde_json::{Value, json};

const CLUSTER_API: &str = "cluster.kubernetes-fleet.io/v1beta1";
const PLACEMENT_API: &str = "placement.kubernetes-fleet.io/v1beta1";
const MEMBER: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "MemberCluster");
const WORK: GroupKind = GroupKind::new("placement.kubernetes-fleet.io", "Work");
const FAKE: GroupKind = GroupKind::new("dummy.dev", "Fake");
const EU: &str = "eu";
const HOME: &str = "fleet-member-eu";
const FINALIZER: &str = "kubernetes-fleet.io/membercluster-finalizer";

fn now() -> Timestamp {
    NOW.parse().expect("a fixed instant")
}

fn web() -> ObjectKey {
    WORK.key(HOME, "web-work")
}

fn fake() -> Value {
    json!({"apiVersion": "dummy.dev/v10", "kind": "Fake",
        "metadata": {"name": "app", "namespace": "shop"}})
}

/// A joined member and one Work for it, with a Namespace and an object of a kind of somebody's.
fn hub_of_one_work(strategy: &Value) -> World {
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let internal = object(CLUSTER_API, "InternalMemberCluster", EU)
        .namespace(HOME)
        .spec(json!({"state": "Join", "heartbeatPeriodSeconds": 60}));
    let work = object(PLACEMENT_API, "Work", "web-work")
        .namespace(HOME)
        .with("/metadata/generation", json!(1))
        .spec(json!({"workload": {"manifests": [shop, fake()]}, "applyStrategy": strategy}));
    [internal.build(), work.build()].into_iter().collect()
}

/// The agent writes until it has nothing more to write; `seen` looks at the Work after each step.
fn run_agent(world: World, mut seen: impl FnMut(&Object)) -> Applier {
    let agent = FleetAgent::new(EU);
    let mut applier = Applier::new(world, now());
    for _ in 0..20 {
        let step = decide(&agent, applier.world(), &[], &web(), now()).expect("a step");
        if step.is_quiet() {
            return applier;
        }
        applier.apply(&step).expect("nothing is refused");
        seen(applier.world().get(&web()).expect("the Work"));
    }
    panic!("the agent never comes to rest");
}

fn told(of: &Value) -> Vec<String> {
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entries = of["conditions"].as_array().cloned().unwrap_or_default();
    let told = entries
        .iter()
        .map(|it| format!("{}={}/{}", word(it, "type"), word(it, "status"), word(it, "reason")));
    told.collect()
}

/// Upstream's definition of Works refuses a status without them.
#[test]
fn every_status_of_a_work_has_conditions() {
    for strategy in [json!({}), json!({"type": "ReportDiff"})] {
        let mut states = 0;
        run_agent(hub_of_one_work(&strategy), |work| {
            if work.status().is_null() {
                return;
            }
            states += 1;
            assert!(work.status()["conditions"].is_array(), "{}", work.status());
            let entries = work.status()["manifestConditions"].as_array().expect("manifests");
            for entry in entries {
                assert!(entry["conditions"].is_array() && entry["identifier"].is_object());
            }
        });
        assert!(states >= 2, "the write ahead and the result: {states}");
    }
}

#[test]
fn a_kind_that_the_member_does_not_serve_cannot_be_compared() {
    let strategy = json!({"type": "ReportDiff"});
    let applier = run_agent(hub_of_one_work(&strategy), |_| {});
    let status = applier.world().get(&web()).unwrap().status();
    assert_eq!(told(status), ["DiffReported=False/SomeManifestsHaveNotReportedDiff"]);
    let entries = &status["manifestConditions"];
    assert_eq!(told(&entries[0]), ["DiffReported=True/FoundDiff"], "the others go on");
    assert_eq!(told(&entries[1]), ["DiffReported=False/FailedToReportDiff"]);
    assert_eq!(entries[1].get("diffDetails"), None);
    let message = entries[1]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("serves no objects of this kind"), "{message}");

    let mut world = hub_of_one_work(&strategy);
    world.observe(&FAKE.in_cluster(EU));
    let applier = run_agent(world, |_| {});
    let status = applier.world().get(&web()).unwrap().status();
    assert_eq!(told(status), ["DiffReported=True/AllManifestsDiffReported"]);
    let diffs = &status["manifestConditions"][1]["diffDetails"]["observedDiffs"];
    assert_eq!(diffs[0]["path"], "/", "a kind that is served, and of which there are no objects");
}

#[test]
fn a_kind_that_cannot_be_written_is_a_manifest_that_cannot_be_decoded() {
    let agent = FleetAgent::new(EU);
    let mut applier = Applier::new(hub_of_one_work(&json!({})), now());
    let step = decide(&agent, applier.world(), &[], &web(), now()).unwrap();
    applier.apply(&step).unwrap();
    let target = ObjectKey { cluster: EU.into(), ..FAKE.key("shop", "app") };
    let denial = Denial { target, verb: "create", message: Denial::of_unknown_kind(&FAKE) };
    let complaint = complain(&agent, applier.world(), &[], &web(), &denial, now()).unwrap();
    let entry = &complaint.status.expect("it is told in the Work")["manifestConditions"][1];
    assert_eq!(told(entry), ["Applied=False/DecodingErred"]);
    let message = entry["conditions"][0]["message"].as_str().unwrap();
    assert_eq!(message, "no matches for kind \"Fake\" in group \"dummy.dev\"");
}

/// Who forces a cluster out takes its finalizers off, and deletes it then. Were one put on again
/// in between, the hub would wait for an agent that never answers.
#[test]
fn a_finalizer_that_was_taken_off_a_member_stays_off() {
    let identity = json!({"kind": "User", "name": "agent"});
    let member = object(CLUSTER_API, "MemberCluster", EU)
        .with("/metadata/generation", json!(1))
        .spec(json!({"identity": identity}))
        .build();
    let mut applier = Applier::new([member].into_iter().collect(), now());
    let key = MEMBER.key("", EU);
    let rest = |applier: &mut Applier| {
        settle(applier, 20, |_| false).expect("membership comes to rest");
    };
    let guarded = |applier: &Applier| applier.world().get(&key).unwrap().has_finalizer(FINALIZER);
    rest(&mut applier);
    assert!(guarded(&applier));
    assert!(applier.world().find(&NAMESPACE, "", HOME).is_some());

    applier.edit(&key, |raw| raw["metadata"]["finalizers"] = json!([]));
    rest(&mut applier);
    assert!(!guarded(&applier));

    applier.edit(&key, |raw| raw["spec"]["heartbeatPeriodSeconds"] = json!(15));
    rest(&mut applier);
    assert!(guarded(&applier), "a changed member is a member like any other");
}

#[test]
fn volume_claims_of_workloads_on_the_hub_stay_there() {
    let place = object(PLACEMENT_API, "ClusterResourcePlacement", "web").spec(json!({
        "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}]
    }));
    let claim = object("v1", "PersistentVolumeClaim", "data-db-0").namespace("shop");
    let config = object("v1", "ConfigMap", "settings").namespace("shop");
    let objects = [place, claim, config, object("v1", "Namespace", "shop")];
    let world: World = objects.into_iter().map(Builder::build).collect();
    for (runs_workloads, taken) in [
        (false, vec!["Namespace", "ConfigMap", "PersistentVolumeClaim"]),
        (true, vec!["Namespace", "ConfigMap"]),
    ] {
        let hub = Hub { options: Options { runs_workloads, ..Options::new() } };
        let rollout = hub.rollouts(&world)[0].key().clone();
        let mut applier = Applier::new(world.clone(), now());
        applier.apply(&decide(&hub, &world, &[], &rollout, now()).unwrap()).unwrap();
        let kind = GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourceSnapshot");
        let snapshot = applier.world().find(&kind, "", "web-0-snapshot").expect("a snapshot");
        let resources = snapshot.spec()["selectedResources"].as_array().expect("resources");
        let kinds: Vec<&str> = resources.iter().filter_map(|it| it["kind"].as_str()).collect();
        assert_eq!(kinds, taken, "runs_workloads: {runs_workloads}");
    }
}

/// Placements decide on their own, so they may see the hub between any two writes of an override.
#[test]
fn an_override_that_changes_is_in_force_all_the_time() {
    const OVERRIDE: GroupKind = GroupKind::new("placement.kubernetes-fleet.io", "ResourceOverride");
    const BINDING: GroupKind =
        GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourceBinding");
    let rules = |value: &str| {
        json!([{"clusterSelector": {"clusterSelectorTerms": []}, "jsonPatchOverrides": [
            {"op": "replace", "path": "/data/mode", "value": value}]}])
    };
    let settings = json!([{"group": "", "version": "v1", "kind": "ConfigMap", "name": "settings"}]);
    let objects = [
        fleet::placement("web", json!(null)),
        fleet::member(EU, NOW),
        object("v1", "Namespace", "shop"),
        object("v1", "ConfigMap", "settings").namespace("shop").with("/data/mode", json!("a")),
        object(PLACEMENT_API, "ResourceOverride", "mode").namespace("shop").spec(json!({
            "placement": {"name": "web"}, "resourceSelectors": settings,
            "policy": {"overrideRules": rules("b")}})),
    ];
    let mut applier = Applier::new(objects.into_iter().map(Builder::build).collect(), now());
    settle(&mut applier, 40, |_| false).expect("the placement comes to rest");
    // Its agent reports that all is well, so that the next change may go there.
    let binding = applier.world().of(&BINDING).next().expect("a binding").clone();
    let kinds = ["RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available"];
    let since = "2025-12-01T00:00:00Z";
    let reports = kinds.map(|it| fleet::condition(it, "True", it, binding.generation(), since));
    applier.edit(binding.key(), |raw| raw["status"]["conditions"] = json!(reports));
    let key = OVERRIDE.key("shop", "mode");
    applier.edit(&key, |raw| raw["spec"]["policy"]["overrideRules"] = rules("c"));

    let hub = Hub { options: Options::AT_ONCE };
    let whole = decide(&hub, applier.world(), &[], &key, now()).expect("a step");
    let mut seen = Vec::new();
    for written in 0..=whole.actions.len() {
        let mut between = Applier::new(applier.world().clone(), now());
        let mut step = whole.clone();
        step.actions.truncate(written);
        between.apply(&step).expect("the override's first writes");
        let placement = GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement");
        let placement = placement.key("", "web");
        let step = decide(&hub, between.world(), &[], &placement, now()).expect("a step");
        between.apply(&step).expect("the placement's writes");
        let binding = between.world().of(&BINDING).next().expect("a binding");
        let overrides = binding.spec()["resourceOverrideSnapshots"].as_array().cloned();
        let overrides = overrides.unwrap_or_default();
        assert_eq!(overrides.len(), 1, "after {written} writes: {overrides:?}");
        seen.push(overrides[0]["name"].as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(seen.first().map(String::as_str), Some("mode-0"), "nothing is written yet");
    assert!(seen[1..].iter().all(|name| name == "mode-1"), "{seen:?}");
    settle(&mut applier, 40, |_| false).expect("the placement comes to rest again");
    let kind = GroupKind::new("placement.kubernetes-fleet.io", "ResourceOverrideSnapshot");
    let latest = applier
        .world()
        .of(&kind)
        .filter(|it| it.label("kubernetes-fleet.io/is-latest-snapshot") == Some("true"));
    assert_eq!(latest.map(|it| it.name().as_str()).collect::<Vec<_>>(), ["mode-1"]);
}

/// Who takes the finalizers off a MemberCluster and deletes it takes its namespace along.
#[test]
fn a_placement_goes_though_one_of_its_clusters_was_forced_out() {
    const PLACEMENT: GroupKind =
        GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement");
    let binding = fleet::binding("web", "gone", "Unscheduled", "web-0-snapshot")
        .with("/metadata/deletionTimestamp", json!(NOW));
    let placement = fleet::placement(
        "web",
        json!({"placementType": "PickFixed",
        "clusterNames": ["gone"]}),
    )
    .with("/metadata/deletionTimestamp", json!(NOW));
    let objects = [placement, binding, object("v1", "Namespace", "shop")];
    let mut applier = Applier::new(objects.into_iter().map(Builder::build).collect(), now());
    settle(&mut applier, 20, |_| false).expect("the placement comes to rest");
    assert!(applier.world().find(&PLACEMENT, "", "web").is_none(), "nothing holds it");
}
