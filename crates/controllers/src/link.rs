//! A cluster that the loop is connected to: what sends requests to it, and what is known of its
//! API. Links are shared by the tasks that watch a cluster and those that write to it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use smol_str::SmolStr;

use crate::cache::CacheEvent;
use crate::clusters::Cluster;
use crate::complaints::Complaints;
use crate::discovery::Discovery;
use crate::fence::Fence;
use crate::message::Message;
use crate::transport::{self, RawResponse, TransportError, Writer};

/// The connection to one cluster, from when it joins until it leaves.
pub(crate) struct Link {
    /// Empty for the home cluster.
    pub(crate) name: SmolStr,
    /// Two connections to a cluster of one name have different numbers.
    pub(crate) number: u64,
    /// For reads.
    pub(crate) cluster: Cluster,
    pub(crate) writer: Writer,
    pub(crate) discovery: Discovery,
    /// Of its watches.
    pub(crate) complaints: Complaints,
}

impl Link {
    /// Writes to every cluster look at the same fence: the Lease is in the home cluster.
    pub(crate) fn new(name: SmolStr, number: u64, cluster: Cluster, fence: Fence) -> Self {
        let writer = Writer::new(cluster.client.clone(), fence).within(cluster.request_limit);
        let (discovery, complaints) = (Discovery::default(), Complaints::default());
        Self { name, number, cluster, writer, discovery, complaints }
    }

    pub(crate) async fn fetch(&self, path: String) -> Result<RawResponse, TransportError> {
        transport::fetch_within(&self.cluster.client, path, self.cluster.request_limit).await
    }

    /// A message about this connection.
    pub(crate) fn message(&self, event: CacheEvent) -> Message {
        Message::Cache { cluster: self.name.clone(), link: self.number, event }
    }
}

/// The links of a loop, by cluster.
#[derive(Default)]
pub(crate) struct Links {
    links: RwLock<BTreeMap<SmolStr, Arc<Link>>>,
}

impl Links {
    pub(crate) fn get(&self, cluster: &str) -> Option<Arc<Link>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).get(cluster).cloned()
    }

    pub(crate) fn insert(&self, link: Arc<Link>) {
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        links.insert(link.name.clone(), link);
    }

    pub(crate) fn remove(&self, cluster: &str) {
        self.links.write().unwrap_or_else(PoisonError::into_inner).remove(cluster);
    }

    /// The member clusters with a link.
    pub(crate) fn members(&self) -> Vec<SmolStr> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        links.keys().filter(|name| !name.is_empty()).cloned().collect()
    }
}
