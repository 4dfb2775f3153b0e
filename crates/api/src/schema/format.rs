//! The types of values, and the formats that are of effect on them.

use crate::text::format::checker;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// A format that is of effect on its type.
#[derive(Debug)]
pub(super) enum Format {
    Int32,
    Int64,
    Float,
    Double,
    Text { name: String, accepts: fn(&str) -> bool },
}

impl Format {
    pub(super) fn parse(name: &str, types: &[Type]) -> Option<Self> {
        match (types, name) {
            ([Type::Integer], "int32") => Some(Self::Int32),
            ([Type::Integer], "int64") => Some(Self::Int64),
            ([Type::Number], "float") => Some(Self::Float),
            ([Type::Number], "double") => Some(Self::Double),
            ([] | [Type::String], _) => {
                let accepts = checker(&name.replace('-', ""))?;
                Some(Self::Text { name: name.to_owned(), accepts })
            }
            _ => None,
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float => "float",
            Self::Double => "double",
            Self::Text { name, .. } => name,
        }
    }

    pub(super) fn accepts(&self, text: &str) -> bool {
        match self {
            Self::Text { accepts, .. } => accepts(text),
            _ => true,
        }
    }
}

impl Type {
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_of_effect_on_its_type() {
        assert!(Format::parse("date", &[Type::String]).is_some_and(|it| it.accepts("2024-02-29")));
        assert!(Format::parse("uint32", &[Type::Integer]).is_none());
        assert!(Format::parse("no-such-thing", &[Type::String]).is_none());
    }
}
