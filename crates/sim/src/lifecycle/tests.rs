//! Silent nodes, and what becomes of their pods.

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

fn node(ready: &str, taints: Value) -> SharedObject {
    SharedObject::from(json!({"metadata": {"name": "n", "uid": "n"}, "spec": {"taints": taints},
        "status": {"conditions": [{"type": "Ready", "status": ready}]}}))
}

fn pod(tolerations: Value) -> SharedObject {
    SharedObject::from(json!({"metadata": {"name": "p", "namespace": "shop", "uid": "p"},
        "spec": {"nodeName": "n", "tolerations": tolerations},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}}))
}

fn lease(seconds: i64) -> SharedObject {
    SharedObject::from(
        json!({"metadata": {"name": "n"}, "spec": {"renewTime": at(seconds).to_string()}}),
    )
}

#[test]
fn a_node_that_says_how_long_its_lease_counts_is_waited_for() {
    let mut lifecycle = Lifecycle::default();
    lifecycle.changed(&Key::node("n"), Some(&node("True", json!([]))), at(0));
    let slow = json!({"metadata": {"name": "n"},
        "spec": {"renewTime": at(0).to_string(), "leaseDurationSeconds": 400}});
    lifecycle.changed(&Key::lease("n"), Some(&slow.into()), at(0));
    assert!(lifecycle.due(at(41)).is_empty());
    assert_eq!(lifecycle.next(), Some(at(400)));
    assert_eq!(lifecycle.due(at(400)).len(), 1);
}

#[test]
fn a_silent_node_is_marked_then_tainted() {
    let mut lifecycle = Lifecycle::default();
    let key = Key::node("n");
    lifecycle.changed(&key, Some(&node("True", json!([]))), at(0));
    lifecycle.changed(&Key::lease("n"), Some(&lease(30)), at(30));
    assert!(lifecycle.due(at(41)).is_empty());
    assert_eq!(lifecycle.next(), Some(at(70)));
    let marked = lifecycle.due(at(70));
    let WriteVerb::MergeStatus(patch) = &marked[0].write else { panic!("{marked:?}") };
    assert_eq!(patch["status"]["conditions"][0]["status"], "Unknown");
    assert_eq!(patch["status"]["conditions"][0]["reason"], "NodeStatusUnknown");
    lifecycle.changed(&key, Some(&node("Unknown", json!([]))), at(71));
    lifecycle.handle_response(&marked[0], &WriteResponse::Done(None), at(71));
    let tainted = lifecycle.due(at(71));
    let WriteVerb::Merge(patch) = &tainted[0].write else { panic!("{tainted:?}") };
    let taints = patch["spec"]["taints"].as_array().unwrap();
    assert!(taints.iter().all(|taint| taint["key"] == "node.kubernetes.io/unreachable"));
    assert_eq!(taints.len(), 2);
}

#[test]
fn taints_go_when_the_node_is_back_and_others_stay() {
    let taints = json!([{"key": "gpu", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]);
    let request = retaint(&Key::node("n"), &node("True", taints), at(0)).unwrap();
    let WriteVerb::Merge(patch) = &request.write else { panic!("{request:?}") };
    assert_eq!(patch["spec"]["taints"], json!([{"key": "gpu", "effect": "NoSchedule"}]));
    assert_eq!(retaint(&Key::node("n"), &node("True", json!([])), at(0)), None);
}

#[test]
fn a_cordon_is_a_taint() {
    let key = Key::node("n");
    let cordoned = |taints: Value| {
        let mut node = (*node("True", taints)).clone();
        node["spec"]["unschedulable"] = json!(true);
        node
    };
    let taints = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    let request = retaint(&key, &cordoned(json!([])), at(0)).unwrap();
    let WriteVerb::Merge(patch) = &request.write else { panic!("{request:?}") };
    assert_eq!(patch["spec"]["taints"], taints);
    assert_eq!(retaint(&key, &cordoned(taints.clone()), at(0)), None);
    let request = retaint(&key, &node("True", taints), at(0)).unwrap();
    let WriteVerb::Merge(patch) = &request.write else { panic!("{request:?}") };
    assert_eq!(patch["spec"]["taints"], json!([]));
}

#[test]
fn pods_go_when_they_tolerate_it_no_longer() {
    let taint = json!([{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute",
        "timeAdded": at(0).to_string()}]);
    let tainted = node("False", taint);
    let tolerates = |seconds: Value| {
        json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": seconds}])
    };
    let until = |tolerations: Value| tolerated_until(&pod(tolerations), &tainted, at(7));
    assert_eq!(until(json!([])), Some(at(7)));
    assert_eq!(until(tolerates(json!(300))), Some(at(300)));
    assert_eq!(until(tolerates(Value::Null)), None);
    assert_eq!(tolerated_until(&pod(json!([])), &node("True", json!([])), at(7)), None);
}

#[test]
fn pods_of_a_silent_node_are_not_ready() {
    let key = Key::pod("shop", "p");
    let request = unready(&key, &pod(json!([])), &node("Unknown", json!([])), at(0)).unwrap();
    let WriteVerb::MergeStatus(patch) = &request.write else { panic!("{request:?}") };
    assert_eq!(patch["status"]["conditions"][0]["reason"], "NodeNotReady");
    assert_eq!(unready(&key, &pod(json!([])), &node("False", json!([])), at(0)), None);
}

#[test]
fn pods_of_a_node_that_is_gone_go_after_a_while() {
    let mut lifecycle = Lifecycle::default();
    let (key, name) = (Key::pod("shop", "p"), Key::node("n"));
    lifecycle.changed(&name, Some(&node("True", json!([]))), at(0));
    lifecycle.changed(&key, Some(&pod(json!([]))), at(0));
    assert!(lifecycle.due(at(1)).is_empty());
    lifecycle.changed(&name, None, at(10));
    assert!(lifecycle.due(at(11)).is_empty());
    let requests = lifecycle.due(at(50));
    assert!(
        matches!(&requests[0].write, WriteVerb::Delete(options) if options["gracePeriodSeconds"] == 0)
    );
}
