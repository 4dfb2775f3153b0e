//! What people do to a placement and to the members.

use convoy_controllers::request::Request;
use http::Method;
use serde_json::{Value, json};

use super::world::{
    BUDGETS, DEPLOYMENTS, EVICTIONS, MEMBERS, NAME, PLACEMENTS, affinity, limits, member,
    member_name, names, number, placement,
};
use super::{BINDING, Fleets, MEMBER, PLACEMENT, path_in};
use crate::simulation::light::DENIAL;
use crate::simulation::random::Random;

impl Fleets {
    pub(super) fn user_action(&mut self, random: &mut Random) -> Option<Request> {
        if self.get(&PLACEMENT, NAME).is_none() {
            return Some(Request::create(PLACEMENTS, placement(self.members, random)));
        }
        match random.between(0, 21) {
            0..=3 => {
                let kind = random.pick(&["good", "good", "good", "bad", "bad", "slow"])?;
                Some(self.release(kind))
            }
            4..=7 => self.change_policy(random),
            8..=9 if !self.is_external() => {
                Some(of_placement(json!({"strategy": {"rollingUpdate": limits(random)}})))
            }
            10 => Some(self.relabel(random)),
            11 => Some(self.taint(random)),
            12..=13 => Some(self.evict(random)),
            14 => Some(change_budget(random)),
            15 => Some(self.deny(random)),
            16 if random.happens(300) => Some(Request::delete(format!("{PLACEMENTS}/{NAME}"))),
            18 => self.leave_or_join(random),
            19..=21 => self.run_action(random),
            _ => self.meddle(random),
        }
    }

    /// A member leaves the fleet, or comes back.
    fn leave_or_join(&self, random: &mut Random) -> Option<Request> {
        let name = self.any_member(random);
        match self.get(&MEMBER, &name) {
            None => {
                let region = random.pick(&["west", "east"]).unwrap_or(&"west");
                Some(Request::create(MEMBERS, member(&name, region)))
            }
            Some(member) if member.is_deleting() => None,
            Some(_) => random.happens(500).then(|| Request::delete(format!("{MEMBERS}/{name}"))),
        }
    }

    /// Another number, another region, other names, or all clusters instead of some.
    fn change_policy(&self, random: &mut Random) -> Option<Request> {
        let policy = self.get(&PLACEMENT, NAME)?.spec().get("policy")?.clone();
        let patch = match policy["placementType"].as_str()? {
            "PickFixed" => json!({"clusterNames": names(self.members, random)}),
            "PickN" if random.happens(500) => {
                json!({"numberOfClusters": number(self.members, random)})
            }
            "PickN" if random.happens(100) => {
                json!({"placementType": "PickAll", "numberOfClusters": null})
            }
            _ => {
                // A merge would keep the terms of the former region.
                let body = json!([{"op": "add", "path": "/spec/policy/affinity",
                    "value": affinity(random)}]);
                let path = format!("{PLACEMENTS}/{NAME}");
                let content_type = "application/json-patch+json";
                return Some(Request { method: Method::PATCH, path, content_type, body });
            }
        };
        Some(of_placement(json!({"policy": patch})))
    }

    fn any_member(&self, random: &mut Random) -> String {
        let number = random.between(1, i64::from(self.members));
        member_name(u32::try_from(number).unwrap_or(1))
    }

    fn relabel(&self, random: &mut Random) -> Request {
        let region = random.pick(&["west", "east"]).unwrap_or(&"west");
        let path = format!("{MEMBERS}/{}", self.any_member(random));
        Request::merge(&path, json!({"metadata": {"labels": {"region": region}}}))
    }

    fn taint(&self, random: &mut Random) -> Request {
        let taint = json!({"key": "away", "value": "true", "effect": "NoSchedule"});
        let taints = if random.happens(500) { json!([taint]) } else { json!([]) };
        let path = format!("{MEMBERS}/{}", self.any_member(random));
        Request::merge(&path, json!({"spec": {"taints": taints}}))
    }

    fn evict(&mut self, random: &mut Random) -> Request {
        self.evictions += 1;
        let body = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourcePlacementEviction",
            "metadata": {"name": format!("eviction-{}", self.evictions)},
            "spec": {"placementName": NAME, "clusterName": self.any_member(random)}});
        Request::create(EVICTIONS, body)
    }

    /// A member denies writes, or does so no longer.
    fn deny(&self, random: &mut Random) -> Request {
        let path = path_in(&self.any_member(random), "/api/v1/namespaces");
        if random.happens(500) {
            return Request::delete(format!("{path}/{DENIAL}"));
        }
        Request::create(&path, json!({"metadata": {"name": DENIAL}}))
    }

    /// Somebody edits or deletes what was placed, or a binding.
    fn meddle(&self, random: &mut Random) -> Option<Request> {
        let front = path_in(&self.any_member(random), &format!("{DEPLOYMENTS}/front"));
        match random.between(0, 2) {
            0 => Some(Request::merge(&front, json!({"spec": {"replicas": random.between(1, 5)}}))),
            1 => Some(Request::delete(front)),
            _ => {
                let bindings: Vec<_> = self.of(BINDING).collect();
                let name = random.pick(&bindings)?.name().to_string();
                let path = "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourcebindings";
                Some(Request::delete(format!("{path}/{name}")))
            }
        }
    }
}

/// A disruption budget appears, or goes.
fn change_budget(random: &mut Random) -> Request {
    if random.happens(300) {
        return Request::delete(format!("{BUDGETS}/{NAME}"));
    }
    let field = random.pick(&["maxUnavailable", "minAvailable"]).unwrap_or(&"minAvailable");
    let body = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacementDisruptionBudget", "metadata": {"name": NAME},
        "spec": {*field: random.between(0, 3)}});
    Request::create(BUDGETS, body)
}

pub(super) fn of_placement(spec: Value) -> Request {
    Request::merge(&format!("{PLACEMENTS}/{NAME}"), json!({"spec": spec}))
}
