//! Manifests as people write them come through the typed views unchanged.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::crds;
use super::deployment_policy::DeploymentPolicy;
use super::resource::Skyhook;
use crate::object::view::view_of;

fn round_trip<T: DeserializeOwned + Serialize>(yaml: &str) {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    for document in documents {
        let view: T = view_of(&document).unwrap();
        assert_eq!(serde_json::to_value(view).unwrap(), document);
    }
}

#[test]
fn skyhooks_come_through_unchanged() {
    round_trip::<Skyhook>(include_str!("../../testdata/skyhook/skyhook.yaml"));
}

#[test]
fn deployment_policies_come_through_unchanged() {
    round_trip::<DeploymentPolicy>(include_str!("../../testdata/skyhook/deployment_policy.yaml"));
}

#[test]
fn the_crds_carry_names_columns_and_sub_resources() {
    let crds: Vec<Value> = crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    let [skyhook, policy] = crds.as_slice() else { panic!("two kinds") };
    assert_eq!(skyhook["metadata"]["name"], "skyhooks.skyhook.nvidia.com");
    assert_eq!(policy["metadata"]["name"], "deploymentpolicies.skyhook.nvidia.com");
    let version = &skyhook["spec"]["versions"][0];
    assert_eq!(skyhook["spec"]["scope"], "Cluster");
    assert!(version["subresources"]["status"].is_object());
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    let names: Vec<&str> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
    let wanted =
        ["Status", "Priority", "Age", "Nodes In-Progress", "Complete Nodes", "Packages", "Policy"];
    assert_eq!(names, wanted);
    assert!(policy["spec"]["versions"][0]["subresources"]["status"].is_null());
}

#[test]
fn bounds_and_defaults_reach_the_schema() {
    let crds: Vec<Value> = crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    let spec = |crd: &Value| {
        crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties")
            .unwrap()
            .clone()
    };
    let (skyhook, policy) = (spec(&crds[0]), spec(&crds[1]));
    assert_eq!(skyhook["priority"]["minimum"].as_f64(), Some(1.0));
    assert_eq!(skyhook["priority"]["default"], 200);
    let budget = &policy["default"]["properties"]["budget"]["properties"];
    assert_eq!(budget["percent"]["maximum"].as_f64(), Some(100.0));
    let growth = "/default/properties/strategy/properties/exponential/properties/growthFactor";
    assert_eq!(policy.pointer(growth).unwrap()["minimum"].as_f64(), Some(2.0));
    let name = &skyhook["packages"]["additionalProperties"]["properties"]["name"];
    assert_eq!(name["maxLength"], 43);
}
