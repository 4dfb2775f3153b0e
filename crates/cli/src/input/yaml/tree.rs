//! Builds JSON values from YAML events without recursion: open maps and lists are on a stack.
//!
//! Aliases are copied in, within a budget. A duplicate key is an error; a merge key (`<<`)
//! fills in what the map itself leaves out.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{Event, ScalarStyle, Span, Tag};

use super::scalar::{self, InvalidYaml};
use crate::input::DEPTH_MAX;

/// One document as it is being built.
#[derive(Debug, Default)]
pub(super) struct Tree {
    open: Vec<Node>,
    root: Option<Value>,
    anchors: BTreeMap<usize, Anchored>,
    /// Bytes that aliases have copied so far.
    pub(super) copied: usize,
    /// Values made so far.
    pub(super) values: usize,
    /// The line and column of each list item, by its index, and by the indices of the lists around
    /// it.
    pub(super) item_starts: BTreeMap<Vec<usize>, (usize, usize)>,
    /// The line and column of the root value.
    pub(super) start: (usize, usize),
}

#[derive(Debug)]
struct Node {
    content: Content,
    /// 0 if it has no anchor.
    anchor: usize,
    /// How deep the content is nested so far, itself included.
    depth: usize,
    /// The indices that lead here, if everything around is lists of objects.
    item: Option<Vec<usize>>,
}

#[derive(Debug)]
enum Content {
    List(Vec<Value>),
    Map { members: Map<String, Value>, key: Option<Key>, merged: Vec<Value> },
}

#[derive(Debug)]
enum Key {
    Name(String),
    Merge,
}

#[derive(Debug)]
struct Anchored {
    value: Value,
    depth: usize,
    bytes: usize,
    values: usize,
}

impl Tree {
    /// A document in a file whose aliases have copied `copied` bytes before.
    pub(super) fn after(copied: usize) -> Self {
        Self { copied, ..Self::default() }
    }

    /// Takes in one event of a document.
    pub(super) fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), InvalidYaml> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if self.is_merge_key(&text, style, tag.as_deref()) {
                    return self.key(Key::Merge);
                }
                let value = meaning(&text, style, tag.as_deref())?;
                self.values += 1;
                self.finished(value, anchor, 0, span)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.start(Content::List(Vec::new()), anchor, span)
            }
            Event::MappingStart(_, anchor, _) => {
                let members = Map::new();
                self.start(Content::Map { members, key: None, merged: Vec::new() }, anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(id) => self.alias(id, span),
            _ => Ok(()),
        }
    }

    /// The document, once all of it has been taken in; nothing if it is empty.
    pub(super) fn into_value(self) -> Option<Value> {
        self.root
    }

    fn is_merge_key(&self, text: &str, style: ScalarStyle, tag: Option<&Tag>) -> bool {
        let in_key =
            matches!(self.open.last(), Some(Node { content: Content::Map { key: None, .. }, .. }));
        in_key && text == "<<" && style == ScalarStyle::Plain && tag.is_none()
    }

    fn start(&mut self, content: Content, anchor: usize, span: &Span) -> Result<(), InvalidYaml> {
        if self.open.len() >= DEPTH_MAX {
            return Err(too_deep());
        }
        let item = self.item_path(&content, span);
        self.values += 1;
        self.open.push(Node { content, anchor, depth: 1, item });
        Ok(())
    }

    /// Records the place of a map that may be an object: the root, or an
    /// item of a list of objects.
    fn item_path(&mut self, content: &Content, span: &Span) -> Option<Vec<usize>> {
        let Some(parent) = self.open.last() else {
            self.start = start_of(span);
            return Some(Vec::new());
        };
        let path = parent.item.as_ref()?;
        match (&parent.content, content) {
            (Content::Map { key: Some(Key::Name(name)), .. }, Content::List(_))
                if name == "items" =>
            {
                Some(path.clone())
            }
            (Content::List(items), Content::Map { .. }) => {
                let mut path = path.clone();
                path.push(items.len());
                self.item_starts.insert(path.clone(), start_of(span));
                Some(path)
            }
            _ => None,
        }
    }

    fn end(&mut self, span: &Span) -> Result<(), InvalidYaml> {
        let Some(node) = self.open.pop() else { return Ok(()) };
        let value = match node.content {
            Content::List(items) => Value::Array(items),
            Content::Map { members, merged, .. } => Value::Object(merge(members, merged)?),
        };
        self.finished(value, node.anchor, node.depth, span)
    }

    fn alias(&mut self, id: usize, span: &Span) -> Result<(), InvalidYaml> {
        let Some(anchored) = self.anchors.get(&id) else {
            return Err(InvalidYaml("the alias refers to a node that contains it".to_owned()));
        };
        self.copied = self.copied.saturating_add(anchored.bytes);
        self.values = self.values.saturating_add(anchored.values);
        let (value, depth) = (anchored.value.clone(), anchored.depth);
        self.finished(value, 0, depth, span)
    }

    /// Whether copying what an alias refers to would go over `bytes_max`.
    pub(super) fn is_alias_over(&self, event: &Event<'_>, bytes_max: usize) -> bool {
        let Event::Alias(id) = event else { return false };
        let more = self.anchors.get(id).map_or(0, |anchored| anchored.bytes);
        self.copied.saturating_add(more) > bytes_max
    }

    /// Puts a complete value where it belongs.
    fn finished(
        &mut self,
        value: Value,
        anchor: usize,
        depth: usize,
        span: &Span,
    ) -> Result<(), InvalidYaml> {
        if self.open.len() + depth > DEPTH_MAX {
            return Err(too_deep());
        }
        if anchor != 0 {
            let (values, bytes) = weight(&value);
            self.copied = self.copied.saturating_add(bytes); // the anchor keeps a copy
            self.anchors.insert(anchor, Anchored { value: value.clone(), depth, bytes, values });
        }
        let Some(parent) = self.open.last_mut() else {
            if self.start == (0, 0) {
                self.start = start_of(span);
            }
            self.root = Some(value);
            return Ok(());
        };
        parent.depth = parent.depth.max(depth + 1);
        match &mut parent.content {
            Content::List(items) => items.push(value),
            Content::Map { members, key, merged } => match key.take() {
                None => return self.key(Key::Name(scalar::key(value)?)),
                Some(Key::Merge) => merged.push(value),
                Some(Key::Name(name)) => {
                    members.insert(name, value);
                }
            },
        }
        Ok(())
    }

    fn key(&mut self, new: Key) -> Result<(), InvalidYaml> {
        if let Some(Node { content: Content::Map { members, key, .. }, .. }) = self.open.last_mut()
        {
            if let Key::Name(name) = &new
                && members.contains_key(name)
            {
                return Err(InvalidYaml(format!("duplicate key {name:?}")));
            }
            *key = Some(new);
        }
        Ok(())
    }
}

/// Line and column, both from 1.
fn start_of(span: &Span) -> (usize, usize) {
    (span.start.line(), span.start.col() + 1)
}

fn meaning(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, InvalidYaml> {
    match tag.and_then(Tag::core_suffix) {
        Some(core) => scalar::tagged(core, text),
        // The value of an unknown tag is a string.
        None if style == ScalarStyle::Plain && tag.is_none() => scalar::plain(text),
        None => Ok(Value::from(text)),
    }
}

/// Fills in what merge keys bring, earlier ones first; what the map says itself wins.
fn merge(
    mut members: Map<String, Value>,
    merged: Vec<Value>,
) -> Result<Map<String, Value>, InvalidYaml> {
    for value in merged {
        let maps = match value {
            Value::Array(maps) => maps,
            map => vec![map],
        };
        for map in maps {
            let Value::Object(map) = map else {
                return Err(InvalidYaml("expected a map or a list of maps after <<".to_owned()));
            };
            for (name, value) in map {
                members.entry(name).or_insert(value);
            }
        }
    }
    Ok(members)
}

/// How many values a tree has, and roughly how many bytes. The tree is at most
/// [`DEPTH_MAX`] deep.
fn weight(value: &Value) -> (usize, usize) {
    const EACH: usize = size_of::<Value>();
    let sum = |(values, bytes): (usize, usize), child: (usize, usize)| {
        (values + child.0, bytes + child.1)
    };
    match value {
        Value::String(text) => (1, EACH + text.len()),
        Value::Array(items) => items.iter().map(weight).fold((1, EACH), sum),
        Value::Object(members) => {
            let keys: usize = members.keys().map(|key| EACH + key.len()).sum();
            members.values().map(weight).fold((1, EACH + keys), sum)
        }
        _ => (1, EACH),
    }
}

fn too_deep() -> InvalidYaml {
    InvalidYaml(format!("nested deeper than {DEPTH_MAX} levels"))
}
