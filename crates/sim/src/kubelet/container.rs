//! One container from its image to its end, and again: where its course has led it by an
//! instant.

use convoy_api::object::member::{field, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::after;
use crate::scenario::{Behaviour, Failure};
use crate::seed::Seed;

/// When an ended container is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restarts {
    Always,
    OnFailure,
    Never,
}

/// Everything that decides a container's course.
pub(super) struct Course<'a> {
    pub(super) pod: &'a Value,
    pub(super) container: &'a Value,
    pub(super) behaviour: &'a Behaviour,
    pub(super) begin: Timestamp,
    pub(super) restarts: Restarts,
    /// Whether it can be ready while it runs, which one that is run before the others cannot.
    pub(super) is_probed: bool,
    pub(super) reboots: &'a [Timestamp],
    pub(super) seed: Seed,
}

/// Where a container is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Standing {
    pub(super) state: State,
    pub(super) last: Option<Ended>,
    pub(super) restarts: u32,
    pub(super) is_ready: bool,
    pub(super) first_started: Option<Timestamp>,
    pub(super) next: Option<Timestamp>,
    /// It takes the machine down now, for so long.
    pub(super) reboots: Option<SignedDuration>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    Waiting {
        reason: &'static str,
        message: String,
    },
    Running {
        since: Timestamp,
    },
    /// For good, or until it is started again.
    Ended(Ended),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) started: Timestamp,
    pub(super) finished: Timestamp,
}

/// How long a failed pull is shown as such before it is shown as waiting for the next.
const ERROR_SHOWN: SignedDuration = SignedDuration::from_secs(2);

/// A container that ran for so long has its back-off forgotten.
const BACK_OFF_RESET: SignedDuration = SignedDuration::from_mins(10);

/// Lost with the machine; what a runtime reports of containers it finds dead.
const LOST: i32 = 255;

impl Standing {
    pub(super) fn waiting(reason: &'static str) -> Self {
        Self::stopped(reason, String::new(), None)
    }

    fn stopped(reason: &'static str, message: String, next: Option<Timestamp>) -> Self {
        Self {
            state: State::Waiting { reason, message },
            last: None,
            restarts: 0,
            is_ready: false,
            first_started: None,
            next,
            reboots: None,
        }
    }

    /// Ends it if it runs; nothing starts after that.
    pub(super) fn end(&mut self, finished: Timestamp, code: i32) {
        if let State::Running { since } = self.state {
            self.state = State::Ended(Ended { code, started: since, finished });
        }
        self.is_ready = false;
        self.next = None;
    }

    /// Whether it has ended and stays so.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Ended(_)) && self.next.is_none()
    }
}

/// How long to wait before try number `tries` + 1, after so many failed: 10 s, doubled each
/// time, at most five minutes.
///
/// | failed before | wait |
/// |--------------:|-----:|
/// |             0 |  10s |
/// |             1 |  20s |
/// |             5 | 300s |
fn back_off(failed_before: u32) -> SignedDuration {
    SignedDuration::from_secs((10 << failed_before.min(5)).min(300))
}

impl Course<'_> {
    pub(super) fn follow(&self, now: Timestamp) -> Standing {
        if let Some(complaint) = &self.behaviour.complaint {
            return Standing::stopped("CreateContainerConfigError", complaint.clone(), None);
        }
        let pulled = match self.pull(now) {
            Ok(pulled) => pulled,
            Err(standing) => return *standing,
        };
        let started = after(pulled, self.behaviour.start.draw(self.seed.child("start", "")));
        if now < started {
            return Standing::stopped("ContainerCreating", String::new(), Some(started));
        }
        self.run(started, now)
    }

    /// When the image is there, or what the container waits with until then.
    fn pull(&self, now: Timestamp) -> Result<Timestamp, Box<Standing>> {
        let fails = self.behaviour.failure == Failure::ImagePullError;
        let image = text(self.container, "image");
        let mut tried = self.begin;
        for attempt in 0.. {
            let takes = self.behaviour.pull.draw(self.seed.child("pull", "").nth(attempt));
            let answered = after(tried, takes);
            if now < answered {
                let waiting = match attempt {
                    0 => Standing::stopped("ContainerCreating", String::new(), Some(answered)),
                    _ => Standing::stopped("ImagePullBackOff", pull_message(image), Some(answered)),
                };
                return Err(Box::new(waiting));
            }
            if !fails || attempt >= self.behaviour.times {
                return Ok(answered);
            }
            let (shown, again) = (after(answered, ERROR_SHOWN), after(answered, back_off(attempt)));
            if now < shown {
                let message = format!("failed to pull image {image:?}: simulated failure");
                return Err(Box::new(Standing::stopped("ErrImagePull", message, Some(shown))));
            }
            if now < again {
                let message = pull_message(image);
                return Err(Box::new(Standing::stopped("ImagePullBackOff", message, Some(again))));
            }
            tried = again;
        }
        Ok(tried)
    }

    fn run(&self, first_started: Timestamp, now: Timestamp) -> Standing {
        let mut started = first_started;
        let mut last = None;
        let mut crashes = 0; // since the back-off was forgotten
        for run in 0.. {
            let end = self.end_of(run, started);
            let ended = match end {
                Some(ended) if ended.finished <= now => ended,
                _ => return self.running(run, started, first_started, last, end, now),
            };
            let again = self.restart(run, &ended, &mut crashes);
            let standing = |state: State, next: Option<Timestamp>| Standing {
                state,
                last: last.clone(),
                restarts: run,
                is_ready: false,
                first_started: Some(first_started),
                next,
                reboots: None,
            };
            let Some((allowed, next_start)) = again else {
                return standing(State::Ended(ended), None);
            };
            if now < allowed {
                let message = self.crash_message(allowed.duration_since(ended.finished));
                let state = State::Waiting { reason: "CrashLoopBackOff", message };
                return Standing { last: Some(ended), ..standing(state, Some(next_start)) };
            }
            if now < next_start {
                return standing(State::Ended(ended), Some(next_start));
            }
            (started, last) = (next_start, Some(ended));
        }
        Standing::waiting("ContainerCreating")
    }

    fn running(
        &self,
        run: u32,
        since: Timestamp,
        first_started: Timestamp,
        last: Option<Ended>,
        end: Option<Ended>,
        now: Timestamp,
    ) -> Standing {
        let gets_ready = self.is_probed && self.behaviour.failure != Failure::NeverReady;
        let ready_at = gets_ready.then(|| {
            let probed = after(since, self.initial_delay());
            after(probed, self.behaviour.ready.draw(self.seed.child("ready", "").nth(run)))
        });
        let is_ready = ready_at.is_some_and(|ready_at| ready_at <= now);
        let reboot = self.behaviour.reboots.filter(|_| run == 0).zip(self.success_of(run, since));
        let is_down = reboot.is_some_and(|(_, at)| at <= now);
        let next = ready_at.filter(|_| !is_ready).into_iter().chain(end.map(|end| end.finished));
        let next = next.chain(reboot.filter(|_| !is_down).map(|(_, at)| at));
        Standing {
            state: State::Running { since },
            last,
            restarts: run,
            is_ready,
            first_started: Some(first_started),
            next: next.min(),
            reboots: reboot
                .filter(|_| is_down)
                .map(|(lasts, _)| lasts.draw(self.seed.child("reboot", ""))),
        }
    }

    /// How long a running container is not asked whether it is ready.
    fn initial_delay(&self) -> SignedDuration {
        let probe = field(self.container, "readinessProbe");
        let seconds = field(probe, "initialDelaySeconds").as_i64().unwrap_or(0);
        SignedDuration::from_secs(seconds.max(0))
    }

    /// How a run that began at `started` ends, if it does.
    fn end_of(&self, run: u32, started: Timestamp) -> Option<Ended> {
        let behaviour = self.behaviour;
        let drawn = |purpose| self.seed.child(purpose, "").nth(run);
        let crash = (behaviour.failure == Failure::Crash && run < behaviour.times)
            .then(|| (after(started, behaviour.after.draw(drawn("crash"))), behaviour.exit_code));
        // A machine that goes down takes the first success with it.
        let complete = self.success_of(run, started).map(|at| (at, 0));
        let complete = complete.filter(|_| run > 0 || behaviour.reboots.is_none());
        let lost = self.reboots.iter().find(|reboot| **reboot > started).map(|at| (*at, LOST));
        let (finished, code) =
            [crash.or(complete), lost].into_iter().flatten().min_by_key(|(at, _)| *at)?;
        Some(Ended { code, started, finished })
    }

    /// When a run that began at `started` has done its work, if it ever has.
    fn success_of(&self, run: u32, started: Timestamp) -> Option<Timestamp> {
        let drawn = self.seed.child("complete", "").nth(run);
        self.behaviour.completes.map(|completes| after(started, completes.draw(drawn)))
    }

    /// Until when the back-off lasts and when it runs again, if it does. The first restart
    /// does not wait.
    fn restart(
        &self,
        run: u32,
        ended: &Ended,
        crashes: &mut u32,
    ) -> Option<(Timestamp, Timestamp)> {
        let is_restarted = match self.restarts {
            Restarts::Always => true,
            Restarts::OnFailure => ended.code != 0,
            Restarts::Never => false,
        };
        if !is_restarted {
            return None;
        }
        if ended.finished.duration_since(ended.started) >= BACK_OFF_RESET || ended.code == LOST {
            *crashes = 0;
        }
        let wait = crashes.checked_sub(1).map_or(SignedDuration::ZERO, back_off);
        *crashes += 1;
        let allowed = after(ended.finished, wait);
        let start = self.behaviour.start.draw(self.seed.child("start", "").nth(run));
        Some((allowed, after(allowed, start)))
    }

    fn crash_message(&self, wait: SignedDuration) -> String {
        let metadata = field(self.pod, "metadata");
        let wait = convoy_api::text::GoDuration::from_secs(wait.as_secs());
        format!(
            "back-off {wait} restarting failed container={} pod={}_{}({})",
            text(self.container, "name"),
            text(metadata, "name"),
            text(metadata, "namespace"),
            text(metadata, "uid"),
        )
    }
}

fn pull_message(image: &str) -> String {
    format!("Back-off pulling image {image:?}: ErrImagePull: simulated failure")
}
