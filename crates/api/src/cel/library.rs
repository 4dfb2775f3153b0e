//! The functions that Kubernetes adds to CEL, and the environment that holds them all.

#![expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "the interpreter's signature of a function"
)]

mod bind;
mod format;
mod jsonpatch;
mod lists;
mod native;
mod net;
pub(super) mod operators;
mod pairs;
mod quantity;
mod regex;
mod semver;
mod sets;
mod url;
pub(super) mod value;

use std::sync::{Arc, LazyLock};

use cel::common::functions::Function;
use cel::common::types::{CelString, Type};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, extensions};

use crate::text::Quantity;

/// Names before a dot that belong to functions and are no variables.
pub(super) const NAMESPACES: &[&str] =
    &["base64", "cel", "format", "ip", "jsonpatch", "lists", "math", "optional", "sets", "strings"];

/// What an overload gets and gives.
type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;
type CallResult<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// The environment of every expression, built once.
pub(super) fn environment() -> &'static Arc<Env> {
    static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
        Arc::new(build().expect("names and signatures in the library are distinct"))
    });
    &ENVIRONMENT
}

/// The text of a value of one of the library's own types.
pub(super) fn text_of(value: &dyn Val) -> Option<String> {
    native::text_of::<Quantity>(value)
        .or_else(|| native::text_of::<::semver::Version>(value))
        .or_else(|| net::text_of(value))
        .or_else(|| url::text_of(value))
        .or_else(|| format::text_of(value))
}

fn build() -> Result<Env, DeclarationError> {
    let mut env = Env::stdlib();
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    env.add_extension(extensions::math)?;
    env.add_extension(extensions::encoders)?;
    env.add_extension(bind::extension)?;
    env.add_extension(operators::extension)?;
    env.add_extension(lists::extension)?;
    env.add_extension(regex::extension)?;
    env.add_extension(sets::extension)?;
    env.add_extension(pairs::extension)?;
    env.add_extension(quantity::extension)?;
    env.add_extension(net::extension)?;
    env.add_extension(url::extension)?;
    env.add_extension(semver::extension)?;
    env.add_extension(format::extension)?;
    env.add_extension(jsonpatch::extension)?;
    Ok(env)
}

/// Declares `target.name(arguments…)`.
fn member(
    env: &mut Env,
    name: &str,
    types: &[Type],
    function: Function,
) -> Result<(), DeclarationError> {
    let signature: Vec<_> = types.iter().map(Type::name).collect();
    let id = format!("convoy:{}", signature.join(","));
    let arguments = types[1..].iter().map(ToOwned::to_owned).collect();
    env.add_member_overload(name, &id, types[0].to_owned(), arguments, function)
}

/// Declares `name(arguments…)`.
fn global(
    env: &mut Env,
    name: &str,
    types: &[Type],
    function: Function,
) -> Result<(), DeclarationError> {
    let signature: Vec<_> = types.iter().map(Type::name).collect();
    let id = format!("convoy:global:{}", signature.join(","));
    let arguments = types.iter().map(ToOwned::to_owned).collect();
    env.add_overload(name, &id, arguments, function)
}

/// An argument that its overload declared to be a string.
fn text<'a>(argument: &'a CowVal<'_, '_>) -> Result<&'a str, ExecutionError> {
    match argument.downcast_ref::<CelString>() {
        Some(text) => Ok(text.inner()),
        None => Err(ExecutionError::no_such_overload("", Vec::new())),
    }
}

fn failed<T>(function: &str, message: impl ToString) -> Result<T, ExecutionError> {
    Err(ExecutionError::function_error(function, message))
}
