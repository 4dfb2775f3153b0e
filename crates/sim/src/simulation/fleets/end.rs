//! How a trial ends, once nothing fails any more.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::kinds::DEPLOYMENT;
use convoy_api::object::member::{list, text};
use convoy_controllers::request::Request;
use convoy_plan::dialect::fleet::names::LATEST;
use serde_json::{Value, json};

use super::user::of_placement;
use super::world::{NAME, PLACEMENTS, image_of, member_name};
use super::{APPLIED_WORK, BINDING, Fleets, MEMBER, PLACEMENT, SNAPSHOT, WORK, path_in};
use crate::simulation::ending::Ending;
use crate::simulation::light::DENIAL;

impl Fleets {
    pub(super) fn last_action(&mut self) -> Vec<Request> {
        self.is_ending = true;
        // A run of a release that does not work would wait for it for good.
        if self.is_external() && self.ending == Ending::Contained {
            self.ending = Ending::Released;
        }
        let mut requests = match self.ending {
            Ending::Released => vec![self.release("good")],
            Ending::Contained => vec![self.release("bad")],
            Ending::Deleted => vec![Request::delete(format!("{PLACEMENTS}/{NAME}"))],
        };
        requests.extend(self.end_runs());
        for number in 1..=self.members {
            let path = format!("/api/v1/namespaces/{DENIAL}");
            requests.push(Request::delete(path_in(&member_name(number), &path)));
        }
        if self.ending != Ending::Deleted
            && self.get(&PLACEMENT, NAME).is_none_or(Object::is_deleting)
        {
            self.ending = Ending::Deleted;
        }
        // Without either limit a move, and with more clusters than there are any change, stands
        // still for good.
        let mut patch = json!({"strategy": {"rollingUpdate": {"maxUnavailable": 1}}});
        if self.is_external() {
            patch = json!({});
        }
        let policy = self.get(&PLACEMENT, NAME).and_then(|it| it.spec().get("policy"));
        if let Some(wanted) = policy.and_then(|it| it["numberOfClusters"].as_u64()) {
            let fit = self.of(MEMBER).filter(|it| policy.is_some_and(|policy| fits(it, policy)));
            let number = wanted.min(fit.count() as u64);
            patch["policy"] = json!({"numberOfClusters": number});
        }
        let named = policy.filter(|it| text(it, "placementType") == "PickFixed");
        if let Some(named) = named.map(|it| list(it, "clusterNames").iter()) {
            let is_there = |name: &&Value| {
                let member = name.as_str().and_then(|name| self.get(&MEMBER, name));
                member.is_some_and(|it| !it.is_deleting())
            };
            patch["policy"] = json!({"clusterNames": named.filter(is_there).collect::<Vec<_>>()});
        }
        requests.push(of_placement(patch));
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
        let kinds = [PLACEMENT, BINDING, SNAPSHOT, WORK, APPLIED_WORK];
        let left = self.seen.values().find(|it| {
            let cluster = it.key().cluster.as_str();
            let is_placed = *it.kind() == DEPLOYMENT && !cluster.is_empty();
            (kinds.contains(it.kind()) || is_placed) && !self.left.contains(cluster)
        });
        left.map_or(Ok(()), |left| Err(format!("{} is still there", left.key())))
    }

    fn is_released(&self) -> Result<(), String> {
        let clusters = self.settled_clusters()?;
        for binding in self.of(BINDING) {
            let current = condition(binding, "Available");
            if current != "True" {
                return Err(format!("{} is not available: {}", binding.key(), binding.status()));
            }
        }
        let image = format!("good-{}", self.releases);
        for number in 1..=self.members {
            let name = member_name(number);
            let is_bound = |it: &Object| it.spec_text("targetCluster") == name;
            if clusters.contains(&name) {
                self.has_image(&name, Some(&image))?;
            } else if !self.of(BINDING).any(is_bound) && !self.left.contains(&name) {
                self.has_image(&name, None)?;
            }
        }
        if !clusters.is_empty() {
            let placement = self.get(&PLACEMENT, NAME).ok_or("the placement is gone")?;
            if condition(placement, "ClusterResourcePlacementAvailable") != "True" {
                return Err(format!("the placement is not available: {}", placement.status()));
            }
        }
        Ok(())
    }

    /// The clusters that have a binding, once the scheduler and the rollout are done with them.
    fn settled_clusters(&self) -> Result<BTreeSet<String>, String> {
        let mut clusters = BTreeSet::new();
        let placement = self.get(&PLACEMENT, NAME).ok_or("the placement is gone")?;
        let policy = placement.spec().get("policy").unwrap_or(&Value::Null);
        for binding in self.of(BINDING) {
            let is_kept = binding.spec_text("state") == "Unscheduled" && self.is_needed(policy);
            if binding.is_deleting() || binding.spec_text("state") != "Bound" && !is_kept {
                return Err(format!("{} is {}", binding.key(), binding.spec()));
            }
            if !is_kept {
                clusters.insert(binding.spec_text("targetCluster").to_owned());
            }
        }
        let fits: BTreeSet<String> =
            self.of(MEMBER).filter(|it| fits(it, policy)).map(|it| it.name().to_string()).collect();
        let wrong = match text(policy, "placementType") {
            "PickN" => {
                let wanted = policy["numberOfClusters"].as_u64().unwrap_or(0);
                let has = clusters.len() as u64;
                has > wanted || has < wanted && !fits.is_subset(&clusters)
            }
            "PickFixed" => {
                let names = list(policy, "clusterNames").iter().filter_map(Value::as_str);
                let joined = names.filter(|name| self.get(&MEMBER, name).is_some());
                joined.map(str::to_owned).collect::<BTreeSet<_>>() != clusters
            }
            _ => !fits.is_subset(&clusters),
        };
        if wrong {
            return Err(format!("{clusters:?} are picked of {fits:?} by {policy}"));
        }
        let (works, bindings) = (self.of(WORK).count(), self.of(BINDING).count());
        if works != bindings {
            return Err(format!("{works} Works for {bindings} bindings"));
        }
        Ok(clusters)
    }

    /// Whether clusters that are picked no longer have to stay, because too few others work: not
    /// as many can be picked as are wanted.
    fn is_needed(&self, policy: &Value) -> bool {
        let wanted = match text(policy, "placementType") {
            "PickN" => policy["numberOfClusters"].as_u64().unwrap_or(0),
            "PickFixed" => list(policy, "clusterNames").len() as u64,
            _ => return false,
        };
        let works = |it: &&Object| !it.is_deleting() && condition(it, "Available") == "True";
        (self.of(BINDING).filter(works).count() as u64) < wanted
    }

    /// What runs on a member; None: nothing may be there.
    fn has_image(&self, member: &str, wanted: Option<&str>) -> Result<(), String> {
        let of_member = |kind| move |it: &&Object| *it.kind() == kind && it.key().cluster == member;
        let front = self.seen.values().find(of_member(DEPLOYMENT));
        let runs = front.map(|front| image_of(front.raw()));
        let applied = self.seen.values().filter(of_member(APPLIED_WORK)).count();
        if runs == wanted && applied == usize::from(wanted.is_some()) {
            return Ok(());
        }
        Err(format!("{member} runs {runs:?} with {applied} AppliedWorks, not {wanted:?}"))
    }

    /// The release is known, and each cluster has it and fails, or waits.
    fn is_contained(&self) -> Result<(), String> {
        let image = format!("bad-{}", self.releases);
        let latest = self.of(SNAPSHOT).find(|it| it.label(LATEST) == Some("true"));
        let latest = latest.ok_or("no snapshot is the latest")?;
        if !latest.spec().to_string().contains(&image) {
            return Err(format!("{} has not {image}", latest.key()));
        }
        let is_observed = |it: &Object| it.status()["observedGeneration"] == it.generation();
        let mut placed = self.of(DEPLOYMENT).filter(|it| !it.key().cluster.is_empty());
        if !placed.all(is_observed) {
            return Err("a Deployment has changed".to_owned());
        }
        let (mut failing, mut all) = (0, 0);
        for binding in self.of(BINDING) {
            all += 1;
            let is_new = binding.spec_text("resourceSnapshotName") == latest.name().as_str();
            let word = condition(binding, if is_new { "Available" } else { "RolloutStarted" });
            failing += u32::from(is_new && word == "False");
            if binding.spec_text("state") != "Unscheduled" && word != "False" {
                return Err(format!("{} is neither failing nor waiting", binding.key()));
            }
        }
        if all > 0 && failing == 0 {
            return Err("no cluster has the release".to_owned());
        }
        Ok(())
    }
}

/// The status of a condition of the current generation.
fn condition<'o>(object: &'o Object, kind: &str) -> &'o str {
    let current = |it: &&Value| it["observedGeneration"] == object.generation();
    object.condition(kind).filter(current).map_or("", |it| text(it, "status"))
}

/// Whether the scheduler may pick a member.
fn fits(member: &Object, policy: &Value) -> bool {
    let terms = "/affinity/clusterAffinity/requiredDuringSchedulingIgnoredDuringExecution/clusterSelectorTerms/0/labelSelector/matchLabels/region";
    let region = policy.pointer(terms).and_then(Value::as_str);
    let is_tainted = !list(member.spec(), "taints").is_empty();
    !member.is_deleting()
        && !is_tainted
        && region.is_none_or(|region| member.label("region") == Some(region))
}
