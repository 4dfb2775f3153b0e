//! The work agent of Open Cluster Management: what becomes of ManifestWorks on a managed cluster.

#[path = "ocm_agent/world.rs"]
mod world;

#[path = "common/damage.rs"]
mod damage;
#[path = "ocm_agent/damaged.rs"]
mod damaged;
#[path = "ocm_agent/deletion.rs"]
mod deletion;
#[path = "ocm_agent/executor.rs"]
mod executor;
#[path = "common/manifests.rs"]
mod manifests;
#[path = "ocm_agent/reported.rs"]
mod reported;
#[path = "ocm_agent/rolled_out.rs"]
mod rolled_out;
#[path = "ocm_agent/server_side.rs"]
mod server_side;
#[path = "common/site.rs"]
mod site;

use convoy_api::kinds::{CONFIG_MAP, DEPLOYMENT, NAMESPACE};
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::dialect::Need;
use convoy_plan::dialect::ocm_agent::Options;
use convoy_plan::{Denial, Dialect, complain};
use serde_json::{Value, json};

use manifests::{conditions, config, deployment, now, on, shop};
use world::{EU, HUB, Site, WORK_API, applied, web, work};

fn options() -> Options {
    Options::new(EU, HUB)
}

fn settings() -> ObjectKey {
    on(EU, &CONFIG_MAP, "shop", "settings")
}

fn front() -> ObjectKey {
    on(EU, &DEPLOYMENT, "shop", "front")
}

fn site(manifests: &[Value], more: Value) -> Site {
    Site::of_agent(vec![work("web", manifests, more)], options())
}

fn existing(value: &Value) -> Object {
    Object::from_value(value.clone()).expect("an object").in_cluster(EU)
}

/// The status of the manifest at `at`.
fn manifest(site: &Site, at: usize) -> Value {
    site.get(&web()).status()["resourceStatus"]["manifests"][at].clone()
}

fn configured(resource: &str, name: &str, mut config: Value) -> Value {
    let group = if resource == "deployments" { "apps" } else { "" };
    config["resourceIdentifier"] =
        json!({"group": group, "resource": resource, "namespace": "shop", "name": name});
    json!({"manifestConfigs": [config]})
}

#[test]
fn a_work_is_applied_owned_and_reported() {
    let mut labelled = work("web", &[deployment("v1"), shop(), config("a")], json!({}));
    let mut raw = labelled.raw().clone();
    raw["metadata"]["labels"] = json!({"team": "web"});
    labelled = labelled.with_raw(raw);
    let mut site = Site::of_agent(vec![labelled], options());
    site.settle();
    let work = site.get(&web());
    assert!(work.has_finalizer("cluster.open-cluster-management.io/manifest-work-cleanup"));
    assert_eq!(
        conditions(work.status()),
        ["Applied=True/AppliedManifestWorkComplete", "Available=True/ResourcesAvailable"]
    );
    assert_eq!(work.status()["conditions"][0]["message"], "Apply manifest work complete");
    assert_eq!(work.status()["conditions"][1]["message"], "All resources are available");
    assert_eq!(
        conditions(&manifest(&site, 0)),
        [
            "Applied=True/AppliedManifestComplete",
            "Available=True/ResourceAvailable",
            "StatusFeedbackSynced=True/NoStatusFeedbackSynced"
        ]
    );
    assert_eq!(
        manifest(&site, 0)["resourceMeta"],
        json!({"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment",
            "resource": "deployments", "namespace": "shop", "name": "front"})
    );
    let standing = site.get(&applied("web"));
    let hash = options().hub_hash;
    assert_eq!(
        standing.spec(),
        &json!({"hubHash": hash, "agentID": hash, "manifestWorkName": "web"})
    );
    assert_eq!(standing.label("team"), Some("web"));
    assert!(
        standing.has_finalizer("cluster.open-cluster-management.io/applied-manifest-work-cleanup")
    );
    let resources = standing.status()["appliedResources"].as_array().unwrap();
    let names: Vec<&str> = resources.iter().map(|it| it["resource"].as_str().unwrap()).collect();
    assert_eq!(names, ["configmaps", "namespaces", "deployments"], "by group, version, resource");
    let live = site.get(&settings());
    assert_eq!(resources[0]["uid"].as_str(), live.uid());
    assert_eq!(
        live.metadata()["ownerReferences"],
        json!([{"apiVersion": WORK_API, "kind": "AppliedManifestWork", "name": standing.name(),
            "uid": standing.uid().unwrap()}])
    );
    assert_eq!(live.metadata().get("annotations"), None, "nothing is added");
    site.edit(&web(), |raw| raw["metadata"]["labels"] = json!({"tier": "1"}));
    site.settle();
    let standing = site.get(&applied("web"));
    assert_eq!((standing.label("team"), standing.label("tier")), (None, Some("1")));
}

#[test]
fn objects_that_others_need_come_first() {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "reader"}});
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "front", "namespace": "shop"}, "spec": {}});
    let mut site = site(&[deployment("v1"), service, config("a"), role, shop()], json!({}));
    site.round();
    assert_eq!(site.get(&web()).status().get("conditions"), None, "nothing is told yet");
    let step = site.step(&web());
    let kinds: Vec<&str> = step.actions.iter().map(|it| it.target.kind.kind.as_str()).collect();
    assert_eq!(
        kinds,
        ["Namespace", "ClusterRole", "ConfigMap", "Service", "Deployment", "AppliedManifestWork"]
    );
}

#[test]
fn an_update_overwrites_and_keeps_metadata_of_others() {
    let mut manifest = config("a");
    manifest["metadata"]["labels"] = json!({"ours": "1", "old-": ""});
    manifest["data"]["second"] = json!("x");
    let mut before = config("b");
    before["metadata"]["labels"] = json!({"theirs": "1", "old": "1"});
    before["metadata"]["annotations"] = json!({"theirs": "1"});
    before["metadata"]["finalizers"] = json!(["example.com/theirs"]);
    before["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u-1"}]);
    before["data"]["theirs"] = json!("1");
    let mut site = site(&[shop(), manifest.clone()], json!({}));
    site.applier.insert(existing(&before));
    site.settle();
    let live = site.get(&settings());
    assert_eq!(live.raw()["data"], json!({"mode": "a", "second": "x"}));
    assert_eq!(live.metadata()["labels"], json!({"theirs": "1", "ours": "1"}));
    assert_eq!(live.metadata()["annotations"], json!({"theirs": "1"}));
    assert!(live.has_finalizer("example.com/theirs"));
    assert_eq!(live.owners().count(), 2);
    manifest["data"] = json!({"mode": "c"});
    site.edit(&web(), |raw| raw["spec"]["workload"]["manifests"][1] = manifest);
    site.settle();
    assert_eq!(site.get(&settings()).raw()["data"], json!({"mode": "c"}), "the second has left");
}

#[test]
fn a_changed_object_is_put_right_and_defaults_are_left_alone() {
    let mut site = site(&[shop(), deployment("v1")], json!({}));
    site.settle();
    let told = site.get(&web()).status().clone();
    site.edit(&front(), |raw| raw["spec"]["paused"] = json!(true));
    site.round();
    assert!(site.step(&web()).is_quiet(), "the manifest says nothing about it");
    site.edit(&front(), |raw| raw["spec"]["replicas"] = json!(7));
    site.settle();
    assert_eq!(site.get(&front()).spec()["replicas"], 2);
    assert_eq!(site.get(&web()).status(), &told, "conditions are as they were");
    // The server keeps something otherwise than it was written: once more, and never again.
    let normalize = |raw: &mut Value| {
        raw["spec"]["template"]["spec"]["containers"][0]["image"] = json!("docker.io/v1");
    };
    site.edit(&front(), normalize);
    site.round();
    site.edit(&front(), normalize);
    site.settle();
    assert!(site.step(&web()).is_quiet());
    let image = |site: &Site| {
        site.get(&front()).spec()["template"]["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(image(&site), "docker.io/v1");
    site.edit(&front(), |raw| {
        raw["spec"]["template"]["spec"]["containers"][0]["image"] = json!("v2");
    });
    site.settle();
    assert_eq!(image(&site), "v1", "this is no spelling of the server");
}

#[test]
fn strategies_say_what_is_written() {
    let only = |strategy: &str| {
        configured("configmaps", "settings", json!({"updateStrategy": {"type": strategy}}))
    };
    let mut site1 = site(&[shop(), config("a")], only("CreateOnly"));
    site1.settle();
    site1.edit(&settings(), |raw| {
        raw["data"]["mode"] = json!("b");
        raw["metadata"]["ownerReferences"] = json!([]);
    });
    site1.settle();
    let live = site1.get(&settings());
    assert_eq!(live.raw()["data"]["mode"], "b");
    assert_eq!(live.owners().count(), 1, "its owner is looked after");
    let mut site2 = site(&[shop(), config("a")], only("ReadOnly"));
    site2.settle();
    assert!(!site2.has(&settings()));
    assert_eq!(
        conditions(&manifest(&site2, 1))[..2],
        ["Applied=True/AppliedManifestComplete", "Available=False/ResourceNotAvailable"]
    );
    let work = site2.get(&web());
    assert_eq!(work.status()["conditions"][1]["message"], "1 of 2 resources are not available");
    let listed = |site: &Site| {
        site.get(&applied("web")).status()["appliedResources"].as_array().unwrap().len()
    };
    assert_eq!(listed(&site2), 1);
    site2.applier.insert(existing(&config("b")));
    site2.settle();
    assert_eq!(site2.get(&settings()).raw(), &config("b"), "it was only looked at");
    assert_eq!(conditions(&manifest(&site2, 1))[1], "Available=True/ResourceAvailable");
    assert_eq!(listed(&site2), 2);
}

#[test]
fn the_first_configuration_that_matches_counts() {
    let configs = json!({"manifestConfigs": [
        {"resourceIdentifier": {"resource": "configmaps", "namespace": "*", "name": "set*"},
            "updateStrategy": {"type": "CreateOnly"}},
        {"resourceIdentifier": {"resource": "configmaps", "namespace": "shop", "name": "settings"},
            "updateStrategy": {"type": "Update"}},
    ]});
    let mut site = site(&[shop(), config("a")], configs);
    site.applier.insert(existing(&config("b")));
    site.settle();
    assert_eq!(site.get(&settings()).raw()["data"]["mode"], "b");
}

#[test]
fn one_bad_manifest_keeps_no_other_from_being_applied() {
    let nameless = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}});
    let mut site = site(&[nameless, shop(), config("a")], json!({}));
    site.settle();
    assert_eq!(
        conditions(&manifest(&site, 0)),
        ["Applied=False/AppliedManifestFailed", "Available=Unknown/IncompleteResourceMeta"]
    );
    assert_eq!(manifest(&site, 0)["resourceMeta"]["ordinal"], 0);
    assert_eq!(
        conditions(site.get(&web()).status()),
        ["Applied=False/AppliedManifestWorkFailed", "Available=Unknown/ResourcesStatusUnknown"]
    );
    site.get(&settings());
}

#[test]
fn a_denied_write_is_told_and_comes_last_from_then_on() {
    let mut site = site(&[shop(), config("a"), deployment("v1")], json!({}));
    site.settle();
    site.edit(&web(), |raw| {
        raw["spec"]["workload"]["manifests"] = json!([shop(), config("b"), deployment("v2")]);
    });
    let agent = site.agents[0].clone();
    let complained = |site: &Site, message: &str| {
        let message = message.to_owned();
        let denial = Denial { target: settings(), verb: "patch", message };
        let complaint = complain(&agent, site.world(), &[], &web(), &denial, now()).unwrap();
        complaint.status.expect("the manifest has a status")
    };
    let status = complained(&site, "data: field is immutable");
    let entry = &status["resourceStatus"]["manifests"][1];
    assert_eq!(
        conditions(entry),
        [
            "Available=True/ResourceAvailable",
            "StatusFeedbackSynced=True/NoStatusFeedbackSynced",
            "Applied=False/AppliedManifestFailed"
        ],
        "a new generation moves Applied to the end"
    );
    let told = "Failed to apply manifest: data: field is immutable";
    assert_eq!(entry["conditions"][2]["message"], told);
    assert_eq!(conditions(&status)[0], "Applied=False/AppliedManifestWorkFailed");
    site.edit(&web(), |raw| raw["status"] = status);
    let step = site.step(&web());
    let kinds: Vec<&str> = step.actions.iter().map(|it| it.target.kind.kind.as_str()).collect();
    let expected = ["Deployment", "AppliedManifestWork", "ConfigMap", "AppliedManifestWork"];
    assert_eq!(kinds, expected);
    // It is let through in the end.
    site.settle();
    assert_eq!(site.get(&settings()).raw()["data"]["mode"], "b");
    assert_eq!(
        conditions(site.get(&web()).status())[0],
        "Applied=True/AppliedManifestWorkComplete"
    );
    let status = {
        site.edit(&settings(), |raw| raw["data"]["mode"] = json!("x"));
        complained(&site, "no matches for kind \"ConfigMap\" in version \"v1\"")
    };
    let entry = &status["resourceStatus"]["manifests"][1];
    assert_eq!(entry["resourceMeta"].get("resource"), None);
    let shown = entry.to_string();
    assert!(shown.contains(r#"the server doesn't have a resource type \"ConfigMap\""#), "{shown}");
    assert!(shown.contains("IncompleteResourceMeta"), "{shown}");
}

#[test]
fn definitions_of_the_member_give_resource_and_scope() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "geese.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"kind": "Goose", "plural": "geese"}}});
    let goose = json!({"apiVersion": "example.com/v1", "kind": "Goose",
        "metadata": {"name": "one", "namespace": "shop"}, "spec": {}});
    let mut site = site(&[definition, goose], json!({}));
    site.applier.insert(existing(&shop()));
    site.round();
    site.round();
    site.settle();
    let kind = GroupKind::new("example.com", "Goose");
    site.get(&on(EU, &kind, "", "one"));
    assert_eq!(
        manifest(&site, 1)["resourceMeta"],
        json!({"ordinal": 1, "group": "example.com", "version": "v1", "kind": "Goose",
            "resource": "geese", "name": "one"})
    );
    site.edit(&web(), |raw| {
        raw["spec"]["workload"]["manifests"].as_array_mut().unwrap().pop();
    });
    site.settle();
    assert!(!site.has(&on(EU, &kind, "", "one")), "its kind is found by its resource");
}

#[test]
fn changes_on_hub_and_member_wake_the_right_work() {
    let mut site = site(&[shop(), config("a")], json!({}));
    site.settle();
    let agent = site.agents[0].clone();
    let affected = |key: &ObjectKey| agent.affected(site.world(), key);
    assert_eq!(affected(&settings()), [web()]);
    assert_eq!(affected(&applied("web")), [web(), applied("web")]);
    assert_eq!(affected(&web()), [web(), applied("web")]);
    assert_eq!(affected(&on(EU, &CONFIG_MAP, "shop", "another")), []);
    assert_eq!(affected(&on("us", &CONFIG_MAP, "shop", "settings")), [], "another member");
    let needs = agent.needs(site.world(), site.get(&web()));
    let kinds = needs.iter().filter_map(|need| match need {
        Need::Kind { collection, version } => Some(format!("{} {version}", collection.kind)),
        _ => None,
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["ConfigMap v1", "Namespace v1"]);
    assert!(site.has(&on(EU, &NAMESPACE, "", "shop")));
}
