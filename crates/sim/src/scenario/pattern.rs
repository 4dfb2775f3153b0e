//! Patterns for names and images: `*` stands for any text, everything else for itself.

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == text };
        let Some(mut left) = text.strip_prefix(first) else { return false };
        let mut parts = rest.split('*').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return left.ends_with(part);
            }
            // The earliest place leaves the most for the parts that follow.
            match left.find(part) {
                Some(at) => left = &left[at + part.len()..],
                None => return false,
            }
        }
        true
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let cases = [
            ("nginx:1.25", "nginx:1.25", true),
            ("nginx:1.25", "nginx:1.2", false),
            ("*", "", true),
            ("nginx:*", "nginx:1.25", true),
            ("*:bad", "registry/app:bad", true),
            ("*/app:*-rc*", "registry/app:2-rc1", true),
            ("*/app:*-rc*", "registry/app:2", false),
            ("a*a", "a", false),
            ("a*b*b", "ab", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Pattern::from(pattern).matches(text), expected, "{pattern} {text}");
        }
    }
}
