//! Watches of a home cluster and of members, of which one is silent.

use convoy_api::Object;
use convoy_api::kinds::{CONFIG_MAP, NAMESPACE, SERVICE};
use convoy_plan::dialect::fleet::{self, Hub};
use convoy_plan::dialect::ocm_agent::{OcmAgent, Options};
use convoy_testkit::NOW;
use serde_json::json;

use super::*;
use crate::Settings;
use crate::cache::CacheEvent;
use crate::copies::Copies;
use crate::execution::StepExecution;
use crate::reconciler::{Reconciler, Reconciliation};

fn original(name: &str, data: serde_json::Value) -> Object {
    let raw = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "5"}});
    Object::from_value(raw).unwrap()
}

/// A reconciler whose home cluster has these originals, and what it starts to watch by itself.
fn reconciler(originals: Vec<Object>) -> Reconciler {
    let mut reconciler = Reconciler::new(Settings::new(vec![&Copies]));
    assert_eq!(started(&mut reconciler), ["ConfigMap"]);
    list(&mut reconciler, "", &CONFIG_MAP, originals);
    reconciler
}

fn list(reconciler: &mut Reconciler, cluster: &str, kind: &GroupKind, objects: Vec<Object>) {
    let objects = objects.into_iter().map(|object| object.in_cluster(cluster)).collect();
    let collection = kind.in_cluster(cluster);
    reconciler.handle(CacheEvent::Listed { collection, version: Some(9), objects });
}

fn join(reconciler: &mut Reconciler, cluster: &str) {
    reconciler.handle(CacheEvent::Joined { cluster: SmolStr::new(cluster) });
}

fn fail(reconciler: &mut Reconciler, cluster: &str, why: &str) {
    let (collection, why) = (CONFIG_MAP.in_cluster(cluster), why.to_owned());
    reconciler.handle(CacheEvent::Failed { collection, why });
}

/// The collections whose watches begin.
fn started(reconciler: &mut Reconciler) -> Vec<String> {
    let changes = reconciler.take_watch_changes().into_iter();
    let started = changes.filter_map(|change| match change {
        WatchChange::Start { collection, .. } => Some(collection.to_string()),
        _ => None,
    });
    started.collect()
}

fn stopped(reconciler: &mut Reconciler) -> Vec<String> {
    let changes = reconciler.take_watch_changes().into_iter();
    let stopped = changes.filter_map(|change| match change {
        WatchChange::Stop { collection } => Some(collection.to_string()),
        WatchChange::StopDiscovery { cluster } => Some(format!("discovery {cluster:?}")),
        _ => None,
    });
    stopped.collect()
}

/// Every rollout that is due: its name, and the targets of its writes.
fn reconciled(reconciler: &mut Reconciler) -> Vec<(String, Vec<String>)> {
    let next = || reconciler.reconcile(NOW.parse().unwrap());
    let all = std::iter::from_fn(next).map(|Reconciliation { rollout, execution, .. }| {
        let actions = execution.iter().flat_map(StepExecution::actions);
        let targets = actions.map(|action| action.target.to_string()).collect();
        (rollout.key.name.to_string(), targets)
    });
    all.collect()
}

fn events(reconciler: &mut Reconciler) -> String {
    format!("{:?}", reconciler.take_events())
}

#[test]
fn a_silent_cluster_holds_up_the_rollouts_that_need_it_and_no_other() {
    let (a, b) = (json!({"to": "a", "text": "x"}), json!({"to": "b", "text": "x"}));
    let both = original("both", json!({"to": "a,b", "text": "x"}));
    let mut reconciler = reconciler(vec![original("one", a), original("two", b), both]);
    join(&mut reconciler, "a");
    join(&mut reconciler, "b");
    let none = |name: &str| (name.to_owned(), Vec::<String>::new());
    assert_eq!(reconciled(&mut reconciler), [none("both"), none("one"), none("two")]);
    assert_eq!(
        started(&mut reconciler),
        ["a: ConfigMap", "a: Namespace", "b: ConfigMap", "b: Namespace"]
    );
    assert_eq!(events(&mut reconciler), "[]", "a list that takes its time is not reported");
    fail(&mut reconciler, "b", "no response within 5000 ms");
    list(&mut reconciler, "a", &CONFIG_MAP, Vec::new());
    assert!(reconciled(&mut reconciler).iter().all(|(_, writes)| writes.is_empty()));
    list(&mut reconciler, "a", &NAMESPACE, Vec::new());
    let done = reconciled(&mut reconciler);
    let writes = vec!["a: ConfigMap/shop/one".to_owned(), "ConfigMap/shop/one".to_owned()];
    assert!(done.contains(&("one".to_owned(), writes)), "{done:?}");
    assert!(done.contains(&none("both")), "{done:?}");
    let events = events(&mut reconciler);
    let told = r#"objects of kind ConfigMap in cluster \"b\" are not known yet: no response"#;
    assert!(events.contains(told) && !events.contains("\"one\""), "{events}");
    list(&mut reconciler, "b", &CONFIG_MAP, Vec::new());
    list(&mut reconciler, "b", &NAMESPACE, Vec::new());
    let written = reconciled(&mut reconciler).into_iter().filter(|(_, writes)| !writes.is_empty());
    assert_eq!(written.map(|(name, _)| name).collect::<Vec<_>>(), ["both", "two"]);
}

#[test]
fn a_member_that_falls_silent_is_not_decided_about_until_it_is_listed_again() {
    let one = json!({"to": "a", "text": "x"});
    let mut reconciler = reconciler(vec![original("one", one.clone())]);
    join(&mut reconciler, "a");
    reconciled(&mut reconciler);
    list(&mut reconciler, "a", &CONFIG_MAP, Vec::new());
    list(&mut reconciler, "a", &NAMESPACE, Vec::new());
    fail(&mut reconciler, "a", "reset");
    assert_eq!(reconciled(&mut reconciler), [("one".to_owned(), vec![])]);
    fail(&mut reconciler, "a", "reset");
    assert_eq!(reconciled(&mut reconciler), [], "nothing new is known");
    list(&mut reconciler, "a", &CONFIG_MAP, Vec::new());
    assert_eq!(reconciled(&mut reconciler).len(), 1);
    // The home cluster has the rollouts; a watch that fails there stops nobody.
    fail(&mut reconciler, "", "reset");
    assert_eq!(reconciled(&mut reconciler), []);
}

#[test]
fn a_cluster_that_leaves_takes_its_objects_along() {
    let mut reconciler = reconciler(vec![original("one", json!({"to": "a", "text": "x"}))]);
    assert_eq!(reconciled(&mut reconciler), [("one".to_owned(), vec![])]);
    assert!(events(&mut reconciler).contains("there is no connection to it"));
    assert_eq!(started(&mut reconciler), Vec::<String>::new());
    join(&mut reconciler, "a");
    assert_eq!(started(&mut reconciler), ["a: ConfigMap", "a: Namespace"]);
    list(&mut reconciler, "a", &CONFIG_MAP, vec![original("one", json!({"text": "x"}))]);
    list(&mut reconciler, "a", &NAMESPACE, Vec::new());
    assert_eq!(reconciler.cache().world().of_cluster("a", &CONFIG_MAP).count(), 1);
    reconciler.handle(CacheEvent::Left { cluster: SmolStr::new("a") });
    assert_eq!(stopped(&mut reconciler), ["a: ConfigMap", "a: Namespace"]);
    assert_eq!(reconciler.cache().world().of_cluster("a", &CONFIG_MAP).count(), 0);
    assert_eq!(reconciled(&mut reconciler), [("one".to_owned(), vec![])], "it is not copied again");
}

#[test]
fn kinds_are_watched_for_as_long_as_a_rollout_needs_them() {
    let data = json!({"to": "", "reads": "x.dev/Thing"});
    let mut reconciler =
        reconciler(vec![original("one", data), original("two", json!({"to": ""}))]);
    let done = reconciled(&mut reconciler);
    assert_eq!(done[0], ("one".to_owned(), vec![]), "its kind is not listed");
    assert_eq!(done[1].1.len(), 1, "the other one does not wait");
    assert_eq!(started(&mut reconciler), ["x.dev/Thing"]);
    let collection = GroupKind::new("x.dev", "Thing").in_cluster("");
    reconciler.handle(CacheEvent::NotServed { collection });
    assert_eq!(reconciled(&mut reconciler)[0].1.len(), 1);
    let changed = original("one", json!({"to": ""}));
    let mut raw = changed.raw().clone();
    raw["metadata"]["resourceVersion"] = json!("12");
    reconciler.handle(CacheEvent::Applied(changed.with_raw(raw)));
    // The first step is still in flight; its end makes the rollout due.
    assert_eq!(reconciled(&mut reconciler), []);
    let mut watches = Watches::new(vec![&Copies]);
    let rollout = Rollout { dialect: 0, key: CONFIG_MAP.key("shop", "one") };
    watches.set_needs(&rollout, vec![Need::of_home(&SERVICE)]);
    watches.take_changes();
    assert_eq!(watches.set_needs(&rollout, Vec::new()), [SERVICE.in_cluster("")]);
    let collection = SERVICE.in_cluster("");
    assert_eq!(watches.take_changes(), [WatchChange::Stop { collection }]);
}

#[test]
fn every_namespaced_kind_is_watched_once_discovery_has_named_it() {
    let mut reconciler = reconciler(vec![original("one", json!({"to": "", "all": "true"}))]);
    reconciled(&mut reconciler);
    let cluster = SmolStr::default();
    let start = WatchChange::StartDiscovery { cluster: cluster.clone() };
    assert_eq!(reconciler.take_watch_changes(), [start]);
    let failed = Err("no response".to_owned());
    reconciler.handle(CacheEvent::Served { cluster: cluster.clone(), kinds: failed });
    assert_eq!(reconciled(&mut reconciler), [("one".to_owned(), vec![])]);
    assert!(events(&mut reconciler).contains("kind * are not known yet: no response"));
    let event = GroupKind::new("", "Event");
    let kinds = Ok(BTreeSet::from([CONFIG_MAP, SERVICE, event]));
    reconciler.handle(CacheEvent::Served { cluster: cluster.clone(), kinds });
    assert_eq!(started(&mut reconciler), ["Service"], "events are not taken along");
    assert_eq!(reconciled(&mut reconciler), [("one".to_owned(), vec![])]);
    list(&mut reconciler, "", &SERVICE, Vec::new());
    assert_eq!(reconciled(&mut reconciler)[0].1.len(), 1);
    let kinds = Ok(BTreeSet::from([CONFIG_MAP]));
    reconciler.handle(CacheEvent::Served { cluster, kinds });
    assert_eq!(stopped(&mut reconciler), ["Service"]);
}

#[test]
fn a_kind_of_which_a_table_keeps_some_fields_is_read_again_when_it_is_needed_whole() {
    let mut watches = Watches::new(vec![&Copies]);
    watches.take_changes();
    watches.join(&SmolStr::new("a"));
    let rollout = Rollout { dialect: 0, key: CONFIG_MAP.key("shop", "one") };
    let (cluster, version) = (SmolStr::new("a"), SmolStr::default());
    watches.set_needs(&rollout, vec![Need::Member { cluster: cluster.clone() }]);
    let collection = NAMESPACE.in_cluster("a");
    let start = WatchChange::Start { collection: collection.clone(), version: version.clone() };
    assert_eq!(watches.take_changes(), std::slice::from_ref(&start));
    watches.listed(&collection);
    assert!(watches.missing(&rollout).is_none() && !watches.is_reread(&collection));
    let whole = Need::Kind { collection: collection.clone(), version };
    watches.set_needs(&rollout, vec![whole]);
    let stop = WatchChange::Stop { collection: collection.clone() };
    assert_eq!(watches.take_changes(), [stop, start]);
    assert!(watches.missing(&rollout).is_some() && watches.is_reread(&collection));
}

#[test]
fn the_number_of_watched_kinds_is_bounded() {
    let mut watches = Watches::new(vec![&Copies]);
    watches.take_changes();
    let rollout =
        |number: usize| Rollout { dialect: 0, key: CONFIG_MAP.key("shop", &number.to_string()) };
    for number in 0..=NEEDED_MAX {
        let kind = GroupKind { group: SmolStr::default(), kind: format!("K{number:03}").into() };
        watches.set_needs(&rollout(number), vec![Need::of_home(&kind)]);
    }
    assert_eq!(watches.take_changes().len(), NEEDED_MAX);
    let missing = watches.missing(&rollout(NEEDED_MAX)).unwrap().to_string();
    assert!(missing.contains("500 kinds of this cluster are watched already"), "{missing}");
    watches.set_needs(&rollout(0), Vec::new());
    assert_eq!(watches.take_changes().len(), 2, "one ends, and the next one begins");
}

#[test]
fn what_a_dialect_always_needs_is_watched_without_a_rollout() {
    let options = Options::new("a", "https://hub");
    let mut watches = Watches::new(vec![Box::leak(Box::new(OcmAgent::new(options)))]);
    let started = |watches: &mut Watches| {
        let kinds = watches.take_changes().into_iter().map(|change| match change {
            WatchChange::Start { collection, .. } => {
                format!("{} in {:?}", collection.kind.kind, collection.cluster.as_str())
            }
            other => panic!("{other:?}"),
        });
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(started(&mut watches), ["ManifestWork in \"\""]);
    watches.join(&SmolStr::new("a"));
    let expected = ["CustomResourceDefinition in \"a\"", "AppliedManifestWork in \"a\""];
    assert_eq!(started(&mut watches), expected);
}

#[test]
fn kinds_are_read_in_the_version_that_their_dialect_names() {
    let mut watches = Watches::new(vec![&Hub { options: fleet::Options::AT_ONCE }]);
    let versions = watches.take_changes().into_iter().map(|change| match change {
        WatchChange::Start { version, .. } => version,
        other => panic!("{other:?}"),
    });
    assert!(versions.into_iter().all(|version| version == "v1beta1"));
    let mut watches = Watches::new(vec![&Copies]);
    let first = watches.take_changes().into_iter().next();
    let (collection, version) = (CONFIG_MAP.in_cluster(""), SmolStr::default());
    assert_eq!(first, Some(WatchChange::Start { collection, version }));
}
