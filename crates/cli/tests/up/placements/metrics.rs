//! The numbers about placements, evictions and runs, under upstream's names and labels.

use std::time::{Duration, Instant};

use convoy_kubernetes::free_ports;
use serde_json::{Value, json};

use crate::running::{Running, command};
use crate::scrape::scrape;

/// Waits until a series of a metric has these labels; its value.
fn until(port: u16, metric: &str, labels: &str) -> String {
    let begun = Instant::now();
    let start = format!("{metric}{{{labels}}} ");
    loop {
        let text = scrape(port);
        if let Some(value) = text.lines().find_map(|line| line.strip_prefix(&start)) {
            return value.to_owned();
        }
        let near: Vec<&str> = text.lines().filter(|line| line.starts_with("fleet_")).collect();
        assert!(begun.elapsed() < Duration::from_mins(2), "{start} is not among {near:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn apply(hub: &Running, kind: &str, name: &str, spec: &Value) {
    let object = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": kind,
        "metadata": {"name": name}, "spec": spec});
    hub.kubectl_with("apply -f -", &object.to_string());
}

#[test]
fn placements_are_counted_under_upstreams_names() {
    let directory = tempfile::tempdir().unwrap();
    let [port] = free_ports().unwrap();
    let hub = Running::start_as(
        command(directory.path())
            .args(["--members=1", "--member-nodes=0"])
            .args([&format!("--metrics-listen=127.0.0.1:{port}"), "--durability=none"]),
    );
    hub.kubectl("wait --for=condition=Joined memberclusters --all --timeout=60s");
    hub.kubectl("create namespace shop");
    let selector = json!([{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}]);
    let all = json!({"placementType": "PickAll"});
    apply(
        &hub,
        "ClusterResourcePlacement",
        "shop",
        &json!({"resourceSelectors": selector, "policy": all}),
    );
    let status = "fleet_workload_placement_status_last_timestamp_seconds";
    let labels = |kind: &str, word: &str, reason: &str, generation: u32| {
        format!(
            r#"namespace="",name="shop",generation="{generation}",conditionType="{kind}",status="{word}",reason="{reason}""#
        )
    };
    let value = until(port, status, &labels("Completed", "True", "Completed", 1));
    let placement = hub.get("clusterresourceplacement shop");
    let conditions = placement["status"]["conditions"].as_array().unwrap();
    let times = conditions.iter().map(|it| it["lastTransitionTime"].as_str().unwrap());
    let newest: jiff::Timestamp = times.max().unwrap().parse().unwrap();
    assert_eq!(value, newest.as_second().to_string());

    evictions_and_runs(&hub, port);
    everything_is_in_the_reference(&scrape(port));

    // All of it goes with the placement.
    hub.kubectl("delete clusterresourceplacement shop --timeout=60s");
    let begun = Instant::now();
    while scrape(port).contains(&format!("{status}{{")) {
        assert!(begun.elapsed() < Duration::from_mins(1), "{}", scrape(port));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What an eviction and two runs of the placement tell.
fn evictions_and_runs(hub: &Running, port: u16) {
    let run = "fleet_workload_update_run_status_last_timestamp_seconds";
    let spec = json!({"placementName": "shop", "clusterName": "nowhere"});
    apply(hub, "ClusterResourcePlacementEviction", "bad", &spec);
    until(
        port,
        "fleet_workload_eviction_complete",
        r#"name="bad",isCompleted="true",isValid="false""#,
    );

    let patch = json!({"spec": {"strategy": {"type": "External", "rollingUpdate": null}}});
    hub.kubectl(&format!("patch crp shop --type=merge -p {patch}"));
    let stages = json!([{"name": "all", "labelSelector": {}}]);
    apply(hub, "ClusterStagedUpdateStrategy", "once", &json!({"stages": stages}));
    hub.until("clusterresourceplacement shop", |it| {
        it["status"]["conditions"][0]["observedGeneration"] == it["metadata"]["generation"]
    });
    let spec =
        json!({"placementName": "shop", "stagedRolloutStrategyName": "once", "state": "Run"});
    apply(hub, "ClusterStagedUpdateRun", "one", &spec);
    until(
        port,
        run,
        r#"namespace="",name="one",state="Run",condition="Succeeded",status="True",reason="UpdateRunSucceeded",failureType="none""#,
    );
    let stage = "fleet_workload_update_run_stage_cluster_updating_duration_seconds";
    assert_eq!(until(port, &format!("{stage}_count"), r#"namespace="",name="one""#), "1");
    let spec =
        json!({"placementName": "gone", "stagedRolloutStrategyName": "once", "state": "Run"});
    apply(hub, "ClusterStagedUpdateRun", "two", &spec);
    until(
        port,
        run,
        r#"namespace="",name="two",state="Run",condition="Initialized",status="False",reason="UpdateRunInitializedFailed",failureType="user_error""#,
    );
}

/// No number is served that the reference does not explain.
fn everything_is_in_the_reference(text: &str) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let served = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    for name in served {
        assert!(page.contains(&format!("`{name}")), "{name} is not in the reference");
    }
}
