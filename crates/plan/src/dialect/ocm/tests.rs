//! Whole steps of placements and replica sets: what is written, reported and waited for.

use convoy_api::Object;
use convoy_api::ocm::names::{HANDED_OUT_AT, MANIFEST_WORK_REPLICA_SET, PLACEMENT, STRATEGY_HASH};
use convoy_testkit::ocm::{
    NAMESPACE, bound_set, condition, managed_cluster, placement, replica_set, template,
};
use convoy_testkit::{Builder, NOW, object};
use serde_json::{Value, json};

use super::Ocm;
use crate::diagnostic::Severity;
use crate::dialect::Dialect;
use crate::gate::{Permit, grant};
use crate::hold::HoldReason;
use crate::step::{Step, Verb, Verdict, Write};
use crate::world::World;

fn world(objects: impl IntoIterator<Item = Builder>) -> World {
    bound_set().into_iter().chain(objects).map(Builder::build).collect()
}

fn step(world: &World, kind: &convoy_api::GroupKind, name: &str) -> Step {
    let rollout = world.find(kind, NAMESPACE, name).unwrap();
    Ocm.step(&Ocm.snapshot(world, rollout), NOW.parse().unwrap())
}

fn place(world: &World) -> Step {
    step(world, &PLACEMENT, "p")
}

fn roll(world: &World) -> Step {
    step(world, &MANIFEST_WORK_REPLICA_SET, "web")
}

fn decision(number: usize, index: &str, clusters: &[&str]) -> Builder {
    let entries: Vec<Value> =
        clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    object(
        "cluster.open-cluster-management.io/v1beta1",
        "PlacementDecision",
        &format!("p-decision-{number}"),
    )
    .namespace(NAMESPACE)
    .label("cluster.open-cluster-management.io/placement", "p")
    .label("cluster.open-cluster-management.io/decision-group-index", index)
    .label("cluster.open-cluster-management.io/decision-group-name", "")
    .status(json!({"decisions": entries}))
}

fn work(cluster: &str, placement: &str, version: &str) -> Builder {
    object("work.open-cluster-management.io/v1", "ManifestWork", &format!("web-{placement}"))
        .namespace(cluster)
        .label("work.open-cluster-management.io/manifestworkreplicaset", "apps.web")
        .label("work.open-cluster-management.io/placementname", placement)
        .spec(template(version))
        .status(json!({"conditions": [
            condition("Applied", "True", 1, "2025-12-31T00:00:00Z"),
            condition("Available", "True", 1, "2025-12-31T00:00:00Z")]}))
}

fn set() -> Builder {
    replica_set("web", "v2", &json!([{"name": "p"}]))
}

/// The status and reason of a condition that a step writes.
fn said(step: &Step, kind: &str) -> (String, String) {
    let conditions = step.status.as_ref().unwrap()["conditions"].as_array().unwrap().clone();
    let found = conditions.iter().find(|entry| entry["type"] == kind).unwrap();
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    (text("status"), text("reason"))
}

/// What the gate gives where nothing limits.
fn permit() -> Permit {
    grant(1, &[]).permit().unwrap()
}

fn verbs(step: &Step) -> Vec<Verb> {
    step.actions.iter().map(|action| action.verb).collect()
}

#[test]
fn a_new_placement_writes_labelled_and_owned_decisions() {
    let world = world([managed_cluster("a"), managed_cluster("b"), placement("p", json!({}))]);
    let step = place(&world);
    assert_eq!(verbs(&step), [Verb::Create, Verb::Schedule]);
    let Write::Create { object } = &step.actions[0].write else { panic!("a create") };
    let metadata = &object["metadata"];
    assert_eq!(metadata["labels"]["cluster.open-cluster-management.io/decision-group-index"], "0");
    assert_eq!(metadata["labels"]["cluster.open-cluster-management.io/decision-group-name"], "");
    assert_eq!(metadata["ownerReferences"][0]["uid"], "uid-placement-p");
    assert!(metadata["annotations"][STRATEGY_HASH].is_string());
    assert_eq!(step.status.as_ref().unwrap()["numberOfSelectedClusters"], 2);
    assert_eq!(said(&step, "PlacementSatisfied"), ("True".into(), "AllDecisionsScheduled".into()));
    let events: Vec<&str> = step.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(events, ["DecisionCreate", "DecisionUpdate", "ScoreUpdate"]);
    assert_eq!(step.events[2].message, "a:100 b:100 ");
}

#[test]
fn an_unsatisfied_placement_says_what_is_missing() {
    let bound = |spec: Value, clusters: &[&str]| {
        world(clusters.iter().map(|name| managed_cluster(name)).chain([placement("p", spec)]))
    };
    let alone: World = [placement("p", json!({})).build()].into_iter().collect();
    let prod = json!({"predicates": [{"requiredClusterSelector": {"labelSelector":
        {"matchLabels": {"env": "prod"}}}}]});
    let cases = [
        (alone, "NoManagedClusterSetBindings"),
        (bound(json!({"clusterSets": ["other"]}), &["a"]), "NoIntersection"),
        (bound(json!({}), &[]), "AllManagedClusterSetsEmpty"),
        (bound(prod, &["a"]), "NoManagedClusterMatched"),
        (bound(json!({"numberOfClusters": 3}), &["a"]), "NotAllDecisionsScheduled"),
    ];
    for (world, reason) in cases {
        let step = place(&world);
        assert_eq!(said(&step, "PlacementSatisfied"), ("False".into(), reason.into()));
        assert_eq!(step.actions[0].verb, Verb::Create, "at least one decision exists");
        assert!(step.holds.iter().any(|hold| hold.member.is_none()), "{reason}");
    }
}

#[test]
fn a_replica_set_whose_placement_selects_nobody_is_held_and_says_so() {
    let prod = json!({"predicates": [{"requiredClusterSelector": {"labelSelector":
        {"matchLabels": {"env": "prdo"}}}}]});
    let world = world([managed_cluster("a"), placement("p", prod), decision(1, "0", &[]), set()]);
    let step = roll(&world);
    assert_eq!(step.verdict, Verdict::Held);
    let whole: Vec<String> = step.holds.iter().map(|hold| hold.reason.to_string()).collect();
    assert_eq!(whole, ["not selected: Placement p selects no cluster"]);
    let verified = said(&step, "PlacementVerified");
    assert_eq!(verified, ("False".into(), "PlacementDecisionEmpty".into()));
}

#[test]
fn a_misconfigured_placement_keeps_its_decisions() {
    let spec = json!({"tolerations": [{"value": "x"}]});
    let kept =
        world([managed_cluster("a"), placement("p", spec.clone()), decision(1, "0", &["a"])]);
    let step = place(&kept);
    assert_eq!((step.verdict, step.actions.len()), (Verdict::Invalid, 0));
    assert_eq!(said(&step, "PlacementMisconfigured"), ("True".into(), "Misconfigured".into()));
    assert_eq!(said(&step, "PlacementSatisfied").0, "False");
    let fresh = world([managed_cluster("a"), placement("p", spec)]);
    assert_eq!(verbs(&place(&fresh)), [Verb::Create]);
}

#[test]
fn a_placement_that_validation_refuses_has_its_step() {
    let spec = json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]});
    let fresh = world([managed_cluster("a"), placement("p", spec)]);
    let now = NOW.parse().expect("a fixed instant");
    let plan = crate::plan(&fresh, now);
    let refused = plan.steps.iter().find(|step| step.rollout.kind == PLACEMENT);
    let refused = refused.expect("it is a rollout");
    assert_eq!((refused.verdict, verbs(refused)), (Verdict::Invalid, vec![Verb::Create]));
    assert_eq!(said(refused, "PlacementMisconfigured").0, "True");
    assert_eq!(said(refused, "convoy.dev/Refused").0, "True");
}

#[test]
fn a_disabled_placement_is_left_alone() {
    let disabled = placement("p", json!({}))
        .annotation("cluster.open-cluster-management.io/experimental-scheduling-disable", "true");
    let step = place(&world([managed_cluster("a"), disabled]));
    assert_eq!((step.verdict, step.is_quiet()), (Verdict::Paused, true));
}

#[test]
fn decisions_that_are_not_needed_go() {
    let objects = [
        managed_cluster("a"),
        placement("p", json!({})),
        decision(1, "0", &["a"]),
        decision(2, "1", &["b"]),
    ];
    let step = place(&world(objects));
    assert_eq!(verbs(&step), [Verb::Record, Verb::Delete]);
    assert_eq!(step.groups.last().unwrap().gone, 1);
}

#[test]
fn the_finalizer_comes_first() {
    let bare = set().with("/metadata/finalizers", json!(["foreign"]));
    let step = roll(&world([managed_cluster("a"), placement("p", json!({})), bare]));
    assert_eq!(verbs(&step), [Verb::Record]);
    let Write::Patch { patch, .. } = &step.actions[0].write else { panic!("a patch") };
    let ours = "work.open-cluster-management.io/manifest-work-cleanup";
    assert_eq!(patch["metadata"]["finalizers"], json!(["foreign", ours]));
    assert_eq!((&step.decision["rollout"], &step.decision["waiting"]), (&json!([]), &json!(["a"])));
    assert_eq!(step.status, None);
}

#[test]
fn a_work_that_goes_later_says_why() {
    let bare = set().with("/metadata/finalizers", json!([]));
    let objects = [managed_cluster("a"), placement("p", json!({})), bare, work("b", "p", "v2")];
    let step = roll(&world(objects));
    assert_eq!((verbs(&step), &step.decision["removed"]), (vec![Verb::Record], &json!([])));
    let hold = step.holds.iter().find(|hold| hold.member.as_deref() == Some("b")).unwrap();
    assert_eq!(hold.group.as_deref(), Some("removed"));
    assert!(matches!(hold.reason, HoldReason::Depends { .. }));
}

#[test]
fn works_carry_the_template_the_labels_and_the_time() {
    let labelled = set().label("team", "shop");
    let objects = [
        managed_cluster("a"),
        managed_cluster("b"),
        placement("p", json!({})),
        decision(1, "0", &["a", "b"]),
        labelled,
        work("a", "p", "v1"),
    ];
    let step = roll(&world(objects));
    assert_eq!(verbs(&step), [Verb::Update(permit()), Verb::Start(permit())]);
    let Write::Patch { patch, precondition, .. } = &step.actions[0].write else {
        panic!("a patch")
    };
    assert_eq!(patch["spec"]["workload"]["manifests"][0]["data"]["version"], "v2");
    assert_eq!(patch["metadata"]["labels"], json!({"team": "shop"}));
    assert_eq!(patch["metadata"]["annotations"][HANDED_OUT_AT], NOW);
    assert_eq!(precondition.resource_version.as_deref(), Some("1"));
    let Write::Create { object } = &step.actions[1].write else { panic!("a create") };
    assert_eq!(object["metadata"]["generateName"], "web");
    assert_eq!(object["metadata"]["namespace"], "b");
    assert_eq!(object["spec"], template("v2"));
    let status = step.status.as_ref().unwrap();
    assert_eq!(status["summary"]["total"], 2);
    assert_eq!(
        status["placementSummary"][0]["availableDecisionGroups"],
        "1 (2 / 2 clusters applied)"
    );
    assert_eq!(said(&step, "PlacementVerified"), ("True".into(), "AsExpected".into()));
    assert_eq!(said(&step, "PlacementRolledOut"), ("False".into(), "Progressing".into()));
}

#[test]
fn a_cluster_of_two_placements_has_a_work_for_each() {
    let set = replica_set("web", "v2", &json!([{"name": "p"}, {"name": "q"}]));
    let objects = [
        managed_cluster("a"),
        placement("p", json!({})),
        placement("q", json!({})),
        set,
        work("a", "p", "v2"),
        work("a", "gone", "v2"),
    ];
    let step = roll(&world(objects));
    assert_eq!(verbs(&step), [Verb::Remove(permit()), Verb::Start(permit())]);
    assert_eq!(step.decision["removed"], json!(["a"]));
    assert_eq!(step.status.as_ref().unwrap()["summary"]["total"], 2);
}

#[test]
fn one_work_per_placement_and_cluster_is_enough() {
    let second = work("a", "p", "v1").with("/metadata/name", json!("another"));
    let objects =
        [managed_cluster("a"), placement("p", json!({})), set(), work("a", "p", "v2"), second];
    let step = roll(&world(objects));
    assert_eq!(verbs(&step), [Verb::Remove(permit())]);
    assert_eq!(step.actions[0].target.name, "another");
    assert_eq!(step.decision["removed"], json!([]));
}

#[test]
fn a_missing_placement_ends_the_pass() {
    let step = roll(&world([set(), work("a", "p", "v1")]));
    assert_eq!((step.verdict, step.actions.len()), (Verdict::Held, 0));
    let found = said(&step, "PlacementVerified");
    assert_eq!(found, ("False".into(), "PlacementDecisionNotFound".into()));
    assert!(matches!(step.holds[0].reason, HoldReason::Missing { kind: "Placement", .. }));
}

#[test]
fn decisions_without_a_number_are_an_error_of_their_reference() {
    let nameless = decision(1, "first", &["a"]);
    let step = roll(&world([managed_cluster("a"), placement("p", json!({})), nameless, set()]));
    assert_eq!(step.actions.len(), 0);
    assert_eq!(said(&step, "PlacementVerified"), ("False".into(), "NotAsExpected".into()));
    assert_eq!(said(&step, "PlacementRolledOut"), ("False".into(), "Progressing".into()));
}

#[test]
fn a_replica_set_waits_while_its_placement_is_being_rewritten() {
    let status = json!({"numberOfSelectedClusters": 2, "decisionGroups": [
        {"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["p-decision-1"], "clusterCount": 2}]});
    let placement = || placement("p", json!({})).status(status.clone());
    let clusters = || ["a", "b"].map(managed_cluster);
    let half = clusters().into_iter().chain([
        placement(),
        decision(1, "0", &["a"]),
        set(),
        work("b", "p", "v2"),
    ]);
    let step = roll(&world(half));
    assert_eq!((verbs(&step), step.verdict), (vec![], Verdict::Held));
    let whole = clusters().into_iter().chain([
        placement(),
        decision(1, "0", &["a", "b"]),
        set(),
        work("b", "p", "v2"),
    ]);
    assert_eq!(verbs(&roll(&world(whole))), [Verb::Start(permit())]);
}

#[test]
fn deletion_takes_the_works_along() {
    let going = |policy: &str| {
        set()
            .with("/metadata/deletionTimestamp", json!(NOW))
            .with("/spec/cascadeDeletionPolicy", json!(policy))
    };
    let background = roll(&world([going("Background"), work("a", "p", "v2")]));
    assert_eq!(verbs(&background), [Verb::Remove(permit()), Verb::Release]);
    let foreground = roll(&world([going("Foreground"), work("a", "p", "v2")]));
    assert_eq!(
        (verbs(&foreground), foreground.verdict),
        (vec![Verb::Remove(permit())], Verdict::Moving)
    );
    let waiting = work("a", "p", "v2").with("/metadata/deletionTimestamp", json!(NOW));
    let waiting = roll(&world([going("Foreground"), waiting]));
    assert_eq!((verbs(&waiting), waiting.verdict), (vec![], Verdict::Moving));
    assert_eq!(verbs(&roll(&world([going("Foreground")]))), [Verb::Release]);
}

#[test]
fn a_name_that_no_label_can_hold_is_refused() {
    let named = |length: usize| {
        let name = "w".repeat(length);
        (replica_set(&name, "v2", &json!([{"name": "p"}])), name)
    };
    let refused = |set: &Builder| Ocm.validate(&World::default(), &set.clone().build());
    let (fits, _) = named(63 - "apps.".len());
    assert_eq!(refused(&fits), []);
    let (long, name) = named(63 - "apps.".len() + 1);
    let found = refused(&long);
    let [found] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((found.severity, found.field.as_str()), (Severity::Error, "metadata.name"));
    for part in [&format!("Invalid value: {name:?}"), "64 characters", "at most 63", "at most 58"] {
        assert!(found.message.contains(part), "{part}: {}", found.message);
    }
    // One that is stored already can be deleted.
    assert_eq!(refused(&long.clone().with("/metadata/deletionTimestamp", json!(NOW))), []);
    let world = world([managed_cluster("a"), placement("p", json!({})), long]);
    let step = step(&world, &MANIFEST_WORK_REPLICA_SET, &name);
    assert_eq!((step.verdict, step.actions.len()), (Verdict::Invalid, 0));
    let found = said(&step, "ManifestworkApplied");
    assert_eq!(found, ("False".into(), "InvalidManifestWorkName".into()));
}

#[test]
fn a_work_on_its_way_out_has_to_be_gone_before_the_next_comes() {
    let leaving = work("a", "p", "v2").with("/metadata/deletionTimestamp", json!(NOW));
    let step = roll(&world([managed_cluster("a"), placement("p", json!({})), set(), leaving]));
    assert_eq!((verbs(&step), step.verdict), (vec![], Verdict::Held));
    assert_eq!(step.decision["waiting"], json!(["a"]));
}

#[test]
fn changes_wake_the_rollouts_they_touch() {
    let world =
        world([managed_cluster("a"), placement("p", json!({})), set(), work("a", "p", "v2")]);
    let woken = |object: &Object| -> Vec<String> {
        let keys = Ocm.affected(&world, object.key());
        keys.iter().map(|key| key.name.to_string()).collect()
    };
    assert_eq!(woken(&managed_cluster("a").build()), ["p", "web"]);
    assert_eq!(woken(&work("a", "p", "v2").build()), ["web"]);
    assert_eq!(woken(&decision(1, "0", &[]).build()), ["p", "web"]);
    let foreign = decision(1, "0", &[]).namespace("elsewhere").build();
    assert_eq!(woken(&foreign), Vec::<String>::new());
}

/// A placement that waits for another to move first looks again as soon as that one has moved.
#[test]
fn decisions_wake_the_placements_that_choose_among_the_same_clusters() {
    let world = world([
        managed_cluster("a"),
        placement("p", json!({})),
        placement("all", json!({})),
        placement("some", json!({"numberOfClusters": 1})),
        decision(1, "0", &["a"]),
        set(),
    ]);
    let woken = Ocm.affected(&world, decision(1, "0", &["a"]).build().key());
    let woken: Vec<&str> = woken.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(woken, ["p", "some", "web"]);
}
