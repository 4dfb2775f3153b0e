//! Windows: stretches of time that open at every hit of a schedule and stay open for a while.
//! Hits that come before the last window has closed keep it open.
//!
//! A dialect lists a window among its limits: [`Window::blackout`], as nobody starts while it is
//! open. [`Window::changes_at`] is the instant at which that changes.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::cron::{Cron, CronError};
use crate::gate::Limit;
use crate::hold::HoldReason;

/// A schedule and how long each hit counts. The window of a hit `h` is `[h, h + duration)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    schedule: Cron,
    duration: SignedDuration,
}

/// Where a window stands at an instant, and the exact instant at which that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Open. `closes_at` is absent if it never closes, or so late that it does not matter.
    Open { closes_at: Option<Timestamp> },
    /// Closed. `opens_at` is absent for a window without length.
    Closed { opens_at: Option<Timestamp> },
    /// The schedule has no hit in the next years (30 February). Whether that counts as open or
    /// closed is the dialect's rule.
    NoHit,
}

/// How many overlapping windows are followed to find where they end together. A window of ten
/// minutes that recurs every five is followed for a week.
const FOLLOWED: usize = 1_024;

impl Window {
    /// A window whose schedule is read in `zone`.
    pub fn new(
        schedule: &str,
        duration: SignedDuration,
        zone: TimeZone,
    ) -> Result<Self, CronError> {
        Ok(Self { schedule: Cron::parse_in(schedule, zone)?, duration })
    }

    pub fn from_parts(schedule: Cron, duration: SignedDuration) -> Self {
        Self { schedule, duration }
    }

    /// Where it stands at `now`, with the instant of the next change.
    ///
    /// | schedule, duration      | now   | phase                     |
    /// |-------------------------|-------|---------------------------|
    /// | `0 9 * * *`, 8h         | 08:59 | closed, opens 09:00       |
    /// | `0 9 * * *`, 8h         | 09:00 | open, closes 17:00        |
    /// | `0 9 * * *`, 8h         | 17:00 | closed, opens 09:00 next day |
    /// | `0 9-11 * * *`, 1h      | 09:30 | open, closes 12:00        |
    /// | `0 0 * * *`, 24h        | any   | open, never closes        |
    pub fn at(&self, now: Timestamp) -> Phase {
        match self.hit_that_counts(now) {
            None => Phase::NoHit,
            Some(hit) if hit > now => {
                Phase::Closed { opens_at: Some(hit).filter(|_| self.duration.is_positive()) }
            }
            Some(hit) => Phase::Open { closes_at: self.end_of(hit) },
        }
    }

    /// The limit of a blackout: nobody starts while the window is open. A schedule without a hit
    /// is taken for open.
    pub fn blackout(&self, now: Timestamp) -> Option<Limit> {
        let is_open = self.is_open(now).unwrap_or(true);
        is_open.then(|| Limit::closed(HoldReason::WindowClosed))
    }

    /// When the window opens or closes next; absent if it never does.
    pub fn changes_at(&self, now: Timestamp) -> Option<Timestamp> {
        match self.at(now) {
            Phase::Open { closes_at } => closes_at,
            Phase::Closed { opens_at } => opens_at,
            Phase::NoHit => None,
        }
    }

    /// Whether it is open. Costs less than [`Window::at`], which also looks for the end; None is
    /// [`Phase::NoHit`].
    pub fn is_open(&self, now: Timestamp) -> Option<bool> {
        self.hit_that_counts(now).map(|hit| hit <= now)
    }

    /// The first hit late enough that its window reaches beyond `now`.
    fn hit_that_counts(&self, now: Timestamp) -> Option<Timestamp> {
        let checkpoint = now.checked_sub(self.duration).unwrap_or(Timestamp::MIN);
        self.schedule.next_after(checkpoint)
    }

    /// Where the windows that overlap with that of `hit` end together.
    fn end_of(&self, hit: Timestamp) -> Option<Timestamp> {
        if self.schedule.is_never_apart_more_than(self.duration) {
            return None;
        }
        let mut last = hit;
        for _ in 0..FOLLOWED {
            let end = last.checked_add(self.duration).ok()?;
            match self.schedule.last_within(last, end) {
                Some(later) => last = later,
                None => return Some(end),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn window(schedule: &str, duration: &str, zone: &str) -> Window {
        let duration: convoy_api::text::GoDuration = duration.parse().unwrap();
        Window::new(schedule, duration.signed(), crate::cron::zone(zone).unwrap()).unwrap()
    }

    fn open_until(text: &str) -> Phase {
        Phase::Open { closes_at: Some(instant(text)) }
    }

    fn closed_until(text: &str) -> Phase {
        Phase::Closed { opens_at: Some(instant(text)) }
    }

    #[test]
    fn the_start_is_inside_and_the_end_is_outside() {
        let never = Phase::Open { closes_at: None };
        let cases = [
            ("0 9 * * *", "8h", "2024-01-08T08:59:59Z", closed_until("2024-01-08T09:00:00Z")),
            ("0 9 * * *", "8h", "2024-01-08T09:00:00Z", open_until("2024-01-08T17:00:00Z")),
            ("0 9 * * *", "8h", "2024-01-08T16:59:59.5Z", open_until("2024-01-08T17:00:00Z")),
            ("0 9 * * *", "8h", "2024-01-08T17:00:00Z", closed_until("2024-01-09T09:00:00Z")),
            ("0 9-11 * * *", "1h", "2024-01-08T09:30:00Z", open_until("2024-01-08T12:00:00Z")),
            ("*/5 9-17 * * 1-5", "10m", "2024-01-08T09:30:00Z", open_until("2024-01-08T18:05:00Z")),
            ("0 0 * * 1-5", "24h", "2024-01-08T09:30:00Z", open_until("2024-01-13T00:00:00Z")),
            ("@daily", "48h", "2024-01-08T09:30:00Z", never),
            ("* * * * *", "1h", "2024-01-08T09:30:00Z", never),
            ("@monthly", "720h", "2024-03-31T00:00:00Z", closed_until("2024-04-01T00:00:00Z")),
            ("@hourly", "0h", "2024-03-31T00:00:00Z", Phase::Closed { opens_at: None }),
            ("0 0 30 2 *", "1h", "2024-03-31T00:00:00Z", Phase::NoHit),
        ];
        for (schedule, duration, now, phase) in cases {
            let window = window(schedule, duration, "UTC");
            assert_eq!(window.at(instant(now)), phase, "{schedule} for {duration} at {now}");
        }
    }

    #[test]
    fn a_blackout_is_a_limit_while_it_is_open() {
        let closed = Some(Limit::closed(HoldReason::WindowClosed));
        let cases = [
            ("0 9 * * *", "2024-01-08T12:00:00Z", closed.clone(), "2024-01-08T17:00:00Z"),
            ("0 9 * * *", "2024-01-08T08:00:00Z", None, "2024-01-08T09:00:00Z"),
            ("0 0 30 2 *", "2024-01-08T08:00:00Z", closed, ""),
        ];
        for (schedule, now, blackout, changes_at) in cases {
            let (window, now) = (window(schedule, "8h", "UTC"), instant(now));
            assert_eq!(window.blackout(now), blackout, "{schedule}");
            assert_eq!(window.changes_at(now), changes_at.parse().ok(), "{schedule}");
        }
    }

    #[test]
    fn durations_are_real_time_over_clock_changes() {
        let night = window("0 22 * * *", "8h", "Europe/Berlin");
        // Clocks go forward in the night of 30 March: eight hours end at 07:00 local.
        let spring = night.at(instant("2024-03-31T00:00:00Z"));
        assert_eq!(spring, open_until("2024-03-31T05:00:00Z"));
        let opens = night.at(instant("2024-03-31T12:00:00Z"));
        assert_eq!(opens, closed_until("2024-03-31T20:00:00Z"));
        // The repeated hour in October opens the window twice, and the two overlap.
        let repeated = window("0 2 * * *", "90m", "Europe/Berlin");
        let autumn = repeated.at(instant("2024-10-27T00:10:00Z"));
        assert_eq!(autumn, open_until("2024-10-27T02:30:00Z"));
    }
}
