//! A Deployment from its creation on: images, pausing, restarting, all at once.

use super::{condition, create, finish, images, in_both_homes, items, only, set_image, uids};
use crate::access::Access;

in_both_homes! {
    creating_gives_pods,
    a_new_image_replaces_every_pod,
    pausing_holds_a_change_back,
    restarting_replaces_every_pod,
    recreating_ends_the_old_before_the_new,
}

fn creating_gives_pods(site: &Access) {
    create(site, 3);
    only(site, 3, "1");
    let deployment = site.get("deployment web");
    assert_eq!(condition(&deployment, "Available"), "True/MinimumReplicasAvailable");
    assert_eq!(condition(&deployment, "Progressing"), "True/NewReplicaSetAvailable");
    let shown = site.kubectl("get deployment web --no-headers");
    assert_eq!(shown.split_whitespace().take(4).collect::<Vec<_>>(), ["web", "3/3", "3", "3"]);
    let set = &site.get("replicasets -l app=web")["items"][0];
    assert_eq!(set["metadata"]["ownerReferences"][0]["uid"], deployment["metadata"]["uid"]);
    let described = site.kubectl("describe deployment web");
    assert!(described.contains("ScalingReplicaSet"), "{described}");
}

fn a_new_image_replaces_every_pod(site: &Access) {
    create(site, 3);
    set_image(site, "2");
    finish(site);
    only(site, 3, "2");
    assert_eq!(super::sizes(&site.get("replicasets")), [0, 3]);
    assert_eq!(super::revisions(site), [1, 2]);
}

fn pausing_holds_a_change_back(site: &Access) {
    create(site, 2);
    site.kubectl("rollout pause deployment web");
    set_image(site, "2");
    site.kubectl("set resources deployment web --requests=cpu=10m");
    // Sizes change all the same.
    site.kubectl("scale deployment web --replicas=3");
    let paused = site.until("deployment web", |web| {
        web["status"]["observedGeneration"] == web["metadata"]["generation"]
            && web["status"]["availableReplicas"] == 3
    });
    assert_eq!(condition(&paused, "Progressing"), "Unknown/DeploymentPaused");
    assert_eq!(images(site), ["example/web:1"; 3]);
    assert_eq!(items(&site.get("replicasets")).count(), 1);
    site.kubectl("rollout resume deployment web");
    finish(site);
    only(site, 3, "2");
    // Both changes are one revision.
    assert_eq!(super::revisions(site), [1, 2]);
}

fn restarting_replaces_every_pod(site: &Access) {
    create(site, 3);
    let before = uids(site, "pods -l app=web");
    site.kubectl("rollout restart deployment web");
    finish(site);
    only(site, 3, "1");
    let after = uids(site, "pods -l app=web");
    assert!(after.iter().all(|uid| !before.contains(uid)), "{before:?} {after:?}");
}

fn recreating_ends_the_old_before_the_new(site: &Access) {
    create(site, 3);
    let patch = r#"{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}"#;
    site.kubectl(&format!("patch deployment web -p {patch}"));
    set_image(site, "2");
    // At no look are pods of both kinds alive.
    site.until("pods -l app=web", |pods| {
        let image = |tag: &str| {
            let all = items(pods).filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
            all.filter(|pod| pod["spec"]["containers"][0]["image"] == tag).count()
        };
        let (old, new) = (image("example/web:1"), image("example/web:2"));
        assert!(old == 0 || new == 0, "{old} old and {new} new pods");
        new == 3
    });
    finish(site);
}
