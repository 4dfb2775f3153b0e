//! Random fleets, placements and strategies: plans keep every promise, applying them comes to
//! rest, and clusters never lose their work by an accident of timing.

#[path = "ocm/worlds.rs"]
mod worlds;

use convoy_api::ocm::names::{
    MANAGED_CLUSTER, MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET, PLACEMENT,
};
use convoy_api::{Object, ObjectKey};
use convoy_check::{Applier, History, Settled, check, settle};
use convoy_plan::{Plan, Step, Verdict, World, plan};
use convoy_testkit::ocm::{NAMESPACE, template};
use convoy_testkit::{NOW, property};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use worlds::{Agent, Case, act, cases, cluster, name, world};

fn now() -> Timestamp {
    NOW.parse().expect("an instant")
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
        let ending = if selected.is_empty() { Verdict::Held } else { Verdict::Done };
        prop_assert_eq!(set.verdict, ending);
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
