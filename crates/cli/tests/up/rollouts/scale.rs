//! Changes of size, alone and in the middle of a rollout.

use super::{create, finish, in_both_homes, only, set_image, sizes};
use crate::access::Access;

in_both_homes! {
    scaling_goes_up_and_down,
    a_rollout_that_is_scaled_and_changed_again_ends_well,
    scaling_a_stuck_rollout_keeps_the_proportions,
}

fn scaling_goes_up_and_down(site: &Access) {
    create(site, 2);
    for replicas in [5, 0, 1] {
        site.kubectl(&format!("scale deployment web --replicas={replicas}"));
        only(site, replicas, "1");
        finish(site);
    }
}

fn a_rollout_that_is_scaled_and_changed_again_ends_well(site: &Access) {
    create(site, 4);
    set_image(site, "stuck");
    site.until("replicasets", |sets| sizes(sets) == [2, 3]);
    site.kubectl("scale deployment web --replicas=8");
    site.until("deployment web", |web| web["status"]["replicas"] == 10);
    set_image(site, "3");
    finish(site);
    only(site, 8, "3");
    assert_eq!(sizes(&site.get("replicasets")), [0, 0, 8]);
}

fn scaling_a_stuck_rollout_keeps_the_proportions(site: &Access) {
    create(site, 10);
    let bounds = r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":3,"maxUnavailable":2}}}}"#;
    site.kubectl(&format!("patch deployment web -p {bounds}"));
    set_image(site, "stuck");
    // Two may be missing of ten, three in surplus.
    site.until("replicasets", |sets| sizes(sets) == [5, 8]);
    site.kubectl("scale deployment web --replicas=15");
    site.until("deployment web", |web| {
        web["status"]["replicas"] == 18 && web["status"]["availableReplicas"] == 11
    });
    assert_eq!(sizes(&site.get("replicasets")), [7, 11]);
    set_image(site, "3");
    finish(site);
    only(site, 15, "3");
}
