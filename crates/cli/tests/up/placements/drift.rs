//! Objects that were there before, and objects that others change: what is taken over, reverted,
//! left alone and reported.

use serde_json::{Value, json};

use super::site::{Site, embedded, entry, fixed, on_cluster, rolling};

const MEMBER: &str = "member-1";

/// Places the ConfigMap `settings` with `a: hub` on one member, applied in this way.
fn place(site: &Site, apply: &Value) {
    site.kubectl("create configmap settings --from-literal=a=hub");
    let mut strategy = rolling(&json!({}));
    strategy["applyStrategy"] = apply.clone();
    site.place(&fixed(&[MEMBER]), &strategy);
}

/// The same, where the ConfigMap is there before.
fn place_over(site: &Site, data: &str, apply: &Value) {
    site.members[MEMBER].kubectl(&format!("create namespace {}", site.name));
    let create = format!("create configmap settings -n {} {data}", site.name);
    site.members[MEMBER].kubectl(&create);
    place(site, apply);
}

fn data(site: &Site) -> Value {
    site.on(MEMBER, "configmap settings").unwrap_or_default()["data"].clone()
}

fn write(site: &Site, key: &str, value: &str) {
    let patch = json!({"data": {key: value}});
    site.members[MEMBER].kubectl(&format!("patch configmap settings -n {} -p {patch}", site.name));
}

/// The reason why the ConfigMap is not applied.
fn refusal(site: &Site) -> (String, Value) {
    let placement = site.until(|placement| {
        on_cluster(placement, MEMBER, "Applied") == "False/NotAllWorkHaveBeenApplied"
    });
    let entry = entry(&placement, MEMBER);
    let failed = entry["failedPlacements"].as_array().unwrap();
    let failed = failed.iter().find(|it| it["kind"] == "ConfigMap").unwrap();
    (failed["condition"]["reason"].as_str().unwrap().to_owned(), entry.clone())
}

/// The paths at which the ConfigMap differs, of `driftedPlacements` or `diffedPlacements`.
fn paths<'e>(entry: &'e Value, list: &str, details: &str) -> Vec<&'e str> {
    let found = entry[list].as_array().into_iter().flatten();
    let found = found.filter(|it| it["kind"] == "ConfigMap");
    let details = found.flat_map(|it| it[details].as_array().into_iter().flatten());
    details.filter_map(|it| it["path"].as_str()).collect()
}

#[test]
fn what_is_there_is_taken_over_and_overwritten() {
    let site = embedded().site("take-over");
    place_over(&site, "--from-literal=a=old --from-literal=b=kept", &json!({}));
    site.finished(0);
    assert_eq!(data(&site), json!({"a": "hub", "b": "kept"}));
    let owned = site.on(MEMBER, "configmap settings").unwrap();
    let owner = &owned["metadata"]["ownerReferences"][0];
    assert_eq!(owner["kind"], "AppliedWork");
    assert_eq!(owner["name"], format!("{}-work", site.name));
}

#[test]
fn what_differs_is_not_taken_over_if_that_is_asked_for() {
    let apply = json!({"whenToTakeOver": "IfNoDiff"});
    let site = embedded().site("take-over-same");
    place_over(&site, "--from-literal=a=hub --from-literal=b=unmanaged", &apply);
    site.finished(0);
    assert_eq!(data(&site), json!({"a": "hub", "b": "unmanaged"}), "only managed fields count");

    let site = embedded().site("take-over-differs");
    place_over(&site, "--from-literal=a=old", &apply);
    let (reason, entry) = refusal(&site);
    assert_eq!(reason, "FailedToTakeOver");
    assert_eq!(paths(&entry, "diffedPlacements", "observedDiffs"), ["/data/a"]);
    assert_eq!(data(&site), json!({"a": "old"}));

    let apply = json!({"whenToTakeOver": "IfNoDiff", "comparisonOption": "FullComparison"});
    let site = embedded().site("take-over-full");
    place_over(&site, "--from-literal=a=hub --from-literal=b=unmanaged", &apply);
    let (reason, entry) = refusal(&site);
    assert_eq!(reason, "FailedToTakeOver");
    assert!(paths(&entry, "diffedPlacements", "observedDiffs").contains(&"/data/b"), "{entry}");
    // Once it does not differ any more, it is taken over.
    write(&site, "b", "unmanaged");
    let patch = json!([{"op": "remove", "path": "/data/b"}]);
    site.members[MEMBER]
        .kubectl(&format!("patch configmap settings -n {} --type=json -p {patch}", site.name));
    site.finished(0);
}

#[test]
fn what_is_there_is_left_alone_if_that_is_asked_for() {
    let site = embedded().site("take-over-never");
    place_over(&site, "--from-literal=a=old", &json!({"whenToTakeOver": "Never"}));
    let (reason, _) = refusal(&site);
    assert_eq!(reason, "NotTakenOver");
    assert_eq!(data(&site), json!({"a": "old"}));
}

#[test]
fn drift_is_reverted_and_reported() {
    let site = embedded().site("drift-reverted");
    place(&site, &json!({"comparisonOption": "FullComparison"}));
    site.finished(0);
    write(&site, "a", "changed");
    site.until_on(MEMBER, "configmap settings", |it| it["data"]["a"] == "hub");
    // A field that the manifest does not have stays, and is told.
    write(&site, "b", "added");
    let placement = site.until(|placement| {
        let entry = entry(placement, MEMBER);
        paths(entry, "driftedPlacements", "observedDrifts").contains(&"/data/b")
    });
    assert!(on_cluster(&placement, MEMBER, "Applied").starts_with("True"));
    assert_eq!(data(&site), json!({"a": "hub", "b": "added"}));
}

#[test]
fn a_drifted_object_is_left_alone_until_it_is_reverted() {
    let site = embedded().site("drift-kept");
    place(&site, &json!({"whenToApply": "IfNotDrifted"}));
    site.finished(0);
    write(&site, "a", "changed");
    let (reason, entry) = refusal(&site);
    assert_eq!(reason, "FoundDrifts");
    assert_eq!(paths(&entry, "driftedPlacements", "observedDrifts"), ["/data/a"]);
    let drift = &entry["driftedPlacements"][0];
    assert_eq!(drift["observedDrifts"][0]["valueInMember"], "changed");
    assert_eq!(drift["observedDrifts"][0]["valueInHub"], "hub");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(data(&site), json!({"a": "changed"}));
    write(&site, "a", "hub");
    let placement = site.finished(0);
    assert!(super::site::entry(&placement, MEMBER)["driftedPlacements"].is_null());
}

#[test]
fn differences_are_only_reported_until_applying_is_asked_for() {
    let site = embedded().site("report-diff");
    place_over(&site, "--from-literal=a=old", &json!({"type": "ReportDiff"}));
    site.kubectl("create secret generic password --from-literal=word=hub");
    let placement = site.until(|placement| {
        on_cluster(placement, MEMBER, "DiffReported").starts_with("True")
            && placement["status"]["observedResourceIndex"] == "1"
    });
    let entry = entry(&placement, MEMBER);
    assert!(paths(entry, "diffedPlacements", "observedDiffs").contains(&"/data/a"), "{entry}");
    let mut missing = entry["diffedPlacements"].as_array().unwrap().iter();
    let missing = missing.find(|it| it["kind"] == "Secret").unwrap();
    assert_eq!(missing["observedDiffs"][0]["path"], "/");
    assert_eq!(missing["observedDiffs"][0]["valueInHub"], "(the whole object)");
    for absent in ["Applied", "Available"] {
        assert_eq!(on_cluster(&placement, MEMBER, absent), "");
    }
    assert_eq!(data(&site), json!({"a": "old"}));
    assert!(site.on(MEMBER, "secret password").is_none(), "nothing is written");
    let apply = json!({"strategy": {"applyStrategy": {"type": "ClientSideApply"}}});
    site.patch_placement(&apply);
    site.finished(1);
    assert_eq!(data(&site), json!({"a": "hub"}));
    site.on(MEMBER, "secret password").unwrap();
}

#[test]
fn other_owners_are_accepted_only_if_that_is_asked_for() {
    for (name, allowed) in [("co-owned", true), ("not-co-owned", false)] {
        let site = embedded().site(name);
        let member = &site.members[MEMBER];
        member.kubectl(&format!("create namespace {name}"));
        let keeper = format!("configmap keeper -n {name}");
        member.kubectl(&format!("create {keeper}"));
        let uid = member.get(&keeper)["metadata"]["uid"].clone();
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": uid});
        let owned = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "old"},
            "metadata": {"name": "settings", "namespace": name, "ownerReferences": [owner]}});
        member.kubectl_with("create -f -", &owned.to_string());
        place(&site, &json!({"allowCoOwnership": allowed}));
        if allowed {
            site.finished(0);
            assert_eq!(data(&site), json!({"a": "hub"}));
        } else {
            assert_eq!(refusal(&site).0, "FailedToTakeOver");
            assert_eq!(data(&site), json!({"a": "old"}));
        }
    }
}

#[test]
fn two_placements_do_not_share_an_object() {
    let site = embedded().site("placed-twice");
    place(&site, &json!({"allowCoOwnership": true}));
    site.finished(0);
    let mut strategy = rolling(&json!({}));
    strategy["applyStrategy"] = json!({"allowCoOwnership": true});
    let second = format!("{}-again", site.name);
    site.place_with(&second, &json!({"policy": fixed(&[MEMBER]), "strategy": strategy}));
    let placement = site.until_named(&second, |placement| {
        on_cluster(placement, MEMBER, "Applied") == "False/NotAllWorkHaveBeenApplied"
    });
    let failed = &entry(&placement, MEMBER)["failedPlacements"];
    let reasons = failed.as_array().unwrap().iter().map(|it| it["condition"]["reason"].clone());
    assert!(reasons.into_iter().all(|reason| reason == "FailedToTakeOver"), "{failed}");
    site.hub.kubectl(&format!("delete clusterresourceplacement {second} --timeout=60s"));
    site.finished(0);
    assert_eq!(data(&site), json!({"a": "hub"}), "it stays with the first");
}
