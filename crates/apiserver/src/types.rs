//! Kubernetes' own types as a table: the fields of every struct that a built-in kind consists
//! of, with the facts that encodings and patches depend on.
//!
//! `types/table.txt` is written by `cargo xtask types`. A line is either
//! `kind APIVERSION KIND STRUCT` or `STRUCT [atomic]; NAME NUMBER TYPE [WORD…]; …`, where the
//! number is protobuf's (0 for none), a name of `-` stands for an embedded struct whose fields
//! JSON shows in its parent, and the words are `?` (left out when empty), `merge=KEY`,
//! `replace`, `retainKeys`, `keys=A+B`, `set`, `atomic`, `granular` and `default=JSON`.

mod schema;
mod shapes;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::shape::{InsteadOfSchema, ListKind, PatchStrategy, Scalar};

pub use schema::from_schema;
pub use shapes::{add_object_meta, object_meta, shape_of};

const TEXT: &str = include_str!("types/table.txt");

/// All types, with the struct that each kind is.
#[derive(Debug, Default)]
pub struct Table {
    structs: Vec<Struct>,
    by_name: BTreeMap<&'static str, StructId>,
    kinds: BTreeMap<(&'static str, &'static str), StructId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StructId(usize);

#[derive(Debug, Default)]
pub struct Struct {
    /// `core.v1.PodSpec`.
    pub name: &'static str,
    pub atomic: bool,
    pub fields: Vec<Field>,
}

#[derive(Debug)]
pub struct Field {
    /// Absent for an embedded struct.
    pub name: Option<&'static str>,
    pub number: u32,
    pub of: Type,
    /// Left out of an encoding when it is empty.
    pub optional: bool,
    pub patch: PatchStrategy,
    pub list: ListKind,
    /// Whether server-side apply takes the value for one, where the field overrides its type.
    pub atomic: Option<bool>,
    /// The value that an absent field has where it is a key of a list.
    pub default: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Scalar(Scalar),
    /// Any JSON; in protobuf a message around its text.
    Raw,
    /// A list of texts; in protobuf a message around them.
    Texts,
    /// A JSON schema or something shorter in its place.
    Schema(InsteadOfSchema),
    Struct(StructId),
    Pointer(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
}

/// The table, read once.
pub fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(TEXT));
    &TABLE
}

impl Table {
    /// The struct of a kind. Options of a deletion come under the version of whatever is
    /// deleted.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<StructId> {
        let api_version = if kind == "DeleteOptions" { "v1" } else { api_version };
        self.kinds.get(&(api_version, kind)).copied()
    }

    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.kinds.keys().copied()
    }

    pub fn get(&self, id: StructId) -> &Struct {
        &self.structs[id.0]
    }

    /// The struct of this name, if the table has it.
    pub fn find(&self, name: &str) -> Option<&Struct> {
        self.by_name.get(name).map(|id| self.get(*id))
    }

    /// The struct of this name, which must be a line of the table.
    pub fn named(&self, name: &str) -> StructId {
        *self.by_name.get(name).expect("asked for by a name that the table has a line for")
    }

    fn parse(text: &'static str) -> Self {
        let (kinds, structs): (Vec<_>, Vec<_>) =
            text.lines().partition(|line| line.starts_with("kind "));
        let mut table = Self::default();
        for line in &structs {
            let name = line.split([' ', ';']).next().unwrap_or_default();
            table.by_name.insert(name, StructId(table.by_name.len()));
        }
        table.structs = structs.iter().map(|line| table.read_struct(line)).collect();
        for line in kinds {
            let words: Vec<&str> = line.split(' ').collect();
            if let [_, api_version, kind, name] = words[..] {
                table.kinds.insert((api_version, kind), table.named(name));
            }
        }
        table
    }

    fn read_struct(&self, line: &'static str) -> Struct {
        let mut parts = line.split("; ");
        let meta = parts.next().unwrap_or_default();
        let (name, atomic) = match meta.strip_suffix(" atomic") {
            Some(name) => (name, true),
            None => (meta, false),
        };
        Struct { name, atomic, fields: parts.map(|field| self.read_field(field)).collect() }
    }

    fn read_field(&self, text: &'static str) -> Field {
        let mut words = text.split(' ');
        let name = words.next().filter(|name| *name != "-");
        let number = words.next().and_then(|number| number.parse().ok()).unwrap_or_default();
        let of = self.read_type(words.next().unwrap_or_default());
        let mut field = Field {
            name,
            number,
            of,
            optional: false,
            patch: PatchStrategy::default(),
            list: ListKind::Atomic,
            atomic: None,
            default: None,
        };
        for word in words {
            field.read_word(word);
        }
        field
    }

    fn read_type(&self, word: &'static str) -> Type {
        if let Some(inner) = word.strip_prefix('*') {
            return Type::Pointer(Box::new(self.read_type(inner)));
        }
        if let Some(inner) = word.strip_prefix("[]") {
            return Type::List(Box::new(self.read_type(inner)));
        }
        if let Some(inner) = word.strip_prefix("{}") {
            return Type::Map(Box::new(self.read_type(inner)));
        }
        match word {
            "text" => Type::Scalar(Scalar::Text),
            "bool" => Type::Scalar(Scalar::Boolean),
            "int32" => Type::Scalar(Scalar::Integer32),
            "int64" => Type::Scalar(Scalar::Integer),
            "float64" => Type::Scalar(Scalar::Number),
            "intorstring" => Type::Scalar(Scalar::IntOrString),
            "quantity" => Type::Scalar(Scalar::Quantity),
            "time" => Type::Scalar(Scalar::Time),
            "microtime" => Type::Scalar(Scalar::MicroTime),
            "duration" => Type::Scalar(Scalar::Duration),
            "bytes" => Type::Scalar(Scalar::Bytes),
            "raw" => Type::Raw,
            "texts" => Type::Texts,
            "schemaorbool" => Type::Schema(InsteadOfSchema::Boolean),
            "schemaorarray" => Type::Schema(InsteadOfSchema::Schemas),
            "schemaortexts" => Type::Schema(InsteadOfSchema::Texts),
            name => Type::Struct(self.named(name)),
        }
    }
}

impl Field {
    fn read_word(&mut self, word: &'static str) {
        match word.split_once('=').unwrap_or((word, "")) {
            ("?", _) => self.optional = true,
            ("merge", key) => self.patch.merge = Some(key.into()),
            ("replace", _) => self.patch.replace = true,
            ("retainKeys", _) => self.patch.retain_keys = true,
            ("keys", keys) => {
                self.list = ListKind::Map(keys.split('+').map(Into::into).collect());
            }
            ("set", _) => self.list = ListKind::Set,
            ("atomic", _) => self.atomic = Some(true),
            ("granular", _) => self.atomic = Some(false),
            ("default", value) => self.default = Some(value),
            (other, _) => unreachable!("the generator writes no word {other}"),
        }
    }

    pub fn is_pointer(&self) -> bool {
        matches!(self.of, Type::Pointer(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, field: &str) -> &'static Field {
        let fields = &table().get(table().named(name)).fields;
        fields.iter().find(|entry| entry.name == Some(field)).expect("a field of the type")
    }

    #[test]
    fn facts_of_fields_are_read() {
        let volumes = field("core.v1.PodSpec", "volumes");
        assert_eq!(volumes.number, 1);
        assert!(volumes.optional && volumes.patch.retain_keys);
        assert_eq!(volumes.patch.merge.as_deref(), Some("name"));
        let ports = field("core.v1.Container", "ports");
        assert_eq!(ports.list, ListKind::Map(vec!["containerPort".into(), "protocol".into()]));
        assert_eq!(field("core.v1.ContainerPort", "protocol").default, Some("\"TCP\""));
        assert_eq!(field("core.v1.PersistentVolumeSpec", "claimRef").atomic, Some(false));
        assert!(field("policy.v1.PodDisruptionBudgetSpec", "selector").patch.replace);
        assert!(!field("core.v1.PodSpec", "containers").optional);
    }

    #[test]
    fn every_kind_of_the_registry_has_its_types() {
        for resource in crate::registry::builtin().iter() {
            let api_version = resource.api_version();
            assert!(
                table().kind(&api_version, &resource.kind).is_some(),
                "{api_version} {resource:?}"
            );
        }
        assert!(table().kind("apps/v1", "DeleteOptions").is_some());
    }
}
