//! Writes that the member refuses: each is told about its object, and keeps no other from going on.

use convoy_api::ObjectKey;
use convoy_api::kinds::{CONFIG_MAP, NAMESPACE};
use serde_json::{Value, json};

use super::manifests::{conditions, config, deployment, on, shop};
use super::world::{Site, WORK};
use super::{EU, HOME, settings, site, told, web};

fn front() -> ObjectKey {
    on(EU, &convoy_api::kinds::DEPLOYMENT, "shop", "front")
}

fn message(site: &Site, at: usize) -> String {
    let entry = &site.get(&web()).status()["manifestConditions"][at];
    entry["conditions"][0]["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn every_refusal_is_told_in_the_servers_words() {
    let cases = [
        "configmaps is forbidden: User \"agent\" cannot create resource \"configmaps\"",
        "ConfigMap \"settings\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
        "namespaces \"shop\" not found",
        "admission webhook \"policy.example.com\" denied the request: no",
        "Request entity too large: limit is 3145728",
    ];
    for text in cases {
        let mut site = site(&[shop(), config("a"), deployment("v1")], &json!({}));
        site.applier.deny(&settings(), text);
        site.settle();
        assert_eq!(
            conditions(site.get(&web()).status()),
            ["Applied=False/SomeManifestsAreNotApplied"],
            "{text}"
        );
        let reasons: Vec<String> = (0..3).map(|at| told(&site, at)[0].clone()).collect();
        assert_eq!(
            reasons,
            ["Applied=True/Applied", "Applied=False/ManifestApplyFailed", "Applied=True/Applied"]
        );
        assert_eq!(message(&site, 1), text);
        assert!(!site.complaints.is_empty(), "a Warning event for each denial");
        site.applier.allow(&settings());
        site.settle();
        assert_eq!(told(&site, 1)[0], "Applied=True/Applied", "{text}");
        assert_eq!(conditions(site.get(&web()).status())[0], "Applied=True/AllManifestsApplied");
    }
}

#[test]
fn several_refusals_hold_up_neither_each_other_nor_another_work() {
    let other = super::world::work("other-work", &[second("a")], &json!({}));
    let mut site = Site::of_agent(
        vec![
            super::world::work("web-work", &[shop(), config("a"), deployment("v1")], &json!({})),
            other,
        ],
        EU,
    );
    site.applier.deny(&settings(), "no config maps");
    site.applier.deny(&front(), "no deployments");
    site.settle();
    let told: Vec<String> = (0..3).map(|at| message(&site, at)).collect();
    assert_eq!(told[1..], ["no config maps", "no deployments"]);
    let other = site.get(&WORK.key(HOME, "other-work"));
    assert_eq!(conditions(other.status())[0], "Applied=True/AllManifestsApplied");
    site.applier.allow(&front());
    // Which of those that failed is tried first changes every second.
    for _ in 0..2 {
        let next = site.applier.now() + jiff::SignedDuration::from_secs(1);
        site.applier.advance_to(next);
        site.settle();
    }
    assert!(site.world().get(&front()).is_some(), "one that is denied keeps no other waiting");
}

fn second(value: &str) -> Value {
    let mut map = config(value);
    map["metadata"]["name"] = json!("second");
    map
}

#[test]
fn a_refused_change_leaves_the_object_and_a_new_manifest_starts_over() {
    let mut site = site(&[shop(), config("a")], &json!({}));
    site.settle();
    site.applier.deny(&settings(), "data: field is immutable");
    site.edit(&web(), |raw| raw["spec"]["workload"]["manifests"][1] = config("b"));
    site.settle();
    assert_eq!(told(&site, 1), ["Applied=False/ManifestApplyFailed"]);
    assert_eq!(site.get(&settings()).raw()["data"]["mode"], "a");
    let observed = &site.get(&web()).status()["conditions"][0]["observedGeneration"];
    assert_eq!(*observed, 2, "the refusal is about the new generation");
    site.edit(&web(), |raw| raw["spec"]["workload"]["manifests"][1] = config("a"));
    site.settle();
    assert_eq!(told(&site, 1)[0], "Applied=True/Applied", "nothing is left to be refused");
}

#[test]
fn an_object_that_may_not_be_deleted_keeps_nothing_else_from_being_applied() {
    let mut site = site(&[shop(), config("a")], &json!({}));
    site.settle();
    site.applier.deny(&settings(), "deletion is forbidden");
    site.edit(&web(), |raw| {
        raw["spec"]["workload"]["manifests"] = json!([shop(), second("a")]);
    });
    site.settle();
    assert!(site.world().get(&on(EU, &CONFIG_MAP, "shop", "second")).is_some());
    assert!(site.world().get(&on(EU, &NAMESPACE, "", "shop")).is_some());
    assert!(site.complaints.iter().any(|told| told.contains("deletion is forbidden")));
}
