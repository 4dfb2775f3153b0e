//! The forms of built-in kinds, made from the table of types.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use smol_str::{SmolStr, format_smolstr};

use super::{Field, StructId, Table, Type, table};
use crate::shape::{self, Form, InsteadOfSchema, List, ListKind, Scalar, Shape, ShapeId, Shapes};

const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

/// The form of a kind, if it is one of Kubernetes' own.
pub fn shape_of(api_version: &str, kind: &str) -> Option<Shape<'static>> {
    Some(of_struct(table().kind(api_version, kind)?))
}

/// The form of every object's `metadata`.
pub fn object_meta() -> Shape<'static> {
    of_struct(table().named("meta.v1.ObjectMeta"))
}

/// As [`object_meta`], within another source: what its metadata are made of is added to it.
pub fn add_object_meta(shapes: &mut Shapes) -> ShapeId {
    let builder = Builder::new(table(), std::mem::take(shapes));
    let id = table().named("meta.v1.ObjectMeta");
    let (built, by_struct) = builder.build([id]);
    *shapes = built;
    by_struct[&id]
}

struct Builtin {
    shapes: Shapes,
    by_struct: BTreeMap<StructId, ShapeId>,
}

fn of_struct(id: StructId) -> Shape<'static> {
    static BUILTIN: LazyLock<Builtin> = LazyLock::new(|| {
        let table = table();
        let (shapes, by_struct) =
            Builder::new(table, Shapes::default()).build(table.by_name.values().copied());
        Builtin { shapes, by_struct }
    });
    BUILTIN.shapes.get(BUILTIN.by_struct[&id])
}

struct Builder<'t> {
    table: &'t Table,
    shapes: Shapes,
    /// Structs with whether they are atomic, which a field may override.
    structs: BTreeMap<(StructId, bool), ShapeId>,
    /// Reserved, and still to be described.
    open: Vec<(StructId, bool)>,
}

impl<'t> Builder<'t> {
    fn new(table: &'t Table, shapes: Shapes) -> Self {
        Self { table, shapes, structs: BTreeMap::new(), open: Vec::new() }
    }

    fn build(
        mut self,
        roots: impl IntoIterator<Item = StructId>,
    ) -> (Shapes, BTreeMap<StructId, ShapeId>) {
        let by_struct = roots.into_iter().map(|id| (id, self.declared(id))).collect();
        while let Some((id, atomic)) = self.open.pop() {
            let mut fields = Vec::new();
            self.add_fields(id, &mut fields);
            let name = upstream_name(self.table.get(id).name);
            let form = Form::Struct(shape::Struct { name, fields, atomic, open: false });
            self.shapes.set(self.structs[&(id, atomic)], form);
        }
        (self.shapes, by_struct)
    }

    fn declared(&mut self, id: StructId) -> ShapeId {
        self.reserve(id, self.table.get(id).atomic)
    }

    fn reserve(&mut self, id: StructId, atomic: bool) -> ShapeId {
        if let Some(known) = self.structs.get(&(id, atomic)) {
            return *known;
        }
        let reserved = self.shapes.add(Form::Untyped);
        self.structs.insert((id, atomic), reserved);
        self.open.push((id, atomic));
        reserved
    }

    /// Fields of embedded structs stand among those of the struct that embeds them.
    fn add_fields(&mut self, id: StructId, fields: &mut Vec<shape::Field>) {
        let table = self.table;
        for field in &table.get(id).fields {
            match (field.name, &field.of) {
                (Some(name), _) => fields.push(self.field(name, field)),
                (None, Type::Struct(embedded)) => self.add_fields(*embedded, fields),
                (None, _) => {}
            }
        }
    }

    fn field(&mut self, name: &'static str, field: &Field) -> shape::Field {
        let of = match &field.of {
            Type::Pointer(inner) => inner,
            other => other,
        };
        let default = field.default.and_then(|text| serde_json::from_str(text).ok());
        shape::Field {
            name: SmolStr::new_static(name),
            shape: self.form(of, field),
            required: !field.optional,
            pointer: field.is_pointer(),
            patch: field.patch.clone(),
            default,
        }
    }

    fn form(&mut self, of: &Type, field: &Field) -> ShapeId {
        match of {
            Type::Struct(id) => {
                let atomic = field.atomic.unwrap_or(self.table.get(*id).atomic);
                self.reserve(*id, atomic)
            }
            Type::List(items) => {
                let items = self.value(items);
                self.shapes.add(Form::List(List { items, kind: field.list.clone() }))
            }
            Type::Map(values) => {
                let values = self.value(values);
                self.shapes.add(Form::Map { values, atomic: field.atomic == Some(true) })
            }
            other => self.value(other),
        }
    }

    /// The form of what stands in a list or map, where no field says anything special.
    fn value(&mut self, of: &Type) -> ShapeId {
        match of {
            Type::Scalar(scalar) => self.shapes.add(Form::Scalar(*scalar)),
            Type::Raw => self.shapes.add(Form::Raw),
            Type::Texts => self.list_of(&Type::Scalar(Scalar::Text)),
            Type::Schema(instead) => self.schema_or(*instead),
            Type::Struct(id) => self.declared(*id),
            Type::Pointer(inner) => self.value(inner),
            Type::List(items) => self.list_of(items),
            Type::Map(values) => {
                let values = self.value(values);
                self.shapes.add(Form::Map { values, atomic: false })
            }
        }
    }

    fn list_of(&mut self, items: &Type) -> ShapeId {
        let items = self.value(items);
        self.shapes.add(Form::List(List { items, kind: ListKind::Atomic }))
    }

    /// Merging takes these as they come; only their encoding knows that a schema is inside.
    fn schema_or(&mut self, instead: InsteadOfSchema) -> ShapeId {
        let schema = self.declared(self.table.named(SCHEMA));
        let id = self.shapes.add(Form::Untyped);
        self.shapes.set_alternative(id, schema, instead);
        id
    }
}

/// The name under which OpenAPI publishes a struct of the table.
fn upstream_name(name: &str) -> SmolStr {
    let package = match name.split('.').next() {
        Some("meta") => "io.k8s.apimachinery.pkg.apis",
        Some("apiextensions") => "io.k8s.apiextensions-apiserver.pkg.apis",
        Some("apiregistration") => "io.k8s.kube-aggregator.pkg.apis",
        _ => "io.k8s.api",
    };
    format_smolstr!("{package}.{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(kind: (&str, &str), path: &[&str]) -> Shape<'static> {
        let root = shape_of(kind.0, kind.1).expect("a kind of the table");
        path.iter().fold(root, |shape, step| match *step {
            "[]" => shape.items(),
            name => shape.child(name).expect("a field of the type"),
        })
    }

    #[test]
    fn embedded_structs_show_in_their_parent() {
        let volume = walk(("v1", "Pod"), &["spec", "volumes", "[]"]);
        assert!(volume.field("emptyDir").is_some_and(|field| field.pointer));
        let probe = walk(("v1", "Pod"), &["spec", "containers", "[]", "livenessProbe"]);
        assert!(probe.field("httpGet").is_some());
        let Form::Struct(pod) = walk(("v1", "Pod"), &[]).form() else { panic!("a struct") };
        let names: Vec<&str> = pod.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["kind", "apiVersion", "metadata", "spec", "status"]);
        assert_eq!(pod.name, "io.k8s.api.core.v1.Pod");
    }

    #[test]
    fn a_field_may_say_that_its_atomic_type_is_granular() {
        let claim = walk(("v1", "PersistentVolume"), &["spec", "claimRef"]);
        assert!(matches!(claim.form(), Form::Struct(of) if !of.atomic));
        let reference = walk(("v1", "Event"), &["involvedObject"]);
        assert!(matches!(reference.form(), Form::Struct(of) if of.atomic));
        let selector = walk(("v1", "Service"), &["spec", "selector"]);
        assert!(matches!(selector.form(), Form::Map { atomic: true, .. }));
    }
}
