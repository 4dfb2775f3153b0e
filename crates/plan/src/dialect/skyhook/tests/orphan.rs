//! Package pods of Skyhooks that do not exist.

use convoy_api::Object;
use convoy_testkit::{Builder, NOW, object};
use serde_json::json;

use crate::dialect::Dialect;
use crate::dialect::skyhook::Skyhook;
use crate::dialect::skyhook::names::NAME;
use crate::step::{Action, Step, Write};
use crate::world::World;

const STATE: &str = "skyhook.nvidia.com/nodeState_foobar";

fn pod(stage: &str, exit_code: i64) -> Builder {
    let tag = json!({"name": "foobar", "version": "1.2.3", "stage": stage, "skyhook": "foobar"});
    let ended = json!({"state": {"terminated": {"exitCode": exit_code}}, "restartCount": 2});
    object("v1", "Pod", "by-hand")
        .namespace("shop")
        .label(NAME, "foobar")
        .annotation("skyhook.nvidia.com/package", &tag.to_string())
        .spec(json!({"nodeName": "worker", "initContainers": [{"name": "only"}]}))
        .status(json!({"initContainerStatuses": [ended]}))
}

/// What is done about the pod where the node says this.
fn decided(pod: Builder, state: Option<&str>, others: Vec<Object>) -> Option<Step> {
    let mut node = object("v1", "Node", "worker");
    if let Some(state) = state {
        node = node.annotation(STATE, state);
    }
    let pod = pod.build();
    let key = pod.key().clone();
    let mut world = World::new();
    for object in others.into_iter().chain([pod, node.build()]) {
        world.insert(object);
    }
    let now = NOW.parse().unwrap();
    let step = crate::decide(&Skyhook::new(), &world, &[], &key, now);
    assert_eq!(step.is_some(), Skyhook::new().affected(&world, &key).contains(&key));
    step
}

/// The state that a step writes, and how many writes there are.
fn written(step: &Step) -> (String, usize) {
    let Write::Patch { patch, .. } = &step.actions[0].write else { panic!("{step:?}") };
    let text = patch["metadata"]["annotations"][STATE].as_str().unwrap();
    (text.to_owned(), step.actions.len())
}

fn entry(stage: &str, state: &str, more: &str) -> String {
    format!(
        r#"{{"foobar|1.2.3":{{"name":"foobar","version":"1.2.3","image":"","stage":"{stage}","state":"{state}"{more}}}}}"#
    )
}

#[test]
fn what_it_did_is_recorded_and_it_goes() {
    let step = decided(pod("apply", 0), None, Vec::new()).unwrap();
    assert_eq!(written(&step), (entry("apply", "complete", ""), 2));
    assert!(matches!(step.actions[1].write, Write::Delete { .. }));
    let message = "Package [foobar:1.2.3] state complete on [skyhook:foobar]";
    assert_eq!(
        (step.events[0].reason.as_str(), step.events[0].message.as_str()),
        ("Apply", message)
    );
    // Recorded, and still there: it goes.
    let step = decided(pod("apply", 0), Some(&entry("apply", "complete", "")), Vec::new());
    let step = step.unwrap();
    assert!(matches!(step.actions[..], [Action { write: Write::Delete { .. }, .. }]));
}

#[test]
fn a_failure_is_recorded_once() {
    let step = decided(pod("config", 1), None, Vec::new()).unwrap();
    let told = entry("config", "erroring", r#","restarts":2"#);
    assert_eq!(written(&step), (told.clone(), 1));
    let Write::Patch { patch, .. } = &step.actions[0].write else { panic!() };
    assert_eq!(patch["metadata"]["labels"]["skyhook.nvidia.com/status_foobar"], "erroring");
    assert!(decided(pod("config", 1), Some(&told), Vec::new()).is_none());
}

#[test]
fn an_uninstalled_package_is_forgotten() {
    let told = entry("uninstall", "in_progress", "");
    let step = decided(pod("uninstall", 0), Some(&told), Vec::new()).unwrap();
    assert_eq!(written(&step), ("{}".to_owned(), 2));
}

#[test]
fn what_is_not_an_orphan_or_tells_nothing_is_left_alone() {
    let skyhook = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "foobar").build();
    assert!(decided(pod("apply", 0), None, vec![skyhook]).is_none());
    assert!(decided(pod("apply", 0), Some("not JSON"), Vec::new()).is_none());
    let running = pod("apply", 0).with("/status/initContainerStatuses", json!([]));
    assert!(decided(running, None, Vec::new()).is_none());
    let elsewhere = pod("apply", 0).with("/spec/nodeName", json!("gone"));
    assert!(decided(elsewhere, None, Vec::new()).is_none());
    let untold = pod("apply", 0).with("/metadata/annotations", json!({}));
    assert!(decided(untold, None, Vec::new()).is_none());
}
