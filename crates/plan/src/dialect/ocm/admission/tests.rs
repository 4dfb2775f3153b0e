//! What the webhooks refuse, fill in and warn about, in upstream's words.

use convoy_testkit::object;
use serde_json::json;

use super::*;
use crate::admission::Circumstances;

const NOW: &str = "2026-01-01T00:00:00Z";

fn webhook(start: &str) -> &'static Webhook {
    WEBHOOKS.iter().find(|webhook| webhook.name.starts_with(start)).expect("there is one")
}

/// What a webhook says about a write of somebody who has none of the rights that it asks for.
fn unprivileged(start: &str, world: &World, object: &Value, old: Option<&Value>) -> Verdict {
    let asked = |denied: &[NeededRight]| {
        let request = Request {
            operation: if old.is_none() { Operation::Create } else { Operation::Update },
            name: object["metadata"]["name"].as_str().unwrap_or_default(),
            object: Some(object),
            old,
            user: "ann",
            circumstances: Circumstances { now: NOW.parse().expect("an instant"), denied },
        };
        (admit(webhook(start), world, &request), rights(webhook(start), &request))
    };
    let (_, rights) = asked(&[]);
    asked(&rights).0
}

fn invalid(verdict: Verdict) -> String {
    match verdict {
        Verdict::Invalid(message) => message,
        other => panic!("{other:?}"),
    }
}

fn refused(verdict: Verdict) -> String {
    match verdict {
        Verdict::Refused(message) => message,
        other => panic!("{other:?}"),
    }
}

fn warnings(verdict: Verdict) -> Vec<String> {
    match verdict {
        Verdict::Allowed { warnings, .. } => warnings,
        other => panic!("{other:?}"),
    }
}

fn cluster(spec: Value) -> Value {
    let object = object("cluster.open-cluster-management.io/v1", "ManagedCluster", "eu");
    object.spec(spec).json()
}

fn work(spec: Value) -> Value {
    let object = object("work.open-cluster-management.io/v1", "ManifestWork", "web");
    object.namespace("eu").spec(spec).json()
}

fn config(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a"}})
}

#[test]
fn a_cluster_has_a_name_for_its_namespace_and_https_addresses() {
    let world = World::new();
    let hook = "managedclustervalidators";
    let spec = json!({"managedClusterClientConfigs": [{"url": "http://a"}, {"url": "https://b"}]});
    let message = invalid(unprivileged(hook, &world, &cluster(spec.clone()), None));
    assert_eq!(message, "url \"http://a\" is invalid in client configs");
    let mut dotted = cluster(json!({}));
    dotted["metadata"]["name"] = json!("eu.west");
    let message = invalid(unprivileged(hook, &world, &dotted, None));
    assert!(message.starts_with("metadata.name format is not correct: "), "{message}");
    // What was stored before can be labelled, and goes when it is deleted.
    let stored = cluster(spec.clone());
    assert_eq!(unprivileged(hook, &world, &stored, Some(&stored)), Verdict::allowed());
    let mut leaving = cluster(spec);
    leaving["metadata"]["deletionTimestamp"] = json!(NOW);
    assert_eq!(unprivileged(hook, &world, &leaving, Some(&dotted)), Verdict::allowed());
}

#[test]
fn accepting_and_joining_need_rights_and_a_living_namespace() {
    let hook = "managedclustervalidators";
    let accepted = cluster(json!({"hubAcceptsClient": true}));
    let message = refused(unprivileged(hook, &World::new(), &accepted, None));
    assert_eq!(
        message,
        "managedclusters/accept.cluster.open-cluster-management.io \"eu\" is forbidden: user \
         \"ann\" cannot update the HubAcceptsClient field"
    );
    let status = json!({"phase": "Terminating"});
    let namespace = object("v1", "Namespace", "eu").status(status).build();
    let world: World = [namespace].into_iter().collect();
    let message = refused(unprivileged(hook, &world, &accepted, None));
    assert!(message.ends_with("cluster namespace \"eu\" is terminating"), "{message}");
    let [mut before, mut after] = [cluster(json!({})), cluster(json!({}))];
    before["metadata"]["labels"] = json!({"cluster.open-cluster-management.io/clusterset": "one"});
    after["metadata"]["labels"] = json!({"cluster.open-cluster-management.io/clusterset": "two"});
    let message = refused(unprivileged(hook, &World::new(), &after, Some(&before)));
    assert_eq!(
        message,
        "managedclustersets/join.cluster.open-cluster-management.io \"one\" is forbidden: user \
         \"ann\" cannot add/remove a ManagedCluster to/from ManagedClusterSet \"one\""
    );
    // Whoever changes nothing of it needs no right.
    assert_eq!(unprivileged(hook, &world, &accepted, Some(&accepted)), Verdict::allowed());
}

#[test]
fn taints_are_dated_by_the_server() {
    let hook = "managedclustermutators";
    let taint = |key: &str, time: Option<&str>| json!({"key": key, "effect": "NoSelect", "timeAdded": time});
    let changes = |object: &Value, old: Option<&Value>| {
        let request_world = World::new();
        match unprivileged(hook, &request_world, object, old) {
            Verdict::Allowed { changes, .. } => changes,
            other => panic!("{other:?}"),
        }
    };
    let early = "2025-01-01T00:00:00Z";
    let created = changes(&cluster(json!({"taints": [taint("a", Some(early))]})), None);
    assert_eq!(created[0]["value"]["cluster.open-cluster-management.io/clusterset"], "default");
    assert_eq!(created[1]["value"], json!([taint("a", Some(NOW))]), "overwritten");
    let old = cluster(json!({"taints": [taint("a", Some(early))]}));
    let kept = json!({"taints": [taint("a", Some(early)), taint("b", None)]});
    let updated = changes(&cluster(kept), Some(&old));
    assert_eq!(updated[1]["value"], json!([taint("a", Some(early)), taint("b", Some(NOW))]));
    let forged = json!({"taints": [taint("a", Some(NOW)), taint("b", Some(NOW))]});
    let message = invalid(unprivileged(hook, &World::new(), &cluster(forged), Some(&old)));
    assert_eq!(message, "It is not allowed to set TimeAdded of Taint \"a,b\".");
}

#[test]
fn a_binding_is_named_as_its_set_and_needs_the_right_to_bind() {
    let binding = |set: &str| {
        object("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding", "global")
            .namespace("ztp")
            .spec(json!({"clusterSet": set}))
            .json()
    };
    let hook = "managedclustersetbindingvalidators";
    let message = invalid(unprivileged(hook, &World::new(), &binding("other"), None));
    assert_eq!(
        message,
        "The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet"
    );
    let message = refused(unprivileged(hook, &World::new(), &binding("global"), None));
    assert_eq!(
        message,
        "managedclustersets/bind.cluster.open-cluster-management.io \"global\" is forbidden: user \
         \"ann\" is not allowed to bind cluster set \"global\""
    );
    let old = binding("global");
    assert_eq!(unprivileged(hook, &World::new(), &old, Some(&old)), Verdict::allowed());
}

#[test]
fn works_have_named_distinct_manifests_and_executors_that_one_may_use() {
    let said =
        |spec: Value| unprivileged("manifestworkvalidators", &World::new(), &work(spec), None);
    let of = |manifests: Value| json!({"workload": {"manifests": manifests}});
    assert_eq!(invalid(said(json!({}))), "manifests should not be empty");
    let nameless = json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}]);
    assert_eq!(invalid(said(of(nameless))), "name must be set in manifest");
    let twice = of(json!([config("x"), config("x")]));
    assert_eq!(
        invalid(said(twice)),
        "duplicate manifest for resource a/x with resource type v1.ConfigMap"
    );
    let mut large = config("x");
    large["data"] = json!({"a": "x".repeat(512_000)});
    let message = invalid(said(of(json!([large]))));
    assert!(message.ends_with("bytes which exceeds the 512000 limit"), "{message}");
    let mut run_as = of(json!([config("x")]));
    assert_eq!(said(run_as.clone()), Verdict::allowed());
    run_as["executor"] = json!({"subject": {"type": "ServiceAccount",
        "serviceAccount": {"namespace": "ops", "name": "deployer"}}});
    assert_eq!(
        invalid(said(run_as.clone())),
        "user ann cannot manipulate the Manifestwork with executor ops/deployer in namespace eu"
    );
    run_as["executor"]["subject"]["serviceAccount"] = Value::Null;
    assert_eq!(invalid(said(run_as)), "executor service account can not be nil");
}

#[test]
fn replica_sets_and_placements_are_taken_with_warnings() {
    let set = |strategy: Value, manifests: Value| {
        object("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", "web")
            .namespace("ztp")
            .spec(json!({"manifestWorkTemplate": {"workload": {"manifests": manifests}},
                "placementRefs": [{"name": "p", "rolloutStrategy": strategy}]}))
            .json()
    };
    let hook = "manifestworkreplicasetvalidators";
    let empty = set(json!({}), json!([]));
    let message = invalid(unprivileged(hook, &World::new(), &empty, None));
    assert_eq!(message, "Workload manifests should not be empty");
    let old = json!({"rolloutType": "Progressive", "timeout": "50min",
        "mandatoryDecisionGroups": ["canary"]});
    let told = set(old, json!([config("x")]));
    let told = warnings(unprivileged(hook, &World::new(), &told, None));
    assert_eq!(told.len(), 4, "{told:#?}");
    assert!(told[0].ends_with("rolloutType: old spelling, read as: type"), "{told:#?}");
    let placement = object("cluster.open-cluster-management.io/v1beta1", "Placement", "p")
        .namespace("ztp")
        .spec(json!({"prioritizerPolicy": {"mode": "Wrong"},
            "DecisionStrategy": {"clustersPerDecisionGroup": "None"}}))
        .json();
    let told = warnings(unprivileged("placementwarnings", &World::new(), &placement, None));
    assert_eq!(told.len(), 4, "{told:#?}");
    assert!(told[0].contains("Wrong") && told[0].ends_with("(this will not work)"), "{told:#?}");
}
