//! Leader election against an API server: takes the lease, renews it, and tells the [`Fence`] until
//! when this process may write. What a candidate may do is decided in [`crate::lease`].

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use crate::fence::{BootClock, Clock, Fence};
use crate::lease::{Candidate, Claim, Election, Holder};
use crate::lease_watch::LeaseWatch;
use crate::response::Response;
use crate::tenure::{Standing, Tenure};
use crate::transport::{self, Writer};

/// A process that wants to lead, and leads while [`Leader::hold`] runs.
pub struct Leader {
    client: Client,
    /// Writes of the lease itself are fenced by its version.
    writer: Writer,
    candidate: Candidate,
    clock: Arc<dyn Clock>,
    fence: Fence,
    /// When the last successful request for the lease was sent.
    renewed_at: Duration,
    /// For whom it waits, as far as it was logged.
    waits_for: Option<Holder>,
    /// Why it could not read or write the lease, as far as it was logged.
    trouble: Option<String>,
}

/// Why a process leads no longer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeadershipLost {
    #[error("{holder} holds it now")]
    Taken { holder: String },
    #[error("it was not renewed within {} ms", within.as_millis())]
    NotRenewed { within: Duration },
}

/// The result of one attempt to take or renew the lease.
enum Attempt {
    /// By a request that was sent at this instant.
    Taken(Tenure),
    Renewed(Duration),
    Lost(String),
    /// Somebody else wrote the lease in between.
    Conflict,
    Failed,
}

impl Leader {
    pub fn new(client: Client, election: Election) -> Self {
        Self::with_clock(client, election, Arc::new(BootClock))
    }

    /// With a clock that need not be the machine's.
    pub fn with_clock(client: Client, election: Election, clock: Arc<dyn Clock>) -> Self {
        Self {
            writer: Writer::new(client.clone(), Fence::none()),
            client,
            candidate: Candidate::new(election),
            fence: Fence::new(Arc::clone(&clock)),
            clock,
            renewed_at: Duration::ZERO,
            waits_for: None,
            trouble: None,
        }
    }

    /// The fence of all writes of this process.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Waits until this process holds the lease. Its fence opens then, or after the grace for
    /// writes of a leader that fell silent.
    pub fn acquire(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.take())
    }

    async fn take(&mut self) {
        let watch = LeaseWatch::start(self.client.clone(), self.candidate.election());
        loop {
            if let Attempt::Taken(tenure) = self.attempt().await {
                self.candidate.took();
                self.renewed_at = tenure.renewed_at();
                self.fence.begin(tenure);
                let Election { name, identity, .. } = self.candidate.election();
                let wait = match tenure.standing(self.clock.now()) {
                    Standing::TooEarly { wait } => wait,
                    Standing::Open { .. } | Standing::Over { .. } => Duration::ZERO,
                };
                let writes_in_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                tracing::info!(lease = name, identity, writes_in_ms, "became the leader");
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(self.candidate.election().timing.retry()) => {}
                () = watch.released() => {}
            }
        }
    }

    /// Renews the lease; returns when this process leads no longer. Its fence is closed then.
    pub fn hold(&mut self) -> BoxFuture<'_, LeadershipLost> {
        Box::pin(self.keep())
    }

    async fn keep(&mut self) -> LeadershipLost {
        let lost = self.renew().await;
        self.fence.end();
        let lease = self.candidate.election().name.as_str();
        tracing::error!(lease, why = %lost, "lost the lease; stepping down");
        lost
    }

    async fn renew(&mut self) -> LeadershipLost {
        let timing = self.candidate.election().timing;
        let within = timing.renew_within();
        let mut pause = timing.retry();
        loop {
            tokio::time::sleep(pause).await;
            let left = within.saturating_sub(self.clock.now().saturating_sub(self.renewed_at));
            if left.is_zero() {
                return LeadershipLost::NotRenewed { within };
            }
            pause = timing.retry();
            // An attempt that hangs leaves time for another.
            let limit = left.min(timing.request_limit());
            match tokio::time::timeout(limit, self.attempt()).await {
                Ok(Attempt::Renewed(sent_at)) => {
                    self.renewed_at = sent_at;
                    self.fence.renewed(sent_at);
                }
                Ok(Attempt::Lost(holder)) => return LeadershipLost::Taken { holder },
                // Every write until it is known who wrote it may be one too many.
                Ok(Attempt::Conflict) => pause = timing.retry() / 20,
                Ok(Attempt::Taken(_) | Attempt::Failed) | Err(_) => {}
            }
        }
    }

    /// Releases the lease, so that the next leader need not wait until it expires. It is not
    /// released while a write of ours may still be applied.
    pub fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.give_back())
    }

    async fn give_back(&self) {
        self.fence.end();
        let election = self.candidate.election();
        if self.fence.may_have_writes_in_flight(election.timing) {
            tracing::warn!("writes got no response; the lease is not released and will expire");
            return;
        }
        let Ok(response) = transport::read(&self.client, election.path()).await else { return };
        let lease = Some(response).filter(Response::is_success).map(|response| response.body);
        let release = lease.and_then(|lease| election.released(&lease, Timestamp::now()));
        let Some(request) = release else { return };
        if let Err(error) = self.writer.write(request).await {
            let why = transport::chain(&error);
            tracing::warn!(why, "could not release the lease; it will expire");
        }
    }

    /// One attempt to take or renew the lease.
    async fn attempt(&mut self) -> Attempt {
        let lease = match self.read().await {
            Ok(lease) => lease,
            Err(why) => return self.failed("could not read the lease", why),
        };
        let (at, now) = (self.clock.now(), Timestamp::now());
        let claim = self.candidate.observe(lease.as_ref(), at, now);
        let (request, succession) = match claim {
            Claim::Lost { holder } => return Attempt::Lost(holder),
            Claim::Wait { who, left } => {
                self.trouble = None;
                self.log_wait(who, left);
                return Attempt::Failed;
            }
            Claim::Take { request, succession } => (request, Some(succession)),
            Claim::Renew { request } => (request, None),
        };
        let sent_at = self.clock.now();
        match self.writer.write(request).await {
            Ok(response) if response.is_success() => {
                self.trouble = None;
                match succession {
                    Some(succession) => {
                        let timing = self.candidate.election().timing;
                        Attempt::Taken(Tenure::new(timing, sent_at, succession))
                    }
                    None => Attempt::Renewed(sent_at),
                }
            }
            Ok(response) if response.code == 409 => Attempt::Conflict,
            Ok(response) => self.failed("could not write the lease", response.message()),
            Err(error) => self.failed("could not write the lease", transport::chain(&error)),
        }
    }

    /// The lease; `None` if there is none.
    async fn read(&self) -> Result<Option<Value>, String> {
        let path = self.candidate.election().path();
        let response = transport::read(&self.client, path).await;
        let response = response.map_err(|error| transport::chain(&error))?;
        match response.code {
            200 => Ok(Some(response.body)),
            404 => Ok(None),
            _ => Err(response.message()),
        }
    }

    /// Logs why, once until it has gone.
    fn failed(&mut self, what: &'static str, why: String) -> Attempt {
        let lease = self.candidate.election().name.as_str();
        if self.trouble.as_ref() == Some(&why) {
            tracing::debug!(lease, why, "{what}");
        } else {
            tracing::warn!(lease, why, "{what}; retrying");
            self.trouble = Some(why);
        }
        Attempt::Failed
    }

    fn log_wait(&mut self, who: Holder, left: Duration) {
        let (lease, left_ms) = (&self.candidate.election().name, left.as_millis());
        if self.waits_for.as_ref() != Some(&who) {
            let why = match &who {
                Holder::Other(holder) => format!("{holder} holds it"),
                Holder::Cleared => "it was cleared or made anew; its holder may act on".to_owned(),
                Holder::Absent => "there is none; a holder of a deleted one may act on".to_owned(),
            };
            tracing::info!(lease, why, at_least_ms = left_ms, "waiting for the lease");
            self.waits_for = Some(who);
        }
    }
}

impl std::fmt::Debug for Leader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { candidate, fence, .. } = self;
        f.debug_struct("Leader")
            .field("candidate", candidate)
            .field("fence", fence)
            .finish_non_exhaustive()
    }
}
