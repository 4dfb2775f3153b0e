//! Bodies of pods, by the parts that agents and tests of other tools look at.

use convoy_api::Object;
use convoy_api::skyhook::InterruptType;
use convoy_testkit::{node, object};

use super::*;

fn skyhook() -> Object {
    object("skyhook.nvidia.com/v1alpha1", "Skyhook", "gpu-init")
        .spec(json!({"packages": {"driver": {"version": "1.2.3", "image": "ghcr.io/x/driver:bogus",
            "configMap": {"a.conf": "1"}, "gracefulShutdown": "46s",
            "env": [{"name": "MODE", "value": "fast"}],
            "resources": {"cpuRequest": "50m", "cpuLimit": "60m", "memoryRequest": "1Mi",
                "memoryLimit": "2Mi"}}}}))
        .build()
}

#[test]
fn a_stage_pod_runs_copy_stage_and_check() {
    let (object, worker, options) = (skyhook(), node("worker-1").build(), Options::new());
    let hook = Hook::read(&object).unwrap();
    let builder = PodBuilder { hook: &hook, options: &options, node: &worker };
    let (key, pod) = builder.stage_pod(&hook.packages[0], Stage::Apply);
    assert_eq!(key.to_string(), "Pod/skyhook/gpu-init-driver-1-2-3-apply-worker-1-7355aae7");
    let tag = concat!(
        r#"{"name":"driver","version":"1.2.3","skyhook":"gpu-init","stage":"apply","#,
        r#""image":"ghcr.io/x/driver"}"#
    );
    assert_eq!(pod["metadata"]["annotations"][PACKAGE], tag);
    assert_eq!(pod["metadata"]["labels"][PACKAGE], "driver-1.2.3");
    assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 46);
    let containers = pod["spec"]["initContainers"].as_array().unwrap();
    let names: Vec<&str> = containers.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["driver-init", "driver-apply", "driver-applycheck"]);
    assert_eq!(containers[0]["image"], "ghcr.io/x/driver:1.2.3");
    let copy_dir = "/var/lib/skyhook/gpu-init/driver-1.2.3-uid-skyhook-gpu-init-1";
    assert_eq!(containers[2]["args"], json!(["apply-check", "/root", copy_dir]));
    let env: Vec<&str> = containers[1]["env"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["name"].as_str())
        .collect();
    assert_eq!(env[0], "MODE");
    assert_eq!(env[1..], AGENT_ENVIRONMENT);
    assert_eq!(containers[1]["resources"]["limits"], json!({"cpu": "60m", "memory": "2Mi"}));
    assert_eq!(pod["spec"]["volumes"].as_array().unwrap().len(), 3);
}

#[test]
fn an_interrupt_pod_carries_its_order_in_base64() {
    let (object, worker, options) = (skyhook(), node("worker-1").build(), Options::new());
    let hook = Hook::read(&object).unwrap();
    let builder = PodBuilder { hook: &hook, options: &options, node: &worker };
    let reboot = Interrupt { kind: InterruptType::Reboot, services: None };
    let (key, pod) = builder.interrupt_pod(&hook.packages[0], &reboot);
    assert_eq!(key.name, "gpu-init-interrupt-reboot-worker-1-685e07d6");
    let container = &pod["spec"]["initContainers"][0];
    let order = BASE64_STANDARD.decode(container["args"][3].as_str().unwrap()).unwrap();
    assert_eq!(String::from_utf8(order).unwrap(), r#"{"type":"node_restart"}"#);
    assert_eq!(pod["metadata"]["labels"][INTERRUPT], "True");
}

#[test]
fn what_is_uninstalled_is_made_from_node_state_alone() {
    let (object, worker, options) = (skyhook(), node("worker-1").build(), Options::new());
    let hook = Hook::read(&object).unwrap();
    let builder = PodBuilder { hook: &hook, options: &options, node: &worker };
    let entry = hook.packages[0].begun(Stage::Uninstall);
    let (_, pod) = builder.stage_pod(&Package::recorded(&entry), Stage::Uninstall);
    let run = &pod["spec"]["initContainers"][1];
    assert_eq!(run["name"], "driver-uninstall");
    assert_eq!(run.get("resources"), None);
    assert_eq!(run["env"].as_array().unwrap().len(), AGENT_ENVIRONMENT.len());
}
