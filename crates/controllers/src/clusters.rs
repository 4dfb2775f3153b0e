//! The clusters of a control loop: the home cluster, which has the rollouts, and member clusters,
//! which may join and leave while it runs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use convoy_api::GroupKind;
use kube::Client;
use smol_str::SmolStr;
use tokio::sync::watch;

use crate::reflector::Scope;
use crate::transport;

/// A connection to one cluster.
#[derive(Clone)]
pub struct Cluster {
    pub client: Client,
    /// Which objects of a kind are read, for clients that may not read the others; of kinds that
    /// have no entry, all.
    pub scopes: BTreeMap<GroupKind, Scope>,
    /// The time limit of a request that is not a watch. Writes under a Lease have the Lease's.
    pub request_limit: Duration,
}

/// The member clusters by name. A member whose connection is replaced by another one is taken for
/// another cluster: all that is known of it is read again.
pub type Members = BTreeMap<SmolStr, Arc<Cluster>>;

/// The clusters that a control loop spans.
#[derive(Clone, Debug)]
pub struct Clusters {
    pub home: Cluster,
    /// The members as of now; the loop follows its changes.
    pub members: watch::Receiver<Members>,
}

impl Cluster {
    pub fn new(client: Client) -> Self {
        Self { client, scopes: BTreeMap::new(), request_limit: transport::TIMEOUT }
    }
}

impl Clusters {
    /// Members that never change.
    pub fn fixed(home: Cluster, members: Members) -> Self {
        Self { home, members: watch::channel(members).1 }
    }
}

/// One cluster without members.
impl From<Client> for Clusters {
    fn from(client: Client) -> Self {
        Self::fixed(Cluster::new(client), Members::new())
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("scopes", &self.scopes)
            .field("request_limit", &self.request_limit)
            .finish_non_exhaustive()
    }
}
