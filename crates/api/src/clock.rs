//! The clock of a process, which need not show the machine's time.

use jiff::{SignedDuration, Timestamp};

/// A clock that runs at the machine's pace. By default it shows the machine's time; one that was
/// set shows how a rollout behaves on another day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    ahead: SignedDuration,
}

impl Clock {
    /// A clock that shows `time` while the machine's clock shows `machine`.
    pub fn showing(time: Timestamp, machine: Timestamp) -> Self {
        Self { ahead: time.duration_since(machine) }
    }

    /// What it shows while the machine's clock shows `machine`.
    pub fn at(self, machine: Timestamp) -> Timestamp {
        // Beyond the calendar there is nothing better to show than the machine's time.
        machine.checked_add(self.ahead).unwrap_or(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_clock_that_was_set_runs_at_the_pace_of_the_machine() {
        let (then, now) = (time("2026-03-29T00:59:50Z"), time("2026-01-01T12:00:00Z"));
        let clock = Clock::showing(then, now);
        assert_eq!(clock.at(now), then);
        assert_eq!(clock.at(time("2026-01-01T12:00:20Z")), time("2026-03-29T01:00:10Z"));
        assert_eq!(Clock::default().at(now), now);
    }

    #[test]
    fn no_time_is_beyond_the_calendar() {
        let clock = Clock::showing(Timestamp::MAX, Timestamp::UNIX_EPOCH);
        assert_eq!(clock.at(time("2026-01-01T12:00:00Z")), time("2026-01-01T12:00:00Z"));
    }
}
