//! The actions of a step: commands that begin, go on or are undone, conditions of claims, the
//! fixed size of static pools. Taints come before anything is disturbed, and undoing before
//! beginning.

mod counts;
pub(crate) mod drain;
pub(crate) mod intervention;
mod launch;
pub(crate) mod lifecycle;
pub(crate) mod permissions;
mod repair;
mod replicas;
mod states;
pub(crate) mod terminate;
pub(crate) mod writes;

use jiff::Timestamp;
use serde_json::json;

use super::decide::command::{self, Command, Note, Progress, VALIDATION};
use super::decide::course::{self, Course, Order};
use super::decide::registrations::Registrations;
use super::decide::{BALANCE, Disruptions, Rejection};
use super::names::{self, DISRUPTED_EFFECT, DISRUPTED_TAINT, annotation, condition, event};
use super::read::Cluster;
use super::read::claim::Member;
use super::read::node::Node;
use super::read::reason::Reason;
use crate::gate::Permit;
use crate::hold::HoldReason;
use crate::object_patch::ObjectPatch;
use crate::snapshot::Snapshot;
use crate::step::{Action, EventType, MemberState, Verb, Why};
use crate::taint;
use terminate::Leaving;
use writes::Writes;

/// Every counter and histogram.
#[cfg(test)]
pub(crate) fn counts_of_tests() -> impl Iterator<Item = &'static crate::metric::Metric> {
    counts::ALL.iter().copied()
}

/// Works out the writes of one step.
pub(crate) fn step<'w>(
    cluster: &Cluster<'w>,
    snapshot: &Snapshot<'w>,
    disruptions: &Disruptions<'_, 'w>,
    registrations: &Registrations,
) -> Writes {
    let mut writes = Writes::default();
    // Before claims go that the results come from.
    writes.record.extend(results(cluster, registrations));
    for (at, course) in course::courses(cluster, snapshot, disruptions) {
        let member = &cluster.members[at];
        match course {
            Course::Terminate => end(cluster, snapshot, disruptions, at, &mut writes),
            Course::Follow(permit) => {
                follow(member, permit, &mut writes);
                writes.states.insert(at, (MemberState::Gone, None));
            }
            _ => go_on(cluster, disruptions, at, &course, &mut writes),
        }
    }
    replacements(cluster, &course::orders(cluster, snapshot, disruptions), &mut writes);
    if let Some(new) = disruptions.provision() {
        replicas::provision(cluster, snapshot, &new, &mut writes);
    }
    if let Some(scaling) = disruptions.scaling() {
        replicas::scale(cluster, snapshot, &scaling, &mut writes);
    }
    writes.hold = writes.hold.take().or_else(|| disruptions.switched_off());
    repair::blocked(cluster, disruptions, &mut writes);
    states::told(cluster, disruptions, &mut writes);
    writes.record.extend(hash(cluster));
    writes
}

/// A claim goes with its Node.
pub(crate) fn follow(member: &Member<'_>, permit: Permit, writes: &mut Writes) {
    let why = Why::new("NodeDeleted", "the Node of this NodeClaim is being deleted");
    writes.remove(member, permit, why);
}

/// The next steps in the deletion of a claim.
fn end<'w>(
    cluster: &Cluster<'w>,
    snapshot: &Snapshot<'w>,
    disruptions: &Disruptions<'_, '_>,
    at: usize,
    writes: &mut Writes,
) {
    let member = &cluster.members[at];
    let leaving = Leaving {
        now: cluster.now,
        member,
        pods: cluster.pods_of(member),
        pod_budgets: &cluster.pod_budgets,
        snapshot,
        is_hurried: disruptions.repairs.hurried.contains(&at),
    };
    let hold = terminate::claim(leaving, writes);
    writes.states.insert(at, (MemberState::Gone, hold));
}

/// What a claim that is not being deleted gets written.
fn go_on(
    cluster: &Cluster<'_>,
    disruptions: &Disruptions<'_, '_>,
    at: usize,
    course: &Course<'_, '_>,
    writes: &mut Writes,
) {
    let member = &cluster.members[at];
    let mut patch = ObjectPatch::new(member.claim, cluster.now);
    record_conditions(disruptions, cluster, at, &mut patch);
    match course {
        Course::Proceed(progress) => proceed(cluster, at, progress, &mut patch, writes),
        Course::Expire(command) => expire(cluster, command, at, writes),
        Course::Begin { command, replacements } => {
            begin(cluster, command, replacements, at, &mut patch, writes);
        }
        Course::Propose { command, ripe } => {
            propose(cluster, command, at, *ripe, &mut patch, writes);
        }
        Course::Stay => clean_up(disruptions, at, member, &mut patch, writes),
        Course::Repair(permit) => repair::begin(cluster, *permit, at, &mut patch, writes),
        Course::Defer | Course::Leave | Course::Terminate | Course::Follow(_) => {}
    }
    if !patch.is_empty() {
        let why = Why::new("Marked", "conditions or annotations of the NodeClaim changed");
        writes.record.extend(patch.actions(Verb::Record, &why));
    }
}

/// Conditions that follow from the objects, and the hash of claims from before its version.
fn record_conditions(
    disruptions: &Disruptions<'_, '_>,
    cluster: &Cluster<'_>,
    at: usize,
    patch: &mut ObjectPatch<'_>,
) {
    let member = &cluster.members[at];
    let (facts, wanted, pool) = (&member.facts, &disruptions.conditions[at], cluster.pool());
    if facts.consolidatable.is_some() != wanted.consolidatable {
        if wanted.consolidatable {
            patch.set(condition::CONSOLIDATABLE, "True", condition::CONSOLIDATABLE, "");
        } else {
            patch.unset(condition::CONSOLIDATABLE);
        }
    }
    if facts.drifted.as_ref().map(|it| it.reason.as_str()) != wanted.drifted.as_deref() {
        match &wanted.drifted {
            Some(word) => patch.set(condition::DRIFTED, "True", word, word),
            None => patch.unset(condition::DRIFTED),
        }
    }
    if pool.is_budgeted_expiration() && facts.expired.is_some() != wanted.expired {
        if wanted.expired {
            patch.set(condition::EXPIRED, "True", condition::EXPIRED, "");
        } else {
            patch.unset(condition::EXPIRED);
        }
    }
    if let Some(event) = wanted.pod_event {
        patch.status("lastPodEventTime", crate::condition::instant(event));
    }
    if member.migrates(pool) {
        patch.annotate(annotation::HASH_VERSION, Some(names::HASH_VERSION));
        patch.annotate(annotation::HASH, member.migrated_hash(pool));
    }
}

/// Deletes a claim that is too old.
fn expire(cluster: &Cluster<'_>, command: &Command<'_>, at: usize, writes: &mut Writes) {
    writes.states.insert(at, (MemberState::Gone, None));
    let why = Why::new("Expired", "the NodeClaim is older than its expireAfter");
    let (member, word) = (&cluster.members[at], command.reason.word());
    writes.terminate(cluster, member, word, command.permit, why);
}

/// Starts a member: the taint first, then what it waits for.
fn begin<'w>(
    cluster: &Cluster<'w>,
    command: &Command<'_>,
    names: &[String],
    at: usize,
    patch: &mut ObjectPatch<'w>,
    writes: &mut Writes,
) {
    let member = &cluster.members[at];
    let word = command.reason.word();
    let message = format!("{word}: {}", summary(command.members.len(), names.len()));
    let why = Why::new(word, message);
    if let Some(node) = member.node.filter(|node| !node.facts.is_tainted) {
        writes.start.push(taint(&node, &why));
    }
    let is_delete = names.is_empty();
    let note = Note { id: command.id.clone(), replacements: names.to_vec() };
    let mut started = ObjectPatch::new(member.claim, cluster.now);
    std::mem::swap(&mut started, patch);
    started.annotate(annotation::PROPOSAL, None);
    let note = serde_json::to_string(&note).expect("a note is plain strings");
    started.annotate(annotation::COMMAND, Some(&note));
    started.set(condition::DISRUPTION_REASON, "True", word, word);
    writes.start.extend(started.actions(Verb::Start(command.permit), &why));
    writes.states.insert(at, (MemberState::Moving, None));
    count_begin(cluster, command, at, writes);
    if is_delete {
        writes.terminate(cluster, member, word, command.permit, why);
    }
}

/// Counts a command with its first member of the pool.
fn count_begin(cluster: &Cluster<'_>, command: &Command<'_>, at: usize, writes: &mut Writes) {
    let is_own = |at: &&usize| cluster.members[**at].pool == Some(cluster.own);
    if command.members.iter().find(is_own) == Some(&at) {
        let is_first = command.members.first() == Some(&at);
        let (pool, key) = (cluster.pool().name(), cluster.members[at].claim.key());
        writes.counts.extend(counts::decided(command, pool, key, is_first));
        approved(cluster, command, at, writes);
    }
}

/// Tells how the own pool judges a consolidation, if its policy is Balanced.
fn approved(cluster: &Cluster<'_>, command: &Command<'_>, at: usize, writes: &mut Writes) {
    let (pool, member) = (cluster.pool(), &cluster.members[at]);
    if command.reason == Reason::Underutilized {
        writes.counts.push(counts::approved(pool.name(), pool.policy, member.claim.key()));
    }
    let Some(score) = command.scores.iter().find(|score| score.pool == cluster.own) else {
        return;
    };
    let message = format!(
        "score {:.2} >= threshold {BALANCE:.2} (savings {:.1}%, disruption {:.1}%)",
        score.ratio,
        score.savings * 100.0,
        score.disturbance * 100.0
    );
    let reason = event::CONSOLIDATION_APPROVED;
    if command.members.len() == 1 {
        writes.event_of(member, reason, |_| message.clone());
    } else {
        writes.event(pool.object.key(), EventType::Normal, reason, message);
    }
}

/// How many nodes a command disrupts, and what has to be there first.
fn summary(nodes: usize, replacements: usize) -> String {
    let noun = if nodes == 1 { "node" } else { "nodes" };
    match replacements {
        0 => format!("disrupts {nodes} {noun} without replacement"),
        1 => format!("disrupts {nodes} {noun} once its replacement is initialized"),
        _ => format!("disrupts {nodes} {noun} once {replacements} replacements are initialized"),
    }
}

/// Notes a consolidation that begins once it has stayed sensible for a while.
fn propose(
    cluster: &Cluster<'_>,
    command: &Command<'_>,
    at: usize,
    ripe: Option<Timestamp>,
    patch: &mut ObjectPatch<'_>,
    writes: &mut Writes,
) {
    let member = &cluster.members[at];
    let id = command::proposal_id(command);
    let carries = member
        .facts
        .proposal
        .as_deref()
        .and_then(|text| text.split_once(' '))
        .is_some_and(|(known, _)| known == id);
    if !carries {
        let since = crate::condition::instant(cluster.now);
        let since = since.as_str().unwrap_or_default();
        patch.annotate(annotation::PROPOSAL, Some(&format!("{id} {since}")));
        let word = command.reason.word();
        writes.event_of(member, event::CONSOLIDATION_CANDIDATE, |_| {
            format!("{word}: starts if it is still possible in {} s", VALIDATION.as_secs())
        });
    }
    let ripe = ripe.or_else(|| cluster.now.checked_add(VALIDATION).ok());
    let hold = HoldReason::Settling { for_secs: VALIDATION.as_secs() };
    writes.states.insert(at, (MemberState::Waiting, Some((hold, ripe))));
}

/// Goes on with a command that is under way.
fn proceed(
    cluster: &Cluster<'_>,
    at: usize,
    progress: &Progress,
    patch: &mut ObjectPatch<'_>,
    writes: &mut Writes,
) {
    let member = &cluster.members[at];
    let word = member.facts.disruption_word();
    let hold = match progress {
        Progress::Ready(permit) => {
            let why = Why::new("Replaced", "all replacements are initialized");
            writes.terminate(cluster, member, word, *permit, why);
            None
        }
        Progress::Waiting { replacement, until } => {
            let key = member.claim.key().sibling(&names::NODE_CLAIM, "", replacement);
            writes.state(
                &key,
                EventType::Normal,
                event::DISRUPTION_WAITING_READINESS,
                "Waiting on readiness to continue disruption".to_owned(),
            );
            let detail = format!("replacement {replacement} is not initialized yet");
            Some((HoldReason::NotAvailable { detail }, *until))
        }
        Progress::Foreign { until } => {
            let detail =
                "another controller is disrupting the node and has not recorded its replacements"
                    .to_owned();
            Some((HoldReason::NotAvailable { detail }, *until))
        }
        Progress::Failed { why } => {
            let count = counts::undone(word, command::has_replacements(member), member.claim.key());
            writes.counts.push(count);
            patch.unset(condition::DISRUPTION_REASON);
            patch.annotate(annotation::COMMAND, None);
            let why = Why::new("RolledBack", format!("{word}: {why}"));
            writes.undo.extend(member.node.and_then(|node| untaint(&node, &why)));
            writes.event_of(member, event::DISRUPTION_ROLLED_BACK, |_| why.message.clone());
            Some((HoldReason::Failed { detail: why.message.clone() }, None))
        }
    };
    writes.states.insert(at, (MemberState::Moving, hold));
}

/// Removes the taint and notes of a start that was interrupted.
fn clean_up(
    disruptions: &Disruptions<'_, '_>,
    at: usize,
    member: &Member<'_>,
    patch: &mut ObjectPatch<'_>,
    writes: &mut Writes,
) {
    if let Some(node) = member.node.filter(|node| node.facts.is_tainted) {
        let why = Why::new("LeftOver", "no disruption of the node is in progress");
        writes.undo.extend(untaint(&node, &why));
    }
    if let Some(proposal) = &member.facts.proposal {
        patch.annotate(annotation::PROPOSAL, None);
        let kind = command::proposed_kind(proposal);
        writes.counts.push(counts::unproposed(kind, member.claim.key()));
        // Upstream tells it of single nodes only.
        if kind == "single" {
            rejected(disruptions, at, member, writes);
        }
    }
    if member.facts.command.is_some() {
        patch.annotate(annotation::COMMAND, None);
    }
}

/// Tells what came in between the proposal of a consolidation and its start.
fn rejected(
    disruptions: &Disruptions<'_, '_>,
    at: usize,
    member: &Member<'_>,
    writes: &mut Writes,
) {
    let rejection = disruptions.rejection(at);
    let detail = match rejection {
        Rejection::Budget => "no budget has room for it, or a pod will come to it",
        Rejection::Scheduling => "its pods fit nowhere else any more, or nothing would be saved",
        Rejection::Churn => "it is no candidate any more",
    };
    let name = member.node_name();
    writes.event_of(member, event::CONSOLIDATION_REJECTED, |_| {
        format!("Consolidation of node {name} rejected, reason: {} ({detail})", rejection.word())
    });
}

/// Creates the claims that commands ask for.
fn replacements(cluster: &Cluster<'_>, orders: &[Order<'_, '_>], writes: &mut Writes) {
    for Order { command, name, replacement } in orders {
        let pool = &cluster.pools[replacement.pool];
        let word = command.reason.word();
        let message = format!("{word}: replaces {} node(s)", command.members.len());
        let why = Why::new("Replacement", message);
        let machines = Some(*replacement).filter(|replacement| !replacement.offers.is_empty());
        let create = launch::create(pool, name, machines, Some(&command.id), command.permit, why);
        let target = create.target.clone();
        writes.counts.push(counts::claim_created(pool.name(), word, &target));
        let message = format!("Launching NodeClaim: {word}");
        writes.event(&target, EventType::Normal, event::DISRUPTION_LAUNCHING, message);
        writes.create.push(create);
    }
}

/// Keeps pods away from a node: the reservation before anything is disturbed.
fn taint(node: &Node<'_>, why: &Why) -> Action {
    let mut taints = taint::but(node.object, DISRUPTED_TAINT, DISRUPTED_EFFECT);
    taints.push(json!({"key": DISRUPTED_TAINT, "effect": DISRUPTED_EFFECT}));
    let patch = json!({"spec": {"taints": taints}});
    Action::patch(Verb::Taint, node.object, patch, why.clone()).concurrently()
}

fn untaint(node: &Node<'_>, why: &Why) -> Option<Action> {
    let others = taint::but(node.object, DISRUPTED_TAINT, DISRUPTED_EFFECT);
    let patch = json!({"spec": {"taints": others}});
    let untaint = || Action::patch(Verb::Untaint, node.object, patch, why.clone()).concurrently();
    node.facts.is_tainted.then(untaint)
}

/// The hash of the template, on the pool itself.
fn hash(cluster: &Cluster<'_>) -> Vec<Action> {
    let pool = cluster.pool();
    let mut patch = ObjectPatch::new(pool.object, cluster.now);
    patch.annotate(annotation::HASH, Some(&pool.hash));
    patch.annotate(annotation::HASH_VERSION, Some(names::HASH_VERSION));
    patch.actions(Verb::Record, &Why::new("Hashed", "the hash of the NodePool's template changed"))
}

/// The last results of registrations, on the pool itself.
fn results(cluster: &Cluster<'_>, registrations: &Registrations) -> Vec<Action> {
    let pool = cluster.pool().object;
    let mut patch = ObjectPatch::new(pool, cluster.now);
    if let Some(note) = registrations.note(pool.annotation(annotation::REGISTRATIONS)) {
        patch.annotate(annotation::REGISTRATIONS, Some(&note));
    }
    let why = Why::new("Registrations", "the last results of node registrations changed");
    patch.actions(Verb::Record, &why)
}
