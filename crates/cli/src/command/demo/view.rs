//! What the demo prints while it runs: a tree that is drawn anew on a terminal, and otherwise a line
//! for everything that changes.

use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use convoy_plan::{Step, Verdict};
use jiff::Timestamp;
use rustix::termios::tcgetwinsize;

use super::rollout::DemoRollout;
use crate::{output, text};

/// Moves up over so many lines, and removes what is below.
fn erase(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\x1b[J") }
}

/// The tree of one rollout, line by line.
#[derive(Debug)]
struct DrawnTree {
    lines: Vec<String>,
    is_done: bool,
}

/// The lines that fit on a screen: of finished rollouts the title alone where there is no room for all,
/// and then less of the longest trees, so that every rollout is seen.
fn fitted(mut trees: Vec<DrawnTree>, rows: usize) -> Vec<String> {
    let total = |trees: &[DrawnTree]| trees.iter().map(|tree| tree.lines.len()).sum::<usize>();
    for at in 0..trees.len() {
        if trees[at].is_done && total(&trees) > rows {
            trees[at].lines.truncate(1);
        }
    }
    while total(&trees) > rows {
        let longest = trees.iter_mut().rev().max_by_key(|tree| tree.lines.len());
        let Some(tree) = longest.filter(|tree| tree.lines.len() > 1) else { break };
        tree.lines.pop();
        if tree.lines.len() > 1 {
            tree.lines.pop();
            tree.lines.push("└─ …".to_owned());
        }
    }
    trees.into_iter().flat_map(|tree| tree.lines).take(rows).collect()
}

/// Long lines are cut by the terminal instead of being wrapped: a line stays one line.
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";

pub(super) struct View {
    is_terminal: bool,
    /// Lines that are on the terminal and will be drawn anew.
    drawn: usize,
    /// What was last said about each rollout.
    said: Vec<String>,
}

impl View {
    pub(super) fn new() -> Self {
        let out = stdout();
        let is_styled = AutoStream::choice(&out) != ColorChoice::Never;
        let is_terminal = out.is_terminal() && is_styled;
        Self { is_terminal, drawn: 0, said: Vec::new() }
    }

    /// A line that stays.
    pub(super) fn say(&mut self, line: &str) -> Result<()> {
        self.settle();
        output::print(&format!("{line}\n"))
    }

    /// The rollouts as they stand, `after` the beginning.
    pub(super) fn show(
        &mut self,
        steps: &[(&DemoRollout, Option<&Step>)],
        after: Duration,
        now: Timestamp,
    ) -> Result<()> {
        if self.is_terminal { self.draw(steps, now) } else { self.tell(steps, after) }
    }

    /// What is on the terminal stays there.
    pub(super) fn settle(&mut self) {
        self.drawn = 0;
    }

    fn draw(&mut self, steps: &[(&DemoRollout, Option<&Step>)], now: Timestamp) -> Result<()> {
        let trees = steps.iter().map(|(rollout, step)| match step {
            Some(step) => {
                let tree = text::tree::tree(step, now, false);
                let lines = tree.lines().map(str::to_owned).collect();
                DrawnTree { lines, is_done: step.verdict == Verdict::Done }
            }
            None => DrawnTree { lines: vec![format!("○ {}", rollout.label())], is_done: false },
        });
        // What does not fit on the screen could not be drawn over.
        let rows = tcgetwinsize(stdout()).map_or(24, |size| usize::from(size.ws_row));
        let lines = fitted(trees.collect(), rows.saturating_sub(1));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (tree, lines) = (output::lines(&lines), lines.len());
        let mut out = stdout().lock();
        let drawn = write!(out, "{}{WRAP_OFF}{tree}{WRAP_ON}", erase(self.drawn));
        drawn.and_then(|()| out.flush()).context("could not write to standard output")?;
        self.drawn = lines;
        Ok(())
    }

    fn tell(&mut self, steps: &[(&DemoRollout, Option<&Step>)], after: Duration) -> Result<()> {
        self.said.resize(steps.len(), String::new());
        for ((rollout, step), said) in steps.iter().zip(&mut self.said) {
            let Some(step) = step else { continue };
            let line = format!("{:<9}  {}", rollout.dialect, text::title(step));
            if *said != line {
                output::print(&format!("{:>3}s  {line}\n", after.as_secs()))?;
                *said = line;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, below: usize, is_done: bool) -> DrawnTree {
        let lines = (0..below).map(|at| format!("├─ {name}-{at}"));
        DrawnTree { lines: std::iter::once(name.to_owned()).chain(lines).collect(), is_done }
    }

    #[test]
    fn finished_rollouts_make_room_and_every_rollout_is_seen() {
        let trees = || vec![tree("a", 3, true), tree("b", 3, true), tree("c", 6, false)];
        let count = |rows: usize| {
            let lines = fitted(trees(), rows);
            let of = |name: &str| lines.iter().filter(|line| line.contains(name)).count();
            (lines.len(), [of("a"), of("b"), of("c")])
        };
        assert_eq!(count(20), (15, [4, 4, 7]), "all fit");
        assert_eq!(count(14), (12, [1, 4, 7]), "the first finished one is enough");
        assert_eq!(count(9), (9, [1, 1, 7]));
        assert_eq!(count(6), (6, [1, 1, 3]), "one of its lines says that there are more");
        assert_eq!(fitted(trees(), 6).last().map(String::as_str), Some("└─ …"));
        assert_eq!(count(3), (3, [1, 1, 1]));
        assert_eq!(count(2), (2, [1, 1, 0]));
    }
}
