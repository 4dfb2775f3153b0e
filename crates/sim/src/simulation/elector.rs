//! A simulated process as a candidate for the lease, with a clock of its own that is fast or slow.

use std::time::Duration;

use convoy_controllers::lease::{Candidate, Claim, Election};
use convoy_controllers::request::Request;
use convoy_controllers::response::Response;
use convoy_controllers::tenure::{LeaseTiming, Standing, Succession, Tenure};
use jiff::{SignedDuration, Timestamp};

use super::START;
use super::cluster::Author;
use super::environment::Environment;
use super::faults::RequestFault;

pub(super) const NAMESPACE: &str = "default";
pub(super) const LEASE: &str = "convoy";

/// The clock of a process: it runs while the process is suspended, at a rate of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalClock {
    pub(super) offset: Duration,
    /// How much it is fast, in thousandths.
    pub(super) skew: i64,
}

#[derive(Debug)]
pub(super) enum ElectorEvent {
    Poll,
    ReadArrives,
    /// The response to the read; none if there was none.
    Read(Option<Response>),
    WriteArrives(LeaseWrite),
    Written(u16, LeaseWrite),
}

#[derive(Debug)]
pub(super) struct LeaseWrite {
    request: Request,
    sent_at: Duration,
    /// None for a renewal.
    succession: Option<Succession>,
}

/// What an event changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElectorChange {
    None,
    /// It leads, and may write after this time.
    Began(SignedDuration),
    Lost,
}

pub(super) type ElectorScheduled = Vec<(SignedDuration, ElectorEvent)>;

#[derive(Debug)]
pub(super) struct Elector {
    candidate: Candidate,
    clock: LocalClock,
    tenure: Option<Tenure>,
}

impl LocalClock {
    fn now(self, at: Timestamp) -> Duration {
        let elapsed = Duration::try_from(at.duration_since(START)).unwrap_or_default();
        let rate = u32::try_from(1_000 + self.skew).unwrap_or(1_000);
        self.offset + elapsed * rate / 1_000
    }

    /// The time that passes while this clock advances by so much.
    fn real(self, local: Duration) -> SignedDuration {
        let rate = u32::try_from(1_000 + self.skew).unwrap_or(1_000);
        SignedDuration::try_from(local * 1_000 / rate).unwrap_or(SignedDuration::MAX)
    }
}

impl ElectorEvent {
    /// Whether it happens at the server, whatever the process does.
    pub(super) fn is_of_server(&self) -> bool {
        matches!(self, Self::ReadArrives | Self::WriteArrives(_))
    }
}

impl Elector {
    pub(super) fn new(timing: LeaseTiming, identity: &str, clock: LocalClock) -> Self {
        let election = Election { timing, ..Election::new(NAMESPACE, LEASE, identity) };
        Self { candidate: Candidate::new(election), clock, tenure: None }
    }

    /// Whether this process leads and may write at an instant.
    pub(super) fn may_write(&self, at: Timestamp) -> bool {
        let standing = self.tenure.map(|tenure| tenure.standing(self.clock.now(at)));
        matches!(standing, Some(Standing::Open { .. }))
    }

    pub(super) fn handle(
        &mut self,
        event: ElectorEvent,
        environment: &mut Environment<'_>,
    ) -> (ElectorScheduled, ElectorChange) {
        let timing = self.candidate.election().timing;
        let retry = self.clock.real(timing.retry());
        let now = environment.cluster.now();
        let local = self.clock.now(now);
        let transit = environment.random.millis(0, 10);
        let (delay, next) = match event {
            ElectorEvent::Poll => {
                let standing = self.tenure.map(|tenure| tenure.standing(local));
                if matches!(standing, Some(Standing::Over { .. })) {
                    return (Vec::new(), ElectorChange::Lost);
                }
                (transit, ElectorEvent::ReadArrives)
            }
            ElectorEvent::ReadArrives => (transit, ElectorEvent::Read(self.read(environment))),
            ElectorEvent::Read(response) => match self.observe(response, local, now) {
                Some(Claim::Lost { .. }) => return (Vec::new(), ElectorChange::Lost),
                Some(Claim::Take { request, succession }) => {
                    let succession = Some(succession);
                    let write = LeaseWrite { request, sent_at: local, succession };
                    (environment.transit(), ElectorEvent::WriteArrives(write))
                }
                Some(Claim::Renew { request }) => {
                    let write = LeaseWrite { request, sent_at: local, succession: None };
                    (environment.transit(), ElectorEvent::WriteArrives(write))
                }
                Some(Claim::Wait { .. }) | None => (retry, ElectorEvent::Poll),
            },
            ElectorEvent::WriteArrives(write) => {
                let code = write_response(&write.request, environment);
                (transit, ElectorEvent::Written(code, write))
            }
            ElectorEvent::Written(code, write) => {
                let delay = if code == 409 { retry / 20 } else { retry };
                let change = self.written(code, &write, local);
                return (vec![(delay, ElectorEvent::Poll)], change);
            }
        };
        (vec![(delay, next)], ElectorChange::None)
    }

    fn read(&self, environment: &mut Environment<'_>) -> Option<Response> {
        let fault = environment.faults.of_read(environment.random);
        let path = self.candidate.election().path();
        (fault == RequestFault::None)
            .then(|| environment.cluster.send(&Request::get(path), Author::Elector))
    }

    fn observe(
        &mut self,
        response: Option<Response>,
        local: Duration,
        now: Timestamp,
    ) -> Option<Claim> {
        match response? {
            Response { code: 200, body, .. } => {
                Some(self.candidate.observe(Some(&body), local, now))
            }
            Response { code: 404, .. } => Some(self.candidate.observe(None, local, now)),
            Response { .. } => None,
        }
    }

    fn written(&mut self, code: u16, write: &LeaseWrite, local: Duration) -> ElectorChange {
        if !(200..300).contains(&code) {
            return ElectorChange::None;
        }
        match (write.succession, &mut self.tenure) {
            (Some(succession), _) => {
                let timing = self.candidate.election().timing;
                let tenure = Tenure::new(timing, write.sent_at, succession);
                self.candidate.took();
                self.tenure = Some(tenure);
                let wait = match tenure.standing(local) {
                    Standing::TooEarly { wait } => wait,
                    Standing::Open { .. } | Standing::Over { .. } => Duration::ZERO,
                };
                // Rounded up: this wakes the process.
                ElectorChange::Began(self.clock.real(wait) + SignedDuration::from_millis(1))
            }
            // A leader does not wait for a response beyond its tenure.
            (None, Some(tenure)) if matches!(tenure.standing(local), Standing::Over { .. }) => {
                ElectorChange::Lost
            }
            (None, Some(tenure)) => {
                tenure.renewed(write.sent_at);
                ElectorChange::None
            }
            (None, None) => ElectorChange::None,
        }
    }
}

fn write_response(request: &Request, environment: &mut Environment<'_>) -> u16 {
    match environment.faults.of_write(environment.random) {
        RequestFault::None => environment.cluster.send(request, Author::Elector).code,
        RequestFault::Refused(code) => code,
        RequestFault::Failed | RequestFault::Lost => {
            environment.cluster.send(request, Author::Elector);
            500
        }
    }
}
