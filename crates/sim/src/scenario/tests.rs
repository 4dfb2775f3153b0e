//! What scenarios say, and what is refused.

use serde_json::{Value, json};

use super::*;

fn pod(image: &str, annotations: Value) -> Value {
    json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u1", "labels": {"app": "web"},
        "annotations": annotations},
        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": image}]}})
}

fn behaviour(scenario: &Scenario, pod: &Value) -> Behaviour {
    scenario.behaviour(pod, &pod["spec"]["containers"][0], &Value::Null)
}

#[test]
fn an_empty_file_is_a_scenario() {
    for text in ["", "{}", "# nothing yet\n"] {
        assert_eq!(Scenario::from_yaml(text).unwrap(), Scenario::default(), "{text:?}");
    }
}

#[test]
fn what_is_not_understood_is_refused_with_field_and_value() {
    let cases = [
        ("sed: 1", "unknown field `sed`"),
        ("latencies: {pull: soon}", "latencies.pull: \"soon\": want a duration"),
        ("rates: {crash: 2}", "rates.crash: 2.0: want a share from 0 to 1"),
        ("nodes: [{name: Big}]", "nodes[0].name: \"Big\": want a DNS subdomain"),
        ("nodes: [{capacity: {cpu: many}}]", "nodes[0].capacity.cpu: \"many\": want a quantity"),
        (
            "nodes: [{taints: [{key: a, effect: Never}]}]",
            "nodes[0].taints[0].effect: \"Never\": want",
        ),
        (
            "rules: [{when: {}, then: {fails: often}}]",
            "rules[0].then.fails: unknown variant `often`",
        ),
        ("nodeEvents: [{node: n7, at: 1m, event: melt}]", "nodeEvents[0].event: unknown variant"),
        ("heartbeat: 0s", "heartbeat: \"0s\": want a positive duration"),
        ("nodes: [", "not YAML"),
    ];
    for (text, expected) in cases {
        let message = Scenario::from_yaml(text).unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn rules_then_node_then_pod_decide() {
    let scenario = Scenario::from_yaml(
        "rules:\n- when: {image: '*:bad'}\n  then: {fails: crash, after: 2s}\n- when: {labels: {app: web}}\n  then: {ready: 9s}\n",
    )
    .unwrap();
    let plain = behaviour(&scenario, &pod("nginx:1", json!({})));
    assert_eq!((plain.failure, plain.ready), (Failure::Never, Latency::from_millis(9_000, 9_000)));
    let bad = behaviour(&scenario, &pod("nginx:bad", json!({})));
    assert_eq!((bad.failure, bad.after), (Failure::Crash, Latency::from_millis(2_000, 2_000)));
    let own = pod("nginx:bad", json!({"sim.convoy.dev/fails": "never"}));
    assert_eq!(behaviour(&scenario, &own).failure, Failure::Never);
    let node = json!({"metadata": {"annotations": {"sim.convoy.dev/ready": "1s"}}});
    let slow = pod("nginx:1", json!({}));
    let on_node = scenario.behaviour(&slow, &slow["spec"]["containers"][0], &node);
    assert_eq!(on_node.ready, Latency::from_millis(1_000, 1_000));
}

#[test]
fn a_command_is_matched_with_its_arguments() {
    let rules = "rules: [{when: {command: sleep *}, then: {completes: 300s}}]";
    let scenario = Scenario::from_yaml(rules).unwrap();
    let completes = |container: Value| {
        scenario.behaviour(&json!({"spec": {"nodeName": "n"}}), &container, &Value::Null).completes
    };
    let long = Some(Latency::from_millis(300_000, 300_000));
    assert_eq!(completes(json!({"command": ["sleep", "300"]})), long);
    assert_eq!(completes(json!({"command": ["sleep"], "args": ["1"]})), long);
    assert_eq!(completes(json!({"command": ["true"]})), None);
    assert_eq!(completes(json!({})), None);
}

/// The pod of a package's stage, as a Skyhook has it made.
fn package_pod(name: &str, stage: &str) -> Value {
    let tag = json!({"name": name, "version": "1.0.0", "skyhook": "tuning", "stage": stage,
        "image": "example/driver"});
    let steps = [format!("{name}-init"), format!("{name}-{stage}"), format!("{name}-{stage}check")];
    let steps = steps.map(|step| {
        json!({"name": step, "image": "agent:1",
        "env": [{"name": "SLEEP_LEN", "value": "3"}]})
    });
    json!({"metadata": {"annotations": {"skyhook.nvidia.com/package": tag.to_string()}},
        "spec": {"nodeName": "node-1", "initContainers": steps}})
}

/// Which of the pod's steps fail.
fn failing(scenario: &Scenario, pod: &Value, node: &Value) -> Vec<bool> {
    let steps = pod["spec"]["initContainers"].as_array().unwrap().iter();
    steps.map(|step| scenario.behaviour(pod, step, node).failure == Failure::Crash).collect()
}

#[test]
fn packages_fail_by_name_stage_node_and_step() {
    let cases = [
        ("package: {name: driver}", [false, true, false]),
        ("package: {name: driver, step: check}", [false, false, true]),
        ("package: {name: dri*, stage: config, step: init}", [true, false, false]),
        ("package: {stage: apply}", [false; 3]),
        ("package: {version: 2.*}", [false; 3]),
        ("package: {skyhook: tuning}, node: node-2", [false; 3]),
        ("package: {skyhook: tuning}, node: node-1", [false, true, false]),
        ("package: {interrupt: node_restart}", [false; 3]),
        ("env: {SLEEP_LEN: \"3\"}", [true; 3]),
        ("env: {SLEEP_LEN: \"4\"}", [false; 3]),
        ("container: \"*check\"", [false, false, true]),
    ];
    let pod = package_pod("driver", "config");
    for (when, expected) in cases {
        let rule = format!("[{{when: {{{when}}}, then: {{fails: crash}}}}]");
        let scenario = Scenario::from_yaml(&format!("rules: {rule}")).unwrap();
        assert_eq!(failing(&scenario, &pod, &Value::Null), expected, "{when}");
        // The same rule on the node.
        let node = json!({"metadata": {"annotations": {"sim.convoy.dev/rules": rule}}});
        assert_eq!(failing(&Scenario::default(), &pod, &node), expected, "{when} on a node");
    }
}

#[test]
fn interrupts_are_told_apart_by_their_order() {
    let rules = "rules: [{when: {package: {interrupt: node_restart}}, then: {reboots: 2s}}]";
    let scenario = Scenario::from_yaml(rules).unwrap();
    let mut pod = package_pod("driver", "interrupt");
    for (order, expected) in
        [("eyJ0eXBlIjoibm9kZV9yZXN0YXJ0In0=", true), ("eyJ0eXBlIjoibm9fb3AifQ==", false)]
    {
        let args = ["interrupt", "/root", "/copy", order];
        pod["spec"]["initContainers"] = json!([{"name": "interrupt", "args": args}]);
        let step = &pod["spec"]["initContainers"][0];
        assert_eq!(scenario.behaviour(&pod, step, &Value::Null).reboots.is_some(), expected);
    }
}

#[test]
fn an_annotation_that_is_not_understood_is_told() {
    let odd = pod("nginx", json!({"sim.convoy.dev/ready": "soon"}));
    let complaint = behaviour(&Scenario::default(), &odd).complaint.unwrap();
    assert!(complaint.starts_with("annotation sim.convoy.dev/ready: \"soon\""), "{complaint}");
    let node = json!({"metadata": {"annotations": {"sim.convoy.dev/rules": "[{then: {}}]"}}});
    let pod = package_pod("driver", "apply");
    let step = &pod["spec"]["initContainers"][1];
    let complaint = Scenario::default().behaviour(&pod, step, &node).complaint.unwrap();
    assert!(complaint.starts_with("annotation sim.convoy.dev/rules: "), "{complaint}");
}

#[test]
fn rates_are_shares_of_the_pods() {
    let scenario = Scenario::from_yaml("seed: 3\nrates: {crash: 0.2, neverReady: 0.1}").unwrap();
    let failures = (0..2_000).map(|index| {
        let pod = json!({"metadata": {"uid": format!("u{index}")}});
        scenario.behaviour(&pod, &Value::Null, &Value::Null).failure
    });
    let failures: Vec<Failure> = failures.collect();
    let count = |wanted| failures.iter().filter(|failure| **failure == wanted).count();
    assert!((330..470).contains(&count(Failure::Crash)), "{}", count(Failure::Crash));
    assert!((150..250).contains(&count(Failure::NeverReady)));
    assert_eq!(count(Failure::ImagePullError), 0);
}

#[test]
fn jobs_complete() {
    let mut job = pod("busybox", json!({}));
    assert_eq!(behaviour(&Scenario::default(), &job).completes, None);
    job["metadata"]["ownerReferences"] = json!([{"kind": "Job", "controller": true}]);
    assert!(behaviour(&Scenario::default(), &job).completes.is_some());
}

#[test]
fn the_examples_of_the_reference_are_sound() {
    let page = include_str!("../../../../docs/reference/scenario.md");
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let scenario =
            Scenario::from_yaml(block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        assert!(!scenario.rules.is_empty());
    }
}

#[test]
fn a_number_of_nodes_keeps_the_proportions_of_the_groups() {
    let counts = |groups: &str, count: u32| {
        let scenario = Scenario::from_yaml(&format!("nodes: [{groups}]")).expect("it is valid");
        let nodes = scenario.with_nodes(count).nodes;
        nodes.iter().map(|template| template.count).collect::<Vec<u32>>()
    };
    let two_and_four = "{name: a, count: 2}, {name: b, count: 4}";
    assert_eq!(counts(two_and_four, 6), [2, 4]);
    assert_eq!(counts(two_and_four, 20), [7, 13]);
    assert_eq!(counts(two_and_four, 1), [0, 1]);
    assert_eq!(counts("{name: a}, {name: b}, {name: c}", 5), [2, 2, 1]);
    assert_eq!(counts("{name: a, count: 0}, {name: b, count: 0}", 3), [3, 0]);
    assert_eq!(counts("", 3), [3]);
    assert_eq!(counts("{name: a, count: 4294967295}, {name: b}", u32::MAX), [u32::MAX - 1, 1]);
}

#[test]
fn a_number_of_nodes_that_leaves_a_group_out_is_refused() {
    let scenario =
        |groups: &str| Scenario::from_yaml(&format!("nodes: [{groups}]")).expect("it is valid");
    let rows = [
        ("{name: gpu, count: 3}, {name: cpu}", 1, Some(("cpu", 3))),
        ("{name: gpu, count: 3}, {name: cpu}", 2, Some(("cpu", 3))),
        ("{name: gpu, count: 3}, {name: cpu}", 3, None),
        ("{name: gpu, count: 10}, {name: cpu}", 2, Some(("cpu", 6))),
        ("{name: gpu, count: 3}, {name: cpu, count: 0}", 1, None),
        ("{name: gpu, count: 3}, {name: cpu}", 0, None),
        ("", 1, None),
    ];
    for (groups, count, refused) in rows {
        let found = scenario(groups).with_nodes_in_every_group(count);
        let expected = refused.map(|(group, least)| {
            format!("nodes: group {group:?} would have none of {count} nodes; want 0, or at least {least}")
        });
        assert_eq!(found.err().map(|error| error.to_string()), expected, "{groups}: {count}");
    }
}
