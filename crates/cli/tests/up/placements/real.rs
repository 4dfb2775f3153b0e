//! The rollouts of the examples with a hub and members that are real Kubernetes, under exactly the
//! accounts of `deploy/`.

use serde_json::json;

use super::site::{clusters, on_cluster, pick, placed, real, rolling};

#[test]
fn a_bad_image_is_contained_and_a_move_keeps_one_available() {
    let site = real().site("real-shop");
    site.deploy();
    let one = json!({"maxUnavailable": 1, "maxSurge": 1});
    let all = json!({"placementType": "PickAll"});
    site.place(&all, &rolling(&one));
    assert_eq!(clusters(&site.finished(0)), ["far-1", "far-2"]);
    let record = site.record();
    site.set_image("bad");
    site.until(|placement| {
        on_cluster(placement, "far-1", "Available") == "False/NotAllWorkAreAvailable"
            && on_cluster(placement, "far-2", "RolloutStarted") == "False/RolloutNotStartedYet"
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    for moment in record.moments() {
        assert!(moment.at(1).len() <= 1 && !moment.available().is_empty(), "{moment:?}");
    }
    assert_eq!(site.image("far-2").unwrap(), "example/web:1");
    site.set_image("2");
    let placement = site.finished(2);
    assert_eq!(placed(&placement, "Available"), "True/ResourceAvailable");
    assert!(record.moments().iter().all(|moment| !moment.available().is_empty()));

    // A placement that moves from the one to the other, and may never be missing.
    let site = real().site("real-move");
    site.deploy();
    let none_missing = json!({"maxUnavailable": 0, "maxSurge": 1});
    site.place(&pick(1, "name", "far-1"), &rolling(&none_missing));
    assert_eq!(clusters(&site.finished(0)), ["far-1"]);
    let record = site.record();
    site.patch_placement(&json!({"policy": pick(1, "name", "far-2")}));
    record.finally("the end", |now| now.available() == ["far-2"] && now.all() == ["far-2"]);
    for moment in record.moments() {
        assert!(!moment.available().is_empty(), "{moment:?}");
        assert!(moment.leaving().is_empty() || moment.available() == ["far-2"], "{moment:?}");
    }
    let gone = format!("wait --for=delete namespace/{} --timeout=120s", site.name);
    site.members["far-1"].kubectl(&gone);
    assert_eq!(site.image("far-2").unwrap(), "example/web:1");
}
