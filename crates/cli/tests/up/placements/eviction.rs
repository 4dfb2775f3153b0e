//! Evictions: one placement leaves one cluster, if the disruption budget allows it.

use serde_json::{Value, json};

use super::site::{Site, changing, clusters, embedded, fixed, on_cluster, pick, rolling, word};

/// Asks for an eviction, and waits for what becomes of it: `Valid` and `Executed`.
pub(super) fn evict(site: &Site, name: &str, cluster: &str) -> (String, String, String) {
    let name = format!("{}-{name}", site.name);
    site.apply(&json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacementEviction", "metadata": {"name": name},
        "spec": {"placementName": site.name, "clusterName": cluster}}));
    let told = |eviction: &Value, kind: &str| {
        word(&eviction["status"]["conditions"], kind, &Value::Null)
            .replace("ClusterResourcePlacementEviction", "")
    };
    let what = format!("clusterresourceplacementeviction {name}");
    let eviction = site.hub.until(&what, |eviction| {
        told(eviction, "Valid").starts_with("False") || !told(eviction, "Executed").is_empty()
    });
    let conditions = eviction["status"]["conditions"].as_array().unwrap();
    let message = conditions.last().unwrap()["message"].as_str().unwrap().to_owned();
    (told(&eviction, "Valid"), told(&eviction, "Executed"), message)
}

pub(super) fn budget(site: &Site, spec: &Value) {
    site.apply(&disruption_budget(site, spec));
}

fn disruption_budget(site: &Site, spec: &Value) -> Value {
    json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacementDisruptionBudget", "metadata": {"name": site.name},
        "spec": spec})
}

/// A cluster that is tainted before it is evicted stays empty; any other is picked again.
#[test]
fn an_evicted_cluster_is_picked_again_unless_it_is_tainted() {
    let home = changing();
    let site = home.site("evict");
    site.deploy();
    site.place(&json!({"placementType": "PickAll"}), &rolling(&json!({})));
    assert_eq!(clusters(&site.finished(0)).len(), 4);
    let record = site.record();
    let (valid, executed, _) = evict(&site, "again", "member-1");
    record.until("its end", |now| now.leaving() == ["member-1"]);
    assert_eq!((valid.as_str(), executed.as_str()), ("True/Valid", "True/Executed"));
    // Another binding is there at once, and waits until the old one is gone.
    record.finally("another binding", |now| now.available().len() == 4 && now.all().len() == 4);
    let moments = record.moments();
    assert!(moments.iter().any(|now| now.leaving() == ["member-1"]), "{moments:?}");
    assert!(moments.iter().all(|now| now.available().len() >= 3), "{moments:?}");
    site.until_on("member-1", "deployment web", |web| !web.is_null());

    let taints =
        json!({"spec": {"taints": [{"key": "evict", "value": "yes", "effect": "NoSchedule"}]}});
    site.patch("membercluster member-2", &taints);
    let (_, executed, _) = evict(&site, "for-good", "member-2");
    assert_eq!(executed, "True/Executed");
    site.until(|placement| clusters(placement) == ["member-1", "member-3", "member-4"]);
    site.until_on("member-2", "deployment web", Value::is_null);
    site.patch("membercluster member-2", &json!({"spec": {"taints": null}}));
    site.until(|placement| clusters(placement).len() == 4);
}

/// For N clusters that all work: the budget, and whether one may go.
#[test]
fn a_budget_allows_or_denies() {
    let site = embedded().site("budgets");
    site.kubectl("create configmap settings --from-literal=a=b");
    site.place(&pick(3, "env", "prod"), &rolling(&json!({})));
    site.finished(0);
    let cases = [
        ("none-missing", json!({"maxUnavailable": 0}), "member-4", false),
        ("no-percent", json!({"maxUnavailable": "0%"}), "member-4", false),
        ("all-needed", json!({"minAvailable": 3}), "member-4", false),
        ("all-percent", json!({"minAvailable": "90%"}), "member-4", false),
        ("one-missing", json!({"maxUnavailable": 1}), "member-4", true),
        ("ten-percent", json!({"maxUnavailable": "10%"}), "member-3", true),
        ("two-needed", json!({"minAvailable": 2}), "member-2", true),
        ("half-needed", json!({"minAvailable": "50%"}), "member-4", true),
    ];
    for (name, spec, cluster, allowed) in cases {
        let fields = ["maxUnavailable", "minAvailable"].map(|it| (it.to_owned(), spec[it].clone()));
        budget(&site, &Value::Object(fields.into_iter().filter(|(_, it)| !it.is_null()).collect()));
        let record = site.record();
        let (valid, executed, message) = evict(&site, name, cluster);
        assert_eq!(valid, "True/Valid", "{name}");
        let want = if allowed { "True/Executed" } else { "False/NotExecuted" };
        assert_eq!(executed, want, "{name}: {message}");
        assert!(message.contains('3'), "the counts are told: {message}");
        if allowed {
            record.until("its end", |now| now.leaving() == [cluster]);
            record
                .finally("a replacement", |now| now.available().len() == 3 && now.all().len() == 3);
        } else {
            assert!(record.moments().iter().all(|now| now.available().len() == 3), "{name}");
        }
    }
}

#[test]
fn a_cluster_that_does_not_work_uses_up_the_budget() {
    let site = embedded().site("used-up");
    site.deploy();
    site.place(&pick(3, "env", "prod"), &rolling(&json!({"maxUnavailable": 1})));
    site.finished(0);
    budget(&site, &json!({"maxUnavailable": 1}));
    site.set_image("bad");
    site.until(|placement| on_cluster(placement, "member-2", "Available").starts_with("False"));
    let (_, executed, message) = evict(&site, "one-more", "member-3");
    assert_eq!(executed, "False/NotExecuted", "{message}");
    assert!(message.contains('2') && message.contains('3'), "{message}");
    // The one that failed costs nothing.
    let (_, executed, message) = evict(&site, "failed", "member-2");
    assert_eq!(executed, "True/Executed", "{message}");
}

#[test]
fn budgets_of_all_clusters_are_numbers_and_fixed_clusters_are_not_evicted() {
    let home = changing();
    let site = home.site("all-clusters");
    site.kubectl("create configmap settings --from-literal=a=b");
    site.place(&json!({"placementType": "PickAll"}), &rolling(&json!({})));
    site.finished(0);
    let total = clusters(&site.finished(0)).len();
    for spec in [json!({"minAvailable": "10%"}), json!({"maxUnavailable": 1})] {
        let budget = disruption_budget(&site, &spec).to_string();
        let refused = site.hub.refused("apply -f -", &budget);
        assert!(refused.contains("policy type PickAll is not supported with"), "{refused}");
    }
    for (name, spec, allowed) in [
        ("all-of-them", json!({"minAvailable": total}), false),
        ("some-of-them", json!({"minAvailable": 1}), true),
    ] {
        let name_of = format!("clusterresourceplacementdisruptionbudget {}", site.name);
        site.hub.kubectl(&format!("delete {name_of} --ignore-not-found"));
        budget(&site, &spec);
        let (valid, executed, message) = evict(&site, name, "member-3");
        assert_eq!(valid, "True/Valid", "{name}");
        assert_eq!(executed.starts_with("True"), allowed, "{name}: {message}");
    }
    let fixed_site = embedded().site("fixed-clusters");
    fixed_site.kubectl("create configmap settings --from-literal=a=b");
    fixed_site.place(&fixed(&["member-1"]), &rolling(&json!({})));
    fixed_site.finished(0);
    let eviction = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacementEviction", "metadata": {"name": "never"},
        "spec": {"placementName": fixed_site.name, "clusterName": "member-1"}});
    let refused = fixed_site.hub.refused("apply -f -", &eviction.to_string());
    assert!(refused.contains("policy type PickFixed is not supported"), "{refused}");
}
