//! Server-side apply: fields of others stay theirs, and conflicts are told.

use convoy_plan::Write;
use serde_json::{Value, json};

use super::manifests::{conditions, config, deployment, shop};
use super::world::{Site, web};
use super::{configured, front, manifest, settings, site};

fn applied(options: Value) -> Value {
    let strategy = json!({"type": "ServerSideApply", "serverSideApply": options});
    configured("configmaps", "settings", json!({"updateStrategy": strategy}))
}

#[test]
fn fields_of_others_stay_and_conflicts_are_told() {
    for force in [false, true] {
        let options = json!({"force": force, "fieldManager": "work-agent-web"});
        let mut site = site(&[shop(), config("a")], applied(options));
        site.round();
        let step = site.step(&web());
        let write = &step.actions.iter().find(|it| it.target == settings()).unwrap().write;
        let Write::Apply { manager, object, .. } = write else { panic!("{write:?}") };
        assert_eq!(manager.as_deref(), Some("work-agent-web"));
        assert_eq!(object["metadata"].get("ownerReferences"), None, "it comes by itself");
        site.settle();
        assert_eq!(site.get(&settings()).owners().count(), 1);
        assert_eq!(site.get(&settings()).metadata().get("annotations"), None);
        site.edit(&settings(), |raw| raw["data"]["theirs"] = json!("1"));
        site.settle();
        assert_eq!(site.get(&settings()).raw()["data"], json!({"mode": "a", "theirs": "1"}));
        site.edit(&settings(), |raw| raw["data"]["mode"] = json!("theirs"));
        site.settle();
        let mode = site.get(&settings()).raw()["data"]["mode"].clone();
        assert_eq!(mode, if force { "a" } else { "theirs" });
        if force {
            continue;
        }
        let told = conditions(&manifest(&site, 1));
        assert_eq!(told[0], "Applied=False/AppliedManifestFailed");
        assert_eq!(told[1], "Available=True/ResourceAvailable");
        let message = manifest(&site, 1)["conditions"][0]["message"].as_str().unwrap().to_owned();
        assert!(
            message.starts_with("Failed to apply manifest: Apply failed with 1 conflict"),
            "{message}"
        );
    }
}

#[test]
fn ignored_fields_are_set_once() {
    let strategy = |condition: &str| {
        let ignored = json!([{"condition": condition, "jsonPaths": [".spec.replicas"]}]);
        let options = json!({"force": true, "ignoreFields": ignored});
        let strategy = json!({"type": "ServerSideApply", "serverSideApply": options});
        configured("deployments", "front", json!({"updateStrategy": strategy}))
    };
    let replicas = |site: &Site| site.get(&front()).spec()["replicas"].clone();
    for (condition, expected) in [("OnSpokePresent", 7), ("OnSpokeChange", 2)] {
        let mut site = site(&[shop(), deployment("v1")], strategy(condition));
        site.settle();
        assert_eq!(replicas(&site), 2, "a new object gets all fields");
        assert!(
            site.get(&front()).annotation("open-cluster-management.io/config-spec-hash").is_some()
        );
        site.edit(&front(), |raw| raw["spec"]["replicas"] = json!(7));
        site.settle();
        assert_eq!(replicas(&site), 7, "{condition}");
        assert_eq!(site.get(&front()).owners().count(), 1);
        site.edit(&web(), |raw| raw["spec"]["workload"]["manifests"][1] = deployment("v2"));
        site.settle();
        assert_eq!(replicas(&site), expected, "{condition}");
    }
}

#[test]
fn a_path_that_cannot_be_used_is_told() {
    let ignored = json!([{"condition": "OnSpokePresent", "jqPathExpressions": ["del(.data)"]}]);
    let mut site = site(&[shop(), config("a")], applied(json!({"ignoreFields": ignored})));
    site.settle();
    let told = manifest(&site, 1);
    assert_eq!(conditions(&told)[0], "Applied=False/AppliedManifestSSAIgnoreFieldError");
    let message = told["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("Failed to process ignoreFields: JQ expression"), "{message}");
    assert!(!site.has(&settings()));
}
