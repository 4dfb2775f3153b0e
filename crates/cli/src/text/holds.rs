//! What waits and why. Members that wait for the same thing are told together.

use std::collections::BTreeMap;
use std::fmt::Write;

use convoy_plan::{Hold, HoldReason, Step};
use jiff::Timestamp;
use smol_str::SmolStr;

use super::style::{DIM, painted};
use super::words::{count, member, names, plain, plural};
use super::{rollout, time};

/// How many different reasons are told of one rollout.
const REASONS_MAX: usize = 20;

/// Members with the same reason, in the order of the first of them.
struct Together<'s> {
    group: Option<&'s SmolStr>,
    reason: String,
    until: Option<Timestamp>,
    members: Vec<&'s SmolStr>,
    of_rollout: bool,
    waits: bool,
}

pub(super) fn write(text: &mut String, step: &Step, now: Timestamp) {
    let together = together(&step.holds);
    if together.is_empty() {
        return;
    }
    rollout::section(text, "waits");
    for hold in together.iter().take(REASONS_MAX) {
        one(text, hold, step, now);
    }
    if together.len() > REASONS_MAX {
        let rest = &together[REASONS_MAX..];
        let members: usize = rest.iter().map(|hold| hold.members.len()).sum();
        let noun = member(step.dialect, None);
        let more = format!("and {} for other reasons; -o json has them all", count(members, noun));
        let _ = writeln!(text, "    {}", painted(DIM, &more));
    }
}

fn one(text: &mut String, hold: &Together<'_>, step: &Step, now: Timestamp) {
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
            // A group that only says what its members are is not worth its name.
            let group = group.filter(|group| **group != plural(noun));
            group.map_or(members.clone(), |group| format!("{members} of {}", plain(group)))
        }
    };
    let verb = if hold.of_rollout || number == 1 { "waits" } else { "wait" };
    let sentence = match hold.reason.strip_prefix("waits ") {
        Some(rest) => format!("{who} {verb} {rest}"),
        None if hold.waits => format!("{who} {verb}: {}", hold.reason),
        None => format!("{who}: {}", hold.reason),
    };
    let until = hold.until.map(|instant| format!(", until {}", time::at(instant, now)));
    let _ = writeln!(text, "    {sentence}{}", until.unwrap_or_default());
    if number > 1 {
        let _ = writeln!(text, "      {}", painted(DIM, &names(&hold.members)));
    }
}

fn together(holds: &[Hold]) -> Vec<Together<'_>> {
    let mut all: Vec<Together<'_>> = Vec::new();
    let mut places = BTreeMap::new();
    for hold in holds {
        let reason = plain(&hold.reason.to_string());
        let group = hold.group.as_ref();
        let identity = (group, reason.clone(), hold.until, hold.member.is_none());
        let place = *places.entry(identity).or_insert_with(|| {
            all.push(Together {
                group,
                reason,
                until: hold.until,
                members: Vec::new(),
                of_rollout: hold.member.is_none(),
                waits: waits(&hold.reason),
            });
            all.len() - 1
        });
        all[place].members.extend(&hold.member);
    }
    all
}

/// Whether something is still to come; the other reasons say how things are.
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
