//! Configs that change: when they are taken up, and whom they disturb.

use serde_json::{Value, json};

use super::site::{APPLY, Site, embedded};
use super::words::{
    AT_WORK, COMPLETE, annotation, is_cordoned, order, package_with, says, state, word,
};

fn service(services: &[&str]) -> Value {
    json!({"type": "service", "services": services})
}

/// One package that restarts a service, one that reboots the node, one that disturbs nobody; for
/// a change of their game both of the latter restart services.
fn packages() -> Value {
    let config = json!({"game.conf": "lives=3\n", "look.conf": "good=purple\n"});
    let dexter = json!({"interrupt": {"type": "reboot"}, "configMap": config,
        "configInterrupts": {"game.conf": service(&["rsyslog"])}});
    let baxter = json!({"configMap": config,
        "configInterrupts": {"game.conf": service(&["rsyslog", "cron"])}});
    json!({"spencer": package_with("3.2.3", json!({"interrupt": service(&["cron"])})),
        "dexter": package_with("1.2.3", dexter), "baxter": package_with("3.2.1", baxter)})
}

fn change(site: &Site, package: &str, key: &str, text: &str) {
    let config = json!({"packages": {package: {"configMap": {key: text}}}});
    site.patch("config", &json!({"spec": config}));
}

/// Waits until all is complete, and compares how each package ended.
fn ends(site: &Site, baxter: &str, dexter: &str) {
    let status = site.wait("config", "complete");
    let node = site.node_until(0, |node| says(node, "config", COMPLETE));
    let ended = [
        format!("baxter 3.2.1 {baxter} complete"),
        format!("dexter 1.2.3 {dexter} complete"),
        "spencer 3.2.3 post-interrupt complete".to_owned(),
    ];
    let ended: Vec<&str> = ended.iter().map(String::as_str).collect();
    assert_eq!(annotation(&node, "nodeState", "config"), state(&ended));
    assert_eq!(status["nodeStatus"], json!({&site.nodes[0]: "complete"}));
}

fn stored(site: &Site, package: &str, key: &str) -> String {
    let map = site.access.get(&format!("configmap config-{package} -n skyhook"));
    map["data"][key].as_str().unwrap().to_owned()
}

#[test]
fn changes_queue_merge_and_disturb_as_their_keys_say() {
    let site = embedded().site("config", 1);
    site.hold(0..1, APPLY);
    site.apply("Skyhook", "config", &site.spec(&packages()));
    let begun = [
        "baxter 3.2.1 apply in_progress",
        "dexter 1.2.3 apply in_progress",
        "spencer 3.2.3 apply in_progress",
    ];
    let node = site.node_until(0, |node| {
        annotation(node, "nodeState", "config") == state(&begun)
            && is_cordoned(node)
            && says(node, "config", AT_WORK)
    });
    assert_eq!(word(&node, "config"), "in_progress");
    let status = site.wait("config", "in_progress");
    assert_eq!(status["nodeStatus"], json!({&site.nodes[0]: "in_progress"}));

    // A change before all is complete waits, and then disturbs as its key says, although the
    // package itself never would.
    change(&site, "baxter", "game.conf", "changed\n");
    site.let_go(0..1);
    ends(&site, "post-interrupt", "post-interrupt");
    assert_eq!(stored(&site, "baxter-3.2.1", "game.conf"), "changed\n");

    // Two changes at once are one interrupt.
    let pods = site.record_pods("config");
    let both = json!({"dexter": {"configMap": {"game.conf": "changed\n"}},
        "baxter": {"configMap": {"game.conf": "changed again\n"}}});
    site.patch("config", &json!({"spec": {"packages": both}}));
    ends(&site, "post-interrupt", "post-interrupt");
    let interrupt = pods.pod("baxter", "interrupt");
    assert_eq!(
        order(&interrupt),
        json!({"type": "service_restart", "services": ["cron", "rsyslog"]})
    );
    let expected = [
        "baxter config",
        "baxter interrupt",
        "baxter post-interrupt",
        "dexter config",
        "dexter post-interrupt",
    ];
    assert_eq!(pods.sorted_stages(5), expected);
    assert_eq!(stored(&site, "dexter-1.2.3", "game.conf"), "changed\n");
    drop(pods);

    // A key that nobody cares about disturbs nobody, not even the package that reboots.
    let pods = site.record_pods("config");
    let both = json!({"dexter": {"configMap": {"look.conf": "changed\n"}},
        "baxter": {"configMap": {"look.conf": "changed\n"}}});
    site.patch("config", &json!({"spec": {"packages": both}}));
    ends(&site, "config", "config");
    assert_eq!(pods.sorted_stages(2), ["baxter config", "dexter config"]);
    drop(pods);

    // A pattern of keys does as well as a key.
    let pods = site.record_pods("config");
    let dexter = json!({"configInterrupts": {"game.conf": null, "*.conf": service(&["rsyslog"])},
        "configMap": {"game.conf": "changed by a pattern\n"}});
    site.patch("config", &json!({"spec": {"packages": {"dexter": dexter}}}));
    ends(&site, "config", "post-interrupt");
    assert_eq!(
        order(&pods.pod("dexter", "interrupt")),
        json!({"type": "service_restart", "services": ["rsyslog"]})
    );
    assert_eq!(stored(&site, "dexter-1.2.3", "game.conf"), "changed by a pattern\n");
}
