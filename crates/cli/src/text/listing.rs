//! Rollouts, a line each.

use convoy_plan::explanation::{self, Cause};
use convoy_plan::{Step, Verdict, World};
use jiff::Timestamp;

use super::holds::{Held, sentence};
use super::style;
use super::table::{Cell, Table};
use super::time;
use super::words::{plain, verdict};
use crate::rollouts;

/// How much of a reason a table shows.
const REASON_CHARS_MAX: usize = 64;

/// What a listing shows beside the rollouts themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    pub(crate) namespace: bool,
    pub(crate) wide: bool,
}

/// The table of `convoy get`.
pub(crate) fn table(steps: &[&Step], world: &World, now: Timestamp, columns: Columns) -> String {
    let mut headings = Vec::new();
    headings.extend(columns.namespace.then_some("NAMESPACE"));
    headings.extend([
        "NAME",
        "STATUS",
        "PROGRESS",
        "BATCH",
        "IN FLIGHT",
        "FAILED",
        "REASON",
        "AGE",
    ]);
    headings.extend(columns.wide.then_some(["DIALECT", "NEXT CHECK"]).into_iter().flatten());
    let headings: Vec<Cell> = headings.into_iter().map(Cell::heading).collect();
    let mut table = Table::new(&headings);
    for step in steps {
        table.row(cells(step, world, now, columns));
    }
    let mut text = String::new();
    table.write(&mut text, 0);
    text
}

fn cells(step: &Step, world: &World, now: Timestamp, columns: Columns) -> Vec<Cell> {
    let key = &step.rollout;
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let (done, total) = step.progress();
    let progress = if total > 0 { format!("{done}/{total}") } else { "-".to_owned() };
    let failed = rollouts::failed(step);
    let reason = reason(step).unwrap_or_default();
    let reason = if columns.wide { reason } else { cut(&reason) };
    let created = world.get(key).and_then(convoy_api::Object::created_at);
    let age = created.map_or("-".to_owned(), |since| time::age(since, now));
    let mut cells = Vec::new();
    cells.extend(columns.namespace.then(|| Cell::new(or_none(plain(&key.namespace)))));
    let name = format!("{}/{}", key.kind.kind.to_lowercase(), key.name);
    cells.push(Cell::new(plain(&name)));
    cells.push(Cell::new(verdict(step.verdict)).styled(style::of_verdict(step.verdict)));
    cells.push(Cell::new(progress));
    cells.push(Cell::new(or_none(rollouts::batch(step).unwrap_or_default())));
    cells.push(Cell::new(rollouts::in_flight(step).to_string()));
    let failed_style = if failed > 0 { style::BAD } else { anstyle::Style::new() };
    cells.push(Cell::new(failed.to_string()).styled(failed_style));
    cells.push(Cell::new(or_none(reason)));
    cells.push(Cell::new(age));
    if columns.wide {
        let next = step.wake_at.map_or("-".to_owned(), |at| time::at(at, now));
        cells.extend([Cell::new(step.dialect), Cell::new(next)]);
    }
    cells
}

/// What holds a rollout most, in one sentence; none if nothing does. Of one that is done, only what
/// is about all of it: that it is paused, or that it selects nothing.
pub(crate) fn reason(step: &Step) -> Option<String> {
    let is_done = step.verdict == Verdict::Done;
    let causes = explanation::of_rollout(std::slice::from_ref(step), step);
    // Members that stay as they are on purpose say nothing about the rollout.
    let matters = |cause: &Cause<'_>| {
        let is_whole = cause.members.is_empty() && cause.group.is_none();
        cause.reason.is_some_and(|reason| is_whole || !is_done && reason.rank() < 3)
    };
    let Cause { group, members, reason, .. } = causes.into_iter().find(matters)?;
    let words = reason?;
    if members.is_empty() && group.is_none() {
        return Some(plain(&words.to_string()));
    }
    Some(sentence(step.dialect, &Held { group, members }, words))
}

fn cut(text: &str) -> String {
    if text.chars().count() <= REASON_CHARS_MAX {
        return text.to_owned();
    }
    let shown: String = text.chars().take(REASON_CHARS_MAX - 1).collect();
    format!("{}…", shown.trim_end())
}

#[cfg(test)]
mod tests {
    use convoy_plan::{Hold, HoldReason};
    use convoy_testkit::apps;

    use super::*;

    #[test]
    fn a_rollout_that_is_done_tells_what_is_about_all_of_it() {
        let mut step = Step::new("apps", &apps::deployment(1, "web:1").build(), Verdict::Done);
        let waits = HoldReason::Depends { on: "a node".to_owned() };
        step.holds.push(Hold::of_member("web-1", waits));
        assert_eq!(reason(&step), None, "members stay as they are on purpose");
        step.holds.push(Hold::of_rollout(HoldReason::Paused));
        assert_eq!(reason(&step), Some(HoldReason::Paused.to_string()));
    }
}
