//! Updates of StatefulSets: `OnDelete`, and several pods at once.

use super::*;

fn set(spec: &Value, status: Value) -> Builder {
    let mut whole = json!({"replicas": 3});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    owner("apps/v1", "StatefulSet", &whole).status(status)
}

/// The revision of an earlier template.
fn earlier() -> Builder {
    object("apps/v1", "ControllerRevision", "web-old")
        .namespace("shop")
        .with("/revision", json!(1))
        .with("/data", json!({"spec": {"template": apps::template("web:v0")}}))
        .with(
            "/metadata/ownerReferences",
            json!([{"apiVersion": "apps/v1", "kind": "StatefulSet",
            "name": "web", "uid": "uid-statefulset-web", "controller": true}]),
        )
}

fn pod(ordinal: usize, revision: &str) -> Builder {
    outdated("StatefulSet", &format!("web-{ordinal}"), "n1")
        .label("controller-revision-hash", revision)
}

fn removed(step: &Step) -> Vec<String> {
    let removes = step.actions.iter().filter(|action| matches!(action.verb, Verb::Remove(_)));
    removes.map(|action| action.target.name.to_string()).collect()
}

#[test]
fn on_delete_recreates_from_the_template() {
    let strategy = json!({"updateStrategy": {"type": "OnDelete"}});
    let known = json!({"currentRevision": "web-old"});
    let whole = step(
        &STATEFUL_SETS,
        [
            set(&strategy, known.clone()),
            earlier(),
            pod(0, "web-old"),
            pod(1, "web-old"),
            pod(2, "web-old"),
        ],
    );
    assert_eq!(removed(&whole), [""; 0], "nobody else deletes pods");
    let update = whole.decision["updateRevision"].as_str().unwrap().to_owned();
    assert_ne!(update, "web-old");
    let step_after = |pods: Vec<Builder>| {
        step(&STATEFUL_SETS, [set(&strategy, known.clone()), earlier()].into_iter().chain(pods))
    };
    let deleted = step_after(vec![pod(0, "web-old"), pod(2, &update)]);
    let body = deleted.actions.iter().find_map(|action| match (&action.verb, &action.write) {
        (Verb::Start(_), Write::Create { object }) => Some(object),
        _ => None,
    });
    let body = body.unwrap();
    assert_eq!(body["metadata"]["name"], "web-1");
    assert_eq!(body["metadata"]["labels"]["controller-revision-hash"], json!(update));
    assert_eq!(body["spec"]["containers"][0]["image"], "web:v1");
    let status = deleted.status.unwrap();
    let told = ["currentReplicas", "updatedReplicas"].map(|name| status[name].as_i64());
    assert_eq!(told, [Some(1), Some(1)]);
    assert_eq!(
        (&status["currentRevision"], &status["updateRevision"]),
        (&json!("web-old"), &json!(update))
    );
    let all = step_after((0..3).map(|ordinal| pod(ordinal, &update)).collect());
    let status = all.status.unwrap();
    assert_eq!(status["updatedReplicas"], 3);
    assert_eq!(status["currentRevision"], "web-old", "only a rolling update completes");
}

#[test]
fn several_pods_are_replaced_at_once() {
    let decided = |policy: &str, budget: Value, pods: Vec<Builder>| {
        let spec = json!({"podManagementPolicy": policy, "replicas": 4,
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": budget}}});
        let world = [set(&spec, json!({"currentRevision": "web-old"})), earlier()];
        step(&STATEFUL_SETS, world.into_iter().chain(pods))
    };
    let old = || (0..4).map(|ordinal| pod(ordinal, "web-old")).collect::<Vec<_>>();
    let cases = [
        ("absent", json!(null), vec!["web-3"]),
        ("two", json!(2), vec!["web-3", "web-2"]),
        ("75% of 4", json!("75%"), vec!["web-3", "web-2", "web-1"]),
        ("a share of less than one", json!("10%"), vec!["web-3"]),
    ];
    for policy in ["OrderedReady", "Parallel"] {
        for (name, budget, expected) in &cases {
            let step = decided(policy, budget.clone(), old());
            assert_eq!(removed(&step), *expected, "{policy}, {name}");
        }
        let step = decided(policy, json!(2), old());
        let spent = "2 of 2 slots of maxUnavailable in use by web-3, web-2".to_owned();
        assert_eq!(holds(&step), ["web-0", "web-1"].map(|name| (name.to_owned(), spent.clone())));
    }
    let mut some = old();
    some[1] = pod(1, "web-old").with("/metadata/deletionTimestamp", json!(NOW));
    assert_eq!(removed(&decided("Parallel", json!(2), some.clone())), ["web-3"]);
    assert_eq!(removed(&decided("OrderedReady", json!(2), some)), [""; 0], "web-1 comes first");
}

/// A claim of an ordinal, owned by objects of these kinds.
fn claim(ordinal: usize, owners: &[&str]) -> Builder {
    let owners: Vec<Value> = owners
        .iter()
        .map(|kind| match *kind {
            "Pod" => json!({"apiVersion": "v1", "kind": "Pod", "name": format!("web-{ordinal}"),
                "uid": format!("uid-pod-web-{ordinal}"), "controller": true}),
            kind => json!({"apiVersion": "apps/v1", "kind": kind, "name": "web",
                "uid": format!("uid-{}-web", kind.to_lowercase()), "controller": true}),
        })
        .collect();
    object("v1", "PersistentVolumeClaim", &format!("data-web-{ordinal}"))
        .namespace("shop")
        .with("/metadata/ownerReferences", json!(owners))
}

/// Which claims get which owners.
fn owned(step: &Step) -> Vec<(String, Vec<String>)> {
    let patches = step.actions.iter().filter_map(|action| match &action.write {
        Write::Patch { patch, .. } if action.target.kind.kind == "PersistentVolumeClaim" => {
            let list = patch["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            let kinds = list.iter().map(|it| it["kind"].as_str().unwrap().to_owned()).collect();
            Some((action.target.name.to_string(), kinds))
        }
        _ => None,
    });
    patches.collect()
}

/// A claim, and the kind of its owner.
type Owned = (&'static str, &'static str);

#[test]
fn claims_are_owned_by_what_they_go_with() {
    let decided = |deleted: &str, scaled: &str, claims: [Builder; 2]| {
        let spec = json!({"replicas": 1,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]});
        let world = [set(&spec, json!({})), pod(0, "web-old"), pod(1, "web-old")];
        step(&STATEFUL_SETS, world.into_iter().chain(claims))
    };
    let bare = || [claim(0, &[]), claim(1, &[])];
    let cases: [(&str, &str, &[Owned]); 4] = [
        ("Retain", "Retain", &[]),
        ("Delete", "Retain", &[("data-web-0", "StatefulSet"), ("data-web-1", "StatefulSet")]),
        ("Retain", "Delete", &[("data-web-1", "Pod")]),
        ("Delete", "Delete", &[("data-web-0", "StatefulSet"), ("data-web-1", "Pod")]),
    ];
    for (deleted, scaled, expected) in cases {
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), vec![(*kind).to_owned()]))
            .collect();
        assert_eq!(owned(&decided(deleted, scaled, bare())), expected, "{deleted} {scaled}");
    }
    let whole = decided("Delete", "Delete", [claim(0, &["StatefulSet"]), claim(1, &["Pod"])]);
    assert_eq!(owned(&whole), []);
    assert_eq!(removed(&whole), ["web-1"]);
    let back = decided("Retain", "Retain", [claim(0, &["StatefulSet"]), claim(1, &["Other"])]);
    assert_eq!(owned(&back), [("data-web-0".to_owned(), Vec::new())], "others' claims are left");
}

#[test]
fn a_new_claim_is_owned_by_a_set_that_takes_it_along() {
    let spec = json!({"replicas": 1,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]});
    let created = step(&STATEFUL_SETS, [set(&spec, json!({}))]);
    let mut claims = created.actions.iter().filter_map(|action| match &action.write {
        Write::Create { object } if object["kind"] == "PersistentVolumeClaim" => Some(object),
        _ => None,
    });
    let claim = claims.next().unwrap();
    assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "StatefulSet");
}
