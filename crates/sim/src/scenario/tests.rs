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
fn an_annotation_that_is_not_understood_is_told() {
    let odd = pod("nginx", json!({"sim.convoy.dev/ready": "soon"}));
    let complaint = behaviour(&Scenario::default(), &odd).complaint.unwrap();
    assert!(complaint.starts_with("annotation sim.convoy.dev/ready: \"soon\""), "{complaint}");
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
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let scenario =
            Scenario::from_yaml(block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        assert!(!scenario.rules.is_empty());
    }
}
