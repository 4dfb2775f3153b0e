//! An upgrade: the leader is told to end in the middle of a rollout, and a standby goes on. The
//! audit log of a real API server says how long nobody wrote.

use std::time::{Duration, Instant};

use convoy_kubernetes::{ControlPlane, Process, WITHOUT_DEPLOYMENTS};
use jiff::Timestamp;

use crate::access::Access;
use crate::audit::{AuditLog, Audited};
use crate::home;

/// From the last write of a leader to the first one of the next.
const GAP_MAX: Duration = Duration::from_secs(2);

/// Deployments that are rolled out one pod at a time, so that there is always something to write.
const DEPLOYMENTS: usize = 4;
const REPLICAS: usize = 40;

const ACCOUNT: &str = "system:serviceaccount:convoy-system:convoy";

/// A replica with a token and a kubeconfig of its own.
fn replica(control_plane: &ControlPlane, access: &Access, number: usize) -> Process {
    let token = access.kubectl("create token convoy -n convoy-system --duration=2h");
    let account = control_plane.kubeconfig_of(&format!("replica-{number}"), token.trim()).unwrap();
    let mut command = home::control_loop(&account, "apps");
    home::start(&control_plane.running, command.arg("--leader-elect")).0
}

fn holder(access: &Access) -> String {
    let lease = access.until("lease convoy -n convoy-system", |lease| {
        lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty())
    });
    lease["spec"]["holderIdentity"].as_str().unwrap().to_owned()
}

fn web(number: usize, image: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web-{number}}}\nspec:\n  \
         replicas: {REPLICAS}\n  selector: {{matchLabels: {{app: web-{number}}}}}\n  \
         strategy: {{rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}}}\n  \
         template: {{metadata: {{labels: {{app: web-{number}}}}}, \
         spec: {{containers: [{{name: web, image: \"{image}\"}}]}}}}\n"
    )
}

fn apply(site: &Access, image: &str) {
    let all: Vec<String> = (0..DEPLOYMENTS).map(|number| web(number, image)).collect();
    site.kubectl_with("apply -f -", &all.join("---\n"));
}

fn finishes(site: &Access) {
    for number in 0..DEPLOYMENTS {
        site.kubectl(&format!("rollout status deployment web-{number} --timeout=240s"));
    }
}

/// The writes of the loops to what is rolled out, by token in the order of the first one.
fn tenures(requests: Vec<Audited>, since: Timestamp) -> Vec<Vec<Timestamp>> {
    let mut tenures: Vec<(String, Vec<Timestamp>)> = Vec::new();
    for request in requests {
        let is_write = ["create", "patch", "delete"].contains(&request.verb.as_str());
        if request.user != ACCOUNT
            || request.group != "apps"
            || !is_write
            || request.received < since
        {
            continue;
        }
        match tenures.iter_mut().find(|(credential, _)| *credential == request.credential) {
            Some((_, writes)) => writes.push(request.received),
            None => tenures.push((request.credential, vec![request.received])),
        }
    }
    tenures.into_iter().map(|(_, writes)| writes).collect()
}

#[test]
fn a_leader_that_ends_in_order_leaves_no_gap_of_two_seconds() {
    let (control_plane, log) = AuditLog::control_plane(&[]);
    let _manager = control_plane.manage(WITHOUT_DEPLOYMENTS, &[]).unwrap();
    let _fleet = home::attach(&control_plane, &home::scenario("[{count: 4}]"));
    let access = Access::new(control_plane.kubeconfig.clone());
    home::install(&access, "deploy");
    let site = access.within("shop");
    let mut leader = replica(&control_plane, &access, 0);
    let mut leads = holder(&access);
    let mut standby = replica(&control_plane, &access, 1);
    apply(&site, "example/web:1");
    finishes(&site);

    let since = Timestamp::now();
    apply(&site, "example/web:2");
    for number in 2..4 {
        // In the middle of its work.
        let (leaders, started) = (number - 1, Instant::now());
        loop {
            let seen = tenures(log.requests(), since);
            if seen.len() == leaders && seen.last().is_some_and(|writes| writes.len() >= 20) {
                break;
            }
            assert!(started.elapsed() < Duration::from_mins(1), "{} leaders wrote", seen.len());
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(leader.end().unwrap(), Some(0));
        let before = std::mem::replace(&mut leads, holder(&access));
        assert_ne!(before, leads);
        leader = std::mem::replace(&mut standby, replica(&control_plane, &access, number));
    }
    finishes(&site);
    let tenures = tenures(log.requests(), since);
    assert_eq!(tenures.len(), 3, "each of the leaders wrote");
    for pair in tenures.windows(2) {
        let (last, first) = (pair[0].iter().max().unwrap(), pair[1].iter().min().unwrap());
        let gap = Duration::try_from(first.duration_since(*last))
            .unwrap_or_else(|_| panic!("two leaders wrote at once: {last} and {first}"));
        eprintln!("nobody wrote for {gap:?}");
        assert!(gap < GAP_MAX, "nobody wrote for {gap:?}");
    }
}
