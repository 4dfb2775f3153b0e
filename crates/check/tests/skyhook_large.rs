//! Skyhooks on fleets whose nodes no single object could name, and what is kept on the nodes
//! instead.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

use convoy_api::{GroupKind, ObjectKey};
use convoy_check::{Applier, check};
use convoy_plan::dialect::skyhook::{Options, Skyhook};
use convoy_plan::{HoldReason, Step, World, decide, plan};
use convoy_testkit::{Builder, NOW, node, object};
use serde_json::{Value, json};

const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");
const BOOT: &str = "skyhook.nvidia.com/bootId_tune";

fn skyhook() -> Builder {
    let spec = json!({"interruptionBudget": {"percent": 100},
        "packages": {"pa": {"version": "1.0.0", "image": "x"}}});
    object("skyhook.nvidia.com/v1alpha1", "Skyhook", "tune").spec(spec)
}

fn world(objects: impl Iterator<Item = Builder>) -> World {
    objects.chain([skyhook()]).map(Builder::build).collect()
}

fn size(value: &Value) -> usize {
    serde_json::to_string(value).unwrap().len()
}

/// The ceiling is the whole fleet, but a status that named all of it could not be stored.
#[test]
fn a_batch_takes_no_more_nodes_than_can_be_put_on_record() {
    let total = 24_000;
    let world = world((0..total).map(|at| node(&format!("worker-{at:05}"))));
    let plan = plan(&world, NOW.parse().unwrap());
    assert_eq!(check(&world, &plan), []);
    let step = &plan.steps[0];
    let picked = step.status.as_ref().unwrap()["nodePriority"].as_object().unwrap().len();
    assert!((8_000..total).contains(&picked), "{picked} nodes are on record");
    let held = step.holds.iter().filter(|hold| {
        matches!(&hold.reason, HoldReason::BudgetSpent { limit, .. }
            if *limit == "the record of picked nodes")
    });
    assert_eq!(held.count() + picked, total);
}

/// Nodes that fail one after the other do not fill the record until nobody can be picked.
#[test]
fn failed_nodes_give_way_on_record_to_those_that_are_picked() {
    let failed = json!({"pa|1.0.0": {"name": "pa", "version": "1.0.0", "image": "x",
        "stage": "apply", "state": "erroring", "restarts": 3}})
    .to_string();
    let key = "skyhook.nvidia.com/nodeState_tune";
    let names: Vec<String> = (0..24_000).map(|at| format!("worker-{at:05}")).collect();
    let nodes = names.iter().map(|name| node(name).annotation(key, &failed));
    let listed: Value = names.iter().map(|name| (name.clone(), json!(NOW))).collect();
    let fresh = node("fresh-1");
    let mut world = world(nodes.chain([fresh]));
    let status = json!({"nodePriority": listed});
    world.insert(skyhook().status(status).build());
    let plan = plan(&world, NOW.parse().unwrap());
    assert_eq!(check(&world, &plan), []);
    let status = plan.steps[0].status.as_ref().unwrap();
    assert!(status["nodePriority"].get("fresh-1").is_some(), "it was picked");
    assert!(size(status) < 1_000_000);
}

fn reapplying(world: &World) -> Step {
    let options = Options { reapply_on_reboot: true, ..Options::new() };
    let key: ObjectKey = SKYHOOK.key("", "tune");
    decide(&Skyhook { options }, world, &[], &key, NOW.parse().unwrap()).unwrap()
}

fn booted(name: &str, boot: &str) -> Builder {
    node(name).status(json!({"nodeInfo": {"bootID": boot}}))
}

/// Which boot a node runs stands on the node, whatever the size of the fleet.
#[test]
fn a_reboot_is_noticed_by_what_the_node_carries() {
    let done = json!({"pa|1.0.0": {"name": "pa", "version": "1.0.0", "image": "x",
        "stage": "config", "state": "complete"}})
    .to_string();
    let key = "skyhook.nvidia.com/nodeState_tune";
    let nodes = (0..600).map(|at| booted(&format!("n{at:03}"), "first").annotation(key, &done));
    let mut applier = Applier::new(world(nodes), NOW.parse().unwrap());
    for _ in 0..20 {
        applier.apply(&reapplying(applier.world())).unwrap();
    }
    let nodes = GroupKind::new("", "Node");
    let boots = |applier: &Applier, boot: &str| {
        applier.world().of(&nodes).filter(|node| node.annotation(BOOT) == Some(boot)).count()
    };
    assert_eq!(boots(&applier, "first"), 600);
    let status = applier.world().find(&SKYHOOK, "", "tune").unwrap().status().clone();
    assert_eq!(status.get("nodeBootIds"), None, "it would grow with the fleet");

    applier
        .edit(&nodes.key("", "n007"), |raw| raw["status"]["nodeInfo"]["bootID"] = json!("second"));
    let step = reapplying(applier.world());
    applier.apply(&step).unwrap();
    let node = applier.world().find(&nodes, "", "n007").unwrap();
    assert_eq!((node.annotation(BOOT), node.annotation(key)), (Some("second"), None));
    assert_eq!(boots(&applier, "first"), 599, "nobody else starts over");
}
