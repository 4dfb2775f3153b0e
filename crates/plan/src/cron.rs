//! Cron schedules with the rules of the parser that Kubernetes itself uses (robfig/cron): five
//! fields, names of three letters, macros, and days that match by either day field when both
//! are restricted.
//!
//! A hit is an instant whose wall clock, in the schedule's zone, matches at second 0. So a
//! local hour that a clock change skips has no hits, and one that it repeats has them twice.

mod fields;
mod parse;

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use fields::Fields;

/// When something recurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    rule: Rule,
    zone: TimeZone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Fields(Fields),
    /// `@every 90s`: that long after whenever one asks, so it has no hits of its own.
    Every(SignedDuration),
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CronError {
    /// Exactly in the words of the parser that API servers use.
    pub message: String,
    /// The same for a person: what is wrong, and what would be right.
    pub advice: String,
}

/// A name that the time zone database does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {name}")]
pub struct ZoneError {
    pub name: String,
}

/// The zone of an IANA name such as `Europe/Berlin`, from the rules compiled into Convoy: what
/// is installed on the machine makes no difference.
pub fn zone(name: &str) -> Result<TimeZone, ZoneError> {
    static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    ZONES.get(name).map_err(|_| ZoneError { name: name.to_owned() })
}

impl Cron {
    /// Reads a schedule that may name its zone (`TZ=Asia/Tokyo 0 9 * * *`); otherwise it is UTC.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let prefixed = ["TZ=", "CRON_TZ="].iter().find_map(|prefix| text.strip_prefix(prefix));
        let Some(prefixed) = prefixed else {
            return Self::parse_in(text, TimeZone::UTC);
        };
        let (name, rest) = prefixed.split_once(char::is_whitespace).unwrap_or((prefixed, ""));
        let zone = zone(name).map_err(|error| CronError {
            message: format!("provided bad location {name}: {error}"),
            advice: format!("{error}; want an IANA name such as Europe/Berlin"),
        })?;
        Self::parse_in(rest, zone)
    }

    /// Reads a schedule whose zone is given beside it; a `TZ=` prefix is one field too many.
    pub fn parse_in(text: &str, zone: TimeZone) -> Result<Self, CronError> {
        Ok(Self { rule: parse::rule(text.trim())?, zone })
    }

    /// The first hit strictly after `after`, to the second.
    ///
    /// Looked for until the end of the fifth year after that of `after`; a date that does not
    /// come by then, such as 30 February, gives none.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let whole = Timestamp::from_second(floor_second(after)).ok()?;
        match &self.rule {
            Rule::Every(delay) => whole.checked_add(*delay).ok(),
            Rule::Fields(fields) => {
                let from = whole.checked_add(SignedDuration::from_secs(1)).ok()?;
                next_from(fields, &self.zone, from)
            }
        }
    }

    /// The last hit in `(after, until]`.
    pub(crate) fn last_within(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let Rule::Fields(fields) = &self.rule else {
            return self.next_after(after).filter(|hit| *hit <= until);
        };
        let mut at = until;
        while at > after {
            let offset = self.zone.to_offset(at);
            // Offsets change at whole seconds, so this finds a change at `at` itself too.
            let just_after = at.checked_add(SignedDuration::from_nanos(1)).ok()?;
            let begun = self.zone.preceding(just_after).next().map(|change| change.timestamp());
            let floor = begun.map_or(after, |begun| begun.max(after));
            let hit = fields
                .at_or_before(offset.to_datetime(at), offset.to_datetime(floor))
                .and_then(|local| offset.to_timestamp(local).ok());
            if hit.is_some() {
                return hit.filter(|hit| *hit > after);
            }
            at = begun?.checked_sub(SignedDuration::from_nanos(1)).ok()?;
        }
        None
    }

    /// Whether hits are never further apart than `most`, so that windows of that length never
    /// close. A yes is certain; a no only means that it is not obvious.
    pub(crate) fn is_never_apart_more_than(&self, most: SignedDuration) -> bool {
        match &self.rule {
            Rule::Every(delay) => *delay <= most,
            Rule::Fields(fields) => {
                // A clock that is set back adds up to this much between two hits.
                let fixed = self.zone == TimeZone::UTC;
                let slack = SignedDuration::from_hours(if fixed { 0 } else { 3 });
                fields.widest_daily_gap().is_some_and(|gap| gap + slack <= most)
            }
        }
    }
}

/// Offsets are constant between two changes, where the search is plain calendar arithmetic.
fn next_from(fields: &Fields, zone: &TimeZone, mut from: Timestamp) -> Option<Timestamp> {
    let last_year = zone.to_datetime(from).year().saturating_add(5);
    loop {
        let offset = zone.to_offset(from);
        let changes = zone.following(from).next().map(|change| change.timestamp());
        let local = offset.to_datetime(from);
        let bound = changes.map(|changes| offset.to_datetime(changes));
        if let Some(hit) = fields.at_or_after(local, bound, last_year) {
            return offset.to_timestamp(hit).ok();
        }
        from = changes?;
        if zone.to_datetime(from).year() > last_year {
            return None;
        }
    }
}

/// Whole seconds, rounded towards the past also before 1970.
fn floor_second(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}

#[cfg(test)]
mod tests;
