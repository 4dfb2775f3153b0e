//! The styles of text output. They are always written, and stripped for non-terminals.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use convoy_plan::Verdict;

pub(super) const HEADING: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BUSY: Style = AnsiColor::Cyan.on_default();
pub(super) const CAREFUL: Style = AnsiColor::Yellow.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();

/// `text` in a style.
pub(super) fn painted(style: Style, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
}

pub(super) fn of_verdict(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Done => GOOD,
        Verdict::Moving => BUSY,
        Verdict::Held | Verdict::Paused => CAREFUL,
        Verdict::Stopped | Verdict::Invalid => BAD,
    }
}

/// A sign that repeats a verdict, for eyes that skim.
#[cfg(feature = "server")]
pub(super) fn icon(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Done => "✔",
        Verdict::Moving => "◌",
        Verdict::Held => "…",
        Verdict::Paused => "॥",
        Verdict::Stopped => "✖",
        Verdict::Invalid => "⚠",
    }
}

/// The heading of a part of a rollout.
pub(super) fn section(text: &mut String, name: &str) {
    let _ = writeln!(text, "  {}", painted(HEADING, name));
}
