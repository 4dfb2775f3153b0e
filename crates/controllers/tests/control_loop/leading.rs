//! Leaders that hand over, lose their lease, get it back, and oversleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use convoy_controllers::fence::Clock;
use convoy_controllers::leader::{Leader, LeadershipLost};
use convoy_controllers::lease::Election;
use convoy_controllers::tenure::LeaseTiming;
use convoy_controllers::{Settings, run};
use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::cluster::{Cluster, both};
use crate::transport::{Fate, meddled};

/// The shortest lease that `convoy run` allows, so that tests are quick.
fn election(identity: &str) -> Election {
    let timing = LeaseTiming::new(Duration::from_secs(3));
    Election { timing, ..Election::new("default", "convoy", identity) }
}

/// As `deploy/lease.yaml` has it: nobody ever held it.
async fn unheld(client: &Client) -> Api<Lease> {
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let lease = serde_json::from_value(json!({"metadata": {"name": "convoy"}})).unwrap();
    leases.create(&PostParams::default(), &lease).await.unwrap();
    leases
}

async fn holder(leases: &Api<Lease>) -> Option<String> {
    leases.get_opt("convoy").await.unwrap()?.spec?.holder_identity
}

/// A clock that a test can set forward, as a stopped process finds it.
#[derive(Default)]
struct Ahead(AtomicU64);

impl Clock for Ahead {
    fn now(&self) -> Duration {
        convoy_controllers::fence::BootClock.now()
            + Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

#[tokio::test]
async fn a_leader_hands_over_at_once() {
    let cluster = Cluster::new().await;
    let leases = unheld(&cluster.client).await;
    let [mut one, mut two] =
        ["one", "two"].map(|name| Leader::new(cluster.client.clone(), election(name)));
    one.acquire().await;
    assert_eq!(one.fence().look(), Ok(Some(election("one").timing)));
    let early = tokio::time::timeout(Duration::from_millis(900), two.acquire()).await;
    assert!(early.is_err(), "one leads");
    one.release().await;
    assert!(one.fence().look().is_err());
    // Less than a silent leader keeps its lease for.
    tokio::time::timeout(Duration::from_secs(2), two.acquire()).await.unwrap();
    assert!(two.fence().look().is_ok(), "and there is nothing to wait for");
    let spec = leases.get("convoy").await.unwrap().spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("two"), Some(2)));
}

#[tokio::test]
async fn a_leader_that_sees_another_holder_stops_at_once() {
    let cluster = Cluster::new().await;
    let client = cluster.client.clone();
    let leases = unheld(&client).await;
    let mut leader = Leader::new(client.clone(), Election::new("default", "convoy", "one"));
    leader.acquire().await;
    let fence = leader.fence();
    let work = tokio::spawn(async move {
        let settings = Settings { fence: leader.fence(), ..both() };
        let mut lost = None;
        run(client, settings, async { lost = Some(leader.hold().await) }).await;
        lost
    });
    cluster.create(4).await;
    cluster.roll(|_, _| {}).await;
    cluster.set_image("web:v2").await;
    let taken = json!({"spec": {"holderIdentity": "two"}});
    leases.patch("convoy", &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
    // It looks every two seconds, and would be allowed to write for ten.
    let started = Instant::now();
    while fence.look().is_ok() {
        assert!(started.elapsed() < Duration::from_secs(5), "it leads on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let lost = tokio::time::timeout(Duration::from_secs(30), work).await.unwrap().unwrap();
    assert_eq!(lost, Some(LeadershipLost::Taken { holder: "two".to_owned() }));
    let version = cluster.version().await;
    cluster.patch(json!({"spec": {"replicas": 9}})).await;
    assert_ne!(version, cluster.rest().await, "our own patch");
    assert!(cluster.live_pods().await.len() < 9, "nobody works any more");
    assert_eq!(holder(&leases).await.as_deref(), Some("two"), "and nobody takes it back");
}

#[tokio::test]
async fn a_leader_takes_a_deleted_lease_back_before_anyone_else_may() {
    let cluster = Cluster::new().await;
    let leases = unheld(&cluster.client).await;
    let [mut one, mut two] =
        ["one", "two"].map(|name| Leader::new(cluster.client.clone(), election(name)));
    one.acquire().await;
    leases.delete("convoy", &DeleteParams::default()).await.unwrap();
    // A candidate that starts now finds no lease, and does not take it for a new installation.
    let begun = Instant::now();
    let acquired = tokio::time::timeout(Duration::from_millis(2_500), two.acquire()).await;
    assert!(acquired.is_err(), "taken after {:?}", begun.elapsed());
    assert_eq!(holder(&leases).await, None);
    let held = tokio::time::timeout(Duration::from_millis(500), one.hold()).await;
    // Its tenure of two seconds is over, as nobody renewed it in this test.
    assert!(matches!(held, Ok(LeadershipLost::NotRenewed { .. })), "{held:?}");

    two.acquire().await;
    assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(two.fence().look().is_err(), "writes of its predecessor may be in flight");
    leases.delete("convoy", &DeleteParams::default()).await.unwrap();
    let held = tokio::time::timeout(Duration::from_millis(1_500), two.hold()).await;
    assert!(held.is_err(), "{held:?}");
    assert_eq!(holder(&leases).await.as_deref(), Some("two"), "it takes its own lease back");
    assert!(two.fence().look().is_ok(), "the grace is over");
}

#[tokio::test]
async fn a_process_that_slept_too_long_creates_nothing_more() {
    let cluster = Cluster::new().await;
    unheld(&cluster.client).await;
    let clock = Arc::new(Ahead::default());
    let creates = Arc::new(AtomicUsize::new(0));
    let client = meddled(cluster.transport(), {
        let (clock, creates) = (Arc::clone(&clock), Arc::clone(&creates));
        move |method, uri| {
            if *method == Method::POST
                && uri.path().ends_with("/pods")
                && creates.fetch_add(1, Ordering::Relaxed) == 100
            {
                clock.0.store(3_600, Ordering::Relaxed);
            }
            Fate::Sound
        }
    });
    let election = Election::new("default", "convoy", "one");
    let mut leader = Leader::with_clock(client.clone(), election, clock);
    leader.acquire().await;
    let settings = Settings { fence: leader.fence(), ..both() };
    cluster.create(400).await;
    let mut lost = None;
    let work = run(client, settings, async { lost = Some(leader.hold().await) });
    tokio::time::timeout(Duration::from_secs(20), work).await.unwrap();
    assert_eq!(lost, Some(LeadershipLost::NotRenewed { within: Duration::from_secs(10) }));
    let created = creates.load(Ordering::Relaxed);
    // Those of its batch had been handed over already: this transport looks only once.
    assert!((100..=132).contains(&created), "{created}");
    assert_eq!(cluster.live_pods().await.len(), created);
}
