//! The controllers that `convoy run` and `convoy up` can run.

use clap::ValueEnum;
use convoy_plan::Dialect;
use convoy_plan::dialect::apps::{Deployments, ReplicaSets};
use convoy_plan::dialect::fleet::{Hub, HubTimings};
use convoy_plan::dialect::skyhook::{Options, Skyhook};
use convoy_plan::dialect::workloads::{DAEMON_SETS, JOBS, STATEFUL_SETS};

/// A controller, by the name that the flags use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Controller {
    /// Deployments; replaces kube-controller-manager's deployment controller
    Apps,
    /// ReplicaSets, for servers without kube-controller-manager
    #[value(name = "replicasets")]
    ReplicaSets,
    /// DaemonSets, for servers without kube-controller-manager
    #[value(name = "daemonsets")]
    DaemonSets,
    /// StatefulSets, for servers without kube-controller-manager
    #[value(name = "statefulsets")]
    StatefulSets,
    /// Jobs, for servers without kube-controller-manager
    Jobs,
    /// Skyhooks and DeploymentPolicies; replaces NVIDIA's operator
    Skyhook,
    /// Placements, update runs and member clusters; replaces KubeFleet's hub agent
    Fleet,
}

impl Controller {
    fn dialect(self, skyhook: &Options, hub: HubTimings) -> &'static dyn Dialect {
        match self {
            Self::Apps => &Deployments,
            Self::ReplicaSets => &ReplicaSets,
            Self::DaemonSets => &DAEMON_SETS,
            Self::StatefulSets => &STATEFUL_SETS,
            Self::Jobs => &JOBS,
            // Created once, and used until the process exits.
            Self::Skyhook => Box::leak(Box::new(Skyhook { options: skyhook.clone() })),
            Self::Fleet => Box::leak(Box::new(Hub::new(hub))),
        }
    }

    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// The controllers of a single cluster without kube-controller-manager.
    pub(crate) fn of_cluster() -> Vec<Self> {
        let all = Self::value_variants().iter().copied();
        all.filter(|controller| *controller != Self::Fleet).collect()
    }

    /// The dialects of `controllers`, each once.
    pub(crate) fn dialects(
        mut controllers: Vec<Self>,
        skyhook: &Options,
        hub: HubTimings,
    ) -> Vec<&'static dyn Dialect> {
        controllers.sort_unstable();
        controllers.dedup();
        controllers.into_iter().map(|controller| controller.dialect(skyhook, hub)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_run_once_under_the_name_it_was_asked_for_by() {
        let given = vec![Controller::Jobs, Controller::Apps, Controller::Jobs];
        let options = Options::new();
        let dialects = Controller::dialects(given, &options, HubTimings::new());
        let names: Vec<&str> = dialects.iter().map(|dialect| dialect.name()).collect();
        assert_eq!(names, ["apps", "jobs"]);
        for controller in Controller::all() {
            let value = controller.to_possible_value().expect("none is hidden");
            let dialect = controller.dialect(&options, HubTimings::new());
            assert_eq!(value.get_name(), dialect.name());
        }
    }
}
