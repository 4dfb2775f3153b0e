//! Instants, absolute and relative to now.

use jiff::Timestamp;

/// `2026-01-01T00:10:00Z (in 10m)`.
pub(super) fn at(instant: Timestamp, now: Timestamp) -> String {
    let secs = instant.as_second().saturating_sub(now.as_second());
    let span = span(secs.unsigned_abs());
    match secs {
        0 => format!("{instant} (now)"),
        1.. => format!("{instant} (in {span})"),
        _ => format!("{instant} ({span} ago)"),
    }
}

/// How long ago something was, as kubectl prints ages: `95s`, `3m20s`, `45m`, `3h20m`, `30h`,
/// `3d4h`, `20d`.
#[cfg(feature = "server")]
pub(super) fn age(since: Timestamp, now: Timestamp) -> String {
    let secs = now.as_second().saturating_sub(since.as_second()).max(0).unsigned_abs();
    let (mins, hours, days) = (secs / 60, secs / 3_600, secs / 86_400);
    let two = |large: u64, unit: char, small: u64, other: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{other}"),
    };
    match secs {
        0..120 => format!("{secs}s"),
        120..600 => two(mins, 'm', secs % 60, 's'),
        600..10_800 => format!("{mins}m"),
        10_800..28_800 => two(hours, 'h', mins % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

/// How long something took: `0s`, `3.2s`, `1m 5s`, `2h 5m`.
#[cfg(feature = "server")]
pub(super) fn length(took: jiff::SignedDuration) -> String {
    let tenths = (took.as_millis().max(0) + 50) / 100;
    match tenths {
        0 => "0s".to_owned(),
        1..600 if tenths % 10 == 0 => format!("{}s", tenths / 10),
        1..600 => format!("{}.{}s", tenths / 10, tenths % 10),
        _ => span(u64::try_from(tenths / 10).unwrap_or(0)),
    }
}

/// The two largest units: `3d 4h`, `2h 5m`, `45s`.
fn span(secs: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let mut parts = Vec::new();
    let mut rest = secs;
    for (size, unit) in UNITS {
        if rest >= size && parts.len() < 2 {
            parts.push(format!("{}{unit}", rest / size));
            rest %= size;
        } else if !parts.is_empty() {
            break; // `1d 5s` would be too precise
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "server")]
    #[test]
    fn ages_are_those_of_kubectl() {
        let now: Timestamp = "2026-01-10T00:00:00Z".parse().unwrap();
        let cases = [
            (-5, "0s"),
            (95, "95s"),
            (200, "3m20s"),
            (300, "5m"),
            (2_700, "45m"),
            (12_000, "3h20m"),
            (108_000, "30h"),
            (273_600, "3d4h"),
            (1_728_000, "20d"),
        ];
        for (secs, text) in cases {
            let since = Timestamp::from_second(now.as_second() - secs).unwrap();
            assert_eq!(age(since, now), text);
        }
    }

    #[test]
    fn instants_are_told_from_now() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let cases = [
            (0, "2026-01-01T00:00:00Z (now)"),
            (45, "2026-01-01T00:00:45Z (in 45s)"),
            (600, "2026-01-01T00:10:00Z (in 10m)"),
            (90, "2026-01-01T00:01:30Z (in 1m 30s)"),
            (7_500, "2026-01-01T02:05:00Z (in 2h 5m)"),
            (86_405, "2026-01-02T00:00:05Z (in 1d)"),
            (-60, "2025-12-31T23:59:00Z (1m ago)"),
        ];
        for (secs, text) in cases {
            let instant = Timestamp::from_second(now.as_second() + secs).unwrap();
            assert_eq!(at(instant, now), text);
        }
    }
}
