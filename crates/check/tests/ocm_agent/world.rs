//! A hub of Open Cluster Management and its managed clusters.

use convoy_api::ocm::names::{APPLIED_MANIFEST_WORK, MANIFEST_WORK};
use convoy_api::{Object, ObjectKey};
use convoy_plan::Step;
use convoy_plan::dialect::ocm::{Hub, HubControllers};
use convoy_plan::dialect::ocm_agent::{OcmAgent, Options};
use convoy_testkit::object;
use serde_json::{Value, json};

use crate::manifests::on;
use crate::site;

pub(crate) const WORK_API: &str = "work.open-cluster-management.io/v1";
pub(crate) const HUB: &str = "https://hub:6443";
pub(crate) const EU: &str = "eu";

pub(crate) type Site = site::Site<OcmAgent>;

/// What stands for a work on the member `eu`.
pub(crate) fn applied(work: &str) -> ObjectKey {
    let name = format!("{}-{work}", Options::new(EU, HUB).hub_hash);
    on(EU, &APPLIED_MANIFEST_WORK, "", &name)
}

pub(crate) fn web() -> ObjectKey {
    MANIFEST_WORK.key(EU, "web")
}

impl Site {
    /// Clusters with the controllers of a hub.
    pub(crate) fn new(objects: Vec<Object>, members: &[&str]) -> Self {
        let agents = members.iter().map(|member| OcmAgent::new(Options::new(*member, HUB)));
        Self::with(objects, Some(Box::new(Hub { parts: HubControllers::ALL })), agents.collect())
    }

    /// One cluster, whose hub only holds works.
    pub(crate) fn of_agent(objects: Vec<Object>, options: Options) -> Self {
        Self::with(objects, None, vec![OcmAgent::new(options)])
    }

    pub(crate) fn has(&self, key: &ObjectKey) -> bool {
        self.world().get(key).is_some()
    }

    pub(crate) fn step(&self, key: &ObjectKey) -> Step {
        self.steps().into_iter().find(|step| step.rollout == *key).expect("it is a rollout")
    }
}

/// A work for `eu` with these manifests, and whatever else its spec has.
pub(crate) fn work(name: &str, manifests: &[Value], more: Value) -> Object {
    let mut spec = more;
    spec["workload"] = json!({"manifests": manifests});
    object(WORK_API, "ManifestWork", name)
        .namespace(EU)
        .with("/metadata/generation", json!(1))
        .spec(spec)
        .build()
}
