//! What the demo prints while it runs: a tree that is drawn anew on a terminal, and otherwise a line
//! for everything that changes.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use convoy_plan::Step;
use jiff::Timestamp;
use rustix::termios::tcgetwinsize;

use super::rollout::DemoRollout;
use crate::{output, text};

/// Moves up over so many lines, and removes what is below.
fn erase(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\x1b[J") }
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
        let mut tree = String::new();
        for (rollout, step) in steps {
            match step {
                Some(step) => tree.push_str(&text::tree::tree(step, now, false)),
                None => _ = writeln!(tree, "○ {}", rollout.label()),
            }
        }
        // What does not fit on the screen could not be drawn over.
        let rows = tcgetwinsize(stdout()).map_or(24, |size| usize::from(size.ws_row));
        let lines: Vec<&str> = tree.lines().take(rows.saturating_sub(1)).collect();
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
