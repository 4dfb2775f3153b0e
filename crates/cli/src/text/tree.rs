//! One rollout as a tree: its groups, their batches, and the members that do not move.

use std::collections::BTreeSet;

use convoy_plan::step::BatchReport;
use convoy_plan::{GroupReport, Hold, Step};
use jiff::Timestamp;
use smol_str::SmolStr;

use super::holds::member_sentence;
use super::style::{DIM, icon, of_verdict, painted};
use super::time;
use super::words::{count, member, plain};
use super::{budgets, disruptable, rollout, style};
use crate::rollouts::is_held;

/// How many members of a group a tree names unless all are asked for.
const MEMBERS_MAX: usize = 10;

/// A line, and the lines that belong to it.
#[derive(Debug)]
struct Branch {
    text: String,
    below: Vec<Branch>,
}

/// The tree of `convoy status`. With `all`, every member that is held is named.
pub(crate) fn tree(step: &Step, now: Timestamp, all: bool) -> String {
    let most = if all { usize::MAX } else { MEMBERS_MAX };
    let holds: Vec<&Hold> = step.holds.iter().filter(|hold| is_held(hold)).collect();
    let mut below: Vec<Branch> = Vec::new();
    let whole = holds.iter().filter(|hold| hold.member.is_none() && hold.group.is_none());
    below.extend(whole.map(|hold| leaf(step, hold, now)));
    for group in step.groups.iter().filter(|group| is_shown(group)) {
        let own = |hold: &&&Hold| hold.group.as_deref() == Some(group.name.as_str());
        let own: Vec<&Hold> = holds.iter().filter(own).copied().collect();
        below.push(of_group(step, group, &own, now, most));
    }
    let known =
        |name: &SmolStr| step.groups.iter().any(|it| is_shown(it) && it.name == name.as_str());
    let elsewhere = holds.iter().filter(|hold| match &hold.group {
        Some(group) => !known(group),
        None => hold.member.is_some(),
    });
    let elsewhere: Vec<&Hold> = elsewhere.copied().collect();
    below.extend(members(step, &elsewhere, now, most));
    let budgets = budgets::lines(step, now).into_iter();
    let budgets: Vec<Branch> = budgets.map(|text| Branch { text, below: Vec::new() }).collect();
    if !budgets.is_empty() {
        below.push(Branch { text: "budgets".to_owned(), below: budgets });
    }
    let stay = disruptable::lines(step).into_iter();
    let stay: Vec<Branch> = stay.map(|text| Branch { text, below: Vec::new() }).collect();
    if !stay.is_empty() {
        below.push(Branch { text: disruptable::HEADING.to_owned(), below: stay });
    }
    if let Some(at) = step.wake_at {
        below.push(Branch { text: format!("next check at {}", time::at(at, now)), below: vec![] });
    }
    let sign = painted(of_verdict(step.verdict), icon(step.verdict));
    let root = Branch { text: format!("{sign} {}", rollout::title(step)), below };
    let mut text = String::new();
    write(&mut text, &root, "", "");
    text
}

/// A group without members says nothing, unless its batch was stopped.
fn is_shown(group: &GroupReport) -> bool {
    group.total > 0 || group.batch.as_ref().is_some_and(|batch| batch.stopped)
}

/// The members in flight stand below their batch, and those that wait beside it.
fn of_group(
    step: &Step,
    group: &GroupReport,
    holds: &[&Hold],
    now: Timestamp,
    most: usize,
) -> Branch {
    let in_flight: BTreeSet<&SmolStr> = group.in_flight.iter().collect();
    let (held, waiting): (Vec<&Hold>, Vec<&Hold>) = holds
        .iter()
        .copied()
        .partition(|hold| hold.member.as_ref().is_some_and(|name| in_flight.contains(name)));
    let moving = in_flight_members(step, group, &held, now, most);
    let mut below = Vec::new();
    match &group.batch {
        None => below.extend(moving),
        Some(batch) => below.push(Branch { text: batch_words(batch), below: moving }),
    }
    below.extend(members(step, &waiting, now, most));
    Branch { text: standing(group), below }
}

fn batch_words(batch: &BatchReport) -> String {
    let mut words = format!("batch {} (size {})", batch.number, batch.size);
    if batch.consecutive_failures > 0 {
        let failures = count(batch.consecutive_failures as usize, "consecutive failure");
        words = format!("{words}, {failures}");
    }
    if batch.stopped {
        words = format!("{words}, {}", painted(style::BAD, "stopped"));
    }
    words
}

/// The members in flight by name, those that are held first.
fn in_flight_members(
    step: &Step,
    group: &GroupReport,
    held: &[&Hold],
    now: Timestamp,
    most: usize,
) -> Vec<Branch> {
    let mut shown = members(step, held, now, most);
    let is_held: BTreeSet<&SmolStr> = held.iter().filter_map(|it| it.member.as_ref()).collect();
    let noun = member(step.dialect, Some(&group.name));
    let free = group.in_flight.iter().filter(|name| !is_held.contains(name));
    let left = most.saturating_sub(held.len());
    shown.extend(
        free.take(left).map(|name| Branch {
            text: format!("{noun} {} moves", plain(name)),
            below: Vec::new(),
        }),
    );
    if !group.in_flight.is_empty() && held.len() <= most {
        let all = (group.moving + group.settling) as usize;
        if let Some(more) = all.checked_sub(shown.len()).filter(|more| *more > 0) {
            let text = format!("and {}", count(more, &format!("more {noun}")));
            shown.push(Branch { text: painted(DIM, &text), below: Vec::new() });
        }
    }
    shown
}

/// `production: 3/6 done, 1 moving of at most 3, 2 waiting`.
fn standing(group: &GroupReport) -> String {
    let name = if group.name.is_empty() { "-".to_owned() } else { plain(&group.name) };
    let mut words = vec![format!("{}/{} done", group.done, group.total)];
    let ceiling = group.ceiling.map(|ceiling| format!(" of at most {ceiling}"));
    let moving = format!("{} moving{}", group.moving, ceiling.clone().unwrap_or_default());
    words.extend((group.moving > 0 || ceiling.is_some()).then_some(moving));
    let states = [
        (group.settling, "settling"),
        (group.waiting, if group.outgoing { "to be replaced" } else { "waiting" }),
        (group.failed, "failed"),
        (group.gone, "leaving"),
    ];
    for (number, word) in states.into_iter().filter(|(number, _)| *number > 0) {
        let told = format!("{number} {word}");
        words.push(if word == "failed" { painted(style::BAD, &told) } else { told });
    }
    format!("{name}: {}", words.join(", "))
}

fn members(step: &Step, holds: &[&Hold], now: Timestamp, most: usize) -> Vec<Branch> {
    let mut ordered = holds.to_vec();
    // Whoever needs a person comes first, so that it is not among those left out.
    ordered.sort_by_key(|hold| (hold.member.is_some(), hold.reason.rank()));
    let mut shown: Vec<Branch> =
        ordered.iter().take(most).map(|hold| leaf(step, hold, now)).collect();
    if let Some(more) = ordered.len().checked_sub(most).filter(|more| *more > 0) {
        let noun = format!("more {}", member(step.dialect, None));
        let text = format!("and {}; -o wide names all", count(more, &noun));
        shown.push(Branch { text: painted(DIM, &text), below: Vec::new() });
    }
    shown
}

fn leaf(step: &Step, hold: &Hold, now: Timestamp) -> Branch {
    let told = member_sentence(step, hold);
    let until = hold.until.map(|at| format!(", until {}", time::at(at, now)));
    Branch { text: format!("{told}{}", until.unwrap_or_default()), below: Vec::new() }
}

fn write(text: &mut String, branch: &Branch, first: &str, rest: &str) {
    text.push_str(first);
    text.push_str(&branch.text);
    text.push('\n');
    let last = branch.below.len().saturating_sub(1);
    for (at, below) in branch.below.iter().enumerate() {
        let (sign, space) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        write(text, below, &format!("{rest}{sign}"), &format!("{rest}{space}"));
    }
}
