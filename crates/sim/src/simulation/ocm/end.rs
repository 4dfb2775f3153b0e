//! How a trial ends, once nothing fails any more.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::kinds::DEPLOYMENT;
use convoy_api::object::member::{field, list, text};
use convoy_api::ocm::names::{
    APPLIED_MANIFEST_WORK, CLUSTER_SET_LABEL, MANAGED_CLUSTER, MANIFEST_WORK, PLACEMENT_DECISION,
    PLACEMENT_LABEL,
};
use convoy_controllers::request::Request;
use serde_json::{Value, json};

use super::super::fleets::world::image_of;
use super::OcmFleet;
use super::user::{of_set, released, without_taint};
use super::world::{CLUSTER_PATH, SET, SET_PATH, available, cluster_name};
use crate::seed::Seed;
use crate::simulation::cluster::path_in;
use crate::simulation::ending::Ending;
use crate::simulation::light::DENIAL;
use crate::simulation::random::Random;

impl OcmFleet {
    pub(super) fn last_action(&mut self) -> Vec<Request> {
        if self.set().is_none_or(Object::is_deleting) {
            self.ending = Ending::Deleted;
        }
        let mut random = Random::new(Seed::new(u64::from(self.releases)).child("last", "ocm"));
        let mut requests = match self.ending {
            Ending::Released => vec![released(&self.release("good", &mut random))],
            Ending::Contained => {
                // Without deadlines nothing moves any more by itself.
                let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
                let references = json!([{"name": "web", "rolloutStrategy": strategy}]);
                let template = loop {
                    let template = self.release("bad", &mut random);
                    if template.get("manifestConfigs").is_some() {
                        break template;
                    }
                };
                vec![of_set(json!({"placementRefs": references})), released(&template)]
            }
            Ending::Deleted => vec![Request::delete(format!("{SET_PATH}/{SET}"))],
        };
        for number in 1..=self.clusters {
            let name = cluster_name(number);
            requests.push(Request::delete(path_in(&name, &format!("/api/v1/namespaces/{DENIAL}"))));
            let Some(cluster) = self.cluster(&name) else { continue };
            let taints = without_taint(field(cluster.spec(), "taints"));
            let patch = json!({"spec": {"taints": taints, "hubAcceptsClient": true}});
            if cluster.condition("ManagedClusterConditionAvailable").is_some() {
                requests.push(available(cluster, "True", self.now));
            }
            requests.push(Request::merge(&format!("{CLUSTER_PATH}/{name}"), patch));
        }
        requests
    }

    pub(super) fn has_ended(&self) -> Result<(), String> {
        match self.ending {
            Ending::Deleted => self.is_deleted(),
            Ending::Released => self.is_released(),
            Ending::Contained => self.is_contained(),
        }
    }

    fn is_deleted(&self) -> Result<(), String> {
        let left = self
            .seen
            .values()
            .find(|it| [MANIFEST_WORK, APPLIED_MANIFEST_WORK].contains(it.kind()) || is_placed(it));
        left.map_or(Ok(()), |left| Err(format!("{} is still there", left.key())))
    }

    /// The placements that the replica set refers to, with the clusters that they select.
    fn selections(&self) -> Result<Vec<(String, BTreeSet<String>)>, String> {
        let set = self.set().ok_or("the replica set is gone")?;
        let mut selections = Vec::new();
        for reference in list(set.spec(), "placementRefs") {
            let name = text(reference, "name").to_owned();
            let Some(placement) = self.placement(&name) else { break };
            let decisions = self
                .of(PLACEMENT_DECISION)
                .filter(|it| it.label(PLACEMENT_LABEL) == Some(name.as_str()));
            let decided: BTreeSet<String> = decisions
                .flat_map(|it| list(it.status(), "decisions"))
                .map(|it| text(it, "clusterName").to_owned())
                .collect();
            let fit: BTreeSet<String> = self
                .of(MANAGED_CLUSTER)
                .filter(|it| fits(it, placement.spec()))
                .map(|it| it.name().to_string())
                .collect();
            let wanted = placement.spec().get("numberOfClusters").and_then(Value::as_u64);
            let wanted =
                wanted.map_or(fit.len(), |it| fit.len().min(usize::try_from(it).unwrap_or(0)));
            if !decided.is_subset(&fit) || decided.len() != wanted {
                return Err(format!(
                    "placement {name} has {decided:?}, and {wanted} of {fit:?} fit"
                ));
            }
            selections.push((name, decided));
        }
        Ok(selections)
    }

    fn is_released(&self) -> Result<(), String> {
        let selections = self.selections()?;
        let references = self.set().map_or(0, |set| list(set.spec(), "placementRefs").len());
        let image = format!("good-{}", self.releases);
        for number in 1..=self.clusters {
            let name = cluster_name(number);
            let works = selections.iter().filter(|(_, decided)| decided.contains(&name)).count();
            let wanted = (works > 0).then_some(image.as_str());
            // A reference to nowhere leaves what is behind it as it is.
            if references == selections.len() {
                self.has(&name, works, wanted)?;
            }
        }
        let set = self.set().ok_or("the replica set is gone")?;
        let is_done = set.condition_status("PlacementRolledOut") == Some("True");
        if references == selections.len() && !is_done {
            return Err(format!("the replica set is not rolled out: {}", set.status()));
        }
        Ok(())
    }

    /// What a cluster has; None: no workload may be there.
    fn has(&self, cluster: &str, works: usize, wanted: Option<&str>) -> Result<(), String> {
        let on_hub = self.of(MANIFEST_WORK).filter(|it| it.namespace() == cluster).count();
        let of_cluster = |it: &&Object| it.key().cluster == cluster;
        let applied = self.of(APPLIED_MANIFEST_WORK).filter(of_cluster).count();
        let front = self.of(DEPLOYMENT).find(of_cluster);
        let runs = front.map(|front| image_of(front.raw()));
        if on_hub == works && applied == works && runs == wanted {
            return Ok(());
        }
        Err(format!(
            "{cluster} runs {runs:?} with {on_hub} works, {applied} applied, not {wanted:?} with {works}"
        ))
    }

    /// One cluster has the release and does not get on; all others wait.
    fn is_contained(&self) -> Result<(), String> {
        let selections = self.selections()?;
        let Some((_, decided)) = selections.first() else { return Ok(()) };
        let set = self.set().ok_or("the replica set is gone")?;
        let template = field(set.spec(), "manifestWorkTemplate");
        let started: Vec<&Object> =
            self.of(MANIFEST_WORK).filter(|it| it.spec() == template).collect();
        let reports = |it: &&&Object| {
            let current = |it: &Object, kind| {
                it.condition(kind).is_some_and(|told| told["observedGeneration"] == it.generation())
            };
            current(it, "Progressing") && it.condition_status("Progressing") == Some("True")
        };
        let failing = started.iter().filter(reports).count();
        if failing == started.len() && failing == decided.len().min(1) {
            return Ok(());
        }
        Err(format!("{failing} of {} that started do not get on", started.len()))
    }
}

fn is_placed(object: &Object) -> bool {
    *object.kind() == DEPLOYMENT && !object.key().cluster.is_empty()
}

/// Whether a placement may select a cluster.
fn fits(cluster: &Object, spec: &Value) -> bool {
    let sets: Vec<&str> = list(spec, "clusterSets").iter().filter_map(Value::as_str).collect();
    let set = cluster.label(CLUSTER_SET_LABEL).unwrap_or_default();
    let is_in = sets.is_empty() || sets.contains(&"global") || sets.contains(&set);
    let predicate = field(spec, "predicates").to_string();
    let region = cluster.label("region").unwrap_or_default();
    let matches = list(spec, "predicates").is_empty() || predicate.contains(region);
    is_in && matches && list(cluster.spec(), "taints").is_empty() && !cluster.is_deleting()
}
