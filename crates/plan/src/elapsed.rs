//! Intervals that begin at an instant which an object tells, such as the `lastTransitionTime` of a
//! condition. Kubernetes writes instants in whole seconds and cuts off the rest: what an object
//! dates at 12:00:00 has happened at any time before 12:00:01. A number of seconds since then has
//! surely passed only when it has passed since the end of that second.

use jiff::{SignedDuration, Timestamp};

/// What an instant without a fraction may lack.
const CUT_OFF: SignedDuration = SignedDuration::from_secs(1);

/// The first instant at which `secs` seconds have passed since `since`, whatever was cut off from
/// it. An instant with a fraction was not cut. None if there is no such instant.
///
/// | since        | secs | passed at    | because                                  |
/// |--------------|-----:|--------------|------------------------------------------|
/// | 12:00:00     |    1 | 12:00:02     | it may have been 12:00:00.999            |
/// | 12:00:00     |    0 | 12:00:01     | the same                                 |
/// | 12:00:00.700 |    1 | 12:00:01.700 | whoever writes fractions means them      |
pub(crate) fn passed_at(since: Timestamp, secs: i64) -> Option<Timestamp> {
    let exact = since.checked_add(SignedDuration::from_secs(secs)).ok()?;
    if since.subsec_nanosecond() == 0 { exact.checked_add(CUT_OFF).ok() } else { Some(exact) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_pass_since_the_end_of_the_second_that_is_told() {
        let cases = [
            ("2026-01-01T12:00:00Z", 1, Some("2026-01-01T12:00:02Z")),
            ("2026-01-01T12:00:00Z", 0, Some("2026-01-01T12:00:01Z")),
            ("2026-01-01T12:00:00.7Z", 1, Some("2026-01-01T12:00:01.7Z")),
            ("2026-01-01T12:00:00.000000Z", 1, Some("2026-01-01T12:00:02Z")),
            ("2026-01-01T12:00:00Z", i64::MAX, None),
        ];
        for (since, secs, expected) in cases {
            let at = passed_at(since.parse().unwrap(), secs);
            assert_eq!(at.map(|at| at.to_string()).as_deref(), expected, "{since} and {secs}s");
        }
    }
}
