//! One node of a schema, read from JSON once so that checking does not.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::format::Format;
pub(super) use super::format::Type;
use super::rule::Rule;

/// What a schema says about one value.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the keywords of a schema are flags")]
pub(super) struct Node {
    /// Empty where any type will do; `integer` and `string` for int-or-string.
    pub types: Vec<Type>,
    pub nullable: bool,
    pub format: Option<Format>,
    pub allowed: Vec<Value>,
    pub pattern: Option<Pattern>,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    pub multiple_of: Option<f64>,
    pub length: Counts,
    pub item_count: Counts,
    pub property_count: Counts,
    pub required: Vec<String>,
    pub properties: BTreeMap<String, Node>,
    pub additional: Additional,
    pub items: Option<Box<Node>>,
    pub unique_items: bool,
    pub all_of: Vec<Node>,
    pub any_of: Vec<Node>,
    pub one_of: Vec<Node>,
    pub not: Option<Box<Node>>,
    pub preserve_unknown: bool,
    pub embedded: bool,
    pub list_type: ListType,
    pub default: Option<Value>,
    pub rules: Vec<Rule>,
    /// Whether this node or one below it has rules.
    pub has_rules: bool,
}

/// The least or greatest number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub limit: f64,
    pub exclusive: bool,
}

/// The fewest and the most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub min: Option<i64>,
    pub max: Option<i64>,
}

#[derive(Debug)]
pub(super) struct Pattern {
    pub source: String,
    /// None where the source is no pattern; nothing matches it then.
    pub regex: Option<Regex>,
}

/// What fields there may be beside the named ones.
#[derive(Debug, Default)]
pub(super) enum Additional {
    /// Nothing is said about them; they are pruned.
    #[default]
    Unsaid,
    Any,
    Forbidden,
    Like(Box<Node>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ListType {
    #[default]
    Atomic,
    Set,
    Map {
        keys: Vec<String>,
    },
}

impl Node {
    pub(super) fn compile(schema: &Value) -> Self {
        let int_or_string = flag(schema, "x-kubernetes-int-or-string");
        let types = match schema["type"].as_str().and_then(Type::parse) {
            _ if int_or_string => vec![Type::Integer, Type::String],
            kind => kind.into_iter().collect(),
        };
        let format = schema["format"].as_str().and_then(|name| Format::parse(name, &types));
        let properties = schema["properties"].as_object().into_iter().flatten();
        let mut node = Self {
            nullable: flag(schema, "nullable"),
            format,
            allowed: schema["enum"].as_array().cloned().unwrap_or_default(),
            pattern: schema["pattern"].as_str().filter(|text| !text.is_empty()).map(Pattern::new),
            minimum: Bound::read(schema, "minimum", "exclusiveMinimum"),
            maximum: Bound::read(schema, "maximum", "exclusiveMaximum"),
            multiple_of: schema["multipleOf"].as_f64(),
            length: Counts::read(schema, "minLength", "maxLength"),
            item_count: Counts::read(schema, "minItems", "maxItems"),
            property_count: Counts::read(schema, "minProperties", "maxProperties"),
            required: strings(&schema["required"]),
            properties: properties
                .map(|(key, value)| (key.clone(), Self::compile(value)))
                .collect(),
            additional: Additional::read(&schema["additionalProperties"]),
            items: schema["items"].is_object().then(|| Box::new(Self::compile(&schema["items"]))),
            unique_items: flag(schema, "uniqueItems"),
            all_of: branches(&schema["allOf"]),
            any_of: branches(&schema["anyOf"]),
            one_of: branches(&schema["oneOf"]),
            not: schema["not"].is_object().then(|| Box::new(Self::compile(&schema["not"]))),
            preserve_unknown: flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(schema, "x-kubernetes-embedded-resource"),
            list_type: ListType::read(schema),
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            rules: Rule::read_all(&schema["x-kubernetes-validations"]),
            types,
            has_rules: false,
        };
        node.has_rules = !node.rules.is_empty() || node.children().any(|child| child.has_rules);
        node
    }

    /// The schema of a field, by name or by what fields without a name are like.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Additional::Like(node) => Some(node),
            _ => None,
        })
    }

    pub(super) fn is(&self, kind: Type) -> bool {
        self.types.contains(&kind)
    }

    fn children(&self) -> impl Iterator<Item = &Self> {
        let additional = match &self.additional {
            Additional::Like(node) => Some(&**node),
            _ => None,
        };
        self.properties.values().chain(additional).chain(self.items.as_deref()).chain(&self.all_of)
    }
}

impl Bound {
    fn read(schema: &Value, limit: &str, exclusive: &str) -> Option<Self> {
        Some(Self { limit: schema[limit].as_f64()?, exclusive: flag(schema, exclusive) })
    }
}

impl Counts {
    fn read(schema: &Value, min: &str, max: &str) -> Self {
        Self { min: schema[min].as_i64(), max: schema[max].as_i64() }
    }
}

impl Pattern {
    fn new(source: &str) -> Self {
        Self { source: source.to_owned(), regex: Regex::new(source).ok() }
    }
}

impl Additional {
    fn read(value: &Value) -> Self {
        match value {
            Value::Bool(true) => Self::Any,
            Value::Bool(false) => Self::Forbidden,
            Value::Object(_) => Self::Like(Box::new(Node::compile(value))),
            _ => Self::Unsaid,
        }
    }
}

impl ListType {
    fn read(schema: &Value) -> Self {
        match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => Self::Set,
            Some("map") => Self::Map { keys: strings(&schema["x-kubernetes-list-map-keys"]) },
            _ => Self::Atomic,
        }
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema[name].as_bool().unwrap_or(false)
}

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn branches(value: &Value) -> Vec<Node> {
    value.as_array().into_iter().flatten().map(Node::compile).collect()
}
