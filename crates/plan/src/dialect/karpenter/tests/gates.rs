//! What is behind upstream's feature gates: node repair, spot nodes for spot nodes, static pools.

use convoy_api::Object;
use convoy_testkit::{Builder, NOW, karpenter};
use serde_json::{Value, json};

use super::{creates, disrupted, drifted, drifting, node, pool};
use crate::dialect::Dialect;
use crate::dialect::karpenter::names::NODE_POOL;
use crate::dialect::karpenter::{Gates, Operator};
use crate::{Action, HoldReason, Step, Verb, Verdict, World, Write};

const SPOT_TO_SPOT: Gates = Gates { spot_to_spot_consolidation: true, ..Gates::new() };
const REPAIR: Gates = Gates { node_repair: true, ..Gates::new() };
const NOT_STATIC: Gates = Gates { static_capacity: false, ..Gates::new() };

fn step(gates: Gates, objects: impl IntoIterator<Item = Object>) -> Step {
    let world: World = objects.into_iter().chain([karpenter::node_class().build()]).collect();
    let operator = Operator { gates };
    let pool = world.of(&NODE_POOL).next().unwrap();
    operator.step(&operator.snapshot(&world, pool), NOW.parse().unwrap())
}

/// A node that says since when it is not ready.
fn unready(name: &str, since: &str) -> Object {
    let condition = json!([{"type": "Ready", "status": "Unknown", "lastTransitionTime": since}]);
    node(name).with("/status/conditions", condition).build()
}

fn removed(step: &Step) -> Vec<&str> {
    let removes = |action: &&Action| matches!(action.verb, Verb::Remove(_));
    step.actions.iter().filter(removes).map(|action| action.target.name.as_str()).collect()
}

/// Five nodes of a pool that forbids every disruption, of which some are unhealthy.
fn five(unhealthy: &[(&str, &str)]) -> Vec<Object> {
    let names = ["a", "b", "c", "d", "e"];
    let protected = |name: &str| {
        let since = unhealthy.iter().find(|(one, _)| *one == name);
        since.map_or_else(|| node(name).build(), |(_, since)| unready(name, since))
    };
    let mut objects =
        vec![pool(&json!({"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}))];
    for name in names {
        objects.extend([karpenter::claim("default", name).build(), protected(name)]);
    }
    objects
}

#[test]
fn a_node_that_stays_unhealthy_is_deleted_at_once_whatever_budgets_say() {
    let long_ago = "2025-12-31T23:50:00Z";
    let step = step(REPAIR, five(&[("b", long_ago)]));
    assert_eq!(removed(&step), ["b"]);
    let deadline = step.actions.iter().find_map(|action| match &action.write {
        Write::Patch { patch, .. } => patch
            .pointer("/metadata/annotations/karpenter.sh~1nodeclaim-termination-timestamp")
            .cloned(),
        _ => None,
    });
    assert_eq!(deadline, Some(json!(NOW)), "nothing is waited for");
    let counted = step.counts.iter().map(|it| it.metric.name);
    let unhealthy = "karpenter_nodeclaims_unhealthy_disrupted";
    assert_eq!(counted.collect::<Vec<_>>(), [unhealthy, "karpenter_nodeclaims_disrupted"]);
    assert_eq!(removed(&self::step(Gates::new(), five(&[("b", long_ago)]))), [""; 0]);
    let soon = self::step(REPAIR, five(&[("b", "2025-12-31T23:50:01Z")]));
    assert_eq!(removed(&soon), [""; 0]);
    assert_eq!(soon.wake_at, Some("2026-01-01T00:00:01Z".parse().unwrap()));
}

#[test]
fn nothing_is_repaired_while_much_of_a_pool_is_unhealthy() {
    let (long_ago, just_now) = ("2025-12-31T23:00:00Z", "2025-12-31T23:59:59Z");
    // One of five is 20%, and the one that is unhealthy only since now counts too.
    let step = step(REPAIR, five(&[("b", long_ago), ("d", just_now)]));
    assert_eq!(removed(&step), [""; 0]);
    let hold = step.holds.iter().find(|hold| hold.member.as_deref() == Some("b")).unwrap();
    let told = hold.reason.to_string();
    assert_eq!(told, "node repair (20% of the pool) allows 1, but 2 are in use by b, d");
    let events: Vec<_> = step.events.iter().filter(|it| it.reason == "NodeRepairBlocked").collect();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].regarding.kind.kind, "Node");
}

/// A spot node of a type, and a pod on it that needs a cpu.
fn spot(kind: &str) -> Vec<Object> {
    let labelled = |builder: Builder| {
        builder
            .label("node.kubernetes.io/instance-type", kind)
            .label("karpenter.sh/capacity-type", "spot")
    };
    vec![
        pool(&json!({"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]})),
        labelled(karpenter::claim("default", "n")).build(),
        labelled(node("n")).build(),
        karpenter::pod("p", "n", "1").build(),
    ]
}

fn told(step: &Step) -> String {
    let HoldReason::NotDisruptable { detail } = &step.holds[0].reason else { panic!("{step:?}") };
    detail.clone()
}

#[test]
fn a_spot_node_is_replaced_by_a_spot_node_if_there_is_a_choice() {
    let off = step(Gates::new(), spot("s-4x-amd64-linux"));
    assert!(told(&off).starts_with("SpotToSpotConsolidation is disabled"), "{}", told(&off));
    let said = off.events.iter().filter(|event| event.reason == "Unconsolidatable");
    let said: Vec<_> = said.map(|event| (&*event.regarding.kind.kind, event.lasts)).collect();
    assert_eq!(said, [("Node", true), ("NodeClaim", true)]);
    assert!(off.events.iter().all(|event| event.message == told(&off)), "{:?}", off.events);
    let mut objects = spot("s-4x-amd64-linux");
    let on = step(SPOT_TO_SPOT, objects.clone());
    assert_eq!(disrupted(&on), ["n"]);
    // Validated for 15 s, and then asked for with the 15 cheapest types.
    let proposal = on.actions.iter().find_map(|action| match &action.write {
        Write::Patch { patch, .. } => {
            patch.pointer("/metadata/annotations/convoy.dev~1disruption-proposal")?.as_str()
        }
        _ => None,
    });
    let (id, _) = proposal.unwrap().split_once(' ').unwrap();
    let mut raw = objects[1].raw().clone();
    raw["metadata"]["annotations"]["convoy.dev/disruption-proposal"] =
        json!(format!("{id} 2025-12-31T23:00:00Z"));
    objects[1] = objects[1].with_raw(raw);
    let ripe = step(SPOT_TO_SPOT, objects);
    let created = ripe.actions.iter().find(|action| creates(action)).unwrap();
    let Write::Create { object } = &created.write else { panic!("a claim") };
    let values = |key: &str| -> Vec<Value> {
        let requirements = object["spec"]["requirements"].as_array().unwrap();
        let of_key = requirements.iter().find(|it| it["key"] == key).unwrap();
        of_key["values"].as_array().unwrap().clone()
    };
    assert_eq!(values("karpenter.sh/capacity-type"), ["spot"]);
    let types = values("node.kubernetes.io/instance-type");
    assert_eq!((types.len(), &types[0]), (15, &json!("c-2x-amd64-linux")));
    let few = step(SPOT_TO_SPOT, spot("m-2x-amd64-linux"));
    let why = "SpotToSpotConsolidation requires 15 cheaper instance type options than the current \
        candidate to consolidate, got 8";
    assert_eq!(told(&few), why);
}

#[test]
fn static_pools_stay_as_they_are_where_they_are_switched_off() {
    let pool = karpenter::pool("default", &json!({"budgets": [{"nodes": "100%"}]}))
        .with("/spec/replicas", json!(3))
        .build();
    let objects = || [pool.clone(), drifted("a").build(), node("a").build()];
    assert_eq!(disrupted(&step(Gates::new(), objects())), ["a"]);
    let off = step(NOT_STATIC, objects());
    assert_eq!((disrupted(&off), off.actions.iter().filter(|it| creates(it)).count()), (vec![], 0));
    assert_eq!(off.verdict, Verdict::Moving, "its conditions are written");
    let said: Vec<String> = off.holds.iter().map(|hold| hold.reason.to_string()).collect();
    assert!(said.iter().all(|it| it.contains("feature gate StaticCapacity")), "{said:?}");
    assert_eq!(said.len(), 2, "the node, and the pool");
}

#[test]
fn min_values_keep_a_choice_open() {
    let with = |least: i64| {
        let family = json!([{"key": "karpenter.kwok.sh/instance-family", "operator": "Exists",
            "minValues": least}]);
        let mut raw = drifting().raw().clone();
        raw["spec"]["template"]["spec"]["requirements"] = family;
        let pool = drifting().with_raw(raw);
        step(
            Gates::new(),
            [pool, drifted("n").build(), node("n").build(), karpenter::pod("p", "n", "3").build()],
        )
    };
    assert_eq!(disrupted(&with(3)), ["n"]);
    let short = with(4);
    assert_eq!(disrupted(&short), [""; 0]);
    assert!(told(&short).contains("no pool could make one for it"), "{}", told(&short));
}

#[test]
fn min_values_count_when_machines_are_dropped_for_their_price() {
    let sizes = |least: i64| {
        let mut objects = spot("s-4x-amd64-linux");
        let mut raw = objects[0].raw().clone();
        raw["spec"]["template"]["spec"]["requirements"] = json!([{
            "key": "karpenter.kwok.sh/instance-cpu", "operator": "Exists", "minValues": least}]);
        objects[0] = objects[0].with_raw(raw);
        for at in [1, 2] {
            let mut raw = objects[at].raw().clone();
            raw["metadata"]["labels"]["karpenter.kwok.sh/instance-cpu"] = json!("4");
            objects[at] = objects[at].with_raw(raw);
        }
        step(SPOT_TO_SPOT, objects)
    };
    // Only machines of two and four cpus are cheaper.
    assert_eq!(disrupted(&sizes(2)), ["n"]);
    let why = "Filtering by price: minValues requirement is not met for label(s) \
        (label(s)=[karpenter.kwok.sh/instance-cpu])";
    assert_eq!(told(&sizes(3)), why);
}
