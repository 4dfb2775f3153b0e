//! How long an agent waits. Each is a flag of upstream's member agent, with its default.
//!
//! Upstream looks at every Work again and again. Here the watches of the member tell what has
//! changed, and a Work is looked at in vain only to renew the times at which differences were
//! last seen. The schedule is upstream's, and it is a function of the time since the last change
//! of a condition: nothing has to be remembered between two looks.

use jiff::{SignedDuration, Timestamp};

/// The waits of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentTimings {
    /// How long an `AppliedWork` may take to go before objects with other owners let it.
    pub deletion_wait: SignedDuration,
    pub requeue: Requeue,
}

/// When a Work that does not change is looked at again: some times after a fixed delay, then after
/// delays that grow slowly up to a limit, then after delays that grow fast up to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requeue {
    pub fixed_attempts: u32,
    pub fixed_delay: SignedDuration,
    pub slow_first: SignedDuration,
    pub slow_max: SignedDuration,
    pub fast_max: SignedDuration,
    /// Growth per look, in thousandths.
    pub slow_permille: u32,
    pub fast_permille: u32,
    /// Whether Works that are available, or whose differences are reported, never grow slowly.
    pub skips_slow: bool,
}

impl AgentTimings {
    pub const fn new() -> Self {
        Self {
            deletion_wait: SignedDuration::from_mins(5),
            requeue: Requeue {
                fixed_attempts: 1,
                fixed_delay: SignedDuration::from_secs(5),
                slow_first: SignedDuration::from_secs(2),
                slow_max: SignedDuration::from_secs(15),
                fast_max: SignedDuration::from_mins(15),
                slow_permille: 1200,
                fast_permille: 1500,
                skips_slow: true,
            },
        }
    }
}

impl Default for AgentTimings {
    fn default() -> Self {
        Self::new()
    }
}

/// Two looks at a Work with nothing in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Looks {
    /// The last one that was due; none before the first.
    pub(crate) due: Option<Timestamp>,
    pub(crate) next: Option<Timestamp>,
}

impl Requeue {
    /// The looks around `now` at a Work that changed last at `since`.
    pub(crate) fn around(&self, since: Timestamp, now: Timestamp, is_settled: bool) -> Looks {
        let millis = |duration: SignedDuration| i64::try_from(duration.as_millis()).unwrap_or(0);
        let elapsed = millis(now.duration_since(since)).max(0);
        let at = |after: i64| since.checked_add(SignedDuration::from_millis(after)).ok();
        let most = millis(self.fast_max).max(1);
        let (mut passed, mut delay) = (0_i64, 0_i64);
        for look in 0_u32.. {
            delay = self.delay(look, delay, is_settled);
            let is_last = look > self.fixed_attempts && delay >= most;
            // From here on all delays are the same.
            if is_last {
                passed += (elapsed - passed) / delay * delay;
            }
            if is_last || passed.saturating_add(delay) > elapsed {
                let due = (passed > 0).then(|| at(passed)).flatten();
                return Looks { due, next: at(passed.saturating_add(delay)) };
            }
            passed += delay;
        }
        Looks { due: None, next: None }
    }

    /// The delay in milliseconds before look number `look`, from 0, where `last` was the one before.
    fn delay(&self, look: u32, last: i64, is_settled: bool) -> i64 {
        let millis = |duration: SignedDuration| i64::try_from(duration.as_millis()).unwrap_or(0);
        let grown = |permille: u32| last.saturating_mul(i64::from(permille)) / 1000;
        let fast = grown(self.fast_permille).max(last.saturating_add(1));
        let slow_max = millis(self.slow_max);
        let delay = match look {
            _ if look < self.fixed_attempts => return millis(self.fixed_delay).max(1),
            _ if look == self.fixed_attempts => millis(self.slow_first),
            _ if is_settled && self.skips_slow || last >= slow_max => fast,
            _ => match grown(self.slow_permille).max(last.saturating_add(1)) {
                slow if slow > slow_max => fast,
                slow => slow,
            },
        };
        delay.clamp(1, millis(self.fast_max).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The delays of the first `count` looks, in milliseconds.
    fn delays(requeue: Requeue, is_settled: bool, count: usize) -> Vec<i64> {
        let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut now = since;
        let mut found = Vec::new();
        while found.len() < count {
            let next = requeue.around(since, now, is_settled).next.unwrap();
            found.push(i64::try_from(next.duration_since(now).as_millis()).unwrap());
            let looks = requeue.around(since, next, is_settled);
            assert_eq!(looks.due, Some(next), "a look is due when it was announced");
            now = next;
        }
        found
    }

    #[test]
    fn delays_are_fixed_then_grow_slowly_then_fast() {
        let requeue = AgentTimings::new().requeue;
        assert_eq!(delays(requeue, false, 5), [5000, 2000, 2400, 2880, 3456]);
        assert_eq!(delays(requeue, true, 5), [5000, 2000, 3000, 4500, 6750]);
        let all = delays(requeue, false, 30);
        assert_eq!(all.last(), Some(&900_000), "{all:?}");
        assert!(all.windows(2).skip(1).all(|pair| pair[0] <= pair[1]), "{all:?}");
    }

    #[test]
    fn caps_hold_from_the_start() {
        let five = SignedDuration::from_secs(5);
        let requeue = Requeue { slow_max: five, fast_max: five, ..AgentTimings::new().requeue };
        let all = delays(requeue, false, 12);
        assert!(all.iter().all(|delay| *delay <= 5000), "{all:?}");
        assert_eq!(all[8..], [5000, 5000, 5000, 5000]);
    }

    #[test]
    fn a_work_that_stood_still_for_years_takes_no_longer_to_schedule() {
        let since: Timestamp = "1970-01-01T00:00:00Z".parse().unwrap();
        let now: Timestamp = "2026-01-01T00:00:07Z".parse().unwrap();
        let looks = AgentTimings::new().requeue.around(since, now, true);
        assert!(looks.due.is_some_and(|due| due <= now) && looks.next.is_some_and(|at| at > now));
        let before = AgentTimings::new().requeue.around(now, since, true);
        assert_eq!(before.due, None, "a clock that went back finds nothing due");
    }
}
