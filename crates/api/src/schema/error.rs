//! Field errors, worded as an API server words them.

use serde_json::Value;

use super::go;

/// One field that breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Dotted path with indices, e.g. `spec.compartments[0].budget.percent`.
    pub field: String,
    /// In the API server's words, with the value at fault.
    pub message: String,
    pub reason: Reason,
    /// Whether an API server reports the error without a field, though it is about one.
    pub detached: bool,
    /// Whether it counts though nothing changed at the field: the error is about the change itself,
    /// or a rule could not be evaluated.
    pub unratcheted: bool,
    /// What the schema wants of a value that is of another type, or of another format.
    pub wanted: Option<Box<str>>,
    /// The words that the schema lists, where the value is none of them.
    pub supported: Vec<Box<str>>,
}

/// The cause that an API server gives for a field error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Invalid,
    TypeInvalid,
    Required,
    NotSupported,
    Duplicate,
    Forbidden,
    TooLong,
    TooMany,
}

impl Reason {
    /// The `reason` of a cause in a Status.
    pub fn code(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    /// Whether CEL rules cannot be trusted with an object that has such an error.
    pub(super) fn blocks_rules(self) -> bool {
        matches!(
            self,
            Self::NotSupported | Self::Required | Self::TooLong | Self::TooMany | Self::TypeInvalid
        )
    }

    fn title(self) -> &'static str {
        match self {
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Required => "Required value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

impl FieldError {
    /// An error in words of its own.
    pub fn new(field: String, message: String, reason: Reason) -> Self {
        let (wanted, supported) = (None, Vec::new());
        Self { field, message, reason, detached: false, unratcheted: false, wanted, supported }
    }

    /// An error that shows the value at fault.
    pub fn about(reason: Reason, field: &str, value: &Value, detail: &str) -> Self {
        let value = go::shown(value);
        let title = reason.title();
        let message = match detail {
            "" => format!("{title}: {value}"),
            detail => format!("{title}: {value}: {detail}"),
        };
        Self::new(field.to_owned(), message, reason)
    }

    /// An error that leaves the value out.
    pub fn plain(reason: Reason, field: &str, detail: &str) -> Self {
        let message = match detail {
            "" => reason.title().to_owned(),
            detail => format!("{}: {detail}", reason.title()),
        };
        Self::new(field.to_owned(), message, reason)
    }

    /// An error about a value of another type than `wanted`, or of another format.
    pub(super) fn mistyped(field: &str, wanted: &str, value: &str, got: &str) -> Self {
        let detail = format!("{field} in body must be of type {wanted}: {}", go::quoted(got));
        let error = Self::about(Reason::TypeInvalid, field, &Value::from(value), &detail);
        Self { wanted: Some(wanted.into()), ..error }
    }

    pub fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self::about(Reason::Invalid, field, value, detail)
    }

    /// What an API server reports of no field in particular.
    pub(super) fn detached(field: &str, detail: &str) -> Self {
        let error = Self::invalid(field, &Value::String(String::new()), detail);
        Self { detached: true, ..error }
    }

    pub(super) fn rules_skipped() -> Self {
        let detail = "some validation rules were not checked because the object was invalid; \
                      correct the existing errors to complete validation";
        Self { detached: true, ..Self::invalid("", &Value::Null, detail) }
    }

    /// The field as an API server reports it.
    pub fn reported_field(&self) -> &str {
        if self.detached { "<nil>" } else { &self.field }
    }
}

/// `field: message`, as an API server prints it.
impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.reported_field(), self.message)
    }
}
