//! The formats of texts that Kubernetes checks. Others are of no effect, as in an API server.

mod checksum;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;

use super::GoDuration;

/// Whether `text` is of a format that Kubernetes knows.
pub(crate) fn is_of_format(name: &str, text: &str) -> bool {
    checker(name).is_some_and(|accepts| accepts(text))
}

macro_rules! pattern {
    ($source:expr) => {{
        static PATTERN: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($source).expect("patterns of formats are constants"));
        |text: &str| PATTERN.is_match(text)
    }};
}

/// How texts of a format are told, by its name without dashes.
pub(crate) fn checker(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name {
        "datetime" => is_date_time,
        "date" => |text| text.len() == 10 && text.parse::<Date>().is_ok(),
        "duration" => is_duration,
        "byte" => is_base64,
        "password" => |_| true,
        "ipv4" => |text| address(text).is_some_and(|address| address.to_canonical().is_ipv4()),
        "ipv6" => |text| text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "uri" => is_uri,
        "email" => pattern!(
            r"^([^<>@]*<)?[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+@[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+>?$"
        ),
        "hostname" => is_hostname,
        "mac" => is_mac,
        "uuid" => {
            pattern!("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
        }
        "uuid3" => {
            pattern!("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
        }
        "uuid4" => {
            pattern!(
                "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"
            )
        }
        "uuid5" => {
            pattern!(
                "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"
            )
        }
        "hexcolor" => pattern!("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        "bsonobjectid" => pattern!("^[0-9a-fA-F]{24}$"),
        "ssn" => pattern!(r"^\d{3}[- ]\d{2}[- ]\d{4}$"),
        "rgbcolor" => is_rgb,
        "creditcard" => checksum::is_credit_card,
        "isbn" => |text| checksum::is_isbn10(text) || checksum::is_isbn13(text),
        "isbn10" => checksum::is_isbn10,
        "isbn13" => checksum::is_isbn13,
        "k8sshortname" => {
            |text| text.len() <= 63 && (pattern!("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))(text)
        }
        "k8slongname" => |text| {
            let is_name =
                pattern!(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$");
            text.len() <= 253 && is_name(text)
        },
        _ => return None,
    })
}

fn is_date_time(text: &str) -> bool {
    let time = pattern!(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$");
    let lower = text.to_ascii_lowercase();
    let Some((date, clock)) = lower.split_once('t') else { return false };
    let in_range = |range: std::ops::Range<usize>, max| clock.get(range).is_some_and(|n| n <= max);
    date.parse::<Date>().is_ok()
        && time(clock)
        && in_range(0..2, "23")
        && in_range(3..5, "59")
        && in_range(6..8, "59")
}

/// Go's durations, and numbers with spelled-out units such as `2 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: &[&str] = &["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    const SHORT: &[&str] = &["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    static PARTS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(\d+)\s*([A-Za-zµ]+)").expect("patterns of formats are constants")
    });
    let is_unit = |unit: &str| {
        let unit = unit.to_lowercase();
        SHORT.contains(&unit.as_str()) || UNITS.iter().any(|prefix| unit.starts_with(prefix))
    };
    text.parse::<GoDuration>().is_ok()
        || PARTS
            .captures_iter(text)
            .any(|part| part.get(2).is_some_and(|unit| is_unit(unit.as_str())))
}

fn is_base64(text: &str) -> bool {
    let is_alphabet = pattern!("^[A-Za-z0-9+/]*={0,2}$");
    !text.is_empty() && text.len().is_multiple_of(4) && is_alphabet(text)
}

/// Octets may have leading zeros, which are of no meaning.
fn address(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse().ok();
    }
    let octet = |octet: &str| match octet.trim_start_matches('0') {
        "" if !octet.is_empty() => "0".to_owned(),
        digits => digits.to_owned(),
    };
    let octets: Vec<String> = text.split('.').map(octet).collect();
    octets.join(".").parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

fn is_cidr(text: &str) -> bool {
    let Some((network, length)) = text.split_once('/') else { return false };
    let max = match address(network) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    length.bytes().all(|digit| digit.is_ascii_digit())
        && length.parse::<u8>().is_ok_and(|length| length <= max)
}

/// 6, 8 or 20 bytes: in pairs, in fours, or run together.
fn is_mac(text: &str) -> bool {
    let is_address = pattern!(
        r"(?i)^([0-9a-f]{2}(:[0-9a-f]{2})+|[0-9a-f]{2}(-[0-9a-f]{2})+|[0-9a-f]{4}(\.[0-9a-f]{4})+|[0-9a-f]+)$"
    );
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
    is_address(text) && [12, 16, 40].contains(&digits)
}

/// An absolute URI, or a path from the root.
fn is_uri(text: &str) -> bool {
    let is_absolute = pattern!(r"^([A-Za-z][A-Za-z0-9+.-]*:|/)[^\x00-\x20\x7f]*$");
    is_absolute(text)
}

/// A lone label, whose only dash may be its second letter, or a domain that ends in a label of
/// letters.
fn is_hostname(text: &str) -> bool {
    let is_symbol = pattern!(r"^[a-zA-Z0-9\p{S}\p{L}]*$");
    let is_letters = pattern!(r"^[a-zA-Z\p{L}]{2,63}$");
    let is_label =
        pattern!(r"^[a-zA-Z0-9\p{S}\p{L}]([a-zA-Z0-9\p{S}\p{L}-]*[a-zA-Z0-9\p{S}\p{L}])?$");
    let is_known = match text.rsplit_once('.') {
        Some((labels, last)) => is_letters(last) && labels.split('.').all(is_label),
        None => match text.split_once('-') {
            Some((first, rest)) => {
                first.chars().count() == 1 && is_symbol(first) && is_symbol(rest)
            }
            None => !text.is_empty() && is_symbol(text),
        },
    };
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && is_known
}

/// `rgb(1, 20, 255)`.
fn is_rgb(text: &str) -> bool {
    let channels = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let is_channel = |channel: &str| {
        let channel = channel.trim();
        let is_plain = channel == "0" || channel.starts_with(|first| ('1'..='9').contains(&first));
        is_plain && channel.parse::<u8>().is_ok()
    };
    channels.is_some_and(|channels| {
        channels.split(',').count() == 3 && channels.split(',').all(is_channel)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_by_format() {
        let cases = [
            ("date-time", "2026-01-01T00:00:00Z", true),
            ("date-time", "2026-01-01T00:00:00.123+01:00", true),
            ("date-time", "2026-01-01 00:00:00Z", false),
            ("date-time", "2026-01-01T25:00:00Z", false),
            ("date", "2026-02-29", false),
            ("date", "2024-02-29", true),
            ("duration", "1h30m", true),
            ("duration", "2 days", true),
            ("duration", "soon", false),
            ("byte", "aGk=", true),
            ("byte", "aGk", false),
            ("ipv4", "10.0.0.1", true),
            ("ipv4", "10.0.0.256", false),
            ("ipv6", "::1", true),
            ("cidr", "10.0.0.0/8", true),
            ("cidr", "10.0.0.0/33", false),
            ("uri", "https://a.example/x", true),
            ("uri", "a b", false),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", true),
            ("k8s-short-name", "web-1", true),
            ("k8s-short-name", "Web", false),
        ];
        for (name, text, want) in cases {
            assert_eq!(checker(&name.replace('-', "")).unwrap()(text), want, "{name} {text}");
        }
        assert!(checker("nosuchthing").is_none());
    }
}
