//! The parts of a control plane that `convoy run` and `convoy up` can run.

use clap::ValueEnum;
use convoy_plan::Dialect;
use convoy_plan::dialect::apps::{Deployments, ReplicaSets};
use convoy_plan::dialect::skyhook::Skyhook;
use convoy_plan::dialect::workloads::{DAEMON_SETS, JOBS, STATEFUL_SETS};

const SKYHOOK: &Skyhook = &Skyhook::new();

/// One part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Controller {
    /// Deployments: in place of kube-controller-manager's deployment controller
    Apps,
    /// ReplicaSets, where no kube-controller-manager keeps them
    #[value(name = "replicasets")]
    ReplicaSets,
    /// DaemonSets, where no kube-controller-manager keeps them
    #[value(name = "daemonsets")]
    DaemonSets,
    /// StatefulSets, where no kube-controller-manager keeps them
    #[value(name = "statefulsets")]
    StatefulSets,
    /// Jobs, where no kube-controller-manager keeps them
    Jobs,
    /// Skyhooks and their policies: in place of NVIDIA's operator
    Skyhook,
}

impl Controller {
    fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::Apps => &Deployments,
            Self::ReplicaSets => &ReplicaSets,
            Self::DaemonSets => &DAEMON_SETS,
            Self::StatefulSets => &STATEFUL_SETS,
            Self::Jobs => &JOBS,
            Self::Skyhook => SKYHOOK,
        }
    }

    /// What a home without a kube-controller-manager needs.
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// Their dialects, each once.
    pub(crate) fn dialects(mut controllers: Vec<Self>) -> Vec<&'static dyn Dialect> {
        controllers.sort_unstable();
        controllers.dedup();
        controllers.into_iter().map(Self::dialect).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_run_once_under_the_name_it_was_asked_for_by() {
        let given = vec![Controller::Jobs, Controller::Apps, Controller::Jobs];
        let names: Vec<&str> =
            Controller::dialects(given).iter().map(|dialect| dialect.name()).collect();
        assert_eq!(names, ["apps", "jobs"]);
        for controller in Controller::all() {
            let value = controller.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), controller.dialect().name());
        }
    }
}
