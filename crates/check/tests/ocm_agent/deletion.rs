//! Objects, works and what stands for them go: in the right order, and only what is theirs.

use convoy_api::ocm::names::MANIFEST_WORK;
use convoy_plan::dialect::ocm_agent::{OcmAgent, Options, hub_hash};
use convoy_testkit::NOW;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::manifests::{conditions, config, deployment, shop};
use super::world::{EU, HUB, Site, applied, web, work};
use super::{front, options, settings, site};

fn delete(site: &mut Site, key: &convoy_api::ObjectKey) {
    site.edit(key, |raw| raw["metadata"]["deletionTimestamp"] = json!(NOW));
}

fn listed(site: &Site) -> Vec<String> {
    let resources = site.get(&applied("web")).status()["appliedResources"].clone();
    let names = resources.as_array().cloned().unwrap_or_default();
    names.iter().map(|it| it["resource"].as_str().unwrap_or_default().to_owned()).collect()
}

fn drop_config(site: &mut Site) {
    site.edit(&web(), |raw| {
        raw["spec"]["workload"]["manifests"] = json!([shop(), deployment("v1")]);
    });
}

#[test]
fn an_object_goes_with_its_manifest_and_is_listed_until_it_is_gone() {
    let mut site = site(&[shop(), config("a"), deployment("v1")], json!({}));
    site.settle();
    site.edit(&settings(), |raw| raw["metadata"]["finalizers"] = json!(["example.com/held"]));
    drop_config(&mut site);
    site.settle();
    assert!(site.get(&settings()).is_deleting());
    assert_eq!(listed(&site), ["configmaps", "namespaces", "deployments"]);
    let told = site.get(&web()).status();
    assert_eq!(told["resourceStatus"]["manifests"].as_array().unwrap().len(), 2);
    assert_eq!(conditions(told)[0], "Applied=True/AppliedManifestWorkComplete");
    site.applier.remove(&settings());
    site.settle();
    assert_eq!(listed(&site), ["namespaces", "deployments"]);
}

#[test]
fn nothing_is_taken_away_while_a_kind_is_unknown() {
    let mut site = site(&[shop(), config("a")], json!({}));
    site.settle();
    let goose = json!({"apiVersion": "example.com/v1", "kind": "Goose", "metadata": {"name": "g"}});
    site.edit(&web(), |raw| {
        raw["spec"]["workload"]["manifests"] = json!([shop(), goose]);
        raw["status"]["resourceStatus"]["manifests"][1] = json!({
            "resourceMeta": {"ordinal": 1, "group": "example.com", "version": "v1",
                "kind": "Goose", "name": "g"},
            "conditions": [{"type": "Applied", "status": "False", "observedGeneration": 2,
                "reason": "AppliedManifestFailed", "lastTransitionTime": NOW,
                "message": "Failed to apply manifest: \
                    the server doesn't have a resource type \"Goose\""}]});
    });
    let step = site.step(&web());
    assert!(step.actions.iter().all(|it| it.target != settings()), "{:#}", step.to_json());
    assert!(step.actions.iter().any(|it| it.target.kind.kind == "Goose"), "it is tried again");
}

#[test]
fn what_is_orphaned_stays() {
    let policy = |policy: &str, rules: Value| {
        json!({"deleteOption": {"propagationPolicy": policy,
            "selectivelyOrphans": {"orphaningRules": rules}}})
    };
    let rule = json!({"resource": "configmaps", "namespace": "shop", "name": "settings"});
    let cases = [
        (policy("Foreground", json!([rule])), 1, false),
        (policy("Orphan", json!([])), 0, true),
        (policy("SelectivelyOrphan", json!([rule])), 0, true),
        (policy("SelectivelyOrphan", json!([])), 1, false),
    ];
    for (option, owners, stays) in cases {
        let mut site = site(&[shop(), config("a"), deployment("v1")], option.clone());
        site.settle();
        assert_eq!(site.get(&settings()).owners().count(), owners, "{option}");
        drop_config(&mut site);
        site.settle();
        assert_eq!(site.has(&settings()), stays, "{option}");
        assert_eq!(listed(&site), ["namespaces", "deployments"], "{option}");
    }
    // The owner comes and goes with the option.
    let mut site = site(&[shop(), config("a")], policy("Orphan", json!([])));
    site.settle();
    site.edit(&web(), |raw| _ = raw["spec"].as_object_mut().unwrap().shift_remove("deleteOption"));
    site.settle();
    assert_eq!(site.get(&settings()).owners().count(), 1);
    site.edit(&web(), |raw| raw["spec"]["deleteOption"] = json!({"propagationPolicy": "Orphan"}));
    site.settle();
    assert_eq!(site.get(&settings()).owners().count(), 0);
    delete(&mut site, &web());
    site.settle();
    assert!(!site.has(&web()) && site.has(&settings()));
}

#[test]
fn an_object_of_two_works_goes_with_the_last() {
    let mut site = site(&[shop(), config("a")], json!({}));
    let twin = MANIFEST_WORK.key(EU, "twin");
    site.applier.insert(work("twin", &[config("a")], json!({})));
    site.settle();
    assert_eq!(site.get(&settings()).owners().count(), 2);
    delete(&mut site, &twin);
    site.settle();
    assert!(!site.has(&twin));
    assert_eq!(site.get(&settings()).owners().count(), 1);
    delete(&mut site, &web());
    site.settle();
    assert!(!site.has(&settings()) && !site.has(&web()));
}

#[test]
fn a_work_goes_after_its_objects() {
    let mut site = site(&[shop(), config("a"), deployment("v1")], json!({}));
    site.settle();
    site.edit(&front(), |raw| raw["metadata"]["finalizers"] = json!(["example.com/held"]));
    delete(&mut site, &web());
    site.round();
    let work = site.get(&web());
    assert_eq!(conditions(work.status()).last().unwrap(), "Deleting=True/WorkDeleting");
    let told = work.status()["conditions"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(told["message"], "ManifestWork is being deleted");
    assert_eq!(told["observedGeneration"].as_i64(), Some(work.generation()));
    assert!(site.get(&applied("web")).is_deleting());
    site.settle();
    assert!(!site.has(&settings()) && site.has(&web()));
    assert_eq!(listed(&site), ["deployments"], "what is held is listed");
    site.applier.remove(&front());
    site.settle();
    assert!(!site.has(&applied("web")) && !site.has(&web()));
}

#[test]
fn an_object_that_was_made_anew_is_not_taken_away() {
    let mut site = site(&[shop(), config("a"), deployment("v1")], json!({}));
    site.settle();
    site.edit(&settings(), |raw| {
        raw["metadata"]["uid"] = json!("another");
        raw["metadata"]["ownerReferences"] = json!([]);
    });
    drop_config(&mut site);
    site.settle();
    assert!(site.has(&settings()));
}

#[test]
fn a_work_that_is_missing_on_the_hub_is_evicted_after_a_while() {
    let mut site = site(&[shop(), config("a")], json!({}));
    site.settle();
    let kept = site.get(&web()).clone();
    site.applier.remove(&web());
    site.settle();
    let start = |site: &Site| site.get(&applied("web")).status().get("evictionStartTime").cloned();
    assert_eq!(start(&site), Some(json!(NOW)));
    let due = site.step(&applied("web")).wake_at.unwrap();
    assert_eq!(due, site.applier.now() + SignedDuration::from_mins(60));
    site.applier.insert(kept);
    site.settle();
    assert_eq!(start(&site), None, "it has returned");
    site.applier.remove(&web());
    site.settle();
    site.applier.advance_to(due - SignedDuration::from_secs(1));
    site.settle();
    assert!(site.has(&settings()));
    site.applier.advance_to(due);
    site.settle();
    assert!(!site.has(&settings()) && !site.has(&applied("web")));
}

#[test]
fn only_works_of_this_agent_are_evicted_and_those_of_its_former_hub() {
    let mut site = site(&[shop(), config("a")], json!({}));
    site.settle();
    let never = Options { eviction_grace_period: SignedDuration::from_hours(876_000), ..options() };
    let stranger = Options { agent_id: "another".into(), ..Options::new(EU, "https://new-hub") };
    let moved = Options { hub_hash: hub_hash("https://new-hub").into(), ..options() };
    let starts = |site: &mut Site, options: Options, is_on_hub: bool| {
        let mut copy = Site::of_agent(site.world().iter().cloned().collect(), options.clone());
        copy.agents = vec![OcmAgent::new(options)];
        if !is_on_hub {
            copy.applier.remove(&web());
        }
        copy.settle();
        copy.get(&applied("web")).status().get("evictionStartTime").is_some()
    };
    assert!(!starts(&mut site, options(), true));
    assert!(starts(&mut site, options(), false));
    assert!(!starts(&mut site, never, false), "a hundred years are for ever");
    assert!(!starts(&mut site, stranger, false), "another agent's");
    assert!(starts(&mut site, moved, true), "the agent has moved to another hub");
    assert_eq!(hub_hash(HUB), options().agent_id);
}
