//! New nodes: which of them pods get, with which labels, and when.

use convoy_api::Object;
use convoy_testkit::{Builder, karpenter, object};
use serde_json::{Value, json};

use super::{disrupted, drifted, drifting, node, step, unlimited};
use crate::{HoldReason, Step, Write};

/// A Ready pool whose template requires this of nodes.
fn ready(requirements: &Value) -> Object {
    karpenter::pool("default", &json!({"consolidateAfter": "Never"}))
        .with("/spec/template/spec/requirements", requirements.clone())
        .status(json!({"conditions": [karpenter::is("Ready")]}))
        .build()
}

/// A pod that the scheduler found no node for at `since`.
fn refused(name: &str, since: &str) -> Builder {
    object("v1", "Pod", name)
        .namespace("default")
        .spec(json!({"containers": [{"name": "c", "image": "i",
            "resources": {"requests": {"cpu": "500m"}}}]}))
        .status(json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
            "status": "False", "reason": "Unschedulable", "lastTransitionTime": since}]}))
}

fn waiting(name: &str) -> Builder {
    refused(name, "2025-12-31T23:59:00Z")
}

/// The same with a port of the node.
fn serving(name: &str, port: i64) -> Object {
    let container = json!({"name": "c", "image": "i", "ports": [{"hostPort": port}],
        "resources": {"requests": {"cpu": "500m"}}});
    waiting(name).spec(json!({"containers": [container]})).build()
}

fn created(step: &Step) -> Vec<&Value> {
    let creates = step.actions.iter().filter_map(|action| match &action.write {
        Write::Create { object } => Some(object),
        _ => None,
    });
    creates.collect()
}

fn labels<'s>(step: &'s Step, key: &str) -> Vec<&'s str> {
    let mut values: Vec<&str> = created(step)
        .into_iter()
        .map(|claim| claim["metadata"]["labels"][key].as_str().unwrap_or("none"))
        .collect();
    values.sort_unstable();
    values
}

#[test]
fn nothing_is_disrupted_while_a_claim_has_no_machine() {
    let coming =
        || karpenter::claim("default", "m").with("/status", json!({"conditions": []})).build();
    let held = step([drifting(), drifted("n").build(), node("n").build(), coming()]);
    assert_eq!(disrupted(&held), [""; 0]);
    let on = "NodeClaim m to be launched".to_owned();
    let hold = held.holds.iter().find(|hold| hold.member.as_deref() == Some("n")).unwrap();
    assert_eq!(hold.reason, HoldReason::Depends { on });
    let free = step([drifting(), drifted("n").build(), node("n").build()]);
    assert_eq!(disrupted(&free), ["n"]);
}

/// A pool that gets a node every few seconds would never consolidate otherwise.
#[test]
fn a_proposal_outlives_a_claim_that_is_being_launched() {
    let disruption = json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s",
        "budgets": [{"nodes": "100%"}]});
    let pool = || karpenter::pool("default", &disruption).build();
    let proposed = || {
        let proposal = "empty 2025-12-31T23:59:50Z";
        karpenter::claim("default", "n").annotation("convoy.dev/disruption-proposal", proposal)
    };
    let coming =
        || karpenter::claim("default", "m").with("/status", json!({"conditions": []})).build();
    let drops = |others: Vec<Object>| {
        let step = step([pool(), proposed().build(), node("n").build()].into_iter().chain(others));
        step.actions.iter().any(|action| match &action.write {
            Write::Patch { patch, .. } => patch
                .pointer("/metadata/annotations/convoy.dev~1disruption-proposal")
                .is_some_and(Value::is_null),
            _ => false,
        })
    };
    assert!(!drops(vec![coming()]), "it is still empty");
    assert!(drops(vec![coming(), karpenter::pod("p", "n", "1").build()]), "it is not empty now");
}

#[test]
fn a_pool_that_makes_nothing_for_waiting_pods_says_why() {
    let told = |objects: Vec<Object>| {
        let step = step(objects);
        let hold = step.holds.into_iter().find(|hold| hold.member.is_none());
        (step.actions.len(), hold.map(|hold| hold.reason))
    };
    let unready = || karpenter::pool("default", &json!({"consolidateAfter": "Never"})).build();
    let on = "NodePool default to be Ready".to_owned();
    let waits = told(vec![unready(), waiting("a").build()]);
    assert_eq!(waits, (0, Some(HoldReason::Depends { on })));
    assert_eq!(told(vec![unready()]).1, None, "nobody waits");
    assert_eq!(told(vec![ready(&json!([])), waiting("a").build()]).1, None, "it makes a node");
}

#[test]
fn nodes_with_pods_of_one_size_are_replaced_one_for_one() {
    // By name, the pod of a later node comes before those of the nodes that go already.
    let of = |name: &str, pod: &str| {
        [drifted(name).build(), node(name).build(), karpenter::pod(pod, name, "3").build()]
    };
    let nodes = [of("a", "z"), of("b", "y"), of("c", "x")].into_iter().flatten();
    let step = step(nodes.chain([drifting()]));
    assert_eq!(disrupted(&step), ["a", "b", "c"]);
    let claims = created(&step).into_iter();
    let cpus: Vec<&Value> =
        claims.map(|claim| &claim["spec"]["resources"]["requests"]["cpu"]).collect();
    assert_eq!(cpus, ["3000m"; 3]);
}

#[test]
fn nodes_that_earlier_commands_ask_for_have_the_labels_of_their_pool() {
    let label =
        |pod: Builder, key: &str, value: &str| pod.with("/spec/nodeSelector", json!({key: value}));
    let of = |name: &str, pod: &dyn Fn(Builder) -> Builder| {
        [drifted(name).build(), node(name).build(), pod(karpenter::pod(name, name, "3")).build()]
    };
    let replaced = |pool: Builder, pod: &dyn Fn(Builder) -> Builder| {
        let nodes = [of("a", pod), of("b", pod), of("c", pod)].into_iter().flatten();
        created(&step(nodes.chain([pool.build()]))).len()
    };
    let labelled = unlimited().with("/spec/template/metadata/labels", json!({"team": "a"}));
    assert_eq!(replaced(unlimited(), &|pod| label(pod, "karpenter.sh/nodepool", "default")), 3);
    assert_eq!(replaced(labelled, &|pod| label(pod, "team", "a")), 3);
    let family = "karpenter.kwok.sh/instance-family";
    assert_eq!(replaced(unlimited(), &|pod| label(pod, family, "c")), 3);
}

#[test]
fn nodes_that_earlier_commands_ask_for_have_the_taints_of_their_pool() {
    let taint = json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]);
    let pool = unlimited().with("/spec/template/spec/taints", taint).build();
    let tolerates = json!([{"key": "dedicated", "operator": "Exists"}]);
    let allowed = karpenter::pod("a", "a", "3").with("/spec/tolerations", tolerates).build();
    let other = karpenter::pod("b", "b", "100m").build();
    let closed = json!([{"key": "closed", "effect": "NoSchedule"}]);
    let nodes = ["a", "b"].map(|name| {
        let node = node(name).with("/spec/taints", closed.clone());
        [drifted(name).build(), node.build()]
    });
    let step = step(nodes.into_iter().flatten().chain([pool, allowed, other]));
    assert_eq!(disrupted(&step), ["a"]);
    let hold = step.holds.iter().find(|hold| hold.member.as_deref() == Some("b")).unwrap();
    let said = format!("{:?}", hold.reason);
    assert!(said.contains("no pool could make one for it"), "{said}");
}

#[test]
fn a_node_that_comes_up_keeps_the_taints_that_stay() {
    let taint = json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]);
    let boots = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
    let made = |taints: &Value, startup: &Value| {
        let claim = karpenter::claim("default", "n").with("/spec/startupTaints", startup.clone());
        let node = node("n")
            .label("karpenter.sh/initialized", "false")
            .with("/spec/taints", taints.clone());
        let pod = refused("p", "2026-01-01T00:00:00Z").build();
        created(&step([ready(&json!([])), claim.build(), node.build(), pod])).len()
    };
    assert_eq!(made(&taint, &json!([])), 1, "its pods never come");
    assert_eq!(made(&taint, &taint), 0, "an agent removes it");
    assert_eq!(made(&boots, &json!([])), 0, "the kubelet removes it");
}

/// Twelve pods with the same port get a node each, and ten of them are told.
#[test]
fn pods_are_told_which_node_is_made_for_them() {
    let told = |pods: usize| {
        let pods = (0..pods).map(|at| serving(&format!("p{at}"), 80));
        let step = step([ready(&json!([]))].into_iter().chain(pods));
        let claims: Vec<String> = created(&step)
            .iter()
            .map(|claim| claim["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        let told = step.events.into_iter().filter(|event| event.reason == "Nominated");
        let told = told.map(|event| (event.regarding.name.to_string(), event.message));
        (claims, told.collect::<Vec<_>>())
    };
    let (claims, events) = told(2);
    let message = |at: usize| format!("Pod should schedule on: nodeclaim/{}", claims[at]);
    assert_eq!(events, [("p0".to_owned(), message(0)), ("p1".to_owned(), message(1))]);
    let (claims, events) = told(12);
    assert_eq!((claims.len(), events.len()), (12, 10));
}

#[test]
fn pods_that_want_the_same_port_get_nodes_of_their_own() {
    let pool = || ready(&json!([]));
    assert_eq!(created(&step([pool(), serving("p", 80), serving("q", 80)])).len(), 2);
    assert_eq!(created(&step([pool(), serving("p", 80), serving("q", 81)])).len(), 1);
}

/// A DaemonSet for machines of one architecture.
fn agent(arch: &str, spec: &Value) -> Object {
    let mut template = json!({"nodeSelector": {"kubernetes.io/arch": arch},
        "containers": [{"name": "c", "image": "i"}]});
    template["containers"][0]["resources"] = spec["resources"].clone();
    template["containers"][0]["ports"] = spec["ports"].clone();
    object("apps/v1", "DaemonSet", arch)
        .namespace("default")
        .spec(json!({"template": {"spec": template}}))
        .build()
}

/// The instance types that the first new claim may have.
fn types(step: &Step) -> Vec<String> {
    let claims = created(step);
    let all = claims[0]["spec"]["requirements"].as_array().unwrap().clone();
    let entry = all.into_iter().find(|entry| {
        entry["key"] == "node.kubernetes.io/instance-type" && entry["operator"] == "In"
    });
    serde_json::from_value(entry.unwrap()["values"].clone()).unwrap()
}

/// A `LimitRange` gives it two processors that its template does not ask for.
#[test]
fn agents_take_what_their_newest_pod_asks_for() {
    let pool =
        || ready(&json!([{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]));
    let agent = || agent("amd64", &json!({}));
    let small = |step: &Step| types(step).iter().any(|name| name == "c-1x-amd64-linux");
    assert!(small(&step([pool(), agent(), waiting("p").build()])));
    let of_agent = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "amd64",
        "uid": agent().uid(), "controller": true}]);
    let pod = |name: &str, cpu: &str, since: &str| {
        let pod = karpenter::pod(name, "n", cpu).created_at(since);
        pod.with("/metadata/ownerReferences", of_agent.clone()).build()
    };
    let here = || [karpenter::claim("default", "n").build(), node("n").build()];
    let (old, new) = ("2025-12-30T00:00:00Z", "2025-12-31T00:00:00Z");
    let claims_small = |pods: [Object; 2]| {
        let objects = [pool(), agent(), serving("p", 80), serving("q", 80)];
        small(&step(objects.into_iter().chain(here()).chain(pods)))
    };
    assert!(!claims_small([pod("a", "100m", old), pod("b", "2", new)]));
    assert!(claims_small([pod("a", "2", old), pod("b", "100m", new)]));
}

#[test]
fn agents_take_room_and_ports_only_of_the_machines_that_they_run_on() {
    let pool =
        || ready(&json!([{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]));
    let large = agent("arm64", &json!({"resources": {"requests": {"cpu": "2"}}}));
    let found = types(&step([pool(), large, waiting("p").build()]));
    assert!(found.iter().any(|name| name == "c-1x-amd64-linux"), "{found:?}");
    assert!(!found.iter().any(|name| name == "c-2x-arm64-linux"), "{found:?}");
    let server = agent("arm64", &json!({"ports": [{"hostPort": 80}]}));
    let found = types(&step([pool(), server, serving("p", 80)]));
    assert!(found.iter().all(|name| name.contains("amd64")), "{found:?}");
}

#[test]
fn a_new_node_has_the_labels_that_its_pool_requires() {
    let key = "example.com/team";
    let wants = |name: &str, team: &str| {
        waiting(name).with("/spec/nodeSelector", json!({key: team})).build()
    };
    let one_of = json!([{"key": key, "operator": "In", "values": ["a", "b"]}]);
    let some = json!([{"key": key, "operator": "Exists"}]);
    let above = json!([{"key": key, "operator": "Gt", "values": ["41"]}]);
    let none = json!([{"key": key, "operator": "DoesNotExist"}]);
    let cases = [
        ("the first", &one_of, vec![waiting("p").build()], vec!["a"]),
        ("what its pod wants", &one_of, vec![wants("p", "b")], vec!["b"]),
        ("a node each", &one_of, vec![wants("p", "a"), wants("q", "b")], vec!["a", "b"]),
        ("no such node", &one_of, vec![wants("p", "c")], vec![]),
        ("any that its pod wants", &some, vec![wants("p", "z")], vec!["z"]),
        ("any at all", &some, vec![waiting("p").build()], vec!["0"]),
        ("the least", &above, vec![waiting("p").build()], vec!["42"]),
        ("too small", &above, vec![wants("p", "7")], vec![]),
        ("without", &none, vec![waiting("p").build()], vec!["none"]),
    ];
    for (case, requirements, pods, expected) in cases {
        let step = step(pods.into_iter().chain([ready(requirements)]));
        assert_eq!(labels(&step, key), expected, "{case}");
    }
}

#[test]
fn pods_that_a_node_did_not_help_get_the_next_one_after_a_while() {
    let useless = |created: &str| {
        let taint = json!([{"key": "dedicated", "effect": "NoExecute"}]);
        let claim = karpenter::claim("default", "n").created_at(created);
        [claim.build(), node("n").with("/spec/taints", taint).build()]
    };
    let cases = [
        ("just made for it", "2025-12-31T23:59:57Z", "2025-12-31T23:59:55Z", 0),
        ("made a while ago", "2025-12-31T23:59:50Z", "2025-12-31T23:59:49Z", 1),
        ("made for others", "2025-12-31T23:59:57Z", "2025-12-31T23:59:58Z", 1),
        ("in one second, which is over", "2025-12-31T23:59:59Z", "2025-12-31T23:59:59Z", 1),
    ];
    for (case, made, since, expected) in cases {
        let pod = refused("p", since).build();
        let step = step(useless(made).into_iter().chain([ready(&json!([])), pod]));
        assert_eq!(created(&step).len(), expected, "{case}");
        let again = (expected == 0).then(|| "2026-01-01T00:00:07Z".parse().unwrap());
        assert_eq!(step.wake_at, again, "{case}");
    }
}

/// Nodes that leave made a pool ask for twelve nodes for one pod, all within a second.
#[test]
fn a_node_that_leaves_asks_for_one_replacement_at_most() {
    let taint = json!([{"key": "dedicated", "effect": "NoExecute"}]);
    let useless = |name: &str, created: &str| {
        let claim = karpenter::claim("default", name).created_at(created);
        [claim.build(), node(name).with("/spec/taints", taint.clone()).build()]
    };
    let claims = |newest: &str, leaving_pods: usize| {
        let gone = karpenter::claim("default", "old")
            .with("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))
            .with("/metadata/finalizers", json!(["karpenter.sh/termination"]));
        let pods =
            (0..leaving_pods).map(|at| karpenter::pod(&format!("q{at}"), "old", "1").build());
        let pending = refused("p", "2025-12-31T23:00:00Z").build();
        let objects = [gone.build(), node("old").build(), ready(&json!([])), pending];
        let step = step(useless("n", newest).into_iter().chain(objects).chain(pods));
        (created(&step).len(), step.wake_at.map(|at| at.to_string()))
    };
    let (before, now) = ("2025-12-31T23:59:57Z", "2026-01-01T00:00:00Z");
    let at = |instant: &str| Some(instant.to_owned());
    assert_eq!(claims(before, 0), (0, at("2026-01-01T00:00:07Z")), "it was empty");
    assert_eq!(claims(before, 1).0, 1, "its pods need another one");
    assert_eq!(claims(now, 1), (0, at("2026-01-01T00:00:01Z")), "which may be there");
}

#[test]
fn a_machine_that_is_on_its_way_is_a_host_of_its_own() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let rules = json!({
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}]}},
    });
    let pod = |name: &str| {
        let pod = refused(name, "2026-01-01T00:00:00Z").label("app", "web");
        let pod = pod.with("/spec/affinity", rules["affinity"].clone());
        pod.with("/spec/topologySpreadConstraints", rules["topologySpreadConstraints"].clone())
    };
    let coming = || karpenter::claim("default", "n").build();
    let pool = || ready(&json!([]));
    assert_eq!(created(&step([pool(), coming(), pod("p").build()])).len(), 0, "it is for this pod");
    let both = step([pool(), coming(), pod("p").build(), pod("q").build()]);
    assert_eq!(created(&both).len(), 1, "and not for two");
}
