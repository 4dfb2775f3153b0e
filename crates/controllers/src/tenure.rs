//! Whether a leader may still write: the arithmetic of leases, without a clock.
//!
//! Instants are durations on one clock of this process, which has to run while the process or the
//! machine is suspended. Instants of two processes are never compared. `docs/concepts/leadership.md`
//! has the whole argument.

use std::time::Duration;

/// The periods of a lease; all follow from its duration.
///
/// | period | share | of 15 s | meaning |
/// |---|---|---:|---|
/// | duration | 1 | 15 s | candidates wait for so long after the last change of the lease |
/// | retry | 2/15 | 2 s | between two attempts to take or renew it |
/// | margin | 1/3 | 5 s | a leader stops writing so long before its lease can expire; no write takes longer |
/// | server limit | 1/5 | 3 s | the server gives up a write that it has not finished by then |
/// | grace | 1/3 | 5 s | a successor that took an expired lease writes nothing for so long |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    duration: Duration,
}

/// The time in which a leader may write.
///
/// | last renewal sent at | now | duration, margin | standing |
/// |---:|---:|---|---|
/// | 100 s | 109.9 s | 15 s, 5 s | open, 0.1 s are left |
/// | 100 s | 110 s | 15 s, 5 s | over |
/// | 100 s | 4000 s, after a stop | 15 s, 5 s | over |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    timing: LeaseTiming,
    opens_at: Duration,
    /// When the last successful renewal was sent. It may have arrived later, never earlier.
    renewed_at: Duration,
}

/// The lease before it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Succession {
    /// Its holder released it after its last write, or it never had one.
    Free,
    /// Its holder fell silent and may have writes in flight; the duration that it promised.
    Expired(Duration),
}

/// The answer to "may this process write now?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Writes of the predecessor may still be in flight for `wait`.
    TooEarly {
        wait: Duration,
    },
    Open {
        left: Duration,
    },
    /// The lease was not renewed in time; for so long this process may not write any more.
    Over {
        by: Duration,
    },
}

impl LeaseTiming {
    pub const fn new(duration: Duration) -> Self {
        Self { duration }
    }

    /// How long the lease is valid without a renewal.
    pub const fn duration(self) -> Duration {
        self.duration
    }

    pub fn retry(self) -> Duration {
        self.duration * 2 / 15
    }

    pub fn margin(self) -> Duration {
        self.duration / 3
    }

    /// How long a leader may write after a renewal.
    pub fn renew_within(self) -> Duration {
        self.duration.saturating_sub(self.margin())
    }

    /// How long a leader waits for the response to a write.
    pub fn request_limit(self) -> Duration {
        self.margin()
    }

    pub fn server_limit(self) -> Duration {
        self.duration / 5
    }

    pub fn grace(self) -> Duration {
        self.margin()
    }
}

impl Tenure {
    /// The tenure of a process whose request for the lease was sent at `sent_at` and succeeded.
    pub fn new(timing: LeaseTiming, sent_at: Duration, succession: Succession) -> Self {
        let grace = match succession {
            Succession::Free => Duration::ZERO,
            Succession::Expired(promised) => {
                LeaseTiming::new(promised.max(timing.duration)).grace()
            }
        };
        Self { timing, opens_at: sent_at + grace, renewed_at: sent_at }
    }

    /// A renewal that was sent at `sent_at` succeeded.
    pub fn renewed(&mut self, sent_at: Duration) {
        self.renewed_at = self.renewed_at.max(sent_at);
    }

    /// From this instant on nothing is written, unless a renewal succeeds before.
    pub fn ends_at(&self) -> Duration {
        self.renewed_at + self.timing.renew_within()
    }

    /// When the last successful renewal was sent.
    pub fn renewed_at(&self) -> Duration {
        self.renewed_at
    }

    pub fn timing(&self) -> LeaseTiming {
        self.timing
    }

    pub fn standing(&self, now: Duration) -> Standing {
        let end = self.ends_at();
        let left = end.saturating_sub(now);
        if left.is_zero() {
            return Standing::Over { by: now.saturating_sub(end) };
        }
        match self.opens_at.checked_sub(now).filter(|wait| !wait.is_zero()) {
            Some(wait) => Standing::TooEarly { wait },
            None => Standing::Open { left },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: LeaseTiming = LeaseTiming::new(Duration::from_secs(15));

    fn millis(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn a_leader_writes_until_a_margin_before_its_lease_can_expire() {
        let mut tenure = Tenure::new(TIMING, millis(100_000), Succession::Free);
        assert_eq!(tenure.standing(millis(100_000)), Standing::Open { left: millis(10_000) });
        assert_eq!(tenure.standing(millis(109_900)), Standing::Open { left: millis(100) });
        assert_eq!(tenure.standing(millis(110_000)), Standing::Over { by: Duration::ZERO });
        assert_eq!(tenure.standing(millis(4_000_000)), Standing::Over { by: millis(3_890_000) });
        tenure.renewed(millis(108_000));
        assert_eq!(tenure.standing(millis(117_999)), Standing::Open { left: millis(1) });
        // Of two renewals whose responses change places, the later one counts.
        tenure.renewed(millis(106_000));
        assert_eq!(tenure.ends_at(), millis(118_000));
    }

    #[test]
    fn a_successor_of_a_silent_leader_waits_for_its_last_writes() {
        for (succession, opens_after) in [
            (Succession::Free, 0_u64),
            (Succession::Expired(millis(15_000)), 5_000),
            (Succession::Expired(millis(1_000)), 5_000),
            (Succession::Expired(millis(27_000)), 9_000),
        ] {
            let tenure = Tenure::new(TIMING, millis(50_000), succession);
            let at = |after| tenure.standing(millis(50_000 + after));
            assert!(matches!(at(opens_after), Standing::Open { .. }), "{succession:?}");
            if let Some(before) = opens_after.checked_sub(1) {
                assert_eq!(at(before), Standing::TooEarly { wait: millis(1) }, "{succession:?}");
            }
        }
    }

    /// The predecessor looks at its tenure as late as it may, its bytes are on their way for as
    /// long as its kernel keeps them, and the server takes all the time it was given. The
    /// successor has seen the last renewal at the instant it was sent.
    #[test]
    fn the_last_write_of_a_leader_comes_before_the_first_of_its_successor() {
        for secs in [3, 6, 15, 60, 3_600] {
            let timing = LeaseTiming::new(Duration::from_secs(secs));
            let before = Tenure::new(timing, Duration::ZERO, Succession::Free);
            let last_write = before.ends_at() + timing.margin() + timing.server_limit();
            let taken_at = timing.duration();
            let after = Tenure::new(timing, taken_at, Succession::Expired(timing.duration()));
            let Standing::TooEarly { wait } = after.standing(taken_at) else { panic!("{secs}") };
            let slack = (taken_at + wait).checked_sub(last_write).expect("it comes later");
            // Clocks whose rates differ by a tenth are covered as well.
            assert!(slack * 10 >= taken_at + wait, "{secs} s: {slack:?}");
            assert!(timing.request_limit() <= timing.margin());
        }
    }
}
