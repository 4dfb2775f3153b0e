//! Pods that have a node, in so far as their rules concern other pods.

use convoy_api::Object;

use crate::dialect::karpenter::names::label;
use crate::topology::{Located, TopologyRules};

/// A pod on a node, existing or new.
pub(super) struct ScheduledPod<'w> {
    pub(super) pod: &'w Object,
    pub(super) topology: Option<TopologyRules<'w>>,
    pub(super) labels: NodeLabels<'w>,
}

/// The labels of a node.
pub(super) enum NodeLabels<'w> {
    Existing(&'w Object),
    New { zone: String, host: String },
}

impl<'w> Located<'w> for ScheduledPod<'w> {
    fn pod(&self) -> &'w Object {
        self.pod
    }

    fn domain(&self, key: &str) -> Option<&str> {
        match &self.labels {
            NodeLabels::Existing(node) => {
                node.label(key).or_else(|| (key == label::HOSTNAME).then(|| node.name().as_str()))
            }
            NodeLabels::New { zone, .. } if key == label::ZONE => Some(zone),
            NodeLabels::New { host, .. } if key == label::HOSTNAME => Some(host),
            NodeLabels::New { .. } => None,
        }
    }

    fn topology(&self) -> Option<&TopologyRules<'w>> {
        self.topology.as_ref()
    }
}
