//! The dialect as a whole: worlds in, steps out.

use convoy_api::{Object, ObjectKey};
use convoy_testkit::{Builder, NOW, karpenter, object};
use serde_json::{Value, json};

use super::Karpenter;
use crate::dialect::Dialect;
use crate::hold::Names;
use crate::{Action, HoldReason, Step, Verb, Verdict, World, Write};

mod consolidation;
mod counts;
mod drain;
mod faults;
mod gates;
mod lifecycle;
mod provision;
mod registrations;
mod told;
mod upstream;

const EARLIER_HASH: &str = "1";

fn pool(disruption: &Value) -> Object {
    karpenter::pool("default", disruption).build()
}

fn drifting() -> Object {
    unlimited().build()
}

/// A pool whose nodes may all be disrupted at once.
fn unlimited() -> Builder {
    let disruption = json!({"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]});
    karpenter::pool("default", &disruption)
}

fn drifted(name: &str) -> Builder {
    karpenter::claim("default", name).annotation("karpenter.sh/nodepool-hash", EARLIER_HASH)
}

fn node(name: &str) -> Builder {
    karpenter::node_of("default", name)
}

fn step(objects: impl IntoIterator<Item = Object>) -> Step {
    step_without_class(objects.into_iter().chain([karpenter::node_class().build()]))
}

fn step_without_class(objects: impl IntoIterator<Item = Object>) -> Step {
    let world: World = objects.into_iter().collect();
    let pool = Karpenter.rollouts(&world)[0];
    Karpenter.step(&Karpenter.snapshot(&world, pool), NOW.parse().unwrap())
}

fn disrupted(step: &Step) -> Vec<&str> {
    step.decision["disrupt"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

fn creates(action: &Action) -> bool {
    matches!(action.write, Write::Create { .. })
}

fn pdb(name: &str, allowed: i64) -> Object {
    object("policy/v1", "PodDisruptionBudget", name)
        .namespace("default")
        .spec(json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}))
        .status(json!({"disruptionsAllowed": allowed}))
        .build()
}

#[test]
fn nodes_are_refused_in_upstreams_words() {
    let protect = "karpenter.sh/do-not-disrupt";
    let pod = || karpenter::pod("p", "n", "100m");
    let cases: Vec<(&str, Vec<Object>)> = vec![
        (
            "disruption is blocked through the \"karpenter.sh/do-not-disrupt\" annotation",
            vec![drifted("n").build(), node("n").annotation(protect, "true").build()],
        ),
        ("nodeclaim does not have an associated node", vec![drifted("n").build()]),
        (
            "node isn't initialized",
            vec![
                drifted("n").build(),
                node("n").label("karpenter.sh/initialized", "false").build(),
            ],
        ),
        (
            "node is deleting or marked for deletion",
            vec![
                drifted("n").with("/metadata/deletionTimestamp", json!(NOW)).build(),
                node("n").build(),
            ],
        ),
        (
            "pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/p)",
            vec![
                drifted("n").build(),
                node("n").build(),
                pod().annotation(protect, "true").build(),
            ],
        ),
        (
            "pdb prevents pod evictions (PodDisruptionBudget=[default/web])",
            vec![drifted("n").build(), node("n").build(), pod().build(), pdb("web", 0)],
        ),
        (
            "eviction does not support multiple PDBs (PodDisruptionBudget(s)=[default/one default/two])",
            vec![
                drifted("n").build(),
                node("n").build(),
                pod().build(),
                pdb("one", 1),
                pdb("two", 1),
            ],
        ),
        ("node isn't managed by karpenter", vec![node("n").build()]),
    ];
    for (text, mut objects) in cases {
        objects.push(drifting());
        let step = step(objects);
        assert_eq!(step.decision["notDisruptable"]["n"], text);
        assert_eq!(disrupted(&step), [""; 0], "{text}");
    }
}

#[test]
fn a_pod_is_protected_for_as_long_as_it_says() {
    let pod = |value: &str| {
        karpenter::pod("p", "n", "100m").annotation("karpenter.sh/do-not-disrupt", value).build()
    };
    // The pod started 24 hours ago.
    for (value, goes) in [("25h", false), ("23h", true), ("soon", true), ("-1h", true)] {
        let step = step([drifting(), drifted("n").build(), node("n").build(), pod(value)]);
        assert_eq!(!disrupted(&step).is_empty(), goes, "{value}");
        if !goes {
            assert_eq!(step.wake_at, Some("2026-01-01T01:00:00Z".parse().unwrap()));
            let hold = &step.holds[0];
            assert_eq!(hold.reason, HoldReason::PodProtected { pod: "default/p".into() });
        }
    }
}

#[test]
fn a_start_reserves_commits_and_only_then_deletes() {
    let step = step([drifting(), drifted("n").build(), node("n").build()]);
    let verbs: Vec<&str> = step.actions.iter().map(|action| action.verb.into()).collect();
    assert_eq!(verbs, ["Taint", "Start", "Start", "Remove"]);
    let Write::Patch { patch, .. } = &step.actions[2].write else { panic!("a patch") };
    let conditions = patch["status"]["conditions"].as_array().unwrap();
    let reason = conditions.iter().find(|entry| entry["type"] == "DisruptionReason").unwrap();
    assert_eq!((&reason["status"], &reason["reason"]), (&json!("True"), &json!("Drifted")));
    assert_eq!(step.verdict, Verdict::Moving);
}

#[test]
fn a_node_whose_pods_fit_nowhere_gets_a_replacement_first() {
    let pod = karpenter::pod("p", "n", "3").build();
    let step = step([drifting(), drifted("n").build(), node("n").build(), pod]);
    let created = step.actions.iter().find(|action| creates(action)).unwrap();
    let Write::Create { object } = &created.write else { panic!("a claim") };
    assert_eq!(object["metadata"]["labels"]["karpenter.kwok.sh/kwoknodeclass"], "default");
    assert_eq!(object["metadata"]["annotations"]["karpenter.sh/nodepool-hash"], karpenter::HASH);
    assert_eq!(object["spec"]["resources"]["requests"]["cpu"], "3000m");
    assert!(step.actions.iter().all(|action| !matches!(action.verb, Verb::Remove(_))));
    let huge = karpenter::pod("p", "n", "1000").build();
    let stranded = self::step([drifting(), drifted("n").build(), node("n").build(), huge]);
    assert_eq!(disrupted(&stranded), [""; 0]);
    let HoldReason::NotDisruptable { detail } = &stranded.holds[0].reason else { panic!("held") };
    assert!(detail.contains("pod default/p fits on no other node"), "{detail}");
}

#[test]
fn a_dear_node_is_replaced_by_a_cheaper_one() {
    let kind = "node.kubernetes.io/instance-type";
    let large = |builder: Builder| {
        builder.label(kind, "s-64x-amd64-linux").label("karpenter.sh/capacity-type", "on-demand")
    };
    let room =
        json!({"cpu": "63900m", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "20Gi"});
    let policy = pool(&json!({"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}));
    let objects = |cpu: &str| {
        [
            policy.clone(),
            large(karpenter::claim("default", "n")).build(),
            large(node("n")).with("/status/allocatable", room.clone()).build(),
            karpenter::pod("p", "n", cpu).build(),
        ]
    };
    assert_eq!(disrupted(&step(objects("2"))), ["n"]);
    let needed = step(objects("60"));
    // 64 cpus are needed, but spot costs less than on demand.
    assert_eq!(disrupted(&needed), ["n"]);
    let mut settled = objects("60");
    let spot = |object: &Object| {
        let mut raw = object.raw().clone();
        raw["metadata"]["labels"]["karpenter.sh/capacity-type"] = json!("spot");
        object.with_raw(raw)
    };
    settled[1] = spot(&settled[1]);
    settled[2] = spot(&settled[2]);
    let step = step(settled);
    assert_eq!(disrupted(&step), [""; 0]);
    let HoldReason::NotDisruptable { detail } = &step.holds[0].reason else { panic!("held") };
    assert!(detail.starts_with("SpotToSpotConsolidation is disabled"), "{detail}");
}

#[test]
fn pods_that_must_be_apart_get_nodes_of_their_own() {
    let rule = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let apart = json!([{"topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}}}]);
    let replacements = |is_apart: bool| {
        let pod = |name: &str, at: &str| {
            let pod = karpenter::pod(name, at, "100m");
            if is_apart { pod.with(rule, apart.clone()) } else { pod }.build()
        };
        let current = karpenter::pair("default", "b");
        let old = [drifted("a").build(), node("a").build()];
        let step =
            step(old.into_iter().chain(current).chain([drifting(), pod("p", "a"), pod("q", "b")]));
        assert_eq!(disrupted(&step), ["a"]);
        step.actions.iter().filter(|action| creates(action)).count()
    };
    assert_eq!((replacements(false), replacements(true)), (0, 1));
}

#[test]
fn a_static_pool_without_room_says_which_limit_is_full() {
    let pool = |replicas: i64| {
        let pool = karpenter::pool("default", &json!({"budgets": [{"nodes": "100%"}]}));
        pool.with("/spec/replicas", json!(replicas))
            .with("/spec/limits", json!({"nodes": 2}))
            .build()
    };
    let full = HoldReason::BudgetSpent {
        limit: "spec.limits.nodes",
        in_flight: 2,
        ceiling: 2,
        by: Names::default(),
    };
    let pair = |name: &str| [drifted(name).build(), node(name).build()];
    let scaled = step(pair("a").into_iter().chain(pair("b")).chain([pool(3)]));
    let hold = scaled.holds.iter().find(|hold| hold.member.is_none()).unwrap();
    assert_eq!((&hold.reason, scaled.verdict), (&full, Verdict::Moving));
    let drifting = step(pair("a").into_iter().chain(pair("b")).chain([pool(2)]));
    assert_eq!(disrupted(&drifting), [""; 0]);
    let reasons: Vec<_> = drifting.holds.iter().map(|hold| hold.reason.clone()).collect();
    assert_eq!(reasons, [full.clone(), full]);
}

#[test]
fn a_static_pool_scales_down_before_it_replaces_drifted_nodes() {
    let pool = karpenter::pool("default", &json!({"budgets": [{"nodes": "100%"}]}))
        .with("/spec/replicas", json!(1))
        .build();
    let pair = |name: &str| [drifted(name).build(), node(name).build()];
    let step = step(pair("a").into_iter().chain(pair("b")).chain([pool]));
    assert_eq!(disrupted(&step), [""; 0]);
    let on = "the NodePool to scale down from 2 to 1 nodes".to_owned();
    let hold = step.holds.iter().find(|hold| hold.member.as_deref() == Some("b")).unwrap();
    assert_eq!(hold.reason, HoldReason::Depends { on });
}

/// A claim whose Node is being deleted, with pods on it.
fn leaving(claim: Builder, pods: Vec<Object>) -> Step {
    let claim = claim.with("/metadata/deletionTimestamp", json!(NOW)).build();
    let node = node("n").with("/metadata/deletionTimestamp", json!(NOW)).build();
    step([drifting(), claim, node].into_iter().chain(pods))
}

fn evicted(step: &Step) -> Vec<&ObjectKey> {
    let evictions =
        step.actions.iter().filter(|action| matches!(action.write, Write::Evict { .. }));
    evictions.map(|action| &action.target).collect()
}

#[test]
fn a_node_is_drained_group_by_group_as_budgets_allow() {
    let critical = |name: &str| {
        karpenter::pod(name, "n", "1")
            .with("/spec/priorityClassName", json!("system-node-critical"))
            .build()
    };
    let plain = |name: &str| karpenter::pod(name, "n", "1").build();
    let first = leaving(drifted("n"), vec![plain("a"), plain("b"), critical("c")]);
    assert_eq!(evicted(&first).iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let then = leaving(drifted("n"), vec![critical("c")]);
    assert_eq!(evicted(&then).len(), 1);
    let budgeted = leaving(drifted("n"), vec![plain("a"), plain("b"), pdb("web", 1)]);
    assert_eq!(evicted(&budgeted).len(), 1);
    let held = budgeted.holds.iter().find(|hold| hold.member.is_some()).unwrap();
    let reason = HoldReason::PodDisruptionBudget {
        budget: "default/web".into(),
        pod: "default/b".into(),
        allowed: 0,
    };
    assert_eq!(held.reason, reason);
}

#[test]
fn draining_goes_on_when_the_protection_of_a_pod_ends() {
    let guarded = |value: &str| {
        let pod = karpenter::pod("p", "n", "1");
        vec![pod.annotation("karpenter.sh/do-not-disrupt", value).build()]
    };
    // The pod started 24 hours ago.
    let waits = leaving(drifted("n"), guarded("25h"));
    assert_eq!(evicted(&waits).len(), 0);
    assert_eq!(waits.wake_at, Some("2026-01-01T01:00:00Z".parse().unwrap()));
    assert_eq!(evicted(&leaving(drifted("n"), guarded("23h"))).len(), 1);
}

#[test]
fn nodes_that_are_drained_at_once_share_a_pod_budget() {
    let leaves = |builder: Builder| builder.with("/metadata/deletionTimestamp", json!(NOW)).build();
    let pair = |name: &str| {
        let pod = karpenter::pod(&format!("p-{name}"), name, "1").build();
        [leaves(drifted(name)), leaves(node(name)), pod]
    };
    let step = step(pair("a").into_iter().chain(pair("b")).chain([drifting(), pdb("web", 1)]));
    assert_eq!(evicted(&step).len(), 1);
}

#[test]
fn a_deadline_overrides_what_pods_ask_for() {
    let guarded = || {
        let pod = karpenter::pod("p", "n", "1").annotation("karpenter.sh/do-not-disrupt", "true");
        vec![pod.with("/spec/terminationGracePeriodSeconds", json!(60)).build()]
    };
    let waits = leaving(drifted("n").with("/spec/terminationGracePeriod", json!("5m")), guarded());
    assert_eq!(evicted(&waits).len(), 0);
    assert_eq!(
        waits.wake_at,
        Some("2026-01-01T00:04:00Z".parse().unwrap()),
        "a minute before the deadline"
    );
    let within = |period: &str| drifted("n").with("/spec/terminationGracePeriod", json!(period));
    let grace = |step: &Step| {
        step.actions.iter().find_map(|action| match action.write {
            Write::Delete { grace_secs, .. } if action.verb == Verb::Drain => grace_secs,
            _ => None,
        })
    };
    assert_eq!(grace(&leaving(within("1m"), guarded())), None, "due after that, not at it");
    assert_eq!(grace(&leaving(within("20s"), guarded())), Some(20), "what is left of the minute");
    let silent = vec![karpenter::pod("p", "n", "1").build()];
    assert_eq!(grace(&leaving(within("20s"), silent)), None, "it names no grace period");
    let ending = |at: &str| {
        let pod = karpenter::pod("p", "n", "1").with("/metadata/deletionTimestamp", json!(at));
        vec![pod.with("/metadata/deletionGracePeriodSeconds", json!(60)).build()]
    };
    assert_eq!(grace(&leaving(within("20s"), ending("2026-01-01T00:01:00Z"))), Some(20));
    assert_eq!(grace(&leaving(within("20s"), ending("2026-01-01T00:00:21Z"))), None);
}
