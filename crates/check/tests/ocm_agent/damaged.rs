//! G12: an object with a field of any type fails no decision of the agent.

use convoy_plan::dialect::ocm_agent::{OcmAgent, Options};
use convoy_testkit::NOW;
use serde_json::json;

use super::damage::survives;
use super::manifests::{config, deployment};
use super::world::{EU, HUB, Site, applied, web, work};

#[test]
fn a_damaged_object_fails_no_decision() {
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "front", "namespace": "shop"}, "spec": {"ports": [{"port": 80}]}});
    let identifier = json!({"group": "apps", "resource": "deployments", "namespace": "shop",
        "name": "front"});
    let paths = json!([{"name": "replicas", "path": ".status.replicas"}]);
    let more = json!({
        "deleteOption": {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans":
            {"orphaningRules": [{"group": "", "resource": "services", "namespace": "shop",
                "name": "front"}]}},
        "manifestConfigs": [{"resourceIdentifier": identifier,
            "updateStrategy": {"type": "Update"},
            "feedbackRules": [{"type": "WellKnownStatus"}, {"type": "JSONPaths", "jsonPaths": paths}],
            "conditionRules": [{"condition": "Progressing", "type": "CEL",
                "celExpressions": ["object.status.replicas < 2"], "message": "moving"}]}],
    });
    let manifests = [config("a"), service, deployment("v1")];
    let options = Options::new(EU, HUB);
    let mut site = Site::of_agent(vec![work("web", &manifests, more)], options.clone());
    site.settle();
    let agent = OcmAgent::new(options);
    survives(&agent, site.world());
    site.edit(&web(), |raw| raw["metadata"]["deletionTimestamp"] = json!(NOW));
    site.edit(&applied("web"), |raw| raw["metadata"]["deletionTimestamp"] = json!(NOW));
    survives(&agent, site.world());
}
