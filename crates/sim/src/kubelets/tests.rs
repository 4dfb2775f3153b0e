//! Kubelets against objects that a test keeps, from timer to timer.

use serde_json::json;

use super::*;
use crate::component::WriteVerb;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

/// Kubelets, and the objects an API server would have, version by version.
struct World {
    kubelets: Kubelets,
    objects: BTreeMap<Key, Value>,
    version: u64,
}

impl World {
    fn new(scenario: &str) -> Self {
        let latencies = "latencies: {pull: 1s, start: 1s, ready: 1s, stop: 2s}";
        let scenario = Scenario::from_yaml(&format!("{latencies}\n{scenario}")).unwrap();
        let kubelets = Kubelets::new(Arc::new(scenario), "v1.37.0".to_owned());
        let mut world = Self { kubelets, objects: BTreeMap::new(), version: 0 };
        world.run(at(0));
        world
    }

    fn put(&mut self, key: &Key, mut object: Value, now: Timestamp) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{}", self.version));
        }
        self.objects.insert(key.clone(), object.clone());
        self.kubelets.changed(key, Some(&object.into()), now);
    }

    /// Answers everything that is asked for until nothing is due.
    fn run(&mut self, now: Timestamp) -> usize {
        let mut count = 0;
        loop {
            let requests = self.kubelets.due(now);
            if requests.is_empty() {
                return count;
            }
            for request in requests {
                count += 1;
                self.carry_out(&request, now);
                self.kubelets.handle_response(&request, &WriteResponse::Done(None), now);
            }
        }
    }

    fn carry_out(&mut self, request: &WriteRequest, now: Timestamp) {
        let key = &request.key;
        match &request.write {
            WriteVerb::Create(object) => self.put(key, object.clone(), now),
            WriteVerb::Delete(_) => {
                self.objects.remove(key);
                self.kubelets.changed(key, None, now);
            }
            WriteVerb::Merge(patch) | WriteVerb::MergeStatus(patch) => {
                let mut object = self.objects[key].clone();
                for (name, part) in patch.as_object().unwrap() {
                    for (inner, value) in part.as_object().unwrap() {
                        object[name.as_str()][inner.as_str()] = value.clone();
                    }
                }
                self.put(key, object, now);
            }
            WriteVerb::Bind(_) => unreachable!("kubelets bind nothing"),
        }
    }

    /// Goes from timer to timer.
    fn run_until(&mut self, end: Timestamp) {
        while let Some(next) = self.kubelets.next().filter(|next| *next <= end) {
            self.run(next);
        }
    }

    fn pod(&mut self, name: &str, node: &str) -> Key {
        let key = Key::pod("shop", name);
        let pod = json!({"metadata": {"name": name, "namespace": "shop"},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "nginx"}]},
            "status": {"phase": "Pending"}});
        self.put(&key, pod, at(0));
        key
    }
}

#[test]
fn nodes_are_made_and_renew_their_leases() {
    let mut world = World::new("nodes: [{count: 3}]\nheartbeat: 10s");
    assert!(world.kubelets.is_settled());
    let count = |kind| world.objects.keys().filter(|key| key.kind == kind).count();
    assert_eq!((count(Kind::Node), count(Kind::Lease)), (3, 3));
    world.run_until(at(35));
    let renewed = &world.objects[&Key::lease("node-1")]["spec"]["renewTime"];
    assert!(renewed.as_str().unwrap() > "2026-01-01T00:00:24", "{renewed}");
}

#[test]
fn pods_run_on_simulated_nodes_only_and_rest() {
    let mut world = World::new("nodes: [{count: 1}]");
    let (ours, other) = (world.pod("a", "node-0"), world.pod("b", "elsewhere"));
    world.run_until(at(5));
    assert_eq!(world.objects[&ours]["status"]["phase"], "Running");
    assert_eq!(world.objects[&ours]["status"]["podIP"], "10.0.0.1");
    assert_eq!(world.objects[&other]["status"]["phase"], "Pending");
    let version = world.objects[&ours]["metadata"]["resourceVersion"].clone();
    world.run_until(at(600));
    assert_eq!(world.objects[&ours]["metadata"]["resourceVersion"], version);
}

#[test]
fn a_deleted_pod_ends_gracefully_and_frees_its_address() {
    let mut world = World::new("nodes: [{count: 1}]");
    let key = world.pod("a", "node-0");
    world.run_until(at(5));
    let mut pod = world.objects[&key].clone();
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:40Z");
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    world.put(&key, pod, at(10));
    world.run_until(at(11));
    assert_eq!(world.objects[&key]["status"]["phase"], "Running");
    world.run_until(at(12));
    assert!(!world.objects.contains_key(&key));
    let next = world.pod("b", "node-0");
    world.run_until(at(20));
    assert_eq!(world.objects[&next]["status"]["podIP"], "10.0.0.1");
}

#[test]
fn nodes_misbehave_on_time_and_recover() {
    let events = "nodeEvents:\n- {node: node-0, at: 60s, event: not-ready, for: 30s}\n- {node: node-1, at: 60s, event: reboot, for: 20s}\n- {node: node-2, at: 60s, event: vanish}\n";
    let mut world = World::new(&format!("nodes: [{{count: 3}}]\n{events}"));
    let pod = world.pod("a", "node-1");
    let ready = |world: &World, name: &str| {
        let conditions = world.objects[&Key::node(name)]["status"]["conditions"].clone();
        conditions[3]["status"].as_str().unwrap().to_owned()
    };
    let boot = world.objects[&Key::node("node-1")]["status"]["nodeInfo"]["bootID"].clone();
    world.run_until(at(61));
    assert_eq!(ready(&world, "node-0"), "False");
    assert_eq!(ready(&world, "node-1"), "True", "nobody is there to say otherwise");
    assert!(!world.objects.contains_key(&Key::node("node-2")));
    let lease = |world: &World| world.objects[&Key::lease("node-1")]["spec"]["renewTime"].clone();
    let last = lease(&world);
    world.run_until(at(79));
    assert_eq!(lease(&world), last);
    world.run_until(at(100));
    assert_eq!(ready(&world, "node-0"), "True");
    assert_ne!(world.objects[&Key::node("node-1")]["status"]["nodeInfo"]["bootID"], boot);
    let container = &world.objects[&pod]["status"]["containerStatuses"][0];
    assert_eq!((&container["restartCount"], &container["ready"]), (&json!(1), &json!(true)));
}

#[test]
fn old_news_are_not_taken_for_new() {
    let mut world = World::new("nodes: [{count: 1}]");
    let key = world.pod("a", "node-0");
    let old = world.objects[&key].clone();
    world.run_until(at(5));
    world.kubelets.changed(&key, Some(&old.into()), at(6));
    assert_eq!(world.run(at(6)), 0);
}

#[test]
fn an_answer_brings_nothing_back_that_is_gone() {
    let mut world = World::new("nodes: [{count: 1}]");
    let key = world.pod("a", "node-0");
    let old = SharedObject::from(world.objects[&key].clone());
    let status = WriteRequest::status(key.clone(), &old, json!({}));
    let response = WriteResponse::Done(Some(old.clone()));
    world.kubelets.changed(&key, None, at(5));
    let mut parts: [Box<dyn Component>; 1] = [Box::new(world.kubelets)];
    crate::component::apply_response(&mut parts, &status, &response, at(6));
    assert!(!parts[0].knows(&key));
    // Made again under the same name: what is told of the former one is old.
    let mut new = Value::clone(&old);
    (new["metadata"]["uid"], new["metadata"]["resourceVersion"]) = (json!("new"), json!("900"));
    parts[0].changed(&key, Some(&new.into()), at(6));
    crate::component::apply_response(&mut parts, &status, &response, at(7));
    let Some(request) = parts[0].due(at(9)).into_iter().find(|request| request.key == key) else {
        panic!("the new pod is let down");
    };
    let WriteVerb::MergeStatus(patch) = request.write else { panic!("{request:?}") };
    assert_eq!(patch["metadata"]["uid"], "new");
}

#[test]
fn a_node_that_is_called_unknown_while_it_reports_reports_again() {
    let mut world = World::new("nodes: [{count: 1}]");
    let key = Key::node("node-0");
    let unknown = |node: &mut Value| {
        let conditions = node["status"]["conditions"].as_array_mut().unwrap();
        for condition in conditions {
            condition["status"] = json!("Unknown");
        }
    };
    let mut node = world.objects[&key].clone();
    unknown(&mut node);
    world.put(&key, node, at(50));
    let reports = |requests: Vec<WriteRequest>| requests.into_iter().find(|r| r.key == key);
    let first = reports(world.kubelets.due(at(50))).expect("it is there");
    world.carry_out(&first, at(50));
    let mut node = world.objects[&key].clone();
    unknown(&mut node);
    world.put(&key, node, at(50));
    assert_eq!(reports(world.kubelets.due(at(50))), None, "the response is on its way");
    world.kubelets.handle_response(&first, &WriteResponse::Done(None), at(51));
    assert!(reports(world.kubelets.due(at(51))).is_some());
}

#[test]
fn a_node_that_somebody_made_gets_what_its_kubelet_reports() {
    let mut world = World::new("");
    let made = |status: Value| {
        json!({"metadata": {"name": "made", "annotations": {"sim.convoy.dev/node": "true"}},
            "status": status})
    };
    let key = Key::node("made");
    world.put(&key, made(json!({})), at(1));
    world.run(at(1));
    let status = world.objects[&key]["status"].clone();
    assert_eq!(
        (&status["capacity"]["cpu"], &status["allocatable"]["pods"]),
        (&json!("8"), &json!("110"))
    );
    assert_eq!(status["nodeInfo"]["kubeletVersion"], "v1.37.0");
    assert!(!status["nodeInfo"]["bootID"].as_str().unwrap().is_empty());
    assert_eq!(world.run(at(2)), 0, "it is said once");
    world.put(&key, made(json!({"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}})), at(3));
    world.run(at(3));
    let status = &world.objects[&key]["status"];
    assert_eq!(status["allocatable"], json!({"cpu": "1"}), "what it says of itself stays");
}

#[test]
fn a_pod_that_its_node_has_no_room_for_is_refused() {
    let mut world = World::new("nodes: [{count: 1, capacity: {cpu: '2', pods: '3'}}]");
    let mut put = |name: &str, cpu: &str| {
        let key = Key::pod("shop", name);
        let container =
            json!({"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu}}});
        let pod = json!({"metadata": {"name": name, "namespace": "shop"}, "status": {},
            "spec": {"nodeName": "node-0", "containers": [container]}});
        world.put(&key, pod, at(0));
        world.run(at(0));
        key
    };
    let keys = [put("a", "1500m"), put("b", "1"), put("c", "500m"), put("d", "0"), put("e", "0")];
    world.run_until(at(10));
    let status = |key: &Key| &world.objects[key]["status"];
    let told = keys.each_ref().map(|key| {
        let word = |name: &str| status(key)[name].as_str().unwrap_or_default().to_owned();
        (word("phase"), word("reason"))
    });
    let is = |phase: &str, reason: &str| (phase.to_owned(), reason.to_owned());
    let (running, no_cpu) = (is("Running", ""), is("Failed", "OutOfcpu"));
    assert_eq!(
        told,
        [running.clone(), no_cpu, running.clone(), running, is("Failed", "OutOfpods")]
    );
    let message = "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, \
        used: 1500, capacity: 2000";
    assert_eq!(status(&keys[1])["message"], message);
}

#[test]
fn a_pod_whose_port_is_taken_is_refused() {
    let mut world = World::new("nodes: [{count: 1}]");
    let keys = ["a", "b", "c"].map(|name| {
        let key = Key::pod("shop", name);
        let number = if name == "c" { 81 } else { 80 };
        let container = json!({"name": "c", "image": "nginx", "ports": [{"hostPort": number}]});
        let pod = json!({"metadata": {"name": name, "namespace": "shop"}, "status": {},
            "spec": {"nodeName": "node-0", "containers": [container]}});
        world.put(&key, pod, at(0));
        world.run(at(0));
        key
    });
    world.run_until(at(10));
    let phases = keys.each_ref().map(|key| world.objects[key]["status"]["phase"].clone());
    assert_eq!(phases, [json!("Running"), json!("Failed"), json!("Running")]);
    let status = &world.objects[&keys[1]]["status"];
    assert_eq!(status["reason"], "NodePorts");
    assert_eq!(
        status["message"],
        "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the \
         requested pod ports"
    );
}

#[test]
fn a_node_that_is_closed_to_the_scheduler_takes_pods_that_name_it() {
    let mut world = World::new("nodes: [{count: 1, capacity: {pods: '0'}}]");
    let key = world.pod("a", "node-0");
    world.run_until(at(10));
    assert_eq!(world.objects[&key]["status"]["phase"], "Running");
}
