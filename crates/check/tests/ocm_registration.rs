//! The registration agent of Open Cluster Management beside the controllers of its hub: a cluster
//! joins, stays available for as long as its agent runs, falls silent without it and comes back.

use convoy_api::kinds::LEASE;
use convoy_api::ocm::names::MANAGED_CLUSTER;
use convoy_api::{Object, ObjectKey};
use convoy_check::{Applier, ApplyError};
use convoy_plan::dialect::ocm::{Hub, HubControllers};
use convoy_plan::dialect::ocm_registration::{OcmRegistration, Options};
use convoy_plan::{Dialect, Step, World, decide};
use convoy_testkit::{NOW, object};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const CLUSTER_API: &str = "cluster.open-cluster-management.io/v1";
const AVAILABLE: &str = "ManagedClusterConditionAvailable";

/// A hub, the managed cluster `eu`, and its agent, which may be stopped.
struct Site {
    applier: Applier,
    agent: OcmRegistration,
    runs_agent: bool,
}

impl Site {
    fn new(accepted: bool, more: Vec<Object>) -> Self {
        let spec = json!({"hubAcceptsClient": accepted, "leaseDurationSeconds": 60});
        let cluster = object(CLUSTER_API, "ManagedCluster", "eu").spec(spec).build();
        let world: World = more.into_iter().chain([cluster]).collect();
        let options = Options { kubernetes_version: "v1.34.0".into(), ..Options::new("eu") };
        let now = NOW.parse().expect("a fixed instant");
        let agent = OcmRegistration::new(options);
        Self { applier: Applier::new(world, now), agent, runs_agent: true }
    }

    fn steps(&self) -> Vec<Step> {
        let hub = Hub { parts: HubControllers::ALL };
        let (world, now) = (self.applier.world(), self.applier.now());
        let agent: Option<&dyn Dialect> = self.runs_agent.then_some(&self.agent);
        let mut steps = Vec::new();
        for dialect in [Some(&hub as &dyn Dialect), agent].into_iter().flatten() {
            let rollouts = dialect.rollouts(world).into_iter();
            steps.extend(rollouts.filter_map(|it| decide(dialect, world, &[], it.key(), now)));
        }
        steps
    }

    /// Rounds until nobody writes; time stands still.
    fn settle(&mut self) {
        for _ in 0..40 {
            let steps = self.steps();
            if steps.iter().all(Step::is_quiet) {
                return;
            }
            for step in &steps {
                match self.applier.apply(step) {
                    Ok(()) | Err(ApplyError::Stale(_) | ApplyError::Exists(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
        panic!("still writing: {:#?}", self.steps());
    }

    /// Lets time go by as the timers of both say, for so many seconds.
    fn run_for(&mut self, secs: i64) {
        let end = self.applier.now() + SignedDuration::from_secs(secs);
        loop {
            self.settle();
            let wakes = self.steps().into_iter().filter_map(|step| step.wake_at);
            let next: Timestamp = wakes.min().unwrap_or(end).min(end);
            assert!(next > self.applier.now() || next == end, "a timer in the past");
            self.applier.advance_to(next);
            if next == end {
                return self.settle();
            }
        }
    }

    fn cluster(&self) -> &Object {
        self.applier.world().get(&own()).expect("it is there")
    }

    fn available(&self) -> Option<&str> {
        self.cluster().condition_status(AVAILABLE)
    }

    fn renewed(&self) -> Timestamp {
        let lease = self.applier.world().get(&lease()).expect("the hub created it");
        lease.spec()["renewTime"].as_str().expect("a time").parse().expect("a time")
    }
}

fn own() -> ObjectKey {
    MANAGED_CLUSTER.key("", "eu")
}

fn lease() -> ObjectKey {
    LEASE.key("eu", "managed-cluster-lease")
}

fn claim(name: &str, value: &str) -> Object {
    object("cluster.open-cluster-management.io/v1alpha1", "ClusterClaim", name)
        .spec(json!({"value": value}))
        .build()
        .in_cluster("eu")
}

fn node(name: &str) -> Object {
    let amounts = json!({"cpu": "4", "memory": "8Gi"});
    object("v1", "Node", name)
        .status(json!({"capacity": amounts, "allocatable": amounts}))
        .build()
        .in_cluster("eu")
}

#[test]
fn a_cluster_joins_once_it_is_accepted_and_stays_available() {
    let mut site = Site::new(false, vec![node("a"), node("b")]);
    site.run_for(600);
    assert_eq!(site.available(), None, "nobody accepted it");
    let reasons: Vec<String> =
        site.steps().iter().flat_map(|step| &step.holds).map(|it| it.reason.to_string()).collect();
    assert!(reasons.iter().any(|it| it.contains("spec.hubAcceptsClient")), "{reasons:?}");
    site.applier.edit(&own(), |raw| raw["spec"]["hubAcceptsClient"] = json!(true));
    site.run_for(3600);
    assert_eq!(site.available(), Some("True"));
    assert_eq!(site.cluster().condition_status("ManagedClusterJoined"), Some("True"));
    assert_eq!(site.cluster().spec()["taints"], json!([]), "{:#}", site.cluster().spec());
    let age = site.applier.now().duration_since(site.renewed());
    assert!(age <= SignedDuration::from_secs(60), "renewed {age:?} ago");
    let status = site.cluster().status();
    assert_eq!(status["capacity"], json!({"cpu": "8", "memory": "16777216Ki"}));
    assert_eq!(status["version"], json!({"kubernetes": "v1.34.0"}));
}

#[test]
fn a_silent_agent_makes_the_cluster_unknown_until_it_is_back() {
    let mut site = Site::new(true, vec![]);
    site.run_for(120);
    assert_eq!(site.available(), Some("True"));
    site.runs_agent = false;
    site.run_for(400);
    assert_eq!(site.available(), Some("Unknown"));
    let taint = "cluster.open-cluster-management.io/unreachable";
    assert_eq!(site.cluster().spec()["taints"][0]["key"], taint);
    site.runs_agent = true;
    site.run_for(1);
    assert_eq!(site.available(), Some("True"));
    assert_eq!(site.cluster().spec()["taints"], json!([]));
    // A cluster that is denied falls silent, and is not renewed.
    site.applier.edit(&own(), |raw| raw["spec"]["hubAcceptsClient"] = json!(false));
    let renewed = site.renewed();
    site.run_for(400);
    assert_eq!(site.renewed(), renewed);
}

#[test]
fn a_lease_that_was_renewed_in_the_future_is_renewed_at_once() {
    let mut site = Site::new(true, vec![]);
    site.run_for(120);
    let ahead = site.applier.now() + SignedDuration::from_hours(2);
    site.applier.edit(&lease(), |raw| raw["spec"]["renewTime"] = json!(ahead.to_string()));
    site.settle();
    assert_eq!(site.renewed(), site.applier.now());
    let clock = site.cluster().condition_status("ManagedClusterConditionClockSynced");
    assert_eq!(clock, Some("True"));
}

#[test]
fn claims_are_reported_reserved_ones_first_and_no_more_than_may_be() {
    let mut claims: Vec<Object> = (0..25).map(|at| claim(&format!("c{at:02}"), "x")).collect();
    claims.push(claim("id.k8s.io", "eu"));
    let hidden = claim("hidden", "x");
    let mut raw = hidden.raw().clone();
    raw["metadata"]["labels"] = json!({"open-cluster-management.io/spoke-only": ""});
    claims.push(hidden.with_raw(raw));
    let mut site = Site::new(true, claims);
    site.run_for(1);
    let told = site.cluster().status()["clusterClaims"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = told.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names.len(), 21);
    assert_eq!((names[0], names[1], names[20]), ("id.k8s.io", "c00", "c19"));
    // What others report about resources stays.
    site.applier.edit(&own(), |raw| raw["status"]["capacity"] = json!({"gpu": "3"}));
    site.run_for(1);
    let capacity: &Value = &site.cluster().status()["capacity"];
    assert_eq!(*capacity, json!({"gpu": "3"}));
}
