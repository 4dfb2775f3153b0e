//! The controllers that `convoy run` and `convoy up` can run.

use anyhow::Result;
use clap::ValueEnum;
use convoy_plan::Dialect;
use convoy_plan::dialect::apps::{Deployments, ReplicaSets, ReplicationControllers};
use convoy_plan::dialect::endpoints::Endpoints;
use convoy_plan::dialect::fleet::{self, Hub};
use convoy_plan::dialect::karpenter::{Gates, Operator};
use convoy_plan::dialect::skyhook::{self, Skyhook};
use convoy_plan::dialect::workloads::{
    CRON_JOBS, DAEMON_SETS, JOBS, PodDisruptionBudgets, STATEFUL_SETS,
};
use convoy_plan::dialect::{ocm, ocm_agent};

use super::features::FeatureFlags;
use super::hub::HubFlags;
use super::ocm::OcmFlags;
use super::ocm_agent::AgentPart;
use super::skyhook::SkyhookFlags;

/// A controller, by the name that the flags use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Controller {
    /// Deployments; replaces kube-controller-manager's deployment controller
    Apps,
    /// ReplicaSets, for servers without kube-controller-manager
    #[value(name = "replicasets")]
    ReplicaSets,
    /// ReplicationControllers, for servers without kube-controller-manager
    #[value(name = "replicationcontrollers")]
    ReplicationControllers,
    /// DaemonSets, for servers without kube-controller-manager
    #[value(name = "daemonsets")]
    DaemonSets,
    /// StatefulSets, for servers without kube-controller-manager
    #[value(name = "statefulsets")]
    StatefulSets,
    /// Jobs, for servers without kube-controller-manager
    Jobs,
    /// CronJobs, for servers without kube-controller-manager
    #[value(name = "cronjobs")]
    CronJobs,
    /// Endpoints and EndpointSlices of Services, for servers without kube-controller-manager
    Endpoints,
    /// PodDisruptionBudgets, for servers without kube-controller-manager
    #[value(name = "poddisruptionbudgets")]
    PodDisruptionBudgets,
    /// Skyhooks and DeploymentPolicies; replaces NVIDIA's operator
    Skyhook,
    /// NodePools, NodeClaims and their nodes; replaces Karpenter with its simulated provider
    Karpenter,
    /// Placements, update runs and member clusters; replaces KubeFleet's hub agent
    Fleet,
    /// Placements, ManifestWorkReplicaSets, managed clusters and their sets; replaces the hub
    /// controllers of Open Cluster Management
    Ocm,
}

/// The flags of the dialects.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DialectFlags {
    #[command(flatten)]
    skyhook: SkyhookFlags,
    #[command(flatten)]
    hub: HubFlags,
    #[command(flatten)]
    ocm: OcmFlags,
    #[command(flatten)]
    features: FeatureFlags,
}

/// What the flags of the dialects ask for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) skyhook: skyhook::Options,
    pub(crate) fleet: fleet::Options,
    pub(crate) ocm: ocm::HubControllers,
    /// The agents of Open Cluster Management that run for each member cluster.
    pub(crate) ocm_agents: Vec<AgentPart>,
    pub(crate) ocm_features: ocm_agent::Features,
    pub(crate) karpenter: Gates,
}

impl DialectFlags {
    pub(crate) fn options(self) -> Result<Options> {
        let Self { skyhook, hub, ocm, features } = self;
        let (karpenter, ocm_features) = features.resolve()?;
        Ok(Options {
            skyhook: skyhook.options(),
            fleet: hub.options(),
            ocm: ocm.parts(),
            ocm_agents: ocm.agents(),
            ocm_features,
            karpenter,
        })
    }
}

impl Controller {
    pub(crate) fn dialect(self, options: &Options) -> &'static dyn Dialect {
        match self {
            Self::Apps => &Deployments,
            Self::ReplicaSets => &ReplicaSets,
            Self::ReplicationControllers => &ReplicationControllers,
            Self::DaemonSets => &DAEMON_SETS,
            Self::StatefulSets => &STATEFUL_SETS,
            Self::Jobs => &JOBS,
            Self::CronJobs => &CRON_JOBS,
            Self::Endpoints => &Endpoints,
            Self::PodDisruptionBudgets => &PodDisruptionBudgets,
            // Created once, and used until the process exits.
            Self::Skyhook => Box::leak(Box::new(Skyhook { options: options.skyhook.clone() })),
            Self::Karpenter => Box::leak(Box::new(Operator { gates: options.karpenter })),
            Self::Fleet => Box::leak(Box::new(Hub { options: options.fleet })),
            Self::Ocm => Box::leak(Box::new(ocm::Hub { parts: options.ocm })),
        }
    }

    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// The controllers of a single cluster without kube-controller-manager.
    pub(crate) fn of_cluster() -> Vec<Self> {
        let all = Self::value_variants().iter().copied();
        all.filter(|controller| ![Self::Fleet, Self::Ocm].contains(controller)).collect()
    }

    /// The dialects of `controllers`, each once.
    pub(crate) fn dialects(
        mut controllers: Vec<Self>,
        options: &Options,
    ) -> Vec<&'static dyn Dialect> {
        controllers.sort_unstable();
        controllers.dedup();
        controllers.into_iter().map(|controller| controller.dialect(options)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_run_once_under_the_name_it_was_asked_for_by() {
        let given = vec![Controller::Jobs, Controller::Apps, Controller::Jobs];
        let options = Options::default();
        let dialects = Controller::dialects(given, &options);
        let names: Vec<&str> = dialects.iter().map(|dialect| dialect.name()).collect();
        assert_eq!(names, ["apps", "jobs"]);
        for controller in Controller::all() {
            let value = controller.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), controller.dialect(&options).name());
        }
    }
}
