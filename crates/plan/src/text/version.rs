//! Package versions: semantic versions in the lenient spelling that the API takes.

use std::cmp::Ordering;

/// A version, for comparing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    numbers: [u64; 3],
    /// Empty for a release, which comes after all of its pre-releases.
    pre_release: Vec<Identifier>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    // Numbers come before words.
    Number(u64),
    Word(String),
}

impl Version {
    /// Reads `1`, `1.2`, `v1.2.3`, `1.2.3-rc.1+build`. Pre-release and build need all three
    /// numbers, and numbers have no leading zeros.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = split(text, '+');
        let (core, pre_release) = split(text, '-');
        let parts: Vec<&str> = core.split('.').collect();
        let suffixed = build.is_some() || pre_release.is_some();
        if parts.len() > 3 || suffixed && parts.len() != 3 {
            return None;
        }
        let mut numbers = [0; 3];
        for (slot, part) in numbers.iter_mut().zip(&parts) {
            *slot = number(part)?;
        }
        build.is_none_or(|build| build.split('.').all(is_identifier)).then_some(())?;
        let pre_release = match pre_release {
            Some(text) => text.split('.').map(identifier).collect::<Option<_>>()?,
            None => Vec::new(),
        };
        Some(Self { numbers, pre_release })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_pre_release = || match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.pre_release.cmp(&other.pre_release),
        };
        self.numbers.cmp(&other.numbers).then_with(by_pre_release)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether `new` comes before `old`. Texts of equal precedence, and texts that are no
/// versions, do not: the new one is then an upgrade.
pub(crate) fn is_downgrade(old: &str, new: &str) -> bool {
    match (Version::parse(old), Version::parse(new)) {
        (Some(old), Some(new)) => new < old,
        _ => false,
    }
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(head, tail)| (head, Some(tail)))
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = text.len() == 1 || !text.starts_with('0');
    (digits && plain).then(|| text.parse().unwrap_or(u64::MAX))
}

fn identifier(text: &str) -> Option<Identifier> {
    if !is_identifier(text) {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(text).map(Identifier::Number);
    }
    Some(Identifier::Word(text.to_owned()))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lenient_spelling_is_read() {
        for text in ["1", "1.2", "v1.2.3", "2024.7.7-test", "1.2.3-rc.1+b.01", "0.0.0", "1.0.0--a"]
        {
            assert!(Version::parse(text).is_some(), "{text}");
        }
        for text in
            ["", "v", "1.2.3.4", "01.2", "1.2-rc", "1.2.3-", "1.2.3-01", "1.2.3+", "x", "1..2"]
        {
            assert!(Version::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn precedence_is_semantic() {
        let ascending = ["0.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-rc.2"];
        let ascending = ascending.iter().chain(&["1.0.0-rc.11", "1.0.0", "1.2", "1.10.0", "2"]);
        let versions: Vec<Version> = ascending.filter_map(|text| Version::parse(text)).collect();
        assert_eq!(versions.len(), 10);
        assert!(versions.is_sorted_by(|a, b| a < b));
        assert!(is_downgrade("1.2.6", "1.2.5"));
        assert!(!is_downgrade("1.2", "1.2.0"));
        assert!(!is_downgrade("main", "1.0.0"));
    }
}
