//! A rollout as a branch of a tree: where it stands, its groups, and why it waits.

use std::fmt::Write;

use convoy_plan::{GroupReport, Step, Verdict};
use jiff::Timestamp;

use super::holds;
use super::style::{self, DIM, HEADING, painted};
use super::words::{plain, target, verdict};

/// Cells of a bar.
const BAR: u32 = 10;

fn icon(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Done => "✔",
        Verdict::Moving => "▶",
        Verdict::Held => "…",
        Verdict::Paused => "‖",
        Verdict::Stopped => "■",
        Verdict::Invalid => "✘",
    }
}

/// How many members are done, and how many there are.
fn counts(step: &Step) -> (u32, u32) {
    let sum = |count: fn(&GroupReport) -> u32| step.groups.iter().map(count).sum();
    (sum(|group| group.done), sum(|group| group.total))
}

/// A line for the rollout, one for each group that has members, and one for what waits first.
pub(crate) fn branch(text: &mut String, step: &Step, now: Timestamp) {
    let style = style::of_verdict(step.verdict);
    let (done, total) = counts(step);
    let filled = (done * BAR).checked_div(total).unwrap_or(0);
    let bar: String = (0..BAR).map(|cell| if cell < filled { '█' } else { '░' }).collect();
    let _ = writeln!(
        text,
        "{} {:<38}  {:<17}  {} {done}/{total}",
        painted(style, icon(step.verdict)),
        painted(HEADING, &target(&step.rollout)),
        painted(style, verdict(step.verdict)),
        painted(style, &bar),
    );
    let reason = holds::first(step, now).filter(|_| step.verdict != Verdict::Done);
    let groups: Vec<&GroupReport> = step.groups.iter().filter(|group| group.total > 0).collect();
    for (at, group) in groups.iter().enumerate() {
        let is_last = at + 1 == groups.len() && reason.is_none();
        let corner = if is_last { "└" } else { "├" };
        let _ = writeln!(text, "  {} {}", painted(DIM, corner), group_words(group));
    }
    if let Some(reason) = reason {
        let _ = writeln!(text, "  {} {}", painted(DIM, "└"), painted(DIM, &reason));
    }
}

/// `critical 1/2, 1 moving`
fn group_words(group: &GroupReport) -> String {
    let mut words = format!("{} {}/{}", plain(&group.name), group.done, group.total);
    let states = [
        (group.moving, "moving"),
        (group.settling, "settling"),
        (group.waiting, "waiting"),
        (group.failed, "failed"),
        (group.gone, "leaving"),
    ];
    for (number, word) in states.into_iter().filter(|(number, _)| *number > 0) {
        let _ = write!(words, ", {number} {word}");
    }
    words
}

/// `Skyhook gpu-driver: Moving, 1 of 6 done, 2 moving`
pub(crate) fn progress(step: &Step) -> String {
    let (done, total) = counts(step);
    let mut line =
        format!("{}: {}, {done} of {total} done", target(&step.rollout), verdict(step.verdict));
    let sum = |count: fn(&GroupReport) -> u32| step.groups.iter().map(count).sum::<u32>();
    let states = [(sum(|group| group.moving), "moving"), (sum(|group| group.failed), "failed")];
    for (number, word) in states.into_iter().filter(|(number, _)| *number > 0) {
        let _ = write!(line, ", {number} {word}");
    }
    line
}

/// Why each member that waits does so.
pub(crate) fn reasons(step: &Step, now: Timestamp) -> String {
    let mut text = String::new();
    holds::write(&mut text, step, now);
    text
}
