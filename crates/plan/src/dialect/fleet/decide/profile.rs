//! The ClusterProfile of a member cluster, by which others find the cluster and learn how it is.

use convoy_api::Object;
use convoy_api::kinds::NAMESPACE;
use jiff::{SignedDuration, Timestamp};

use crate::condition::dated::Entry;
use crate::dialect::fleet::names::{CLUSTER_MANAGER, CLUSTER_PROFILE, SYSTEM_NAMESPACE};
use crate::dialect::fleet::read::member::{agent, heartbeat, holds, profile_manager};
use crate::dialect::fleet::read::options::Options;
use crate::snapshot::Snapshot;

/// The shortest time there is.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// What is to be of the profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Profile<'w> {
    /// None is kept: the cluster has not joined, or the hub keeps no profiles.
    Unwanted,
    /// Another cluster manager has one under this name.
    Foreign { manager: &'w str },
    Kept {
        found: Option<&'w Object>,
        health: Health,
        /// When the health changes, should the agent say nothing more.
        until: Option<Timestamp>,
    },
    /// The cluster leaves, and its profile goes before it.
    Withdrawn { found: Option<&'w Object> },
}

/// Whether the API server of a cluster is healthy, as far as the hub knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// The agent has not reported.
    NoReport,
    /// The agent has not been heard for too long.
    Silent,
    /// The agent reports, but not about health.
    Unsaid,
    Unhealthy,
    Healthy,
}

pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    options: &Options,
    now: Timestamp,
) -> Profile<'w> {
    let member = snapshot.rollout();
    let found = snapshot.find(&CLUSTER_PROFILE, SYSTEM_NAMESPACE, member.name());
    let manager = found.map_or(CLUSTER_MANAGER, profile_manager);
    let own = found.filter(|_| manager == CLUSTER_MANAGER);
    if member.is_deleting() {
        return Profile::Withdrawn { found: own };
    }
    let has_room = snapshot.find(&NAMESPACE, "", SYSTEM_NAMESPACE).is_some();
    let is_served = options.has_cluster_profiles && snapshot.knows(&CLUSTER_PROFILE);
    if !(has_room && is_served && holds(member, "Joined")) {
        return Profile::Unwanted;
    }
    if own.is_none() && found.is_some() {
        return Profile::Foreign { manager };
    }
    let (health, until) = health(member, options.unhealthy_threshold, now);
    Profile::Kept { found: own, health, until }
}

/// How a cluster is, and until when, should its agent say nothing more.
///
/// | agent    | last heard             | condition Healthy | result    |
/// |----------|------------------------|-------------------|-----------|
/// | none     |                        |                   | NoReport  |
/// | reports  |                        | none              | Unsaid    |
/// | reports  | before the threshold   | any               | Silent    |
/// | reports  | within the threshold   | Unknown           | Unsaid    |
/// | reports  | within the threshold   | False             | Unhealthy |
/// | reports  | within the threshold   | True              | Healthy   |
fn health(
    member: &Object,
    threshold: SignedDuration,
    now: Timestamp,
) -> (Health, Option<Timestamp>) {
    let Some(agent) = agent(member) else { return (Health::NoReport, None) };
    let Some(healthy) = Entry::within(agent, "Healthy") else { return (Health::Unsaid, None) };
    // Strictly longer than the threshold.
    let silent_at = |at: Timestamp| at.checked_add(threshold).ok()?.checked_add(INSTANT).ok();
    let until = heartbeat(member).and_then(silent_at).filter(|until| *until > now);
    let health = match healthy.status() {
        _ if until.is_none() => Health::Silent,
        "True" => Health::Healthy,
        "False" => Health::Unhealthy,
        _ => Health::Unsaid,
    };
    (health, until)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn member(agents: &Value) -> Object {
        Object::from_value(json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
            "kind": "MemberCluster", "metadata": {"name": "a"},
            "status": {"agentStatus": agents}}))
        .unwrap()
    }

    #[test]
    fn health_is_what_the_agent_says_while_it_is_heard() {
        let heard = "2026-01-01T00:00:00Z";
        let said = |status: &str| {
            json!([{"type": "MemberAgent", "lastReceivedHeartbeat": heard,
                "conditions": [{"type": "Healthy", "status": status}]}])
        };
        let mute = json!([{"type": "MemberAgent", "lastReceivedHeartbeat": heard}]);
        let unheard = json!([{"type": "MemberAgent",
            "conditions": [{"type": "Healthy", "status": "True"}]}]);
        let cases = [
            (json!([]), 0, Health::NoReport),
            (mute, 0, Health::Unsaid),
            (unheard, 0, Health::Silent),
            (said("True"), 60, Health::Healthy),
            (said("True"), 61, Health::Silent),
            (said("False"), 61, Health::Silent),
            (said("False"), 0, Health::Unhealthy),
            (said("Unknown"), 0, Health::Unsaid),
        ];
        let since: Timestamp = heard.parse().unwrap();
        for (agents, secs, expected) in cases {
            let now = since + SignedDuration::from_secs(secs);
            let (found, until) = health(&member(&agents), SignedDuration::from_secs(60), now);
            assert_eq!(found, expected, "{agents} after {secs}s");
            if let Some(until) = until {
                let (later, _) = health(&member(&agents), SignedDuration::from_secs(60), until);
                assert_eq!(later, Health::Silent, "{agents} after {secs}s");
            }
        }
    }
}
