//! The form of values: what the patches, server-side apply, strict decoding and the filling in
//! of required fields know about a kind, built-in or custom.
//!
//! Both sources end here: the table of Kubernetes' own types, and the schema of a
//! `CustomResourceDefinition`. Whatever walks an object together with its form walks a
//! [`Shape`], so there is one merge, one apply and one decoder for all kinds.

mod cel_type;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;
use smol_str::SmolStr;

pub use cel_type::cel_type;

/// All forms of one source. Forms may contain themselves (a JSON schema does), so they refer
/// to each other by number.
#[derive(Debug, Default)]
pub struct Shapes {
    nodes: Vec<Form>,
    /// Untyped forms that are a JSON schema, or something shorter in its place.
    alternatives: BTreeMap<u32, (ShapeId, InsteadOfSchema)>,
}

/// A form in [`Shapes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeId(u32);

/// A form with the source that it belongs to: what a walk carries along.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'s> {
    shapes: &'s Shapes,
    id: ShapeId,
}

#[derive(Debug)]
pub enum Form {
    /// Nothing is known: objects are granular, lists are one value.
    Untyped,
    /// Data of somebody else's, owned as a whole.
    Raw,
    Scalar(Scalar),
    Struct(Struct),
    Map {
        values: ShapeId,
        atomic: bool,
    },
    List(List),
}

/// What a leaf holds. The finer kinds matter to decoding and to what an empty value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Text,
    Boolean,
    /// 64 bits wide.
    Integer,
    Integer32,
    Number,
    IntOrString,
    Quantity,
    Time,
    MicroTime,
    Duration,
    /// Base64 text.
    Bytes,
}

#[derive(Debug, Default)]
pub struct Struct {
    /// As upstream names the type (`io.k8s.api.core.v1.PodSpec`); empty in custom kinds.
    pub name: SmolStr,
    /// In the order in which the type declares them.
    pub fields: Vec<Field>,
    /// Server-side apply takes it as one value.
    pub atomic: bool,
    /// Fields besides the declared ones are kept.
    pub open: bool,
}

#[derive(Debug)]
pub struct Field {
    pub name: SmolStr,
    pub shape: ShapeId,
    /// An answer always has it, with an empty value if need be.
    pub required: bool,
    /// An empty value differs from an absent one.
    pub pointer: bool,
    pub patch: PatchStrategy,
    /// The value that an absent field has, where the schema says one. Built-in kinds name it
    /// for keys of lists, and set it elsewhere.
    pub default: Option<Value>,
}

#[derive(Debug)]
pub struct List {
    pub items: ShapeId,
    pub kind: ListKind,
}

/// What identifies the items of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Nothing: the list is one value.
    Atomic,
    /// Each item is its own name.
    Set,
    /// The values of these fields.
    Map(Vec<SmolStr>),
}

/// What a strategic merge patch does at a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged: by this field of their items, or as a set of scalars if it is empty.
    pub merge: Option<SmolStr>,
    /// The patch replaces what is there.
    pub replace: bool,
    /// `$retainKeys` is honoured.
    pub retain_keys: bool,
}

/// What may stand where a JSON schema is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsteadOfSchema {
    Boolean,
    Schemas,
    Texts,
}

impl Shapes {
    pub fn add(&mut self, form: Form) -> ShapeId {
        let id = u32::try_from(self.nodes.len()).expect("forms are counted in thousands");
        self.nodes.push(form);
        ShapeId(id)
    }

    /// Puts the real form where [`Shapes::add`] reserved a place for one that contains itself.
    pub fn set(&mut self, id: ShapeId, form: Form) {
        self.nodes[id.0 as usize] = form;
    }

    /// Says that objects of an untyped form are JSON schemas, of the form `schema`.
    pub fn set_alternative(&mut self, id: ShapeId, schema: ShapeId, instead: InsteadOfSchema) {
        self.alternatives.insert(id.0, (schema, instead));
    }

    pub fn get(&self, id: ShapeId) -> Shape<'_> {
        Shape { shapes: self, id }
    }
}

impl Struct {
    /// One of Kubernetes' own types, and not described by a custom kind's schema.
    pub fn is_builtin(&self) -> bool {
        !self.name.is_empty()
    }
}

impl<'s> Shape<'s> {
    pub fn form(self) -> &'s Form {
        &self.shapes.nodes[self.id.0 as usize]
    }

    pub fn id(self) -> ShapeId {
        self.id
    }

    /// For a place that holds a JSON schema or something shorter: the schema's form, and what
    /// else there may be.
    pub fn alternative(self) -> Option<(Shape<'s>, InsteadOfSchema)> {
        let (schema, instead) = self.shapes.alternatives.get(&self.id.0)?;
        Some((self.shapes.get(*schema), *instead))
    }

    /// The declared field of a struct.
    pub fn field(self, name: &str) -> Option<&'s Field> {
        match self.form() {
            Form::Struct(shape) => shape.fields.iter().find(|field| field.name == name),
            _ => None,
        }
    }

    /// The form of a field of this struct.
    #[must_use]
    pub fn of(self, field: &Field) -> Shape<'s> {
        self.shapes.get(field.shape)
    }

    /// The form of what stands under a key of an object; none if the key is unknown.
    pub fn child(self, name: &str) -> Option<Shape<'s>> {
        match self.form() {
            Form::Untyped | Form::Raw => Some(self),
            Form::Struct(shape) => match self.field(name) {
                Some(field) => Some(self.of(field)),
                None => shape.open.then_some(untyped()),
            },
            Form::Map { values, .. } => Some(self.shapes.get(*values)),
            Form::Scalar(_) | Form::List(_) => None,
        }
    }

    /// The form of a list's items; untyped for what is not known to be a list.
    #[must_use]
    pub fn items(self) -> Shape<'s> {
        match self.form() {
            Form::List(list) => self.shapes.get(list.items),
            _ => untyped(),
        }
    }
}

/// The form of what has no schema.
pub fn untyped() -> Shape<'static> {
    static UNTYPED: LazyLock<Shapes> =
        LazyLock::new(|| Shapes { nodes: vec![Form::Untyped], ..Shapes::default() });
    UNTYPED.get(ShapeId(0))
}
