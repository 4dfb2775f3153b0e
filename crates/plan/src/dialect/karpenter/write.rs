//! What is written: commands that begin, go on or are undone, marks on claims, the fixed size
//! of static pools. Taints come before anything is disturbed, and undoing before beginning.

pub(crate) mod launch;
pub(crate) mod patch;
pub(crate) mod replicas;
pub(crate) mod terminate;

use std::collections::BTreeMap;

use crate::dialect::karpenter::names::{self, DISRUPTED_TAINT, annotation, condition};
use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::dialect::karpenter::decide::command::{self, Note, Progress, VALIDATION};
use crate::dialect::karpenter::decide::{Command, Run};
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::claim::{Member, Node};
use crate::dialect::karpenter::read::reason::Reason;
use crate::gate::Permit;
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;
use crate::step::{Action, Event, EventType, MemberState, Propagation, Verb, Why};
use patch::Draft;

/// What a member waits for, and the instant at which time frees it.
pub(crate) type Wait = (HoldReason, Option<Timestamp>);

/// Where a member stands, and what it waits for.
pub(crate) type Stand = (MemberState, Option<Wait>);

/// Everything that is to be done, in the order of its parts, and what members wait for.
#[derive(Debug, Default)]
pub(crate) struct Acts {
    pub(crate) undo: Vec<Action>,
    pub(crate) record: Vec<Action>,
    pub(crate) start: Vec<Action>,
    pub(crate) create: Vec<Action>,
    pub(crate) delete: Vec<Action>,
    pub(crate) events: Vec<Event>,
    /// Where members stand that a command or a deletion concerns, and what they wait for.
    pub(crate) stands: BTreeMap<usize, Stand>,
}

impl Acts {
    pub(crate) fn into_parts(self) -> (Vec<Action>, Vec<Event>) {
        let parts = [self.undo, self.record, self.start, self.create, self.delete];
        (parts.into_iter().flatten().collect(), self.events)
    }

    pub(crate) fn event(
        &mut self,
        regarding: &ObjectKey,
        kind: EventType,
        reason: &str,
        message: String,
    ) {
        self.events.push(Event {
            regarding: regarding.clone(),
            kind,
            reason: reason.to_owned(),
            message,
            reports: None,
        });
    }

    /// The same event on a claim and its Node.
    fn event_of(&mut self, member: &Member<'_>, reason: &str, message: impl Fn(&str) -> String) {
        if let Some(node) = member.node {
            self.event(node.object.key(), EventType::Normal, reason, message("Node"));
        }
        self.event(member.claim.key(), EventType::Normal, reason, message("NodeClaim"));
    }
}

/// Works out the writes of one step.
pub(crate) fn act(cluster: &Cluster<'_>, snapshot: &Snapshot<'_>, run: &Run<'_, '_>) -> Acts {
    let mut acts = Acts::default();
    let mut starting: BTreeMap<usize, &Command<'_>> = BTreeMap::new();
    for command in &run.commands {
        for at in &command.members {
            starting.insert(*at, command);
        }
    }
    for (at, member) in cluster.own_members() {
        if member.facts.is_deleting {
            terminate::claim(cluster, snapshot, at, &mut acts);
            continue;
        }
        if member.node.is_some_and(|node| node.facts.is_deleting) {
            delete(member, &mut acts, Why::new("NodeDeleted", "its Node is being deleted"));
            acts.stands.insert(at, (MemberState::Gone, None));
            continue;
        }
        let mut draft = Draft::new(member.claim, cluster.now);
        marks(run, cluster, at, &mut draft);
        match starting.get(&at) {
            _ if member.is_in_flight() => {
                proceed(cluster, snapshot, run, at, &mut draft, &mut acts);
            }
            Some(command) => begin(cluster, snapshot, command, at, &mut draft, &mut acts),
            None => tidy(member, &mut draft, &mut acts),
        }
        if !draft.is_empty() {
            let why = Why::new("Marked", "what is true of the claim changed");
            acts.record.extend(draft.actions(Verb::Record, &why));
        }
    }
    replacements(cluster, snapshot, run, &mut acts);
    acts
}

/// Conditions that follow from the objects, and the hash of claims from before its version.
fn marks(run: &Run<'_, '_>, cluster: &Cluster<'_>, at: usize, draft: &mut Draft<'_>) {
    let member = &cluster.members[at];
    let (facts, marks, pool) = (member.facts, &run.marks[at], cluster.pool());
    if facts.consolidatable.is_some() != marks.consolidatable {
        if marks.consolidatable {
            draft.set(condition::CONSOLIDATABLE, "True", condition::CONSOLIDATABLE, "");
        } else {
            draft.unset(condition::CONSOLIDATABLE);
        }
    }
    if facts.drifted.as_ref().map(|mark| mark.reason.as_str()) != marks.drifted.as_deref() {
        match &marks.drifted {
            Some(word) => draft.set(condition::DRIFTED, "True", word, word),
            None => draft.unset(condition::DRIFTED),
        }
    }
    if pool.is_budgeted_expiration() && facts.expired.is_some() != marks.expired {
        if marks.expired {
            draft.set(condition::EXPIRED, "True", condition::EXPIRED, "");
        } else {
            draft.unset(condition::EXPIRED);
        }
    }
    if let Some(event) = marks.pod_event {
        draft.status("lastPodEventTime", crate::condition::instant(event));
    }
    if facts.hash_version.as_deref() != Some(names::HASH_VERSION) && facts.hash.is_some()
        || !pool.is_hashed && facts.hash.is_some()
    {
        draft.annotate(annotation::HASH_VERSION, Some(names::HASH_VERSION));
        if facts.drifted.is_none() {
            draft.annotate(annotation::HASH, Some(&pool.hash));
        }
    }
}

/// Starts a member, or notes that it is about to be.
fn begin<'w>(
    cluster: &Cluster<'w>,
    snapshot: &Snapshot<'_>,
    command: &Command<'_>,
    at: usize,
    draft: &mut Draft<'w>,
    acts: &mut Acts,
) {
    let member = &cluster.members[at];
    let word = command.reason.word();
    if command.is_forced {
        acts.stands.insert(at, (MemberState::Gone, None));
        acts.event_of(member, "DisruptionTerminating", |kind| format!("Disrupting {kind}: {word}"));
        return delete(
            member,
            acts,
            Why::new("Expired", "the claim is older than its expireAfter"),
        );
    }
    if let Err(ripe) = command::is_mature(cluster, command, at) {
        return propose(cluster, command, at, ripe, draft, acts);
    }
    let replacements = command::replacement_names(cluster, snapshot, command);
    let names: Vec<String> = replacements.iter().map(|(name, _, _)| name.clone()).collect();
    let message =
        format!("{word}: {} node(s) go, {} come first", command.members.len(), names.len());
    let why = Why::new(word, message);
    if let Some(node) = member.node.filter(|node| !node.facts.is_tainted) {
        acts.start.push(taint(&node, &why));
    }
    let is_delete = names.is_empty();
    let note = Note { id: command.id.clone(), replacements: names };
    let mut started = Draft::new(member.claim, cluster.now);
    std::mem::swap(&mut started, draft);
    started.annotate(annotation::PROPOSAL, None);
    let note = serde_json::to_string(&note).expect("a note is plain strings");
    started.annotate(annotation::COMMAND, Some(&note));
    started.set(condition::DISRUPTION_REASON, "True", word, word);
    acts.start.extend(started.actions(Verb::Start(Permit::unchecked()), &why));
    acts.stands.insert(at, (MemberState::Moving, None));
    if is_delete {
        acts.event_of(member, "DisruptionTerminating", |kind| format!("Disrupting {kind}: {word}"));
        delete(member, acts, why);
    }
}

/// Notes a consolidation that begins once it has stayed sensible for a while.
fn propose(
    cluster: &Cluster<'_>,
    command: &Command<'_>,
    at: usize,
    ripe: Option<Timestamp>,
    draft: &mut Draft<'_>,
    acts: &mut Acts,
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
        draft.annotate(annotation::PROPOSAL, Some(&format!("{id} {since}")));
        let word = command.reason.word();
        acts.event_of(member, "ConsolidationCandidate", |_| {
            format!("{word}: starts if it still makes sense in {} s", VALIDATION.as_secs())
        });
    }
    let ripe = ripe.or_else(|| cluster.now.checked_add(VALIDATION).ok());
    let hold = HoldReason::Settling { for_secs: VALIDATION.as_secs() };
    acts.stands.insert(at, (MemberState::Waiting, Some((hold, ripe))));
}

/// Goes on with a command that is under way.
fn proceed(
    cluster: &Cluster<'_>,
    snapshot: &Snapshot<'_>,
    run: &Run<'_, '_>,
    at: usize,
    draft: &mut Draft<'_>,
    acts: &mut Acts,
) {
    let member = &cluster.members[at];
    let word = member.facts.disruption_word();
    let hold = match command::progress(cluster, snapshot, run, at) {
        Progress::Ready => {
            acts.event_of(member, "DisruptionTerminating", |kind| {
                format!("Disrupting {kind}: {word}")
            });
            delete(
                member,
                acts,
                Why::new("Replaced", "everything that takes its place is initialized"),
            );
            None
        }
        Progress::Waiting { replacement, until } => {
            let key = member.claim.key().sibling(&names::NODE_CLAIM, "", &replacement);
            acts.event(
                &key,
                EventType::Normal,
                "DisruptionWaitingReadiness",
                "Waiting on readiness to continue disruption".to_owned(),
            );
            let detail = format!("replacement {replacement} is not initialized yet");
            Some((HoldReason::NotAvailable { detail }, until))
        }
        Progress::Foreign { until } => {
            let detail = "disrupted by someone who did not note what it waits for".to_owned();
            Some((HoldReason::NotAvailable { detail }, until))
        }
        Progress::Failed { why } => {
            draft.unset(condition::DISRUPTION_REASON);
            draft.annotate(annotation::COMMAND, None);
            let why = Why::new("RolledBack", format!("{word}: {why}"));
            acts.undo.extend(member.node.and_then(|node| untaint(&node, &why)));
            acts.event_of(member, "ConsolidationRejected", |_| why.message.clone());
            Some((HoldReason::Failed { detail: why.message.clone() }, None))
        }
    };
    acts.stands.insert(at, (MemberState::Moving, hold));
}

/// Takes back what an interrupted start left behind.
fn tidy(member: &Member<'_>, draft: &mut Draft<'_>, acts: &mut Acts) {
    if let Some(node) = member.node.filter(|node| node.facts.is_tainted) {
        let why = Why::new("LeftOver", "no disruption of this node is under way");
        acts.undo.extend(untaint(&node, &why));
    }
    if member.facts.proposal.is_some() {
        draft.annotate(annotation::PROPOSAL, None);
        acts.event_of(member, "ConsolidationRejected", |_| {
            "churn: the node is no longer a candidate".to_owned()
        });
    }
    if member.facts.command.is_some() {
        draft.annotate(annotation::COMMAND, None);
    }
}

/// Creates the replacements of commands whose first member is ours.
fn replacements(
    cluster: &Cluster<'_>,
    snapshot: &Snapshot<'_>,
    run: &Run<'_, '_>,
    acts: &mut Acts,
) {
    for command in &run.commands {
        let Some(first) = command.members.first() else { continue };
        let is_ours = cluster.members[*first].pool == Some(cluster.own);
        if !is_ours || command::is_mature(cluster, command, *first).is_err() {
            continue;
        }
        for (name, fresh, is_missing) in command::replacement_names(cluster, snapshot, command) {
            if !is_missing {
                continue;
            }
            let pool = &cluster.pools[fresh.pool];
            let word = command.reason.word();
            let why = Why::new(
                "Replacement",
                format!("{word}: takes the place of {} node(s)", command.members.len()),
            );
            let fresh = Some(fresh).filter(|fresh| !fresh.offers.is_empty());
            let create = launch::create(pool, &name, fresh, Some(&command.id), why);
            acts.event(
                &create.target.clone(),
                EventType::Normal,
                "DisruptionLaunching",
                format!("Launching NodeClaim: {word}"),
            );
            acts.create.push(create);
        }
    }
}

pub(crate) fn delete(member: &Member<'_>, acts: &mut Acts, why: Why) {
    acts.delete.push(Action::delete(
        Verb::Remove(Permit::unchecked()),
        member.claim,
        Propagation::Background,
        why,
    ));
}

/// Keeps pods away from a node: the reservation before anything is disturbed.
fn taint(node: &Node<'_>, why: &Why) -> Action {
    let mut taints = other_taints(node.object);
    taints.push(json!({"key": DISRUPTED_TAINT, "effect": "NoSchedule"}));
    let patch = json!({"spec": {"taints": taints}});
    Action::patch(Verb::Taint, node.object, patch, why.clone()).concurrently()
}

fn untaint(node: &Node<'_>, why: &Why) -> Option<Action> {
    let patch = json!({"spec": {"taints": other_taints(node.object)}});
    let untaint = || Action::patch(Verb::Untaint, node.object, patch, why.clone()).concurrently();
    node.facts.is_tainted.then(untaint)
}

/// The taints of a node but for ours.
pub(crate) fn other_taints(node: &Object) -> Vec<Value> {
    let taints = node.spec().get("taints").and_then(Value::as_array).into_iter().flatten();
    let is_ours =
        |taint: &&Value| taint.get("key").and_then(Value::as_str) == Some(DISRUPTED_TAINT);
    taints.filter(|taint| !is_ours(taint)).cloned().collect()
}

/// Events about members that have a reason to go and may not, and about closed budgets.
pub(crate) fn blocked(
    cluster: &Cluster<'_>,
    run: &Run<'_, '_>,
    reasons: &[Reason],
    acts: &mut Acts,
) {
    for (at, member) in cluster.own_members() {
        let Some(rejection) = run.rejections[at].as_ref().filter(|_| !member.is_leaving()) else {
            continue;
        };
        if crate::dialect::karpenter::report::reason_to_go(run, at).is_none() {
            continue;
        }
        let sentence = rejection.sentence();
        acts.event_of(member, "DisruptionBlocked", |_| sentence.clone());
    }
    for reason in reasons {
        let is_closed = cluster.own_limits().of(*reason).most == Some(0);
        if is_closed && cluster.count_of_own().total > 0 {
            let word = reason.word();
            let message = format!(
                "No allowed disruptions for disruption reason {word} due to blocking budget"
            );
            acts.event(
                cluster.pool().object.key(),
                EventType::Normal,
                "DisruptionBlocked",
                message,
            );
        }
    }
}
