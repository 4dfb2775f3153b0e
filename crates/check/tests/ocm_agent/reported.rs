//! What the hub is told: feedback, conditions by rules, and works that are through.

use convoy_plan::dialect::ocm_agent::Options;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::manifests::{conditions, config, deployment, shop};
use super::world::{Site, web, work};
use super::{configured, front, manifest, options, settings, site};

fn values(site: &Site, at: usize) -> Vec<String> {
    let values = manifest(site, at)["statusFeedback"]["values"].clone();
    let shown = |it: &Value| {
        format!("{}={}", it["name"].as_str().unwrap_or_default(), it["fieldValue"]["integer"])
    };
    values.as_array().cloned().unwrap_or_default().iter().map(shown).collect()
}

fn later(site: &mut Site, secs: i64) {
    let at = site.applier.now() + SignedDuration::from_secs(secs);
    site.applier.advance_to(at);
}

#[test]
fn polled_feedback_is_renewed_now_and_then_and_watched_at_once() {
    for scrape in ["Poll", "Watch"] {
        let more = configured(
            "deployments",
            "front",
            json!({"feedbackRules": [{"type": "WellKnownStatus"}], "feedbackScrapeType": scrape}),
        );
        let mut site = site(&[shop(), deployment("v1")], more);
        site.settle();
        let good = ["ReadyReplicas=2", "Replicas=2", "AvailableReplicas=2"];
        let bad = ["ReadyReplicas=0", "Replicas=2", "AvailableReplicas=0"];
        let synced = |site: &Site| manifest(site, 1)["conditions"][2].clone();
        later(&mut site, 15);
        site.settle();
        assert_eq!(values(&site, 1), good);
        assert_eq!(
            conditions(&manifest(&site, 1))[2],
            "StatusFeedbackSynced=True/StatusFeedbackSynced"
        );
        let before = synced(&site);
        site.edit(&web(), |raw| raw["spec"]["workload"]["manifests"][1] = deployment("bad"));
        site.settle();
        assert_eq!(values(&site, 1), bad, "{scrape}: the last change is long ago");
        assert_ne!(synced(&site)["lastTransitionTime"], before["lastTransitionTime"]);
        later(&mut site, 3);
        site.edit(&web(), |raw| raw["spec"]["workload"]["manifests"][1] = deployment("v2"));
        site.settle();
        if scrape == "Poll" {
            assert_eq!(values(&site, 1), bad);
            let wake = site.step(&web()).wake_at.unwrap();
            assert_eq!(wake, site.applier.now() + SignedDuration::from_secs(7));
            site.applier.advance_to(wake);
            site.settle();
        }
        assert_eq!(values(&site, 1), good, "{scrape}");
    }
}

#[test]
fn feedback_that_fails_is_told_beside_the_rest() {
    let paths = json!([
        {"name": "replicas", "path": ".status.replicas"},
        {"name": "containers", "path": ".spec.template.spec.containers"},
    ]);
    let rules = json!([{"type": "JSONPaths", "jsonPaths": paths}]);
    let more = configured("deployments", "front", json!({"feedbackRules": rules}));
    let objects = || vec![work("web", &[shop(), deployment("v1")], more.clone())];
    let mut site = Site::of_agent(objects(), options());
    site.settle();
    assert_eq!(values(&site, 1), ["replicas=2"]);
    let told = conditions(&manifest(&site, 1));
    assert_eq!(told[2], "StatusFeedbackSynced=False/StatusFeedbackSyncFailed");
    let mut raw = Options::new("eu", "https://hub:6443");
    raw.features.raw_feedback_json_string = true;
    let mut site = Site::of_agent(objects(), raw);
    site.settle();
    let json = &manifest(&site, 1)["statusFeedback"]["values"][1]["fieldValue"];
    assert_eq!(*json, json!({"type": "JsonRaw", "jsonRaw": r#"[{"image":"v1","name":"app"}]"#}));
}

#[test]
fn rules_give_conditions_of_manifests_and_of_the_work() {
    let rule = json!({"condition": "Progressing", "type": "CEL", "celExpressions":
        ["object.status.availableReplicas < object.spec.replicas"],
        "messageExpression": "result ? 'rolling out' : 'rolled out'"});
    let more = configured("deployments", "front", json!({"conditionRules": [rule]}));
    let mut site = site(&[shop(), deployment("bad")], more);
    site.settle();
    let progressing = |site: &Site| {
        let told = site.get(&web()).status()["conditions"].as_array().unwrap().clone();
        told.into_iter().find(|it| it["type"] == "Progressing")
    };
    let told = progressing(&site).unwrap();
    assert_eq!((&told["status"], &told["message"]), (&json!("True"), &json!("rolling out")));
    assert_eq!(told["reason"], "ConditionRulesAggregated");
    assert_eq!(conditions(&manifest(&site, 1))[3], "Progressing=True/ConditionRuleEvaluated");
    site.edit(&front(), |raw| raw["status"]["availableReplicas"] = json!(2));
    site.edit(&web(), |raw| raw["spec"]["workload"]["manifests"][1] = deployment("v1"));
    site.settle();
    assert_eq!(progressing(&site).unwrap()["status"], "False");
    site.edit(&web(), |raw| raw["spec"]["manifestConfigs"] = json!([]));
    site.settle();
    assert_eq!(progressing(&site), None, "its rule is gone");
    assert_eq!(conditions(&manifest(&site, 1)).len(), 3);
}

#[test]
fn a_new_generation_renews_only_what_is_applied() {
    let mut site = site(&[shop(), config("a")], json!({}));
    site.settle();
    let before = manifest(&site, 1);
    later(&mut site, 60);
    site.edit(&web(), |raw| raw["spec"]["workload"]["manifests"][1] = config("b"));
    site.settle();
    let after = manifest(&site, 1);
    assert_eq!(
        conditions(&after),
        [
            "Available=True/ResourceAvailable",
            "StatusFeedbackSynced=True/NoStatusFeedbackSynced",
            "Applied=True/AppliedManifestComplete"
        ]
    );
    let time = |entry: &Value, at: usize| entry["conditions"][at]["lastTransitionTime"].clone();
    assert_eq!(time(&after, 0), time(&before, 1), "Available keeps its time");
    assert_ne!(time(&after, 2), time(&before, 0));
    assert_eq!(after["conditions"][2]["observedGeneration"], 2);
    let work = site.get(&web()).status();
    assert_eq!(work["conditions"][1]["observedGeneration"], 2);
    assert_eq!(work["conditions"][0]["lastTransitionTime"], time(&before, 0));
}

#[test]
fn a_work_that_is_through_is_not_applied_any_more() {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "once", "namespace": "shop"}, "spec": {}});
    let more = json!({"manifestConfigs": [{
        "resourceIdentifier": {"group": "batch", "resource": "jobs", "namespace": "shop",
            "name": "once"},
        "conditionRules": [{"condition": "Complete", "type": "WellKnownConditions"}]}]});
    let mut site = site(&[shop(), job, config("a")], more);
    site.settle();
    let complete = |site: &Site| site.get(&web()).condition_status("Complete").map(str::to_owned);
    assert_eq!(complete(&site).as_deref(), Some("False"));
    let kind = convoy_api::GroupKind::new("batch", "Job");
    site.edit(&super::on("eu", &kind, "shop", "once"), |raw| {
        raw["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    });
    site.settle();
    assert_eq!(complete(&site).as_deref(), Some("True"));
    site.edit(&settings(), |raw| raw["data"]["mode"] = json!("mine"));
    site.settle();
    assert_eq!(site.get(&settings()).raw()["data"]["mode"], "mine");
}
