//! Counters and histograms with upstream's names: claims, nodes and pods that come and go, how
//! long that took, and the decisions behind it. Each counts once the write is applied.

use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;

use crate::condition::since;
use crate::dialect::karpenter::decide::command::Command;
use crate::dialect::karpenter::names::{condition, label};
use crate::dialect::karpenter::read::claim::ClaimFacts;
use crate::dialect::karpenter::read::pool::Policy;
use crate::dialect::karpenter::read::reason::Reason;
use crate::metric::{Increment, Metric};

// The text format adds `_total` to the names of counters.
const CLAIMS_CREATED: Metric =
    Metric::new("karpenter_nodeclaims_created", "NodeClaims created, by reason");
const CLAIMS_DISRUPTED: Metric =
    Metric::new("karpenter_nodeclaims_disrupted", "NodeClaims deleted, by reason");
const CLAIMS_UNHEALTHY: Metric = Metric::new(
    "karpenter_nodeclaims_unhealthy_disrupted",
    "NodeClaims deleted because their node was unhealthy, by condition",
);
const CLAIMS_TERMINATED: Metric =
    Metric::new("karpenter_nodeclaims_terminated", "NodeClaims whose machine was given back");
const NODES_CREATED: Metric =
    Metric::new("karpenter_nodes_created", "Nodes that were registered for their NodeClaim");
const NODES_TERMINATED: Metric =
    Metric::new("karpenter_nodes_terminated", "Nodes whose machine was given back");
const NODES_DRAINED: Metric = Metric::new("karpenter_nodes_drained", "Nodes that were drained");
const PODS_DRAINED: Metric =
    Metric::new("karpenter_pods_drained", "Pods that were evicted or deleted, by reason");
const EVICTION_REQUESTS: Metric = Metric::new(
    "karpenter_pods_eviction_requests",
    "Evictions that were asked for, by the code of the response",
);
const PODS_DISRUPTED: Metric = Metric::new(
    "karpenter_pods_disruption_initiated",
    "Pods on nodes whose NodeClaim was deleted, by reason",
);
const DECISIONS: Metric = Metric::new(
    "karpenter_voluntary_disruption_decisions",
    "Disruptions begun, by what becomes of the nodes and by reason",
);
const POOL_DECISIONS: Metric = Metric::new(
    "karpenter_voluntary_disruption_decisions_by_nodepool",
    "Disruptions begun of nodes of the pool, by what becomes of the nodes and by reason",
);
const FAILURES: Metric = Metric::new(
    "karpenter_voluntary_disruption_queue_failures",
    "Disruptions that were undone after they had begun",
);
const FAILED_VALIDATIONS: Metric = Metric::new(
    "karpenter_voluntary_disruption_failed_validations",
    "Consolidations that did not stay possible until they would have begun",
);

const MOVES: Metric = Metric::new(
    "karpenter_consolidation_moves",
    "Consolidations begun, by what the policy of the pool thinks of them",
);
const TIMEOUTS: Metric = Metric::new(
    "karpenter_voluntary_disruption_consolidation_timeouts",
    "Searches for savings that were cut short",
);

const MINUTE: u32 = 60;
const HOUR: u32 = 60 * MINUTE;
const DAY: u32 = 24 * HOUR;

const TERMINATION_SECONDS: &[u32] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048];
const INSTANCE_TERMINATION: Metric = Metric::histogram(
    "karpenter_nodeclaims_instance_termination_duration_seconds",
    "From the order to terminate an instance until the provider had done so",
    &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024],
);
const CLAIM_TERMINATION: Metric = Metric::histogram(
    "karpenter_nodeclaims_termination_duration_seconds",
    "From the deletion of a NodeClaim until it was gone",
    TERMINATION_SECONDS,
);
const NODE_TERMINATION: Metric = Metric::histogram(
    "karpenter_nodes_termination_duration_seconds",
    "From the deletion of a Node until it was gone",
    TERMINATION_SECONDS,
);
const NODE_LIFETIME: Metric = Metric::histogram(
    "karpenter_nodes_lifetime_duration_seconds",
    "From the creation of a Node until it was gone",
    &[
        15 * MINUTE,
        30 * MINUTE,
        45 * MINUTE,
        HOUR,
        2 * HOUR,
        4 * HOUR,
        6 * HOUR,
        8 * HOUR,
        10 * HOUR,
        12 * HOUR,
        16 * HOUR,
        20 * HOUR,
        DAY,
        2 * DAY,
        3 * DAY,
        5 * DAY,
        10 * DAY,
        15 * DAY,
        20 * DAY,
        25 * DAY,
        30 * DAY,
    ],
);

type Label<'l> = (&'static str, &'l str);

/// A claim is asked for; `reason` is `provisioned` or that of a disruption.
pub(crate) fn claim_created(pool: &str, reason: &str, key: &ObjectKey) -> Increment {
    let reason = reason.to_lowercase();
    let labels = [("reason", reason.as_str()), ("nodepool", pool), ("min_values_relaxed", "false")];
    Increment::new(&CLAIMS_CREATED, &labels).once_written(key)
}

/// A claim is deleted for a reason, with `pods` on its node that need another one. `policy` is
/// that of its pool, and told of consolidations only.
pub(crate) fn claim_disrupted(
    claim: &Object,
    facts: &ClaimFacts,
    reason: &str,
    policy: Option<Policy>,
    pods: usize,
) -> impl Iterator<Item = Increment> {
    let reason = reason.to_lowercase();
    let policy = match Reason::ALL.iter().find(|it| it.word().eq_ignore_ascii_case(&reason)) {
        Some(Reason::Empty | Reason::Underutilized) => policy.map_or("", word_of),
        _ => "",
    };
    let labels = [
        ("reason", reason.as_str()),
        pool(claim),
        capacity_type(claim),
        ("consolidation_policy", policy),
        ("termination_mode", termination_mode(facts)),
    ];
    let claims = Increment::new(&CLAIMS_DISRUPTED, &labels);
    let pods = (pods > 0)
        .then(|| Increment::new(&PODS_DISRUPTED, &labels).by(u64::try_from(pods).unwrap_or(0)));
    let key = claim.key().clone();
    [Some(claims), pods].into_iter().flatten().map(move |count| count.once_written(&key))
}

/// A claim is deleted whose Node has not been Ready for too long.
pub(crate) fn claim_unhealthy(claim: &Object, facts: &ClaimFacts) -> Increment {
    let image = ("image_id", facts.image.as_str());
    let labels = [("condition", "ready"), pool(claim), capacity_type(claim), image];
    Increment::new(&CLAIMS_UNHEALTHY, &labels).once_written(claim.key())
}

/// A claim goes, its machine having been given back.
pub(crate) fn claim_terminated(claim: &Object, now: Timestamp) -> impl Iterator<Item = Increment> {
    let labels = [pool(claim), capacity_type(claim), zone(claim)];
    let total = Increment::new(&CLAIMS_TERMINATED, &labels);
    let told_at = since(claim, condition::INSTANCE_TERMINATING);
    let instance = lasted(&INSTANCE_TERMINATION, claim, told_at, now);
    let whole = lasted(&CLAIM_TERMINATION, claim, claim.deleted_at(), now);
    let counts = [Some(total), instance, whole].into_iter().flatten();
    counts.map(|count| count.once_written(claim.key()))
}

pub(crate) fn node_created(claim: &Object, node: &Object) -> Increment {
    Increment::new(&NODES_CREATED, &[pool(claim), zone(claim)]).once_written(node.key())
}

/// A Node goes, its machine having been given back.
pub(crate) fn node_terminated(
    claim: &Object,
    node: &Object,
    now: Timestamp,
) -> impl Iterator<Item = Increment> {
    let total = Increment::new(&NODES_TERMINATED, &[pool(claim), zone(claim)]);
    let end = lasted(&NODE_TERMINATION, claim, node.deleted_at(), now);
    let life = lasted(&NODE_LIFETIME, claim, node.created_at(), now);
    let counts = [Some(total), end, life].into_iter().flatten();
    counts.map(|count| count.once_written(node.key()))
}

pub(crate) fn node_drained(claim: &Object) -> Increment {
    Increment::new(&NODES_DRAINED, &[pool(claim)]).once_written(claim.key())
}

/// What the pods of a node go for, in upstream's words: the disruption, if it is one.
pub(crate) fn drain_reason(disruption: &str) -> &str {
    if disruption.is_empty() { "Forceful Termination" } else { disruption }
}

/// A pod leaves a node that goes for this disruption.
pub(crate) fn pod_drained(disruption: &str, pod: &Object) -> Increment {
    let labels = [("reason", drain_reason(disruption))];
    Increment::new(&PODS_DRAINED, &labels).once_written(pod.key())
}

/// A pod is evicted. Evictions that a budget would refuse are not asked for.
pub(crate) fn pod_evicted(pod: &Object) -> Increment {
    Increment::new(&EVICTION_REQUESTS, &[("code", "200")]).once_written(pod.key())
}

/// A disruption begins: counted with its first member, and in each pool with the first of that.
pub(crate) fn decided(
    command: &Command<'_>,
    pool: &str,
    key: &ObjectKey,
    is_first: bool,
) -> impl Iterator<Item = Increment> {
    let is_delete = command.replacements.is_empty();
    let reason = command.reason.word().to_lowercase();
    let labels: [Label<'_>; 3] = [
        ("decision", if is_delete { "delete" } else { "replace" }),
        ("reason", &reason),
        ("consolidation_type", kind(command.reason, command.members.len())),
    ];
    let all = is_first.then(|| Increment::new(&DECISIONS, &labels).once_written(key));
    let labels = [("nodepool", pool), labels[0], labels[1], labels[2]];
    [all, Some(Increment::new(&POOL_DECISIONS, &labels).once_written(key))].into_iter().flatten()
}

/// The disruption of a claim is undone. How many nodes it took is not known any more.
pub(crate) fn undone(word: &str, has_replacements: bool, key: &ObjectKey) -> Increment {
    let reason = word.to_lowercase();
    let kind = Reason::from_word(word).map_or("", |reason| kind(reason, 1));
    let decision = if has_replacements { "replace" } else { "delete" };
    let labels =
        [("decision", decision), ("reason", reason.as_str()), ("consolidation_type", kind)];
    Increment::new(&FAILURES, &labels).once_written(key)
}

/// A consolidation of a kind that was proposed is given up.
pub(crate) fn unproposed(kind: &str, key: &ObjectKey) -> Increment {
    Increment::new(&FAILED_VALIDATIONS, &[("consolidation_type", kind)]).once_written(key)
}

/// A consolidation begins, which the policy of the pool has approved.
pub(crate) fn approved(pool: &str, policy: Policy, key: &ObjectKey) -> Increment {
    let labels = [("decision", "approved"), ("nodepool", pool), ("policy", policy.word())];
    Increment::new(&MOVES, &labels).once_written(key)
}

/// A search for savings that was cut short.
pub(crate) fn timed_out(kind: &str) -> Increment {
    Increment::new(&TIMEOUTS, &[("consolidation_type", kind)])
}

/// How long something about a claim took, if it is known since when.
fn lasted(
    metric: &'static Metric,
    claim: &Object,
    since: Option<Timestamp>,
    now: Timestamp,
) -> Option<Increment> {
    Some(Increment::lasted(metric, &[pool(claim)], now.duration_since(since?)))
}

fn kind(reason: Reason, members: usize) -> &'static str {
    match reason {
        Reason::Empty => "empty",
        Reason::Underutilized if members > 1 => "multi",
        Reason::Underutilized => "single",
        Reason::Drifted | Reason::Expired => "",
    }
}

fn word_of(policy: Policy) -> &'static str {
    match policy {
        Policy::WhenEmpty => "when_empty",
        Policy::WhenEmptyOrUnderutilized => "when_empty_or_underutilized",
        Policy::Balanced => "balanced",
    }
}

/// Whether pods get the time that they ask for, some time, or none.
fn termination_mode(facts: &ClaimFacts) -> &'static str {
    match facts.grace_period {
        None => "graceful",
        Some(period) if period.is_zero() => "forceful",
        Some(_) => "eventual",
    }
}

fn pool(claim: &Object) -> Label<'_> {
    ("nodepool", claim.label(label::NODE_POOL).unwrap_or_default())
}

fn capacity_type(claim: &Object) -> Label<'_> {
    ("capacity_type", claim.label(label::CAPACITY_TYPE).unwrap_or_default())
}

fn zone(claim: &Object) -> Label<'_> {
    ("zone", claim.label(label::ZONE).unwrap_or_default())
}

/// The names of all of these, for the list of the reference.
#[cfg(test)]
pub(crate) const ALL: &[&Metric] = &[
    &CLAIMS_CREATED,
    &CLAIMS_DISRUPTED,
    &CLAIMS_UNHEALTHY,
    &CLAIMS_TERMINATED,
    &NODES_CREATED,
    &NODES_TERMINATED,
    &NODES_DRAINED,
    &PODS_DRAINED,
    &EVICTION_REQUESTS,
    &PODS_DISRUPTED,
    &DECISIONS,
    &POOL_DECISIONS,
    &FAILURES,
    &FAILED_VALIDATIONS,
    &MOVES,
    &TIMEOUTS,
    &INSTANCE_TERMINATION,
    &CLAIM_TERMINATION,
    &NODE_TERMINATION,
    &NODE_LIFETIME,
];
