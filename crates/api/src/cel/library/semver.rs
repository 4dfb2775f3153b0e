//! `semver('1.2.3')`: semantic versions.

use cel::common::types::{BOOL_TYPE, CelBool, STRING_TYPE, Type};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError};
use semver::Version;

use super::native::{NativeType, native, number, returned, truth};
use super::quantity::order;
use super::{Arguments, CallResult, failed, global, member, text};

static SEMVER: Type = Type::new_unspecified_type("kubernetes.Semver");

impl NativeType for Version {
    const TYPE: &'static Type = &SEMVER;

    fn text(&self) -> String {
        self.to_string()
    }
}

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    let version = || SEMVER.to_owned();
    env.add_type(version())?;
    for signature in [&[STRING_TYPE][..], &[STRING_TYPE, BOOL_TYPE]] {
        global(env, "semver", signature, |arguments| match parse(&arguments)? {
            Some(version) => returned(version),
            None => failed("semver", "Invalid Semantic Version"),
        })?;
        global(env, "isSemver", signature, |arguments| truth(parse(&arguments)?.is_some()))?;
    }
    member(env, "major", &[version()], |arguments| part(&arguments, |version| version.major))?;
    member(env, "minor", &[version()], |arguments| part(&arguments, |version| version.minor))?;
    member(env, "patch", &[version()], |arguments| part(&arguments, |version| version.patch))?;
    member(env, "isGreaterThan", &[version(), version()], |arguments| {
        truth(compare(&arguments)? > 0)
    })?;
    member(env, "isLessThan", &[version(), version()], |arguments| {
        truth(compare(&arguments)? < 0)
    })?;
    member(env, "compareTo", &[version(), version()], |arguments| number(compare(&arguments)?))
}

fn parse(arguments: &[CowVal<'_, '_>]) -> Result<Option<Version>, ExecutionError> {
    let text = text(&arguments[0])?;
    let tolerant = arguments.get(1).and_then(|flag| flag.downcast_ref::<CelBool>());
    let is_tolerant = tolerant.is_some_and(|flag| *flag.inner());
    Ok(if is_tolerant { normalised(text).parse().ok() } else { text.parse().ok() })
}

/// Without a leading `v` and leading zeros, and with all three numbers.
fn normalised(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (numbers, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let mut parts: Vec<&str> = numbers.split('.').collect();
    // Versions that are not whole have no labels either.
    if parts.len() < 3 && rest.is_empty() {
        parts.resize(3, "0");
    }
    let stripped = parts.iter().map(|part| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0",
        digits => digits,
    });
    stripped.collect::<Vec<_>>().join(".") + rest
}

fn part<'b, 'v>(arguments: &Arguments<'b, 'v>, part: fn(&Version) -> u64) -> CallResult<'b, 'v> {
    number(i64::try_from(part(native::<Version>(&arguments[0])?)).unwrap_or(i64::MAX))
}

fn compare(arguments: &[CowVal<'_, '_>]) -> Result<i64, ExecutionError> {
    let (left, right) = (native::<Version>(&arguments[0])?, native::<Version>(&arguments[1])?);
    Ok(order(left.cmp_precedence(right)))
}
