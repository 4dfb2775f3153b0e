//! Random fleets, placements and strategies: plans keep every promise, applying them comes to
//! rest, and clusters never lose their work by an accident of timing.

use convoy_api::ocm::names::{
    MANAGED_CLUSTER, MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET, PLACEMENT,
};
use convoy_api::{Object, ObjectKey};
use convoy_check::{Applier, History, Settled, check, settle};
use convoy_plan::{Plan, Step, Verdict, World, condition, plan};
use convoy_testkit::ocm::{
    NAMESPACE, bound_set, condition as report, managed_cluster, placement, replica_set, template,
};
use convoy_testkit::{NOW, property};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

/// How a cluster's agent behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Agent {
    Succeeds,
    Fails,
    Silent,
}

/// One case: who is there, what is asked for.
#[derive(Clone, Debug)]
struct Case {
    /// Ring and agent of each cluster.
    clusters: Vec<(u8, Agent)>,
    placement: Value,
    strategy: Value,
}

fn now() -> Timestamp {
    NOW.parse().expect("an instant")
}

fn agents(only_good: bool) -> impl Strategy<Value = Agent> {
    let bad = u32::from(!only_good);
    prop_oneof![
        8 => Just(Agent::Succeeds),
        bad => Just(Agent::Fails),
        bad => Just(Agent::Silent),
    ]
}

fn placements() -> impl Strategy<Value = Value> {
    let length =
        prop_oneof![Just(json!("100%")), (1..6i64).prop_map(|n| json!(n)), Just(json!("30%"))];
    (length, any::<bool>(), prop::option::of(1..12i64)).prop_map(|(length, canary, wanted)| {
        let named = json!([{"groupName": "canary",
            "groupClusterSelector": {"labelSelector": {"matchLabels": {"ring": "0"}}}}]);
        let mut spec = json!({"decisionStrategy": {"groupStrategy":
            {"clustersPerDecisionGroup": length, "decisionGroups": if canary { named } else { json!([]) }}}});
        if let Some(wanted) = wanted {
            spec["numberOfClusters"] = json!(wanted);
        }
        spec
    })
}

fn strategies() -> impl Strategy<Value = Value> {
    let size = || prop_oneof![(0..5i64).prop_map(|n| json!(n)), Just(json!("25%"))];
    let kind = prop_oneof![Just("All"), Just("Progressive"), Just("ProgressivePerGroup")];
    let seconds = || prop_oneof![Just("0s"), Just("30s"), Just("5m")];
    (kind, size(), size(), seconds(), prop::option::of(seconds()), any::<bool>()).prop_map(
        |(kind, concurrency, failures, soak, deadline, canary)| {
            let mut block = json!({"maxFailures": failures, "minSuccessTime": soak});
            if let Some(deadline) = deadline {
                block["progressDeadline"] = json!(deadline);
            }
            if canary && kind != "All" {
                block["mandatoryDecisionGroups"] = json!([{"groupName": "canary"}]);
            }
            let mut strategy = json!({"type": kind});
            let name = match kind {
                "All" => "all",
                "Progressive" => "progressive",
                _ => "progressivePerGroup",
            };
            if kind == "Progressive" {
                block["maxConcurrency"] = concurrency;
            }
            strategy[name] = block;
            strategy
        },
    )
}

fn cases(only_good: bool) -> impl Strategy<Value = Case> {
    let clusters = prop::collection::vec((0..3u8, agents(only_good)), 0..16);
    (clusters, placements(), strategies()).prop_map(|(clusters, placement, strategy)| Case {
        clusters,
        placement,
        strategy,
    })
}

fn name(index: usize) -> String {
    format!("c{index:02}")
}

fn cluster(index: usize, ring: u8) -> Object {
    managed_cluster(&name(index)).label("ring", &ring.to_string()).build()
}

fn world(case: &Case) -> World {
    let mut world: World = bound_set().map(convoy_testkit::Builder::build).into_iter().collect();
    for (index, (ring, _)) in case.clusters.iter().enumerate() {
        world.insert(cluster(index, *ring));
    }
    world.insert(placement("p", case.placement.clone()).build());
    let references = json!([{"name": "p", "rolloutStrategy": case.strategy}]);
    world.insert(replica_set("web", "v1", &references).build());
    world
}

/// Lets every agent report about a work that it has not reported on.
fn act(applier: &mut Applier, clusters: &[(u8, Agent)]) -> bool {
    let works: Vec<Object> = applier.world().of(&MANIFEST_WORK).cloned().collect();
    let mut changed = false;
    for work in works {
        let index = work.namespace().trim_start_matches('c').parse::<usize>().unwrap_or(0);
        let agent = clusters.get(index).map_or(Agent::Succeeds, |(_, agent)| *agent);
        let generation = work.generation();
        let spoken =
            work.condition("Applied").is_some_and(|c| c["observedGeneration"] == generation);
        if agent == Agent::Silent || spoken {
            continue;
        }
        let at = condition::instant(applier.now());
        let at = at.as_str().unwrap_or_default().to_owned();
        let available = if agent == Agent::Succeeds { "True" } else { "False" };
        applier.edit(work.key(), |raw| {
            raw["status"] = json!({"conditions": [
                report("Applied", available, generation, &at),
                report("Available", available, generation, &at)]});
        });
        changed = true;
    }
    changed
}

fn rested(applier: &mut Applier, clusters: &[(u8, Agent)]) -> Settled {
    let settled = settle(applier, 400, |applier| act(applier, clusters)).expect("comes to rest");
    assert_eq!(settled.plan.diagnostics, [], "every case is sound");
    settled
}

fn step_of<'p>(plan: &'p Plan, kind: &convoy_api::GroupKind) -> &'p Step {
    plan.steps.iter().find(|step| step.rollout.kind == *kind).expect("planned")
}

fn names(step: &Step, key: &str) -> Vec<String> {
    let list = step.decision[key].as_array().cloned().unwrap_or_default();
    list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

proptest! {
    #![proptest_config(property::config(96))]

    #[test]
    fn plans_keep_their_promises_and_come_to_rest(case in cases(false)) {
        let mut applier = Applier::new(world(&case), now());
        let settled = rested(&mut applier, &case.clusters);
        prop_assert_eq!(settled.history.findings(), &[]);
        for step in &settled.plan.steps {
            prop_assert!(step.is_quiet(), "{}", step.to_json());
        }
    }

    #[test]
    fn a_healthy_fleet_ends_with_the_template_everywhere(case in cases(true)) {
        let mut applier = Applier::new(world(&case), now());
        let settled = rested(&mut applier, &case.clusters);
        let selected = names(step_of(&settled.plan, &PLACEMENT), "selected");
        let set = step_of(&settled.plan, &MANIFEST_WORK_REPLICA_SET);
        prop_assert_eq!(set.verdict, Verdict::Done);
        let mut holding: Vec<String> = applier.world().of(&MANIFEST_WORK)
            .filter(|work| *work.spec() == template("v1"))
            .map(|work| work.namespace().to_string()).collect();
        let mut wanted = selected;
        wanted.sort();
        holding.sort();
        prop_assert_eq!(holding, wanted);
    }

    #[test]
    fn a_new_template_and_a_changed_fleet_are_rolled_as_well(
        case in cases(false),
        leave in prop::collection::vec(any::<bool>(), 16),
        arrive in 0..5usize,
    ) {
        let mut applier = Applier::new(world(&case), now());
        rested(&mut applier, &case.clusters);
        change(&mut applier, &case, &leave, arrive);
        let settled = rested(&mut applier, &case.clusters);
        prop_assert_eq!(settled.history.findings(), &[]);
        let selected = names(step_of(&settled.plan, &PLACEMENT), "selected");
        for work in applier.world().of(&MANIFEST_WORK) {
            prop_assert!(selected.contains(&work.namespace().to_string()), "{}", work.key());
        }
    }

    #[test]
    fn a_half_written_placement_never_costs_a_selected_cluster_its_work(
        case in cases(true),
        leave in prop::collection::vec(any::<bool>(), 16),
        arrive in 0..5usize,
        written in 0..8usize,
    ) {
        let mut applier = Applier::new(world(&case), now());
        rested(&mut applier, &case.clusters);
        change(&mut applier, &case, &leave, arrive);
        let before = plan(applier.world(), applier.now());
        let selected = names(step_of(&before, &PLACEMENT), "selected");
        let mut half = step_of(&before, &PLACEMENT).clone();
        half.actions.truncate(written);
        half.status = None;
        applier.apply(&half).expect("nobody else wrote");
        let after = plan(applier.world(), applier.now());
        prop_assert_eq!(check(applier.world(), &after), &[]);
        for cluster in names(step_of(&after, &MANIFEST_WORK_REPLICA_SET), "removed") {
            prop_assert!(!selected.contains(&cluster), "{} loses its work", cluster);
        }
    }

    #[test]
    fn clusters_stay_in_their_groups(
        case in cases(true),
        leave in prop::collection::vec(any::<bool>(), 16),
        arrive in 0..5usize,
    ) {
        // A share changes with the fleet, and a wanted number may drop somebody else.
        prop_assume!(case.placement["decisionStrategy"]["groupStrategy"]["clustersPerDecisionGroup"].is_i64());
        prop_assume!(case.placement.get("numberOfClusters").is_none());
        let mut applier = Applier::new(world(&case), now());
        rested(&mut applier, &case.clusters);
        let groups = |plan: &Plan| -> Vec<Vec<String>> {
            let groups = step_of(plan, &PLACEMENT).decision["groups"].as_array().cloned().unwrap_or_default();
            let text = |name: &Value| name.as_str().unwrap_or_default().to_owned();
            groups.iter().map(|group| {
                group["clusters"].as_array().into_iter().flatten().map(text).collect()
            }).collect()
        };
        let before = groups(&plan(applier.world(), applier.now()));
        change(&mut applier, &case, &leave, arrive);
        let after = groups(&plan(applier.world(), applier.now()));
        for (a, b) in pairs(&before) {
            let home = |name: &str| after.iter().position(|group| group.iter().any(|c| c == name));
            if let (Some(x), Some(y)) = (home(&a), home(&b)) {
                prop_assert_eq!(x, y, "{} and {} were together", a, b);
            }
        }
    }

    #[test]
    fn the_order_of_objects_does_not_matter(case in cases(false), seed in any::<u64>()) {
        let straight = world(&case);
        let mut objects: Vec<Object> = straight.iter().cloned().collect();
        objects.sort_by_key(|object| {
            let hash = |text: String| text.bytes().fold(seed, |h, b| h.rotate_left(7) ^ u64::from(b));
            hash(object.key().to_string())
        });
        let shuffled: World = objects.into_iter().collect();
        prop_assert_eq!(plan(&straight, now()).to_json(), plan(&shuffled, now()).to_json());
    }
}

/// Some clusters leave, some arrive, and the template changes.
fn change(applier: &mut Applier, case: &Case, leave: &[bool], arrive: usize) {
    for (index, _) in case.clusters.iter().enumerate() {
        if leave.get(index).copied().unwrap_or(false) {
            applier.remove(&MANAGED_CLUSTER.key("", &name(index)));
        }
    }
    for index in 0..arrive {
        applier.insert(cluster(40 + index, u8::from(index % 2 == 0)));
    }
    let set: ObjectKey = MANIFEST_WORK_REPLICA_SET.key(NAMESPACE, "web");
    applier.edit(&set, |raw| raw["spec"]["manifestWorkTemplate"] = template("v2"));
}

/// Every two clusters of one group.
fn pairs(groups: &[Vec<String>]) -> Vec<(String, String)> {
    let two = |group: &Vec<String>| -> Vec<(String, String)> {
        group.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    };
    groups.iter().flat_map(two).collect()
}

#[test]
fn a_history_of_a_canary_rollout_has_no_findings() {
    let case = Case {
        clusters: (0..6).map(|index| (u8::from(index > 1), Agent::Succeeds)).collect(),
        placement: json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 2,
            "decisionGroups": [{"groupName": "canary", "groupClusterSelector":
                {"labelSelector": {"matchLabels": {"ring": "0"}}}}]}}}),
        strategy: json!({"type": "ProgressivePerGroup",
            "progressivePerGroup": {"minSuccessTime": "5m", "progressDeadline": "10m"}}),
    };
    let mut applier = Applier::new(world(&case), now());
    let settled = rested(&mut applier, &case.clusters);
    assert_eq!(settled.history.findings(), &[]);
    // Three groups, each five minutes after the one before.
    assert_eq!(applier.now(), now() + jiff::SignedDuration::from_mins(15));
    let mut history = History::new();
    history.observe(applier.world(), &settled.plan);
    assert_eq!(history.findings(), &[]);
}
