//! The fence around all writes of a control loop: before each, it looks at the tenure of this
//! process. A process without leader election has no fence.
//!
//! Only [`crate::transport::Writer`] sends writes, and only with a fence. It looks twice: before a
//! request is built, and when the connection takes its bytes, because a request may wait in between
//! for a connection, and the process may be stopped meanwhile.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::tenure::{LeaseTiming, Standing, Tenure};

/// A clock that also runs while the process or the machine is suspended. Its start means nothing.
pub trait Clock: Send + Sync {
    fn now(&self) -> Duration;
}

/// The clock of the machine since it was booted.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Duration {
        // Linux does not count suspension in CLOCK_MONOTONIC; other systems do.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let clock = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(clock);
        let secs = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(secs, u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

/// Why a write is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this process does not hold the Lease")]
    NotLeading,
    #[error("writes of the previous leader may be in flight for another {} ms", wait.as_millis())]
    TooEarly { wait: Duration },
    #[error("the Lease was not renewed in time; writing ended {} ms ago", by.as_millis())]
    Over { by: Duration },
}

/// May this process write? Clones share the answer.
#[derive(Clone, Default)]
pub struct Fence(Option<Arc<Shared>>);

struct Shared {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    tenure: Option<Tenure>,
    /// Writes that were sent and have neither a response nor reached their time limit.
    in_flight: usize,
    /// When the last write without a response was sent: the server may have applied it or not.
    lost_at: Option<Duration>,
}

/// A write that passed the fence.
#[derive(Debug)]
pub(crate) struct FencedWrite {
    fence: Fence,
    sent_at: Duration,
    is_answered: bool,
}

impl Fence {
    /// The fence of a candidate for a lease: closed until a tenure begins.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Some(Arc::new(Shared { clock, state: Mutex::default() })))
    }

    /// For a process without leader election.
    pub fn none() -> Self {
        Self(None)
    }

    /// Whether this process may write now. `None` as the timing means that there is no fence.
    pub fn look(&self) -> Result<Option<LeaseTiming>, Refusal> {
        let Some(shared) = &self.0 else { return Ok(None) };
        let Some(tenure) = shared.lock().tenure else { return Err(Refusal::NotLeading) };
        match tenure.standing(shared.clock.now()) {
            Standing::Open { .. } => Ok(Some(tenure.timing())),
            Standing::TooEarly { wait } => Err(Refusal::TooEarly { wait }),
            Standing::Over { by } => Err(Refusal::Over { by }),
        }
    }

    pub fn begin(&self, tenure: Tenure) {
        self.change(|state| state.tenure = Some(tenure));
    }

    pub fn renewed(&self, sent_at: Duration) {
        self.change(|state| {
            if let Some(tenure) = &mut state.tenure {
                tenure.renewed(sent_at);
            }
        });
    }

    /// Ends the tenure: from now on nothing is written.
    pub fn end(&self) {
        self.change(|state| state.tenure = None);
    }

    /// Whether a write may still be applied: one is in flight, or one got no response and the
    /// server has not given it up yet.
    pub(crate) fn may_have_writes_in_flight(&self, timing: LeaseTiming) -> bool {
        let Some(shared) = &self.0 else { return false };
        let State { in_flight, lost_at, .. } = *shared.lock();
        let lasts = timing.margin() + timing.server_limit();
        in_flight > 0 || lost_at.is_some_and(|at| shared.clock.now() < at + lasts)
    }

    /// Looks, and counts the write until it is answered or dropped.
    pub(crate) fn enter(&self) -> Result<(FencedWrite, Option<LeaseTiming>), Refusal> {
        let timing = self.look()?;
        self.change(|state| state.in_flight += 1);
        let sent_at = self.0.as_ref().map_or(Duration::ZERO, |shared| shared.clock.now());
        Ok((FencedWrite { fence: self.clone(), sent_at, is_answered: false }, timing))
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        if let Some(shared) = &self.0 {
            change(&mut shared.lock());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

impl FencedWrite {
    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for FencedWrite {
    fn drop(&mut self) {
        let lost_at = (!self.is_answered).then_some(self.sent_at);
        self.fence.change(|state| {
            state.in_flight -= 1;
            state.lost_at = state.lost_at.max(lost_at);
        });
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.as_ref().map(|shared| *shared.lock());
        f.debug_tuple("Fence").field(&state).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::tenure::Succession;

    #[derive(Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn now(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn a_fence_is_open_during_a_tenure_only() {
        let clock = Arc::new(Hand::default());
        let (timing, fence) =
            (LeaseTiming::new(Duration::from_secs(15)), Fence::new(Arc::clone(&clock) as _));
        assert_eq!(fence.look(), Err(Refusal::NotLeading));
        fence.begin(Tenure::new(timing, Duration::ZERO, Succession::Free));
        assert_eq!(fence.look(), Ok(Some(timing)));
        clock.0.store(12, Ordering::Relaxed);
        assert_eq!(fence.look(), Err(Refusal::Over { by: Duration::from_secs(2) }));
        fence.renewed(Duration::from_secs(9));
        assert_eq!(fence.look(), Ok(Some(timing)));
        fence.end();
        fence.renewed(Duration::from_secs(12));
        assert_eq!(fence.look(), Err(Refusal::NotLeading), "the end is final");
        assert_eq!(Fence::none().look(), Ok(None));
    }

    #[test]
    fn writes_without_a_response_are_remembered_for_as_long_as_they_may_be_applied() {
        let clock = Arc::new(Hand::default());
        let (timing, fence) =
            (LeaseTiming::new(Duration::from_secs(15)), Fence::new(Arc::clone(&clock) as _));
        fence.begin(Tenure::new(timing, Duration::ZERO, Succession::Free));
        let (write, _) = fence.enter().unwrap();
        assert!(fence.may_have_writes_in_flight(timing));
        write.answered();
        assert!(!fence.may_have_writes_in_flight(timing));
        drop(fence.enter().unwrap());
        assert!(fence.may_have_writes_in_flight(timing));
        clock.0.store(8, Ordering::Relaxed);
        assert!(!fence.may_have_writes_in_flight(timing));
    }

    #[test]
    fn the_clock_of_the_machine_goes_forward() {
        let before = BootClock.now();
        assert!(!before.is_zero() && BootClock.now() >= before);
    }
}
