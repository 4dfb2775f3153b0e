//! Going back, and what is kept to go back to.

use super::{create, finish, in_both_homes, items, only, revisions, set_image};
use crate::access::Access;

in_both_homes! {
    undoing_brings_the_last_template_back,
    undoing_reaches_any_revision,
    old_sets_are_kept_up_to_the_limit,
}

fn undoing_brings_the_last_template_back(site: &Access) {
    create(site, 3);
    set_image(site, "2");
    finish(site);
    site.kubectl("rollout undo deployment web");
    finish(site);
    only(site, 3, "1");
    assert_eq!(revisions(site), [2, 3]);
    assert_eq!(items(&site.get("replicasets")).count(), 2, "the old set serves again");
}

fn undoing_reaches_any_revision(site: &Access) {
    create(site, 2);
    for tag in ["2", "3"] {
        set_image(site, tag);
        finish(site);
    }
    let shown = site.kubectl("rollout history deployment web --revision=1");
    assert!(shown.contains("example/web:1"), "{shown}");
    site.kubectl("rollout undo deployment web --to-revision=1");
    finish(site);
    only(site, 2, "1");
    assert_eq!(revisions(site), [2, 3, 4]);
    let refused = site.refused("rollout undo deployment web --to-revision=1", "");
    assert!(refused.contains("unable to find specified revision 1"), "{refused}");
}

fn old_sets_are_kept_up_to_the_limit(site: &Access) {
    create(site, 1);
    site.kubectl(r#"patch deployment web -p {"spec":{"revisionHistoryLimit":1}}"#);
    for tag in ["2", "3", "4"] {
        set_image(site, tag);
        finish(site);
    }
    site.until("replicasets", |sets| items(sets).count() == 2);
    assert_eq!(revisions(site), [3, 4]);
}
