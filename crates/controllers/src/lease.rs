//! Leader election by a Lease: of several processes one is active, and releases the lease when it
//! ends.
//!
//! Clocks of machines differ, so a lease counts as expired when *this process* has observed it
//! unchanged for its whole duration, whatever instant it names.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use crate::request::Request;
use crate::response::Response;
use crate::transport;

/// A candidate for a lease.
#[derive(Clone, Debug)]
pub struct Election {
    pub namespace: String,
    pub name: String,
    /// Unique among the candidates.
    pub identity: String,
    /// How long the lease is valid without a renewal.
    pub duration: Duration,
    /// How long a leader tries to renew before it steps down; less than `duration`, so that it
    /// stops before another candidate starts.
    pub renew_within: Duration,
    /// The interval between two attempts.
    pub retry: Duration,
}

/// The last observed version of a lease, and since when it is unchanged.
#[derive(Clone, Debug)]
struct Observed {
    version: String,
    since: Instant,
}

/// Whether the lease can be taken.
#[derive(Clone, Debug, PartialEq)]
enum Claim {
    /// Yes, by writing this.
    Take(Value),
    /// No, another candidate holds it.
    Wait,
}

impl Election {
    /// With the timing of Kubernetes' own components.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_within: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }

    /// Waits until this process holds the lease.
    pub async fn acquire(&self, client: &Client) {
        let mut observed = None;
        while !self.attempt(client, &mut observed).await {
            tokio::time::sleep(self.retry).await;
        }
        tracing::info!(lease = self.name, identity = self.identity, "became the leader");
    }

    /// Renews the lease; returns when this process must stop because it could not renew in time.
    pub async fn hold(&self, client: &Client) {
        let (mut renewed, mut observed) = (Instant::now(), None);
        while renewed.elapsed() < self.renew_within {
            tokio::time::sleep(self.retry).await;
            let left = self.renew_within.saturating_sub(renewed.elapsed());
            let attempt = tokio::time::timeout(left, self.attempt(client, &mut observed)).await;
            if attempt == Ok(true) {
                renewed = Instant::now();
            }
        }
        tracing::error!(lease = self.name, "could not renew the lease; stepping down");
    }

    /// Releases the lease, so that the next leader need not wait until it expires.
    pub async fn release(&self, client: &Client) {
        let Ok(response) = transport::send(client, Request::get(self.path())).await else { return };
        if !response.is_success() || holder(&response.body) != self.identity {
            return;
        }
        let mut lease = response.body;
        lease["spec"]["holderIdentity"] = json!("");
        lease["spec"]["leaseDurationSeconds"] = json!(1);
        lease["spec"]["renewTime"] = json!(micro_time(Timestamp::now()));
        if let Err(error) = transport::send(client, Request::replace(&self.path(), lease)).await {
            let why = transport::chain(&error);
            tracing::warn!(why, "could not release the lease; it will expire");
        }
    }

    /// One attempt to take or renew the lease.
    async fn attempt(&self, client: &Client, observed: &mut Option<Observed>) -> bool {
        let Ok(response) = transport::send(client, Request::get(self.path())).await else {
            return false;
        };
        let sent = match response.code {
            404 => Request::create(&self.collection(), self.made(Timestamp::now())),
            200 => match self.claim(&response.body, observed, Instant::now(), Timestamp::now()) {
                Claim::Wait => return false,
                Claim::Take(lease) => Request::replace(&self.path(), lease),
            },
            _ => {
                let message = response.message();
                tracing::warn!(lease = self.name, message, "could not read the lease");
                return false;
            }
        };
        // Fenced by the version that was read: of two candidates, one succeeds.
        transport::send(client, sent).await.as_ref().is_ok_and(Response::is_success)
    }

    fn claim(
        &self,
        lease: &Value,
        observed: &mut Option<Observed>,
        at: Instant,
        now: Timestamp,
    ) -> Claim {
        let version = lease.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let version = version.unwrap_or_default();
        let since = match observed {
            Some(observed) if observed.version == version => observed.since,
            _ => {
                *observed = Some(Observed { version: version.to_owned(), since: at });
                at
            }
        };
        let leader = holder(lease);
        let is_ours = leader == self.identity;
        let promised = lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_u64);
        let expires = promised.map_or(self.duration, Duration::from_secs);
        if !is_ours && !leader.is_empty() && at.duration_since(since) < expires {
            return Claim::Wait;
        }
        let mut taken = lease.clone();
        let changes = lease.pointer("/spec/leaseTransitions").and_then(Value::as_i64).unwrap_or(0);
        let spec = &mut taken["spec"];
        spec["renewTime"] = json!(micro_time(now));
        spec["leaseDurationSeconds"] = json!(self.duration.as_secs());
        if !is_ours {
            spec["holderIdentity"] = json!(self.identity);
            spec["acquireTime"] = json!(micro_time(now));
            spec["leaseTransitions"] = json!(changes + 1);
        }
        Claim::Take(taken)
    }

    fn made(&self, now: Timestamp) -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"holderIdentity": self.identity, "leaseTransitions": 0,
                "leaseDurationSeconds": self.duration.as_secs(),
                "acquireTime": micro_time(now), "renewTime": micro_time(now)}})
    }

    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

fn holder(lease: &Value) -> &str {
    lease.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default()
}

fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(version: &str, holder: &str) -> Value {
        json!({"metadata": {"resourceVersion": version},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3}})
    }

    #[test]
    fn a_lease_is_taken_when_it_is_free_ours_or_seen_unchanged_for_long() {
        let election = Election::new("kube-system", "convoy", "me");
        let (start, now) = (Instant::now(), "2026-01-01T00:00:00Z".parse().unwrap());
        let after = |secs| start + Duration::from_secs(secs);
        let mut observed = None;
        let mut claim = |version: &str, holder: &str, at| {
            let lease = lease(version, holder);
            let claim = election.claim(&lease, &mut observed, at, now);
            match claim {
                Claim::Wait => None,
                Claim::Take(taken) => taken["spec"]["leaseTransitions"].as_i64(),
            }
        };
        assert_eq!(claim("1", "other", start), None);
        assert_eq!(claim("1", "other", after(14)), None);
        assert_eq!(claim("2", "other", after(20)), None, "it was renewed");
        assert_eq!(claim("2", "other", after(35)), Some(4), "it has expired");
        assert_eq!(claim("3", "me", after(36)), Some(3), "a renewal is not a transition");
        assert_eq!(claim("4", "", after(37)), Some(4), "it was released");
    }

    #[test]
    fn instants_have_six_digits() {
        let at: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
        assert_eq!(micro_time(at), "2026-01-01T00:00:00.500000Z");
    }
}
