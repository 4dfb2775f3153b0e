//! The two examples of the safe rollout, step by step, and the notes beside them.

use std::time::Duration;

use serde_json::json;

use super::record::{Moment, condition, is_available};
use super::site::{
    Site, clusters, embedded, entry, has_selected, on_cluster, pick, placed, rolling,
};

/// Three of four clusters have the Deployment in its first version.
fn three_of_four(site: &Site) {
    site.deploy();
    let budget = json!({"maxUnavailable": 1, "maxSurge": 1});
    site.place(&pick(3, "env", "prod"), &rolling(&budget));
    let placement = site.finished(0);
    assert_eq!(clusters(&placement), ["member-2", "member-3", "member-4"]);
}

/// The placement tells of a release that stopped at its first cluster, and nothing else.
fn stopped_after_one(site: &Site, index: u32, first: &str, others: &[&str]) {
    let placement = site.until(|placement| {
        has_selected(placement, index)
            && on_cluster(placement, first, "Available").starts_with("False")
            && placed(placement, "RolloutStarted").starts_with("False")
    });
    assert_eq!(placed(&placement, "RolloutStarted"), "False/RolloutNotStartedYet");
    assert_eq!(placement["status"]["conditions"].as_array().unwrap().len(), 2, "{placement}");
    assert_eq!(on_cluster(&placement, first, "Available"), "False/NotAllWorkAreAvailable");
    let failed = &entry(&placement, first)["failedPlacements"];
    assert_eq!(failed.as_array().unwrap().len(), 1, "{failed}");
    assert_eq!(failed[0]["kind"], "Deployment");
    assert_eq!(failed[0]["condition"]["reason"], "ManifestNotAvailableYet");
    for other in others {
        let said = on_cluster(&placement, other, "RolloutStarted");
        assert_eq!(said, "False/RolloutNotStartedYet", "{other}");
        assert_eq!(entry(&placement, other)["conditions"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_bad_image_stops_after_one_cluster_and_its_fix_goes_first_where_it_failed() {
    let site = embedded().site("example-1");
    three_of_four(&site);
    let record = site.record();
    site.set_image("bad");
    stopped_after_one(&site, 1, "member-2", &["member-3", "member-4"]);
    std::thread::sleep(Duration::from_secs(2));
    // At no instant was a second cluster given the bad image, or a fourth cluster anything.
    for moment in record.moments() {
        assert!(moment.at(1).len() <= 1, "{:?}", moment.at(1));
        assert!(moment.available().len() >= 2, "{moment:?}");
        assert_eq!(moment.all(), ["member-2", "member-3", "member-4"], "surge is not for updates");
    }
    let tags = |wanted: &[(&str, &str)]| {
        let wanted = wanted.iter().map(|(member, tag)| ((*member).to_owned(), (*tag).to_owned()));
        assert_eq!(site.tags(), wanted.collect::<Vec<_>>());
    };
    tags(&[("member-2", "bad"), ("member-3", "1"), ("member-4", "1")]);

    // All clusters are wanted now: surge takes the fourth, and the update in place still stands.
    let all = json!({"placementType": "PickAll", "numberOfClusters": null, "affinity": null});
    site.patch_placement(&json!({"policy": all}));
    site.until_on("member-1", "deployment web", |web| !web.is_null());
    record.until("a binding of member-1", |now| now.bound().len() == 4);
    std::thread::sleep(Duration::from_secs(1));
    for moment in record.moments() {
        let kept = ["member-3", "member-4"];
        assert!(kept.iter().all(|cluster| moment.available().contains(cluster)), "{moment:?}");
    }
    tags(&[("member-1", "bad"), ("member-2", "bad"), ("member-3", "1"), ("member-4", "1")]);

    let record = site.record();
    site.set_image("2");
    let placement = site.finished(2);
    assert_eq!(placed(&placement, "Available"), "True/ResourceAvailable");
    tags(&MEMBERS_AT_2);
    fix_was_careful(&record.moments());
}

const MEMBERS_AT_2: [(&str, &str); 4] =
    [("member-1", "2"), ("member-2", "2"), ("member-3", "2"), ("member-4", "2")];

/// Those that failed are repaired first; from then on one of four may be missing.
fn fix_was_careful(moments: &[Moment]) {
    let mut recovered = false;
    for moment in moments {
        let available = moment.available().len();
        recovered |= available >= 3;
        assert!(available >= if recovered { 3 } else { 2 }, "{moment:?}");
        let working = ["member-3", "member-4"];
        let early = moment.at(2).iter().any(|cluster| working.contains(cluster));
        let failed = ["member-1", "member-2"];
        let repaired = failed.iter().all(|cluster| moment.of(cluster).is_some_and(is_available));
        let begun = failed.iter().all(|cluster| moment.at(2).contains(cluster));
        assert!(!early || repaired || begun, "{moment:?}");
    }
    assert!(recovered);
}

#[test]
fn a_move_surges_first_and_keeps_one_available() {
    let site = embedded().site("example-2");
    site.deploy();
    site.place(&pick(2, "loc", "west"), &rolling(&json!({"maxSurge": 2})));
    assert_eq!(clusters(&site.finished(0)), ["member-1", "member-2"]);
    let record = site.record();
    site.patch_placement(&json!({"policy": pick(2, "loc", "east")}));
    record.finally("the end", |now| {
        now.available() == ["member-3", "member-4"] && now.all().len() == 2
    });
    let placement = site.until(|placement| clusters(placement) == ["member-3", "member-4"]);
    assert!(placed(&placement, "Scheduled").starts_with("True"), "{placement}");
    let moments = record.moments();
    let east = ["member-3", "member-4"];
    for (before, moment) in moments.iter().zip(&moments[1..]) {
        assert!(!moment.available().is_empty(), "{moment:?}");
        assert!(moment.all().len() <= 4, "two wanted, two in surplus: {moment:?}");
        let left = moment.leaving().len() > before.leaving().len();
        if left {
            let both = east.iter().all(|cluster| moment.bound().contains(cluster));
            assert!(both, "the new ones come first: {moment:?}");
            assert!(!moment.available().is_empty(), "one stays: {moment:?}");
        }
    }
    // The second of the old ones goes only once a new one works.
    let last = moments.iter().find(|moment| moment.available().iter().all(|it| east.contains(it)));
    assert!(!last.unwrap().available().is_empty());
    for member in ["member-1", "member-2"] {
        site.until_on(member, "deployment web", serde_json::Value::is_null);
        let gone = format!("wait --for=delete namespace/{} --timeout=60s", site.name);
        site.members[member].kubectl(&gone);
    }
}

#[test]
fn an_update_in_place_reaches_a_cluster_whose_labels_no_longer_match() {
    let site = embedded().site("labels-change");
    site.hub.kubectl("label memberclusters member-1 member-2 tier=gold");
    site.deploy();
    site.place(&pick(2, "tier", "gold"), &rolling(&json!({"maxUnavailable": 1})));
    site.finished(0);
    let record = site.record();
    site.hub.kubectl("label membercluster member-1 tier=silver --overwrite");
    site.hub.kubectl("label membercluster member-3 tier=gold");
    site.set_image("2");
    let placement = site.finished(1);
    assert_eq!(clusters(&placement), ["member-1", "member-2"], "nothing is moved");
    let uids = |moment: &Moment| {
        let uid = |cluster| moment.of(cluster).unwrap()["metadata"]["uid"].to_string();
        ["member-1", "member-2"].map(uid)
    };
    let moments = record.moments();
    for moment in &moments {
        assert_eq!(moment.all(), ["member-1", "member-2"]);
        assert_eq!(uids(moment), uids(&moments[0]));
        assert!(!moment.available().is_empty(), "{moment:?}");
    }
    let last = moments.last().unwrap();
    for cluster in ["member-1", "member-2"] {
        let said = condition(last.of(cluster).unwrap(), "Available");
        assert_eq!(said, "True/AllWorkAreAvailable");
        assert_eq!(site.image(cluster).unwrap(), "example/web:2");
    }
}
