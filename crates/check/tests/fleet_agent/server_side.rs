//! `applyStrategy.type: ServerSideApply`, and the client-side apply that falls back to it.

use convoy_plan::Write;
use convoy_plan::step::Verb;
use serde_json::{Value, json};

use super::manifests::{conditions, config, shop};
use super::world::Site;
use super::{existing, settings, site, told, web};

fn server_side(force: bool) -> Value {
    json!({"type": "ServerSideApply", "serverSideApplyConfig": {"force": force}})
}

fn mode(site: &Site) -> &Value {
    &site.get(&settings()).raw()["data"]["mode"]
}

/// The kinds of writes of the next step of the Work.
fn writes(site: &Site) -> Vec<&'static str> {
    let steps = site.steps();
    let step = steps.iter().find(|step| step.rollout == web()).expect("a step");
    let word = |write: &Write| match write {
        Write::Create { .. } => "create",
        Write::Patch { .. } => "patch",
        Write::Apply { force: false, .. } => "apply",
        Write::Apply { force: true, .. } => "forced apply",
        Write::Delete { .. } | Write::Evict { .. } => "delete",
    };
    step.actions.iter().map(|action| word(&action.write)).collect()
}

#[test]
fn the_server_applies_owns_and_removes() {
    let with_two = |data: Value| {
        let mut map = config("a");
        map["data"] = data;
        map
    };
    let mut site = site(&[shop(), with_two(json!({"mode": "a", "old": "x"}))], &server_side(false));
    site.round();
    assert_eq!(writes(&site), ["apply", "apply"]);
    site.settle();
    let live = site.get(&settings());
    assert_eq!(live.owners().count(), 1);
    assert_eq!(live.annotation("kubernetes-fleet.io/last-applied-configuration"), None);
    assert!(live.annotation("kubernetes-fleet.io/spec-hash").is_some());
    site.edit(&settings(), |raw| raw["data"]["theirs"] = json!("y"));
    site.settle();
    site.edit(&web(), |raw| {
        raw["spec"]["workload"]["manifests"][1] = with_two(json!({"mode": "b"}));
    });
    site.settle();
    assert_eq!(site.get(&settings()).raw()["data"], json!({"mode": "b", "theirs": "y"}));
    assert_eq!(told(&site, 1), ["Applied=True/Applied", "Available=True/Available"]);
}

#[test]
fn a_conflict_is_told_in_the_servers_words_and_force_takes_the_field() {
    for (force, after) in [(false, "theirs"), (true, "a")] {
        let mut site = site(&[shop(), config("a")], &server_side(force));
        site.settle();
        site.edit(&settings(), |raw| raw["data"]["mode"] = json!("theirs"));
        site.settle();
        assert_eq!(mode(&site), after, "force {force}");
        let entry = &site.get(&web()).status()["manifestConditions"][1];
        let reason =
            if force { "Applied=True/Applied" } else { "Applied=False/ManifestApplyFailed" };
        assert_eq!(conditions(entry)[0], reason);
        let message = entry["conditions"][0]["message"].as_str().unwrap_or_default();
        assert_eq!(message.contains("conflict with \"kubectl-edit\""), !force, "{message}");
        if force {
            continue;
        }
        assert!(site.complaints.iter().all(|told| told.contains(".data.mode")));
        // Somebody gives in: the next apply has no conflict.
        site.edit(&settings(), |raw| raw["data"]["mode"] = json!("a"));
        site.settle();
        assert_eq!(told(&site, 1)[0], "Applied=True/Applied");
    }
}

#[test]
fn an_object_that_was_there_is_taken_over_before_it_is_applied() {
    let mut site = site(&[shop(), config("a")], &server_side(true));
    site.applier.insert(existing(&config("b")));
    site.round();
    let steps = site.steps();
    let step = steps.iter().find(|step| step.rollout == web()).expect("a step");
    let verbs: Vec<Verb> = step.actions.iter().map(|action| action.verb).collect();
    assert_eq!(verbs, [Verb::Create, Verb::Adopt, Verb::Advance]);
    site.settle();
    assert_eq!((mode(&site), site.get(&settings()).owners().count()), (&json!("a"), 1));
}

#[test]
fn an_object_that_may_not_be_taken_over_is_created_by_no_apply() {
    let mut strategy = server_side(true);
    strategy["whenToTakeOver"] = json!("Never");
    let mut site = site(&[shop()], &strategy);
    site.round();
    assert_eq!(writes(&site), ["create"]);
    site.settle();
    assert_eq!(told(&site, 0)[0], "Applied=True/Applied");
}

#[test]
fn what_does_not_fit_into_an_annotation_is_applied_by_the_server() {
    let large = |mode: &str| {
        let mut map = config(mode);
        map["data"]["blob"] = json!("x".repeat(300_000));
        map
    };
    let last = "kubernetes-fleet.io/last-applied-configuration";
    let mut site = site(&[shop(), config("a")], &json!({}));
    site.settle();
    let work = web();
    let set = |site: &mut Site, map: Value| {
        site.edit(&work, |raw| raw["spec"]["workload"]["manifests"][1] = map);
        let first = writes(site);
        site.settle();
        first
    };
    assert_eq!(set(&mut site, large("b")), ["apply"]);
    assert_eq!(mode(&site), "b");
    assert_eq!(site.get(&settings()).annotation(last), Some(""));
    assert_eq!(set(&mut site, large("c")), ["apply"]);
    assert_eq!(mode(&site), "c");
    assert_eq!(set(&mut site, config("d")), ["patch"]);
    assert_eq!(mode(&site), "d");
    assert!(site.get(&settings()).annotation(last).is_some_and(|text| text.contains("mode")));
    assert_eq!(told(&site, 1)[0], "Applied=True/Applied");
}
