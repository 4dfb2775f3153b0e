//! Packages that do what they should: their pods, what a node says of them, and in which order
//! they run.

use serde_json::{Value, json};

use super::site::Site;
use super::site::embedded;
use super::words::{
    COMPLETE, IMAGE, annotation, node_state, owner, package, package_with, says, state, steps, tag,
    word,
};

const PIN: &str = "sha256:a9cc86f68d73e874bf2dfbabab5e8a8f710ad78411a03764d1b42aa1b5cda7dd";

fn config() -> Value {
    json!({"game.conf": "lives=3\nfoes=many\n", "look.conf": "good=purple\n"})
}

/// Two packages behind a third, which has a config and a tag that does not count.
fn trio() -> Value {
    let amounts = json!({"cpuRequest": "50m", "cpuLimit": "50m", "memoryRequest": "32Mi", "memoryLimit": "32Mi"});
    let pinned = json!({"dependsOn": {"base": "1.2.3"}, "containerSHA": PIN, "resources": amounts});
    json!({
        "base": {"version": "1.2.3", "image": format!("{IMAGE}:bogus"), "configMap": config()},
        "tools": package_with("3.2.3", json!({"dependsOn": {"base": "1.2.3"}})),
        "pinned": package_with("1.2", pinned),
    })
}

fn amounts(cpu: &str, memory: &str) -> Value {
    let amounts = json!({"cpu": cpu, "memory": memory});
    json!({"limits": amounts, "requests": amounts})
}

/// The ConfigMaps that packages and agents read.
fn configs(site: &Site, skyhook: &str, package: &str, node: &str) {
    let map = site.access.get(&format!("configmap {package} -n skyhook"));
    assert_eq!(map["metadata"]["labels"]["skyhook.nvidia.com/name"], skyhook);
    assert_eq!((owner(&map), &map["data"]), (format!("Skyhook {skyhook}"), &config()));
    let label = format!("skyhook.nvidia.com/skyhook-node-meta={skyhook}");
    let maps = site.access.get(&format!("configmaps -n skyhook -l {label}"));
    let map = &maps["items"][0];
    assert_eq!(
        (maps["items"].as_array().unwrap().len(), owner(map)),
        (1, format!("Skyhook {skyhook}"))
    );
    assert_eq!(map["metadata"]["annotations"]["skyhook.nvidia.com/Node.name"], node);
    let data = map["data"].as_object().unwrap();
    let text = |key: &str| data[key].as_str().unwrap();
    assert_eq!(data.len(), 3);
    let status = format!("skyhook.nvidia.com/status_{skyhook}");
    assert!(text("labels.json").contains("\"site\"") && text("labels.json").contains(&status));
    let state = format!("skyhook.nvidia.com/nodeState_{skyhook}");
    assert!(
        text("annotations.json").contains(&status) && text("annotations.json").contains(&state)
    );
    let packages: Value = serde_json::from_str(text("packages.json")).unwrap();
    assert_eq!(packages["packages"]["base"]["version"], "1.2.3");
    assert!(packages["agentVersion"].as_str().is_some_and(|version| !version.is_empty()));
}

#[test]
fn a_simple_skyhook() {
    let site = embedded().site("simple", 1);
    let pods = site.record_pods("simple");
    let mut spec = site.spec(&trio());
    spec["additionalTolerations"] = json!([{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]);
    site.apply("Skyhook", "simple", &spec);

    let pod = pods.pod("tools", "apply");
    assert_eq!(pod["metadata"]["labels"]["skyhook.nvidia.com/package"], "tools-3.2.3");
    assert_eq!(
        pod["metadata"]["annotations"]["skyhook.nvidia.com/package"],
        r#"{"name":"tools","version":"3.2.3","skyhook":"simple","stage":"apply","image":"example/pack"}"#
    );
    assert_eq!(owner(&pod), "Skyhook simple");
    assert_eq!(
        steps(&pod),
        ["tools-init", "tools-apply apply /root", "tools-applycheck apply-check /root"]
    );
    let containers = pod["spec"]["initContainers"].as_array().unwrap();
    assert_eq!(containers[0]["image"], "example/pack:3.2.3");
    assert!(containers[1..].iter().all(|step| step["args"].as_array().unwrap().len() == 3));
    assert!(containers.iter().all(|step| step["resources"] == amounts("500m", "256Mi")), "{pod:#}");
    let pod = pods.pod("pinned", "apply");
    assert_eq!(tag(&pod)["containerSHA"], PIN);
    let containers = pod["spec"]["initContainers"].as_array().unwrap();
    assert_eq!(containers[0]["image"], format!("example/pack@{PIN}"));
    assert!(containers.iter().all(|step| step["resources"] == amounts("50m", "32Mi")), "{pod:#}");

    let status = site.wait("simple", "complete");
    let node = site.node_until(0, |node| says(node, "simple", COMPLETE));
    assert_eq!(word(&node, "simple"), "complete");
    assert_eq!(node["metadata"]["labels"]["skyhook.nvidia.com/status_simple"], "complete");
    let entries =
        ["base 1.2.3 config complete", "pinned 1.2 config complete", "tools 3.2.3 config complete"];
    let pinned = format!(r#""image":"{IMAGE}","containerSHA":"{PIN}","#);
    let plain = format!(r#""image":"{IMAGE}","#);
    let (before, after) = state(&entries)
        .split_once(r#","tools|"#)
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let (first, second) = before.split_once(r#","pinned|"#).unwrap();
    let expected = format!("{first},\"pinned|{},\"tools|{after}", second.replace(&plain, &pinned));
    assert_eq!(annotation(&node, "nodeState", "simple"), expected);
    let name = &site.nodes[0];
    assert_eq!(status["nodeState"][name], node_state(&node, "simple"));
    assert_eq!(status["nodeStatus"], json!({name: "complete"}));
    assert_eq!((&status["completeNodes"], &status["nodesInProgress"]), (&json!("1/1"), &json!(0)));
    assert_eq!(status["packageList"], "base:1.2.3,pinned:1.2,tools:3.2.3");
    configs(&site, "simple", "simple-base-1.2.3", name);
    assert_eq!(&pods.stages(2)[..2], ["base apply", "base config"]);
}

#[test]
fn packages_are_added_to_a_complete_skyhook() {
    let site = embedded().site("update", 1);
    site.apply("Skyhook", "update", &site.spec(&trio()));
    site.wait("update", "complete");
    let pods = site.record_pods("update");
    let more = package_with("2.3.1-test", json!({"configMap": {"game.conf": "lives=5\n"}}));
    let packages = json!({"more": more, "even-more": package("2024.7.7-test")});
    site.patch("update", &json!({"spec": {"packages": packages}}));
    let status = site.wait("update", "complete");
    let node = site.node_until(0, |node| says(node, "update", COMPLETE));
    let state = node_state(&node, "update");
    let packages: Vec<&String> = state.as_object().unwrap().keys().collect();
    let five =
        ["base|1.2.3", "even-more|2024.7.7-test", "more|2.3.1-test", "pinned|1.2", "tools|3.2.3"];
    assert_eq!(packages, five);
    let done = |entry: &Value| entry["stage"] == "config" && entry["state"] == "complete";
    assert!(state.as_object().unwrap().values().all(done), "{state:#}");
    assert_eq!(status["nodeState"][&site.nodes[0]], state);
    assert_eq!(
        pods.sorted_stages(4),
        ["even-more apply", "even-more config", "more apply", "more config"]
    );
    let map = site.access.get("configmap update-more-2.3.1-test -n skyhook");
    assert_eq!(
        (owner(&map), &map["data"]["game.conf"]),
        ("Skyhook update".to_owned(), &json!("lives=5\n"))
    );
    let version = &site.skyhook("update")["metadata"]["annotations"]["skyhook.nvidia.com/version"];
    assert!(version.as_str().is_some_and(|version| version.len() >= 6), "{version}");
    assert!(annotation(&node, "version", "update").len() >= 6);
}

#[test]
fn a_package_waits_for_those_it_depends_on() {
    let site = embedded().site("depends", 1);
    site.hold(0..1, "{package: {name: bb-slow, stage: config}}");
    let nodes = site.record_nodes();
    let pods = site.record_pods("depends");
    let last = package_with("5.4.3", json!({"dependsOn": {"aa-fast": "1.2.3", "bb-slow": "1.2"}}));
    let packages = json!({"aa-fast": package("1.2.3"), "bb-slow": package("1.2"), "cc-last": last});
    site.apply("Skyhook", "depends", &site.spec(&packages));
    let half = ["aa-fast 1.2.3 config complete", "bb-slow 1.2 config in_progress"];
    site.node_until(0, |node| annotation(node, "nodeState", "depends") == state(&half));
    site.let_go(0..1);
    site.wait("depends", "complete");
    let begun =
        nodes.find("cc-last", |node| !node_state(node, "depends")["cc-last|5.4.3"].is_null());
    let begun = node_state(&begun, "depends");
    assert!(
        ["aa-fast|1.2.3", "bb-slow|1.2"].iter().all(|name| begun[name]["state"] == "complete"),
        "{begun:#}"
    );
    let run = pods.stages(6);
    let (first, last) = run.split_at(4);
    assert_eq!(last, ["cc-last apply", "cc-last config"]);
    assert!(
        ["aa-fast apply", "aa-fast config", "bb-slow apply", "bb-slow config"]
            .iter()
            .all(|stage| first.contains(&(*stage).to_owned())),
        "{run:?}"
    );
    let done = [
        "aa-fast 1.2.3 config complete",
        "bb-slow 1.2 config complete",
        "cc-last 5.4.3 config complete",
    ];
    assert_eq!(annotation(&site.node(0), "nodeState", "depends"), state(&done));
}
