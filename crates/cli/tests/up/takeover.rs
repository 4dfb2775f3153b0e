//! Clusters that change hands: the next controller goes on where the last one ended, and where
//! nothing is to be done it writes nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use convoy_kubernetes::{ControlPlane, Process, WITHOUT_DEPLOYMENTS, free_ports};

use crate::access::Access;
use crate::home::{control_loop, fleet, real_control_plane, start};
use crate::running::Running;
use crate::scrape::scrape;

/// Deployments at rest, each in another state; how many.
fn furnish(site: &Access) -> usize {
    let status =
        |name: &str| site.kubectl(&format!("rollout status deployment {name} --timeout=120s"));
    for name in ["rolled", "paused", "stuck", "empty", "replaced"] {
        site.kubectl(&format!("create deployment {name} --image=example/web:1 --replicas=3"));
    }
    let recreate = r#"{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}"#;
    site.kubectl(&format!("patch deployment replaced -p {recreate}"));
    for tag in ["2", "3"] {
        for name in ["rolled", "replaced"] {
            site.kubectl(&format!("set image deployment {name} web=example/web:{tag}"));
            status(name);
        }
    }
    site.kubectl("rollout undo deployment rolled");
    site.kubectl("rollout pause deployment paused");
    site.kubectl("set image deployment paused web=example/web:2");
    site.kubectl("scale deployment paused --replicas=4");
    site.kubectl("set image deployment stuck web=example/web:stuck");
    site.kubectl("scale deployment empty --replicas=0");
    for name in ["rolled", "empty", "replaced"] {
        status(name);
    }
    site.until("deployment paused", |paused| paused["status"]["availableReplicas"] == 4);
    site.until("deployment stuck", |stuck| {
        stuck["status"]["updatedReplicas"] == 1 && stuck["status"]["replicas"] == 4
    });
    5
}

/// The version of every object that a Deployment has to do with, once none changes any more.
fn versions(site: &Access) -> BTreeMap<String, String> {
    let look = || {
        let list = site.get("deployments,replicasets,pods");
        let items = list["items"].as_array().unwrap().iter();
        let version = |item: &serde_json::Value| {
            let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let metadata = &item["metadata"];
            let name = format!("{}/{}", word(&item["kind"]), word(&metadata["name"]));
            (name, word(&metadata["resourceVersion"]))
        };
        items.map(version).collect::<BTreeMap<_, _>>()
    };
    let mut seen = look();
    loop {
        std::thread::sleep(Duration::from_secs(2));
        let now = look();
        if now == seen {
            return seen;
        }
        seen = now;
    }
}

/// A control loop, and what it says of itself.
struct Observed {
    process: Process,
    port: u16,
}

impl Observed {
    fn start(control_plane: &ControlPlane) -> Self {
        let [port] = free_ports().unwrap();
        let mut command = control_loop(&control_plane.kubeconfig, "apps");
        command.arg(format!("--metrics-listen=127.0.0.1:{port}"));
        let (process, _) = start(&control_plane.running, &mut command);
        Self { process, port }
    }

    fn metrics(&self) -> String {
        scrape(self.port)
    }

    /// Waits until it has looked at so many Deployments.
    fn has_passed(&self, count: usize) {
        let started = Instant::now();
        loop {
            let text = self.metrics();
            let passes = text.lines().filter(|line| line.starts_with("convoy_passes_total{"));
            let counts = passes.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
            if counts.sum::<usize>() >= count {
                return;
            }
            assert!(started.elapsed() < Duration::from_mins(1), "{text}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Whether anyone tells that Convoy did anything.
fn events_of_convoy(site: &Access) -> usize {
    let events = site.get("events");
    let items = events["items"].as_array().unwrap().iter();
    items.filter(|event| event["source"]["component"] == "convoy").count()
}

#[test]
fn a_quiet_cluster_changes_hands_without_a_write() {
    let control_plane = real_control_plane();
    let _fleet = fleet(&control_plane);
    let upstream = control_plane.manage("*", &[]).unwrap();
    let site = Access::new(control_plane.kubeconfig.clone()).within("shop");
    let count = furnish(&site);
    let before = versions(&site);
    upstream.end().unwrap();

    // Taken over.
    let rest = control_plane.manage(WITHOUT_DEPLOYMENTS, &[]).unwrap();
    let convoy = Observed::start(&control_plane);
    convoy.has_passed(count);
    assert_eq!(versions(&site), before);
    let told = convoy.metrics();
    assert!(!told.contains("convoy_writes_total{"), "{told}");
    assert_eq!(events_of_convoy(&site), 0);

    // It is in charge: what was stuck is freed, what was held back goes on.
    site.kubectl("set image deployment stuck web=example/web:3");
    site.kubectl("rollout resume deployment paused");
    for name in ["stuck", "paused"] {
        site.kubectl(&format!("rollout status deployment {name} --timeout=120s"));
    }
    assert!(events_of_convoy(&site) > 0);
    let before = versions(&site);
    assert_eq!(convoy.process.end().unwrap(), Some(0));
    rest.end().unwrap();

    // Given back. The last one made is looked at after all others.
    let _upstream = control_plane.manage("*", &[]).unwrap();
    site.kubectl("create deployment last --image=example/web:1");
    site.kubectl("rollout status deployment last --timeout=120s");
    let mut after = versions(&site);
    after.retain(|name, _| !name.contains("/last"));
    assert_eq!(after, before);
}

#[test]
fn another_loop_goes_on_where_one_ended() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "3", "--controllers", "none"]);
    let place = convoy_kubernetes::Running::new("loops").unwrap();
    let begin = || start(&place, &mut control_loop(&running.kubeconfig, "apps,replicasets")).0;
    let first = begin();
    let status = || running.kubectl("rollout status deployment web --timeout=120s");
    running.kubectl("create deployment web --image=example/web:1 --replicas=3");
    status();
    assert_eq!(first.end().unwrap(), Some(0));
    running.kubectl("set image deployment web web=example/web:2");
    let second = begin();
    status();
    let images = running.kubectl(
        "get pods -l app=web -o jsonpath={range.items[*]}{.spec.containers[0].image},{end}",
    );
    assert!(images.contains("example/web:2,"), "{images}");
    assert_eq!(second.end().unwrap(), Some(0));
}
