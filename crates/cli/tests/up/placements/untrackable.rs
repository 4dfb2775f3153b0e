//! What cannot be tracked: the next cluster follows when the period is over.

use serde_json::{Value, json};

use super::record::{Moment, condition, has_index, since};
use super::site::{Site, embedded, fixed, placed, rolling};

const PERIOD: i64 = 2;

const CLUSTERS: [&str; 3] = ["member-1", "member-2", "member-3"];

/// Places the namespace on three clusters, one of which may be unavailable for the period. The index
/// of the snapshot that has this kind, too.
fn place(site: &Site, kind: &str) -> u32 {
    let budget = json!({"maxUnavailable": 1, "unavailablePeriodSeconds": PERIOD});
    site.place(&fixed(&CLUSTERS), &rolling(&budget));
    let placement = site.until(|placement| {
        let mut selected =
            placement["status"]["selectedResources"].as_array().into_iter().flatten();
        selected.any(|it| it["kind"] == kind)
            && placed(placement, "Available") == "True/ResourceAvailable"
    });
    placement["status"]["observedResourceIndex"].as_str().unwrap().parse().unwrap()
}

/// One cluster after the other was updated, each a period after the one before it had everything.
fn kept_its_distance(moments: &[Moment], index: u32) {
    for moment in moments {
        let updated: Vec<&Value> =
            moment.at(index).iter().map(|it| moment.of(it).unwrap()).collect();
        let unsettled =
            updated.iter().filter(|binding| !condition(binding, "Available").starts_with("True"));
        assert!(unsettled.count() <= 1, "{moment:?}");
    }
    let last = moments.last().unwrap();
    let bindings: Vec<&Value> = CLUSTERS.iter().map(|it| last.of(it).unwrap()).collect();
    for binding in &bindings {
        assert!(has_index(binding, index));
        assert_eq!(condition(binding, "Available"), "True/NotAllWorkAreAvailabilityTrackable");
    }
    // When each was given the new resources: then it is not applied yet.
    let mut times: Vec<(i64, i64)> = CLUSTERS
        .iter()
        .map(|cluster| {
            let told = moments.iter().filter_map(|moment| moment.of(cluster));
            let told = told.filter(|binding| has_index(binding, index));
            let mut begun = told.filter(|binding| !condition(binding, "Applied").is_empty());
            let begun = since(begun.next().unwrap(), "Applied");
            (begun, since(last.of(cluster).unwrap(), "Available"))
        })
        .collect();
    times.sort_unstable();
    for pair in times.windows(2) {
        let ((_, settled), (begun, _)) = (pair[0], pair[1]);
        assert!(begun - settled >= PERIOD, "{times:?}");
    }
}

fn changes_after_a_period(site: &Site, kind: &str, change: impl FnOnce(&Site)) {
    let index = place(site, kind) + 1;
    // The first placement has its period, too.
    std::thread::sleep(std::time::Duration::from_secs(PERIOD.unsigned_abs() + 1));
    let record = site.record();
    change(site);
    record.finally("the end", |now| {
        let settled = |it: &&str| {
            now.of(it).is_some_and(|binding| condition(binding, "Available").starts_with("True"))
        };
        now.at(index).len() == CLUSTERS.len() && CLUSTERS.iter().all(settled)
    });
    kept_its_distance(&record.moments(), index);
    site.finished(index);
}

#[test]
fn a_service_of_type_external_name_waits_for_the_period() {
    let site = embedded().site("external-name");
    site.kubectl("create service externalname shop --external-name=one.example.com");
    changes_after_a_period(&site, "Service", |site| {
        let patch = json!({"spec": {"externalName": "two.example.com"}});
        site.kubectl(&format!("patch service shop -p {patch}"));
    });
    let service = site.on("member-3", "service shop").unwrap();
    assert_eq!(service["spec"]["externalName"], "two.example.com");
}

#[test]
fn a_job_waits_for_the_period_and_for_nothing_else() {
    let site = embedded().site("jobs");
    // The image can never be pulled: a Job is not tracked.
    site.kubectl("create job once --image=example/job:bad");
    changes_after_a_period(&site, "Job", |site| {
        let patch = json!({"spec": {"backoffLimit": 3}});
        site.kubectl(&format!("patch job once --type=merge -p {patch}"));
    });
}

#[test]
fn a_custom_resource_waits_for_the_period() {
    let site = embedded().site("customs");
    let group = "customs.example.com";
    let schema = json!({"openAPIV3Schema": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": format!("crates.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "versions": [version],
            "names": {"plural": "crates", "singular": "crate", "kind": "Crate"}}})
    .to_string();
    for server in site.members.values().chain([&site.hub]) {
        server.kubectl_with("apply -f -", &definition);
        server
            .kubectl(&format!("wait --for=condition=Established crd/crates.{group} --timeout=60s"));
    }
    let custom = |size: u32| {
        site.apply(&json!({"apiVersion": format!("{group}/v1"), "kind": "Crate",
            "metadata": {"name": "one", "namespace": site.name}, "spec": {"size": size}}));
    };
    custom(1);
    changes_after_a_period(&site, "Crate", |_| custom(2));
    let found = site.on("member-1", &format!("crates.{group} one")).unwrap();
    assert_eq!(found["spec"]["size"], 2);
}
