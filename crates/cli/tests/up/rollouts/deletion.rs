//! Deletion with each cascade, and what is left is found again.

use super::{create, finish, in_both_homes, items, set_image, uids};
use crate::access::Access;

in_both_homes! {
    deleting_in_the_background_leaves_nothing,
    deleting_in_the_foreground_waits_for_the_pods,
    what_is_orphaned_is_adopted_again,
}

fn deleting_in_the_background_leaves_nothing(site: &Access) {
    create(site, 3);
    set_image(site, "2");
    finish(site);
    site.kubectl("delete deployment web --cascade=background --timeout=120s");
    site.until("replicasets,pods", |list| items(list).count() == 0);
}

fn deleting_in_the_foreground_waits_for_the_pods(site: &Access) {
    create(site, 3);
    site.kubectl("delete deployment web --cascade=foreground --timeout=120s");
    assert_eq!(site.kubectl("get replicasets,pods -o name"), "");
}

fn what_is_orphaned_is_adopted_again(site: &Access) {
    create(site, 3);
    let before = uids(site, "pods -l app=web");
    let set = uids(site, "replicasets");
    site.kubectl("delete deployment web --cascade=orphan --timeout=120s");
    site.until("replicasets", |sets| {
        items(sets).all(|set| set["metadata"].get("ownerReferences").is_none())
    });
    assert_eq!(uids(site, "pods -l app=web"), before);

    create(site, 3);
    let web = site.get("deployment web");
    site.until("replicasets", |sets| {
        items(sets)
            .all(|set| set["metadata"]["ownerReferences"][0]["uid"] == web["metadata"]["uid"])
    });
    assert_eq!(uids(site, "replicasets"), set);
    assert_eq!(uids(site, "pods -l app=web"), before);
}
