//! Skyhook scenarios, told as people know them: interrupts that are merged, versions that
//! change, config that changes, Skyhooks that wait for each other. What is asserted is what
//! stands on the objects in the end, and what was seen on the way.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

use convoy_api::kinds::CONFIG_MAP;
use convoy_api::kinds::NODE;
use convoy_api::kinds::POD;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::{Applier, settle};
use convoy_plan::{HoldReason, Plan, World};
use convoy_testkit::{Builder, NOW, node, object};
use serde_json::{Value, json};

#[path = "skyhook/kubelet.rs"]
mod kubelet;

use kubelet::Kubelets;

const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");

fn skyhook(name: &str, spec: Value) -> Builder {
    object("skyhook.nvidia.com/v1alpha1", "Skyhook", name).spec(spec)
}

fn applier(objects: Vec<Builder>) -> Applier {
    let world: World = objects.into_iter().map(Builder::build).collect();
    Applier::new(world, NOW.parse().unwrap())
}

fn at(kind: &GroupKind, name: &str) -> ObjectKey {
    kind.key("", name)
}

/// Runs until nothing happens any more, and lists every pod that was made on the way, by its
/// package and stage.
fn run(applier: &mut Applier) -> (Plan, Vec<String>) {
    let kubelets = Kubelets::new(1, u64::MAX, false);
    let mut made = Vec::new();
    let settled = settle(applier, 100, |applier| {
        for pod in applier.world().of(&POD) {
            let Some(tag) = pod.annotation("skyhook.nvidia.com/package") else { continue };
            let tag: Value = serde_json::from_str(tag).unwrap();
            let text = |field: &str| tag[field].as_str().unwrap_or_default().to_owned();
            let step = format!("{}:{} {}", text("name"), text("version"), text("stage"));
            if made.last() != Some(&step) && !made.contains(&step) {
                made.push(step);
            }
        }
        kubelets.act(applier)
    })
    .unwrap();
    assert_eq!(settled.history.findings(), []);
    assert!(!kubelets.has_failed_for_good());
    (settled.plan, made)
}

fn state(applier: &Applier, node: &str, skyhook: &str) -> String {
    let key = format!("skyhook.nvidia.com/nodeState_{skyhook}");
    let text = object_of(applier, &NODE, node).annotation(&key).unwrap_or("{}").to_owned();
    let state: Value = serde_json::from_str(&text).unwrap();
    let entries = state.as_object().unwrap().iter().map(|(unique, entry)| {
        format!(
            "{unique} {} {}",
            entry["stage"].as_str().unwrap(),
            entry["state"].as_str().unwrap()
        )
    });
    entries.collect::<Vec<_>>().join(", ")
}

fn word(applier: &Applier, node: &str, skyhook: &str) -> String {
    let key = format!("skyhook.nvidia.com/status_{skyhook}");
    let node = object_of(applier, &NODE, node);
    assert_eq!(node.annotation(&key), node.label(&key), "annotation and label agree");
    node.annotation(&key).unwrap_or("absent").to_owned()
}

fn object_of<'a>(applier: &'a Applier, kind: &GroupKind, name: &str) -> &'a Object {
    applier.world().get(&at(kind, name)).unwrap()
}

#[test]
fn interrupts_of_several_packages_are_run_once() {
    let packages = json!({
        "dax": {"version": "1.0.0", "image": "x",
            "interrupt": {"type": "service", "services": ["foobar", "containerd"]}},
        "zeb": {"version": "1.0.0", "image": "x",
            "interrupt": {"type": "service", "services": ["cron"]}},
        "jason": {"version": "1.0.0", "image": "x"},
    });
    let mut applier = applier(vec![node("n1"), skyhook("s", json!({"packages": packages}))]);
    let (_, made) = run(&mut applier);
    let interrupts: Vec<&String> =
        made.iter().filter(|step| step.ends_with(" interrupt")).collect();
    assert_eq!(interrupts, ["dax:1.0.0 interrupt"]);
    assert_eq!(
        state(&applier, "n1", "s"),
        "dax|1.0.0 post-interrupt complete, jason|1.0.0 config complete, \
         zeb|1.0.0 post-interrupt complete"
    );
    let node = object_of(&applier, &NODE, "n1");
    assert_ne!(node.spec().get("unschedulable"), Some(&json!(true)));
    assert_eq!(node.condition_status("skyhook.nvidia.com/s/NotReady"), Some("False"));
    assert_eq!(applier.world().of(&POD).count(), 0);
}

#[test]
fn a_protected_pod_is_waited_for_and_others_are_evicted() {
    let spec = json!({
        "podNonInterruptLabels": {"matchLabels": {"job": "training"}},
        "packages": {"dexter": {"version": "1.0.0", "image": "x", "interrupt": {"type": "reboot"}},
            "jason": {"version": "1.0.0", "image": "x"}},
    });
    let pod = |name: &str| {
        object("v1", "Pod", name)
            .namespace("web")
            .spec(json!({"nodeName": "n1"}))
            .status(json!({"phase": "Running"}))
    };
    let protected = pod("training").label("job", "training");
    let mut applier = applier(vec![node("n1"), pod("plain"), protected, skyhook("s", spec)]);
    let (plan, _) = run(&mut applier);
    let hold = plan.steps[0].holds.iter().find(|hold| hold.member.is_some()).unwrap();
    assert_eq!(hold.reason, HoldReason::PodProtected { pod: "web/training".to_owned() });
    assert_eq!(state(&applier, "n1", "s"), "jason|1.0.0 config complete");
    assert!(applier.world().find(&POD, "web", "plain").is_some(), "nothing is evicted yet");
    assert_eq!(object_of(&applier, &NODE, "n1").spec()["unschedulable"], true);

    applier.remove(&POD.key("web", "training"));
    run(&mut applier);
    assert!(applier.world().find(&POD, "web", "plain").is_none());
    assert_eq!(word(&applier, "n1", "s"), "complete");
}

#[test]
fn versions_go_up_down_and_away() {
    let packages = |dogs: &str, nullptr: &str| json!({"dogs": {"version": dogs, "image": "d"}, "nullptr": {"version": nullptr, "image": "n"}});
    let mut first = packages("1.2.6", "2.0.0");
    first["cats"] = json!({"version": "1.0.0", "image": "c"});
    let mut applier = applier(vec![node("n1"), skyhook("s", json!({"packages": first}))]);
    run(&mut applier);
    applier.edit(&at(&SKYHOOK, "s"), |raw| raw["spec"]["packages"] = packages("1.2.5", "2.0.1"));
    let (_, made) = run(&mut applier);
    for step in [
        "cats:1.0.0 uninstall",
        "dogs:1.2.6 uninstall",
        "dogs:1.2.5 apply",
        "nullptr:2.0.1 upgrade",
    ] {
        assert!(made.contains(&step.to_owned()), "{step} in {made:?}");
    }
    assert!(!made.contains(&"nullptr:2.0.1 apply".to_owned()));
    let wanted = "dogs|1.2.5 config complete, nullptr|2.0.1 config complete";
    assert_eq!(state(&applier, "n1", "s"), wanted);

    applier.edit(&at(&SKYHOOK, "s"), |raw| raw["spec"]["packages"] = json!({}));
    run(&mut applier);
    let status = object_of(&applier, &SKYHOOK, "s").status();
    assert_eq!((&status["status"], &status["packageList"]), (&json!("complete"), &json!("")));
    let key = "skyhook.nvidia.com/nodeState_s";
    assert_eq!(object_of(&applier, &NODE, "n1").annotation(key), Some("{}"));
}

#[test]
fn nodes_that_were_complete_take_slots_like_any_other() {
    let packages = |version: &str| json!({"pa": {"version": version, "image": "x"}});
    let nodes = ["n1", "n2", "n3", "n4", "n5"].map(node).to_vec();
    let spec = json!({"interruptionBudget": {"count": 2}, "packages": packages("1.0.0")});
    let mut applier = applier([nodes, vec![skyhook("s", spec)]].concat());
    run(&mut applier);
    let kubelets = Kubelets::new(1, u64::MAX, false);
    for version in ["1.0.1", "1.0.0"] {
        applier.edit(&at(&SKYHOOK, "s"), |raw| raw["spec"]["packages"] = packages(version));
        let mut most = 0;
        settle(&mut applier, 100, |applier| {
            let going: Vec<String> = applier
                .world()
                .of(&NODE)
                .filter(|node| word(applier, node.name(), "s") == "in_progress")
                .map(|node| node.name().to_string())
                .collect();
            for pod in applier.world().of(&POD) {
                let node = pod.spec()["nodeName"].as_str().unwrap();
                assert!(going.iter().any(|name| name == node), "{node} is not in {going:?}");
            }
            most = most.max(going.len());
            kubelets.act(applier)
        })
        .unwrap();
        assert_eq!(most, 2, "{version}");
        assert_eq!(word(&applier, "n5", "s"), "complete");
    }
}

#[test]
fn changed_config_is_configured_again_and_interrupts_by_its_keys() {
    let package = |quiet: &str, loud: &str| {
        json!({"pa": {"version": "1.0.0", "image": "x",
            "configMap": {"quiet.txt": quiet, "loud.properties": loud},
            "configInterrupts": {"*.properties": {"type": "service", "services": ["cron"]}}}})
    };
    let nodes = vec![node("n1"), node("n2"), node("n3")];
    let spec = json!({"interruptionBudget": {"count": 1}, "packages": package("1", "1")});
    let mut applier = applier([nodes, vec![skyhook("s", spec)]].concat());
    run(&mut applier);
    assert_eq!(state(&applier, "n2", "s"), "pa|1.0.0 config complete");

    applier.edit(&at(&SKYHOOK, "s"), |raw| raw["spec"]["packages"] = package("2", "1"));
    let (_, made) = run(&mut applier);
    assert_eq!(made, ["pa:1.0.0 config"]);
    assert_eq!(state(&applier, "n2", "s"), "pa|1.0.0 config complete");

    applier.edit(&at(&SKYHOOK, "s"), |raw| raw["spec"]["packages"] = package("2", "2"));
    let (_, made) = run(&mut applier);
    assert_eq!(made, ["pa:1.0.0 config", "pa:1.0.0 interrupt", "pa:1.0.0 post-interrupt"]);
    assert_eq!(state(&applier, "n2", "s"), "pa|1.0.0 post-interrupt complete");
    let status = object_of(&applier, &SKYHOOK, "s").status();
    assert_eq!(status["configUpdates"], json!({"pa": ["loud.properties"]}));
    let map = applier.world().find(&CONFIG_MAP, "skyhook", "s-pa-1.0.0").unwrap();
    assert_eq!(map.raw()["data"]["loud.properties"], "2");
}

#[test]
fn skyhooks_take_turns_by_priority_and_pause_holds_back() {
    let spec = |priority: i64| json!({"priority": priority, "packages": {"pa": {"version": "1.0.0", "image": "x"}}});
    let mut applier = applier(vec![
        node("n1"),
        skyhook("zzz", spec(1)),
        skyhook("b", spec(2)).annotation("skyhook.nvidia.com/pause", "true"),
        skyhook("c", spec(2)),
        skyhook("d", spec(2)).annotation("skyhook.nvidia.com/disable", "true"),
    ]);
    run(&mut applier);
    let words = |applier: &Applier| ["zzz", "b", "c", "d"].map(|name| word(applier, "n1", name));
    assert_eq!(words(&applier), ["complete", "paused", "waiting", "disabled"]);
    applier.edit(&at(&SKYHOOK, "b"), |raw| raw["metadata"]["annotations"] = json!({}));
    run(&mut applier);
    assert_eq!(words(&applier), ["complete", "complete", "complete", "disabled"]);
}

#[test]
fn the_runtime_taint_goes_when_every_required_skyhook_is_complete() {
    let spec = json!({"runtimeRequired": true, "autoTaintNewNodes": true,
        "packages": {"pa": {"version": "1.0.0", "image": "x"}}});
    let taint = |name: &str| json!([{"key": name, "effect": "NoSchedule"}]);
    let mut applier = applier(vec![
        node("n1"),
        node("n2").with("/spec/taints", taint("blocking")),
        skyhook("s", spec),
    ]);
    let first = convoy_plan::plan(applier.world(), applier.now());
    applier.apply(&first.steps[0]).unwrap();
    let keys = |applier: &Applier, name: &str| -> Vec<String> {
        let taints = object_of(applier, &NODE, name).spec()["taints"].as_array().cloned();
        let taints = taints.unwrap_or_default();
        taints.iter().map(|taint| taint["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&applier, "n1"), ["skyhook.nvidia.com"]);
    run(&mut applier);
    assert_eq!(keys(&applier, "n1"), [""; 0]);
    assert_eq!(keys(&applier, "n2"), ["blocking", "skyhook.nvidia.com"]);
    assert_eq!(word(&applier, "n2", "s"), "blocked");
    let skyhook = object_of(&applier, &SKYHOOK, "s");
    let kind = "skyhook.nvidia.com/TaintNotTolerable";
    assert_eq!(
        skyhook.condition(kind).unwrap()["message"],
        "Node [n2] has taints that are not tolerable. Skipping."
    );
}

#[test]
fn a_cordon_stays_while_another_skyhook_holds_it() {
    let spec = json!({"packages": {"pa": {"version": "1.0.0", "image": "x",
        "interrupt": {"type": "reboot"}}}});
    let cordoned = node("n1")
        .annotation("skyhook.nvidia.com/cordon_other", "true")
        .with("/spec/unschedulable", json!(true));
    let mut applier = applier(vec![cordoned, skyhook("s", spec)]);
    run(&mut applier);
    let node = object_of(&applier, &NODE, "n1");
    assert_eq!(word(&applier, "n1", "s"), "complete");
    assert_eq!(node.spec()["unschedulable"], true);
    assert_eq!(node.annotation("skyhook.nvidia.com/cordon_s"), None);
}

/// Between the change and the nodes that hear of it, nobody may read that it is done.
#[test]
fn a_config_change_is_not_complete_before_nodes_know_of_it() {
    let spec = |text: &str| {
        json!({"packages": {"pa": {"version": "1.0.0", "image": "x",
            "configMap": {"a.conf": text}}}})
    };
    let mut applier = applier(vec![node("n1"), skyhook("tune", spec("old"))]);
    run(&mut applier);
    let observed = |applier: &Applier| {
        object_of(applier, &SKYHOOK, "tune").status()["observedGeneration"].as_i64()
    };
    applier.edit(&at(&SKYHOOK, "tune"), |raw| {
        raw["spec"] = spec("new");
        raw["metadata"]["generation"] = json!(2);
    });
    let plan = convoy_plan::plan(applier.world(), applier.now());
    applier.apply(&plan.steps[0]).unwrap();
    assert_eq!(plan.steps[0].verdict, convoy_plan::Verdict::Moving);
    assert_ne!(observed(&applier), Some(2));
    run(&mut applier);
    assert_eq!(observed(&applier), Some(2));
}
