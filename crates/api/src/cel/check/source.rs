//! Where in its text an expression stands, and what is told about that place.

use std::fmt::Write;

use cel::IdedExpr;
use cel::common::ast::{Expr, SourceInfo};

/// A text, and the mistakes found in it.
pub(super) struct Source {
    info: SourceInfo,
    /// By their place, a byte of the text.
    mistakes: Vec<(usize, String)>,
}

impl Source {
    pub(super) fn new(info: SourceInfo) -> Self {
        Self { info, mistakes: Vec::new() }
    }

    pub(super) fn is_sound(&self) -> bool {
        self.mistakes.is_empty()
    }

    fn start(&self, id: u64) -> usize {
        self.info.offset_for(id).map_or(0, |(start, _)| start as usize)
    }

    /// Where an expression is said to be: of a call, at the parenthesis that opens its arguments.
    pub(super) fn place(&self, expr: &IdedExpr) -> usize {
        let start = self.start(expr.id);
        let name = match &expr.expr {
            Expr::Call(call) if call.target.is_none() => call.func_name.as_str(),
            Expr::Select(select) if select.test => "has",
            _ => return start,
        };
        let rest = self.info.source.get(start..).unwrap_or_default();
        match rest.strip_prefix(name).and_then(|rest| rest.find('(')) {
            Some(gap) => start + name.len() + gap,
            None => start,
        }
    }

    pub(super) fn tell(&mut self, id: u64, message: &str) {
        self.tell_at(self.start(id), message);
    }

    pub(super) fn tell_at(&mut self, place: usize, message: &str) {
        self.mistakes.push((place, message.to_owned()));
    }

    /// Everything that was told, in the order of the text; none if nothing was.
    pub(super) fn told(mut self) -> Option<String> {
        if self.mistakes.is_empty() {
            return None;
        }
        self.mistakes.sort_by_key(|(place, _)| *place);
        let shown = self.mistakes.iter().map(|(place, message)| self.shown(*place, message));
        Some(shown.collect::<Vec<_>>().join("\n"))
    }

    fn shown(&self, place: usize, message: &str) -> String {
        let source = &self.info.source;
        let before = source.get(..place).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let begins = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before[begins..].chars().count() + 1;
        let text = source[begins..].lines().next().unwrap_or_default();
        let mut out = format!("ERROR: <input>:{line}:{column}: {message}\n | {text}\n | ");
        out.extend(std::iter::repeat_n('.', column - 1));
        write!(out, "^").expect("writing to a string does not fail");
        out
    }
}
