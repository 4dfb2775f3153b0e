//! The JSON reader: splits a file into documents, and lists into objects.

mod scan;
mod tree;

use std::ops::Range;

use serde_json::Value;

use super::yaml;
use super::{DEPTH_MAX, Limits, Sink, complete_item, is_list_kind};
use scan::{Extent, SyntaxError};

/// How deep lists may stand within lists; each level is looked over once more.
const LIST_DEPTH_MAX: usize = 10;

/// Whether a text begins as JSON does and YAML rarely: a bracket, then a quote or a bracket.
pub(super) fn looks_like_json(text: &str) -> bool {
    let mut visible = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    match (visible.next(), visible.next()) {
        (Some(b'{'), Some(second)) => matches!(second, b'"' | b'}'),
        (Some(b'['), Some(second)) => matches!(second, b'{' | b'[' | b']' | b'"'),
        _ => false,
    }
}

/// Reads all documents of `text`. In a file named as YAML, a document that is not JSON makes
/// the rest of it YAML, which allows much of the same with brackets.
pub(super) fn read(text: &str, limits: Limits, sink: &mut Sink<'_>) {
    let is_yaml = sink.file.ends_with(".yaml") || sink.file.ends_with(".yml");
    let mut reader =
        Reader { text, cursor: Cursor::default(), objects: Vec::new(), wrong: Vec::new() };
    let mut at = scan::skip_space(text.as_bytes(), 0);
    while at < text.len() {
        let start = at;
        let (line, _) = reader.cursor.position(text, start);
        if text[start..].starts_with("---") {
            return yaml::read(&text[start..], line - 1, limits, sink);
        }
        let end = reader.document(start, &mut sink.values_left);
        if is_yaml && !reader.wrong.is_empty() {
            return yaml::read(&text[start..], line - 1, limits, sink);
        }
        reader.flush(sink);
        match end {
            Some(end) => at = scan::skip_space(text.as_bytes(), end),
            None => return,
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    cursor: Cursor,
    /// Of the document being read, with their lines and columns.
    objects: Vec<((usize, usize), Value)>,
    /// Errors in the document being read: line, column, message.
    wrong: Vec<(usize, usize, String)>,
}

/// The list that contains an item.
#[derive(Clone, Copy)]
struct Parent<'t> {
    kind: &'t str,
    version: Option<&'t str>,
    level: usize,
}

impl<'t> Reader<'t> {
    /// Reads the document at `start`; where it ends, or nothing if the rest makes no sense.
    fn document(&mut self, start: usize, values_left: &mut usize) -> Option<usize> {
        match scan::value(self.text.as_bytes(), start) {
            Ok(extent) => {
                let goes_on = self.text[start..].starts_with(['{', '[']);
                let end = extent.range.end;
                self.value(extent, None, values_left);
                goes_on.then_some(end)
            }
            Err(error) => {
                self.syntax_error(&error);
                None
            }
        }
    }

    /// One object, or a list of them.
    fn value(&mut self, extent: Extent, parent: Option<Parent<'_>>, values_left: &mut usize) {
        let level = parent.map_or(0, |parent| parent.level + 1);
        match self.list(extent.range.clone()) {
            Ok(Some(_)) if level >= LIST_DEPTH_MAX => {
                let message = format!("lists are nested deeper than {LIST_DEPTH_MAX} levels");
                self.wrong_at(extent.range.start, message);
            }
            Ok(Some((parent, items))) => {
                for item in items {
                    self.value(item, Some(Parent { level, ..parent }), values_left);
                }
            }
            Ok(None) if extent.depth > DEPTH_MAX => {
                let message = format!("nested deeper than {DEPTH_MAX} levels");
                self.wrong_at(extent.range.start, message);
            }
            Ok(None) => self.object(extent.range, parent, values_left),
            Err(error) => self.syntax_error(&error),
        }
    }

    /// The items, if the value at `range` is a list of objects.
    fn list(&self, range: Range<usize>) -> Result<Option<(Parent<'t>, Vec<Extent>)>, SyntaxError> {
        let text = self.text.as_bytes();
        if text[range.start] != b'{' || text[range.end - 1] != b'}' {
            return Ok(None);
        }
        let members = scan::members(text, range)?;
        let member = |name: &str| {
            let named = members.iter().find(|(key, _)| self.text[key.clone()] == *name);
            named.map(|(_, value)| value.range.clone())
        };
        let kind = member(r#""kind""#).and_then(|range| self.plain_string(range));
        let items = member(r#""items""#).filter(|range| text[range.start] == b'[');
        match (kind, items) {
            (Some(kind), Some(items)) if is_list_kind(kind) => {
                self.check_beside_items(&members, &items)?;
                let version = member(r#""apiVersion""#).and_then(|range| self.plain_string(range));
                Ok(Some((Parent { kind, version, level: 0 }, scan::items(text, items)?)))
            }
            _ => Ok(None),
        }
    }

    /// The other fields of a list are not used, but must be valid JSON.
    fn check_beside_items(
        &self,
        members: &[(Range<usize>, Extent)],
        items: &Range<usize>,
    ) -> Result<(), SyntaxError> {
        for (_, value) in members.iter().filter(|(_, value)| value.range != *items) {
            let text = &self.text[value.range.clone()];
            if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
                return Err(SyntaxError { at: value.range.start, message: "invalid JSON value" });
            }
        }
        Ok(())
    }

    /// The content of a string without escapes, which kinds and versions do not need.
    fn plain_string(&self, range: Range<usize>) -> Option<&'t str> {
        let text = self.text[range].strip_prefix('"')?.strip_suffix('"')?;
        (!text.contains('\\')).then_some(text)
    }

    fn object(&mut self, range: Range<usize>, parent: Option<Parent<'_>>, left: &mut usize) {
        let (line, column) = self.cursor.position(self.text, range.start);
        match tree::parse(&self.text[range], left) {
            Ok(mut value) => {
                if let Some(parent) = parent {
                    complete_item(parent.kind, parent.version, &mut value);
                }
                self.objects.push(((line, column), value));
            }
            Err(error) => {
                // The parser counts from the start of the object.
                let indent = if error.line() <= 1 { column - 1 } else { 0 };
                let line = line + error.line().saturating_sub(1);
                let message = without_location(&error);
                self.wrong.push((line, error.column().max(1) + indent, message));
            }
        }
    }

    fn syntax_error(&mut self, error: &SyntaxError) {
        self.wrong_at(error.at, error.message.to_owned());
    }

    fn wrong_at(&mut self, at: usize, message: String) {
        let (line, column) = self.cursor.position(self.text, at);
        self.wrong.push((line, column, message));
    }

    fn flush(&mut self, sink: &mut Sink<'_>) {
        for (position, value) in self.objects.drain(..) {
            sink.object(position, value);
        }
        for (line, column, message) in self.wrong.drain(..) {
            sink.problem(line, column, message);
        }
    }
}

/// The parser's message without the location, which is reported separately.
fn without_location(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let location = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&location).map_or(text.clone(), str::to_owned)
}

/// Finds lines and columns of offsets that mostly grow, without counting from the start
/// every time.
#[derive(Default)]
struct Cursor {
    at: usize,
    /// Complete lines before `at`.
    lines: usize,
    /// Where the line of `at` begins.
    line_start: usize,
}

impl Cursor {
    /// Line and column of `at`, both from 1.
    fn position(&mut self, text: &str, at: usize) -> (usize, usize) {
        if at < self.at {
            *self = Self::default();
        }
        let between = &text.as_bytes()[self.at..at];
        self.lines += memchr::memchr_iter(b'\n', between).count();
        if let Some(newline) = memchr::memrchr(b'\n', between) {
            self.line_start = self.at + newline + 1;
        }
        self.at = at;
        (self.lines + 1, at - self.line_start + 1)
    }
}
