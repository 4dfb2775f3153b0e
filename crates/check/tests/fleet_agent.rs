//! The member agent: what becomes of Works on a member.

#[path = "fleet_agent/world.rs"]
mod world;

#[path = "fleet_agent/comparison.rs"]
mod comparison;
#[path = "common/damage.rs"]
mod damage;
#[path = "fleet_agent/damaged.rs"]
mod damaged;
#[path = "common/manifests.rs"]
mod manifests;
#[path = "fleet_agent/placed.rs"]
mod placed;
#[path = "fleet_agent/provided.rs"]
mod provided;
#[path = "fleet_agent/refused.rs"]
mod refused;
#[path = "fleet_agent/server_side.rs"]
mod server_side;
#[path = "common/site.rs"]
mod site;
#[path = "fleet_agent/timings.rs"]
mod timings;

use convoy_api::kinds::{CONFIG_MAP, DEPLOYMENT, NAMESPACE, NODE};
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::dialect::Need;
use convoy_plan::dialect::fleet_agent::FleetAgent;
use convoy_plan::{Denial, Dialect, complain};
use serde_json::{Value, json};

use manifests::{conditions, config, deployment, now, on, shop};
use world::{APPLIED_WORK, PLACEMENT_API, Site, WORK, work};

const EU: &str = "eu";
const HOME: &str = "fleet-member-eu";

fn web() -> ObjectKey {
    WORK.key(HOME, "web-work")
}

fn settings() -> ObjectKey {
    on(EU, &CONFIG_MAP, "shop", "settings")
}

fn site(manifests: &[Value], strategy: &Value) -> Site {
    Site::of_agent(vec![work("web-work", manifests, strategy)], EU)
}

fn existing(value: &Value) -> Object {
    Object::from_value(value.clone()).expect("an object").in_cluster(EU)
}

/// `Type=Status/Reason` of the manifest at `at`.
fn told(site: &Site, at: usize) -> Vec<String> {
    conditions(&site.get(&web()).status()["manifestConditions"][at])
}

#[test]
fn a_work_is_applied_owned_and_reported() {
    let mut site = site(&[deployment("v1"), shop(), config("a")], &json!({}));
    site.settle();
    let work = site.get(&web());
    assert!(work.has_finalizer("kubernetes-fleet.io/work-cleanup"));
    assert_eq!(
        conditions(work.status()),
        ["Applied=True/AllManifestsApplied", "Available=True/AllManifestsAvailable"]
    );
    assert_eq!(told(&site, 0), ["Applied=True/Applied", "Available=True/Available"]);
    let applied = site.get(&on(EU, &APPLIED_WORK, "", "web-work"));
    assert_eq!(applied.spec(), &json!({"workName": "web-work", "workNamespace": HOME}));
    assert_eq!(applied.status()["appliedResources"].as_array().unwrap().len(), 3);
    let live = site.get(&settings());
    assert_eq!(
        live.metadata()["ownerReferences"],
        json!([{"apiVersion": PLACEMENT_API, "kind": "AppliedWork", "name": "web-work",
            "uid": applied.uid().unwrap(), "blockOwnerDeletion": true}])
    );
    assert!(live.annotation("kubernetes-fleet.io/spec-hash").is_some());
    let identifier = &site.get(&web()).status()["manifestConditions"][0]["identifier"];
    assert_eq!(
        *identifier,
        json!({"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment",
            "resource": "deployments", "namespace": "shop", "name": "front"})
    );
}

#[test]
fn manifests_are_named_before_anything_is_written_and_in_waves() {
    let mut site = site(&[deployment("v1"), config("a"), shop()], &json!({}));
    site.round();
    let work = site.get(&web());
    assert_eq!(work.status()["manifestConditions"].as_array().unwrap().len(), 3);
    assert_eq!(told(&site, 0), ["Applied=False/PreparingToProcess"]);
    assert!(conditions(work.status()).is_empty(), "nothing is said about the Work yet");
    let steps = site.steps();
    let step = steps.iter().find(|step| step.rollout == web()).unwrap();
    let kinds: Vec<&str> = step.actions.iter().map(|it| it.target.kind.kind.as_str()).collect();
    assert_eq!(kinds, ["Namespace", "ConfigMap", "Deployment"]);
}

#[test]
fn an_updated_manifest_keeps_what_others_have_set() {
    let mut site = site(&[shop(), deployment("v1")], &json!({}));
    site.settle();
    let front = on(EU, &DEPLOYMENT, "shop", "front");
    site.edit(&front, |raw| {
        raw["spec"]["paused"] = json!(true);
        raw["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = json!("Always");
    });
    site.edit(&web(), |raw| {
        raw["spec"]["workload"]["manifests"][1] = deployment("v2");
    });
    site.settle();
    let spec = site.get(&front).spec();
    assert_eq!(spec["paused"], true);
    let container = &spec["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["image"], &container["imagePullPolicy"]),
        (&json!("v2"), &json!("Always"))
    );
    let observed = &site.get(&web()).status()["conditions"][0]["observedGeneration"];
    assert_eq!(*observed, 2);
}

#[test]
fn an_object_that_does_not_work_is_told() {
    let mut site = site(&[shop(), deployment("bad")], &json!({}));
    site.settle();
    assert_eq!(
        conditions(site.get(&web()).status()),
        ["Applied=True/AllManifestsApplied", "Available=False/SomeManifestsAreNotAvailable"]
    );
    assert_eq!(told(&site, 1)[1], "Available=False/ManifestNotAvailableYet");
}

#[test]
fn objects_go_with_their_manifests_and_with_their_work() {
    let mut site = site(&[shop(), config("a"), deployment("v1")], &json!({}));
    site.settle();
    site.edit(&web(), |raw| {
        raw["spec"]["workload"]["manifests"] = json!([shop(), deployment("v1")]);
    });
    site.settle();
    assert!(site.world().get(&settings()).is_none());
    assert_eq!(site.get(&web()).status()["manifestConditions"].as_array().unwrap().len(), 2);
    let applied = on(EU, &APPLIED_WORK, "", "web-work");
    assert_eq!(site.get(&applied).status()["appliedResources"].as_array().unwrap().len(), 2);
    site.edit(&web(), |raw| raw["metadata"]["deletionTimestamp"] = json!(convoy_testkit::NOW));
    site.settle();
    assert!(site.world().get(&on(EU, &NAMESPACE, "", "shop")).is_none());
    assert!(site.world().get(&applied).is_none());
    assert!(site.world().get(&web()).is_none());
}

#[test]
fn a_drifted_object_is_reverted_or_left_as_asked() {
    let cases = [
        (json!({}), "a", "Applied=True/Applied", 0),
        (json!({"whenToApply": "IfNotDrifted"}), "b", "Applied=False/FoundDrifts", 1),
    ];
    for (strategy, expected, reason, drifts) in cases {
        let mut site = site(&[shop(), config("a")], &strategy);
        site.settle();
        site.edit(&settings(), |raw| raw["data"]["mode"] = json!("b"));
        site.settle();
        assert_eq!(site.get(&settings()).raw()["data"]["mode"], expected, "{strategy}");
        assert_eq!(told(&site, 1)[0], reason, "{strategy}");
        let entry = &site.get(&web()).status()["manifestConditions"][1];
        let found = entry["driftDetails"]["observedDrifts"].as_array().map_or(0, Vec::len);
        assert_eq!(found, drifts, "{strategy}");
        if drifts > 0 {
            let drift = &entry["driftDetails"]["observedDrifts"][0];
            assert_eq!(
                *drift,
                json!({"path": "/data/mode", "valueInMember": "b", "valueInHub": "a"})
            );
        }
    }
}

#[test]
fn a_full_comparison_tells_about_fields_that_no_manifest_sets() {
    let strategy = json!({"comparisonOption": "FullComparison"});
    let mut site = site(&[shop(), config("a")], &strategy);
    site.settle();
    site.edit(&settings(), |raw| raw["data"]["more"] = json!("x"));
    site.settle();
    assert_eq!(told(&site, 1)[0], "Applied=True/Applied");
    let entry = &site.get(&web()).status()["manifestConditions"][1];
    let drifts = &entry["driftDetails"]["observedDrifts"];
    assert_eq!(*drifts, json!([{"path": "/data/more", "valueInMember": "x"}]));
}

#[test]
fn objects_that_were_there_before_are_taken_over_as_asked() {
    let never = json!({"whenToTakeOver": "Never"});
    let if_no_diff = json!({"whenToTakeOver": "IfNoDiff"});
    let cases = [
        (json!({}), "b", "a", "Applied=True/Applied"),
        (never, "b", "b", "Applied=False/NotTakenOver"),
        (if_no_diff.clone(), "b", "b", "Applied=False/FailedToTakeOver"),
        (if_no_diff, "a", "a", "Applied=True/Applied"),
    ];
    for (strategy, before, after, reason) in cases {
        let mut site = site(&[shop(), config("a")], &strategy);
        site.applier.insert(existing(&config(before)));
        site.settle();
        assert_eq!(site.get(&settings()).raw()["data"]["mode"], after, "{strategy}");
        assert_eq!(told(&site, 1)[0], reason, "{strategy} {before}");
        let diffs = &site.get(&web()).status()["manifestConditions"][1]["diffDetails"];
        assert_eq!(diffs.is_object(), reason.ends_with("FailedToTakeOver"), "{strategy}");
    }
}

#[test]
fn an_object_has_one_work_and_other_owners_only_if_allowed() {
    let owner = json!([{"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u-1"}]);
    let mut owned = config("a");
    owned["metadata"]["ownerReferences"] = owner;
    for (allowed, reason) in
        [(false, "Applied=False/FailedToTakeOver"), (true, "Applied=True/Applied")]
    {
        let mut site = site(&[shop(), config("a")], &json!({"allowCoOwnership": allowed}));
        site.applier.insert(existing(&owned));
        site.settle();
        assert_eq!(told(&site, 1)[0], reason);
        let owners = site.get(&settings()).owners().count();
        assert_eq!(owners, 1 + usize::from(allowed));
    }
    let strategy = json!({"allowCoOwnership": true});
    let mut site = site(&[shop(), config("a")], &strategy);
    site.settle();
    site.applier.insert(work("other-work", &[config("b")], &strategy));
    site.settle();
    let other = site.get(&WORK.key(HOME, "other-work"));
    let entry = &other.status()["manifestConditions"][0];
    assert_eq!(conditions(entry), ["Applied=False/FailedToTakeOver"]);
    let message = entry["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("web-work"), "{message}");
    assert_eq!(site.get(&settings()).raw()["data"]["mode"], "a");
}

#[test]
fn differences_are_reported_without_writing() {
    let mut site = site(&[shop(), config("a")], &json!({"type": "ReportDiff"}));
    site.applier.insert(existing(&config("b")));
    site.settle();
    assert!(site.world().get(&on(EU, &NAMESPACE, "", "shop")).is_none());
    assert_eq!(site.get(&settings()).raw(), &config("b"));
    let work = site.get(&web());
    assert_eq!(conditions(work.status()), ["DiffReported=True/AllManifestsDiffReported"]);
    let entries = &work.status()["manifestConditions"];
    assert_eq!(conditions(&entries[0]), ["DiffReported=True/FoundDiff"]);
    assert_eq!(
        entries[0]["diffDetails"]["observedDiffs"],
        json!([{"path": "/", "valueInHub": "(the whole object)"}])
    );
    assert_eq!(
        entries[1]["diffDetails"]["observedDiffs"],
        json!([{"path": "/data/mode", "valueInMember": "b", "valueInHub": "a"}])
    );
    site.edit(&web(), |raw| raw["spec"]["applyStrategy"] = json!({}));
    site.settle();
    assert_eq!(site.get(&settings()).raw()["data"]["mode"], "a", "applying goes on");
}

#[test]
fn a_bad_manifest_keeps_no_other_from_being_applied() {
    let nameless =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "s-"}});
    let mut site = site(&[nameless, shop(), config("a"), config("b")], &json!({}));
    site.settle();
    let work = site.get(&web());
    assert_eq!(conditions(work.status()), ["Applied=False/SomeManifestsAreNotApplied"]);
    let reasons: Vec<String> = (0..4).map(|at| told(&site, at)[0].clone()).collect();
    assert_eq!(
        reasons,
        [
            "Applied=False/FoundGenerateName",
            "Applied=True/Applied",
            "Applied=True/Applied",
            "Applied=False/Duplicated",
        ]
    );
    assert_eq!(site.get(&settings()).raw()["data"]["mode"], "a");
}

#[test]
fn a_denied_write_is_told_and_comes_last_from_then_on() {
    let mut site = site(&[shop(), config("a"), deployment("v1")], &json!({}));
    site.round();
    let agent = FleetAgent::new(EU);
    let message = "spec.scopes: field is immutable".to_owned();
    let denial = Denial { target: settings(), verb: "create", message };
    let complaint = complain(&agent, site.world(), &[], &web(), &denial, now()).unwrap();
    let status = complaint.status.expect("the manifest has a status");
    assert_eq!(conditions(&status), ["Applied=False/SomeManifestsAreNotApplied"]);
    let entry = &status["manifestConditions"][1];
    assert_eq!(conditions(entry), ["Applied=False/ManifestApplyFailed"]);
    let told = entry["conditions"][0]["message"].as_str().unwrap();
    assert!(told.contains("field is immutable"), "{told}");
    let message = "no matches for kind \"ConfigMap\" in version \"v1\"".to_owned();
    let unknown = Denial { message, ..denial };
    let complaint = complain(&agent, site.world(), &[], &web(), &unknown, now()).unwrap();
    let entry = &complaint.status.unwrap()["manifestConditions"][1];
    assert_eq!(conditions(entry), ["Applied=False/DecodingErred"]);
    site.edit(&web(), |raw| raw["status"] = status);
    let steps = site.steps();
    let step = steps.iter().find(|step| step.rollout == web()).unwrap();
    let kinds: Vec<&str> = step.actions.iter().map(|it| it.target.kind.kind.as_str()).collect();
    assert_eq!(kinds, ["Namespace", "Deployment", "ConfigMap"]);
}

#[test]
fn changes_on_hub_and_member_wake_the_right_work() {
    let mut site = site(&[shop(), config("a")], &json!({}));
    site.settle();
    let agent = FleetAgent::new(EU);
    let affected = |key: &ObjectKey| agent.affected(site.world(), key);
    assert_eq!(affected(&settings()), [web()]);
    assert_eq!(affected(&on(EU, &APPLIED_WORK, "", "web-work")), [web()]);
    assert_eq!(affected(&on(EU, &CONFIG_MAP, "shop", "another")), []);
    assert_eq!(affected(&on("us", &CONFIG_MAP, "shop", "settings")), [], "another member");
    assert!(affected(&web()).contains(&web()));
    let needs = agent.needs(site.world(), site.get(&web()));
    let kinds = needs.iter().filter_map(|need| match need {
        Need::Kind { collection, version } => Some(format!("{} {version}", collection.kind)),
        _ => None,
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["ConfigMap v1", "Namespace v1"]);
}

#[test]
fn a_secret_stays_secret() {
    let secret = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "key", "namespace": "shop"}, "data": {"token": value}})
    };
    let mut site = site(&[secret("aaa")], &json!({"type": "ReportDiff"}));
    site.applier.insert(existing(&secret("bbb")));
    site.settle();
    let text = site.get(&web()).status().to_string();
    assert!(text.contains("/data/token") && text.contains("redacted"), "{text}");
    assert!(!text.contains("aaa") && !text.contains("bbb"), "{text}");
}

#[test]
fn the_texts_of_a_secret_are_stored_as_data() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "key", "namespace": "shop"}, "stringData": {"token": "abc"}});
    let mut site = site(&[shop(), secret], &json!({}));
    site.settle();
    let live = site.get(&on(EU, &GroupKind::new("", "Secret"), "shop", "key"));
    assert_eq!(live.raw()["data"], json!({"token": "YWJj"}));
    assert_eq!(live.raw().get("stringData"), None);
}

#[test]
fn an_agent_joins_reports_and_leaves() {
    const INTERNAL: GroupKind =
        GroupKind::new("cluster.kubernetes-fleet.io", "InternalMemberCluster");
    let mut site = site(&[shop()], &json!({}));
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-1"},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi"},
            "allocatable": {"cpu": "3500m", "memory": "7Gi"}}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop"}, "spec": {"nodeName": "n-1",
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "500m"}}}]}});
    for object in [&node, &pod] {
        site.applier.insert(existing(object));
    }
    site.settle();
    let key = INTERNAL.key(HOME, EU);
    let status = site.get(&key).status().clone();
    assert_eq!(
        conditions(&status["agentStatus"][0]),
        ["Joined=True/InternalMemberClusterJoined", "Healthy=True/InternalMemberClusterHealthy"]
    );
    assert_eq!(status["properties"]["kubernetes-fleet.io/node-count"]["value"], "1");
    assert_eq!(status["resourceUsage"]["available"], json!({"cpu": "3", "memory": "7340032Ki"}));
    let steps = site.steps();
    let next = steps.iter().find(|step| step.rollout == key).unwrap().wake_at.unwrap();
    let wait = next.duration_since(now()).as_secs_f64();
    assert!((57.0..=63.0).contains(&wait), "{wait}");
    let mut second = node.clone();
    second["metadata"]["name"] = json!("n-2");
    site.applier.insert(existing(&second));
    site.settle();
    assert_eq!(site.get(&key).status(), &status, "nothing is due before the next heartbeat");
    site.applier.advance_to(next);
    site.settle();
    let status = site.get(&key).status();
    assert_eq!(status["properties"]["kubernetes-fleet.io/node-count"]["value"], "2");
    site.edit(&key, |raw| raw["spec"]["state"] = json!("Leave"));
    site.settle();
    assert_eq!(
        conditions(&site.get(&key).status()["agentStatus"][0])[0],
        "Joined=False/InternalMemberClusterLeft"
    );
    assert!(!site.get(&web()).has_finalizer("kubernetes-fleet.io/work-cleanup"));
    site.get(&on(EU, &NAMESPACE, "", "shop"));
    site.get(&on(EU, &NODE, "", "n-1"));
}
