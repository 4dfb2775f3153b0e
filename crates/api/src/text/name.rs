//! Names as Kubernetes allows them, and what it says about those it does not.

use std::sync::LazyLock;

use regex::Regex;

/// A kind of name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    LabelValue,
    QualifiedName,
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const PLAIN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

impl Name {
    /// Why `text` is no name of this kind; empty if it is one.
    pub fn errors(self, text: &str) -> Vec<String> {
        match self {
            Self::Dns1123Label => check(text, 63, LABEL, |pattern| {
                format!(
                    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{pattern}')"
                )
            }),
            Self::Dns1123Subdomain => check(text, 253, SUBDOMAIN, |pattern| {
                format!(
                    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{pattern}')"
                )
            }),
            Self::Dns1035Label => check(text, 63, LABEL_1035, |pattern| {
                format!(
                    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{pattern}')"
                )
            }),
            Self::LabelValue => check(text, 63, VALUE, |pattern| {
                format!(
                    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{pattern}')"
                )
            }),
            Self::QualifiedName => qualified(text),
        }
    }

    pub fn accepts(self, text: &str) -> bool {
        self.errors(text).is_empty()
    }
}

/// An optional subdomain, a slash, and a plain name.
fn qualified(text: &str) -> Vec<String> {
    let plain = |pattern: &str| {
        format!(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{pattern}')"
        )
    };
    let (prefix, name) = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                plain(PLAIN)
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let mut errors = match prefix {
        Some("") => vec!["prefix part must be non-empty".to_owned()],
        Some(prefix) => part("prefix part", Name::Dns1123Subdomain.errors(prefix)),
        None => Vec::new(),
    };
    errors.extend(part(
        "name part",
        match name {
            "" => vec!["must be non-empty".to_owned()],
            name => check(name, 63, PLAIN, plain),
        },
    ));
    errors
}

fn part(part: &str, errors: Vec<String>) -> Vec<String> {
    errors.into_iter().map(|error| format!("{part} {error}")).collect()
}

fn check(
    text: &str,
    longest: usize,
    pattern: &str,
    message: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > longest {
        errors.push(format!("must be no more than {longest} bytes"));
    }
    if !matches(pattern, text) {
        errors.push(message(pattern));
    }
    errors
}

/// Each pattern is compiled once.
fn matches(pattern: &str, text: &str) -> bool {
    static PATTERNS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
        let compile =
            |pattern| Regex::new(&format!("^({pattern})$")).expect("patterns are constants");
        [LABEL, SUBDOMAIN, LABEL_1035, PLAIN, VALUE]
            .map(|pattern| (pattern, compile(pattern)))
            .into()
    });
    PATTERNS.iter().any(|(known, regex)| *known == pattern && regex.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let cases = [
            (Name::Dns1123Label, "web-1", true),
            (Name::Dns1123Label, "Web", false),
            (Name::Dns1123Label, "a.b", false),
            (Name::Dns1123Subdomain, "a.b", true),
            (Name::Dns1035Label, "1a", false),
            (Name::LabelValue, "", true),
            (Name::LabelValue, "a_b", true),
            (Name::LabelValue, "-a", false),
            (Name::QualifiedName, "example.com/My.Name", true),
            (Name::QualifiedName, "/x", false),
            (Name::QualifiedName, "a/b/c", false),
        ];
        for (kind, text, want) in cases {
            assert_eq!(kind.accepts(text), want, "{kind:?} {text}");
        }
        let long = Name::Dns1123Label.errors(&"x".repeat(64));
        assert_eq!(long, ["must be no more than 63 bytes"]);
    }
}
