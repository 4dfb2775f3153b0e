//! Where the fields of objects stand in their files, and how their values are written.
//!
//! Reading keeps the line of every object and nothing else, since most input has no findings. For
//! objects that have some, their file is parsed once more, and only what is asked for is kept. JSON
//! is parsed as the YAML that it is; where that fails, a finding has the line of its object.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::object::field_path::PathPart;
use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, Span};

use super::DEPTH_MAX;
use super::yaml::key_of;

/// A line and a column, both from 1.
pub(super) type Position = (usize, usize);

/// One value of an object.
#[derive(Debug)]
pub(super) struct Node {
    /// Of the key that leads to it, or of the value itself in a list.
    position: Position,
    /// A value without quotes, as it is written.
    written: Option<String>,
    children: Vec<(PathPart, Node)>,
}

/// A field that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FieldPosition {
    pub(super) position: Position,
    /// The value as it is written, if it is a plain one and the whole path was found.
    pub(super) written: Option<String>,
}

impl Node {
    /// The field at `path`, or the innermost one around it.
    pub(super) fn find(&self, path: &[PathPart]) -> FieldPosition {
        let mut node = self;
        for part in path {
            let child = node.children.iter().find(|(name, _)| name == part);
            let Some((_, child)) = child else {
                return FieldPosition { position: node.position, written: None };
            };
            node = child;
        }
        FieldPosition { position: node.position, written: node.written.clone() }
    }
}

/// The objects that begin at `wanted` places of `text`. What cannot be parsed is left out.
pub(super) fn objects(text: &str, wanted: &BTreeSet<Position>) -> BTreeMap<Position, Node> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder { wanted, open: Vec::new(), found: BTreeMap::new() };
    loop {
        match parser.next_event() {
            None | Some(Ok((Event::StreamEnd, _))) => return builder.found,
            Some(Ok((event, span))) => builder.event(event, &span),
            Some(Err(_)) => {
                builder.open.clear();
                if !matches!(parser.proceed_next_document(), Ok(true)) {
                    return builder.found;
                }
            }
        }
    }
}

struct Builder<'w> {
    wanted: &'w BTreeSet<Position>,
    /// The object being read and the values around the next event; empty outside wanted objects.
    open: Vec<Open>,
    found: BTreeMap<Position, Node>,
}

struct Open {
    start: Position,
    node: Node,
    is_map: bool,
    /// The key whose value comes next.
    key: Option<(String, Position)>,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: &Span) {
        let start = (span.start.line(), span.start.col() + 1);
        match event {
            Event::MappingStart(..) => self.start(start, true),
            Event::SequenceStart(..) if !self.open.is_empty() => self.start(start, false),
            Event::MappingEnd | Event::SequenceEnd => self.end(),
            Event::Scalar(text, style, ..) => {
                let is_plain = style == ScalarStyle::Plain;
                self.value(start, is_plain.then(|| text.to_string()), &text);
            }
            Event::Alias(_) => self.value(start, None, "*"),
            _ => {}
        }
    }

    fn start(&mut self, start: Position, is_map: bool) {
        if self.open.is_empty() && !self.wanted.contains(&start) {
            return;
        }
        let position = self.open.last().map_or(start, |parent| parent.place(start));
        let node = Node { position, written: None, children: Vec::new() };
        self.open.push(Open { start, node, is_map, key: None });
    }

    fn end(&mut self) {
        let Some(done) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.take(done.node),
            None => {
                self.found.insert(done.start, done.node);
            }
        }
    }

    fn value(&mut self, start: Position, written: Option<String>, text: &str) {
        let Some(parent) = self.open.last_mut() else { return };
        if parent.is_map && parent.key.is_none() {
            let name = written.as_deref().map_or_else(|| text.to_owned(), key_of);
            parent.key = Some((name, start));
        } else {
            let node = Node { position: parent.place(start), written, children: Vec::new() };
            parent.take(node);
        }
    }
}

impl Open {
    /// Where people look for the next value: at its key.
    fn place(&self, start: Position) -> Position {
        self.key.as_ref().map_or(start, |(_, at)| *at)
    }

    fn take(&mut self, child: Node) {
        let part = match self.key.take() {
            Some((name, _)) => PathPart::Key(name),
            None => PathPart::Index(self.node.children.len()),
        };
        self.node.children.push((part, child));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
kind: List
items:
- kind: A
  spec:
    replicas: yes
    list:
    - {name: a}
    - name: 'b'
---
kind: B
";

    fn key(name: &str) -> PathPart {
        PathPart::Key(name.to_owned())
    }

    #[test]
    fn fields_are_found_at_their_keys() {
        let found = objects(TEXT, &BTreeSet::from([(3, 3), (10, 1)]));
        assert_eq!(found.len(), 2);
        let object = &found[&(3, 3)];
        let at = |path: &[PathPart]| {
            let found = object.find(path);
            (found.position, found.written)
        };
        assert_eq!(at(&[]), ((3, 3), None));
        assert_eq!(at(&[key("spec"), key("replicas")]), ((5, 5), Some("yes".to_owned())));
        let item = |index| [key("spec"), key("list"), PathPart::Index(index), key("name")];
        assert_eq!(at(&item(0)), ((7, 8), Some("a".to_owned())));
        assert_eq!(at(&item(1)), ((8, 7), None));
        // What is missing stands where it should be.
        assert_eq!(at(&[key("spec"), key("selector")]), ((4, 3), None));
    }

    #[test]
    fn json_is_yaml_enough() {
        let text = "{\"kind\": \"A\",\n \"spec\": {\n  \"replicas\": 1}}";
        let found = objects(text, &BTreeSet::from([(1, 1)]));
        let field = found[&(1, 1)].find(&[key("spec"), key("replicas")]);
        assert_eq!(field.position, (3, 3));
    }
}
