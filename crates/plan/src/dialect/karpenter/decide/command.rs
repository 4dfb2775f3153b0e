//! Commands, from their start to the deletion of their members. What a command is waiting for is noted on the claims it disrupts, so
//! that whoever looks next goes on with it; nothing is kept in memory.

use convoy_api::Object;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::score::Score;
use super::simulate::Replacement;
use crate::dialect::karpenter::names::{NODE_CLAIM, annotation, condition};
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::reason::Reason;
use crate::gate::{self, Permit};
use crate::hash::structure::fingerprint;
use crate::snapshot::Snapshot;

/// One disruption: the members it takes, and the nodes it makes for their pods.
#[derive(Clone, Debug)]
pub(crate) struct Command<'w> {
    pub(crate) reason: Reason,
    /// Budgets do not apply: the claim is simply too old.
    pub(crate) is_forced: bool,
    pub(crate) members: Vec<usize>,
    pub(crate) replacements: Vec<Replacement<'w>>,
    /// The same for the same members, reason and number of replacements.
    pub(crate) id: String,
    /// What the gate gave for it.
    pub(crate) permit: Permit,
    /// How pools with the policy Balanced judge it.
    pub(crate) scores: Vec<Score>,
}

impl<'w> Command<'w> {
    pub(crate) fn new(
        cluster: &Cluster<'w>,
        reason: Reason,
        members: Vec<usize>,
        replacements: Vec<Replacement<'w>>,
        permit: Permit,
    ) -> Self {
        let names: Vec<&str> = members.iter().map(|at| cluster.members[*at].name()).collect();
        let (word, count, names) = (reason.word(), replacements.len(), names.join(","));
        let id = fingerprint(&format!("{word}/{count}/{names}"));
        let scores = Vec::new();
        Self { reason, is_forced: false, members, replacements, id, permit, scores }
    }
}

/// The note on a claim that is being disrupted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) id: String,
    /// Claims that have to be initialized first.
    #[serde(default)]
    pub(crate) replacements: Vec<String>,
}

/// How a command stands, seen from one of its claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A replacement is not initialized yet.
    Waiting { replacement: String, until: Option<Timestamp> },
    /// Everything is there: the claim may go.
    Ready(Permit),
    /// It will not work out; everything is undone.
    Failed { why: String },
    /// Somebody else began it, and did not say what it waits for.
    Foreign { until: Option<Timestamp> },
}

/// How long consolidation has to stay sensible before it begins.
pub(crate) const VALIDATION: SignedDuration = SignedDuration::from_secs(15);

/// How the command that `member` is part of stands; `is_empty` says that no pods have to move.
pub(crate) fn progress(
    cluster: &Cluster<'_>,
    snapshot: &Snapshot<'_>,
    member: &Member<'_>,
    is_empty: bool,
) -> Progress {
    let began = member.facts.disruption.as_ref().and_then(|mark| mark.since);
    let until = began.and_then(|began| began.checked_add(timeout(cluster.in_flight)).ok());
    let is_late = until.is_some_and(|until| until <= cluster.now);
    let Some(note) = note(member) else {
        let word = member.facts.disruption_word();
        if Reason::from_word(word) == Some(Reason::Empty) && is_empty {
            return Progress::ready();
        }
        return if is_late {
            Progress::Failed { why: late(cluster) }
        } else {
            Progress::Foreign { until }
        };
    };
    for name in &note.replacements {
        let replacement = snapshot.find(&NODE_CLAIM, "", name).filter(|claim| !claim.is_deleting());
        let Some(replacement) = replacement else {
            return Progress::Failed { why: format!("replacement {name} is gone") };
        };
        if replacement.condition_status(condition::INITIALIZED) != Some("True") {
            return if is_late {
                Progress::Failed { why: late(cluster) }
            } else {
                Progress::Waiting { replacement: name.clone(), until }
            };
        }
    }
    Progress::ready()
}

fn note(member: &Member<'_>) -> Option<Note> {
    serde_json::from_str(member.facts.command.as_deref()?).ok()
}

/// Whether the command that `member` is part of has made nodes for its pods.
pub(crate) fn has_replacements(member: &Member<'_>) -> bool {
    note(member).is_some_and(|note| !note.replacements.is_empty())
}

impl Progress {
    /// The claim has held its slot since its disruption began: nothing limits its last step.
    fn ready() -> Self {
        Self::Ready(gate::grant(1, &[]).permit().expect("nothing limits the grant"))
    }
}

/// How long a command may take: longer the more there are, within bounds.
///
/// | in flight | timeout | because               |
/// |----------:|---------|-----------------------|
/// |         1 | 10m     | the least             |
/// |     10000 | 13m20s  | 80 ms each            |
/// |     45000 | 1h      | the most              |
fn timeout(in_flight: usize) -> SignedDuration {
    let millis = i64::try_from(in_flight).unwrap_or(i64::MAX).saturating_mul(80);
    SignedDuration::from_millis(millis.clamp(600_000, 3_600_000))
}

fn late(cluster: &Cluster<'_>) -> String {
    format!("took longer than {} minutes", timeout(cluster.in_flight).as_mins())
}

/// Whether a consolidation has been proposed for long enough, and if not, when it will have.
pub(crate) fn is_mature(
    cluster: &Cluster<'_>,
    command: &Command<'_>,
    at: usize,
) -> Result<(), Option<Timestamp>> {
    if !command.reason.is_validated() {
        return Ok(());
    }
    let members: &[usize] = if command.reason == Reason::Empty { &[at] } else { &command.members };
    let mut latest = None;
    for at in members {
        match proposed_at(command, &cluster.members[*at]) {
            None => return Err(None),
            Some(proposed) => latest = latest.max(Some(proposed)),
        }
    }
    let ripe = latest.and_then(|latest| latest.checked_add(VALIDATION).ok());
    if ripe.is_some_and(|ripe| ripe <= cluster.now) { Ok(()) } else { Err(ripe) }
}

/// Since when `member` has carried the proposal of this command.
fn proposed_at(command: &Command<'_>, member: &Member<'_>) -> Option<Timestamp> {
    let (id, since) = member.facts.proposal.as_deref()?.split_once(' ')?;
    (id == proposal_id(command)).then(|| since.parse().ok())?
}

/// The kind of consolidation that a proposal is for, in upstream's words.
pub(crate) fn proposed_kind(proposal: &str) -> &str {
    proposal.split_once(['/', ' ']).map_or(proposal, |(kind, _)| kind)
}

/// The proposal of every node that is empty.
pub(crate) const EMPTY: &str = "empty";

/// Empty nodes are judged one by one; others by the whole command, of which the proposal says
/// whether it takes several nodes.
pub(crate) fn proposal_id(command: &Command<'_>) -> String {
    match command.members.len() {
        _ if command.reason == Reason::Empty => EMPTY.to_owned(),
        1 => format!("single/{}", command.id),
        _ => format!("multi/{}", command.id),
    }
}

/// The names that a command's replacements have, and whether each is to be created.
///
/// Names follow from the command, so that one that was created before is recognised.
pub(crate) fn replacement_names<'f, 'w>(
    cluster: &Cluster<'_>,
    snapshot: &Snapshot<'_>,
    command: &'f Command<'w>,
) -> Vec<(String, &'f Replacement<'w>, bool)> {
    let mut names = Vec::new();
    for (at, replacement) in command.replacements.iter().enumerate() {
        let pool = cluster.pools[replacement.pool].name();
        let short = command.id.get(..8).unwrap_or(&command.id);
        let fits = |claim: &Object| {
            !claim.is_deleting() && claim.annotation(annotation::REPLACES) == Some(&command.id)
        };
        let found = (0..=u8::MAX).map(|attempt| {
            let name = match attempt {
                0 => format!("{pool}-{short}-{at}"),
                attempt => format!("{pool}-{short}-{at}-{attempt}"),
            };
            let claim = snapshot.find(&NODE_CLAIM, "", &name);
            (name, claim)
        });
        let mut usable = found.filter(|(_, claim)| claim.is_none_or(fits));
        if let Some((name, claim)) = usable.next() {
            names.push((name, replacement, claim.is_none()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_commands_may_take_longer() {
        let cases = [
            (1, 600),
            (7_500, 600),
            (10_000, 800),
            (40_000, 3_200),
            (45_000, 3_600),
            (1_000_000, 3_600),
        ];
        for (in_flight, seconds) in cases {
            assert_eq!(timeout(in_flight).as_secs(), seconds, "{in_flight} in flight");
        }
    }

    #[test]
    fn a_proposal_says_what_kind_of_consolidation_it_is_for() {
        let cases = [
            ("empty 2026-01-01T00:00:00Z", "empty"),
            ("single/1a2b 2026-01-01T00:00:00Z", "single"),
            ("multi/1a2b 2026-01-01T00:00:00Z", "multi"),
        ];
        for (proposal, kind) in cases {
            assert_eq!(proposed_kind(proposal), kind);
        }
    }
}
