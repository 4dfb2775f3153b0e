//! G11: an object that is refused is not an object that left. Whoever hangs on it stands still
//! and says so; everybody else is decided as before.

use convoy_api::ObjectKey;
use convoy_check::{Applier, check, settle};
use convoy_plan::{HoldReason, Plan, Step, Verdict, World, plan};
use convoy_testkit::{Builder, NOW, apps, fleet, karpenter, node, object, ocm};
use serde_json::{Value, json};

fn world(objects: impl IntoIterator<Item = Builder>) -> Applier {
    let world = objects.into_iter().map(Builder::build).collect();
    Applier::new(world, NOW.parse().expect("an instant"))
}

/// The world once its own plans have nothing more to do.
fn at_rest(mut world: Applier) -> Applier {
    settle(&mut world, 100, |_| false).expect("comes to rest");
    world
}

fn find(world: &World, kind: &str, name: &str) -> ObjectKey {
    let mut all = world.iter().filter(|it| it.kind().kind == kind && *it.name() == name);
    all.next().unwrap_or_else(|| panic!("there is a {kind} {name}")).key().clone()
}

/// The step of the dialect that moves a rollout: others may only judge it, and come first.
fn step_of<'p>(plan: &'p Plan, rollout: &ObjectKey) -> &'p Step {
    plan.steps.iter().rfind(|step| step.rollout == *rollout).expect("planned")
}

/// The status and reason of the condition that tells of a refusal.
fn refusal(step: &Step) -> Option<(&str, &str)> {
    let conditions = step.status.as_ref()?["conditions"].as_array()?;
    let found = conditions.iter().find(|it| it["type"] == "convoy.dev/Refused")?;
    Some((found["status"].as_str()?, found["reason"].as_str()?))
}

/// Puts `value` at `pointer` of one object, which is refused for it. The rollouts in `held`
/// then stand still, those in `free` do what they did before, and repairing it frees all.
fn refusing(
    sound: &Applier,
    (kind, name): (&str, &str),
    (pointer, value): (&str, Value),
    held: &[(&str, &str)],
    free: &[(&str, &str)],
) {
    let now = sound.now();
    let mut applier = sound.clone();
    let sound = sound.world();
    let key = find(sound, kind, name);
    applier.edit(&key, |raw| match raw.pointer_mut(pointer) {
        Some(place) => *place = value,
        None => panic!("{key} has no {pointer}"),
    });
    let before = plan(sound, now);
    assert!(!before.has_errors(), "{:?}", before.diagnostics);
    let after = plan(applier.world(), now);
    assert!(after.diagnostics.iter().any(|found| found.key == key), "{key} is not refused");
    assert_eq!(check(applier.world(), &after), &[]);
    for (kind, name) in held {
        let step = step_of(&after, &find(sound, kind, name));
        assert!(step.actions.is_empty(), "{kind} {name} writes: {}", step.to_json());
        assert_eq!(step.verdict, Verdict::Held, "{kind} {name}");
        let told = step.holds.iter().any(|hold| match &hold.reason {
            HoldReason::HangsOnRefused { object, .. } => object.contains(key.name.as_str()),
            _ => false,
        });
        assert!(told, "{kind} {name} does not say why: {:?}", step.holds);
        assert_eq!(refusal(step), Some(("True", "HangsOnRefused")), "{kind} {name}");
        assert!(step.events.iter().any(|event| event.reason == "Refused"), "{kind} {name}");
    }
    for (kind, name) in free {
        let rollout = find(sound, kind, name);
        let step = step_of(&after, &rollout);
        // One object less was looked at.
        let expected = Step { rest: step.rest, ..step_of(&before, &rollout).clone() };
        assert_eq!(*step, expected, "{kind} {name}");
    }
}

#[test]
fn a_skyhook_waits_for_its_policy() {
    let policy = |name| {
        object("skyhook.nvidia.com/v1alpha1", "DeploymentPolicy", name)
            .spec(json!({"default": {"budget": {"count": 1}}}))
    };
    let skyhook = |name, policy: &str| {
        let packages = json!({"driver": {"version": "1.0.0", "image": "example/driver"}});
        object("skyhook.nvidia.com/v1alpha1", "Skyhook", name)
            .spec(json!({"deploymentPolicy": policy, "packages": packages}))
    };
    let sound = world([
        policy("careful"),
        policy("bold"),
        skyhook("drivers", "careful"),
        skyhook("kernels", "bold"),
        node("n1"),
    ]);
    let broken = ("/spec/default/budget/count", json!(0));
    let (held, free) = ([("Skyhook", "drivers")], [("Skyhook", "kernels")]);
    refusing(&sound, ("DeploymentPolicy", "careful"), broken, &held, &free);
    // A rollout that is refused stops itself only.
    let key = find(sound.world(), "Skyhook", "drivers");
    let mut applier = sound.clone();
    applier.edit(&key, |raw| raw["spec"]["packages"]["driver"]["version"] = json!("one"));
    let after = plan(applier.world(), applier.now());
    let step = step_of(&after, &key);
    assert_eq!((step.verdict, refusal(step)), (Verdict::Invalid, Some(("True", "Invalid"))));
    // It is told once, and taken back when the object is corrected.
    let status = step.status.clone().expect("told");
    let told = format!("{}", status["conditions"]);
    assert!(told.contains("spec.packages.driver.version: "), "{told}");
    applier.edit(&key, |raw| raw["status"] = status);
    let again = plan(applier.world(), applier.now());
    let step = step_of(&again, &key);
    assert!(step.is_quiet() && step.events.is_empty(), "{}", step.to_json());
    applier.edit(&key, |raw| raw["spec"]["packages"]["driver"]["version"] = json!("1.0.1"));
    let corrected = plan(applier.world(), applier.now());
    let step = step_of(&corrected, &key);
    assert_eq!((step.verdict, refusal(step)), (Verdict::Moving, Some(("False", "Accepted"))));
    let key = find(sound.world(), "Skyhook", "kernels");
    assert_eq!(step_of(&after, &key).verdict, Verdict::Moving);
}

#[test]
fn a_deployment_does_not_replace_a_set_it_cannot_read() {
    let other = json!({"replicas": 2, "selector": {"matchLabels": {"app": "api"}},
        "template": {"metadata": {"labels": {"app": "api"}},
            "spec": {"containers": [{"name": "api", "image": "api:v1"}]}}});
    let sound = at_rest(world([
        apps::deployment(3, "web:v1"),
        apps::replica_set("web-1", "web:v1", 3, 3),
        object("apps/v1", "Deployment", "api").namespace("shop").spec(other),
    ]));
    let broken = ("/spec/replicas", json!(-1));
    let (held, free) = ([("Deployment", "web")], [("Deployment", "api")]);
    refusing(&sound, ("ReplicaSet", "web-1"), broken, &held, &free);
}

/// Placements of everything on three clusters, on two of them, and on one by its name.
fn placements() -> Applier {
    let members = ["c1", "c2", "c3"].map(|name| fleet::member(name, NOW));
    let policies = [
        ("everywhere", json!({"placementType": "PickAll"})),
        ("twice", json!({"placementType": "PickN", "numberOfClusters": 2})),
        ("by-name", json!({"placementType": "PickFixed", "clusterNames": ["c3"]})),
    ];
    let placements = policies.map(|(name, policy)| fleet::placement(name, policy));
    let shop = object("v1", "Namespace", "shop");
    let content = apps::deployment(1, "web:v1");
    at_rest(world(members.into_iter().chain(placements).chain([shop, content])))
}

#[test]
fn a_placement_keeps_a_cluster_it_cannot_read() {
    let taint = json!([{"key": "not a key", "effect": "NoSchedule"}]);
    let mut sound = placements();
    let key = find(sound.world(), "MemberCluster", "c1");
    sound.edit(&key, |raw| raw["spec"]["taints"] = json!([]));
    let kind = "ClusterResourcePlacement";
    let (held, free) = ([(kind, "everywhere"), (kind, "twice")], [(kind, "by-name")]);
    let broken = ("/spec/taints", taint);
    refusing(&sound, ("MemberCluster", "c1"), broken, &held, &free);
}

#[test]
fn a_placement_carries_what_another_dialect_refuses() {
    let mut world = placements();
    let deployment = find(world.world(), "Deployment", "web");
    world.edit(&deployment, |raw| raw["spec"]["replicas"] = json!(-1));
    assert!(plan(world.world(), world.now()).has_errors());
    let world = at_rest(world);
    let latest = world.world().iter().filter(|it| {
        it.kind().kind == "ClusterResourceSnapshot"
            && it.label("kubernetes-fleet.io/is-latest-snapshot") == Some("true")
    });
    let carried = latest.filter(|it| it.spec().to_string().contains(r#""replicas":-1"#));
    assert_eq!(carried.count(), 3, "one for each placement");
}

#[test]
fn a_run_and_an_eviction_wait_for_what_they_are_about() {
    let placement = fleet::placement("web", json!({"placementType": "PickAll"}))
        .with("/spec/strategy", json!({"type": "External"}));
    let stages = json!([{"name": "all", "labelSelector": {}}]);
    let eviction = object(
        "placement.kubernetes-fleet.io/v1beta1",
        "ClusterResourcePlacementEviction",
        "evict-c1",
    )
    .spec(json!({"placementName": "web", "clusterName": "c1"}));
    let sound = world([
        fleet::member("c1", NOW),
        object("v1", "Namespace", "shop"),
        placement,
        fleet::strategy("slow", stages),
        fleet::run("release", "web", "slow", ""),
        eviction,
    ]);
    let run = ("ClusterStagedUpdateRun", "release");
    let broken = ("/spec/policy/placementType", json!("PickSome"));
    let held = [run, ("ClusterResourcePlacementEviction", "evict-c1")];
    refusing(&sound, ("ClusterResourcePlacement", "web"), broken, &held, &[]);
    let broken = ("/spec/stages", json!("all"));
    let free = [("ClusterResourcePlacementEviction", "evict-c1")];
    refusing(&sound, ("ClusterStagedUpdateStrategy", "slow"), broken, &[run], &free);
}

#[test]
fn a_pool_does_not_refill_the_place_of_a_claim_it_cannot_read() {
    let fixed = |name| karpenter::pool(name, &json!({})).with("/spec/replicas", json!(1));
    let mut sound = world([fixed("a"), fixed("b")]);
    for object in karpenter::pair("a", "a-1").into_iter().chain(karpenter::pair("b", "b-1")) {
        sound.insert(object);
    }
    let broken = ("/spec/nodeClassRef", json!("default"));
    let (held, free) = ([("NodePool", "a")], [("NodePool", "b")]);
    refusing(&sound, ("NodeClaim", "a-1"), broken, &held, &free);
}

/// Two clusters of one set and two of another, each with a placement and its works.
fn works() -> Applier {
    let set = "cluster.open-cluster-management.io/clusterset";
    let cluster = |name, of: &str| ocm::managed_cluster(name).label(set, of);
    let [a_set, a_binding] = ocm::bound_set();
    let version = "cluster.open-cluster-management.io/v1beta2";
    let objects = [
        a_set,
        a_binding,
        object(version, "ManagedClusterSet", "edge")
            .spec(json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}})),
        object(version, "ManagedClusterSetBinding", "edge")
            .namespace(ocm::NAMESPACE)
            .spec(json!({"clusterSet": "edge"})),
        cluster("c1", ocm::SET),
        cluster("c2", ocm::SET),
        cluster("e1", "edge"),
        cluster("e2", "edge"),
        ocm::placement("main", json!({"clusterSets": [ocm::SET], "numberOfClusters": 1})),
        ocm::placement("edge", json!({"clusterSets": ["edge"]})),
        ocm::replica_set("main", "v1", &json!([{"name": "main"}])),
        ocm::replica_set("edge", "v1", &json!([{"name": "edge"}])),
    ];
    at_rest(world(objects))
}

#[test]
fn a_placement_does_not_choose_anew_for_a_cluster_it_cannot_read() {
    let broken = ("/spec/hubAcceptsClient", json!("yes"));
    let held = [("Placement", "main")];
    let set = "ManifestWorkReplicaSet";
    let free = [("Placement", "edge"), (set, "main"), (set, "edge")];
    refusing(&works(), ("ManagedCluster", "c1"), broken, &held, &free);
}

#[test]
fn a_set_of_works_waits_for_its_placement_decision_and_works() {
    let sound = works();
    let set = "ManifestWorkReplicaSet";
    let free = [("Placement", "edge"), (set, "edge")];
    let broken = ("/spec/clusterSets", json!("fleet"));
    refusing(&sound, ("Placement", "main"), broken, &[(set, "main")], &free);
    let name_of = |kind: &str| {
        let mut all = sound.world().iter().filter(|it| it.kind().kind == kind);
        let own = all.find(|it| it.name().starts_with("main") || it.name().contains(".main"));
        own.unwrap_or_else(|| panic!("main has a {kind}")).name().to_string()
    };
    let slice = name_of("PlacementDecision");
    let broken = ("/status/decisions", json!("c1"));
    let held = [("Placement", "main"), (set, "main")];
    refusing(&sound, ("PlacementDecision", &slice), broken, &held, &free);
    let broken = ("/spec/workload/manifests", json!([]));
    let free = [("Placement", "main"), ("Placement", "edge"), (set, "edge")];
    refusing(&sound, ("ManifestWork", &name_of("ManifestWork")), broken, &[(set, "main")], &free);
}
