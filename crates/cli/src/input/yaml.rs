//! The YAML reader: splits a file into documents, and lists into objects.

mod scalar;
mod tree;

use std::collections::BTreeMap;

use serde_json::Value;
use serde_saphyr::granit_parser::{self, ErrorKind, Event, Parser, ScanError, StrInput};

use super::{DEPTH_MAX, Limits, Sink, complete_item, is_list_kind};
use tree::Tree;

/// Reads all documents of `text`, which has `lines_before` lines before it in its file. A
/// document that cannot be read is reported and skipped.
pub(super) fn read(text: &str, lines_before: usize, limits: Limits, sink: &mut Sink<'_>) {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { parser, lines_before, copied: 0, limits, sink };
    while reader.document() {}
}

struct Reader<'t, 's, 'b> {
    parser: Parser<'t, StrInput<'t>>,
    lines_before: usize,
    /// Bytes that aliases have copied, in all documents together.
    copied: usize,
    limits: Limits,
    sink: &'s mut Sink<'b>,
}

impl Reader<'_, '_, '_> {
    /// Reads one document; whether there may be another.
    fn document(&mut self) -> bool {
        let mut tree = Tree::after(self.copied);
        loop {
            let (event, span) = match self.parser.next_event() {
                None | Some(Ok((Event::StreamEnd, _))) => return false,
                Some(Ok((Event::DocumentEnd, _))) => break,
                Some(Ok(next)) => next,
                Some(Err(error)) => {
                    self.syntax(&error);
                    return self.skip();
                }
            };
            let (line, column) = (span.start.line(), span.start.col() + 1);
            if tree.is_alias_over(&event, self.limits.alias_bytes) {
                self.wrong(line, column, "YAML aliases expand beyond the size limit");
                return self.skip();
            }
            if let Err(error) = tree.event(event, &span) {
                self.wrong(line, column, &error.0);
                return self.skip();
            }
            if tree.copied > self.limits.alias_bytes {
                self.wrong(line, column, "YAML anchors exceed the size limit");
                return self.skip();
            }
            if tree.values > self.sink.values_left {
                self.wrong(line, column, "too many values in one file");
                return false;
            }
        }
        self.copied = tree.copied;
        self.sink.values_left -= tree.values;
        let starts = Starts {
            root: tree.start,
            items: std::mem::take(&mut tree.item_starts),
            lines_before: self.lines_before,
        };
        match tree.into_value() {
            None | Some(Value::Null) => {} // nothing between two separators
            Some(value) => self.objects(value, &starts, &mut Vec::new()),
        }
        true
    }

    /// One object, or the items of a list, at the `path` of indices.
    fn objects(&mut self, mut value: Value, starts: &Starts, path: &mut Vec<usize>) {
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !is_list_kind(&kind) || !value.get("items").is_some_and(Value::is_array) {
            return self.sink.object(starts.of(path), value);
        }
        let items = value.get_mut("items").map(Value::take).unwrap_or_default();
        let Value::Array(items) = items else { return };
        let version = value.get("apiVersion").and_then(Value::as_str);
        for (index, mut item) in items.into_iter().enumerate() {
            complete_item(&kind, version, &mut item);
            path.push(index);
            self.objects(item, starts, path);
            path.pop();
        }
    }

    fn syntax(&mut self, error: &ScanError) {
        let (line, column) = (error.marker().line(), error.marker().col() + 1);
        let message = match error.kind() {
            ErrorKind::RecursionLimitExceeded => format!("nested deeper than {DEPTH_MAX} levels"),
            _ => error.info(),
        };
        self.wrong(line, column, &message);
    }

    fn wrong(&mut self, line: usize, column: usize, message: &str) {
        self.sink.problem(line + self.lines_before, column, message);
    }

    /// Skips to the next document; false if there is none.
    fn skip(&mut self) -> bool {
        match self.parser.proceed_next_document() {
            Ok(more) => more,
            Err(error) => {
                self.syntax(&error);
                false
            }
        }
    }
}

/// Where the objects of a document begin: lines and columns, both from 1.
struct Starts {
    root: (usize, usize),
    items: BTreeMap<Vec<usize>, (usize, usize)>,
    /// Lines of the file before the parsed text.
    lines_before: usize,
}

impl Starts {
    /// The start of an item, or of the nearest thing around it whose start is known: what an
    /// alias copies has none of its own.
    fn of(&self, path: &[usize]) -> (usize, usize) {
        let known = (1..=path.len()).rev().find_map(|length| self.items.get(&path[..length]));
        let (line, column) = known.copied().unwrap_or(self.root);
        (line + self.lines_before, column)
    }
}

/// A key without quotes, as it stands in JSON.
pub(super) fn key_of(text: &str) -> String {
    let key = scalar::plain(text).and_then(scalar::key);
    key.unwrap_or_else(|_| text.to_owned())
}
