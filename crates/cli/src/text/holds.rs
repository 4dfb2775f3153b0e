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

/// One line of output: the members with the same reason, in the order of the first of them.
struct HoldLine<'s> {
    group: Option<&'s SmolStr>,
    reason: String,
    until: Option<Timestamp>,
    members: Vec<&'s SmolStr>,
    of_rollout: bool,
    waits: bool,
}

pub(super) fn write(text: &mut String, step: &Step, now: Timestamp) {
    let lines = lines(&step.holds);
    if lines.is_empty() {
        return;
    }
    section(text, "holds");
    for hold in lines.iter().take(REASONS_MAX) {
        one(text, hold, step, now);
    }
    if lines.len() > REASONS_MAX {
        let rest = &lines[REASONS_MAX..];
        let members: usize = rest.iter().map(|hold| hold.members.len()).sum();
        let noun = member(step.dialect, None);
        let more = format!("and {} for other reasons; -o json lists all", count(members, noun));
        let _ = writeln!(text, "    {}", painted(DIM, &more));
    }
}

/// Why the first member that waits does so, in a sentence.
pub(super) fn first(step: &Step, now: Timestamp) -> Option<String> {
    let waiting = lines(&step.holds).into_iter().find(|hold| hold.waits);
    waiting.map(|hold| sentence(&hold, step, now))
}

fn one(text: &mut String, hold: &HoldLine<'_>, step: &Step, now: Timestamp) {
    let _ = writeln!(text, "    {}", sentence(hold, step, now));
    if hold.members.len() > 1 {
        let _ = writeln!(text, "      {}", painted(DIM, &names(&hold.members)));
    }
}

fn sentence(hold: &HoldLine<'_>, step: &Step, now: Timestamp) -> String {
    let noun = member(step.dialect, hold.group.map(SmolStr::as_str));
    let number = hold.members.len();
    let who = match (hold.of_rollout, hold.group) {
        (true, None) => "the rollout".to_owned(),
        (true, Some(group)) => plain(group),
        (false, group) => {
            let members = match hold.members.as_slice() {
                [only] => format!("{noun} {}", plain(only)),
                many => count(many.len(), noun),
            };
            // A group that is named after its kind of members adds nothing.
            let group = group.filter(|group| **group != plural(noun));
            group.map_or(members.clone(), |group| format!("{members} in {}", plain(group)))
        }
    };
    let verb = if hold.of_rollout || number == 1 { "waits" } else { "wait" };
    let sentence = match hold.reason.strip_prefix("waits ") {
        Some(rest) => format!("{who} {verb} {rest}"),
        None if hold.waits => format!("{who} {verb}: {}", hold.reason),
        None => format!("{who}: {}", hold.reason),
    };
    let until = hold.until.map(|instant| format!(", until {}", time::at(instant, now)));
    format!("{sentence}{}", until.unwrap_or_default())
}

fn lines(holds: &[Hold]) -> Vec<HoldLine<'_>> {
    let mut all: Vec<HoldLine<'_>> = Vec::new();
    let mut indices = BTreeMap::new();
    for hold in holds {
        let reason = plain(&hold.reason.to_string());
        let group = hold.group.as_ref();
        let identity = (group, reason.clone(), hold.until, hold.member.is_none());
        let index = *indices.entry(identity).or_insert_with(|| {
            all.push(HoldLine {
                group,
                reason,
                until: hold.until,
                members: Vec::new(),
                of_rollout: hold.member.is_none(),
                waits: waits(&hold.reason),
            });
            all.len() - 1
        });
        all[index].members.extend(&hold.member);
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
