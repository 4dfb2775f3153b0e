//! What the active policy snapshot's status says about a scheduling run.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use convoy_api::Object;
use convoy_api::object::member::same;

use crate::condition::{self, Condition, truth};
use crate::dialect::fleet::decide::schedule::cycle::{Change, Picks};
use crate::dialect::fleet::names;
use crate::dialect::fleet::read::binding::{Score, recorded_decision, recorded_score};
use crate::dialect::fleet::read::placement::{Pick, Placement};
use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

/// The most clusters that are listed at all, and of those that were not selected.
const LISTED: usize = 1000;
const UNSELECTED_LISTED: usize = 20;

/// The field with a decision about each cluster.
const DECISIONS: &str = "targetClusters";

/// The write that brings the policy snapshot's status up to date; none if it is.
pub(crate) fn status(
    placement: &Placement<'_>,
    policy: &Object,
    picks: &Picks<'_>,
    now: Timestamp,
) -> Option<Action> {
    let fulfilled = picks.is_fulfilled(placement);
    let mut conditions = match policy.status().get("conditions") {
        Some(Value::Array(conditions)) => conditions.clone(),
        _ => Vec::new(),
    };
    let reason =
        if fulfilled { "SchedulingPolicyFulfilled" } else { "SchedulingPolicyUnfulfilled" };
    let wanted = Condition::new("Scheduled", truth(fulfilled), reason, picks.summary(placement))
        .of_generation(policy.generation());
    condition::set(&mut conditions, &wanted, now);
    let generation = policy.annotation(names::GENERATION).and_then(|text| text.parse().ok());
    let generation: i64 = generation.unwrap_or_else(|| placement.object.generation());
    let decisions = decisions(placement, picks);
    let known = policy.status().as_object();
    let reads = known.is_some_and(|known| {
        let old = |name: &str| known.get(name).unwrap_or(&Value::Null);
        let listed = old(DECISIONS).as_array().map_or(&[][..], Vec::as_slice);
        known.len() == 3
            && old("observedCRPGeneration").as_i64() == Some(generation)
            && old("conditions").as_array().is_some_and(|old| *old == conditions)
            && old(DECISIONS).is_array()
            && listed.len() == decisions.len()
            && listed.iter().zip(&decisions).all(|(old, decision)| same(old, decision))
    });
    if reads {
        return None;
    }
    let decisions = decisions.into_iter().map(Cow::into_owned).collect();
    let mut status = Map::with_capacity(3);
    status.insert("observedCRPGeneration".into(), generation.into());
    status.insert("conditions".into(), Value::Array(conditions));
    status.insert(DECISIONS.into(), Value::Array(decisions));
    let why = Why::new("Scheduled", wanted.message);
    let status = nested(&["status"], Value::Object(status));
    Some(Action::patch_status(Verb::Record, policy, status, why))
}

fn decisions<'w>(placement: &Placement<'_>, picks: &Picks<'w>) -> Vec<Cow<'w, Value>> {
    let selected = picks.selected.iter().map(|(cluster, selected)| match selected.change {
        Change::Keep(binding) => recorded_decision(binding).map_or_else(
            || Cow::Owned(decision(cluster, recorded_score(binding), placement)),
            Cow::Borrowed,
        ),
        _ => Cow::Owned(decision(cluster, selected.score, placement)),
    });
    let unselected = picks.unselected.iter().map(|unselected| {
        let mut entry = json!({"clusterName": unselected.cluster, "selected": false});
        if let Some(score) = unselected.score {
            entry["clusterScore"] = score_json(score);
        }
        entry["reason"] = json!(unselected.reason);
        Cow::Owned(entry)
    });
    // A list of names is short, and people want to see each that is wrong.
    let listed = match placement.policy.pick {
        Pick::Fixed(_) => LISTED,
        _ => UNSELECTED_LISTED,
    };
    selected.chain(unselected.take(listed)).take(LISTED).collect()
}

/// What a binding or a policy snapshot says about a selected cluster.
pub(crate) fn decision(cluster: &str, score: Option<Score>, placement: &Placement<'_>) -> Value {
    let reason = match score {
        Some(Score { topology, affinity, .. }) => format!(
            "picked by {} with affinity score {affinity} and topology spread score {topology}",
            placement.name()
        ),
        None => format!("picked by {}", placement.name()),
    };
    let mut decision = json!({"clusterName": cluster, "selected": true, "reason": reason});
    if let Some(score) = score {
        decision["clusterScore"] = score_json(score);
    }
    decision
}

fn score_json(score: Score) -> Value {
    json!({"affinityScore": score.affinity, "priorityScore": score.topology})
}
