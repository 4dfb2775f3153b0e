//! `url('https://a.example:80/x?y=1')`: absolute URIs, and paths from the root.

use cel::common::types::{STRING_TYPE, Type};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env};
use serde_json::{Map, Value};

use super::native::{NativeType, native, returned, string, truth};
use super::{Arguments, CallResult, failed, global, member, text};
use crate::cel::library::value::from_json;

static URL: Type = Type::new_unspecified_type("kubernetes.URL");

/// A URL in parts, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Url {
    source: String,
    scheme: String,
    /// With the port, without the user.
    host: String,
    path: String,
    query: String,
}

impl NativeType for Url {
    const TYPE: &'static Type = &URL;

    fn text(&self) -> String {
        self.source.clone()
    }
}

pub(super) fn text_of(value: &dyn cel::common::value::Val) -> Option<String> {
    super::native::text_of::<Url>(value)
}

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    let url = || URL.to_owned();
    env.add_type(url())?;
    global(env, "url", &[STRING_TYPE], |arguments| match parse(text(&arguments[0])?) {
        Some(url) => returned(url),
        None => failed("url", "URL parse error during conversion from string"),
    })?;
    global(env, "isURL", &[STRING_TYPE], |arguments| truth(parse(text(&arguments[0])?).is_some()))?;
    member(env, "getScheme", &[url()], |arguments| string(part(&arguments)?.scheme.clone()))?;
    member(env, "getHost", &[url()], |arguments| string(part(&arguments)?.host.clone()))?;
    member(env, "getHostname", &[url()], |arguments| string(part(&arguments)?.host_and_port().0))?;
    member(env, "getPort", &[url()], |arguments| string(part(&arguments)?.host_and_port().1))?;
    member(env, "getEscapedPath", &[url()], |arguments| string(escaped(&part(&arguments)?.path)))?;
    member(env, "getQuery", &[url()], query)
}

fn part<'a>(arguments: &'a Arguments<'_, '_>) -> Result<&'a Url, cel::ExecutionError> {
    native::<Url>(&arguments[0])
}

fn parse(text: &str) -> Option<Url> {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return None;
    }
    let (scheme, rest) = match text.split_once(':') {
        _ if text.starts_with('/') => ("", text),
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        _ => return None,
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host_is_plain = !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}']);
    let is_sound = host_is_plain && has_port(host) && has_escapes(path);
    is_sound.then(|| Url {
        source: text.to_owned(),
        scheme: scheme.to_lowercase(),
        host: host.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
    })
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Whether what follows the last colon of a host is a port, if anything does.
fn has_port(host: &str) -> bool {
    let after = match host.rsplit_once(']') {
        Some((_, after)) => after,
        None if host.starts_with('[') => return false,
        None => host.find(':').map_or("", |colon| &host[colon..]),
    };
    let digits = after.strip_prefix(':').unwrap_or(after);
    (after.is_empty() || after.starts_with(':'))
        && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// Whether every `%` is followed by two hexadecimal digits.
fn has_escapes(text: &str) -> bool {
    let is_escape =
        |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|digit| digit.is_ascii_hexdigit());
    text.split('%').skip(1).all(is_escape)
}

/// A path with what may not stand in one written as `%XX`.
fn escaped(path: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@%!'()*[]".contains(&byte);
    let write = |byte: u8| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    path.bytes().map(write).collect()
}

impl Url {
    fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rsplit_once(']') {
            Some((host, port)) => (host, port.trim_start_matches(':')),
            None => self.host.split_once(':').unwrap_or((&self.host, "")),
        };
        (host.trim_start_matches('['), port)
    }
}

/// Every parameter with its values in order; pairs that cannot be decoded are left out.
fn query<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let mut found = Map::new();
    for pair in part(&arguments)?.query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Some(key), Some(value)) = (decoded(key), decoded(value))
            && let Value::Array(values) =
                found.entry(key).or_insert_with(|| Value::Array(Vec::new()))
        {
            values.push(Value::String(value));
        }
    }
    Ok(CowVal::Owned(from_json(&Value::Object(found))))
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &tail[2..];
            }
            plain => bytes.push(*plain),
        }
    }
    String::from_utf8(bytes).ok()
}
