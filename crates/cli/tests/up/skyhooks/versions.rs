//! Versions that come and go: upgrades, downgrades, packages that are no longer asked for.

use serde_json::{Value, json};

use super::site::{APPLY, Site, embedded};
use super::words::{
    AT_WORK, COMPLETE, annotation, is_cordoned, package, package_with, says, state, steps, word,
};

fn config_of(site: &Site, name: &str) -> Value {
    let found =
        site.access.kubectl(&format!("get configmap {name} -n skyhook --ignore-not-found -o json"));
    serde_json::from_str::<Value>(&found).unwrap_or_default()["data"].take()
}

fn packages(dogs: &str, nullptr: &str, text: &str) -> Value {
    let config = json!({"game.conf": text});
    let service = json!({"type": "service", "services": ["cron", "containerd"]});
    json!({
        "dogs": package_with(dogs, json!({"interrupt": {"type": "reboot"}, "configMap": config})),
        "nullptr": package_with(nullptr, json!({"interrupt": service, "configMap": config})),
    })
}

#[test]
fn versions_go_up_down_and_away() {
    let site = embedded().site("versions", 1);
    install(&site);
    change(&site);
    remove(&site);
}

fn install(site: &Site) {
    let mut first = packages("1.2.6", "2.0.0", "lives=3\n");
    first["cats"] = package("6.2.0");
    site.hold(0..1, APPLY);
    site.apply("Skyhook", "versions", &site.spec(&first));
    let begun = [
        "cats 6.2.0 apply in_progress",
        "dogs 1.2.6 apply in_progress",
        "nullptr 2.0.0 apply in_progress",
    ];
    site.node_until(0, |node| {
        annotation(node, "nodeState", "versions") == state(&begun)
            && is_cordoned(node)
            && says(node, "versions", AT_WORK)
    });
    site.let_go(0..1);
    let status = site.wait("versions", "complete");
    assert_eq!(
        (&status["completeNodes"], &status["packageList"]),
        (&json!("1/1"), &json!("cats:6.2.0,dogs:1.2.6,nullptr:2.0.0"))
    );
    let done = [
        "cats 6.2.0 config complete",
        "dogs 1.2.6 post-interrupt complete",
        "nullptr 2.0.0 post-interrupt complete",
    ];
    assert_eq!(annotation(&site.node(0), "nodeState", "versions"), state(&done));
    assert_eq!(config_of(site, "versions-dogs-1.2.6"), json!({"game.conf": "lives=3\n"}));
}

/// One goes down, one up, one away.
fn change(site: &Site) {
    site.hold(0..1, "{package: {stage: u*}}");
    let pods = site.record_pods("versions");
    let changed = packages("1.2.5", "2.0.1", "changed\n");
    site.apply("Skyhook", "versions", &site.spec(&changed));
    let between = [
        "cats 6.2.0 uninstall in_progress",
        "dogs 1.2.5 uninstall skipped",
        "dogs 1.2.6 uninstall in_progress",
        "nullptr 2.0.0 post-interrupt complete",
        "nullptr 2.0.1 upgrade in_progress",
    ];
    site.node_until(0, |node| {
        annotation(node, "nodeState", "versions") == state(&between)
            && is_cordoned(node)
            && says(node, "versions", AT_WORK)
    });
    for (package, stage) in [("cats", "uninstall"), ("dogs", "uninstall"), ("nullptr", "upgrade")] {
        let pod = pods.pod(package, stage);
        let expected = [
            format!("{package}-init"),
            format!("{package}-{stage} {stage} /root"),
            format!("{package}-{stage}check {stage}-check /root"),
        ];
        assert_eq!(steps(&pod), expected);
    }
    site.let_go(0..1);
    let status = site.wait("versions", "complete");
    assert_eq!(
        (&status["completeNodes"], &status["packageList"]),
        (&json!("1/1"), &json!("dogs:1.2.5,nullptr:2.0.1"))
    );
    let node = site.node_until(0, |node| says(node, "versions", COMPLETE));
    let done = ["dogs 1.2.5 post-interrupt complete", "nullptr 2.0.1 post-interrupt complete"];
    assert_eq!(annotation(&node, "nodeState", "versions"), state(&done));
    for (name, expected) in [
        ("versions-dogs-1.2.5", json!({"game.conf": "changed\n"})),
        ("versions-nullptr-2.0.1", json!({"game.conf": "changed\n"})),
        ("versions-dogs-1.2.6", Value::Null),
    ] {
        assert_eq!(config_of(site, name), expected, "{name}");
    }
}

/// Nothing is asked for any more.
fn remove(site: &Site) {
    let (nodes, pods) = (site.record_nodes(), site.record_pods("versions"));
    site.patch("versions", &json!({"spec": {"packages": null}}));
    let status = site.wait("versions", "complete");
    let leaving = ["dogs 1.2.5 uninstall in_progress", "nullptr 2.0.1 uninstall in_progress"];
    let node = nodes
        .find("both leaving", |node| annotation(node, "nodeState", "versions") == state(&leaving));
    assert_eq!(word(&node, "versions"), "in_progress");
    assert_eq!(pods.sorted_stages(2), ["dogs uninstall", "nullptr uninstall"]);
    let node = site.node_until(0, |node| says(node, "versions", COMPLETE));
    assert_eq!(
        (annotation(&node, "nodeState", "versions"), word(&node, "versions")),
        ("{}", "complete")
    );
    assert_eq!((&status["packageList"], &status["completeNodes"]), (&json!(""), &json!("1/1")));
}
