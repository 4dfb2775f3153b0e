//! One rollout: a headline, its groups, its actions, its holds and the time of the next check.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use convoy_api::ObjectKey;
use convoy_plan::{Action, GroupReport, Step, Verb};

use super::style::{self, BAD, DIM, HEADING, painted};
use super::table::{Cell, Table};
use super::words::{self, count, names, plain, target};
use super::{holds, time};
use crate::report::Report;

/// Maximum number of groups, and of different actions, printed for one rollout.
const LINES_MAX: usize = 20;

/// Maximum number of different messages of one reason that are printed separately.
const WORDINGS_MAX: usize = 3;

pub(super) fn write(text: &mut String, step: &Step, report: &Report) {
    headline(text, step, report);
    groups(text, &step.groups);
    actions(text, step);
    holds::write(text, step, report.plan.now);
    if let Some(instant) = step.wake_at {
        let when = time::at(instant, report.plan.now);
        let _ = writeln!(text, "  {} {when}", painted(HEADING, "next check at"));
    }
}

fn headline(text: &mut String, step: &Step, report: &Report) {
    let origin = report.manifests.origin(&step.rollout);
    let origin = origin.map(|origin| format!(", {}", plain(&origin.to_string())));
    let aside = format!("({}{})", step.dialect, origin.unwrap_or_default());
    let _ = writeln!(text, "{}  {}", title(step), painted(DIM, &aside));
}

/// `Skyhook tuning: Moving, 12 of 27 done`.
pub(super) fn title(step: &Step) -> String {
    let verdict = painted(style::of_verdict(step.verdict), words::verdict(step.verdict));
    let (done, total) = step.progress();
    let progress = if total > 0 { format!(", {done} of {total} done") } else { String::new() };
    format!("{}: {verdict}{progress}", painted(HEADING, &target(&step.rollout)))
}

fn groups(text: &mut String, groups: &[GroupReport]) {
    if groups.is_empty() {
        return;
    }
    let mut table = Table::new(&headings(groups));
    for group in groups.iter().take(LINES_MAX) {
        table.row(cells(group, groups));
    }
    table.write(text, 2);
    if let Some(more) = groups.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "  {}", painted(DIM, &format!("and {}", count(more, "more group"))));
    }
}

type Column = (&'static str, fn(&GroupReport) -> u32, anstyle::Style);

/// The member states that have a column. `moving`, `waiting` and `failed` are always shown, the
/// others if any group has members in them.
const STATES: [Column; 5] = [
    ("moving", |group| group.moving, style::BUSY),
    ("settling", |group| group.settling, style::BUSY),
    ("waiting", |group| group.waiting, anstyle::Style::new()),
    ("failed", |group| group.failed, BAD),
    ("leaving", |group| group.gone, anstyle::Style::new()),
];

fn columns(groups: &[GroupReport]) -> impl Iterator<Item = &'static Column> {
    STATES.iter().filter(|(name, number, _)| {
        matches!(*name, "moving" | "waiting" | "failed") || groups.iter().any(|g| number(g) > 0)
    })
}

fn headings(groups: &[GroupReport]) -> Vec<Cell> {
    let mut cells = vec![Cell::heading("group"), Cell::heading("done").right()];
    cells.extend(columns(groups).map(|(name, _, _)| Cell::heading(name).right()));
    if groups.iter().any(|group| group.ceiling.is_some()) {
        cells.push(Cell::heading("ceiling").right());
    }
    if groups.iter().any(|group| group.batch.is_some()) {
        cells.push(Cell::heading("batch"));
    }
    cells
}

fn cells(group: &GroupReport, groups: &[GroupReport]) -> Vec<Cell> {
    let name = if group.name.is_empty() { "-".to_owned() } else { plain(&group.name) };
    let done_style = if group.done == group.total { style::GOOD } else { anstyle::Style::new() };
    let done = Cell::new(format!("{}/{}", group.done, group.total)).styled(done_style);
    let mut cells = vec![Cell::new(name), done.right()];
    for (_, number, style) in columns(groups) {
        let number = number(group);
        let style = if number > 0 { *style } else { DIM };
        cells.push(Cell::new(number.to_string()).styled(style).right());
    }
    if groups.iter().any(|group| group.ceiling.is_some()) {
        let ceiling = group.ceiling.map_or_else(|| "-".to_owned(), |ceiling| ceiling.to_string());
        cells.push(Cell::new(ceiling).right());
    }
    if let Some(batch) = &group.batch {
        let mut words = format!("{} (size {})", batch.number, batch.size);
        if batch.consecutive_failures > 0 {
            let failures = count(batch.consecutive_failures as usize, "consecutive failure");
            let _ = write!(words, ", {failures}");
        }
        if batch.stopped {
            words.push_str(", stopped");
        }
        cells.push(Cell::new(words).styled(if batch.stopped {
            BAD
        } else {
            anstyle::Style::new()
        }));
    }
    cells
}

/// One line of output: the actions with the same verb, kind and reason.
struct ActionLine<'s> {
    first: &'s Action,
    targets: Vec<&'s ObjectKey>,
    /// Whether all of them have the same message.
    alike: bool,
}

fn actions(text: &mut String, step: &Step) {
    if step.actions.is_empty() && step.status.is_none() {
        return;
    }
    style::section(text, "actions");
    let mut lines = lines(&step.actions);
    // Bookkeeping comes last: readers look for the members that move.
    lines.sort_by_key(|group| group.first.verb == Verb::Record);
    let mut table = Table::new(&[]);
    for group in lines.iter().take(LINES_MAX) {
        table.row(action_cells(group));
    }
    if step.status.is_some() {
        let cells = [Cell::new("Status").styled(style::BUSY), Cell::new(target(&step.rollout))];
        table.row(cells.into());
    }
    table.write(text, 4);
    let rest = lines.iter().skip(LINES_MAX).map(|group| group.targets.len());
    match rest.sum::<usize>() {
        0 => {}
        more => {
            let more = format!("and {}; -o json lists all", count(more, "more action"));
            let _ = writeln!(text, "    {}", painted(DIM, &more));
        }
    }
}

fn action_cells(group: &ActionLine<'_>) -> Vec<Cell> {
    let targets = match group.targets.as_slice() {
        [only] => target(only),
        many => {
            let kinds = words::plural(&plain(&group.first.target.kind.kind));
            let short: Vec<String> = many.iter().map(|key| short(key)).collect();
            format!("{kinds} {}", names(&short))
        }
    };
    let more = if group.alike { "" } else { ", and so on" };
    let sentence = format!("{targets}: {}{more}", plain(&group.first.why.message));
    let verb_style = if group.first.verb == Verb::Record { DIM } else { style::BUSY };
    vec![Cell::new(verb(group.first)).styled(verb_style), Cell::new(sentence)]
}

/// Groups actions by verb, kind and message, in the order of the first of each group. If a reason
/// has many different messages, as it does when each names its member, its actions share one line.
fn lines(actions: &[Action]) -> Vec<ActionLine<'_>> {
    let reason = |action: &Action| (action.verb, action.target.kind.clone(), action.why.reason);
    let mut words: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for action in actions {
        words.entry(reason(action)).or_default().insert(&action.why.message);
    }
    let mut all: Vec<ActionLine<'_>> = Vec::new();
    let mut indices = BTreeMap::new();
    for action in actions {
        let reason = reason(action);
        let differ = words.get(&reason).is_some_and(|words| words.len() > WORDINGS_MAX);
        let words = if differ { "" } else { action.why.message.as_str() };
        let index = *indices.entry((reason, words)).or_insert_with(|| {
            all.push(ActionLine { first: action, targets: Vec::new(), alike: true });
            all.len() - 1
        });
        let group = &mut all[index];
        group.alike &= group.first.why.message == action.why.message;
        if group.targets.last() != Some(&&action.target) {
            group.targets.push(&action.target); // an object that is written twice is named once
        }
    }
    all
}

/// The name without the kind, which is printed before the list.
fn short(key: &ObjectKey) -> String {
    let whole = target(key);
    let prefix = format!("{} ", plain(&key.kind.kind));
    whole.strip_prefix(&prefix).map_or(whole.clone(), str::to_owned)
}

fn verb(action: &Action) -> String {
    match action.verb {
        Verb::RollBack => "Roll back".to_owned(),
        verb => <&str>::from(verb).to_owned(),
    }
}
