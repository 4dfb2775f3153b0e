//! Manifests survive being read: as typed structs, and by the table.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::shape::{Misfits, misfits};

fn round_trip<T: DeserializeOwned + serde::Serialize>(yaml: &str, kind: &str) {
    let raw: Value = serde_saphyr::from_str(yaml).unwrap();
    let typed: T = serde_json::from_value(raw.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), raw);
    assert_eq!(misfits(&raw, kind), Misfits::default());
}

#[test]
fn a_deployment_survives() {
    round_trip::<Deployment>(include_str!("../../testdata/apps/deployment.yaml"), "v1.Deployment");
}

#[test]
fn a_replica_set_survives() {
    round_trip::<ReplicaSet>(include_str!("../../testdata/apps/replica_set.yaml"), "v1.ReplicaSet");
}
