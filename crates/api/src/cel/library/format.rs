//! `format.dns1123Label().validate(text)`: named formats, and why a text breaks one.

use cel::common::types::{CelOptional, STRING_TYPE, Type};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env};
use serde_json::Value;

use super::native::{Native, NativeType, native, returned};
use super::{Arguments, CallResult, global, member, text};
use crate::cel::library::value::from_json;
use crate::text::Name;
use crate::text::format::is_of_format;

static FORMAT: Type = Type::new_unspecified_type("kubernetes.NamedFormat");

/// A format by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named(&'static str);

impl NativeType for Named {
    const TYPE: &'static Type = &FORMAT;

    fn text(&self) -> String {
        self.0.to_owned()
    }
}

pub(super) fn text_of(value: &dyn cel::common::value::Val) -> Option<String> {
    super::native::text_of::<Named>(value)
}

/// The formats there are, each with the function that names it.
macro_rules! formats {
    ($($name:literal),* $(,)?) => {
        const NAMES: &[&str] = &[$($name),*];

        fn declare(env: &mut Env) -> Result<(), DeclarationError> {
            $(global(env, concat!("format.", $name), &[], |_| returned(Named($name)))?;)*
            Ok(())
        }
    };
}

formats!(
    "byte",
    "date",
    "datetime",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "labelValue",
    "qualifiedName",
    "uri",
    "uuid",
);

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(FORMAT.to_owned())?;
    declare(env)?;
    global(env, "format.named", &[STRING_TYPE], named)?;
    member(env, "validate", &[FORMAT.to_owned(), STRING_TYPE], validate)
}

fn named<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let wanted = text(&arguments[0])?;
    let found = NAMES.iter().find(|name| **name == wanted);
    Ok(CowVal::owned(match found {
        Some(name) => CelOptional::of(Box::new(Native(Named(name)))),
        None => CelOptional::none(),
    }))
}

/// Nothing if the text is fine, else what is wrong with it.
fn validate<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let (Named(format), text) = (*native::<Named>(&arguments[0])?, text(&arguments[1])?);
    let errors = errors(format, text);
    Ok(CowVal::owned(if errors.is_empty() {
        CelOptional::none()
    } else {
        CelOptional::of(from_json(&Value::from(errors)))
    }))
}

fn errors(format: &str, text: &str) -> Vec<String> {
    let kind = match format.strip_suffix("Prefix").unwrap_or(format) {
        "dns1123Label" => Some(Name::Dns1123Label),
        "dns1123Subdomain" => Some(Name::Dns1123Subdomain),
        "dns1035Label" => Some(Name::Dns1035Label),
        "qualifiedName" => Some(Name::QualifiedName),
        "labelValue" => Some(Name::LabelValue),
        _ => None,
    };
    if let Some(kind) = kind {
        // A prefix may end in the dash that something is put behind.
        let whole = match text.strip_suffix('-') {
            Some(start) if format.ends_with("Prefix") => format!("{start}a"),
            _ => text.to_owned(),
        };
        return kind.errors(&whole);
    }
    let complaint = match format {
        "uri" => format!("parse {text:?}: invalid URI for request"),
        "uuid" => "does not match the UUID format".to_owned(),
        "byte" => "invalid base64".to_owned(),
        "date" => "invalid date".to_owned(),
        _ => "invalid datetime".to_owned(),
    };
    if is_of_format(format, text) { Vec::new() } else { vec![complaint] }
}
