//! Columns of tables and how their cells are made. Which kind has which columns is said beside the
//! kind; here is what they are made of.

mod age;
pub(crate) mod selector;
mod text;

use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) use age::{age, duration};
pub(crate) use text::plain;

pub(crate) struct Column {
    pub name: &'static str,
    pub of: &'static str,
    pub format: &'static str,
    /// Shown only when more is asked for.
    pub is_wide: bool,
    pub cell: Cell,
}

/// What a cell shows. Places in the object are JSON pointers.
pub(crate) enum Cell {
    Name,
    Age,
    /// The time of creation itself.
    Created,
    /// A text, or another where there is none.
    Text(&'static str, &'static str),
    /// A number, or nought.
    Number(&'static str),
    /// A number, or a text where there is none.
    NumberOr(&'static str, &'static str),
    Flag(&'static str, bool),
    /// How many items several lists or maps have together.
    Count(&'static [&'static str]),
    /// The items of a list, with commas between, or a text where there are none.
    Words(&'static str, &'static str),
    /// One field of every item of a list.
    Each(&'static str, &'static str),
    /// A label selector as text, or another where it is empty.
    Selector(&'static str, &'static str),
    /// A map as text.
    Labels(&'static str),
    Made(fn(&Row<'_>) -> Value),
}

/// An object with what its cells may depend on besides.
pub(crate) struct Row<'o> {
    pub object: &'o Value,
    /// All objects of the table.
    pub siblings: &'o [Value],
    pub now: Timestamp,
}

/// What a kind has that says nothing else.
pub(crate) const PLAIN: &[Column] = &[
    NAME,
    Column { name: "Created At", of: "date", format: "", is_wide: false, cell: Cell::Created },
];

pub(crate) const NAME_AND_AGE: &[Column] = &[NAME, AGE];
pub(crate) const NAME: Column = name(Cell::Name);
pub(crate) const AGE: Column = string("Age", Cell::Age);

/// The column of names, with cells of its own.
pub(crate) const fn name(cell: Cell) -> Column {
    Column { name: "Name", of: "string", format: "name", is_wide: false, cell }
}

pub(crate) const fn string(name: &'static str, cell: Cell) -> Column {
    Column { name, of: "string", format: "", is_wide: false, cell }
}

pub(crate) const fn wide(name: &'static str, cell: Cell) -> Column {
    Column { name, of: "string", format: "", is_wide: true, cell }
}

pub(crate) const fn integer(name: &'static str, cell: Cell) -> Column {
    Column { name, of: "integer", format: "", is_wide: false, cell }
}

pub(crate) const fn number(name: &'static str, pointer: &'static str) -> Column {
    integer(name, Cell::Number(pointer))
}

pub(crate) const fn boolean(name: &'static str, pointer: &'static str, absent: bool) -> Column {
    let cell = Cell::Flag(pointer, absent);
    Column { name, of: "boolean", format: "", is_wide: false, cell }
}

impl Column {
    pub(crate) fn definition(&self) -> Value {
        definition(self.name, self.of, self.format, "", i64::from(self.is_wide))
    }

    pub(crate) fn cell(&self, row: &Row<'_>) -> Value {
        match self.cell {
            Cell::Name => json!(row.text("/metadata/name")),
            Cell::Age => json!(row.age("/metadata/creationTimestamp")),
            Cell::Created => json!(row.text("/metadata/creationTimestamp")),
            Cell::Text(pointer, absent) => json!(row.text_or(pointer, absent)),
            Cell::Number(pointer) => json!(row.number(pointer)),
            Cell::NumberOr(pointer, absent) => match row.object.pointer(pointer) {
                Some(number @ Value::Number(_)) => number.clone(),
                _ => json!(absent),
            },
            Cell::Flag(pointer, absent) => {
                json!(row.object.pointer(pointer).and_then(Value::as_bool).unwrap_or(absent))
            }
            Cell::Count(pointers) => {
                json!(pointers.iter().map(|one| row.count(one)).sum::<usize>())
            }
            Cell::Words(pointer, absent) => {
                let words: Vec<String> = row.items(pointer).map(plain).collect();
                json!(if words.is_empty() { absent.to_owned() } else { words.join(",") })
            }
            Cell::Each(list, field) => {
                let words: Vec<String> = row.items(list).map(|item| plain(&item[field])).collect();
                json!(words.join(","))
            }
            Cell::Selector(pointer, absent) => {
                let text = row.object.pointer(pointer).map(selector::text).unwrap_or_default();
                json!(if text.is_empty() { absent.to_owned() } else { text })
            }
            Cell::Labels(pointer) => json!(selector::labels(row.object.pointer(pointer))),
            Cell::Made(make) => make(row),
        }
    }
}

/// How a column is described to clients.
pub(crate) fn definition(
    name: &str,
    of: &str,
    format: &str,
    description: &str,
    priority: i64,
) -> Value {
    json!({
        "name": name, "type": of, "format": format, "description": description,
        "priority": priority,
    })
}

impl<'o> Row<'o> {
    pub(crate) fn text(&self, pointer: &str) -> &'o str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn text_or(&self, pointer: &str, absent: &str) -> String {
        let text = self.object.pointer(pointer).map(plain).unwrap_or_default();
        if text.is_empty() { absent.to_owned() } else { text }
    }

    pub(crate) fn number(&self, pointer: &str) -> i64 {
        self.object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
    }

    pub(crate) fn items(&self, pointer: &str) -> impl Iterator<Item = &'o Value> {
        self.object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
    }

    /// How long ago the time at a place was.
    pub(crate) fn age(&self, pointer: &str) -> String {
        age(self.object.pointer(pointer).and_then(Value::as_str), self.now)
    }

    pub(crate) fn is_deleting(&self) -> bool {
        !self.object["metadata"]["deletionTimestamp"].is_null()
    }

    fn count(&self, pointer: &str) -> usize {
        match self.object.pointer(pointer) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(fields)) => fields.len(),
            _ => 0,
        }
    }
}

/// The status of the first condition of a type, among `conditions`.
pub(crate) fn condition<'c>(conditions: &'c Value, of: &str) -> Option<&'c Value> {
    conditions.as_array()?.iter().find(|one| one["type"] == of)
}
