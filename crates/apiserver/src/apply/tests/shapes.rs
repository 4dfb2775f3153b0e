//! Shapes of a few kinds, read from a small notation that the recorder reads too: the name of a
//! scalar, `any`, or an object with one of `struct`, `map`, `list`, `set` and `keyed`.

use std::collections::BTreeMap;

use serde_json::Value;
use smol_str::SmolStr;

use crate::shape::{
    Field, Form, List, ListKind, PatchStrategy, Scalar, Shape, ShapeId, Shapes, Struct,
};

/// Kinds by name.
pub(super) struct Kinds {
    shapes: Shapes,
    roots: BTreeMap<String, ShapeId>,
}

impl Kinds {
    pub(super) fn shape(&self, kind: &str) -> Shape<'_> {
        self.shapes.get(self.roots[kind])
    }
}

pub(super) fn kinds() -> Kinds {
    let text = include_str!("../../../testdata/apply/shapes.json");
    read(&serde_json::from_str(text).unwrap())
}

pub(super) fn read(notation: &Value) -> Kinds {
    let mut shapes = Shapes::default();
    let kinds = notation.as_object().unwrap().iter();
    let roots = kinds.map(|(kind, form)| (kind.clone(), add(&mut shapes, form))).collect();
    Kinds { shapes, roots }
}

fn add(shapes: &mut Shapes, notation: &Value) -> ShapeId {
    let form = match notation {
        Value::String(name) => scalar(name),
        Value::Object(form) => {
            let atomic = form.get("atomic") == Some(&Value::Bool(true));
            let items = |shapes: &mut Shapes, kind: ListKind, items: &Value| {
                Form::List(List { items: add(shapes, items), kind })
            };
            if let Some(Value::Object(fields)) = form.get("struct") {
                let names = |list: &str| -> Vec<String> {
                    form.get(list)
                        .map_or(vec![], |list| serde_json::from_value(list.clone()).unwrap())
                };
                let (required, pointers) = (names("required"), names("pointers"));
                let fields = fields.iter().map(|(name, notation)| Field {
                    name: name.into(),
                    shape: add(shapes, notation),
                    required: required.contains(name),
                    pointer: pointers.contains(name),
                    patch: PatchStrategy::default(),
                    default: form.get("defaults").and_then(|all| all.get(name)).cloned(),
                });
                Form::Struct(Struct {
                    name: form.get("name").and_then(Value::as_str).unwrap_or_default().into(),
                    fields: fields.collect(),
                    atomic,
                    open: form.get("open") == Some(&Value::Bool(true)),
                })
            } else if let Some(values) = form.get("map") {
                Form::Map { values: add(shapes, values), atomic }
            } else if let Some(inner) = form.get("list") {
                items(shapes, ListKind::Atomic, inner)
            } else if let Some(inner) = form.get("set") {
                items(shapes, ListKind::Set, inner)
            } else {
                let keys: Vec<SmolStr> = serde_json::from_value(form["keys"].clone()).unwrap();
                items(shapes, ListKind::Map(keys), &form["keyed"])
            }
        }
        other => panic!("no notation of a form: {other}"),
    };
    shapes.add(form)
}

fn scalar(name: &str) -> Form {
    Form::Scalar(match name {
        "any" => return Form::Untyped,
        "text" => Scalar::Text,
        "boolean" => Scalar::Boolean,
        "integer" => Scalar::Integer,
        "number" => Scalar::Number,
        "int-or-string" => Scalar::IntOrString,
        "quantity" => Scalar::Quantity,
        "time" => Scalar::Time,
        other => panic!("no scalar: {other}"),
    })
}
