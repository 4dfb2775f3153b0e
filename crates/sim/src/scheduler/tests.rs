//! Where pods go, and what is said when they go nowhere.

use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn later(seconds: i64) -> Timestamp {
    now().checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

fn node(name: &str, more: &Value) -> (Key, SharedObject) {
    let mut node = json!({"metadata": {"name": name, "labels": {"zone": "a", "size": "4"}},
        "spec": {}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}});
    for path in ["/metadata/labels", "/spec", "/status/allocatable"] {
        let part = path.rsplit('/').next().unwrap();
        if let Some(changes) = more[part].as_object() {
            node.pointer_mut(path).unwrap().as_object_mut().unwrap().extend(changes.clone());
        }
    }
    (Key::node(name), node.into())
}

fn pod(name: &str, spec: Value) -> (Key, SharedObject) {
    let pod = json!({"metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": spec, "status": {"phase": "Pending"}});
    (Key::pod("shop", name), pod.into())
}

fn asking(cpu: &str) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]})
}

fn scheduler(nodes: &[(Key, SharedObject)]) -> Scheduler {
    let mut scheduler = Scheduler::default();
    for (key, node) in nodes {
        scheduler.changed(key, Some(node), now());
    }
    scheduler
}

fn bound(requests: &[WriteRequest]) -> Vec<(&str, &str)> {
    let target = |request: &'_ WriteRequest| match &request.write {
        WriteVerb::Bind(binding) => binding["target"]["name"].as_str().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    requests.iter().map(|request| (request.key.name.as_str(), &*target(request).leak())).collect()
}

#[test]
fn pods_spread_over_nodes_that_have_room() {
    let mut scheduler = scheduler(&[node("a", &json!({})), node("b", &json!({}))]);
    for name in ["p1", "p2", "p3", "p4"] {
        let (key, pod) = pod(name, asking("1"));
        scheduler.changed(&key, Some(&pod), now());
    }
    let requests = scheduler.due(now());
    assert_eq!(bound(&requests), [("p1", "a"), ("p2", "b"), ("p3", "a"), ("p4", "b")]);
    assert!(scheduler.due(now()).is_empty(), "a pod is bound once");
    assert_eq!(scheduler.next(), None);
}

/// The response to the kubelet's write arrives after the watch has told that the taint is gone.
#[test]
fn an_older_version_changes_nothing() {
    let at = |(key, object): (Key, SharedObject), version: &str| {
        let mut object = Value::from(object);
        object["metadata"]["resourceVersion"] = json!(version);
        (key, SharedObject::from(object))
    };
    let taints = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
    let tainted = at(node("a", &json!({"spec": {"taints": taints}})), "7");
    let free = at(node("a", &json!({})), "8");
    let mut scheduler = scheduler(&[free, tainted]);
    let (key, waiting) = at(pod("p", json!({})), "9");
    scheduler.changed(&key, Some(&waiting), now());
    assert_eq!(bound(&scheduler.due(now())), [("p", "a")]);
    let (_, running) = at(pod("p", json!({"nodeName": "a"})), "10");
    for seen in [&running, &waiting] {
        scheduler.changed(&key, Some(seen), now());
    }
    assert_eq!(scheduler.due(now()), [], "it is bound");
}

#[test]
fn the_important_go_first() {
    let mut scheduler = scheduler(&[node("a", &json!({"allocatable": {"pods": "1"}}))]);
    let (usual, important) = (pod("usual", json!({})), pod("vip", json!({"priority": 1000})));
    for (key, pod) in [&usual, &important] {
        scheduler.changed(key, Some(pod), now());
    }
    let requests = scheduler.due(now());
    assert_eq!(bound(&requests[..1]), [("vip", "a")]);
}

#[test]
fn a_pod_goes_where_it_may() {
    let nodes = [
        node("cordoned", &json!({"spec": {"unschedulable": true}})),
        node("small", &json!({"allocatable": {"cpu": "500m"}})),
        node(
            "tainted",
            &json!({"spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}}),
        ),
        node("zone-b", &json!({"labels": {"zone": "b", "size": "16"}})),
    ];
    let term = |expression: Value| {
        let required = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
    };
    let cases = [
        ("selector", json!({"nodeSelector": {"zone": "b"}}), Some("zone-b")),
        (
            "greater",
            json!({"affinity": term(json!({"key": "size", "operator": "Gt", "values": ["8"]}))}),
            Some("zone-b"),
        ),
        (
            "not in",
            json!({"affinity": term(json!({"key": "zone", "operator": "NotIn", "values": ["a", "b"]}))}),
            None,
        ),
        (
            "tolerated",
            json!({"nodeSelector": {"zone": "a"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}),
            Some("tainted"),
        ),
        ("nowhere", json!({"nodeSelector": {"zone": "c"}}), None),
    ];
    for (name, more, expected) in cases {
        let mut spec = asking("1");
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let decision = scheduler(&nodes).decide(&Key::pod("shop", name), &pod(name, spec).1);
        match expected {
            Some(node) => assert_eq!(decision, Decision::Bind(node.into()), "{name}"),
            None => assert!(matches!(decision, Decision::Unschedulable(_)), "{name}"),
        }
    }
}

#[test]
fn preferences_outweigh_free_room() {
    let nodes = [
        node("a", &json!({})),
        node("b", &json!({"labels": {"zone": "b"}, "allocatable": {"cpu": "2"}})),
    ];
    let spec = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 10, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}}]}}});
    assert_eq!(
        scheduler(&nodes).decide(&Key::pod("shop", "p"), &pod("p", spec).1),
        Decision::Bind("b".into())
    );
    assert_eq!(
        scheduler(&nodes).decide(&Key::pod("shop", "p"), &pod("p", asking("1")).1),
        Decision::Bind("a".into())
    );
}

#[test]
fn a_misfit_is_told_why_and_looked_at_again_when_something_changes() {
    let mut scheduler = scheduler(&[
        node("a", &json!({})),
        node("b", &json!({})),
        node(
            "c",
            &json!({"spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}}),
        ),
        node("d", &json!({"spec": {"unschedulable": true}})),
    ]);
    let (key, pod) = pod("big", asking("6"));
    scheduler.changed(&key, Some(&pod), now());
    let requests = scheduler.due(now());
    let WriteVerb::MergeStatus(patch) = &requests[0].write else { panic!("{requests:?}") };
    let condition = &patch["status"]["conditions"][0];
    assert_eq!(condition["reason"], "Unschedulable");
    assert_eq!(
        condition["message"],
        "0/4 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, 1 node(s) were unschedulable, 2 Insufficient cpu."
    );
    let mut told = (*pod).clone();
    told["status"]["conditions"] = patch["status"]["conditions"].clone();
    scheduler.changed(&key, Some(&told.into()), now());
    assert!(scheduler.due(later(60)).is_empty());
    let (large, object) = node("large", &json!({"allocatable": {"cpu": "16"}}));
    scheduler.changed(&large, Some(&object), later(61));
    assert_eq!(bound(&scheduler.due(later(61))), [("big", "large")]);
}

#[test]
fn a_binding_that_fails_is_tried_again() {
    let mut scheduler = scheduler(&[node("a", &json!({}))]);
    let (key, pod) = pod("p", asking("3"));
    scheduler.changed(&key, Some(&pod), now());
    let requests = scheduler.due(now());
    scheduler.handle_response(&requests[0], &WriteResponse::Failed("too busy".to_owned()), now());
    assert_eq!(bound(&scheduler.due(later(1))), [("p", "a")]);
}

#[test]
fn without_nodes_there_is_nowhere_to_go() {
    let message = "no nodes available to schedule pods".to_owned();
    assert_eq!(
        scheduler(&[]).decide(&Key::pod("shop", "p"), &pod("p", json!({})).1),
        Decision::Unschedulable(message)
    );
}

#[test]
fn what_a_pod_takes_is_the_most_of_its_stages() {
    let ask = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let spec = json!({"initContainers": [{"resources": ask("3")}, {"restartPolicy": "Always", "resources": ask("500m")}],
        "containers": [{"resources": ask("1")}, {"resources": ask("1")}], "overhead": {"cpu": "100m"}});
    assert_eq!(Amounts::of_pod(&spec).cpu_millis, 3_100);
}

/// A pod of the group `app`, with more in its spec.
fn member(name: &str, app: &str, spec: &Value) -> (Key, SharedObject) {
    let (key, pod) = pod(name, spec.clone());
    let mut pod = (*pod).clone();
    pod["metadata"]["labels"] = json!({"app": app});
    (key, pod.into())
}

/// Three nodes, two of them in zone `a`, with a pod of the group `web` on `a1`.
fn around(spec: &Value) -> Scheduler {
    let nodes = [
        node("a1", &json!({"labels": {"host": "a1"}})),
        node("a2", &json!({"labels": {"host": "a2"}})),
        node("b1", &json!({"labels": {"host": "b1", "zone": "b"}})),
    ];
    let mut scheduler = scheduler(&nodes);
    let (key, first) = member("first", "web", spec);
    let mut first = (*first).clone();
    first["spec"]["nodeName"] = json!("a1");
    scheduler.changed(&key, Some(&first.into()), now());
    scheduler
}

#[test]
fn pods_have_the_neighbours_that_they_require() {
    let term =
        |key: &str| json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}});
    let rule = |kind: &str, key: &str| json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(key)]}}});
    let spread = |key: &str, more: &Value| {
        let mut entry = term(key);
        entry["maxSkew"] = json!(1);
        entry["whenUnsatisfiable"] = json!("DoNotSchedule");
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"topologySpreadConstraints": [entry]})
    };
    let port = json!({"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]});
    let anyway = json!({"whenUnsatisfiable": "ScheduleAnyway"});
    let none = json!({});
    let cases = [
        ("no rule", &none, none.clone(), vec!["a2", "b1", "a1"]),
        ("near, by host", &none, rule("podAffinity", "host"), vec!["a1", "a1", "a1"]),
        ("near, by zone", &none, rule("podAffinity", "zone"), vec!["a2", "a1", "a2"]),
        ("apart, by host", &none, rule("podAntiAffinity", "host"), vec!["a2", "b1"]),
        ("apart, by zone", &none, rule("podAntiAffinity", "zone"), vec!["b1"]),
        (
            "others are apart",
            &rule("podAntiAffinity", "zone"),
            none.clone(),
            vec!["b1", "b1", "b1"],
        ),
        ("spread", &none, spread("zone", &none), vec!["b1", "a2", "b1"]),
        ("spread over hosts", &none, spread("host", &none), vec!["a2", "b1", "a1"]),
        ("spread if possible", &none, spread("zone", &anyway), vec!["a2", "b1", "a1"]),
        ("too few zones", &none, spread("zone", &json!({"minDomains": 3})), vec!["b1"]),
        ("no such label", &none, spread("rack", &none), vec![]),
        ("a port", &port, port.clone(), vec!["a2", "b1"]),
    ];
    for (case, of_first, spec, expected) in cases {
        let mut scheduler = around(of_first);
        for name in ["p1", "p2", "p3"] {
            let (key, pod) = member(name, "web", &spec);
            scheduler.changed(&key, Some(&pod), now());
        }
        let requests = scheduler.due(now());
        let binds = |request: &&WriteRequest| matches!(request.write, WriteVerb::Bind(_));
        let requests: Vec<WriteRequest> = requests.iter().filter(binds).cloned().collect();
        let found: Vec<&str> = bound(&requests).into_iter().map(|(_, node)| node).collect();
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn a_pod_that_follows_another_is_looked_at_when_that_has_a_node() {
    let near = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}]}}});
    let mut scheduler = scheduler(&[node("a", &json!({}))]);
    let (key, follower) = member("follower", "web", &near);
    scheduler.changed(&key, Some(&follower), now());
    let requests = scheduler.due(now());
    let WriteVerb::MergeStatus(patch) = &requests[0].write else { panic!("{requests:?}") };
    assert_eq!(
        patch["status"]["conditions"][0]["message"],
        "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."
    );
    let (key, leader) = member("leader", "db", &json!({}));
    scheduler.changed(&key, Some(&leader), later(5));
    assert_eq!(bound(&scheduler.due(later(5))), [("leader", "a")]);
    assert_eq!(bound(&scheduler.due(later(6))), [("follower", "a")]);
}

/// A pod on a node, less or more important.
fn running(name: &str, cpu: &str, priority: i64) -> (Key, SharedObject) {
    let mut spec = asking(cpu);
    spec["nodeName"] = json!("a");
    spec["priority"] = json!(priority);
    pod(name, spec)
}

fn important(more: &Value) -> (Key, SharedObject) {
    let mut spec = asking("2");
    spec["priority"] = json!(1_000);
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    pod("vip", spec)
}

fn answer(scheduler: &mut Scheduler, request: &WriteRequest) {
    scheduler.handle_response(request, &WriteResponse::Done(None), now());
}

#[test]
fn the_least_important_make_room() {
    let mut scheduler = scheduler(&[node("a", &json!({}))]);
    let pods = [running("low", "2", 1), running("lower", "1", 0), running("high", "1", 2_000)];
    for (key, pod) in pods.iter().chain([&important(&json!({}))]) {
        scheduler.changed(key, Some(pod), now());
    }
    let requests = scheduler.due(now());
    let names: Vec<&str> = requests.iter().map(|request| request.key.name.as_str()).collect();
    assert_eq!(names, ["vip", "low"], "it is enough that one goes: {requests:?}");
    let WriteVerb::MergeStatus(told) = &requests[0].write else { panic!("{requests:?}") };
    assert_eq!(told["status"]["nominatedNodeName"], "a");
    let WriteVerb::MergeStatus(told) = &requests[1].write else { panic!("{requests:?}") };
    let condition = &told["status"]["conditions"][0];
    assert_eq!(
        (condition["type"].as_str(), condition["reason"].as_str()),
        (Some("DisruptionTarget"), Some("PreemptionByScheduler"))
    );
    answer(&mut scheduler, &requests[1]);
    let requests = scheduler.due(now());
    assert!(matches!(requests[0].write, WriteVerb::Delete(_)), "{requests:?}");
    answer(&mut scheduler, &requests[0]);
    // Another one of its kind finds nobody left who would have to go.
    let (key, late) = pod("late", asking("2"));
    scheduler.changed(&key, Some(&late), now());
    assert!(scheduler.due(now()).iter().all(|request| request.key.name == "late"));
    scheduler.changed(&Key::pod("shop", "low"), None, now());
    assert_eq!(bound(&scheduler.due(later(2))[..1]), [("vip", "a")]);
}

#[test]
fn nobody_is_preempted_for_the_polite_or_in_vain() {
    let cases = [
        json!({"preemptionPolicy": "Never"}),
        json!({"nodeSelector": {"zone": "none"}}),
        json!({"priority": 0}),
    ];
    for more in cases {
        let mut scheduler = scheduler(&[node("a", &json!({}))]);
        for (key, pod) in [running("low", "4", 0), important(&more)] {
            scheduler.changed(&key, Some(&pod), now());
        }
        let requests = scheduler.due(now());
        assert!(requests.iter().all(|request| request.key.name == "vip"), "{more}");
        let WriteVerb::MergeStatus(told) = &requests[0].write else { panic!("{requests:?}") };
        assert!(told["status"]["nominatedNodeName"].is_null(), "{more}");
    }
}

#[test]
fn room_that_is_being_made_is_not_taken_by_others() {
    let mut scheduler = scheduler(&[node("a", &json!({}))]);
    for (key, pod) in [running("low", "4", 0), important(&json!({}))] {
        scheduler.changed(&key, Some(&pod), now());
    }
    scheduler.due(now());
    scheduler.changed(&Key::pod("shop", "low"), None, now());
    let (key, small) = pod("small", asking("3"));
    scheduler.changed(&key, Some(&small), now());
    let requests = scheduler.due(later(2));
    let bindings: Vec<_> =
        requests.into_iter().filter(|it| matches!(it.write, WriteVerb::Bind(_))).collect();
    assert_eq!(bound(&bindings), [("vip", "a")]);
}

#[test]
fn replicas_go_where_each_alone_would_go() {
    let sizes = [("a", "4"), ("b", "3"), ("c", "2")];
    let nodes = sizes.map(|(name, cpu)| node(name, &json!({"allocatable": {"cpu": cpu}})));
    let mut kept = scheduler(&nodes);
    let mut bound_alone = Vec::new();
    let mut alone = scheduler(&nodes);
    for index in 0..9 {
        let (key, pod) = pod(&format!("p{index}"), asking("1"));
        kept.changed(&key, Some(&pod), now());
        alone.changed(&key, Some(&pod), now());
        alone.shortlist = None;
        bound_alone.extend(alone.due(now()));
    }
    let requests = kept.due(now());
    assert_eq!(bound(&requests), bound(&bound_alone));
    assert_eq!(requests.len(), 9);
    // One that ends leaves room, and a node that comes is as good as those that were there.
    kept.changed(&Key::pod("shop", "p0"), None, now());
    let (key, tenth) = pod("p9", asking("1"));
    kept.changed(&key, Some(&tenth), now());
    assert_eq!(bound(&kept.due(now())), [("p9", bound(&requests)[0].1)]);
    let (key, newer) = node("d", &json!({}));
    kept.changed(&key, Some(&newer), now());
    let (key, eleventh) = pod("p10", asking("1"));
    kept.changed(&key, Some(&eleventh), now());
    assert_eq!(bound(&kept.due(now())), [("p10", "d")]);
    kept.changed(&Key::node("d"), None, now());
    let (key, twelfth) = pod("p11", asking("1"));
    kept.changed(&key, Some(&twelfth), now());
    assert!(matches!(kept.due(now())[0].write, WriteVerb::MergeStatus(_)));
}
