//! The holds of a rollout. Members with the same reason share a line.

use std::collections::BTreeMap;
use std::fmt::Write;

use convoy_plan::{Hold, HoldReason, Step};
use jiff::Timestamp;
use smol_str::SmolStr;

use super::style::{DIM, painted, section};
use super::time;
use super::words::{count, member, names, plain, plural};

/// Maximum number of different reasons printed for one rollout.
const REASONS_MAX: usize = 20;

/// Who is held: members of a group or of none; without members, the group or the rollout itself.
#[derive(Clone, Debug)]
pub(super) struct Held<'s> {
    pub(super) group: Option<&'s SmolStr>,
    pub(super) members: Vec<&'s SmolStr>,
}

/// One line of output: the members with the same reason, in the order of the first of them.
struct HoldLine<'s> {
    held: Held<'s>,
    reason: &'s HoldReason,
    until: Option<Timestamp>,
}

pub(super) fn write(text: &mut String, step: &Step, now: Timestamp) {
    let lines = lines(&step.holds);
    if lines.is_empty() {
        return;
    }
    section(text, "holds");
    for hold in lines.iter().take(REASONS_MAX) {
        let until = hold.until.map(|instant| format!(", until {}", time::at(instant, now)));
        let sentence = sentence(step.dialect, &hold.held, hold.reason);
        let _ = writeln!(text, "    {sentence}{}", until.unwrap_or_default());
        if hold.held.members.len() > 1 {
            let _ = writeln!(text, "      {}", painted(DIM, &names(&hold.held.members)));
        }
    }
    if lines.len() > REASONS_MAX {
        let rest = &lines[REASONS_MAX..];
        let members: usize = rest.iter().map(|hold| hold.held.members.len()).sum();
        let noun = member(step.dialect, None);
        let more = format!("and {} for other reasons; -o json lists all", count(members, noun));
        let _ = writeln!(text, "    {}", painted(DIM, &more));
    }
}

/// The subject of holds that name neither a member nor a group.
const ROLLOUT: &str = "the rollout";

/// `5 nodes in production wait: batch 1 is full (size 1)`.
pub(super) fn sentence(dialect: &str, held: &Held<'_>, reason: &HoldReason) -> String {
    let noun = member(dialect, held.group.map(SmolStr::as_str));
    let who = match (held.members.as_slice(), held.group) {
        ([], None) => ROLLOUT.to_owned(),
        ([], Some(group)) => plain(group),
        (members, group) => {
            let members = match members {
                [only] => format!("{noun} {}", plain(only)),
                many => count(many.len(), noun),
            };
            // A group that is named after its kind of members adds nothing.
            let group = group.filter(|group| **group != plural(noun));
            group.map_or(members.clone(), |group| format!("{members} in {}", plain(group)))
        }
    };
    told(&who, held.members.len() > 1, reason)
}

/// `node n7 waits: batch 1 is full (size 1)`, where the group is told elsewhere.
#[cfg(feature = "server")]
pub(super) fn member_sentence(step: &Step, hold: &Hold) -> String {
    let group = hold.group.as_ref();
    let who = match (&hold.member, group) {
        (Some(name), group) => {
            let noun = member(step.dialect, group.map(SmolStr::as_str));
            format!("{noun} {}", plain(name))
        }
        (None, Some(_)) => "the group".to_owned(),
        (None, None) => ROLLOUT.to_owned(),
    };
    told(&who, false, &hold.reason)
}

fn told(who: &str, are_many: bool, reason: &HoldReason) -> String {
    let verb = if are_many { "wait" } else { "waits" };
    // Of members it says why they are left out; of a rollout, that it has none.
    let words = match reason {
        HoldReason::NotSelected { detail } if who == ROLLOUT => plain(detail),
        _ => plain(&reason.to_string()),
    };
    match words.strip_prefix("waits ") {
        Some(rest) => format!("{who} {verb} {rest}"),
        None if waits(reason) => format!("{who} {verb}: {words}"),
        None => format!("{who}: {words}"),
    }
}

fn lines(holds: &[Hold]) -> Vec<HoldLine<'_>> {
    let mut all: Vec<HoldLine<'_>> = Vec::new();
    let mut indices = BTreeMap::new();
    for Hold { member, group, reason, until } in holds {
        let group = group.as_ref();
        let identity = (group, plain(&reason.to_string()), *until, member.is_none());
        let index = *indices.entry(identity).or_insert_with(|| {
            let held = Held { group, members: Vec::new() };
            all.push(HoldLine { held, reason, until: *until });
            all.len() - 1
        });
        all[index].held.members.extend(member);
    }
    all
}

/// Whether the member waits for a change; the other reasons describe a state.
fn waits(reason: &HoldReason) -> bool {
    !matches!(
        reason,
        HoldReason::NoReason
            | HoldReason::Failed { .. }
            | HoldReason::Invalid { .. }
            | HoldReason::Stalled { .. }
            | HoldReason::FailureStop { .. }
            | HoldReason::NotSelected { .. }
            | HoldReason::Ignored { .. }
            | HoldReason::Paused
            | HoldReason::Disabled
    )
}
