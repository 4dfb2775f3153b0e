//! The candidate for a Lease: what a process may do with the lease that it read. This module
//! decides; [`crate::leader`] sends the requests.
//!
//! Clocks of machines differ, so a lease counts as expired when *this process* has observed it
//! unchanged for its whole duration, whatever instant it names.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::reflector::WATCH_SECS;
use crate::request::Request;
use crate::tenure::{LeaseTiming, Succession};

/// The lease duration that a holder leaves behind when it releases the lease, as client-go does.
const RELEASED_SECS: u64 = 1;

/// A lease, and who wants it.
#[derive(Clone, Debug)]
pub struct Election {
    pub namespace: String,
    pub name: String,
    /// Unique among the candidates, and among all processes that ever were.
    pub identity: String,
    pub timing: LeaseTiming,
}

/// A process that wants the lease or holds it.
#[derive(Clone, Debug)]
pub struct Candidate {
    election: Election,
    observed: Option<Observed>,
    /// The uid of the lease when somebody else held it last.
    held: Option<String>,
    /// Whether this process has taken the lease and not lost it since.
    leads: bool,
}

/// The last observed state of the lease, and since when it is unchanged.
#[derive(Clone, Debug, PartialEq)]
struct Observed {
    /// None if there is no lease.
    version: Option<(String, String)>,
    since: Duration,
}

/// What a candidate may do with the lease that it read.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// Nothing: somebody else holds it, or may still act as if.
    Wait { who: Holder, left: Duration },
    /// Take it by this request.
    Take { request: Request, succession: Succession },
    /// It is ours: renew it by this request.
    Renew { request: Request },
    /// It was ours, and another process holds it now.
    Lost { holder: String },
}

/// For whom a candidate waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    Other(String),
    /// The lease was cleared or made anew, but not by the release of its last holder.
    Cleared,
    /// There is no lease. It may have been deleted while its holder acts on.
    Absent,
}

impl Election {
    /// With the timing of Kubernetes' own components.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            timing: LeaseTiming::new(Duration::from_secs(15)),
        }
    }

    pub fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    /// A watch of this lease alone, which begins with its present state.
    pub(crate) fn watch_path(&self) -> String {
        let (collection, name) = (self.collection(), &self.name);
        format!(
            "{collection}?fieldSelector=metadata.name%3D{name}&watch=true&timeoutSeconds={WATCH_SECS}"
        )
    }

    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn made(&self, now: Timestamp) -> Request {
        let body = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"holderIdentity": self.identity, "leaseTransitions": 0,
                "leaseDurationSeconds": self.timing.duration().as_secs(),
                "acquireTime": micro_time(now), "renewTime": micro_time(now)}});
        Request::create(&self.collection(), body)
    }

    /// Takes or renews a lease; fenced by the version that was read, so that of two candidates one
    /// succeeds.
    fn taken(&self, lease: &Value, now: Timestamp) -> Request {
        let mut taken = lease.clone();
        let changes = lease.pointer("/spec/leaseTransitions").and_then(Value::as_i64).unwrap_or(0);
        let is_ours = holder(lease) == self.identity;
        let spec = &mut taken["spec"];
        spec["renewTime"] = json!(micro_time(now));
        spec["leaseDurationSeconds"] = json!(self.timing.duration().as_secs());
        if !is_ours {
            spec["holderIdentity"] = json!(self.identity);
            spec["acquireTime"] = json!(micro_time(now));
            spec["leaseTransitions"] = json!(changes + 1);
        }
        Request::replace(&self.path(), taken)
    }

    /// Releases a lease that is ours; `None` if it is not.
    pub fn released(&self, lease: &Value, now: Timestamp) -> Option<Request> {
        if holder(lease) != self.identity {
            return None;
        }
        let mut lease = lease.clone();
        lease["spec"]["holderIdentity"] = json!("");
        lease["spec"]["leaseDurationSeconds"] = json!(RELEASED_SECS);
        lease["spec"]["renewTime"] = json!(micro_time(now));
        Some(Request::replace(&self.path(), lease))
    }
}

impl Candidate {
    pub fn new(election: Election) -> Self {
        Self { election, observed: None, held: None, leads: false }
    }

    pub fn election(&self) -> &Election {
        &self.election
    }

    /// The request to take the lease succeeded.
    pub fn took(&mut self) {
        self.leads = true;
    }

    /// Decides about the lease that was read; `None` if there is none. `at` is an instant of this
    /// process after it was read, `now` is for people who look at the lease.
    pub fn observe(&mut self, lease: Option<&Value>, at: Duration, now: Timestamp) -> Claim {
        if self.leads {
            return self.renewal(lease, now);
        }
        let quiet = at.saturating_sub(self.note(lease, at));
        let own = self.election.timing.duration();
        let (who, promised) = match lease {
            None => (Holder::Absent, own),
            Some(lease) => match self.holder(lease) {
                None => {
                    let request = self.election.taken(lease, now);
                    return Claim::Take { request, succession: Succession::Free };
                }
                Some(who) => (who, promised(lease).unwrap_or(own).max(own)),
            },
        };
        if let Some(left) = promised.checked_sub(quiet).filter(|left| !left.is_zero()) {
            return Claim::Wait { who, left };
        }
        let made = || self.election.made(now);
        let request = lease.map_or_else(made, |lease| self.election.taken(lease, now));
        Claim::Take { request, succession: Succession::Expired(promised) }
    }

    /// A leader whose lease was deleted or cleared takes it back: before its tenure is over nobody
    /// else can have begun to act. It loses it only to another holder.
    fn renewal(&mut self, lease: Option<&Value>, now: Timestamp) -> Claim {
        let Some(lease) = lease else { return Claim::Renew { request: self.election.made(now) } };
        let holder = holder(lease);
        if !holder.is_empty() && holder != self.election.identity {
            self.leads = false;
            return Claim::Lost { holder: holder.to_owned() };
        }
        Claim::Renew { request: self.election.taken(lease, now) }
    }

    /// Notes what was observed; returns since when it is unchanged.
    fn note(&mut self, lease: Option<&Value>, at: Duration) -> Duration {
        let version = lease.map(|lease| (uid(lease), word(lease, "/metadata/resourceVersion")));
        match &self.observed {
            Some(observed) if observed.version == version => observed.since,
            _ => {
                self.observed = Some(Observed { version, since: at });
                at
            }
        }
    }

    /// Who holds a lease or may act as if; `None` if it is free.
    fn holder(&mut self, lease: &Value) -> Option<Holder> {
        let holder = holder(lease);
        if !holder.is_empty() {
            self.held = Some(uid(lease));
            // Under our own name too: a request of ours whose response was lost, or an edit.
            return Some(Holder::Other(holder.to_owned()));
        }
        let is_released = promised(lease) == Some(Duration::from_secs(RELEASED_SECS));
        let was_never_held = lease.pointer("/spec/renewTime").is_none_or(Value::is_null);
        let is_same = self.held.as_ref().is_none_or(|held| *held == uid(lease));
        let is_free = is_same && (is_released || was_never_held && self.held.is_none());
        (!is_free).then_some(Holder::Cleared)
    }
}

/// Who holds a lease; empty if nobody does.
pub(crate) fn holder(lease: &Value) -> &str {
    lease.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default()
}

fn promised(lease: &Value) -> Option<Duration> {
    let secs = lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_u64)?;
    Some(Duration::from_secs(secs))
}

fn uid(lease: &Value) -> String {
    word(lease, "/metadata/uid")
}

fn word(lease: &Value, pointer: &str) -> String {
    lease.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests;
