//! The Go structs of the kinds in this group, as a table: which fields there are, in which
//! order, of which type, under which JSON name.
//!
//! `types.txt` holds one line per type: `type {GoName type jsonName; …}`, or `type = kind` for
//! a named scalar or map. A field without a JSON name is embedded: its members are read from
//! the same JSON object. The table is Kubernetes 1.37's; older releases leave fields out.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("types.txt");

/// Which Kubernetes minor release a table describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    V1_35,
    V1_36,
    #[default]
    V1_37,
}

/// All types of a release.
#[derive(Debug)]
pub struct Table {
    types: Vec<Type>,
    by_name: BTreeMap<String, TypeId>,
}

/// A type of the same table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeId(usize);

#[derive(Debug)]
pub struct Type {
    /// As Go writes it: `[]v1.Container`.
    pub name: String,
    pub shape: Shape,
}

#[derive(Debug)]
pub enum Shape {
    Text,
    Bool,
    Int32,
    Int64,
    IntOrString,
    Quantity,
    Time,
    /// Anything; it is not looked into.
    Opaque,
    Pointer(TypeId),
    List(TypeId),
    Map(TypeId),
    Struct(Vec<Field>),
}

#[derive(Debug)]
pub struct Field {
    pub name: String,
    /// Absent for an embedded struct.
    pub json: Option<String>,
    pub of: TypeId,
}

/// Fields that 1.37 added, as `(type, field)`; an empty type stands for every type.
const SINCE_1_37: [(&str, &str); 9] = [
    ("v1.PodSpec", "EvictionResponders"),
    ("v1.ClusterTrustBundleProjection", "User"),
    ("v1.DownwardAPIVolumeFile", "User"),
    ("v1.KeyToPath", "User"),
    ("v1.PodCertificateProjection", "User"),
    ("v1.ServiceAccountTokenProjection", "User"),
    ("", "DefaultUser"),
    ("v1.HTTPGetAction", "Protocol"),
    ("v1.VolumeMount", "BindMountOptions"),
];

/// The same for the two types that have a `Mode` from 1.37 on.
const MODE_SINCE_1_37: [&str; 2] = ["v1.EmptyDirVolumeSource", "v1.GRPCAction"];

static TABLES: LazyLock<[Table; 3]> = LazyLock::new(|| {
    [Release::V1_35, Release::V1_36, Release::V1_37].map(|release| Table::parse(TEXT, release))
});

/// The table of a release, parsed once.
pub fn table(release: Release) -> &'static Table {
    &TABLES[release as usize]
}

impl Table {
    /// The type of this name, which must be a line of the table.
    pub fn named(&self, name: &str) -> TypeId {
        *self.by_name.get(name).expect("asked for by a name that the table has a line for")
    }

    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0]
    }

    fn parse(text: &str, release: Release) -> Self {
        let lines: BTreeMap<&str, &str> =
            text.lines().filter_map(|line| line.split_once(' ')).collect();
        let mut table = Self { types: Vec::new(), by_name: BTreeMap::new() };
        for name in lines.keys() {
            table.intern(name, &lines, release);
        }
        table
    }

    fn intern(&mut self, name: &str, lines: &BTreeMap<&str, &str>, release: Release) -> TypeId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        // Entered before its parts, so that the parts may refer to it.
        let id = TypeId(self.types.len());
        self.types.push(Type { name: name.to_owned(), shape: Shape::Opaque });
        self.by_name.insert(name.to_owned(), id);
        let shape = self.shape(name, lines, release);
        self.types[id.0].shape = shape;
        id
    }

    fn shape(&mut self, name: &str, lines: &BTreeMap<&str, &str>, release: Release) -> Shape {
        if let Some(inner) = name.strip_prefix('*') {
            return Shape::Pointer(self.intern(inner, lines, release));
        }
        if let Some(inner) = name.strip_prefix("[]") {
            return Shape::List(self.intern(inner, lines, release));
        }
        if let Some((_, inner)) = name.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
            return Shape::Map(self.intern(inner, lines, release));
        }
        match name {
            "string" => Shape::Text,
            "bool" => Shape::Bool,
            "int32" => Shape::Int32,
            "int64" => Shape::Int64,
            "intstr.IntOrString" => Shape::IntOrString,
            "resource.Quantity" => Shape::Quantity,
            "v1.Time" => Shape::Time,
            _ => self.defined(name, lines, release),
        }
    }

    fn defined(&mut self, name: &str, lines: &BTreeMap<&str, &str>, release: Release) -> Shape {
        let Some(line) = lines.get(name) else { return Shape::Opaque };
        if let Some(kind) = line.strip_prefix("= ") {
            return self.shape(kind, lines, release);
        }
        let fields = line.trim_start_matches('{').trim_end_matches('}').split("; ");
        let fields = fields.filter_map(|field| {
            let mut words = field.split(' ');
            Some((words.next()?, words.next()?, words.next()))
        });
        let fields = fields.filter(|(field, ..)| exists(name, field, release));
        let fields = fields.map(|(field, of, json)| {
            let (field, of, json) = spelled(release, (field, of, json));
            let of = self.intern(of, lines, release);
            Field { name: field.to_owned(), json: json.map(str::to_owned), of }
        });
        Shape::Struct(fields.collect())
    }
}

fn exists(kind: &str, field: &str, release: Release) -> bool {
    let new = SINCE_1_37.iter().any(|(of, name)| *name == field && (of.is_empty() || *of == kind))
        || field == "Mode" && MODE_SINCE_1_37.contains(&kind);
    release >= Release::V1_37 || !new
}

/// Before 1.36 a pod named its workload, and not yet its scheduling group.
fn spelled<'t>(
    release: Release,
    field: (&'t str, &'t str, Option<&'t str>),
) -> (&'t str, &'t str, Option<&'t str>) {
    match field.0 {
        "SchedulingGroup" if release < Release::V1_36 => {
            ("WorkloadRef", "*v1.WorkloadReference", Some("workloadRef"))
        }
        _ => field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(release: Release, name: &str) -> Vec<&'static str> {
        let table = table(release);
        match &table.get(table.named(name)).shape {
            Shape::Struct(fields) => fields.iter().map(|field| field.name.as_str()).collect(),
            other => panic!("{name} is {other:?}"),
        }
    }

    #[test]
    fn every_type_that_a_field_names_is_in_the_table() {
        for release in [Release::V1_35, Release::V1_36, Release::V1_37] {
            let opaque = table(release).types.iter().filter(|of| matches!(of.shape, Shape::Opaque));
            let names: Vec<&str> = opaque.map(|of| of.name.as_str()).collect();
            assert_eq!(names, ["v1.FieldsV1"], "{release:?}");
        }
    }

    #[test]
    fn older_releases_have_fewer_fields() {
        assert!(fields(Release::V1_37, "v1.PodSpec").ends_with(&["EvictionResponders"]));
        assert!(fields(Release::V1_36, "v1.PodSpec").ends_with(&["SchedulingGroup"]));
        assert!(fields(Release::V1_35, "v1.PodSpec").ends_with(&["WorkloadRef"]));
        assert_eq!(fields(Release::V1_36, "v1.EmptyDirVolumeSource"), ["Medium", "SizeLimit"]);
        assert_eq!(fields(Release::V1_36, "v1.KeyToPath"), ["Key", "Path", "Mode"]);
    }
}
